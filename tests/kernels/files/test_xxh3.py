"""The hash of many blocks is that of the `xxhash` package."""

from __future__ import annotations

import numpy as np
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_format.kernels.files.xxh3 import MIN_BLOCK_BYTES, sum_blocks


@settings(deadline=None)
@given(st.integers(MIN_BLOCK_BYTES, 5000), st.integers(0, 4), st.integers(0, 9), st.integers(0, 2**32))
def test_sums_are_those_of_the_package(block_bytes: int, num_blocks: int, start: int, seed: int) -> None:
    content = np.random.default_rng(seed).bytes(start + num_blocks * block_bytes + 5)
    data = np.frombuffer(content, np.uint8)[start:]
    out = np.zeros(num_blocks, np.uint32)
    assert sum_blocks(data, block_bytes, out) == num_blocks
    blocks = [data[block * block_bytes :][:block_bytes].tobytes() for block in range(num_blocks)]
    assert out.tolist() == [xxhash.xxh3_64_intdigest(block) & 0xFFFFFFFF for block in blocks]
