"""Interface of compressions, which map blocks of values to buffers in one of three contexts."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Protocol, cast

from lance_format.data_block import BufferSlices, Bytes, Counts, DataBlock, ValueBlock, places_of
from lance_format.lazy_dataclasses import dataclass
from lance_format.proto import encodings_pb2


class Context(enum.Enum):
    """Place of a compression in a page; some lay out their buffers differently."""

    MINI_BLOCK = "mini-block values"
    BLOCK = "a block of levels or dictionary items"
    PER_VALUE = "full-zip values"


class Decompressor(Protocol):
    """Turns the buffers of chunks into one block of values."""

    @property
    def num_buffers(self) -> int:
        """Number of buffers of a chunk."""

    def decompress(self, buffers: Sequence[BufferSlices], num_values: Counts) -> ValueBlock:
        """Decompress chunks; the result has the values of all chunks, one after the other.

        Parameters
        ----------
        buffers : sequence of BufferSlices
            One for each of the chunk's buffers.
        num_values : int64[num_chunks]

        Raises
        ------
        CorruptFileError
            If the bytes contradict the encoding.
        """


class PickingDecompressor(Decompressor, Protocol):
    """A decompressor that finds single values without decompressing their chunks."""

    def pick(self, buffers: Sequence[BufferSlices], num_values: Counts, chunks: Counts, positions: Counts) -> DataBlock:
        """Return some values of chunks.

        Parameters
        ----------
        buffers, num_values
            See `decompress`.
        chunks : int64[num_picked]
            The chunk of each value.
        positions : int64[num_picked]
            The position of each within its chunk; all lie within their chunks. Any order is possible.

        Raises
        ------
        CorruptFileError
            If the bytes contradict the encoding.
        """


def pick(
    decompressor: Decompressor, buffers: Sequence[BufferSlices], num_values: Counts, chunks: Counts, positions: Counts
) -> ValueBlock:
    """Return some values of chunks, which are decompressed as a whole unless values can be found without that.

    Parameters
    ----------
    decompressor : Decompressor
    buffers, num_values, chunks, positions
        See `PickingDecompressor.pick`.

    Raises
    ------
    CorruptFileError
        If the bytes contradict the encoding.
    """
    if hasattr(decompressor, "pick"):
        return cast("PickingDecompressor", decompressor).pick(buffers, num_values, chunks, positions)
    return decompressor.decompress(buffers, num_values).take(places_of(num_values, chunks, positions))


class PerValueDecompressor(Protocol):
    """Decompressor of full-zip values, each compressed separately."""

    def decompress_values(self, values: DataBlock) -> ValueBlock:
        """Decompress each value of a block.

        Parameters
        ----------
        values : DataBlock
            Compressed values: a `FixedWidthBlock` if the layout states the bits of a value, a `VariableWidthBlock` if
            it states those of an offset. Offsets do not decrease and lie within the data.

        Raises
        ------
        CorruptFileError
            If the bytes contradict the encoding.
        """


@dataclass(frozen=True, slots=True)
class CompressedChunks:
    """The values of a page, compressed and cut into chunks.

    Parameters
    ----------
    buffers : tuple of uint8[…]
        Each holds its slice of every chunk, one after the other.
    sizes : tuple of int64[num_chunks]
        The bytes of each slice, for each buffer.
    num_values : int64[num_chunks]
        A power of two in every chunk except the last.
    encoding : CompressiveEncoding
    """

    buffers: tuple[Bytes, ...]
    sizes: tuple[Counts, ...]
    num_values: Counts
    encoding: encodings_pb2.CompressiveEncoding
