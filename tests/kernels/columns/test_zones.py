"""The bounds of zones against plain Python."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_format.kernels.columns import zones as kernels

_PIECES = st.lists(st.sampled_from([b"", b"\x00", b"a", b"ab", b"12345678", b"\xff" * 8, b"https://www."]), max_size=5)
_STRINGS = st.lists(_PIECES.map(b"".join), min_size=1, max_size=40)


def _starts(count: int, size: int) -> np.ndarray:
    return np.append(np.arange(0, count, size), count)


@given(values=_STRINGS, size=st.integers(1, 40), data=st.data())
def test_byte_strings(values: list[bytes], size: int, data: st.DataObject) -> None:
    offsets = np.cumsum([0, *map(len, values)]).astype(np.int32)
    valid = np.array(data.draw(st.lists(st.booleans(), min_size=len(values), max_size=len(values))), np.bool_)
    starts = _starts(len(values), size)
    for mask in (valid, np.empty(0, np.bool_)):
        lower, upper = np.empty((2, len(starts) - 1), np.int64)
        kernels.find_string_bounds(offsets, np.frombuffer(b"".join(values), np.uint8), mask, starts, lower, upper)
        for zone, start in enumerate(starts[:-1]):
            kept = [values[row] for row in range(start, starts[zone + 1]) if not mask.size or mask[row]]
            assert (lower[zone] < 0) == (upper[zone] < 0) == (not kept)
            assert not kept or (values[lower[zone]], values[upper[zone]]) == (min(kept), max(kept))


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int32, np.uint64, np.int64])
@given(data=st.data(), size=st.integers(1, 40))
def test_integers(dtype: type[np.integer], data: st.DataObject, size: int) -> None:
    info = np.iinfo(dtype)
    edges = st.sampled_from([int(info.min), int(info.max), 0, 1])
    rows = data.draw(st.lists(st.none() | edges | st.integers(0, 9), min_size=1, max_size=100))
    values, valid = np.array([row or 0 for row in rows], dtype), np.array([row is not None for row in rows], np.bool_)
    starts = _starts(len(rows), size)
    for mask in (valid, np.empty(0, np.bool_)):
        lower, upper = np.full(len(starts) - 1, info.max, dtype), np.full(len(starts) - 1, info.min, dtype)
        kernels.bound_integers(values, mask, starts, lower, upper)
        for zone, start in enumerate(starts[:-1]):
            kept = [int(values[row]) for row in range(start, starts[zone + 1]) if not mask.size or mask[row]]
            assert (lower[zone], upper[zone]) == ((min(kept), max(kept)) if kept else (info.max, info.min))


_ROWS = st.lists(st.sampled_from([True, False, None]), min_size=1, max_size=40) | st.builds(
    lambda value, count: [value] * count, st.booleans(), st.integers(8, 40)
)


@given(rows=_ROWS, size=st.integers(1, 40), offset=st.integers(0, 9))
def test_booleans(rows: list[bool | None], size: int, offset: int) -> None:
    values, valid = np.array(rows, np.bool_), np.array([row is not None for row in rows], np.bool_)
    bits = np.packbits(np.concatenate([np.zeros(offset, np.bool_), values]), bitorder="little")
    starts = _starts(len(rows), size)
    for mask in (valid, np.empty(0, np.bool_)):
        lower, upper = np.full(len(starts) - 1, 127, np.int8), np.full(len(starts) - 1, -128, np.int8)
        kernels.bound_booleans(bits, offset, mask, starts, lower, upper)
        for zone, start in enumerate(starts[:-1]):
            kept = [bool(values[row]) for row in range(start, starts[zone + 1]) if not mask.size or mask[row]]
            assert (lower[zone], upper[zone]) == ((min(kept), max(kept)) if kept else (127, -128))


@pytest.mark.parametrize("width", [2, 4])
@given(data=st.data())
def test_wide_integers(width: int, data: st.DataObject) -> None:
    limit = 2 ** (64 * width - 1)
    edges = st.sampled_from([0, -1, 1, 2**64, -(2**64), 2**64 - 1, 2**63, limit - 1, -limit])
    values = data.draw(st.lists(st.one_of(edges, st.integers(-limit, limit - 1)), min_size=1, max_size=30))
    words = np.frombuffer(b"".join(value.to_bytes(8 * width, "little", signed=True) for value in values), np.uint64)
    starts = _starts(len(values), 7)
    lower, upper = np.empty((2, len(starts) - 1), np.int64)
    kernels.find_wide_bounds(words, width, np.empty(0, np.bool_), starts, lower, upper)
    for zone, start in enumerate(starts[:-1]):
        kept = values[start : starts[zone + 1]]
        assert (values[lower[zone]], values[upper[zone]]) == (min(kept), max(kept))
