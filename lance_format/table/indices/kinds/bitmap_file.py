"""Writing the file of a BITMAP index; see `lance_format.table.indices.kinds.bitmap_index`."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lance_format.errors import NotSupportedError
from lance_format.lazy_dataclasses import dataclass
from lance_format.table.indices.kinds.bitmap_index import BITMAP_FILE, MOST_KEYS, bitmap_columns
from lance_format.table.indices.kinds.id_bitmaps import serialize_groups
from lance_format.table.indices.part_rows import PartRows
from lance_format.table.indices.row_finder import RowIds
from lance_format.table.indices.value_order import ascending
from lance_format.table.indices.written_parts import OpenFile, write_file

_KEYS_AT_ONCE = 4096
_OTHER_KIND = {"BITMAP": ": make one of type BTREE"}

_Codes = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class KeyedRows:
    """Rows by their value.

    Parameters
    ----------
    keys : pa.Array
        Distinct values, ascending, null first; floats in the total order of IEEE 754.
    starts : int64[num_keys + 1]
        Where the rows of each begin, and where the last end.
    ids : uint64[num_rows]
        A row may be there with several values, and several times with one.
    """

    keys: pa.Array
    starts: npt.NDArray[np.int64]
    ids: RowIds

    @classmethod
    def of(cls, rows: Iterable[tuple[pa.Array, RowIds]], value_type: pa.DataType, kind: str) -> Self:
        """Group rows.

        Parameters
        ----------
        rows : iterable of (pa.Array, uint64[…])
            Values, and the ids of their rows.
        value_type : pa.DataType
        kind : str
            Of the index, for errors.

        Raises
        ------
        NotSupportedError
            If there are too many distinct values.
        """
        codes, ids, dictionaries = list[_Codes](), [np.zeros(0, np.uint64)], list[pa.Array]()
        for values, some_ids in rows:
            encoded = pc.dictionary_encode(_as_bits(values), null_encoding="encode")
            codes.append(encoded.indices.to_numpy())
            dictionaries.append(encoded.dictionary)
            ids.append(some_ids)
        bits = _as_bits(pa.array([], value_type)).type
        try:
            merged = pc.dictionary_encode(pa.chunked_array(dictionaries, bits), null_encoding="encode").chunks
        except pa.ArrowCapacityError as error:
            raise NotSupportedError(
                f"the distinct values of the column have more than 2 GiB, which a {kind} index cannot hold"
                + _OTHER_KIND.get(kind, "")
            ) from error
        distinct = merged[-1].dictionary.view(value_type) if merged else pa.array([], value_type)
        if len(distinct) > MOST_KEYS:
            raise NotSupportedError(
                f"the column has {len(distinct)} distinct values and more; a {kind} index may have {MOST_KEYS}"
                + _OTHER_KIND.get(kind, "")
            )
        order = ascending(distinct)
        rank = np.empty(len(distinct), np.uint16 if len(distinct) < 1 << 16 else np.int32)  # Two bytes sort faster.
        rank[order] = np.arange(len(distinct))
        entries = np.concatenate([rank[:0], *(rank[chunk.indices.to_numpy()] for chunk in merged)])
        firsts = itertools.accumulate(map(len, dictionaries), initial=0)
        ranks = np.concatenate([rank[:0], *(entries[first:][some] for first, some in zip(firsts, codes, strict=False))])
        joined = np.concatenate(ids)
        del codes, ids
        starts = np.append(0, np.cumsum(np.bincount(ranks, minlength=len(distinct))))
        return cls(distinct.take(pa.array(order)), starts, joined[np.argsort(ranks, kind="stable")])


def write_bitmaps(rows: PartRows, parameters: Mapping[str, Any], open_file: OpenFile) -> dict[str, int]:  # noqa: ARG001
    """Write the file; see `lance_format.table.indices.row_kind.WriteRows`."""
    return write_keys(KeyedRows.of(rows, rows.value_type, "BITMAP"), open_file)


def write_keys(
    rows: KeyedRows, open_file: OpenFile, buffers: Mapping[str, Callable[[], bytes]] | None = None
) -> dict[str, int]:
    """Write the file of an index whose keys are values, and return its size in bytes by its name.

    Parameters
    ----------
    rows : KeyedRows
    open_file : callable
    buffers : mapping of str to callable, optional
        See `write_file`.
    """
    metadata = {b"lance:index_stats": b'{"num_bitmaps":%d}' % len(rows.keys)}
    columns = bitmap_columns(rows.keys.type)
    return {BITMAP_FILE: write_file(open_file, BITMAP_FILE, columns, _batches(rows), metadata, buffers)}


def _batches(rows: KeyedRows) -> Iterator[list[pa.Array]]:
    """Yield keys and their bitmaps, some at a time."""
    for first in range(0, len(rows.keys), _KEYS_AT_ONCE):
        starts = rows.starts[first : first + _KEYS_AT_ONCE + 1]
        ids = rows.ids[starts[0] : starts[-1]].copy()
        for start, stop in itertools.pairwise((starts - starts[0]).tolist()):
            ids[start:stop].sort()
        yield [rows.keys.slice(first, _KEYS_AT_ONCE), serialize_groups(ids, starts - starts[0])]


def _as_bits(values: pa.Array) -> pa.Array:
    """Return values that Arrow tells apart: it takes NaN for one value, and lacks some types."""
    if not pa.types.is_floating(values.type) and not pa.types.is_duration(values.type):
        return values
    return values.view(pa.from_numpy_dtype(f"int{values.type.bit_width}"))
