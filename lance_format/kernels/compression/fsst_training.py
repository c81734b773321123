"""Finding the symbols that make a sample of strings shortest.

Boncz, Neumann and Leis, "FSST: Fast Random Access String Compression", VLDB 2020, section 4.3. The first round has no
symbols. Every round encodes the sample with its symbols, counts each symbol and each pair of adjacent symbols, and
passes the 255 symbols or pairs that cover most bytes to the next round.

While counting, codes below 256 are single bytes that were escaped, and 256 + code are symbols.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lance_format.kernels.compression.fsst import ESCAPE, HASH_SLOTS, hash_slot, index_symbols, low_bytes
from lance_format.kernels.jit import kernel
from lance_format.kernels.words import load_word

U8 = npt.NDArray[np.uint8]
U16 = npt.NDArray[np.uint16]
U32 = npt.NDArray[np.uint32]
U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]

MAX_SYMBOLS = 255

_ROUNDS = 5
_BYTES = 256
_CODES = _BYTES + MAX_SYMBOLS
_MAX_LENGTH = 8
_MIN_PAIRS = 2
# Single bytes count more than they cover: they save an escape wherever no longer symbol fits.
_BYTE_WEIGHT = 8
_CANDIDATE_SLOTS = 1 << 17
_CANDIDATE_PRIME = np.uint64(0x9E3779B97F4A7C15)
_CANDIDATE_SHIFT = np.uint64(47)


@kernel
def _count(
    sample: U8,
    offsets: I64,
    symbols: U64,
    lengths: U8,
    byte_codes: U16,
    pair_codes: U16,
    slot_codes: U16,
    slot_lengths: U8,
    singles: U32,
    pairs: U32,
) -> int:
    """Count the codes of the sample and their pairs; return the encoded size in bytes."""
    singles[:] = np.uint32(0)
    pairs[:] = np.uint32(0)
    size = 0
    for value in range(offsets.size - 1):
        position = np.uint64(offsets[value])
        end = np.uint64(offsets[value + 1])
        previous = np.uint64(_CODES)
        while position < end:
            word = load_word(sample, np.int64(position))
            left = end - position
            slot = hash_slot(word)
            length = np.uint64(slot_lengths[slot])
            code = slot_codes[slot]
            if length == 0 or length > left or lengths[code] == 0 or symbols[code] != word & low_bytes(length):
                code = pair_codes[word & np.uint64(0xFFFF)]
                length = np.uint64(2)
                if code == ESCAPE or left < length:
                    code = byte_codes[word & np.uint64(0xFF)]
                    length = np.uint64(1)
            first = word & np.uint64(0xFF)
            current = first if code == ESCAPE else np.uint64(_BYTES) + np.uint64(code)
            size += 2 if code == ESCAPE else 1
            singles[current] += np.uint32(1)
            if length > 1:
                singles[first] += np.uint32(1)
            if previous < _CODES:
                pairs[previous * np.uint64(_CODES) + current] += np.uint32(1)
                if length > 1:
                    pairs[previous * np.uint64(_CODES) + first] += np.uint32(1)
            previous = current
            position += length
    return size


@kernel
def _add_candidate(word: np.uint64, length: int, gain: int, words: U64, sizes: U8, gains: I64) -> int:
    """Add to the gain of a candidate; returns its slot in the table of candidates."""
    slot = (((word ^ np.uint64(length)) * _CANDIDATE_PRIME) >> _CANDIDATE_SHIFT) & np.uint64(_CANDIDATE_SLOTS - 1)
    while sizes[slot] != 0 and not (sizes[slot] == length and words[slot] == word):
        slot = (slot + np.uint64(1)) & np.uint64(_CANDIDATE_SLOTS - 1)
    words[slot] = word
    sizes[slot] = np.uint8(length)
    gains[slot] += gain
    return np.int64(slot)


@kernel
def _collect(symbols: U64, lengths: U8, count: int, singles: U32, pairs: U32, words: U64, sizes: U8, gains: I64) -> int:
    """Fill the table of candidates with the counted codes and with pairs of them; return 0."""
    sizes[:] = np.uint8(0)
    gains[:] = np.int64(0)
    for first in range(_BYTES + count):
        if singles[first] == 0:
            continue
        word = np.uint64(first) if first < _BYTES else symbols[first - _BYTES]
        length = np.int64(1) if first < _BYTES else np.int64(lengths[first - _BYTES])
        weight = _BYTE_WEIGHT if length == 1 else 1
        _add_candidate(word, length, np.int64(singles[first]) * length * weight, words, sizes, gains)
        if length == _MAX_LENGTH:
            continue
        for second in range(_BYTES + count):
            together = np.int64(pairs[first * _CODES + second])
            if together < _MIN_PAIRS:
                continue
            tail = np.uint64(second) if second < _BYTES else symbols[second - _BYTES]
            tail_length = np.int64(1) if second < _BYTES else np.int64(lengths[second - _BYTES])
            total: np.int64 = min(length + tail_length, _MAX_LENGTH)
            joined = word | (tail << np.uint64(8 * length))
            _add_candidate(joined, total, together * total, words, sizes, gains)
    return 0


@kernel
def _choose(words: U64, sizes: U8, gains: I64, symbols: U64, lengths: U8, taken: U8) -> int:
    """Choose the candidates of the highest gains, at most one per slot; return their number."""
    slots = np.empty(sizes.size, np.int64)
    num_found = 0
    for slot in range(sizes.size):
        if sizes[slot] != 0:
            slots[num_found] = slot
            num_found += 1
    found = slots[:num_found]
    order = found[np.argsort(gains[found], kind="mergesort")]
    taken[:] = np.uint8(0)
    count = 0
    for index in range(order.size - 1, -1, -1):
        word = words[order[index]]
        length = sizes[order[index]]
        if length > 2:
            hashed = hash_slot(word)
            if taken[hashed] != 0:
                continue
            taken[hashed] = np.uint8(1)
        symbols[count] = word
        lengths[count] = length
        count += 1
        if count == MAX_SYMBOLS:
            break
    return count


@kernel
def train(sample: U8, offsets: I64, symbols: U64, lengths: U8) -> int:
    """Find the symbols that encode a sample best.

    No two symbols of three bytes and more share a slot of the encoder's hash table.

    Parameters
    ----------
    sample : uint8[offsets[-1] + 8]
        The values of the sample.
    offsets : int64[num_values + 1]
        Byte offsets of the values within `sample`.
    symbols : uint64[MAX_SYMBOLS]
        Holds zeros, set to the bytes of the symbols, little-endian.
    lengths : uint8[MAX_SYMBOLS]
        Holds zeros, set to the bytes of each symbol; 0 where there is none.

    Returns
    -------
    int
        The encoded size of the sample in bytes.
    """
    now = np.zeros(MAX_SYMBOLS + 1, np.uint64)
    now_lengths = np.zeros(MAX_SYMBOLS + 1, np.uint8)
    byte_codes = np.empty(_BYTES, np.uint16)
    pair_codes = np.empty(_BYTES * _BYTES, np.uint16)
    slot_codes = np.zeros(HASH_SLOTS, np.uint16)
    slot_lengths = np.empty(HASH_SLOTS, np.uint8)
    singles = np.empty(_CODES, np.uint32)
    pairs = np.empty(_CODES * _CODES, np.uint32)
    words = np.empty(_CANDIDATE_SLOTS, np.uint64)
    sizes = np.empty(_CANDIDATE_SLOTS, np.uint8)
    gains = np.empty(_CANDIDATE_SLOTS, np.int64)
    count = 0
    best_size = np.int64(sample.size * 2)
    for step in range(_ROUNDS + 1):
        index_symbols(now, now_lengths, count, byte_codes, pair_codes, slot_codes, slot_lengths)
        size = _count(
            sample, offsets, now, now_lengths, byte_codes, pair_codes, slot_codes, slot_lengths, singles, pairs
        )
        if size < best_size:
            best_size = size
            lengths[:] = np.uint8(0)
            symbols[:count] = now[:count]
            lengths[:count] = now_lengths[:count]
        if step < _ROUNDS:
            _collect(now, now_lengths, count, singles, pairs, words, sizes, gains)
            count = _choose(words, sizes, gains, now, now_lengths, slot_lengths)
    return best_size
