"""Metadata of columns that differ in their only value.

The layout of a page may hold its value. So the metadata of a column differs between files of one row, and parsing it
takes longer than anything else of such a file. What surrounds the value is parsed once.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from lance_format.errors import LanceError
from lance_format.file.container.column_metadata import PageMetadata, parse_column
from lance_format.lazy_dataclasses import dataclass
from lance_format.proto import encodings_pb2
from lance_format.structural.page import with_value
from lance_format.version import FileVersion

_EVERY_BIT = bytes(255 - byte for byte in range(256))


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Metadata of a column of one page without buffers, whose layout holds the value, around this value.

    Parameters
    ----------
    head, tail : bytes
        The serialized message before and after the value.
    size : int
        Bytes of the message.
    pages : sequence of PageMetadata
        The page, with some value.
    """

    head: bytes
    tail: bytes
    size: int
    pages: Sequence[PageMetadata]

    @classmethod
    def of(cls, data: bytes, pages: Sequence[PageMetadata], version: FileVersion) -> Surroundings | None:
        """Find the value in the metadata of a column; None if it has none, or there is more than that.

        Parameters
        ----------
        data : bytes
            The serialized message.
        pages : sequence of PageMetadata
            What it says.
        version : FileVersion
        """
        value = _value_of(pages)
        start = data.find(value) if value else -1
        while start >= 0:
            head, tail = data[:start], data[start + len(value) :]
            other = value.translate(_EVERY_BIT)
            if _says_the_same(head + other + tail, other, pages, version):
                return cls(head, tail, len(data), pages)
            start = data.find(value, start + 1)
        return None

    def value_in(self, data: bytes) -> bytes | None:
        """Return the value in the metadata of a column; None if it differs in more than that."""
        if len(data) == self.size and data.startswith(self.head) and data.endswith(self.tail):
            return data[len(self.head) : self.size - len(self.tail)]
        return None


def _value_of(pages: Sequence[PageMetadata]) -> bytes:
    """Return the value that the layout of the only page holds, or nothing."""
    if len(pages) != 1 or pages[0].buffers or not isinstance(pages[0].layout, encodings_pb2.PageLayout):
        return b""
    return pages[0].layout.constant_layout.inline_value


def _says_the_same(data: bytes, value: bytes, pages: Sequence[PageMetadata], version: FileVersion) -> bool:
    """Return whether metadata with another value is that of the same page with this value."""
    try:
        (found,) = parse_column(data, 0, version).pages
    except (LanceError, ValueError):
        return False
    (page,) = pages
    assert isinstance(page.layout, encodings_pb2.PageLayout)
    return found == dataclasses.replace(page, layout=with_value(page.layout, value))
