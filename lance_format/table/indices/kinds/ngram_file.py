"""Writing the file of an NGRAM index; see `lance_format.table.indices.kinds.ngram_index`."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyroaring

from lance_format.kernels.texts.trigrams import NUM_TOKENS, gather_trigrams
from lance_format.list_items import offsets_of
from lance_format.table.indices.folding import symbols_of_characters
from lance_format.table.indices.kinds.ngram_index import NGRAM_COLUMNS, NGRAM_FILE
from lance_format.table.indices.row_finder import RowIds
from lance_format.table.indices.row_kind import GatheredRows
from lance_format.table.indices.written_parts import OpenFile, write_file

_PAIRS_AT_ONCE = 16 << 20
"""Rows of tokens in memory, unless one token has more."""

_TOKENS_AT_ONCE = 4096
_NULL_TOKEN = 0


def write_trigrams(rows: GatheredRows, parameters: Mapping[str, Any], open_file: OpenFile) -> dict[str, int]:  # noqa: ARG001
    """Write the file; see `lance_format.table.indices.row_kind.WriteRows`."""
    texts = pa.concat_arrays([pa.array([], pa.large_string()), *(each.cast(pa.large_string()) for each in rows.values)])
    ids = np.concatenate([np.zeros(0, np.uint64), *rows.ids])
    rows.values.clear()
    rows.ids.clear()
    null_ids = ids[texts.is_null().to_numpy(zero_copy_only=False)]
    trigrams = _Trigrams(pc.fill_null(texts, ""))
    batches = _batches(trigrams, ids, null_ids)
    return {NGRAM_FILE: write_file(open_file, NGRAM_FILE, NGRAM_COLUMNS, batches)}


class _Trigrams:
    """Trigrams of texts, gathered in several passes over these, so that memory is bounded."""

    def __init__(self, texts: pa.Array) -> None:
        self._data = np.frombuffer(texts.buffers()[2] or b"", np.uint8)
        self._offsets = offsets_of(texts)
        self._data.flags.writeable = self._offsets.flags.writeable = False  # As of query texts, for one compilation.
        self.counts = np.zeros(NUM_TOKENS, np.int64)
        self._gather(0, NUM_TOKENS, self.counts, np.zeros(0, np.uint32), store=False)

    def rows(self, low: int, high: int) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64]]:
        """Return the rows of tokens, one token after another, and their first positions and the end of the last.

        Parameters
        ----------
        low, high : int
            The tokens.
        """
        starts = np.append(0, np.cumsum(self.counts[low:high]))
        out, ends = np.empty(starts[-1], np.uint32), np.zeros(NUM_TOKENS, np.int64)
        ends[low:high] = starts[:-1]
        self._gather(low, high, ends, out, store=True)
        return out, starts

    def _gather(
        self, low: int, high: int, ends: npt.NDArray[np.int64], out: npt.NDArray[np.uint32], *, store: bool
    ) -> None:
        seen = np.full(NUM_TOKENS, -1)
        gather_trigrams(self._data, self._offsets, symbols_of_characters(), low, high, seen, ends, out, store)


def _batches(trigrams: _Trigrams, ids: RowIds, null_ids: RowIds) -> Iterator[list[pa.Array]]:
    """Yield tokens and their rows."""
    pairs_before = np.append(0, np.cumsum(trigrams.counts))
    low = 0
    while low < NUM_TOKENS:
        most = pairs_before[low] + _PAIRS_AT_ONCE
        high = max(int(np.searchsorted(pairs_before, most, side="right")) - 1, low + 1)
        rows, starts = trigrams.rows(low, high)
        found = np.flatnonzero(np.diff(starts)).tolist()
        if low == _NULL_TOKEN and null_ids.size and not starts[1]:
            found.insert(0, 0)
        for first in range(0, len(found), _TOKENS_AT_ONCE):
            tokens = found[first : first + _TOKENS_AT_ONCE]
            postings = []
            for token in tokens:
                mine = ids[rows[starts[token] : starts[token + 1]]]
                postings.append(_serialize(np.append(mine, null_ids) if low + token == _NULL_TOKEN else mine))
            yield [pa.array(np.array(tokens) + low, pa.uint32()), pa.array(postings, pa.binary())]
        low = high


def _serialize(ids: RowIds) -> bytes:
    return bytes(pyroaring.BitMap64(array("Q", ids.tobytes())).serialize())
