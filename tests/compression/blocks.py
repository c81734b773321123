"""Blocks of values of several characters, from a seed, and how to compare them."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import strategies as st

from lance_format.data_block import DataBlock, FixedWidthBlock, VariableWidthBlock

CHARACTERS = ("constant", "runs", "few", "small", "signed", "random", "sequence")
_WORDS = [b"the", b"quick", b"brown", b"fox", b"", b"jumps over", b"http://example.com/", b"\xc3\xbc", b"\0\0", b"\xff"]


def fixed_block(bits: int, num_values: int, character: str, seed: int) -> FixedWidthBlock:
    """Return values of 8, 16, 32 or 64 bits."""
    rng = np.random.default_rng(seed)
    high = 2 ** (bits - 1) - 1
    if character == "constant":
        numbers = np.full(num_values, rng.integers(-high, high))
    elif character == "runs":
        runs = rng.integers(-high, high, num_values)
        numbers = np.repeat(runs, rng.integers(1, 600, num_values))[:num_values]
    elif character == "few":
        numbers = rng.integers(-high, high, 7)[rng.integers(0, 7, num_values)]
    elif character == "small":
        numbers = rng.integers(0, 50, num_values)
    elif character == "signed":
        numbers = rng.integers(-50, 50, num_values)
    elif character == "sequence":
        numbers = np.arange(num_values) % high
    else:
        numbers = rng.integers(-high, high, num_values)
    return FixedWidthBlock(numbers.astype(f"<i{bits // 8}").view(np.uint8), bits, num_values)


def byte_strings(num_values: int, character: str, seed: int, offset_bits: int = 32) -> VariableWidthBlock:
    """Return byte strings whose data begins within a larger buffer."""
    rng = np.random.default_rng(seed)
    if character == "constant":
        values = [b"always the same"] * num_values
    elif character in ("few", "runs"):
        values = [b"category %d" % number for number in rng.integers(0, 9, num_values)]
        values = sorted(values) if character == "runs" else values
    elif character == "random":
        values = [rng.bytes(int(size)) for size in rng.integers(0, 40, num_values)]
    else:
        picks = rng.integers(0, len(_WORDS), (num_values, 6))
        values = [b" ".join(_WORDS[pick] for pick in row[: 1 + row[0] % 6]) for row in picks]
    return block_of(values, offset_bits)


def block_of(values: list[bytes], offset_bits: int = 32, before: bytes = b"???") -> VariableWidthBlock:
    """Return the given byte strings."""
    sizes = [len(value) for value in values]
    offsets = np.cumsum([len(before), *sizes]).astype(f"<i{offset_bits // 8}")
    return VariableWidthBlock(np.frombuffer(before + b"".join(values) + b"???", np.uint8), offsets)


def values_of(block: DataBlock) -> list[bytes]:
    """Return the bytes of each value."""
    if isinstance(block, VariableWidthBlock):
        data = block.data.tobytes()
        offsets = block.offsets.tolist()
        return [data[begin:end] for begin, end in itertools.pairwise(offsets)]
    if block.bits_per_value == 1:
        return [bytes([bit]) for bit in np.unpackbits(block.data, count=block.num_values, bitorder="little")]
    width = block.bytes_per_value
    data = block.data.tobytes()
    return [data[index * width : (index + 1) * width] for index in range(block.num_values)]


def assert_same(found: DataBlock, expected: DataBlock) -> None:
    assert type(found) is type(expected)
    assert found.num_values == expected.num_values
    if isinstance(found, FixedWidthBlock) and isinstance(expected, FixedWidthBlock) and found.bits_per_value != 1:
        assert found.bits_per_value == expected.bits_per_value
        np.testing.assert_array_equal(found.data[: found.size_bytes], expected.data[: expected.size_bytes])
    else:
        assert values_of(found) == values_of(expected)


seeds = st.integers(0, 2**32 - 1)
characters = st.sampled_from(CHARACTERS)
counts = st.one_of(st.integers(1, 300), st.integers(1, 20_000))
