"""FSST: bytes that stand for symbols of one to eight bytes.

Boncz, Neumann and Leis, "FSST: Fast Random Access String Compression", VLDB 2020. A code below 255 stands for a symbol,
255 for the byte that follows it. Decoding writes eight bytes per code and advances by the symbol's length. It has no
loop over bytes, and no branch except for escapes. Encoding takes the longest symbol that a hash of the next three bytes
finds, else a symbol of two bytes, else one of one, else an escape.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lance_format.kernels.jit import allocating_kernel, kernel
from lance_format.kernels.words import load_word, store_word

U8 = npt.NDArray[np.uint8]
U16 = npt.NDArray[np.uint16]
U32 = npt.NDArray[np.uint32]
U64 = npt.NDArray[np.uint64]
Words = npt.NDArray[Any]

ESCAPE = 255
"""The code before a byte without a symbol."""

SLACK = 8
"""Number of bytes read beyond the end of the input of `encode`, and written beyond the end of the output of `decode`.
"""

NO_ROOM = np.iinfo(np.int64).min
"""What `decode` returns if the output might be too small."""

HASH_SLOTS = 2048
"""Slots of the table of symbols of three bytes and more."""

_HASH_PRIME = np.uint64(2971215073)
_HASH_SHIFT = np.uint64(15)
_THREE_BYTES = np.uint64(0xFFFFFF)
_FREE = np.uint8(0)
_WORD = np.uint64(8)
_LOW_BITS = np.uint64(0x0101010101010101)
_HIGH_BITS = np.uint64(0x8080808080808080)
_GROUP_VALUES = 128
_GROUP_CODES = 8192
_WITHIN = np.uint32(0xFFFFFFFF)


@kernel
def _has_escape(codes: np.uint64) -> bool:
    """Return whether one of eight codes is an escape."""
    return (~codes - _LOW_BITS) & codes & _HIGH_BITS != np.uint64(0)


@kernel
def _decode_code(code: np.uint64, symbols: U64, lengths: U8, out: U8, target: np.uint64) -> np.uint64:
    """Write the symbol of a code; returns its length, 0 if the code is unknown."""
    store_word(out, np.int64(target), symbols[code])
    return np.uint64(lengths[code])


@kernel
def _decode_values(
    data: U8,
    offsets: Words,
    first: int,
    last: int,
    symbols: U64,
    lengths: U8,
    out: U8,
    written: int,
    out_offsets: Words,
) -> int:
    """Decode values `first <= value < last` one by one; returns as `decode` does."""
    target = np.uint64(written)
    for value in range(np.uint64(first), np.uint64(last)):
        position = np.uint64(offsets[value])
        end = np.uint64(offsets[value + np.uint64(1)])
        known = True
        while position < end:
            if position + _WORD <= end:
                codes = load_word(data, np.int64(position))
                if not _has_escape(codes):
                    for _ in range(_WORD):
                        code = codes & np.uint64(0xFF)
                        codes >>= _WORD
                        length = _decode_code(code, symbols, lengths, out, target)
                        known &= length != np.uint64(0)
                        target += length
                    position += _WORD
                    continue
            code = np.uint64(data[position])
            if code != np.uint64(ESCAPE):
                length = _decode_code(code, symbols, lengths, out, target)
                known &= length != np.uint64(0)
                target += length
                position += np.uint64(1)
            else:
                position += np.uint64(1)
                if position == end:
                    return -1 - np.int64(value)
                out[target] = data[position]
                target += np.uint64(1)
                position += np.uint64(1)
        if not known:
            return -1 - np.int64(value)
        out_offsets[value + np.uint64(1)] = target
    return np.int64(target)


@kernel
def _decode_group(
    data: U8, offsets: Words, first: int, last: int, symbols: U64, lengths: U8, out: U8, written: int, ends: U32
) -> int:
    """Decode the codes of values `first <= value < last` as if they were one.

    Sets `ends`, which has an entry per code and two more, to the number of bytes written before each code, and to
    `_WITHIN` for the byte after an escape. Returns the end of the output, or -1 if a code is unknown.
    """
    begin = np.uint64(offsets[first])
    end = np.uint64(offsets[last])
    base = np.uint64(written)
    target = base
    position = begin
    known = True
    while position < end:
        if position + _WORD <= end:
            codes = load_word(data, np.int64(position))
            if not _has_escape(codes):
                for index in range(_WORD):
                    code = codes & np.uint64(0xFF)
                    codes >>= _WORD
                    ends[position + index - begin] = np.uint32(target - base)
                    length = _decode_code(code, symbols, lengths, out, target)
                    known &= length != np.uint64(0)
                    target += length
                position += _WORD
                continue
        ends[position - begin] = np.uint32(target - base)
        code = np.uint64(data[position])
        if code != np.uint64(ESCAPE):
            length = _decode_code(code, symbols, lengths, out, target)
            known &= length != np.uint64(0)
            target += length
            position += np.uint64(1)
        else:
            if position + np.uint64(1) == end:
                return -1
            ends[position + np.uint64(1) - begin] = _WITHIN
            out[target] = data[position + np.uint64(1)]
            target += np.uint64(1)
            position += np.uint64(2)
    ends[end - begin] = np.uint32(target - base)
    return np.int64(target) if known else -1


@allocating_kernel
def decode(data: U8, offsets: Words, symbols: U64, lengths: U8, longest: int, out: U8, out_offsets: Words) -> int:
    """Decode values.

    Short values are decoded in groups, and their ends are looked up afterwards: the processor mispredicts the end of a
    loop over a few codes.

    Parameters
    ----------
    data : uint8[…]
        The codes of the values.
    offsets : integer[num_values + 1]
        Byte offsets of the values within `data`, which do not decrease.
    symbols : uint64[256]
        The bytes of the symbol of each code, little-endian.
    lengths : uint8[256]
        The bytes of each symbol, 0 for codes without a symbol.
    longest : int
        The length of the longest symbol; at least 1.
    out : uint8[…]
        Set to the values.
    out_offsets : integer[num_values + 1]
        Set to the byte offsets of the values within `out`; the first is 0.

    Returns
    -------
    int
        The number of bytes; -1 - the index of the first value that has an unknown code or ends within an escape; or
        `NO_ROOM` if the rest might not fit into `out`, which needs `SLACK` bytes and `longest` per code to be sure.
    """
    ends = np.empty(_GROUP_CODES + 2, np.uint32)
    written = np.int64(0)
    out_offsets[0] = 0
    first = 0
    while first < offsets.size - 1:
        last = min(first + _GROUP_VALUES, offsets.size - 1)
        end = np.int64(-1)
        codes = np.int64(offsets[last]) - np.int64(offsets[first])
        while written + codes * longest + SLACK > out.size:
            if last - first == 1:
                return NO_ROOM
            last = (first + last) // 2
            codes = np.int64(offsets[last]) - np.int64(offsets[first])
        if codes <= _GROUP_CODES:
            end = _decode_group(data, offsets, first, last, symbols, lengths, out, written, ends)
        within = False
        if end >= 0:
            begin = np.int64(offsets[first])
            for value in range(np.uint64(first), np.uint64(last)):
                end_of_value = ends[np.uint64(np.int64(offsets[value + np.uint64(1)]) - begin)]
                within |= end_of_value == _WITHIN
                out_offsets[value + np.uint64(1)] = written + np.int64(end_of_value)
        if end < 0 or within:
            end = _decode_values(data, offsets, first, last, symbols, lengths, out, written, out_offsets)
            if end < 0:
                return end
        written = end
        first = last
    return written


@kernel
def hash_slot(word: np.uint64) -> np.uint64:
    """Return the slot of a symbol that starts with the three lowest bytes of a word."""
    mixed = (word & _THREE_BYTES) * _HASH_PRIME
    return (mixed ^ (mixed >> _HASH_SHIFT)) & np.uint64(HASH_SLOTS - 1)


@kernel
def low_bytes(count: np.uint64) -> np.uint64:
    """Return a word whose `count` lowest bytes, 1 to 8, are set."""
    return np.uint64(0xFFFFFFFFFFFFFFFF) >> (np.uint64(64) - count * np.uint64(8))


@kernel
def index_symbols(
    symbols: U64, lengths: U8, count: int, byte_codes: U16, pair_codes: U16, slot_codes: U16, slot_lengths: U8
) -> int:
    """Build the tables of `encode`.

    Codes without a symbol are `ESCAPE`. The first symbol is kept if several of three bytes and more share a slot.

    Parameters
    ----------
    symbols : uint64[count]
        The bytes of each symbol, little-endian.
    lengths : uint8[count]
        The bytes of each symbol, 1 to 8.
    count : int
        Number of symbols.
    byte_codes : uint16[256]
        Set to the code of each byte.
    pair_codes : uint16[65536]
        Set to the code of each pair of bytes.
    slot_codes : uint16[HASH_SLOTS]
        Set to the codes of symbols of three bytes and more, by `hash_slot`.
    slot_lengths : uint8[HASH_SLOTS]
        Set to the bytes of these symbols, 0 where the slot is free.

    Returns
    -------
    int
        The number of symbols kept.
    """
    byte_codes[:] = np.uint16(ESCAPE)
    pair_codes[:] = np.uint16(ESCAPE)
    slot_lengths[:] = _FREE
    kept = 0
    for code in range(count):
        symbol = symbols[code]
        length = lengths[code]
        if length == 1:
            byte_codes[symbol & np.uint64(0xFF)] = np.uint16(code)
        elif length == 2:
            pair_codes[symbol & np.uint64(0xFFFF)] = np.uint16(code)
        else:
            slot = hash_slot(symbol)
            if slot_lengths[slot] != _FREE:
                continue
            slot_codes[slot] = np.uint16(code)
            slot_lengths[slot] = length
        kept += 1
    return kept


@kernel
def encode(
    data: U8,
    offsets: Words,
    symbols: U64,
    byte_codes: U16,
    pair_codes: U16,
    slot_codes: U16,
    slot_lengths: U8,
    out: U8,
    out_offsets: Words,
) -> int:
    """Encode values with the tables of `index_symbols`.

    Parameters
    ----------
    data : uint8[offsets[-1] + SLACK]
        The values.
    offsets : integer[num_values + 1]
        Byte offsets of the values within `data`.
    symbols : uint64[…]
        The bytes of each symbol, little-endian.
    byte_codes, pair_codes, slot_codes, slot_lengths
        The tables of `index_symbols`.
    out : uint8[data.size * 2 + SLACK]
        Set to the codes.
    out_offsets : integer[num_values + 1]
        Set to the byte offsets of the values within `out`; the first is 0.

    Returns
    -------
    int
        The number of bytes written.
    """
    written = np.uint64(0)
    out_offsets[0] = 0
    for value in range(np.uint64(offsets.size - 1)):
        position = np.uint64(offsets[value])
        end = np.uint64(offsets[value + np.uint64(1)])
        while position < end:
            word = load_word(data, np.int64(position))
            left = end - position
            slot = hash_slot(word)
            length = np.uint64(slot_lengths[slot])
            code = slot_codes[slot]
            found = length != np.uint64(0) and length <= left
            if not (found and symbols[code] == word & low_bytes(length)):
                code = pair_codes[word & np.uint64(0xFFFF)]
                length = np.uint64(2)
                if code == ESCAPE or left < length:
                    code = byte_codes[word & np.uint64(0xFF)]
                    length = np.uint64(1)
            out[written] = np.uint8(code)
            out[written + np.uint64(1)] = np.uint8(word & np.uint64(0xFF))
            written += np.uint64(1) + np.uint64(code == ESCAPE)
            position += length
        out_offsets[value + np.uint64(1)] = written
    return np.int64(written)
