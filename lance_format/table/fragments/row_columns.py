"""Row columns: metadata of every row, which no data file holds.

| name | |
|---|---|
| `_rowid` | the row's id: stable if the table has stable row ids, else its address |
| `_rowaddr` | `fragment id << 32 \\| offset in the fragment`, deleted rows included |
| `_rowoffset` | the row's offset among the live rows of the table |
| `_row_created_at_version` | the version that created the row; 1 if the table does not record it |
| `_row_last_updated_at_version` | the version that last updated it; 1 if the table does not record it |
| `_fragid` | the id of the fragment |
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_format.byte_io import ByteRange
from lance_format.errors import CorruptFileError, DatasetNotFoundError
from lance_format.masks import filter_values, indices
from lance_format.object_store import ObjectNotFoundError
from lance_format.table.format.fragment import RowSequence
from lance_format.table.fragments.deletion_file import RowOffsets
from lance_format.table.fragments.reader import Consecutive, FragmentReader, OffsetsFunction, to_live
from lance_format.table.row_ids.row_id_sequence import RowIdSequence, parse_row_ids
from lance_format.table.row_ids.row_version_sequence import RowVersionSequence, parse_row_versions

ROW_ID = "_rowid"
ROW_ADDRESS = "_rowaddr"
ROW_OFFSET = "_rowoffset"
_MOST_OTHERS = 8
"""Maximum number of rows in memory for a row that is left of them."""

_Sequence = TypeVar("_Sequence", RowIdSequence, RowVersionSequence)
RowColumnValues = npt.NDArray[np.uint64]


class LiveRows:
    """Some rows of a fragment. Which of several rows are left is found out once somebody asks.

    Parameters
    ----------
    scan : FragmentReader
    offsets : int64[num_rows], or a function that returns them
        Offsets in the fragment, deleted rows included.
    num_before : int
        Number of live rows of the table before the fragment.
    """

    __slots__ = ("_offsets", "num_before", "scan")

    def __init__(self, scan: FragmentReader, offsets: RowOffsets | OffsetsFunction, num_before: int) -> None:
        self.scan = scan
        self.num_before = num_before
        self._offsets = offsets

    @property
    def offsets(self) -> RowOffsets:
        """Offsets in the fragment, deleted rows included, `int64[num_rows]`."""
        known: RowOffsets = self._offsets() if callable(self._offsets) else self._offsets
        self._offsets = known
        return known

    @property
    def num_rows(self) -> int:
        """The number of rows."""
        return len(self._offsets) if isinstance(self._offsets, Consecutive) else self.offsets.size

    @property
    def positions(self) -> RowOffsets:
        """Offsets among the live rows of the table, `int64[num_rows]`."""
        return self.num_before + to_live(self.offsets, self.scan.deleted_rows())

    @staticmethod
    def concatenate(parts: Sequence[LiveRows]) -> LiveRows:
        """Concatenate rows of one fragment, at least one part."""
        if len(parts) == 1:
            return parts[0]
        return parts[0]._with(lambda: np.concatenate([part.offsets for part in parts]))

    def slice(self, start: int, num_rows: int) -> LiveRows:
        """Return a range of the rows."""
        if isinstance(self._offsets, Consecutive):
            return self._with(self._offsets.slice(start, num_rows))
        return self._with(lambda: self.offsets[start : start + num_rows])

    def filter(self, mask: pa.BooleanArray) -> LiveRows:
        """Return the rows that a mask without nulls selects."""

        def chosen() -> RowOffsets:
            if isinstance(self._offsets, Consecutive):
                return self._offsets.start + indices(mask)
            left: RowOffsets = filter_values(pa.array(self.offsets), mask).to_numpy()
            return left

        # Offsets that are known stay in memory until then.
        is_cheap = callable(self._offsets) or mask.true_count * _MOST_OTHERS >= len(mask)
        return self._with(chosen if is_cheap else chosen())

    def _with(self, offsets: RowOffsets | OffsetsFunction) -> LiveRows:
        return LiveRows(self.scan, offsets, self.num_before)


def row_column(name: str, rows: LiveRows) -> pa.Array:
    """Return such a column for some rows, `uint64[num_rows]`; its name is one of `ROW_COLUMNS`."""
    return pa.array(_COLUMNS[name](rows))


def addresses_of(rows: LiveRows) -> RowColumnValues:
    """Return the addresses of rows, `uint64[num_rows]`."""
    return np.uint64(rows.scan.fragment.id << 32) | rows.offsets.astype(np.uint64)


def row_ids_of(scan: FragmentReader) -> RowIdSequence | None:
    """Read the ids of all physical rows of a fragment; None if the table has no stable row ids."""
    stored = scan.fragment.row_id_meta
    return None if stored is None else _remembered(ROW_ID, scan, lambda: _parse_ids(stored, scan))


def created_at_of(scan: FragmentReader) -> RowVersionSequence | None:
    """Read the versions that created the physical rows of a fragment; None if the table does not record them."""
    stored = scan.fragment.created_at_version_meta
    return None if stored is None else _remembered("created_at", scan, lambda: _parse_versions(stored, scan))


def last_updated_at_of(scan: FragmentReader) -> RowVersionSequence | None:
    """Read the versions that last updated the physical rows of a fragment; None if the table does not record them."""
    stored = scan.fragment.last_updated_at_version_meta
    return None if stored is None else _remembered("last_updated_at", scan, lambda: _parse_versions(stored, scan))


def _row_ids(rows: LiveRows) -> RowColumnValues:
    sequence = row_ids_of(rows.scan)
    return addresses_of(rows) if sequence is None else sequence.take(rows.offsets)


def _positions(rows: LiveRows) -> RowColumnValues:
    return rows.positions.astype(np.uint64)


def _created_at(rows: LiveRows) -> RowColumnValues:
    return _take(created_at_of(rows.scan), rows)


def _last_updated_at(rows: LiveRows) -> RowColumnValues:
    return _take(last_updated_at_of(rows.scan), rows)


def _fragment_ids(rows: LiveRows) -> RowColumnValues:
    return np.full(rows.offsets.size, rows.scan.fragment.id, np.uint64)


_COLUMNS: dict[str, Callable[[LiveRows], RowColumnValues]] = {
    ROW_ID: _row_ids,
    ROW_ADDRESS: addresses_of,
    ROW_OFFSET: _positions,
    "_row_created_at_version": _created_at,
    "_row_last_updated_at_version": _last_updated_at,
    "_fragid": _fragment_ids,
}

ROW_COLUMNS = tuple(_COLUMNS)
"""The names of these columns; a table's own column of such a name hides it."""


def _take(sequence: RowVersionSequence | None, rows: LiveRows) -> RowColumnValues:
    return np.ones(rows.offsets.size, np.uint64) if sequence is None else sequence.take(rows.offsets)


def _remembered(name: str, scan: FragmentReader, parse: Callable[[], _Sequence]) -> _Sequence:
    """Parse a sequence once per scan."""
    if name not in scan.memory:
        scan.memory[name] = parse()
    found: _Sequence = scan.memory[name]
    return found


def _parse_ids(stored: RowSequence, scan: FragmentReader) -> RowIdSequence:
    return parse_row_ids(_bytes_of(stored, scan), scan.physical_rows())


def _parse_versions(stored: RowSequence, scan: FragmentReader) -> RowVersionSequence:
    return parse_row_versions(_bytes_of(stored, scan), scan.physical_rows())


def _bytes_of(stored: RowSequence, scan: FragmentReader) -> bytes:
    """Return a serialized sequence, stored in the manifest or in a file of the table."""
    if isinstance(stored, bytes):
        return stored
    path = scan.directory.path(stored.path)
    try:
        source = scan.directory.store.open_reader(path)
    except ObjectNotFoundError as error:
        raise DatasetNotFoundError(f"the file {path} with row ids of fragment {scan.fragment.id} is missing") from error
    try:
        if stored.offset + stored.size > source.size_bytes:
            raise CorruptFileError(
                f"row ids are said to be at bytes {stored.offset} to {stored.offset + stored.size} of"
                f" {source.size_bytes}",
                path=path,
            )
        return source.read_ranges([ByteRange(stored.offset, stored.size)])[0]
    finally:
        source.close()
