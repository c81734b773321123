"""The part of a structural layout between compression and decompression: it lays chunks out, and finds them again."""

from __future__ import annotations

import numpy as np

from lance_format.compression import registry
from lance_format.compression.codec import CompressedChunks, Context
from lance_format.data_block import BufferSlices, Bytes, Counts, DataBlock


def place(buffer: Bytes, sizes: Counts) -> BufferSlices:
    """Copy consecutive slices to multiples of 8 bytes, with other bytes between them."""
    padded = (sizes + 7) // 8 * 8
    starts = np.cumsum(padded) - padded
    data = np.full(int(padded.sum()) + 8, 0xFE, np.uint8)
    read = 0
    for start, size in zip(starts.tolist(), sizes.tolist(), strict=True):
        data[start : start + size] = buffer[read : read + size]
        read += size
    assert read == buffer.size
    return BufferSlices(data, starts.astype(np.int64), sizes.astype(np.int64))


def slices_of(chunks: CompressedChunks) -> list[BufferSlices]:
    """Lay out chunks, having checked them against the rules of mini-block pages."""
    assert all(count & (count - 1) == 0 for count in chunks.num_values[:-1].tolist())
    assert (chunks.num_values > 0).all()
    assert int(chunks.num_values.max()) <= 4096
    return [place(buffer, sizes) for buffer, sizes in zip(chunks.buffers, chunks.sizes, strict=True)]


def decompress(chunks: CompressedChunks) -> DataBlock:
    """Read chunks back through the registry."""
    decompressor = registry.parse_decompressor(chunks.encoding, Context.MINI_BLOCK)
    assert decompressor.num_buffers == len(chunks.buffers)
    return decompressor.decompress(slices_of(chunks), chunks.num_values)


def decompress_some(chunks: CompressedChunks, chosen: list[int]) -> DataBlock:
    """Read back some chunks only, as random access does."""
    decompressor = registry.parse_decompressor(chunks.encoding, Context.MINI_BLOCK)
    some = [BufferSlices(whole.data, whole.starts[chosen], whole.sizes[chosen]) for whole in slices_of(chunks)]
    return decompressor.decompress(some, chunks.num_values[chosen])
