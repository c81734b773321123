"""Writing the file of a BLOOMFILTER index; see `lance_format.table.indices.kinds.bloom_filter_index`.

The size of a filter is the least power of two for which the expected rate of false claims is as asked, by equation 3 of
Putze, Sanders and Singler, "Cache-, Hash- and Space-Efficient Bloom Filters" (2007): blocks have as many values as a
Poisson distribution says, and each word of a block claims a value as its set bits are.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyroaring

from lance_format.kernels.columns.bloom_filter import insert_hashes
from lance_format.row_numbers import to_bitmap
from lance_format.table.indices.kinds.bloom_filter_index import (
    BLOOM_COLUMNS,
    BLOOM_FILE,
    NULL_BITMAP,
    NUM_ITEMS,
    PROBABILITY,
    hash_array,
)
from lance_format.table.indices.part_rows import PartRows
from lance_format.table.indices.row_kind import RowParameter
from lance_format.table.indices.written_parts import OpenFile, write_file
from lance_format.table.indices.zones.zone_map_file import serialize_null_rows
from lance_format.table.row_ids.index import split_addresses

_LEAST_LOG, _MOST_LOG = 5, 27
"""Logarithms of sizes in bytes: one block, and what the reference has at most."""

_TERMS = 750
_BYTES_AT_ONCE = 4 << 20

BLOOM_PARAMETERS = (
    RowParameter("number_of_items", 8192, BLOOM_FILE, NUM_ITEMS),
    RowParameter("probability", 0.00057, BLOOM_FILE, PROBABILITY),
)
"""`number_of_items`: rows per zone. `probability`: that a filter of as many distinct values wrongly claims another."""


def write_bloom_filters(rows: PartRows, parameters: Mapping[str, Any], open_file: OpenFile) -> dict[str, int]:
    """Write the file; see `lance_format.table.indices.row_kind.WriteRows`. Rows have their addresses for ids."""
    num_items, probability = parameters["number_of_items"], parameters["probability"]
    null_rows: dict[int, pyroaring.BitMap] = {}
    zones = _zones(rows, num_items, 1 << _log_size(num_items, probability), null_rows)
    metadata = {
        NUM_ITEMS: b"%d" % num_items,
        PROBABILITY: np.format_float_positional(probability, trim="-").encode(),
    }
    nulls = {
        NULL_BITMAP.decode(): lambda: serialize_null_rows({key: found.serialize() for key, found in null_rows.items()})
    }
    return {BLOOM_FILE: write_file(open_file, BLOOM_FILE, BLOOM_COLUMNS, zones, metadata, nulls)}


def _zones(
    rows: PartRows, num_items: int, size_bytes: int, null_rows: dict[int, pyroaring.BitMap]
) -> Iterator[list[pa.Array]]:
    """Yield zones, some megabytes at a time, and collect the offsets of null rows by fragment."""
    pending = list[tuple[int, int, int, bool, bytes]]()
    zone = _Zone(size_bytes)
    for values, ids in rows:
        fragment_ids, offsets = split_addresses(ids)
        if not ids.size:
            continue
        fragment_id = int(fragment_ids[0])  # A batch is of one fragment.
        if zone.num_rows and zone.fragment_id != fragment_id:
            pending.append(zone.finish())
        if values.null_count:
            is_null = values.is_null().to_numpy(zero_copy_only=False)
            found = null_rows.setdefault(fragment_id, pyroaring.BitMap())
            found |= to_bitmap(offsets[is_null], runs=False)
        start = 0
        while start < ids.size:
            stop = min(start + num_items - zone.num_rows, ids.size)
            zone.add(fragment_id, values.slice(start, stop - start), offsets[start:stop])
            start = stop
            if zone.num_rows == num_items:
                pending.append(zone.finish())
        if len(pending) * size_bytes >= _BYTES_AT_ONCE:
            yield _columns(pending)
            pending.clear()
    if zone.num_rows:
        pending.append(zone.finish())
    if pending:
        yield _columns(pending)


class _Zone:
    """A zone that is filled."""

    def __init__(self, size_bytes: int) -> None:
        self._words = np.zeros(size_bytes // 4, np.uint32)
        self.fragment_id, self.num_rows, self._first, self._last, self._has_null = 0, 0, 0, 0, False

    def add(self, fragment_id: int, values: pa.Array, offsets: npt.NDArray[np.int64]) -> None:
        """Add rows of one fragment."""
        if not self.num_rows:
            self.fragment_id, self._first = fragment_id, int(offsets[0])
        self.num_rows += offsets.size
        self._last = int(offsets[-1])
        self._has_null |= values.null_count > 0
        insert_hashes(hash_array(pc.drop_null(values) if values.null_count else values), self._words)

    def finish(self) -> tuple[int, int, int, bool, bytes]:
        """Return the row of the zone, and begin another zone."""
        row = self.fragment_id, self._first, self._last + 1 - self._first, self._has_null, self._words.tobytes()
        self._words[:] = 0
        self.num_rows, self._has_null = 0, False
        return row


def _columns(zones: list[tuple[int, int, int, bool, bytes]]) -> list[pa.Array]:
    return [pa.array(column, field.type) for column, field in zip(zip(*zones, strict=True), BLOOM_COLUMNS, strict=True)]


def _log_size(num_items: int, probability: float) -> int:
    low, high = 0, 64
    while high > low + 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _rate(num_items, middle) <= probability else (middle, high)
    return min(max(high, _LEAST_LOG), _MOST_LOG)


def _rate(num_items: int, log_size: int) -> float:
    """Return the expected rate of false claims of a filter."""
    bits = 8.0 * 2.0**log_size
    if num_items / bits > 2.0:
        return 1.0
    mean = 256.0 * num_items / bits
    counts = np.arange(_TERMS)
    log_factorials = np.array([math.lgamma(count + 1) for count in range(_TERMS)])
    with np.errstate(divide="ignore"):
        claims = 8.0 * np.log(1.0 - (31.0 / 32.0) ** counts)
    return min(float(np.exp(counts * math.log(mean) - mean - log_factorials + claims).sum()), 1.0)
