"""Description of the contents of byte ranges of a file, for error messages and for lists of what is lost."""

from __future__ import annotations

from lance_format.byte_io import ByteRange
from lance_format.errors import LanceError
from lance_format.file.columns.indices import stored_fields
from lance_format.file.container.footer import FileMetadata
from lance_format.file.reading.stored_columns import StoredColumns
from lance_format.lazy_dataclasses import dataclass

_MOST_COLUMNS = 5


@dataclass(frozen=True, slots=True)
class ColumnRows:
    """Rows of a column whose pages lie in a range of bytes.

    Parameters
    ----------
    column : str
        Names of nested fields are joined by dots.
    first, last : int
        The first and the last row; of a column whose pages do not count rows, those of the file.
    """

    column: str
    first: int
    last: int


def find_rows(columns: StoredColumns, metadata: FileMetadata, extent: ByteRange) -> list[ColumnRows]:
    """Return the rows of each column whose pages lie in a range of bytes of a file, in whole or in part.

    Parameters
    ----------
    columns : StoredColumns
    metadata : FileMetadata
    extent : ByteRange

    Raises
    ------
    LanceError
        If the metadata of a column cannot be read.
    """
    fields = stored_fields(metadata.schema, metadata.version)
    known = {
        number: ".".join(field.name for field in path)
        for number, path in fields.items()
        if number < metadata.num_columns
    }
    found: list[ColumnRows] = []
    for number, pages in sorted(columns.load(known).items()):
        touched = [
            index
            for index, page in enumerate(pages.metadata)
            if any(buffer.offset < extent.end and extent.offset < buffer.end for buffer in page.buffers)
        ]
        shared = any(buffer.offset < extent.end and extent.offset < buffer.end for buffer in pages.column.buffers)
        if not touched and not shared:
            continue
        first, last = 0, metadata.num_rows - 1
        if not shared and int(pages.first_items[-1]) == metadata.num_rows:
            first, last = int(pages.first_items[touched[0]]), int(pages.first_items[touched[-1] + 1]) - 1
        found.append(ColumnRows(known[number], first, last))
    return found


def describe_bytes(columns: StoredColumns, metadata: FileMetadata, extent: ByteRange) -> str:
    """Return a text that says what a range of bytes of a file holds; empty if that cannot be told.

    Parameters
    ----------
    columns, metadata, extent
        See `find_rows`.
    """
    try:
        found = find_rows(columns, metadata, extent)
    except LanceError:  # It is damaged as well.
        return ""
    if not found:
        return "statistics, payloads of blobs or metadata"
    shown = [f"rows {rows.first} to {rows.last} of column {rows.column!r}" for rows in found[:_MOST_COLUMNS]]
    more = len(found) - len(shown)
    return ", ".join(shown) + (f" and rows of {more} other columns" if more else "")
