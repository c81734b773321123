"""Writing the file of an NGRAM index; see `lance_format.table.indices.kinds.ngram_index`."""

from __future__ import annotations

import itertools
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
from lance_format.table.indices.part_rows import PartRows, cut
from lance_format.table.indices.row_finder import RowIds
from lance_format.table.indices.written_parts import OpenFile, write_file

_BYTES_AT_ONCE = 16 << 20
"""Of texts whose trigrams are gathered together, and of rows that are written together."""

_NULL_TOKEN = 0


def write_trigrams(rows: PartRows, parameters: Mapping[str, Any], open_file: OpenFile) -> dict[str, int]:  # noqa: ARG001
    """Write the file; see `lance_format.table.indices.row_kind.WriteRows`."""
    postings = dict[int, pyroaring.BitMap64]()
    for texts, ids in _slices(rows):
        if texts.null_count:
            is_null = texts.is_null().to_numpy(zero_copy_only=False)
            _add(postings, _NULL_TOKEN, ids[is_null])
        for token, found in _rows_by_token(pc.fill_null(texts, "")):
            _add(postings, token, ids[found])
    return {NGRAM_FILE: write_file(open_file, NGRAM_FILE, NGRAM_COLUMNS, _batches(postings))}


def _slices(rows: PartRows) -> Iterator[tuple[pa.Array, RowIds]]:
    """Yield texts and the ids of their rows, some megabytes at a time."""
    texts, ids, size_bytes = list[pa.Array](), list[RowIds](), 0
    for some_texts, some_ids in itertools.chain.from_iterable(cut(*each, _BYTES_AT_ONCE) for each in rows):
        texts.append(some_texts.cast(pa.large_string()))
        ids.append(some_ids)
        size_bytes += texts[-1].nbytes
        if size_bytes >= _BYTES_AT_ONCE:
            yield pa.concat_arrays(texts), np.concatenate(ids)
            texts, ids, size_bytes = [], [], 0
    if texts:
        yield pa.concat_arrays(texts), np.concatenate(ids)


def _rows_by_token(texts: pa.Array) -> Iterator[tuple[int, npt.NDArray[np.uint32]]]:
    """Yield the trigrams of texts that are not null, and which texts have each."""
    data, offsets = np.frombuffer(texts.buffers()[2] or b"", np.uint8), offsets_of(texts)
    data.flags.writeable = offsets.flags.writeable = False  # As of query texts, for one compilation.

    def gather(ends: npt.NDArray[np.int64], out: npt.NDArray[np.uint32], *, store: bool) -> None:
        seen = np.full(NUM_TOKENS, -1)
        gather_trigrams(data, offsets, symbols_of_characters(), 0, NUM_TOKENS, seen, ends, out, store)

    counts = np.zeros(NUM_TOKENS, np.int64)
    gather(counts, np.zeros(0, np.uint32), store=False)
    stops = np.cumsum(counts)
    starts, rows = stops - counts, np.empty(stops[-1], np.uint32)
    gather(starts.copy(), rows, store=True)
    for token in np.flatnonzero(counts).tolist():
        yield token, rows[starts[token] : stops[token]]


def _add(postings: dict[int, pyroaring.BitMap64], token: int, ids: RowIds) -> None:
    found = pyroaring.BitMap64(array("Q", ids.tobytes()))
    if token in postings:
        postings[token] |= found
    else:
        postings[token] = found


def _batches(postings: dict[int, pyroaring.BitMap64]) -> Iterator[list[pa.Array]]:
    """Yield tokens and their rows, some megabytes at a time, and let go of these."""
    tokens, serialized, size_bytes = list[int](), list[bytes](), 0
    for token in sorted(postings):
        tokens.append(token)
        serialized.append(_serialize(postings.pop(token)))
        size_bytes += len(serialized[-1])
        if size_bytes >= _BYTES_AT_ONCE:
            yield _columns(tokens, serialized)
            tokens, serialized, size_bytes = [], [], 0
    if tokens:
        yield _columns(tokens, serialized)


def _serialize(rows: pyroaring.BitMap64) -> bytes:
    return bytes(rows.serialize())


def _columns(tokens: list[int], serialized: list[bytes]) -> list[pa.Array]:
    return [pa.array(column, field.type) for column, field in zip((tokens, serialized), NGRAM_COLUMNS, strict=True)]
