"""Posting lists of text indices: gathering the occurrences of tokens, and encoding them.

See `posting_lists.py` for their blocks. Impacts of some documents bound the scores of these: for each
frequency that no document exceeds which is as short, they tell it and the length class of the shortest such document:

    varint last document │ varint number of pairs │ (varint frequency │ varint length class) …

Pairs ascend, and are differences from the one before: `2 * (frequency - 1)` if the class is the next one, and otherwise
`2 * (frequency - 1) + 1` and the difference of the classes. Length classes are those of Lucene's `SmallFloat`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lance_format.kernels.jit import allocating_kernel, kernel
from lance_format.kernels.texts.posting_lists import BLOCK_ROWS, length_norm

U8 = npt.NDArray[np.uint8]
U32 = npt.NDArray[np.uint32]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
F32 = npt.NDArray[np.float32]

NUM_LENGTH_CLASSES = 256
GROUP_BLOCKS = 32
"""Number of blocks that further impacts are of."""


@kernel
def count_occurrences(tokens: I32, documents: I32, latest: I64, num_postings: I64, num_positions: I64) -> int:
    """Count the documents and the occurrences of tokens.

    Parameters
    ----------
    tokens, documents : int32[num_occurrences]
        The token and the document of each occurrence; documents ascend.
    latest : int64[num_tokens]
        -1; set to the last document that has each token.
    num_postings, num_positions : int64[num_tokens]
        Increased by the number of documents, and of occurrences.

    Returns
    -------
    int
        The number of postings.
    """
    total = 0
    for index in range(tokens.size):
        token = tokens[index]
        num_positions[token] += 1
        if latest[token] != documents[index]:
            latest[token] = documents[index]
            num_postings[token] += 1
            total += 1
    return total


@kernel
def gather_occurrences(
    tokens: I32, documents: I32, positions: I32, latest: I64, posting_ends: I64, position_ends: I64,
    out_documents: U32, out_frequencies: U32, out_positions: U32,
) -> int:  # fmt: skip
    """Gather the documents and the positions of each token.

    Parameters
    ----------
    tokens, documents : int32[num_occurrences]
        See `count_occurrences`.
    positions : int32[num_occurrences]
        The position of each occurrence in its document.
    latest : int64[num_tokens]
        -1; set to the last document that has each token.
    posting_ends, position_ends : int64[num_tokens]
        Where the postings and the positions of each token begin; set to their ends.
    out_documents, out_frequencies : uint32[num_postings]
        Set to the documents of each token, and how often they have it; frequencies are 0 before.
    out_positions : uint32[num_occurrences], or uint32[0]
        Set to the positions of each token, if there is room.

    Returns
    -------
    int
        The number of occurrences.
    """
    keep_positions = out_positions.size > 0
    for index in range(tokens.size):
        token, document = tokens[index], documents[index]
        if latest[token] != document:
            latest[token] = document
            out_documents[posting_ends[token]] = document
            posting_ends[token] += 1
        out_frequencies[posting_ends[token] - 1] += np.uint32(1)
        if keep_positions:
            out_positions[position_ends[token]] = positions[index]
            position_ends[token] += 1
    return tokens.size


@kernel
def _put_word(value: int, out: U8, at: int) -> int:
    for index in range(4):
        out[at + index] = (value >> (8 * index)) & 0xFF
    return at + 4


@kernel
def _put_varint(value: int, out: U8, at: int) -> int:
    while value >= 0x80:
        out[at] = value & 0x7F | 0x80
        value >>= 7
        at += 1
    out[at] = value
    return at + 1


@kernel
def _put_varints(values: I64, count: int, out: U8, at: int) -> int:
    for index in range(count):
        at = _put_varint(values[index], out, at)
    return at


@kernel
def _bit_width(values: I64) -> int:
    """Return the number of bits of the largest number."""
    found = np.int64(0)
    for value in values:
        found |= value
    width = 0
    while found >> width:
        width += 1
    return width


@kernel
def pack_lanes(values: I64, out: U8, at: int) -> int:
    """Pack 128 integers of at most 32 bits, with the number of their bits before; see `unpack_lanes`.

    Parameters
    ----------
    values : int64[128]
    out : uint8[…]
        At least 513 bytes from `at` on.
    at : int

    Returns
    -------
    int
        The offset after them.
    """
    num_bits = _bit_width(values)
    out[at] = num_bits
    at += 1
    for lane in range(4):
        pending, filled, word = np.int64(0), 0, 0
        for index in range(lane, 128, 4):
            pending |= values[index] << filled
            filled += num_bits
            while filled >= 32:
                _put_word(pending & 0xFFFFFFFF, out, at + 4 * (4 * word + lane))
                pending >>= 32
                filled -= 32
                word += 1
    return at + 16 * num_bits


@kernel
def length_class(length: int) -> int:
    """Return the class of a number from 0 on: itself below 8, and then its highest four bits and their place."""
    shift = 0
    while length >> shift >= 16:
        shift += 1
    return length if length < 8 else (length >> shift & 7) | (shift + 1) << 3


@kernel
def _put_impacts(last: int, best: U32, out: U8, at: int) -> int:
    """Write the impacts of documents whose best frequency of each length class is given; 0 if there is none."""
    num_pairs, highest = 0, np.int64(0)
    for index in range(best.size):
        if best[index] > highest:
            highest = np.int64(best[index])
            num_pairs += 1
    at = _put_varint(num_pairs, out, _put_varint(last, out, at))
    highest, before = np.int64(0), 0
    for index in range(best.size):
        if best[index] > highest:
            step = np.int64(best[index]) - highest - 1
            if index == before + 1:
                at = _put_varint(step << 1, out, at)
            else:
                at = _put_varint(index - before, out, _put_varint(step << 1 | 1, out, at))
            highest, before = np.int64(best[index]), index
    return at


@allocating_kernel
def encode_postings(
    documents: U32, frequencies: U32, starts: I64, lengths: U32, weights: F32, mean: np.float32,
    scores: F32, out: U8, block_ends: I64, impacts: U8, impact_ends: I64,
) -> int:  # fmt: skip
    """Encode posting lists.

    Parameters
    ----------
    documents, frequencies : uint32[num_postings]
        Documents ascend within a list, and are below `lengths.size`.
    starts : int64[num_tokens + 1]
        The ascending bounds of the lists within them.
    lengths : uint32[num_documents]
        Number of tokens of each document.
    weights : float32[num_tokens]
        What a score is multiplied by.
    mean : float32
        Of the lengths.
    scores : float32[num_tokens]
        Set to the best score of each list.
    out : uint8[…]
        Set to the blocks. At least `10 * num_postings + 14 * num_blocks` bytes.
    block_ends : int64[num_blocks]
        Set to their ends.
    impacts : uint8[…]
        Set to the impacts of the blocks of a list, and then of groups of `GROUP_BLOCKS` of these. At least
        `2 * (12 * num_postings + 10 * num_blocks)` bytes.
    impact_ends : int64[num_blocks + num_groups]
        Set to their ends.

    Returns
    -------
    int
        The number of blocks.
    """
    values, counts = np.empty(BLOCK_ROWS, np.int64), np.empty(BLOCK_ROWS, np.int64)
    best, best_of_group = np.zeros(NUM_LENGTH_CLASSES, np.uint32), np.zeros(NUM_LENGTH_CLASSES, np.uint32)
    groups = np.empty(impacts.size // 2, np.uint8)
    at, impact_at, num_blocks, num_impacts = np.int64(0), np.int64(0), 0, 0
    group_ends = np.empty(impact_ends.size, np.int64)
    for token in range(starts.size - 1):
        group_at, num_groups = np.int64(0), 0
        best_of_group[:] = 0
        for start in range(starts[token], starts[token + 1], BLOCK_ROWS):
            count = min(starts[token + 1] - start, np.int64(BLOCK_ROWS))
            best[:] = 0
            score, before = np.float32(0), np.int64(0)
            for index in range(count):
                document, frequency = documents[start + index], frequencies[start + index]
                values[index] = np.int64(document) - before if index else 0
                counts[index] = frequency
                before = np.int64(document)
                norm = length_norm(lengths[document], mean)
                score = max(score, np.float32(frequency) / (np.float32(frequency) + norm))
                place = length_class(np.int64(lengths[document]))
                best[place] = max(best[place], frequency)
                best_of_group[place] = max(best_of_group[place], frequency)
            score = score * weights[token]
            scores[token] = max(scores[token], score)
            at = _put_word(np.int64(np.array([score], np.float32).view(np.uint32)[0]), out, at)
            first = np.int64(documents[start])
            if count == BLOCK_ROWS:
                at = pack_lanes(counts, out, pack_lanes(values, out, _put_word(first, out, at)))
            else:
                values[0] = first
                at = _put_varints(counts, count, out, _put_varints(values, count, out, at))
            block_ends[num_blocks] = at
            num_blocks += 1
            impact_at = _put_impacts(before, best, impacts, impact_at)
            impact_ends[num_impacts] = impact_at
            num_impacts += 1
            is_last = start + count == starts[token + 1]
            if is_last or (start - starts[token]) // BLOCK_ROWS % GROUP_BLOCKS == GROUP_BLOCKS - 1:
                group_at = _put_impacts(before, best_of_group, groups, group_at)
                group_ends[num_groups] = group_at
                num_groups += 1
                best_of_group[:] = 0
        impacts[impact_at : impact_at + group_at] = groups[:group_at]
        for index in range(num_groups):
            impact_ends[num_impacts] = impact_at + group_ends[index]
            num_impacts += 1
        impact_at += group_at
    return num_blocks


@allocating_kernel
def encode_positions(
    positions: U32, frequencies: U32, starts: I64, out: U8, ends: I64, block_starts: U32
) -> int:  # fmt: skip
    """Encode where in their documents tokens are; see `decode_positions`.

    Parameters
    ----------
    positions : uint32[num_occurrences]
        Ascending within each document.
    frequencies : uint32[num_postings]
    starts : int64[num_tokens + 1]
        The ascending bounds of the posting lists within them.
    out : uint8[…]
        Set to the positions of the lists. At least `6 * num_occurrences + num_blocks` bytes.
    ends : int64[num_tokens]
        Set to the end of each list.
    block_starts : uint32[num_blocks]
        Set to the offset of each block from the beginning of its list.

    Returns
    -------
    int
        The number of blocks.
    """
    packed = np.empty(128, np.int64)
    at, done, num_blocks = np.int64(0), 0, 0
    for token in range(starts.size - 1):
        begin = at
        for start in range(starts[token], starts[token + 1], BLOCK_ROWS):
            block_starts[num_blocks] = at - begin
            num_blocks += 1
            filled = 0
            for index in range(start, min(start + BLOCK_ROWS, starts[token + 1])):
                before = np.int64(0)
                for _ in range(frequencies[index]):
                    packed[filled] = np.int64(positions[done]) - before
                    before = np.int64(positions[done])
                    filled += 1
                    done += 1
                    if filled == 128:
                        at = pack_lanes(packed, out, at)
                        filled = 0
            at = _put_varints(packed, filled, out, at)
        ends[token] = at
    return num_blocks
