"""Roaring bitmaps of array containers, against the specification."""

from __future__ import annotations

import struct

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lance_format.kernels.columns import id_bitmaps as kernels

_ids = st.builds(lambda high, low: high << 16 | low, st.sampled_from([0, 1, 2, 65535]), st.integers(0, 65535))
_bitmaps = st.lists(st.sets(_ids, min_size=1, max_size=20).map(sorted), max_size=12)


def _bitmap(ids: list[int]) -> bytes:
    highs = sorted({number >> 16 for number in ids})
    lows = [[number & 0xFFFF for number in ids if number >> 16 == high] for high in highs]
    keys = [struct.pack("<HH", high, len(low) - 1) for high, low in zip(highs, lows, strict=True)]
    first, sizes = 8 + 8 * len(highs), [2 * len(low) for low in lows]
    places = [struct.pack("<I", first + sum(sizes[:index])) for index in range(len(highs))]
    values = [struct.pack(f"<{len(low)}H", *low) for low in lows]
    return b"".join([struct.pack("<II", 12346, len(highs)), *keys, *places, *values])


@given(bitmaps=_bitmaps, fragment=st.integers(0, 2**32 - 1), data=st.data())
def test_arrays(bitmaps: list[list[int]], fragment: int, data: st.DataObject) -> None:
    chosen = data.draw(st.lists(st.booleans(), min_size=len(bitmaps), max_size=len(bitmaps)))
    ids, containers, parts = [], [], []
    for bitmap in bitmaps:
        parts.append(len(containers))
        for index, number in enumerate(bitmap):
            if not index or bitmap[index - 1] >> 16 != number >> 16:
                containers.append(len(ids))
            ids.append(fragment << 32 | number)
    containers, parts = [*containers, len(ids)], [*parts, len(containers)]
    expected = [_bitmap(bitmap) for bitmap in bitmaps]
    positions = np.cumsum([3, *(len(written) + 5 for written in expected)])  # Other bytes stay as they are.
    out = np.full(positions[-1], 0xAA, np.uint8)
    count = kernels.write_arrays(
        np.array(ids, np.uint64),
        np.array(containers, np.int64),
        np.array(parts, np.int64),
        np.array(chosen, np.bool_),
        positions[:-1],
        out,
    )
    wanted = bytearray(b"\xaa" * out.size)
    for is_chosen, written, position in zip(chosen, expected, positions.tolist(), strict=False):
        if is_chosen:
            wanted[position : position + len(written)] = written
    assert out.tobytes() == bytes(wanted)
    assert count == sum(len(written) for is_chosen, written in zip(chosen, expected, strict=True) if is_chosen)


def test_a_full_array() -> None:
    ids = np.arange(4096, dtype=np.uint64) * np.uint64(16)
    expected = _bitmap(ids.tolist())
    out = np.zeros(len(expected), np.uint8)
    one = np.array([True])
    start = np.zeros(1, np.int64)
    assert kernels.write_arrays(ids, np.array([0, 4096]), np.array([0, 1]), one, start, out) == len(expected)
    assert out.tobytes() == expected


@given(numbers=st.lists(st.integers(0, 2**32 - 1), max_size=20))
def test_numbers(numbers: list[int]) -> None:
    out = np.zeros(6 * len(numbers), np.uint8)
    positions = 6 * np.arange(len(numbers))
    assert kernels.write_numbers(np.array(numbers, np.int64), positions, out) == 4 * len(numbers)
    assert out.tobytes() == b"".join(struct.pack("<IH", number, 0) for number in numbers)
