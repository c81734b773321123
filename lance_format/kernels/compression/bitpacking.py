"""Bit packing in the FastLanes order.

Afroozeh and Boncz, "The FastLanes Compression Layout: Decoding >100 Billion Integers per Second with Scalar Code",
VLDB 2023. A block is 1,024 values of T bits. It is seen as T rows of 1024/T lanes; row `r` holds the values from
`ORDER[r // 8] * 16 + (r % 8) * 128` on, one per lane. Each lane packs its T values of W bits into W words. The words
`k` of all lanes are adjacent, so a row unpacks with the same shifts in every lane:

    word 0: lane 0, lane 1, … │ word 1: lane 0, lane 1, … │ … │ word W-1

A row is 1,024 bits for every T. The kernels therefore work on 16 words of 64 bits per row, each holding 64/T lanes
side by side, and mask what a shift carries from one lane into the next. Rows are vectors for the compiler: it unrolls
loops over so few words before it would vectorise them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from lance_format.kernels.jit import allocating_kernel, instructions, kernel
from lance_format.kernels.pages.mini_block import read_integer
from lance_format.kernels.words import copy_bytes

BLOCK_VALUES = 1024
"""Values of a packed block."""

_ROW_WORDS = 16
_ORDER = np.array([0, 4, 2, 6, 1, 5, 3, 7], dtype=np.int64)

U8 = npt.NDArray[np.uint8]
U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]


def _generate_row(context: Any, builder: Any, signature: Any, arguments: Any, *, adds: bool) -> Any:
    """Compile `_set_row` or `_add_row`."""
    from llvmlite import ir

    row = ir.VectorType(ir.IntType(64), _ROW_WORDS)
    lanes = ir.Constant(ir.VectorType(ir.IntType(32), _ROW_WORDS), [0] * _ROW_WORDS)

    def pointer(number: int) -> Any:
        view = context.make_array(signature.args[number])(context, builder, arguments[number])
        return builder.bitcast(builder.gep(view.data, [arguments[number + 1]]), row.as_pointer())

    def load(address: Any) -> Any:
        loaded = builder.load(address)
        loaded.align = 8
        return loaded

    def spread(number: int) -> Any:
        first = builder.insert_element(ir.Constant(row, ir.Undefined), arguments[number], ir.IntType(32)(0))
        return builder.shuffle_vector(first, ir.Constant(row, ir.Undefined), lanes)

    words = builder.lshr(builder.shl(load(pointer(0)), spread(2)), spread(3))
    words = builder.and_(words, spread(4))
    target = pointer(5)
    builder.store(builder.or_(load(target), words) if adds else words, target, align=8)
    return context.get_dummy_value()


def _row_types(source: Any, start: Any, left: Any, right: Any, mask: Any, out: Any, position: Any) -> Any:
    """Return the types of a call of `_set_row` or `_add_row`."""
    from numba import types

    del start, left, right, mask, position
    word = types.uint64
    return types.void(source, types.intp, word, word, word, out, types.intp)


def _set(
    typing_context: Any, source: Any, start: Any, left: Any, right: Any, mask: Any, out: Any, position: Any
) -> Any:
    """Type and compile `_set_row`."""
    del typing_context
    return _row_types(source, start, left, right, mask, out, position), partial(_generate_row, adds=False)


def _add(
    typing_context: Any, source: Any, start: Any, left: Any, right: Any, mask: Any, out: Any, position: Any
) -> Any:
    """Type and compile `_add_row`."""
    del typing_context
    return _row_types(source, start, left, right, mask, out, position), partial(_generate_row, adds=True)


_Row = Callable[[U64, int, np.uint64, np.uint64, np.uint64, U64, int], None]

_set_row: _Row = instructions(_set)
"""Set the row at a word of `out` to one that is shifted left, then right, and masked. Nothing is checked."""

_add_row: _Row = instructions(_add)
"""Add the bits of such a row to the row at a word of `out`."""


@kernel
def _ones(bits: int) -> np.uint64:
    return np.uint64(0) if bits == 0 else np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(64 - bits)


@kernel
def _row_start(row: int, bits: int) -> int:
    """Return the first 64-bit word of a row in an unpacked block."""
    return (_ORDER[row >> 3] * 16 + (row & 7) * 128) * bits >> 6


@kernel
def _unpack_block(packed: U64, position: int, bits: int, width: int, out: U64, first: int) -> None:
    """Unpack the block at word `position` of `packed` to word `first` of `out`."""
    lanes_unit = np.uint64(0xFFFFFFFFFFFFFFFF) // _ones(bits)
    mask = _ones(width) * lanes_unit
    none = np.uint64(0)
    shift = np.int64(0)
    for row in range(bits):
        target = first + _row_start(row, bits)
        left = bits - shift
        if width <= left:
            _set_row(packed, position, none, np.uint64(shift), mask, out, target)
        else:
            low_mask = _ones(left) * lanes_unit
            _set_row(packed, position, none, np.uint64(shift), low_mask, out, target)
            _add_row(packed, position + _ROW_WORDS, np.uint64(left), none, mask & ~low_mask, out, target)
        shift += width
        if shift >= bits:
            shift -= bits
            position += _ROW_WORDS


@kernel
def _pack_block(values: U64, first: int, bits: int, width: int, out: U64, position: int) -> None:
    """Pack the block at word `first` of `values` to word `position` of `out`."""
    lanes_unit = np.uint64(0xFFFFFFFFFFFFFFFF) // _ones(bits)
    none = np.uint64(0)
    shift = np.int64(0)
    for row in range(bits):
        source = first + _row_start(row, bits)
        if shift == 0:
            _set_row(values, source, none, none, ~none, out, position)
        else:
            low_mask = ~(_ones(shift) * lanes_unit)
            _add_row(values, source, np.uint64(shift), none, low_mask, out, position)
        shift += width
        if shift >= bits:
            shift -= bits
            position += _ROW_WORDS
            if shift > 0:
                high_mask = _ones(shift) * lanes_unit
                _set_row(values, source, none, np.uint64(width - shift), high_mask, out, position)


@kernel
def _unpack_bytes(packed: U8, start: int, bits: int, width: int, scratch: U64, out: U8, position: int) -> None:
    """Unpack one block at any byte of `packed` to any byte of `out`, which has room for the whole block."""
    if width == 0:
        for index in range(np.uint64(position), np.uint64(position + BLOCK_VALUES * bits // 8)):
            out[index] = np.uint8(0)
        return
    copy_bytes(packed, start, width * BLOCK_VALUES // 8, scratch.view(np.uint8), 0)
    if position % 8 == 0:
        _unpack_block(scratch, 0, bits, width, out.view(np.uint64), position // 8)
    else:
        _unpack_block(scratch, 0, bits, width, scratch, _ROW_WORDS * 64)
        copy_bytes(scratch.view(np.uint8), _ROW_WORDS * 512, BLOCK_VALUES * bits // 8, out, position)


@kernel
def _read_width(packed: U8, start: int, size: int, bits: int) -> int:
    """Return the bit width of a chunk that holds it and one packed block; -1 if they contradict its size."""
    word_bytes = bits // 8
    if size < word_bytes:
        return -1
    width = np.int64(packed[start])
    for byte in range(1, word_bytes):
        if packed[start + byte] != 0:
            return -1
    return width if width <= bits and size == word_bytes + width * BLOCK_VALUES // 8 else -1


@allocating_kernel
def unpack_inline(packed: U8, starts: I64, sizes: I64, num_values: I64, bits: int, out: U8) -> int:
    """Unpack chunks that each hold a word with their bit width, then one packed block.

    Parameters
    ----------
    packed : uint8[…]
        The chunks.
    starts, sizes : int64[num_chunks]
        Byte ranges of the chunks within `packed`.
    num_values : int64[num_chunks]
        Number of values of each chunk.
    bits : int
        Bits per value, and per word with the bit width: 8, 16, 32 or 64.
    out : uint8[num_values.sum() * bits // 8 + …]
        Set to the values. It has room for one block more, and its size is a multiple of 8.

    Returns
    -------
    int
        The number of values, or -1 - the index of the first malformed chunk.
    """
    word_bytes = bits // 8
    scratch = np.empty(_ROW_WORDS * 128, np.uint64)
    first = 0
    for chunk in range(starts.size):
        count = num_values[chunk]
        width = _read_width(packed, starts[chunk], sizes[chunk], bits)
        if width < 0 or count < 0 or count > BLOCK_VALUES:
            return -1 - chunk
        _unpack_bytes(packed, starts[chunk] + word_bytes, bits, width, scratch, out, first * word_bytes)
        first += count
    return first


@kernel
def pick_inline(packed: U8, starts: I64, sizes: I64, chunks: I64, positions: I64, bits: int, out: U8) -> int:
    """Unpack single values of chunks that each hold a word with their bit width, then one packed block.

    Parameters
    ----------
    packed, starts, sizes, bits
        See `unpack_inline`.
    chunks : int64[num_picked]
        The chunk of each value.
    positions : int64[num_picked]
        The position of each value in its chunk, below `BLOCK_VALUES`.
    out : uint8[num_picked * bits // 8]
        Set to the values.

    Returns
    -------
    int
        The number of values, or -1 - the index of a malformed chunk.
    """
    word_bytes = bits // 8
    lanes = BLOCK_VALUES // bits
    for index in range(chunks.size):
        chunk = chunks[index]
        width = _read_width(packed, starts[chunk], sizes[chunk], bits)
        if width < 0:
            return -1 - chunk
        lane = positions[index] % lanes
        group = _ORDER[(positions[index] % 128 - lane) >> 4]  # The order is its own inverse.
        shift = (group * 8 + positions[index] // 128) * width
        word = starts[chunk] + word_bytes + (shift // bits * lanes + lane) * word_bytes
        shift %= bits
        value = np.uint64(0)
        if width > 0:
            value = np.uint64(read_integer(packed, word, word_bytes)) >> np.uint64(shift)
            if shift + width > bits:
                value |= np.uint64(read_integer(packed, word + 128, word_bytes)) << np.uint64(bits - shift)
            value &= _ones(width)
        for byte in range(word_bytes):
            out[index * word_bytes + byte] = np.uint8((value >> np.uint64(8 * byte)) & np.uint64(0xFF))
    return chunks.size


@allocating_kernel
def pack_inline(values: U8, widths: I64, bits: int, out: U8) -> int:
    """Write for each block of 1,024 values a word with its bit width and the packed block.

    Parameters
    ----------
    values : uint8[num_values * bits // 8]
        The bytes of the values. The last block may be short.
    widths : int64[num_blocks]
        The bits that each block needs.
    bits : int
        Bits per value: 8, 16, 32 or 64.
    out : uint8[…]
        Set to the blocks. It has room for all of them.

    Returns
    -------
    int
        The number of bytes written.
    """
    word_bytes = bits // 8
    block_bytes = BLOCK_VALUES * word_bytes
    block = np.empty(_ROW_WORDS * 64, np.uint64)
    packed = np.empty(_ROW_WORDS * 64, np.uint64)
    position = 0
    for index in range(widths.size):
        _load_block(values, index * block_bytes, min(block_bytes, values.size - index * block_bytes), block)
        out[position] = np.uint8(widths[index])
        for byte in range(1, word_bytes):
            out[position + byte] = np.uint8(0)
        position += word_bytes
        _pack_block(block, 0, bits, widths[index], packed, 0)
        copy_bytes(packed.view(np.uint8), 0, widths[index] * BLOCK_VALUES // 8, out, position)
        position += widths[index] * BLOCK_VALUES // 8
    return position


@kernel
def _load_block(values: U8, start: int, size: int, block: U64) -> None:
    """Copy the bytes of a block, and pad a short one with zeros."""
    target = block.view(np.uint8)
    copy_bytes(values, start, size, target, 0)
    for index in range(np.uint64(size), np.uint64(target.size)):
        target[index] = np.uint8(0)


@allocating_kernel
def unpack_blocks(packed: U8, starts: I64, sizes: I64, num_values: I64, bits: int, width: int, out: U8) -> int:
    """Unpack chunks of whole blocks of one bit width, each chunk followed by a tail.

    The tail is plain words if the chunk's size says so, else a padded block.

    Parameters
    ----------
    packed : uint8[…]
        The chunks.
    starts, sizes : int64[num_chunks]
        Byte ranges of the chunks within `packed`.
    num_values : int64[num_chunks]
        Number of values of each chunk.
    bits : int
        Bits per value: 8, 16, 32 or 64.
    width : int
        Bits per packed value.
    out : uint8[num_values.sum() * bits // 8 + …]
        Set to the values. It has room for one block more, and its size is a multiple of 8.

    Returns
    -------
    int
        The number of values, or -1 - the index of the first malformed chunk.
    """
    word_bytes = bits // 8
    packed_bytes = width * BLOCK_VALUES // 8
    scratch = np.empty(_ROW_WORDS * 128, np.uint64)
    written = 0
    for chunk in range(starts.size):
        count = num_values[chunk]
        blocks = count // BLOCK_VALUES
        tail_bytes = (count - blocks * BLOCK_VALUES) * word_bytes
        whole = blocks * packed_bytes
        raw = tail_bytes > 0 and sizes[chunk] == whole + tail_bytes
        padded = 0 if tail_bytes == 0 else packed_bytes
        if count < 0 or not (raw or sizes[chunk] == whole + padded):
            return -1 - chunk
        position = starts[chunk]
        for _ in range(blocks):
            _unpack_bytes(packed, position, bits, width, scratch, out, written)
            written += BLOCK_VALUES * word_bytes
            position += packed_bytes
        if raw:
            copy_bytes(packed, position, tail_bytes, out, written)
        elif tail_bytes > 0:
            _unpack_bytes(packed, position, bits, width, scratch, out, written)
        written += tail_bytes
    return written // word_bytes


@allocating_kernel
def pack_blocks(values: U8, num_values: I64, bits: int, width: int, out: U8, sizes: I64) -> int:
    """Pack chunks of values with one bit width: whole blocks, then a tail in the smaller of its two forms.

    Parameters
    ----------
    values : uint8[num_values.sum() * bits // 8]
        The bytes of the values.
    num_values : int64[num_chunks]
        Number of values of each chunk.
    bits : int
        Bits per value: 8, 16, 32 or 64.
    width : int
        Bits per packed value.
    out : uint8[…]
        Set to the chunks. It has room for the bytes of `values` and one padded block per chunk.
    sizes : int64[num_chunks]
        Set to the bytes of each chunk.

    Returns
    -------
    int
        The number of bytes written.
    """
    block_bytes = BLOCK_VALUES * bits // 8
    packed_bytes = width * BLOCK_VALUES // 8
    block = np.empty(_ROW_WORDS * 64, np.uint64)
    packed = np.empty(_ROW_WORDS * 64, np.uint64)
    position = 0
    read = 0
    for chunk in range(num_values.size):
        begin = position
        end = read + num_values[chunk] * bits // 8
        while read < end:
            size = min(block_bytes, end - read)
            if size < block_bytes and size <= packed_bytes:
                copy_bytes(values, read, size, out, position)
                position += size
            else:
                _load_block(values, read, size, block)
                _pack_block(block, 0, bits, width, packed, 0)
                copy_bytes(packed.view(np.uint8), 0, packed_bytes, out, position)
                position += packed_bytes
            read += size
        sizes[chunk] = position - begin
    return position


@kernel
def measure_words(values: npt.NDArray[Any], widths: I64) -> int:
    """Measure what bit packing and runs would take, in one pass over memory.

    Parameters
    ----------
    values : unsigned integer[num_values]
        At least one.
    widths : int64[num_blocks]
        Set to the bits that each block of 1,024 values needs.

    Returns
    -------
    int
        The number of runs of equal values.
    """
    runs = np.int64(1)
    for block in range(widths.size):
        first = np.uint64(block * BLOCK_VALUES)
        end = min(first + np.uint64(BLOCK_VALUES), np.uint64(values.size))
        seen = values[first]
        for index in range(first, end):
            seen |= values[index]
        for index in range(max(first, np.uint64(1)), end):
            runs += values[index] != values[index - np.uint64(1)]
        remaining = np.uint64(seen)
        width = 0
        while remaining != np.uint64(0):
            remaining >>= np.uint64(1)
            width += 1
        widths[block] = width
    return runs
