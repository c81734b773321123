"""FSST: bytes that stand for symbols of one to eight bytes.

Boncz, Neumann and Leis, "FSST: Fast Random Access String Compression", VLDB 2020. A code below 255 stands for a symbol,
255 for the byte that follows it. Decoding writes eight bytes a code and moves on by the symbol's length, so that it has
no loop over bytes and no branch but the escape's. Encoding takes the longest symbol that a hash of the next three bytes
finds, else a symbol of two bytes, else one of one, else an escape.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lance_format.kernels.jit import kernel
from lance_format.kernels.words import load_word, store_word

U8 = npt.NDArray[np.uint8]
U16 = npt.NDArray[np.uint16]
U32 = npt.NDArray[np.uint32]
U64 = npt.NDArray[np.uint64]
Words = npt.NDArray[Any]

ESCAPE = 255
"""The code before a byte that no symbol stands for."""

SLACK = 8
"""How many bytes are read beyond the end of what is encoded, and written beyond what is decoded."""

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
            code = np.uint64(data[position])
            if code != np.uint64(ESCAPE):
                length = lengths[code]
                store_word(out, np.int64(target), symbols[code])
                known &= length != 0
                target += np.uint64(length)
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
    data: U8, offsets: Words, first: int, last: int, symbols: U64, lengths: U8, out: U8, written: int, places: U32
) -> int:
    """Decode the codes of values `first <= value < last` as if they were one.

    Sets `places`, which has an entry a code and two more, to how many bytes were written before each code, and to
    `_WITHIN` for what follows an escape. Returns where writing ended, or -1 if a code is unknown.
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
            inverse = ~codes
            if (inverse - _LOW_BITS) & codes & _HIGH_BITS == np.uint64(0):  # none of the eight is an escape
                for index in range(_WORD):
                    code = codes & np.uint64(0xFF)
                    codes >>= _WORD
                    places[position + index - begin] = np.uint32(target - base)
                    length = lengths[code]
                    store_word(out, np.int64(target), symbols[code])
                    known &= length != 0
                    target += np.uint64(length)
                position += _WORD
                continue
        places[position - begin] = np.uint32(target - base)
        code = np.uint64(data[position])
        if code != np.uint64(ESCAPE):
            length = lengths[code]
            store_word(out, np.int64(target), symbols[code])
            known &= length != 0
            target += np.uint64(length)
            position += np.uint64(1)
        else:
            if position + np.uint64(1) == end:
                return -1
            places[position + np.uint64(1) - begin] = _WITHIN
            out[target] = data[position + np.uint64(1)]
            target += np.uint64(1)
            position += np.uint64(2)
    places[end - begin] = np.uint32(target - base)
    return np.int64(target) if known else -1


@kernel
def decode(data: U8, offsets: Words, symbols: U64, lengths: U8, out: U8, out_offsets: Words) -> int:
    """Decode values.

    `offsets` do not decrease and lie within `data`; `symbols[256]` and `lengths[256]` are 0 for codes without a symbol.
    `out` has room for the longest symbol a code, and `SLACK` bytes more. Sets `out_offsets`, which start at 0. Returns
    the number of bytes, or -1 - the index of the first value that has an unknown code or ends within an escape.

    Short values are decoded in groups: where each ends is looked up afterwards, because a loop over a few codes ends
    when the processor does not expect it.
    """
    places = np.empty(_GROUP_CODES + 2, np.uint32)
    written = np.int64(0)
    out_offsets[0] = 0
    first = 0
    while first < offsets.size - 1:
        last = min(first + _GROUP_VALUES, offsets.size - 1)
        end = np.int64(-1)
        if np.int64(offsets[last]) - np.int64(offsets[first]) <= _GROUP_CODES:
            end = _decode_group(data, offsets, first, last, symbols, lengths, out, written, places)
        within = False
        if end >= 0:
            begin = np.int64(offsets[first])
            for value in range(np.uint64(first), np.uint64(last)):
                place = places[np.uint64(np.int64(offsets[value + np.uint64(1)]) - begin)]
                within |= place == _WITHIN
                out_offsets[value + np.uint64(1)] = written + np.int64(place)
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
    """Build the tables that `encode` looks symbols up in; returns how many of the symbols they hold.

    Of symbols of three bytes and more that share a slot, the first is kept. Codes without a symbol are `ESCAPE`.
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

    `data` has `SLACK` bytes after the last value, `out` two bytes for each of `data` and `SLACK` more. Sets
    `out_offsets`, which start at 0. Returns the number of bytes.
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
