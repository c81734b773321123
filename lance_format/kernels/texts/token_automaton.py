"""Compilation of tokens into a finite state transducer; see `lance_format.texts.dictionary` for its bytes.

The value of a token is its rank. Equal ends of tokens share their nodes, as far as a cache of small nodes finds them:
the transducer is close to the smallest one (S. Mihov and D. Maurel, Direct construction of minimal acyclic
subsequential transducers, 2001).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lance_format.kernels.jit import allocating_kernel, kernel

U8 = npt.NDArray[np.uint8]
I64 = npt.NDArray[np.int64]

HEADER_BYTES = 16
MANY_TRANSITIONS = 32
"""Nodes with more of them have an index of these."""

_CACHED_TRANSITIONS = 4
_CACHED_NODES = 1 << 16
_CACHED_FIELDS = 3 + 3 * _CACHED_TRANSITIONS


@kernel
def most_automaton_bytes(num_bytes: int, num_tokens: int) -> int:
    """Return a number of bytes that the transducer of tokens does not exceed.

    Parameters
    ----------
    num_bytes, num_tokens : int
        Of the tokens.
    """
    # A byte of a token is a transition and a node at most: an input, an output, a target, and the sizes of a node, or
    # its share in an index of 256 bytes.
    return HEADER_BYTES + 32 * (num_bytes + num_tokens + 1) + 256


@kernel
def _byte_width(value: int) -> int:
    """Return the number of bytes of a number, at least 1."""
    width = 1
    while value >> (8 * width):
        width += 1
    return width


@kernel
def _put_number(value: int, width: int, out: U8, at: int) -> int:
    for index in range(width):
        out[at + index] = (value >> (8 * index)) & 0xFF
    return at + width


@kernel
def _distance(start: int, target: int) -> int:
    """Return what a node that starts at an address stores of a target; the end of all tokens, at 0, has no bytes."""
    return start - target if target else 0


@kernel
def _put_single(byte: int, output: int, target: int, last: int, common: U8, out: U8, at: int) -> int:
    """Write a node with one transition that is not final; `last` is the address of the node before it."""
    start, number = at, np.int64(common[byte])
    if target != last or output:
        output_width, target_width = 0, _byte_width(_distance(start, target))
        if output:
            output_width = _byte_width(output)
            at = _put_number(output, output_width, out, at)
        at = _put_number(_distance(start, target), target_width, out, at)
        out[at] = target_width << 4 | output_width
        at += 1
        state = 0x80
    else:
        state = 0xC0
    if not number:
        out[at] = byte
        at += 1
    out[at] = state | number
    return at + 1


@kernel
def _put_several(is_final: bool, count: int, transitions: I64, out: U8, at: int) -> int:
    """Write a node with any number of transitions: `int64[count, 3]` of bytes, outputs and targets."""
    start, output_width, target_width = at, 1, 0
    any_output = False
    for index in range(count):
        output_width = max(output_width, _byte_width(transitions[index, 1]))
        target_width = max(target_width, _byte_width(_distance(start, transitions[index, 2])))
        any_output |= transitions[index, 1] > 0
    if not any_output:
        output_width = 0
    elif is_final:
        at = _put_number(0, output_width, out, at)
    for index in range(count - 1, -1, -1):
        at = _put_number(transitions[index, 1], output_width, out, at)
    for index in range(count - 1, -1, -1):
        at = _put_number(_distance(start, transitions[index, 2]), target_width, out, at)
    for index in range(count - 1, -1, -1):
        out[at] = transitions[index, 0]
        at += 1
    if count > MANY_TRANSITIONS:
        out[at : at + 256] = 0xFF
        for index in range(count):
            out[at + transitions[index, 0]] = index
        at += 256
    out[at] = target_width << 4 | output_width
    at += 1
    number = count if count < 0x40 else 0
    if not number:
        out[at] = 1 if count == 256 else count
        at += 1
    out[at] = number | (0x40 if is_final else 0)
    return at + 1


@kernel
def _cached_slot(is_final: bool, count: int, transitions: I64) -> int:
    """Return the place of a node in the cache."""
    found = np.uint64(0xCBF29CE484222325) ^ np.uint64(is_final)
    for index in range(count):
        for field in range(3):
            found = (found ^ np.uint64(transitions[index, field])) * np.uint64(0x100000001B3)
            found ^= found >> np.uint64(29)
    return np.int64(found & np.uint64(_CACHED_NODES - 1))


@kernel
def _is_cached(is_final: bool, count: int, transitions: I64, cached: I64) -> bool:
    if cached[1] != is_final or cached[2] != count:
        return False
    for index in range(count):
        for field in range(3):
            if cached[3 + 3 * index + field] != transitions[index, field]:
                return False
    return True


@allocating_kernel
def compile_automaton(data: U8, offsets: I64, depth: int, common: U8, out: U8) -> int:
    """Compile tokens into the nodes of a transducer.

    Parameters
    ----------
    data : uint8[…]
        The tokens, distinct and in ascending order.
    offsets : int64[num_tokens + 1]
        Their ascending byte offsets within `data`.
    depth : int
        The number of bytes of the longest token.
    common : uint8[256]
        The number of each input byte in the state of a node; 0 for those that have none.
    out : uint8[…]
        Set to the nodes from `HEADER_BYTES` on. At least `most_automaton_bytes`.

    Returns
    -------
    int
        The offset after the last node. That is the root, unless the only token is empty.
    """
    # Nodes on the path of the latest token are open. Their transitions so far are a stack, those of the deepest on top.
    starts, ranks = np.zeros(depth + 2, np.int64), np.zeros(depth + 2, np.int64)
    finals = np.zeros(depth + 2, np.bool_)
    stack = np.empty((min(data.size, 256 * (depth + 1)) + 1, 3), np.int64)
    cache = np.zeros((_CACHED_NODES, _CACHED_FIELDS), np.int64)
    level, top, end, last = 0, 0, np.int64(HEADER_BYTES), np.int64(1)
    num_tokens = offsets.size - 1
    for rank in range(num_tokens + 1):
        shared = 0
        if 0 < rank < num_tokens:
            most = min(offsets[rank] - offsets[rank - 1], offsets[rank + 1] - offsets[rank])
            while shared < most and data[offsets[rank - 1] + shared] == data[offsets[rank] + shared]:
                shared += 1
        # The nodes below what the token shares with the one before are complete; after the last token all are.
        while level > shared or (rank == num_tokens and level >= 0):
            transitions = stack[starts[level] : top]
            count, is_final = top - starts[level], finals[level]
            address, slot = np.int64(0), np.int64(-1)
            if count or not is_final:
                if count <= _CACHED_TRANSITIONS:
                    slot = _cached_slot(is_final, count, transitions)
                    if cache[slot, 0] and _is_cached(is_final, count, transitions, cache[slot]):
                        address = cache[slot, 0]
                if not address:
                    if count == 1 and not is_final:
                        end = _put_single(
                            transitions[0, 0], transitions[0, 1], transitions[0, 2], last, common, out, end
                        )
                    else:
                        end = _put_several(is_final, count, transitions, out, end)
                    last = address = end - 1
                    if slot >= 0:
                        cache[slot, 0], cache[slot, 1], cache[slot, 2] = address, is_final, count
                        for index in range(count):
                            for field in range(3):
                                cache[slot, 3 + 3 * index + field] = transitions[index, field]
            top = starts[level]
            if level == 0:
                return end
            stack[top, 0] = data[offsets[rank - 1] + level - 1]
            stack[top, 1] = ranks[level] - ranks[level - 1]
            stack[top, 2] = address
            top += 1
            level -= 1
        while level < offsets[rank + 1] - offsets[rank]:
            level += 1
            starts[level], ranks[level], finals[level] = top, rank, False
        finals[level] = True
    return end


@kernel
def checksum_crc32c(data: U8, table: npt.NDArray[np.uint32]) -> int:
    """Return the CRC-32C of bytes.

    Parameters
    ----------
    data : uint8[…]
    table : uint32[256]
        The remainder of each byte.
    """
    found = np.uint32(0xFFFFFFFF)
    for byte in data:
        found = table[(found ^ byte) & np.uint32(0xFF)] ^ (found >> np.uint32(8))
    return np.int64(found ^ np.uint32(0xFFFFFFFF))
