"""A page that is being written: the buffers that its encodings refer to."""

from __future__ import annotations

from lance_format.data_block import Bytes
from lance_format.lazy_dataclasses import dataclass
from lance_format.proto import array_encodings_pb2


@dataclass(frozen=True, slots=True)
class EncodedArray:
    """A page ready to be written."""

    buffers: tuple[Bytes, ...]
    encoding: array_encodings_pb2.ArrayEncoding
    num_rows: int


class PageBuilder:
    """Collects the buffers of a page in the order of references by its encodings."""

    def __init__(self) -> None:
        self._buffers: list[Bytes] = []

    def add(self, data: Bytes) -> array_encodings_pb2.Buffer:
        """Add a buffer, and return what refers to it."""
        self._buffers.append(data)
        return array_encodings_pb2.Buffer(buffer_index=len(self._buffers) - 1)

    def finish(self, encoding: array_encodings_pb2.ArrayEncoding, num_rows: int) -> EncodedArray:
        """Return the page."""
        return EncodedArray(tuple(self._buffers), encoding, num_rows)
