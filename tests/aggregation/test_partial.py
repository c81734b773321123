"""Partial aggregation against a model in Python."""

from __future__ import annotations

import datetime
import decimal
import math
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_format import NotSupportedError
from lance_format.aggregation import Aggregate, PartialAggregation

DAY = datetime.date(1970, 1, 1)
FLOATS = st.sampled_from([0.0, -0.0, 1.5, -2.25, math.nan, math.inf, 3.0])
ORDERED = {
    pa.bool_(): st.booleans(),
    pa.int8(): st.integers(-128, 127),
    pa.uint32(): st.integers(0, 2**32 - 1),
    pa.int64(): st.sampled_from([0, 1, -1, 2**63 - 1, -(2**63), 2**62]),
    pa.float32(): FLOATS,
    pa.float64(): FLOATS,
    pa.decimal128(7, 2): st.sampled_from([decimal.Decimal(n).scaleb(-2) for n in (0, 9999999, -9999999, 150)]),
    pa.decimal128(38, 0): st.sampled_from([decimal.Decimal(n) for n in (0, 10**37, -(10**37), 5, -5, 2**64, 2**63)]),
    pa.string(): st.sampled_from(["", "a", "é", "zz", "eight is", "more than eight", "\0", "😀"]),
    pa.large_string(): st.sampled_from(["", "b", "c"]),
    pa.binary(): st.sampled_from([b"", b"\0", b"\xff\xfe", b"abcdefghi"]),
    pa.date32(): st.integers(-700_000, 2_900_000),
    pa.timestamp("us", "UTC"): st.integers(-(2**40), 2**40),
    pa.time64("ns"): st.integers(0, 10**9),
    pa.duration("us"): st.integers(-5, 5),
}
SUMMED = [pa.int8(), pa.int64(), pa.decimal128(7, 2), pa.decimal128(38, 0)]


def values_of(array: pa.Array) -> list[Any]:
    """Return Python values; of times the nanoseconds, of which Python's have only thousands."""
    return list((array.cast(pa.int64()) if pa.types.is_time64(array.type) else array).to_pylist())


def key_of(value: Any) -> Any:
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    return value


def rank(value: Any) -> Any:
    if isinstance(value, float):
        return (math.isnan(value), 0.0 if math.isnan(value) else value)
    return value.encode() if isinstance(value, str) else value


def merge(function: str, values: Iterable[Any]) -> Any:
    """Merge partial values, or values of rows."""
    present = [value for value in values if value is not None]
    if function in ("count", "count_all"):
        return sum(present)
    if not present:
        return None
    if function == "sum":
        with decimal.localcontext(prec=60):
            return sum(present[1:], present[0])
    return key_of((min if function == "min" else max)(present, key=rank))


def as_stored(array: pa.Array, start: int) -> pa.Array:
    """Return strings as a dictionary, whose items not all rows of a slice have; those of some slices as they are."""
    is_text = pa.types.is_string(array.type) or pa.types.is_binary(array.type)
    return array.dictionary_encode() if is_text and start % 3 else array


def aggregate(
    keys: Sequence[pa.Array],
    aggregates: Sequence[tuple[str, pa.Array | None]],
    num_rows: int,
    step: int,
    **options: int,
) -> list[pa.RecordBatch]:
    aggregation = PartialAggregation(
        pa.schema([(f"key {index}", array.type) for index, array in enumerate(keys)]),
        [
            Aggregate(f"value {index}", name, None if array is None else array.type)
            for index, (name, array) in enumerate(aggregates)
        ],
        **options,
    )
    found: list[pa.RecordBatch] = []
    for start in range(0, num_rows, step):
        count = min(step, num_rows - start)
        parts = [None if array is None else as_stored(array, start).slice(start, count) for _, array in aggregates]
        found += aggregation.add([as_stored(array, start).slice(start, count) for array in keys], parts, count)
    found += aggregation.finish()
    assert all(batch.schema == aggregation.schema and batch.validate(full=True) is None for batch in found)
    return found


def merged(batches: Sequence[pa.RecordBatch], functions: Sequence[str], num_keys: int) -> dict[Any, list[Any]]:
    groups: dict[Any, list[tuple[Any, ...]]] = {}
    for batch in batches:
        for row in zip(*map(values_of, batch.columns), strict=True):
            groups.setdefault(tuple(map(key_of, row[:num_keys])), []).append(row[num_keys:])
    return {
        key: [merge(name, values) for name, values in zip(functions, zip(*rows, strict=True), strict=True)]
        for key, rows in groups.items()
    }


def expected(
    keys: Sequence[pa.Array], aggregates: Sequence[tuple[str, pa.Array | None]], num_rows: int
) -> dict[Any, list[Any]]:
    groups: dict[Any, list[int]] = {} if keys else {(): []}
    columns = [values_of(array) for array in keys]
    for row in range(num_rows):
        groups.setdefault(tuple(key_of(column[row]) for column in columns), []).append(row)
    arguments = [[1] * num_rows if array is None else values_of(array) for _, array in aggregates]
    return {
        key: [
            merge(name, [int(values[row] is not None) if name == "count" else values[row] for row in rows])
            for (name, _), values in zip(aggregates, arguments, strict=True)
        ]
        for key, rows in groups.items()
    }


@st.composite
def columns(draw: st.DrawFn, types: Sequence[pa.DataType], num_rows: int) -> pa.Array:
    arrow_type = draw(st.sampled_from(types))
    values = draw(st.lists(st.none() | ORDERED[arrow_type], min_size=num_rows, max_size=num_rows))
    return pa.array(values, arrow_type)


@pytest.mark.slow
@given(st.data())
def test_merged_partial_rows_are_the_aggregates(data: st.DataObject) -> None:
    num_rows = data.draw(st.integers(0, 30))
    keys = [data.draw(columns(list(ORDERED), num_rows)) for _ in range(data.draw(st.integers(0, 3)))]
    aggregates: list[tuple[str, pa.Array | None]] = [("count_all", None)]
    for _ in range(data.draw(st.integers(0, 4))):
        name = data.draw(st.sampled_from(["sum", "min", "max", "count"]))
        aggregates.append((name, data.draw(columns(SUMMED if name == "sum" else list(ORDERED), num_rows))))
    found = aggregate(
        keys, aggregates, num_rows, data.draw(st.integers(1, 31)), max_bytes=data.draw(st.integers(0, 2000))
    )
    assert merged(found, [name for name, _ in aggregates], len(keys)) == expected(keys, aggregates, num_rows)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(
    ("arrow_type", "most"),
    [(pa.int64(), 2**63 - 1), (pa.decimal128(5, 2), 99999), (pa.decimal128(38, 2), 10**38 - 1)],
    ids=str,
)
def test_sums_that_exceed_their_type_are_several_rows(arrow_type: pa.DataType, most: int, sign: int) -> None:
    with decimal.localcontext(prec=60):
        value: Any = sign * most if arrow_type == pa.int64() else decimal.Decimal(sign * most).scaleb(-2)
        values = pa.array([value, value, value, None], arrow_type)
        found = aggregate([pa.array([1, 1, 1, 2])], [("sum", values), ("count", values), ("max", values)], 4, 4)
        rows = [row for batch in found for row in zip(*[array.to_pylist() for array in batch.columns], strict=True)]
        assert len(rows) > 2
        assert merge("sum", [row[1] for row in rows if row[0] == 1]) == 3 * value
        assert sum(row[2] for row in rows) == 3
        assert [row for row in rows if row[0] == 2] == [(2, None, 0, None)]


def test_sums_of_floats_are_those_of_their_values() -> None:
    values = pa.array([0.1, 0.2, None, math.nan, 0.4, None], pa.float32())
    (batch,) = aggregate([pa.array([1, 1, 1, 2, 1, 3])], [("sum", values)], 6, 6)
    sums = batch.column(1).to_pylist()
    assert sums[0] == sum(pa.array([0.1, 0.2, 0.4], pa.float32()).cast(pa.float64()).to_pylist())
    assert math.isnan(sums[1])
    assert sums[2] is None


def test_no_rows_without_keys_are_one_row() -> None:
    empty = pa.array([], pa.int64())
    (batch,) = aggregate([], [("count_all", None), ("sum", empty), ("min", empty)], 0, 1)
    assert batch.to_pylist() == [{"value 0": 0, "value 1": None, "value 2": None}]
    assert aggregate([empty], [("count_all", None)], 0, 1) == []


@pytest.mark.parametrize("num_rows", [0, 1, 5])
def test_neither_keys_nor_functions_are_one_row(num_rows: int) -> None:
    (batch,) = aggregate([], [], num_rows, 1)
    assert (batch.num_rows, batch.num_columns) == (1, 0)


def test_rows_with_different_keys_are_returned_one_by_one() -> None:
    num_rows = 1 << 18
    keys = pa.array(range(num_rows))
    values = pa.array([None, 7], pa.decimal128(9, 2)).take(pa.array([row % 2 for row in range(num_rows)]))
    functions = [("sum", values), ("count", values), ("count_all", None), ("min", values)]
    found = aggregate([keys], functions, num_rows, 50_000)
    table = pa.Table.from_batches(found)
    assert table.num_rows == num_rows
    assert len(found) == 1 + 4  # The first 100,000 rows were grouped.
    assert table["value 0"].to_pylist() == table["value 3"].to_pylist() == values.to_pylist()
    assert table["value 1"].to_pylist() == values.is_valid().cast(pa.int64()).to_pylist()
    assert set(table["value 2"].to_pylist()) == {1}


def test_grouping_is_tried_again() -> None:
    rows = 1 << 16
    aggregation = PartialAggregation(pa.schema([("key", pa.int64())]), [Aggregate("count", "count_all", None)])
    different, same = pa.array(range(rows)), pa.array([5] * rows)
    sizes = [[batch.num_rows for batch in aggregation.add([different], [None], rows)]]
    sizes += [[batch.num_rows for batch in aggregation.add([same], [None], rows)] for _ in range(17)]
    assert sizes == [[rows]] + [[rows]] * 16 + [[]]
    assert [batch.to_pylist() for batch in aggregation.finish()] == [[{"key": 5, "count": rows}]]


def test_groups_are_returned_when_they_fill_the_memory() -> None:
    num_rows = 1 << 19
    keys = pa.array([f"key {row % 30_000}" for row in range(num_rows)])
    whole = aggregate([keys], [("count_all", None)], num_rows, 1 << 16)
    assert [batch.num_rows for batch in whole] == [30_000]
    parts = aggregate([keys], [("count_all", None)], num_rows, 1 << 16, max_bytes=1 << 20)
    assert len(parts) > 1
    assert merged(parts, ["count_all"], 1) == merged(whole, ["count_all"], 1)


@pytest.mark.parametrize("function", ["sum", "min", "max"])
def test_types_without_an_order_are_refused(function: str) -> None:
    with pytest.raises(NotSupportedError, match=f"{function} of list"):
        PartialAggregation(pa.schema([]), [Aggregate("value", function, pa.list_(pa.int64()))])
