"""Slices of bytes, compressed one by one by zstd (RFC 8878) or LZ4 (its block format).

Each starts with its uncompressed size; a zstd frame may lack it:

    zstd │ u64 size │ frame │
    lz4  │ u32 size │ block │

Sizes that no compressor can reach, or that exceed the caller's limits, are rejected as corrupt before any allocation.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import lz4.block
import numpy as np
import zstandard

from lance_format.data_block import BufferSlices, Bytes, Counts
from lance_format.errors import CorruptFileError
from lance_format.kernels.compression import lz4 as kernels
from lance_format.memory import empty
from lance_format.proto import encodings_pb2

LZ4: int = encodings_pb2.COMPRESSION_ALGORITHM_LZ4
ZSTD: int = encodings_pb2.COMPRESSION_ALGORITHM_ZSTD

_LZ4_PREFIX_BYTES = 4
_LZ4_MOST_EXPANSION = 255
_LZ4_MOST_BYTES = 0x7E000000
_ZSTD_PREFIX_BYTES = 8
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_ZSTD_DESCRIPTOR = 4
_ZSTD_RESERVED_BIT = 0x10
_ZSTD_MOST_BLOCK_BYTES = 128 * 1024
_ZSTD_LEAST_BLOCK_BYTES = 4
_ZSTD_DEFAULT_LEVEL = 3
_UNKNOWN = -1
MOST_EXPANSION = {LZ4: _LZ4_MOST_EXPANSION, ZSTD: _ZSTD_MOST_BLOCK_BYTES // _ZSTD_LEAST_BLOCK_BYTES}
"""How many times its own size a compressed slice may have, by scheme."""
_READ_BYTES = 1 << 20
_MAX_TRUSTED_BYTES = 16 << 20
"""Limit of the allocation for the size that a frame states; more is decompressed incrementally."""


def expand(scheme: int, slices: BufferSlices, limits: Counts | None, alignment: int) -> BufferSlices:
    """Decompress each slice.

    Parameters
    ----------
    scheme : int
        `LZ4` or `ZSTD`.
    slices : BufferSlices
    limits : int64[num_slices] or None
        Maximum size of each result in bytes.
    alignment : int
        The results start at multiples of it; with 1, each starts where the one before it ends.

    Raises
    ------
    CorruptFileError
        If a slice cannot be decompressed to its stated size.
    """
    if scheme == LZ4:
        return _expand_lz4(slices, limits, alignment)
    return _expand_zstd(slices, limits, alignment)


def _position(sizes: Counts, alignment: int, slack: int = 0) -> tuple[Counts, Bytes]:
    """Return the starts of slices of these sizes, and a buffer for them and `slack` more bytes."""
    ends = np.cumsum((sizes + alignment - 1) // alignment * alignment)
    starts = np.zeros(len(sizes), np.int64)
    starts[1:] = ends[:-1]
    return starts, empty((int(ends[-1]) if len(ends) else 0) + slack, np.uint8)


def _check_limits(sizes: Counts, limits: Counts | None) -> None:
    if limits is not None and (sizes > limits).any():
        index = int((sizes > limits).argmax())
        raise CorruptFileError(
            f"compressed buffer {index} expands to {sizes[index]} bytes; at most {limits[index]} fit"
        )


def locate_lz4_blocks(slices: BufferSlices) -> tuple[BufferSlices, Counts]:
    """Return the LZ4 blocks of slices, and the stated expanded size of each.

    Raises
    ------
    CorruptFileError
        If a slice is too short, or states a size that LZ4 cannot reach.
    """
    present = slices.sizes > 0
    if (present & (slices.sizes < _LZ4_PREFIX_BYTES)).any():
        raise CorruptFileError("an LZ4 buffer is shorter than its size prefix")
    where = np.where(present, slices.starts, 0)[:, np.newaxis] + np.arange(_LZ4_PREFIX_BYTES)
    sizes = np.zeros(len(present), np.int64)
    if present.any():
        prefixes = np.ascontiguousarray(slices.data[where[present]])
        sizes[present] = prefixes.view("<u4").ravel()
    if (sizes > np.minimum(slices.sizes * _LZ4_MOST_EXPANSION, _LZ4_MOST_BYTES)).any():
        raise CorruptFileError("an LZ4 buffer says that it expands further than LZ4 can")
    prefix_bytes = np.where(present, _LZ4_PREFIX_BYTES, 0)
    blocks = BufferSlices(np.ascontiguousarray(slices.data), slices.starts + prefix_bytes, slices.sizes - prefix_bytes)
    return blocks, sizes


def _expand_lz4(slices: BufferSlices, limits: Counts | None, alignment: int) -> BufferSlices:
    blocks, sizes = locate_lz4_blocks(slices)
    _check_limits(sizes, limits)
    out_starts, out = _position(sizes, alignment, kernels.SLACK)
    decoded = kernels.decode(blocks.data, blocks.starts, blocks.sizes, out, out_starts, sizes)
    if decoded < 0:
        raise CorruptFileError(f"LZ4 buffer {-1 - decoded} cannot be decompressed to the size that it says")
    return BufferSlices(out[: out.size - kernels.SLACK], out_starts, sizes)


def _expand_zstd(slices: BufferSlices, limits: Counts | None, alignment: int) -> BufferSlices:
    decompressor = zstandard.ZstdDecompressor()
    data = np.ascontiguousarray(slices.data).data
    pieces = []
    for index, (start, size) in enumerate(zip(slices.starts.tolist(), slices.sizes.tolist(), strict=True)):
        limit = None if limits is None else int(limits[index])
        pieces.append(_expand_frame(decompressor, data[start : start + size], limit))
    return _join(pieces, np.fromiter(map(len, pieces), np.int64, len(pieces)), alignment)


def _join(pieces: list[bytes], sizes: Counts, alignment: int) -> BufferSlices:
    """Place decompressed slices in one buffer."""
    if len(pieces) == 1:
        return BufferSlices(np.frombuffer(pieces[0], np.uint8), np.zeros(1, np.int64), sizes)
    starts, out = _position(sizes, alignment)
    target = out.data
    for start, piece in zip(starts.tolist(), pieces, strict=True):
        target[start : start + len(piece)] = piece
    return BufferSlices(out, starts, sizes)


def _expand_frame(decompressor: zstandard.ZstdDecompressor, data: memoryview, limit: int | None) -> bytes:
    """Decompress a frame that may have a size before it."""
    if not data:
        return b""
    prefixed = data[:4] != _ZSTD_MAGIC or (len(data) > _ZSTD_DESCRIPTOR and data[_ZSTD_DESCRIPTOR] & _ZSTD_RESERVED_BIT)
    if prefixed and len(data) < _ZSTD_PREFIX_BYTES:
        raise CorruptFileError("a zstd buffer is shorter than its size prefix")
    size = int.from_bytes(data[:_ZSTD_PREFIX_BYTES], "little") if prefixed else _UNKNOWN
    frame = data[_ZSTD_PREFIX_BYTES:] if prefixed else data
    most = (len(frame) // _ZSTD_LEAST_BLOCK_BYTES + 1) * _ZSTD_MOST_BLOCK_BYTES
    most = most if limit is None else min(most, limit)
    try:
        content = zstandard.frame_content_size(frame)
        if max(size, content) > most:
            raise CorruptFileError(f"a zstd buffer expands to {max(size, content)} bytes; at most {most} fit")
        if max(size, content) > _MAX_TRUSTED_BYTES or (size == _UNKNOWN and content == _UNKNOWN):
            expanded = _read_frame(decompressor, frame, most)
        else:
            expanded = decompressor.decompress(frame, max_output_size=size if content == _UNKNOWN else 0)
    except zstandard.ZstdError as error:
        raise CorruptFileError(f"a zstd buffer cannot be decompressed: {error}") from error
    if {size, content} - {_UNKNOWN, len(expanded)}:
        raise CorruptFileError(f"a zstd buffer expands to {len(expanded)} bytes; it says {max(size, content)}")
    return expanded


def _read_frame(decompressor: zstandard.ZstdDecompressor, frame: memoryview, most: int) -> bytes:
    """Decompress a frame without a size, or with an implausible one."""
    pieces = []
    size = 0
    with decompressor.stream_reader(frame) as reader:
        while piece := reader.read(_READ_BYTES):
            pieces.append(piece)
            size += len(piece)
            if size > most:
                raise CorruptFileError(f"a zstd buffer expands to more than the {most} bytes that fit")
    return b"".join(pieces)


def shrink(scheme: int, level: int | None, slices: BufferSlices) -> tuple[Bytes, Counts]:
    """Compress each slice.

    Parameters
    ----------
    scheme : int
        zstd or LZ4, as in the protobuf.
    level : int or None
        Level of zstd, None for its default; LZ4 has none.
    slices : BufferSlices
        Of less than 4 GiB each.

    Returns
    -------
    tuple
        The results, one after the other, and the bytes of each.
    """
    if scheme == LZ4:
        compress: Callable[[memoryview], bytes] = partial(lz4.block.compress, store_size=False)
        prefix_bytes = _LZ4_PREFIX_BYTES
    else:
        compress = zstandard.ZstdCompressor(level=level or _ZSTD_DEFAULT_LEVEL).compress
        prefix_bytes = _ZSTD_PREFIX_BYTES
    data = np.ascontiguousarray(slices.data).data
    pieces = []
    for start, size in zip(slices.starts.tolist(), slices.sizes.tolist(), strict=True):
        pieces.append(size.to_bytes(prefix_bytes, "little"))
        pieces.append(compress(data[start : start + size]))
    sizes = np.fromiter(map(len, pieces), np.int64, len(pieces)).reshape(-1, 2).sum(axis=1)
    return np.frombuffer(b"".join(pieces), np.uint8), sizes


def shrink_planes(slices: BufferSlices, planes: Counts) -> tuple[Bytes, Counts]:
    """Compress slices by LZ4 as `shrink` does, but search only repetitions within and between planes of bytes.

    That is fast, leaves a few long matches, and therefore expands nearly as fast as bytes are copied. Each slice
    consists of planes, which are `planes` bytes long, at most 65,535.
    """
    room = int(slices.sizes.sum() + (slices.sizes // 255).sum()) + 16 * len(slices.sizes) + kernels.SLACK
    out = empty(room, np.uint8)
    sizes = np.empty(len(slices.sizes), np.int64)
    total = kernels.encode_planes(np.ascontiguousarray(slices.data), slices.starts, slices.sizes, planes, out, sizes)
    return out[:total], sizes
