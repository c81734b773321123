"""Deletion files, which list the deleted rows of a fragment.

The two kinds are an Arrow IPC file with one uint32 column of row offsets, in any order, and a 32-bit Roaring bitmap in
its portable serialization. The id in the name of a file has its checksum in the lower 32 bits, if the upper 24 bits say
so; the others are random.
"""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyroaring

from lance_format.arrow_ipc import read_file
from lance_format.checksums import checksum32
from lance_format.errors import ChecksumError, CorruptFileError, DatasetNotFoundError
from lance_format.object_store import ObjectExistsError, ObjectNotFoundError
from lance_format.row_numbers import from_bitmap, to_bitmap
from lance_format.table.format.file_entries import DeletionFile, DeletionFileType
from lance_format.table.format.fragment import FragmentMetadata
from lance_format.table.format.table_directory import TableDirectory

RowOffsets = npt.NDArray[np.int64]

_MAX_ARROW_ROWS = 5_000  # As the reference; a bitmap is smaller from about this number of rows on.
_ARROW_SCHEMA = pa.schema([pa.field("row_id", pa.uint32(), nullable=False)])
_RANDOM_BITS = 8
_MOST_ATTEMPTS = 8
_MARK_SHIFT = 32 + _RANDOM_BITS
_MARK = 0x4C5355
"""Upper bits of the id of a file with a checksum. One of 2^24 random ids of other writers has them by chance."""
_NO_ROWS: RowOffsets = np.zeros(0, dtype=np.int64)


def read_deleted_rows(directory: TableDirectory, fragment: FragmentMetadata, physical_rows: int) -> RowOffsets:
    """Read the deleted rows of a fragment.

    Parameters
    ----------
    directory : TableDirectory
    fragment : FragmentMetadata
    physical_rows : int
        Number of rows in the files of the fragment.

    Returns
    -------
    int64 array
        Offsets in the fragment: ascending, distinct, below `physical_rows`.

    Raises
    ------
    ChecksumError
        If the file is not what was written.
    CorruptFileError
        If the file is malformed or contradicts the manifest.
    DatasetNotFoundError
        If the file is missing.
    """
    deletion = fragment.deletion_file
    if deletion is None:
        return _NO_ROWS
    path = directory.path(deletion.path(fragment.id))
    try:
        content = directory.store.read(path, _max_bytes(physical_rows))
    except ObjectNotFoundError as error:
        raise DatasetNotFoundError(
            f"the deletion file {path} of fragment {fragment.id} is missing; if a cleanup has removed this version of"
            " the table, open the latest"
        ) from error
    if directory.verifies:
        _check_sum(deletion, content, path)
    rows = _PARSERS[deletion.file_type](content, path, physical_rows)
    if (rows[1:] < rows[:-1]).any():  # A list may have any order.
        rows = np.sort(rows)
    if rows.size and (rows[0] < 0 or rows[-1] >= physical_rows or (rows[1:] == rows[:-1]).any()):
        raise CorruptFileError(
            f"the deleted rows are not distinct offsets below the fragment's {physical_rows} rows", path=path
        )
    if deletion.num_deleted_rows not in (0, rows.size):
        raise CorruptFileError(f"{deletion.num_deleted_rows} deleted rows are announced, {rows.size} found", path=path)
    return rows


def has_checksum(deletion: DeletionFile) -> bool:
    """Return whether the id of a deletion file has its checksum."""
    return deletion.id >> _MARK_SHIFT == _MARK


def _check_sum(deletion: DeletionFile, content: bytes, path: str) -> None:
    """Raise `ChecksumError` if a deletion file is not what was written."""
    if has_checksum(deletion) and checksum32(content) != deletion.id & 0xFFFFFFFF:
        raise ChecksumError(
            f"the {len(content)} bytes of the list of deleted rows are not those that were written; the storage, or"
            " what copied the file, has damaged it: restore it from a copy, or an earlier version of the table;"
            " verify_checksums=False reads what is there",
            path=path,
        )


def _max_bytes(physical_rows: int) -> int:
    """Return the maximum plausible size of a deletion file: 4 bytes per row, and metadata."""
    return 4 * physical_rows + physical_rows // 8 + (1 << 20)


def _parse_arrow(content: bytes, path: str, physical_rows: int) -> RowOffsets:
    try:
        table = read_file(content, _max_bytes(physical_rows))
    except CorruptFileError as error:
        raise CorruptFileError(f"malformed file of deleted rows: {error}", path=path) from error
    types = table.schema.types
    if types not in ([pa.uint32()], [pa.int32()]) or table.num_rows > physical_rows or table.column(0).null_count:
        raise CorruptFileError(
            f"at most {physical_rows} uint32 are expected; {table.num_rows} rows of {types} are found", path=path
        )
    return np.asarray(table.column(0).to_numpy(), dtype=np.int64)


def _parse_bitmap(content: bytes, path: str, physical_rows: int) -> RowOffsets:
    try:
        bitmap = pyroaring.BitMap.deserialize(content)
    except (ValueError, IndexError) as error:
        raise CorruptFileError(f"malformed Roaring bitmap of deleted rows: {error}", path=path) from error
    if len(bitmap) > physical_rows:  # A few bytes can represent billions of rows: count before expanding them.
        raise CorruptFileError(f"at most {physical_rows} rows are expected, {len(bitmap)} are found", path=path)
    return from_bitmap(bitmap)


_PARSERS: dict[DeletionFileType, Callable[[bytes, str, int], RowOffsets]] = {
    DeletionFileType.ARROW_ARRAY: _parse_arrow,
    DeletionFileType.BITMAP: _parse_bitmap,
}


def write_deleted_rows(
    directory: TableDirectory,
    fragment: FragmentMetadata,
    rows: RowOffsets,
    *,
    read_version: int,
    paths: list[str],
) -> DeletionFile:
    """Write the deleted rows of a fragment, as an Arrow file or, if that is smaller, as a bitmap.

    Parameters
    ----------
    directory : TableDirectory
    fragment : FragmentMetadata
    rows : int64 array
        Offsets in the fragment, ascending and distinct; at least one.
    read_version : int
        The version in which they were found; part of the file's name.
    paths : list of str
        The path of the file is added to it before the write, because a failed write may leave the file.

    Raises
    ------
    ObjectExistsError
        If several names are taken, which does not happen by chance.
    """
    file_type, content = _serialize(rows)
    for attempt in itertools.count(1):
        identity = _MARK << _MARK_SHIFT | secrets.randbits(_RANDOM_BITS) << 32 | checksum32(content)
        deletion = DeletionFile(read_version, identity, file_type, rows.size)
        path = directory.path(deletion.path(fragment.id))
        paths.append(path)
        try:
            directory.store.put_if_absent(path, content)
        except ObjectExistsError:
            paths.remove(path)  # It may be of another writer, who deletes the same rows.
            if attempt == _MOST_ATTEMPTS:
                raise
        else:
            return deletion
    raise AssertionError


def _serialize(rows: RowOffsets) -> tuple[DeletionFileType, bytes]:
    if rows.size > _MAX_ARROW_ROWS:
        bitmap = to_bitmap(rows)
        bitmap.run_optimize()
        return DeletionFileType.BITMAP, bitmap.serialize()
    batch = pa.record_batch([pa.array(rows.astype(np.uint32))], schema=_ARROW_SCHEMA)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, _ARROW_SCHEMA) as writer:
        writer.write_batch(batch)
    return DeletionFileType.ARROW_ARRAY, sink.getvalue().to_pybytes()
