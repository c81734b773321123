"""The first rows of groups against a model in Python."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_format.aggregation import FirstRows, GroupOrder
from tests.aggregation.test_partial import ORDERED, columns, key_of, rank, values_of

BY_KEY = GroupOrder(("key",), "value", ascending=False)


def first(batch: pa.RecordBatch, order: GroupOrder, limit: int, step: int, **options: Any) -> list[pa.RecordBatch]:
    rows = FirstRows(batch.schema, order, limit, **options)
    found: list[pa.RecordBatch] = []
    for start in range(0, batch.num_rows, step):
        found += rows.add(batch.slice(start, step))
    found += rows.finish()
    assert all(part.schema == batch.schema and part.num_rows and part.validate(full=True) is None for part in found)
    return found


def place(value: Any, order: GroupOrder) -> Any:
    """Return a value that is less the earlier a row comes."""
    if value is None:
        return (0 if order.nulls_first else 2, 0)
    return (1, rank(key_of(value) if isinstance(value, float) and value == value else value))


def is_before(one: Any, other: Any, order: GroupOrder) -> bool:
    left, right = place(one, order), place(other, order)
    if left[0] != right[0] or order.ascending or left[0] != 1:
        return bool(left < right)
    return bool(left > right)


@st.composite
def tables(draw: st.DrawFn) -> pa.RecordBatch:
    num_rows = draw(st.integers(0, 40))
    arrays = {f"key {index}": draw(columns(list(ORDERED), num_rows)) for index in range(draw(st.integers(0, 2)))}
    arrays["few"] = pa.array(draw(st.lists(st.integers(0, 3), min_size=num_rows, max_size=num_rows)), pa.int8())
    arrays["value"] = draw(columns(list(ORDERED), num_rows))
    return pa.record_batch({**arrays, "row": pa.array(range(num_rows), pa.int64())})


@given(st.data())
def test_first_rows_are_kept(data: st.DataObject) -> None:
    batch = data.draw(tables())
    keys = tuple(batch.schema.names[:-2])
    order = GroupOrder(keys, "value", data.draw(st.booleans()), data.draw(st.booleans()))
    limit = data.draw(st.integers(1, 4))
    function = data.draw(st.sampled_from(["rank", "dense_rank", "row_number"]))
    found = first(
        batch,
        order,
        limit,
        data.draw(st.integers(1, 41)),
        distinct=function == "dense_rank",
        drops_ties=function == "row_number",
        max_bytes=data.draw(st.sampled_from([0, 500, 1 << 20])),
        max_waiting_bytes=data.draw(st.sampled_from([0, 500, 1 << 20])),
    )
    kept = [row for part in found for row in part["row"].to_pylist()]
    assert len(kept) == len(set(kept))
    values = values_of(batch["value"])
    groups: dict[Any, list[int]] = {}
    for row, key in enumerate(zip(*(values_of(batch[name]) for name in keys), strict=True)):
        groups.setdefault(tuple(map(key_of, key)), []).append(row)
    for rows in groups.values():
        returned = set(rows) & set(kept)
        for row in set(rows) - returned:
            better = [values[other] for other in rows if is_before(values[other], values[row], order)]
            number = len(set(map(key_of, better))) if function == "dense_rank" else len(better)
            if function == "row_number":
                same = [o for o in returned if not is_before(values[row], values[o], order)]
                number = len(same)
            assert number >= limit


def of_groups(keys: Sequence[int], values: Sequence[int]) -> pa.RecordBatch:
    return pa.record_batch({"key": np.asarray(keys), "value": np.asarray(values)})


@pytest.mark.parametrize("order", ["ascending", "descending", "random"])
def test_few_rows_are_returned(order: str) -> None:
    random = np.random.default_rng(1)
    values = np.arange(400_000)
    if order == "random":
        random.shuffle(values)
    batch = of_groups(random.integers(0, 500, values.size), values[::-1] if order == "descending" else values)
    found = pa.Table.from_batches(first(batch, BY_KEY, 2, 30_000, max_waiting_bytes=1 << 20))
    assert found.num_rows == 1000
    best = {
        key: sorted(batch["value"].filter(pa.compute.equal(batch["key"], key)).to_pylist())[-2:] for key in (0, 499)
    }
    for key, expected in best.items():
        assert sorted(found.filter(pa.compute.field("key") == key)["value"].to_pylist()) == expected


def test_ties() -> None:
    batch = of_groups([1, 2] * 500, [7] * 1000)
    assert sum(part.num_rows for part in first(batch, BY_KEY, 2, 100)) == 1000
    assert sum(part.num_rows for part in first(batch, BY_KEY, 2, 100, drops_ties=True)) == 4
    batch = of_groups([1] * 100, [7, 8, 9, 10] * 25)
    assert Counter(pa.Table.from_batches(first(batch, BY_KEY, 2, 7, distinct=True))["value"].to_pylist()) == {
        9: 25,
        10: 25,
    }


def test_extreme_values_are_not_taken_for_nulls() -> None:
    least, most = -(2**63), 2**63 - 1
    for ascending, nulls_first in [(True, True), (True, False), (False, True), (False, False)]:
        for extreme in (least, most):
            values = pa.array([None, extreme, None, extreme], pa.int64())
            batch = pa.record_batch({"key": pa.array([1, 1, 1, 1]), "value": values})
            order = GroupOrder(("key",), "value", ascending, nulls_first)
            found = pa.Table.from_batches(first(batch, order, 2, 1, drops_ties=True))["value"].to_pylist()
            assert found.count(None if nulls_first else extreme) == 2


def test_rows_of_their_own_groups_pass() -> None:
    batch = of_groups(np.arange(1_500_000), np.arange(1_500_000))
    rows = FirstRows(batch.schema, BY_KEY, 1)
    passed = [
        sum(part.num_rows for part in rows.add(batch.slice(start, 100_000))) for start in range(0, 1_000_000, 100_000)
    ]
    assert passed[0] == 100_000
    assert sum(passed) == 1_000_000


def test_groups_of_no_more_rows_than_are_wanted_pass() -> None:
    batch = of_groups(np.arange(2_500_000) // 2, np.arange(2_500_000))
    rows = FirstRows(batch.schema, BY_KEY, 2)
    assert sum(part.num_rows for part in rows.add(batch)) == 2_500_000
    assert list(rows.finish()) == []


def test_no_rows() -> None:
    assert first(of_groups([], []), BY_KEY, 1, 1) == []
