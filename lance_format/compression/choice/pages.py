"""Compressed pages, before their chunks are laid out."""

from __future__ import annotations

from lance_format.compression.codec import CompressedChunks
from lance_format.data_block import Bytes, DataBlock
from lance_format.lazy_dataclasses import dataclass
from lance_format.proto import encodings_pb2


@dataclass(frozen=True, slots=True)
class CompressedDictionary:
    """The items of a page, ready to be written.

    Parameters
    ----------
    buffer : uint8[…]
    encoding : CompressiveEncoding
        Of the buffer, a block.
    num_items : int
    """

    buffer: Bytes
    encoding: encodings_pb2.CompressiveEncoding
    num_items: int


@dataclass(frozen=True, slots=True)
class CompressedPage:
    """The values of a page, compressed and cut into chunks.

    Parameters
    ----------
    chunks : CompressedChunks
        Values, or indices into the dictionary.
    dictionary : CompressedDictionary or None
    """

    chunks: CompressedChunks
    dictionary: CompressedDictionary | None


@dataclass(frozen=True, slots=True)
class PerValuePage:
    """The values of a full-zip page, each compressed separately."""

    values: DataBlock
    encoding: encodings_pb2.CompressiveEncoding
