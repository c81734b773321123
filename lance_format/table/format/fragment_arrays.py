"""A manifest's entries of its fragments, as arrays.

A table may have ten thousand fragments. A query or a commit uses few of them, but needs the number of rows of each. An
object per fragment would take some microseconds; the arrays are scanned from the bytes of all fragments at once. The
scan validates them: a fragment in the arrays can be parsed. Unusual messages are parsed at once, which yields the same,
or an error.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from lance_format.lazy_dataclasses import dataclass
from lance_format.row_numbers import distinct
from lance_format.table.format.file_entries import TOMBSTONE
from lance_format.table.format.fragment import MAX_FRAGMENT_ID, MAX_ROWS, FragmentMetadata, load_fragment
from lance_format.table.format.protobuf_scan import (
    BYTES,
    PADDING,
    VARINT,
    Data,
    Integers,
    Mask,
    ScannedFields,
    read_packed,
    scan_messages,
    tag_kinds,
)

_CHUNK = 8192
_MAX_SCANNED_BYTES = 4096  # Larger ones have row ids, whose parsing dominates anyway.
_MAX_SCANNED_FILE = 2**46  # The sum over all scanned messages is exact in floating-point numbers.
_MAX_SIZE = 2**62
_MAX_MAJOR = 2**30  # No version is higher; as one number with the minor, a higher one would not fit 64 bits.
_MAX_UINT32 = 2**32 - 1
_MULTIPLIERS = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xBF58476D1CE4E5B9], np.uint64)
"""Odd, with bits in no order."""

# By the numbers that fields have in table.proto.
_FRAGMENT = tag_kinds({1: VARINT, 2: BYTES, 3: BYTES, 4: VARINT, 5: BYTES, 7: BYTES, 9: BYTES}, unread=(6, 8, 10))
_FILE = tag_kinds({1: BYTES, 2: BYTES, 3: BYTES, 4: VARINT, 5: VARINT, 6: VARINT, 7: VARINT})
_DELETION = tag_kinds({1: VARINT, 2: VARINT, 3: VARINT, 4: VARINT, 7: VARINT})

_ALPHANUMERIC = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
_FORBIDDEN = np.ones(256, np.bool_)
_FORBIDDEN[np.frombuffer(_ALPHANUMERIC + b"._-", np.uint8)] = False
_MAX_NAME_BYTES = 255


@dataclass(frozen=True, slots=True)
class FragmentColumns:
    """Properties of fragments, in their order.

    Parameters
    ----------
    ids : int64[num_fragments]
    physical_rows : int64[num_fragments]
        Number of rows in the files, deleted ones included; 0 if unknown.
    num_deleted_rows : int64[num_fragments]
        Number of deleted rows; -1 if there is a deletion file of unknown size.
    num_files : int64[num_fragments]
        Number of data files.
    size_bytes : int64[num_fragments]
        Known size of the data files, at most 2**62.
    lowest_versions, highest_versions : int64[num_fragments]
        Versions of the data files; see `version_number`. -1 without files.
    max_field_ids : int64[num_fragments]
        The highest field id in the data files; -1 if there is none.
    layouts : int64[num_fragments]
        A hash of the fields of each data file, which fragments with the same fields in the same files share.
    has_row_ids : bool[num_fragments]
        Whether the fragment has row ids.
    base_ids : frozenset of int
        Keys of `Manifest.bases` that the files refer to, possibly with others.
    """

    ids: Integers
    physical_rows: Integers
    num_deleted_rows: Integers
    num_files: Integers
    size_bytes: Integers
    lowest_versions: Integers
    highest_versions: Integers
    max_field_ids: Integers
    layouts: Integers
    has_row_ids: Mask
    base_ids: frozenset[int]

    @property
    def num_rows(self) -> Integers:
        """Number of live rows; -1 where the table does not say: int64[num_fragments]."""
        unknown = (self.physical_rows == 0) | (self.num_deleted_rows < 0)
        return np.where(unknown, -1, self.physical_rows - self.num_deleted_rows)

    def select(self, positions: Integers | slice) -> FragmentColumns:
        """Return the properties of some fragments, given by position."""
        return _from_arrays([array[positions] for array in self._arrays()], self.base_ids)

    def replace(self, positions: Integers, columns: FragmentColumns) -> FragmentColumns:
        """Return the same with the properties of other fragments at some positions."""
        arrays = [array.copy() for array in self._arrays()]
        for array, other in zip(arrays, columns._arrays(), strict=True):
            array[positions] = other
        return _from_arrays(arrays, self.base_ids | columns.base_ids)

    @staticmethod
    def concatenate(columns: Sequence[FragmentColumns]) -> FragmentColumns:
        """Concatenate the properties of at least one run of fragments."""
        arrays = [np.concatenate(runs) for runs in zip(*(each._arrays() for each in columns), strict=True)]
        base_ids = frozenset[int]().union(*(each.base_ids for each in columns))
        return _from_arrays(arrays, base_ids)

    def _arrays(self) -> list[Any]:
        return [getattr(self, column.name) for column in dataclasses.fields(self)][:-1]


def _from_arrays(arrays: list[Any], base_ids: frozenset[int]) -> FragmentColumns:
    return FragmentColumns(*arrays, base_ids)  # type: ignore[call-arg]


def columns_of(fragments: Iterable[FragmentMetadata]) -> FragmentColumns:
    """Return the properties of parsed fragments."""
    rows: list[tuple[int, ...]] = []
    places: list[tuple[int, int, int, int]] = []
    bases: set[int | None] = set()
    for position, fragment in enumerate(fragments):
        deletion = fragment.deletion_file
        versions = [version_number(file.file_major_version, file.file_minor_version) for file in fragment.files]
        rows.append(
            (
                fragment.id,
                fragment.physical_rows,
                0 if deletion is None else deletion.num_deleted_rows or -1,
                len(fragment.files),
                min(sum(file.file_size_bytes for file in fragment.files), _MAX_SIZE),
                min(versions, default=-1),
                max(versions, default=-1),
                max(fragment.field_ids, default=-1),
                fragment.row_id_meta is not None,
            )
        )
        for number, file in enumerate(fragment.files):
            places += [(position, number, rank, field) for rank, field in enumerate(file.fields)]
        bases |= {file.base_id for file in (*fragment.files, deletion) if file is not None}
    arrays: list[Any] = list(np.array(rows, np.int64).reshape(-1, 9).T)
    arrays[-1] = arrays[-1] != 0
    arrays.insert(-1, _layouts(len(rows), *np.array(places, np.int64).reshape(-1, 4).T))
    return _from_arrays(arrays, frozenset(base for base in bases if base is not None))


def _layouts(num_fragments: int, owners: Integers, files: Integers, ranks: Integers, field_ids: Integers) -> Integers:
    """Hash the fields of each fragment, given with the number of their file and their number within that."""
    hashes = field_ids.astype(np.uint64) * _MULTIPLIERS[0] + ranks.astype(np.uint64) * _MULTIPLIERS[1]
    hashes += files.astype(np.uint64) * _MULTIPLIERS[2]
    hashes = (hashes ^ (hashes >> np.uint64(30))) * _MULTIPLIERS[3]
    total = np.zeros(num_fragments, np.uint64)
    np.add.at(total, owners, hashes ^ (hashes >> np.uint64(27)))
    return total.view(np.int64)


def version_number(major: int, minor: int) -> int:
    """Return a version as `FragmentColumns` has them."""
    return min(major, _MAX_MAJOR) << 32 | minor


def scan_fragments(stored: Sequence[bytes]) -> FragmentColumns:
    """Scan the properties of at least one fragment from the protobuf.

    Raises
    ------
    CorruptFileError, NotSupportedError
        See `load_fragment`; if none is raised here, it raises none later.
    """
    return FragmentColumns.concatenate(
        [_scan_chunk(stored[start : start + _CHUNK]) for start in range(0, len(stored), _CHUNK)]
    )


def _scan_chunk(stored: Sequence[bytes]) -> FragmentColumns:
    scanned = [fragment if len(fragment) <= _MAX_SCANNED_BYTES else b"" for fragment in stored]
    data = np.frombuffer(b"".join([*scanned, PADDING]), np.uint8)
    lengths = np.fromiter(map(len, scanned), np.int64, len(scanned))
    stops = np.cumsum(lengths)
    fields = scan_messages(data, stops - lengths, stops, _FRAGMENT)
    ids, physical_rows = fields.value_of(1), fields.value_of(4)
    deletions, deletion_bases = _scan_deletion_files(data, fields, physical_rows)
    files, file_bases = _scan_data_files(data, fields)
    has_row_ids = fields.value_of(5, -1) >= 0
    odd = fields.odd | ~_in_range(ids, MAX_FRAGMENT_ID) | ~_in_range(physical_rows, MAX_ROWS)
    bases = np.concatenate([deletion_bases[:, ~odd[deletion_bases[0]]], file_bases[:, ~odd[file_bases[0]]]], axis=1)
    base_ids = frozenset(distinct(bases[1, bases[1] >= 0]).tolist())
    plain = _from_arrays([ids, physical_rows, deletions, *files, has_row_ids], base_ids)
    positions = np.flatnonzero(odd)
    return plain.replace(positions, columns_of(load_fragment(stored[position]) for position in positions.tolist()))


def _scan_deletion_files(data: Data, fragments: ScannedFields, physical_rows: Integers) -> tuple[Integers, Integers]:
    """Return the number of deleted rows for every fragment, and of deletion files the fragments and base ids."""
    starts, lengths = fragments.bytes_of(3)
    owners = np.flatnonzero(fragments.value_of(3, -1) >= 0)
    fields = scan_messages(data, starts[owners], (starts + lengths)[owners], _DELETION)
    counts, bases = fields.value_of(4), fields.value_of(7, -1)
    most = np.where(physical_rows[owners] == 0, MAX_ROWS, physical_rows[owners])
    good = _in_range(fields.value_of(1), 1) & _in_range(counts, most) & _in_range(bases + 1, _MAX_UINT32 + 1)
    fragments.odd[owners[fields.odd | ~good]] = True
    num_deleted = np.zeros(fragments.num_messages, np.int64)
    num_deleted[owners] = np.where(counts == 0, -1, counts)
    return num_deleted, np.stack([owners, bases])


def _scan_data_files(data: Data, fragments: ScannedFields) -> tuple[list[Integers], Integers]:
    """Return six columns from the number of files on, and of data files the fragments and base ids."""
    owners, lengths, starts = fragments.all_of(2)
    files = scan_messages(data, starts, starts + lengths, _FILE)
    holders, field_ids, good = _scan_field_lists(data, files)
    majors, minors, sizes, bases = files.value_of(4), files.value_of(5), files.value_of(6), files.value_of(7, -1)
    good &= _are_names(data, *files.bytes_of(1)) & _in_range(majors, _MAX_MAJOR) & _in_range(minors, _MAX_UINT32)
    good &= _in_range(sizes, _MAX_SCANNED_FILE) & _in_range(bases + 1, _MAX_UINT32 + 1)
    odd, count = fragments.odd, fragments.num_messages
    odd[owners[files.odd | ~good]] = True
    odd[np.bincount(owners, minlength=count) == 0] = True
    live = field_ids >= 0
    held_by, held = owners[holders[live]], field_ids[live]
    odd[_repeated(held_by, held)] = True
    num_fields = np.bincount(holders, minlength=owners.size)
    num_replaced = np.bincount(holders[field_ids == TOMBSTONE], minlength=owners.size)
    alive = (num_fields == 0) | (num_replaced < num_fields)
    live_owners, versions = owners[alive], (majors << 32 | minors)[alive]
    num_files = np.bincount(live_owners, minlength=count)
    summed = np.clip(sizes[alive], 0, _MAX_SCANNED_FILE)  # Odd ones may have any.
    total = np.bincount(live_owners, summed, minlength=count).astype(np.int64)
    lowest, (highest, max_field) = np.full(count, np.iinfo(np.int64).max), np.full((2, count), -1, np.int64)
    np.minimum.at(lowest, live_owners, versions)
    np.maximum.at(highest, live_owners, versions)
    np.maximum.at(max_field, held_by, held)
    lowest[num_files == 0] = -1
    numbers = np.cumsum(alive) - 1  # of files that are alive
    in_fragment = numbers - (np.cumsum(num_files) - num_files)[owners]
    in_file = np.arange(holders.size) - (np.cumsum(num_fields) - num_fields)[holders]
    laid = alive[holders]
    layouts = _layouts(count, *(part[laid] for part in (owners[holders], in_fragment[holders], in_file, field_ids)))
    return [num_files, total, lowest, highest, max_field, layouts], np.stack([live_owners, bases[alive]])


def _scan_field_lists(data: Data, files: ScannedFields) -> tuple[Integers, Integers, Mask]:
    """Return the fields of data files, the files that hold them, and the files with valid lists."""
    holders, field_ids, odd_fields = read_packed(data, *files.bytes_of(2))
    columned, _, odd_columns = read_packed(data, *files.bytes_of(3))
    num_fields = np.bincount(holders, minlength=files.num_messages)
    num_columns = np.bincount(columned, minlength=files.num_messages)
    good = ~odd_fields & ~odd_columns & ((num_columns == 0) | (num_columns == num_fields))
    good[holders[~_in_range(field_ids + 2**31, _MAX_UINT32)]] = False
    return holders, field_ids, good


def _are_names(data: Data, starts: Integers, lengths: Integers) -> Mask:
    """Return which ranges are names that `check_segment` lets through."""
    forbidden = np.flatnonzero(_FORBIDDEN[data])
    good = _in_range(lengths - 1, _MAX_NAME_BYTES - 1)
    good &= data[starts] != ord(".")
    good &= np.searchsorted(forbidden, starts) == np.searchsorted(forbidden, starts + lengths)
    return good


def _repeated(owners: Integers, field_ids: Integers) -> Integers:
    """Return the owners that have a field twice."""
    keys: Integers = owners << 32 | field_ids
    if (keys[1:] <= keys[:-1]).any():
        keys = np.sort(keys)
    repeated: Integers = keys[1:][keys[1:] == keys[:-1]] >> 32
    return repeated


def _in_range(values: Integers, maximum: int | Integers) -> Mask:
    return (values >= 0) & (values <= maximum)
