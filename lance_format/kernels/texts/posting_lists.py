"""Posting lists of text indices: decoding their blocks, scoring documents, matching phrases.

A block has the documents of one token, and how often each has it. Full blocks are packed:

    f32 best score │ u32 first document │ u8 bits │ 16 * bits bytes │ u8 bits │ 16 * bits bytes

Both are 128 integers, the first as differences between neighbours, packed in four lanes: value i is in lane i % 4, and
32-bit word w of lane l is word 4 * w + l. The last block, if not full, has 32-bit integers or varints instead:

    f32 best score │ documents; as varints, the first and then differences │ counts
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lance_format.kernels.jit import allocating_kernel, kernel
from lance_format.kernels.words import load_word

U8 = npt.NDArray[np.uint8]
U32 = npt.NDArray[np.uint32]
I64 = npt.NDArray[np.int64]
F32 = npt.NDArray[np.float32]

BLOCK_ROWS = 128
"""Number of integers that are packed together."""

_LOW = np.uint64(0xFFFFFFFF)


@kernel
def read_word(data: U8, at: int) -> int:
    """Return the little-endian 32-bit integer at an offset."""
    low = np.int64(data[at]) | np.int64(data[at + 1]) << 8
    return low | np.int64(data[at + 2]) << 16 | np.int64(data[at + 3]) << 24


@kernel
def unpack_lanes(data: U8, at: int, num_bits: int, out: I64) -> int:
    """Unpack 128 integers of `num_bits` bits, at most 32.

    Parameters
    ----------
    data : uint8[…]
        At least `16 * num_bits` bytes from `at` on.
    at : int
    num_bits : int
    out : int64[128]

    Returns
    -------
    int
        The offset after the integers.
    """
    mask = (np.uint64(1) << np.uint64(num_bits)) - np.uint64(1)
    for row in range(32):
        word, shift = at + ((row * num_bits) >> 5) * 16, (row * num_bits) & 31
        for column in range(0, 4, 2):
            first = second = np.uint64(0)
            if num_bits:
                both = load_word(data, word + 4 * column)
                first, second = (both & _LOW) >> np.uint64(shift), both >> np.uint64(32 + shift)
            if shift + num_bits > 32:
                both = load_word(data, word + 16 + 4 * column)
                first |= (both & _LOW) << np.uint64(32 - shift)
                second |= (both >> np.uint64(32)) << np.uint64(32 - shift)
            out[4 * row + column] = first & mask
            out[4 * row + column + 1] = second & mask
    return at + 16 * num_bits


@kernel
def read_varints(data: U8, at: int, stop: int, count: int, out: I64) -> int:
    """Read varints of at most 32 bits.

    Parameters
    ----------
    data : uint8[…]
    at, stop : int
        The bytes to read.
    count : int
    out : int64[count]

    Returns
    -------
    int
        The offset after them, or -1 if they are malformed.
    """
    for index in range(count):
        value, shift = np.int64(0), 0
        while True:
            if at >= stop or shift > 28:
                return -1
            byte = np.int64(data[at])
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
        if value > 0xFFFFFFFF:
            return -1
        out[index] = value
    return at


@kernel
def _decode_full(data: U8, start: int, stop: int, values: I64, counts: I64) -> bool:
    """Decode a full block into documents and counts; false if it is malformed."""
    if stop - start < 10:
        return False
    previous, num_bits = read_word(data, start + 4), np.int64(data[start + 8])
    if num_bits > 32 or start + 10 + 16 * num_bits > stop:
        return False
    at = unpack_lanes(data, start + 9, num_bits, values)
    for index in range(128):
        previous += values[index]
        values[index] = previous
    num_bits = np.int64(data[at])
    if num_bits > 32 or at + 1 + 16 * num_bits != stop:
        return False
    unpack_lanes(data, at + 1, num_bits, counts)
    return True


@kernel
def _decode_last(data: U8, start: int, stop: int, count: int, varints: bool, values: I64, counts: I64) -> bool:
    """Decode a block that is not full; false if it is malformed."""
    if not varints:
        if stop - start != 4 + 8 * count:
            return False
        for index in range(count):
            values[index] = read_word(data, start + 4 + 4 * index)
            counts[index] = read_word(data, start + 4 + 4 * (count + index))
        return True
    at = read_varints(data, start + 4, stop, count, values)
    if at < 0 or read_varints(data, at, stop, count, counts) != stop:
        return False
    for index in range(1, count):
        values[index] += values[index - 1]
    return True


@kernel
def decode_block(data: U8, start: int, stop: int, count: int, varints: bool, documents: I64, frequencies: I64) -> bool:
    """Decode a block.

    Parameters
    ----------
    data : uint8[…]
    start, stop : int
        The block, within `data`.
    count : int
        The number of its documents, at most 128.
    varints : bool
        Whether a block that is not full has varints.
    documents, frequencies : int64[128]
        Set to the documents, in any order if the block is malformed, and to how often each has the token.

    Returns
    -------
    bool
        False if the block is malformed.
    """
    if count == 128:
        return _decode_full(data, start, stop, documents, frequencies)
    return _decode_last(data, start, stop, count, varints, documents, frequencies)


@allocating_kernel
def decode_postings(data: U8, offsets: I64, num_documents: int, varints: bool, documents: U32, frequencies: U32) -> int:
    """Decode the blocks of a posting list.

    Parameters
    ----------
    data : uint8[…]
    offsets : int64[num_blocks + 1]
        The blocks, ascending and within `data`; as many as `documents` need.
    num_documents : int
        All documents are below.
    varints : bool
        Whether the last block has varints.
    documents, frequencies : uint32[num_postings]
        Set to the documents, ascending, and to how often each has the token.

    Returns
    -------
    int
        The number of postings, or -1 - the index of the first malformed block.
    """
    values, counts = np.empty(128, np.int64), np.empty(128, np.int64)
    done, last = 0, np.int64(-1)
    for block in range(offsets.size - 1):
        count = min(128, documents.size - done)
        if not decode_block(data, offsets[block], offsets[block + 1], count, varints, values, counts):
            return -1 - block
        for index in range(count):
            if values[index] <= last or values[index] >= num_documents or counts[index] < 1:
                return -1 - block
            last = values[index]
            documents[done] = last
            frequencies[done] = counts[index]
            done += 1
    return done


@allocating_kernel
def decode_positions(data: U8, offsets: I64, frequencies: U32, positions: U32) -> int:
    """Decode where in its documents a token is.

    The positions of a block are differences within each document, in groups of 128 as `u8 bits │ 16 * bits bytes`, and
    varints after the last full group.

    Parameters
    ----------
    data : uint8[…]
    offsets : int64[num_blocks + 1]
        The blocks, of 128 documents each, ascending and within `data`.
    frequencies : uint32[num_postings]
    positions : uint32[frequencies.sum()]
        Set to the positions, ascending within each document.

    Returns
    -------
    int
        Their number, or -1 - the index of the first malformed block.
    """
    done, packed = 0, np.empty(128, np.int64)
    for block in range(offsets.size - 1):
        first, total = block * 128, np.int64(0)
        end = min(first + 128, frequencies.size)
        for index in range(first, end):
            total += frequencies[index]
        at, stop = offsets[block], offsets[block + 1]
        begin = done
        for _ in range(total // 128):
            if at >= stop or data[at] > 32 or at + 1 + 16 * np.int64(data[at]) > stop:
                return -1 - block
            at = unpack_lanes(data, at + 1, np.int64(data[at]), packed)
            for index in range(128):
                positions[done + index] = packed[index]
            done += 128
        rest = total % 128
        if read_varints(data, at, stop, rest, packed) != stop:
            return -1 - block
        for index in range(rest):
            positions[done + index] = packed[index]
        done += rest
        for index in range(first, end):
            value = np.int64(0)
            for _ in range(frequencies[index]):
                value += positions[begin]
                if value > 0xFFFFFFFF:
                    return -1 - block
                positions[begin] = value
                begin += 1
    return done


@allocating_kernel
def decode_early_positions(data: U8, offsets: I64, bounds: I64, frequencies: U32, positions: U32) -> int:
    """Decode where in its documents a token is, as files of version 1 store it.

    A document has parts: `u32 count`, then 128 positions each as `u32 first │ u8 bits │ 16 * bits bytes`, differences
    between neighbours, and the rest as 32-bit integers.

    Parameters
    ----------
    data : uint8[…]
    offsets : int64[num_parts + 1]
        The parts, ascending and within `data`.
    bounds : int64[num_postings + 1]
        The parts of each document, ascending and within `offsets`.
    frequencies : uint32[num_postings]
    positions : uint32[frequencies.sum()]
        Set to the positions, ascending within each document.

    Returns
    -------
    int
        Their number, or -1 - the index of the first malformed document.
    """
    done, packed = 0, np.empty(128, np.int64)
    for index in range(frequencies.size):
        part, count = bounds[index], np.int64(frequencies[index])
        if bounds[index + 1] - part != 1 + (count + 127) // 128 or offsets[part + 1] - offsets[part] != 4:
            return -1 - index
        if read_word(data, offsets[part]) != count:
            return -1 - index
        last = np.int64(-1)
        for start in range(0, count, 128):
            part += 1
            at, size, some = offsets[part], offsets[part + 1] - offsets[part], count - start
            if some > 128:
                some = np.int64(128)
            if some == 128:
                if size < 5 or data[at + 4] > 32 or size != 5 + 16 * np.int64(data[at + 4]):
                    return -1 - index
                unpack_lanes(data, at + 5, np.int64(data[at + 4]), packed)
                packed[0] += read_word(data, at)
                for place in range(1, 128):
                    packed[place] += packed[place - 1]
            else:
                if size != 4 * some:
                    return -1 - index
                for place in range(some):
                    packed[place] = read_word(data, at + 4 * place)
            for place in range(some):
                if packed[place] < last or packed[place] > 0xFFFFFFFF:
                    return -1 - index
                last = packed[place]
                positions[done] = last
                done += 1
    return done


@kernel
def length_norm(length: int, mean: np.float32) -> np.float32:
    """Return what BM25 adds to a frequency in a document of a number of tokens, in single precision."""
    k1, b, one = np.float32(1.2), np.float32(0.75), np.float32(1.0)
    return k1 * (one - b + b * np.float32(length) / mean)


@kernel
def impact(frequency: int, length: int, mean: np.float32) -> np.float32:
    """Return what a token of weight 1 contributes to the BM25 score of a document, in single precision.

    Parameters
    ----------
    frequency : int
        How often the document has the token.
    length : int
        Number of tokens of the document.
    mean : float32
        Mean number of tokens of a document.
    """
    k1, one, count = np.float32(1.2), np.float32(1.0), np.float32(frequency)
    return (k1 + one) * count / (count + length_norm(length, mean))


@kernel
def add_scores(
    documents: U32, frequencies: U32, lengths: U32, weight: np.float32, mean: np.float32, position: int,
    scores: F32, latest: I64, matched: U32,
) -> int:  # fmt: skip
    """Add what a token contributes to the BM25 scores of its documents, in single precision.

    Parameters
    ----------
    documents, frequencies : uint32[num_postings]
        Documents are below `lengths.size`.
    lengths : uint32[num_documents]
        Number of tokens of each document.
    weight, mean : float32
        Of the token, and of the lengths.
    position : int
        Of the token in the query.
    scores : float32[num_documents]
    latest : int64[num_documents]
        The latest position that each document has a token of.
    matched : uint32[num_documents]
        Number of positions that each document has a token of.

    Returns
    -------
    int
        The number of documents.
    """
    for index in range(documents.size):
        document = documents[index]
        scores[document] += weight * impact(frequencies[index], lengths[document], mean)
        if latest[document] != position:
            latest[document] = position
            matched[document] += 1
    return documents.size


@allocating_kernel
def match_phrase(starts: I64, stops: I64, positions: U32, steps: I64, slop: int, out: npt.NDArray[np.bool_]) -> int:
    """Find the documents that have the tokens of a phrase one after the other.

    Parameters
    ----------
    starts, stops : int64[num_documents, num_tokens]
        The range of `positions` of each token in each document.
    positions : uint32[…]
        Ascending in each range.
    steps : int64[num_tokens]
        The distance of each token from the one before; the first is ignored.
    slop : int
        Maximum number of further positions between neighbours.
    out : bool[num_documents]

    Returns
    -------
    int
        The number of matches.
    """
    found = 0
    widest = 0
    for document in range(starts.shape[0]):
        for token in range(steps.size):
            widest = max(widest, stops[document, token] - starts[document, token])
    reached, following = np.empty(widest, np.int64), np.empty(widest, np.int64)
    for document in range(starts.shape[0]):
        size = 0
        for at in range(starts[document, 0], stops[document, 0]):
            reached[size] = positions[at]
            size += 1
        for token in range(1, steps.size):
            count, behind = 0, 0
            for at in range(starts[document, token], stops[document, token]):
                least = np.int64(positions[at]) - steps[token]
                while behind < size and reached[behind] + slop < least:
                    behind += 1
                if behind < size and reached[behind] <= least:
                    following[count] = positions[at]
                    count += 1
            reached, following, size = following, reached, count
        out[document] = size > 0
        found += size > 0
    return found
