"""Rows that a mask selects are those that Arrow selects."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_format.masks import filter_rows, filter_values, indices

_NUM_ROWS = 10_000


def _mask(share: float, offset: int, num_rows: int = _NUM_ROWS) -> pa.BooleanArray:
    return pa.array(np.random.default_rng(0).random(num_rows + offset) < share).slice(offset)


@given(share=st.sampled_from([0.0, 0.01, 0.1, 0.5, 0.9, 1.0]), offset=st.integers(0, 70), start=st.integers(0, 20))
def test_values(share: float, offset: int, start: int) -> None:
    num_rows = _NUM_ROWS - start
    numbers = np.random.default_rng(1).integers(0, 100, _NUM_ROWS)
    mask = _mask(share, offset, num_rows)
    for array in (
        pa.array(numbers.astype(np.uint8)),
        pa.array(numbers.astype(np.float16)),
        pa.array(numbers.astype(np.float32)),
        pa.array(numbers).cast(pa.timestamp("us")),
        pa.array(numbers, mask=numbers == 7),
        pa.array(numbers > 50),
        pa.array(numbers).cast(pa.decimal128(25, 2)),
        pa.array(numbers).cast(pa.string()),
        *[
            pa.array(numbers.astype(np.int32), mask=numbers % 3 == 0).cast(to)
            for to in (pa.uint8(), pa.date32(), pa.decimal128(25, 2), pa.string(), pa.large_string())
        ],
        pa.array(numbers > 50, mask=numbers == 7),
        pa.array(numbers % 7, mask=numbers == 7).cast(pa.string()).dictionary_encode(),
        pa.array(numbers % 7).dictionary_encode(),
        pa.nulls(_NUM_ROWS, pa.int32()),
        pa.nulls(_NUM_ROWS, pa.bool_()),
        pa.nulls(_NUM_ROWS, pa.string()),
        pa.nulls(_NUM_ROWS),
        pa.array([None, b"owl"] * (_NUM_ROWS // 2), pa.binary(3)),
    ):
        found = filter_values(array.slice(start), mask)
        found.validate(full=True)
        assert found == array.slice(start).filter(mask)


@given(
    share=st.sampled_from([0.0, 0.0005, 0.01, 0.1, 0.9, 1.0]), offset=st.integers(0, 70), num_rows=st.integers(0, 9000)
)
def test_indices(share: float, offset: int, num_rows: int) -> None:
    mask = pa.concat_arrays([_mask(share, 0, offset + num_rows), pa.array([True] * 20)]).slice(offset, num_rows)
    found = indices(mask)
    assert found.dtype == np.int64
    assert found.tolist() == np.flatnonzero(mask.to_numpy(zero_copy_only=False)).tolist()


@pytest.mark.parametrize("share", [0.01, 0.5])
def test_rows(share: float) -> None:
    numbers = pa.array(range(_NUM_ROWS))
    schema = pa.schema([pa.field("n", pa.int64(), nullable=False), ("s", pa.string()), ("m", pa.int64())])
    batch = pa.RecordBatch.from_arrays([numbers, numbers.cast(pa.string()), numbers], schema=schema)
    mask = _mask(share, 3)
    assert filter_rows(batch, mask).equals(batch.filter(mask), check_metadata=True)
    assert filter_rows(batch.slice(0, 100), mask.slice(0, 100)) == batch.slice(0, 100).filter(mask.slice(0, 100))
