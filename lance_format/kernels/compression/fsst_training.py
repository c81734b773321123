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
from lance_format.kernels.jit import allocating_kernel, kernel
from lance_format.kernels.words import load_word

U8 = npt.NDArray[np.uint8]
U16 = npt.NDArray[np.uint16]
U32 = npt.NDArray[np.uint32]
U64 = npt.NDArray[np.uint64]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]

MAX_SYMBOLS = 255

MAX_SAMPLE_BYTES = 64 * 1024
"""Maximum size of a sample: so the table of candidates has room for twice as many as there can be."""

_ROUNDS = 5
# Rounds end when one saves less than this part of the sample.
_SETTLED = 100
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
def _add_pair(first: np.uint64, second: np.uint64, pairs: U32, seen: U32, num_seen: int) -> int:
    """Count a pair of codes; return the number of different pairs so far, which `seen` lists."""
    pair = first * np.uint64(_CODES) + second
    if pairs[pair] == 0:
        seen[num_seen] = np.uint32(pair)
        num_seen += 1
    pairs[pair] += np.uint32(1)
    return np.int64(num_seen)


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
    seen: U32,
) -> tuple[int, int]:
    """Count the codes of the sample and their pairs, whose counts are 0 before.

    Returns the encoded size in bytes, and the number of different pairs, which `seen` lists.
    """
    singles[:] = np.uint32(0)
    size = np.int64(0)
    num_seen = np.int64(0)
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
                num_seen = _add_pair(previous, current, pairs, seen, num_seen)
                if length > 1:
                    num_seen = _add_pair(previous, first, pairs, seen, num_seen)
            previous = current
            position += length
    return size, num_seen


@kernel
def _add_candidate(
    word: np.uint64, length: int, gain: int, slots: I32, places: I32, words: U64, sizes: U8, gains: I64, count: int
) -> int:
    """Add to the gain of a candidate; return the number of candidates so far.

    A slot holds the number of its candidate, counted from 1, and `places` the slot of each candidate.
    """
    slot = (((word ^ np.uint64(length)) * _CANDIDATE_PRIME) >> _CANDIDATE_SHIFT) & np.uint64(_CANDIDATE_SLOTS - 1)
    while slots[slot] != 0:
        known = slots[slot] - 1
        if sizes[known] == length and words[known] == word:
            gains[known] += gain
            return np.int64(count)
        slot = (slot + np.uint64(1)) & np.uint64(_CANDIDATE_SLOTS - 1)
    slots[slot] = np.int32(count + 1)
    places[count] = np.int32(slot)
    words[count] = word
    sizes[count] = np.uint8(length)
    gains[count] = gain
    return np.int64(count + 1)


@kernel
def _collect(
    symbols: U64,
    lengths: U8,
    num_symbols: int,
    singles: U32,
    pairs: U32,
    seen: U32,
    slots: I32,
    places: I32,
    words: U64,
    sizes: U8,
    gains: I64,
) -> int:
    """Return the number of candidates: the counted codes, and pairs of them. Counts of pairs are 0 afterwards."""
    count = np.int64(0)
    for code in range(_BYTES + num_symbols):
        if singles[code] != 0:
            word = np.uint64(code) if code < _BYTES else symbols[code - _BYTES]
            length = np.int64(1) if code < _BYTES else np.int64(lengths[code - _BYTES])
            gain = np.int64(singles[code]) * length * (_BYTE_WEIGHT if length == 1 else 1)
            count = _add_candidate(word, length, gain, slots, places, words, sizes, gains, count)
    for pair in seen:
        together = np.int64(pairs[pair])
        pairs[pair] = np.uint32(0)
        first, second = np.int64(pair) // _CODES, np.int64(pair) % _CODES
        length = np.int64(1) if first < _BYTES else np.int64(lengths[first - _BYTES])
        if together < _MIN_PAIRS or length == _MAX_LENGTH:
            continue
        word = np.uint64(first) if first < _BYTES else symbols[first - _BYTES]
        tail = np.uint64(second) if second < _BYTES else symbols[second - _BYTES]
        tail_length = np.int64(1) if second < _BYTES else np.int64(lengths[second - _BYTES])
        total = min(length + tail_length, np.int64(_MAX_LENGTH))
        joined = word | (tail << np.uint64(8 * length))
        count = _add_candidate(joined, total, together * total, slots, places, words, sizes, gains, count)
    for candidate in range(count):
        slots[places[candidate]] = np.int32(0)
    return count


@allocating_kernel
def _choose(words: U64, sizes: U8, gains: I64, symbols: U64, lengths: U8, taken: U8) -> int:
    """Choose the candidates of the highest gains, at most one per slot; return their number."""
    order = np.argsort(gains, kind="mergesort")
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


@allocating_kernel
def train(sample: U8, offsets: I64, symbols: U64, lengths: U8) -> int:
    """Find the symbols that encode a sample best.

    No two symbols of three bytes and more share a slot of the encoder's hash table.

    Parameters
    ----------
    sample : uint8[offsets[-1] + 8]
        The values of the sample, at most `MAX_SAMPLE_BYTES`.
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
    pairs = np.zeros(_CODES * _CODES, np.uint32)
    most_pairs = 2 * sample.size
    seen = np.empty(most_pairs, np.uint32)
    slots = np.zeros(_CANDIDATE_SLOTS, np.int32)
    most_candidates = _CODES + most_pairs // _MIN_PAIRS
    places = np.empty(most_candidates, np.int32)
    words = np.empty(most_candidates, np.uint64)
    sizes = np.empty(most_candidates, np.uint8)
    gains = np.empty(most_candidates, np.int64)
    num_symbols = np.int64(0)
    best_size = np.int64(sample.size * 4)
    for step in range(_ROUNDS + 1):
        index_symbols(now, now_lengths, num_symbols, byte_codes, pair_codes, slot_codes, slot_lengths)
        size, num_seen = _count(
            sample, offsets, now, now_lengths, byte_codes, pair_codes, slot_codes, slot_lengths, singles, pairs, seen
        )
        is_settled = size * _SETTLED > best_size * (_SETTLED - 1)
        if size < best_size:
            best_size = size
            lengths[:] = np.uint8(0)
            symbols[:num_symbols] = now[:num_symbols]
            lengths[:num_symbols] = now_lengths[:num_symbols]
        if is_settled:
            break
        if step < _ROUNDS:
            count = _collect(
                now, now_lengths, num_symbols, singles, pairs, seen[:num_seen], slots, places, words, sizes, gains
            )
            num_symbols = _choose(words[:count], sizes[:count], gains[:count], now, now_lengths, slot_lengths)
    return best_size
