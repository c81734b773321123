"""BITMAP indices: each distinct value of a column, with the ids of its rows.

The only file, `bitmap_page_lookup.lance`, has the columns `keys` and `bitmaps`, in no order. A bitmap is

    u32 entries │ u32 high half of the ids │ u32 size │ Roaring bitmap of the low halves │ u32 high half │ …

of little-endian integers. The high half of an address is the fragment. A size of 0 stands for all low halves.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyroaring

from lance_format.errors import CorruptFileError
from lance_format.table.format.index_metadata import IndexMetadata
from lance_format.table.indices.index_file import IndexFile
from lance_format.table.indices.named_rows import NamedRows
from lance_format.table.indices.row_finder import FoundRows, KnownForm, Question, RowIds
from lance_format.table.versions.table_version import TableVersion

BITMAP_FILE = "bitmap_page_lookup.lance"
FORM = KnownForm()
MOST_KEYS = 1 << 20
_COUNT = struct.Struct("<I")
_ENTRY = struct.Struct("<II")
_LONG_COUNT = struct.Struct("<Q")
_BYTES_AT_ONCE = 1 << 20
"""Of bitmaps of average size; one alone may have more."""


def bitmap_columns(value_type: pa.DataType) -> list[pa.Field]:
    """Return the columns of the file."""
    return [pa.field("keys", value_type), pa.field("bitmaps", pa.binary())]


def find_rows(table: TableVersion, index: IndexMetadata, question: Question) -> FoundRows | None:
    """See `Finder`."""
    found, left = [np.zeros(0, np.uint64)], question.most_rows
    with IndexFile(table, index, BITMAP_FILE, bitmap_columns(question.value_type)) as file:
        if file.num_rows > MOST_KEYS:
            return None
        keys = [question.holds_for(part) for part in file.read_column("keys").chunks]
        chosen = np.flatnonzero(np.concatenate([np.zeros(0, np.bool_), *keys]))
        for stored in _stored(file, chosen):
            try:
                ids = _parse(stored.as_py(), left)
            except (struct.error, ValueError, IndexError, TypeError) as error:
                raise CorruptFileError(f"malformed bitmap of rows: {error}", path=file.path) from error
            if ids is None:
                return None
            left -= ids.size
            found.append(ids)
    return FoundRows(np.concatenate(found), is_exact=True)


def check_part(table: TableVersion, index: IndexMetadata, value_type: pa.DataType) -> None:
    """See `CheckPart`."""
    FORM.check(index)
    with IndexFile(table, index, BITMAP_FILE, bitmap_columns(value_type)) as file:
        check_bitmaps(file, NamedRows(table, index, by_id=FORM.names_ids(table, index)))


def check_bitmaps(file: IndexFile, rows: NamedRows) -> None:
    """Check all bitmaps of a file, and the rows that they name.

    Raises
    ------
    CorruptFileError
        If one is malformed, or names a row that there is not.
    """
    for batch in file.read_all():
        for stored in batch.column("bitmaps"):
            rows.check(greatest_ids(stored.as_py(), file.path), file.path)


def greatest_ids(data: bytes | None, path: str) -> RowIds:
    """Return the greatest id of each fragment in a bitmap.

    Parameters
    ----------
    data : bytes, optional
        The bitmap.
    path : str
        Its file.

    Raises
    ------
    CorruptFileError
        If it is malformed.
    """
    found = []
    try:
        for high, content in _entries(data):  # type: ignore[arg-type]
            if not content:  # It stands for all rows of the fragment.
                continue
            low = pyroaring.BitMap.deserialize(content)
            if low:
                found.append(high << 32 | low.max())
    except (struct.error, ValueError, IndexError, TypeError) as error:
        raise CorruptFileError(f"malformed bitmap of rows: {error}", path=path) from error
    return np.array(found, np.uint64)


def read_bitmaps(file: IndexFile, positions: npt.NDArray[np.int64]) -> pyroaring.BitMap64 | None:
    """Return the union of some bitmaps of a file; None if one stands for all low halves.

    Parameters
    ----------
    file : IndexFile
    positions : int64[num_bitmaps]
        Ascending rows of the file.

    Raises
    ------
    CorruptFileError
        If a bitmap is malformed.
    """
    found = pyroaring.BitMap64()
    for stored in _stored(file, positions):
        try:
            parts = list(_entries(stored.as_py()))
            if any(not content for _, content in parts):
                return None
            joined = b"".join(_COUNT.pack(high) + content for high, content in parts)
            found |= pyroaring.BitMap64.deserialize(_LONG_COUNT.pack(len(parts)) + joined)
        except (struct.error, ValueError, IndexError, TypeError) as error:
            raise CorruptFileError(f"malformed bitmap of rows: {error}", path=file.path) from error
    return found


def _stored(file: IndexFile, positions: npt.NDArray[np.int64]) -> Iterator[pa.Scalar]:
    """Yield some bitmaps."""
    at_once = max(int(_BYTES_AT_ONCE * file.num_rows / max(file.size_bytes, 1)), 1)
    for start in range(0, positions.size, at_once):
        yield from file.take(positions[start : start + at_once], "bitmaps")


def _parse(data: bytes, most: int) -> RowIds | None:
    """Return the ids of a bitmap; None if there are more than `most`, or all that share a high half."""
    parts = [np.zeros(0, np.uint64)]
    for high, content in _entries(data):
        if not content:
            return None
        low = pyroaring.BitMap.deserialize(content)
        most -= len(low)
        if most < 0:
            return None
        parts.append(np.array(low.to_array(), np.uint64) | np.uint64(high) << np.uint64(32))
    return np.concatenate(parts)


def _entries(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the high halves of the ids of a bitmap, and the low halves, which are empty for all of them."""
    (count,) = _COUNT.unpack_from(data)
    position = _COUNT.size
    for _ in range(count):
        high, size = _ENTRY.unpack_from(data, position)
        position += _ENTRY.size
        content = data[position : position + size]
        if len(content) != size:
            raise ValueError(f"{len(content)} of {size} bytes")
        yield high, content
        position += size
    if position != len(data):
        raise ValueError(f"{len(data) - position} bytes too many")
