"""LZ4 blocks: decoding of all, and encoding of those with planes of bytes.

A block is a chain of sequences (LZ4 block format description):

    │ token: 4 bits literals, 4 bits match - 4 │ more literals │ literals │ u16 distance │ more match │

A length of 15 continues in bytes that are added to it; the last of them is not 255. The last sequence has literals
only, at least 5, and the last match starts at least 12 bytes before the end.

Words of 8 bytes are copied if the following bytes may be overwritten: they belong to a slice that is decoded later, or
to the slack at the end.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lance_format.kernels.jit import kernel
from lance_format.kernels.words import load_word, store_word

U8 = npt.NDArray[np.uint8]
I64 = npt.NDArray[np.int64]

SLACK = 8
"""Number of bytes that may be written beyond the end of the last slice, and beyond the end of encoded blocks."""

_MASK = 15
_LEAST_MATCH = 4
_LAST_LITERALS = 5
_LAST_MATCH = 12
_STEP = 8
_BYTE_IN_WORD = np.uint64(0x0101010101010101)


@kernel
def _read_length(data: U8, position: int, end: int, length: int) -> tuple[int, int]:
    """Add the bytes that continue a length; return it and the position after it, or -1 if it has no end."""
    while position < end:
        byte = np.int64(data[position])
        position += 1
        length += byte
        if byte != 255:
            return length, position
    return length, -1


@kernel
def _copy(source: U8, start: int, size: int, out: U8, target: int) -> None:
    """Copy bytes, and up to 7 further ones if `source` has them."""
    copied = 0
    if start + size + 8 <= source.size:
        while copied < size:
            store_word(out, target + copied, load_word(source, start + copied))
            copied += 8
        return
    for index in range(size):
        out[target + index] = source[start + index]


@kernel
def _repeat(out: U8, target: int, distance: int, size: int) -> None:
    """Copy bytes from `distance` before `target`; the source may overlap the written bytes."""
    copied = 0
    if distance >= 8:
        while copied < size:
            store_word(out, target + copied, load_word(out, target + copied - distance))
            copied += 8
    elif distance == 1:
        word = np.uint64(out[target - 1]) * _BYTE_IN_WORD
        while copied < size:
            store_word(out, target + copied, word)
            copied += 8
    else:
        for index in range(size):
            out[target + index] = out[target + index - distance]


@kernel
def decode_block(data: U8, start: int, size: int, out: U8, first: int, count: int) -> bool:
    """Decode a block.

    Parameters
    ----------
    data : uint8[…]
        Holds the block.
    start, size : int
        Byte range of the block within `data`.
    out : uint8[…]
        Set to the decoded bytes. It has room for `SLACK` bytes after them.
    first : int
        Offset of the decoded bytes within `out`.
    count : int
        Expected number of decoded bytes.

    Returns
    -------
    bool
        Whether the block is well-formed and has `count` bytes.
    """
    position, end = start, start + size
    target, stop = first, first + count
    while position < end:
        token = np.int64(data[position])
        position += 1
        literals = token >> 4
        if literals == _MASK:
            literals, position = _read_length(data, position, end, literals)
        if position < 0 or literals > end - position or literals > stop - target:
            return False
        _copy(data, position, literals, out, target)
        position += literals
        target += literals
        if position == end:
            return target == stop
        if position + 2 > end:
            return False
        distance = np.int64(data[position]) | np.int64(data[position + 1]) << 8
        position += 2
        match = token & _MASK
        if match == _MASK:
            match, position = _read_length(data, position, end, match)
        match += _LEAST_MATCH
        if position < 0 or distance == 0 or distance > target - first or match > stop - target:
            return False
        _repeat(out, target, distance, match)
        target += match
    return False


@kernel
def decode(data: U8, starts: I64, sizes: I64, out: U8, out_starts: I64, out_sizes: I64) -> int:
    """Decode blocks. An empty block is allowed if no bytes are expected.

    Parameters
    ----------
    data : uint8[…]
        The blocks.
    starts, sizes : int64[num_blocks]
        Byte ranges of the blocks within `data`.
    out : uint8[… + SLACK]
        Set to the decoded bytes.
    out_starts, out_sizes : int64[num_blocks]
        Byte ranges of the decoded blocks within `out`, ascending.

    Returns
    -------
    int
        The number of blocks, or -1 - the index of the first that is malformed or has another size.
    """
    for index in range(starts.size):
        if sizes[index] == 0 and out_sizes[index] == 0:
            continue
        if not decode_block(data, starts[index], sizes[index], out, out_starts[index], out_sizes[index]):
            return -1 - index
    return starts.size


@kernel
def _write_length(out: U8, position: int, length: int) -> int:
    while length >= 255:
        out[position] = np.uint8(255)
        position += 1
        length -= 255
    out[position] = np.uint8(length)
    return position + 1


@kernel
def _write_sequence(data: U8, literal: int, literals: int, distance: int, match: int, out: U8, position: int) -> int:
    """Write a sequence, the last one if `match` is 0; returns the position after it."""
    token = position
    position += 1
    brief = max(match - _LEAST_MATCH, 0)
    out[token] = np.uint8(min(literals, _MASK) << 4 | min(brief, _MASK))
    if literals >= _MASK:
        position = _write_length(out, position, literals - _MASK)
    _copy(data, literal, literals, out, position)
    position += literals
    if match == 0:
        return position
    out[position] = np.uint8(distance & 0xFF)
    out[position + 1] = np.uint8(distance >> 8)
    position += 2
    if brief >= _MASK:
        position = _write_length(out, position, brief - _MASK)
    return position


@kernel
def _match_length(data: U8, position: int, distance: int, limit: int) -> int:
    """Return how many bytes, from `position` up to `limit`, equal those `distance` before them."""
    end = position
    while end + 8 <= limit and load_word(data, end) == load_word(data, end - distance):
        end += 8
    while end < limit and data[end] == data[end - distance]:
        end += 1
    return end - position


@kernel
def encode_block(data: U8, start: int, size: int, plane: int, out: U8, position: int) -> int:
    """Encode the planes of one chunk.

    Parameters
    ----------
    data : uint8[…]
    start, size : int
        Byte range of the chunk within `data`.
    plane : int
        Bytes of each plane.
    out : uint8[…]
        Set to the block from `position` on; see `encode_planes`.
    position : int

    Returns
    -------
    int
        The position after the block.
    """
    end = start + size
    literal = start
    here = start + 1
    while here + _LAST_MATCH <= end:
        word = load_word(data, here)
        distance = 0
        if here - plane >= start and word == load_word(data, here - plane):
            distance = plane
        elif word == load_word(data, here - 1):
            distance = 1
        if distance == 0:
            here += _STEP
            continue
        while here > literal and here - distance > start and data[here - 1] == data[here - 1 - distance]:
            here -= 1
        match = _match_length(data, here, distance, end - _LAST_LITERALS)
        position = _write_sequence(data, literal, here - literal, distance, match, out, position)
        here += match
        literal = here
    return _write_sequence(data, literal, end - literal, 0, 0, out, position)


@kernel
def encode_planes(data: U8, starts: I64, sizes: I64, planes: I64, out: U8, out_sizes: I64) -> int:
    """Encode chunks of planes, each as an u32 with its size and a block, one after the other.

    Only the repetitions of planes are searched: repeated bytes, and planes that equal the preceding one, such as those
    above the highest bit of integers.

    Parameters
    ----------
    data : uint8[…]
        The chunks.
    starts, sizes : int64[num_chunks]
        Byte ranges of the chunks within `data`.
    planes : int64[num_chunks]
        Bytes of each plane of a chunk.
    out : uint8[…]
        Set to the encoded chunks. It has room for the bytes of each chunk, one more per 255, and 16; and for `SLACK` in
        all.
    out_sizes : int64[num_chunks]
        Set to the encoded bytes of each chunk.

    Returns
    -------
    int
        The number of bytes written.
    """
    position = 0
    for chunk in range(starts.size):
        begin = position
        for byte in range(4):
            out[position + byte] = np.uint8((sizes[chunk] >> (8 * byte)) & 0xFF)
        position = encode_block(data, starts[chunk], sizes[chunk], planes[chunk], out, position + 4)
        out_sizes[chunk] = position - begin
    return position
