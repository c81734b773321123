"""Zone maps: null counts and bounds of a column in zones of consecutive rows."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lance_format.half_floats import if_else, nan_of, widened
from lance_format.lazy_dataclasses import dataclass

ZoneNumbers: TypeAlias = npt.NDArray[np.int64]

NullRows: TypeAlias = Mapping[int, bytes]
"""The offsets of null rows, as a 32-bit Roaring bitmap per id of a fragment with nulls."""


class Located(Protocol):
    """Zones of consecutive rows of fragments; see `Zones`."""

    @property
    def fragment_ids(self) -> ZoneNumbers:
        """The fragment of each zone."""

    @property
    def starts(self) -> ZoneNumbers:
        """The first physical row of each zone."""

    @property
    def lengths(self) -> ZoneNumbers:
        """The number of physical rows of each zone."""


@dataclass(frozen=True, slots=True, eq=False)
class Zones:
    """Zones of consecutive rows of fragments, with their null counts and bounds.

    Parameters
    ----------
    fragment_ids, starts, lengths : int64[num_zones]
        The physical rows `start <= row < start + length` of a fragment. Rows that were deleted when the zone was made
        may be among them; counts and bounds exclude these.
    null_counts, nan_counts : int64[num_zones]
    lower, upper : pa.Array
        The least value of each zone, NaN excluded, and the greatest; null if there is none, or unknown.
    """

    fragment_ids: ZoneNumbers
    starts: ZoneNumbers
    lengths: ZoneNumbers
    null_counts: ZoneNumbers
    nan_counts: ZoneNumbers
    lower: pa.Array
    upper: pa.Array

    def __len__(self) -> int:
        return len(self.fragment_ids)

    @property
    def size_bytes(self) -> int:
        """Size in memory."""
        numbers = (self.fragment_ids, self.starts, self.lengths, self.null_counts, self.nan_counts)
        return sum(array.nbytes for array in numbers) + int(self.lower.nbytes + self.upper.nbytes)

    @classmethod
    def empty(cls, value_type: pa.DataType) -> Zones:
        """Return no zones."""
        none = np.zeros(0, np.int64)
        bounds = pa.array([], value_type)
        return cls(none, none, none, none, none, bounds, bounds)

    @classmethod
    def concatenate(cls, parts: Sequence[Zones]) -> Zones:
        """Concatenate zones of one type, at least one object."""
        return cls(
            np.concatenate([part.fragment_ids for part in parts]),
            np.concatenate([part.starts for part in parts]),
            np.concatenate([part.lengths for part in parts]),
            np.concatenate([part.null_counts for part in parts]),
            np.concatenate([part.nan_counts for part in parts]),
            pa.concat_arrays([part.lower for part in parts]),
            pa.concat_arrays([part.upper for part in parts]),
        )

    def take(self, positions: ZoneNumbers) -> Zones:
        """Return some zones, by index."""
        chosen = pa.array(positions)
        return Zones(
            self.fragment_ids[positions],
            self.starts[positions],
            self.lengths[positions],
            self.null_counts[positions],
            self.nan_counts[positions],
            self.lower.take(chosen),
            self.upper.take(chosen),
        )

    def of_fragments(self, fragment_ids: ZoneNumbers) -> Zones:
        """Return the zones of some fragments."""
        return self.take(np.flatnonzero(np.isin(self.fragment_ids, fragment_ids)))

    def filling(self, fragment_ids: ZoneNumbers, physical_rows: ZoneNumbers) -> Zones:
        """Close the gaps between zones, which are in order: rows between them have been deleted.

        Parameters
        ----------
        fragment_ids, physical_rows : int64[num_fragments]
            Ids and sizes of their fragments, and perhaps of others.
        """
        if not len(self):
            return self
        order = np.argsort(fragment_ids)
        ends = physical_rows[order[np.searchsorted(fragment_ids, self.fragment_ids, sorter=order)]]
        ends = np.maximum(ends, self.starts + self.lengths)  # Tables of early releases lack this number.
        is_first = np.diff(self.fragment_ids, prepend=-1) != 0
        starts = np.where(is_first, 0, self.starts)
        lengths = np.where(np.append(is_first[1:], True), ends, np.append(starts[1:], 0)) - starts
        return dataclasses.replace(self, starts=starts, lengths=lengths)

    def in_order(self) -> Zones:
        """Return the zones by fragment and first row."""
        before = (self.fragment_ids[:-1], self.starts[:-1])
        after = (self.fragment_ids[1:], self.starts[1:])
        if ((before[0] < after[0]) | ((before[0] == after[0]) & (before[1] <= after[1]))).all():
            return self
        return self.take(np.lexsort((self.starts, self.fragment_ids)))


def has_bounds(value_type: pa.DataType) -> bool:
    """Return whether zones of a type have a least and a greatest value; other zones only count nulls."""
    return any(
        is_such(value_type)
        for is_such in (
            pa.types.is_boolean,
            pa.types.is_integer,
            pa.types.is_floating,
            pa.types.is_decimal,
            pa.types.is_string,
            pa.types.is_large_string,
            pa.types.is_binary,
            pa.types.is_large_binary,
            pa.types.is_temporal,
        )
    )


def is_ordinary(value_type: pa.DataType) -> bool:
    """Return whether values of a type have bounds, or are binary values of one size."""
    return has_bounds(value_type) or bool(pa.types.is_fixed_size_binary(value_type))


def comparable(values: pa.Array) -> pa.Array:
    """Return values of a type with bounds as values that Arrow compares and aggregates, in the same order."""
    return values.cast(pa.int64()) if pa.types.is_duration(values.type) else widened(values)


def with_nan(lower: pa.Array, upper: pa.Array, nan_counts: ZoneNumbers) -> tuple[pa.Array, pa.Array]:
    """Make NaN, the greatest of all numbers, the upper bound of zones that contain it.

    It is also the lower bound of a zone without other numbers.

    Parameters
    ----------
    lower, upper : pa.Array
        Bounds of floating-point numbers.
    nan_counts : int64[num_zones]
    """
    has_nan = pa.array(nan_counts > 0)
    nan = nan_of(lower.type)
    return if_else(pc.and_(has_nan, lower.is_null()), nan, lower), if_else(has_nan, nan, upper)


def fragments_in_order(
    zones: Located,
    fragment_ids: ZoneNumbers,
    physical_rows: ZoneNumbers,
    num_deleted_rows: ZoneNumbers,
    *,
    placed: bool,
) -> ZoneNumbers:
    """Return the fragments whose zones certainly locate their values.

    Rows between zones were deleted before the zones were made. An update of an index may leave old zones of a fragment
    beside those of its rewritten column. Early releases of the reference did not count deleted rows in the first rows
    of zones, and mixed up fragments whose ids are not consecutive; the zones of their indices do not fill the fragment.

    Parameters
    ----------
    zones : Located
        In order.
    fragment_ids, physical_rows : int64[num_fragments]
        All fragments that have zones, and their numbers of rows; 0 if unknown.
    num_deleted_rows : int64[num_fragments]
        Numbers of deleted rows; -1 if unknown.
    placed : bool
        Whether a release that makes no such zones wrote the index.
    """
    ids, first, counts = np.unique(zones.fragment_ids, return_index=True, return_counts=True)
    if not ids.size:
        return ids
    ends = zones.starts + zones.lengths
    follows = np.ones(ends.size, np.bool_)
    follows[1:] = (zones.fragment_ids[1:] != zones.fragment_ids[:-1]) | (zones.starts[1:] >= ends[:-1])
    apart = np.logical_and.reduceat(follows, first)
    order = np.argsort(fragment_ids)
    positions = order[np.searchsorted(fragment_ids, ids, sorter=order)]
    rows = physical_rows[positions]
    missing = np.where(num_deleted_rows < 0, physical_rows, num_deleted_rows)[positions] if placed else 0
    sure = apart & (rows > 0) & (ends[first + counts - 1] <= rows)
    sure &= np.add.reduceat(zones.lengths, first) >= rows - missing
    found: ZoneNumbers = ids[sure]
    return found
