"""First bytes of byte strings, against slices of them."""

from __future__ import annotations

from itertools import takewhile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_format.kernels.columns import byte_order as kernels

_tails = st.binary(max_size=12) | st.sampled_from([b"", b"\0", b"\0\0", b"\xff" * 8, b"\0" * 9])
_strings = st.builds(
    lambda prefix, tails: [prefix + tail for tail in tails], st.binary(max_size=20), st.lists(_tails, min_size=1)
)


def _prefix_length(values: list[bytes]) -> int:
    return len([*takewhile(lambda found: len(set(found)) == 1, zip(*values, strict=False))])


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@given(values=_strings, most=st.integers(0, 24), before=st.binary(max_size=9), after=st.binary(max_size=9))
def test_keys(dtype: type[np.signedinteger], values: list[bytes], most: int, before: bytes, after: bytes) -> None:
    data = np.frombuffer(before + b"".join(values) + after, np.uint8)
    offsets = np.cumsum([len(before), *map(len, values)]).astype(dtype)
    rows = np.arange(len(values))[::-1].copy()
    prefix = _prefix_length(values)
    assert kernels.common_prefix(data, offsets, rows, most) == min(prefix, most)
    for skipped in {0, min(prefix, most), prefix}:
        keys = np.empty(rows.size, np.uint64)
        assert kernels.order_keys(data, offsets, rows, skipped, keys) == rows.size
        firsts = [values[row][skipped : skipped + 8].ljust(8, b"\0") for row in rows]
        assert keys.tolist() == [int.from_bytes(first, "big") for first in firsts]


@given(values=_strings)
def test_rows_that_are_left_out_are_not_looked_at(values: list[bytes]) -> None:
    texts = [b"other", *values, b"another"]
    data, offsets = np.frombuffer(b"".join(texts), np.uint8), np.cumsum([0, *map(len, texts)])
    rows = np.arange(1, len(texts) - 1)
    assert kernels.common_prefix(data, offsets, rows, 64) == _prefix_length(values)
