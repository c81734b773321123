"""LZ4 blocks.

"LZ4 Block Format Description" (github.com/lz4/lz4, doc/lz4_Block_format.md). A block is a list of sequences; the last
ends after its literals:

    │ literals: 4 bits, match - 4: 4 bits │ more literals … │ literals │ u16 distance │ more match … │

A count of 15 goes on in the bytes that follow, which are added up to the first that is not 255.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lance_format.kernels.jit import kernel
from lance_format.kernels.words import load_word, store_word

U8 = npt.NDArray[np.uint8]
I64 = npt.NDArray[np.int64]

SLACK = 8
"""How many bytes may be written beyond the end of the last slice."""

_LONG = 15
_MORE = 255
_MIN_MATCH = 4
_WORD = 8


@kernel
def _copy_words(source: U8, start: int, size: int, out: U8, position: int) -> None:
    """Copy bytes a word at a time, and up to seven more; within one array, at least a word lies between the two."""
    end = position + size
    while position < end:
        store_word(out, position, load_word(source, start))
        position += _WORD
        start += _WORD


@kernel
def _copy_bytes(source: U8, start: int, size: int, out: U8, position: int) -> None:
    """Copy bytes one by one, those that are written before among them."""
    first = np.uint64(start)
    target = np.uint64(position)
    for index in range(np.uint64(size)):
        out[target + index] = source[first + index]


@kernel
def _decode_block(data: U8, read: int, end: int, out: U8, start: int, stop: int) -> bool:
    """Decode `data[read:end]` to `out[start:stop]`; returns whether it filled that exactly."""
    write = start
    while read < end:
        token = np.int64(data[read])
        read += 1
        count = token >> 4
        if count == _LONG:
            more = _MORE
            while more == _MORE:
                if read >= end:
                    return False
                more = np.int64(data[read])
                count += more
                read += 1
        if count > end - read or count > stop - write:
            return False
        if read + count + _WORD <= data.size:
            _copy_words(data, read, count, out, write)
        else:
            _copy_bytes(data, read, count, out, write)
        read += count
        write += count
        if read == end:
            break
        if end - read < 2:
            return False
        distance = np.int64(data[read]) | np.int64(data[read + 1]) << 8
        read += 2
        count = (token & _LONG) + _MIN_MATCH
        if token & _LONG == _LONG:
            more = _MORE
            while more == _MORE:
                if read >= end:
                    return False
                more = np.int64(data[read])
                count += more
                read += 1
        if distance == 0 or distance > write - start or count > stop - write:
            return False
        if distance < _WORD:
            # the match runs into what it writes, a pattern that repeats: once it is a word long, by words
            head = min(count, _WORD * distance)
            _copy_bytes(out, write - distance, head, out, write)
            _copy_words(out, write + head - _WORD * distance, count - head, out, write + head)
        else:
            _copy_words(out, write - distance, count, out, write)
        write += count
    return write == stop


@kernel
def decode_blocks(data: U8, starts: I64, sizes: I64, out: U8, out_starts: I64, out_sizes: I64) -> int:
    """Decode blocks, slices of `data`, to ascending slices of `out`.

    Both lie within, and `out` has `SLACK` bytes more. Returns the number of blocks, or -1 - the index of the first one
    that does not fill its slice exactly.
    """
    for block in range(starts.size):
        begin = out_starts[block]
        end = starts[block] + sizes[block]
        if not _decode_block(data, starts[block], end, out, begin, begin + out_sizes[block]):
            return -1 - block
    return starts.size
