"""The buffers that a page can refer to: its own, those of its column, and those of the file."""

from __future__ import annotations

from lance_format.byte_io import ByteRange
from lance_format.errors import CorruptFileError
from lance_format.lazy_dataclasses import dataclass
from lance_format.proto import array_encodings_pb2
from lance_format.structural.page import NO_CACHE, PageCache


@dataclass(frozen=True, slots=True)
class ArrayPage:
    """Buffers and number of rows of a page.

    Parameters
    ----------
    buffers : tuple of ByteRange
        Of the page; all lie within the file.
    num_rows : int
    column_buffers, file_buffers : tuple of ByteRange
        Those that all pages of the column and of the file share.
    cache : PageCache
    """

    buffers: tuple[ByteRange, ...]
    num_rows: int
    column_buffers: tuple[ByteRange, ...] = ()
    file_buffers: tuple[ByteRange, ...] = ()
    cache: PageCache = NO_CACHE

    def buffer(self, reference: array_encodings_pb2.Buffer) -> ByteRange:
        """Return the buffer that an encoding refers to.

        Raises
        ------
        CorruptFileError
            If there is no such buffer.
        """
        collections = {
            array_encodings_pb2.Buffer.page: ("page", self.buffers),
            array_encodings_pb2.Buffer.column: ("column", self.column_buffers),
            array_encodings_pb2.Buffer.file: ("file", self.file_buffers),
        }
        found = collections.get(reference.buffer_type)
        if found is None:
            raise CorruptFileError(f"a page refers to a buffer of the unknown kind {reference.buffer_type}")
        kind, buffers = found
        if reference.buffer_index >= len(buffers):
            raise CorruptFileError(
                f"a page refers to buffer {reference.buffer_index} of its {kind}, which has {len(buffers)}"
            )
        return buffers[reference.buffer_index]

    def kept(self, part: object) -> object | None:
        """Return a cached part of the page, or None."""
        parts = self.cache.get()
        return parts.parts.get(part) if isinstance(parts, _Parts) else None

    def keep(self, part: object, found: object, size_bytes: int) -> None:
        """Cache a part of the page for later reads.

        Parameters
        ----------
        part : object
            Key of the part.
        found : object
            Never modified.
        size_bytes : int
        """
        parts = self.cache.get()
        known = parts if isinstance(parts, _Parts) else _Parts({}, 0)
        size = known.size_bytes + size_bytes
        self.cache.put(_Parts({**known.parts, part: found}, size), size)


@dataclass(frozen=True, slots=True)
class _Parts:
    """Parts of a page that its encodings share; never changed."""

    parts: dict[object, object]
    size_bytes: int
