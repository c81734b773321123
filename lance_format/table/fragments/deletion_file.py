"""Deletion files, which list the deleted rows of a fragment.

The two kinds are an Arrow IPC file with one uint32 column of row offsets, in any order, and a 32-bit Roaring bitmap in
its portable serialization.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyroaring

from lance_format.arrow_ipc import read_file
from lance_format.errors import CorruptFileError, DatasetNotFoundError
from lance_format.object_store import ObjectNotFoundError
from lance_format.row_numbers import from_bitmap, to_bitmap
from lance_format.table.format.file_entries import DeletionFile, DeletionFileType
from lance_format.table.format.fragment import FragmentMetadata
from lance_format.table.format.table_directory import TableDirectory

RowOffsets = npt.NDArray[np.int64]

_MAX_ARROW_ROWS = 5_000  # As the reference; a bitmap is smaller from about this number of rows on.
_ARROW_SCHEMA = pa.schema([pa.field("row_id", pa.uint32(), nullable=False)])
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
    rows = np.sort(_PARSERS[deletion.file_type](content, path, physical_rows))
    if rows.size and (rows[0] < 0 or rows[-1] >= physical_rows or (np.diff(rows) == 0).any()):
        raise CorruptFileError(
            f"the deleted rows are not distinct offsets below the fragment's {physical_rows} rows", path=path
        )
    if deletion.num_deleted_rows not in (0, rows.size):
        raise CorruptFileError(f"{deletion.num_deleted_rows} deleted rows are announced, {rows.size} found", path=path)
    return rows


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
    """
    file_type, content = _serialize(rows)
    deletion = DeletionFile(read_version, secrets.randbits(63), file_type, rows.size)
    path = directory.path(deletion.path(fragment.id))
    paths.append(path)
    directory.store.put_if_absent(path, content)
    return deletion


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
