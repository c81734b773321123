"""Writing the pages of a top-level column: what both kinds of files share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Protocol, TypeAlias

import pyarrow as pa

from lance_format.byte_io import ByteRange
from lance_format.file.container.column_metadata import PageEncoding, PageMetadata, ZoneIndexEntry, serialize_column
from lance_format.lazy_dataclasses import dataclass

WriteBuffer: TypeAlias = Callable[[memoryview], ByteRange]
"""Writes a buffer where one may start, and returns where it is."""


@dataclass(slots=True)
class WrittenColumn:
    """A column of the file: the pages that it has so far.

    Parameters
    ----------
    field_id : int
    is_blob : bool
        Whether its metadata says that its values are descriptions of blobs.
    """

    field_id: int
    is_blob: bool = False
    pages: list[PageMetadata] = field(default_factory=list)
    priorities: list[int] = field(default_factory=list)
    zone_index: ZoneIndexEntry | None = None
    buffers: list[ByteRange] = field(default_factory=list)

    def add(self, buffers: tuple[ByteRange, ...], encoding: PageEncoding, num_rows: int, priority: int) -> None:
        """Add a page whose buffers have been written.

        Parameters
        ----------
        buffers : tuple of ByteRange
        encoding : PageEncoding
        num_rows : int
        priority : int
            The first row of the page; 0 in file format 2.0.
        """
        self.pages.append(PageMetadata(buffers, num_rows, encoding))
        self.priorities.append(priority)

    def add_zone_index(self, rows_per_zone: int, buffer: ByteRange) -> None:
        """Let the column have a zone index, whose buffer has been written."""
        self.zone_index = ZoneIndexEntry(rows_per_zone, len(self.buffers))
        self.buffers.append(buffer)

    def serialize(self) -> bytes:
        """Return the metadata of the column."""
        return serialize_column(
            self.pages, self.priorities, is_blob=self.is_blob, zone_index=self.zone_index, buffers=self.buffers
        )


class ColumnWriting(Protocol):
    """Makes pages of the rows of a top-level column."""

    @property
    def columns(self) -> Sequence[WrittenColumn]:
        """The columns that it consists of, in the order of the file."""

    def write(self, array: pa.Array) -> None:
        """Write rows, at least one, as a page of each column.

        Raises
        ------
        SchemaMismatchError
            If something is null that must not be.
        InvalidInputError
            If a value is not of its type.
        NotSupportedError
            If rows cannot be stored.
        """
