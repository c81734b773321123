"""XXH3 of 64 bits (Collet, xxHash 0.8, `XXH3_64bits`, no seed) of many blocks in one call.

The `xxhash` package hashes a block as fast, but a call per block of 8 KiB costs as much as the block.

Eight accumulators of 64 bits go over a block in stripes of 64 bytes. Lane i of a stripe is mixed with 64 bits of a
fixed secret, which move on by 8 bytes per stripe; the product of both halves goes to accumulator i, the lane itself to
its neighbour. The accumulators are scrambled after 16 stripes. The last stripe ends where the block does:

    │ 16 stripes, scramble │ … │ 1 to 15 stripes │
                                      │ last stripe │

Blocks have more than 240 bytes: shorter ones are hashed otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from lance_format.kernels.jit import allocating_kernel, instructions, kernel

U8 = npt.NDArray[np.uint8]
U32 = npt.NDArray[np.uint32]
U64 = npt.NDArray[np.uint64]

MIN_BLOCK_BYTES = 241

LANES = 8
"""Number of accumulators."""

_STRIPE_BYTES = 64
_CHUNK_STRIPES = 16
_CHUNK_BYTES = _CHUNK_STRIPES * _STRIPE_BYTES
_ALL = 0xFFFFFFFF
_LOW = np.uint64(_ALL)
_HALF = np.uint64(32)
_BYTES_PRIME = np.uint64(0x9E3779B185EBCA87)
_SCRAMBLE_PRIME = np.uint64(0x9E3779B1)
_END_PRIME = np.uint64(0x165667919E3779F9)

_SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221"
    "b8084674f743248ee03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364eac5ac8334d3ebc3c581a0fffa1363eb"
    "170ddd51b7f0da49d316552629d4689e2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)
_KEYS = np.frombuffer(_SECRET, "<u8").astype(np.uint64)
_SCRAMBLE_KEY = 16
"""The first of the keys with which accumulators are scrambled."""
_LAST_KEYS = np.frombuffer(_SECRET[121:185], "<u8").astype(np.uint64)
_MERGE_KEYS = np.frombuffer(_SECRET[11:75], "<u8").astype(np.uint64)
_START = np.array(
    [
        0xC2B2AE3D,
        0x9E3779B185EBCA87,
        0xC2B2AE3D27D4EB4F,
        0x165667B19E3779F9,
        0x85EBCA77C2B2AE63,
        0x85EBCA77,
        0x27D4EB2F165667C5,
        0x9E3779B1,
    ],
    np.uint64,
)


def _add(typing_context: Any, accumulators: Any, data: Any, position: Any, keys: Any, num_stripes: Any) -> Any:  # noqa: ARG001
    """Type and compile `_add_stripes`: vectors of eight lanes, which the compiler divides among registers."""
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        lanes = ir.VectorType(ir.IntType(64), LANES)
        neighbours = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [lane ^ 1 for lane in range(LANES)])

        def pointer(number: int, index: Any) -> Any:
            view = context.make_array(signature.args[number])(context, builder, arguments[number])
            return builder.gep(view.data, [index])

        def load(address: Any, align: int) -> Any:
            loaded = builder.load(builder.bitcast(address, lanes.as_pointer()))
            loaded.align = align
            return loaded

        zero = ir.Constant(ir.IntType(64), 0)
        kept = builder.bitcast(pointer(0, zero), lanes.as_pointer())
        total = cgutils.alloca_once(builder, lanes)  # type: ignore[no-untyped-call]
        builder.store(load(kept, 8), total)
        first, keys = pointer(1, arguments[2]), pointer(3, zero)
        with cgutils.for_range(builder, arguments[4]) as stripes:
            offset = builder.mul(stripes.index, ir.Constant(stripes.index.type, _STRIPE_BYTES))
            found = load(builder.gep(first, [offset]), 1)
            mixed = builder.xor(found, load(builder.gep(keys, [stripes.index]), 8))
            low = builder.and_(mixed, ir.Constant(lanes, [_ALL] * LANES))
            product = builder.mul(low, builder.lshr(mixed, ir.Constant(lanes, [32] * LANES)))
            moved = builder.shuffle_vector(found, found, neighbours)
            builder.store(builder.add(builder.load(total), builder.add(moved, product)), total)
        builder.store(builder.load(total), kept, align=8)
        return context.get_dummy_value()

    return types.void(accumulators, data, types.intp, keys, types.intp), generate


_add_stripes: Callable[[U64, U8, int, U64, int], None] = instructions(_add)
"""Add successive stripes, which start at `position`, to the accumulators; each takes one key more."""


@kernel
def _fold(one: np.uint64, other: np.uint64) -> np.uint64:
    """Return the halves of the product of 128 bits, combined."""
    low = (one & _LOW) * (other & _LOW)
    high = (one >> _HALF) * (other >> _HALF)
    one_high = (one >> _HALF) * (other & _LOW)
    middle = (low >> _HALF) + (one_high & _LOW) + (one & _LOW) * (other >> _HALF)
    return ((middle << _HALF) | (low & _LOW)) ^ ((one_high >> _HALF) + (middle >> _HALF) + high)


@kernel
def sum_block(data: U8, position: int, size: int, accumulators: U64) -> np.uint32:
    """Return the lower 32 bits of the hash of a block.

    Parameters
    ----------
    data : uint8[position + size or more]
    position : int
        The start of the block.
    size : int
        Its bytes, at least `MIN_BLOCK_BYTES`.
    accumulators : uint64[LANES]
        Overwritten.
    """
    for lane in range(LANES):
        accumulators[lane] = _START[lane]
    num_chunks = (size - 1) // _CHUNK_BYTES
    for chunk in range(num_chunks):
        _add_stripes(accumulators, data, position + chunk * _CHUNK_BYTES, _KEYS, _CHUNK_STRIPES)
        for lane in range(LANES):
            value = accumulators[lane]
            accumulators[lane] = (value ^ (value >> np.uint64(47)) ^ _KEYS[_SCRAMBLE_KEY + lane]) * _SCRAMBLE_PRIME
    num_stripes = (size - 1 - num_chunks * _CHUNK_BYTES) // _STRIPE_BYTES
    _add_stripes(accumulators, data, position + num_chunks * _CHUNK_BYTES, _KEYS, num_stripes)
    _add_stripes(accumulators, data, position + size - _STRIPE_BYTES, _LAST_KEYS, 1)
    value = np.uint64(size) * _BYTES_PRIME
    for lane in range(0, LANES, 2):
        value += _fold(accumulators[lane] ^ _MERGE_KEYS[lane], accumulators[lane + 1] ^ _MERGE_KEYS[lane + 1])
    value = (value ^ (value >> np.uint64(37))) * _END_PRIME
    return np.uint32((value ^ (value >> _HALF)) & _LOW)


@allocating_kernel
def sum_blocks(data: U8, block_bytes: int, out: U32) -> int:
    """Compute the lower 32 bits of the hash of each of successive blocks.

    Parameters
    ----------
    data : uint8[num_blocks * block_bytes or more], read-only
    block_bytes : int
        At least `MIN_BLOCK_BYTES`.
    out : uint32[num_blocks]
        Set to the sums.

    Returns
    -------
    int
        The number of blocks.
    """
    accumulators = np.empty(LANES, np.uint64)
    for block in range(out.size):
        out[block] = sum_block(data, block * block_bytes, block_bytes, accumulators)
    return out.size
