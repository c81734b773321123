"""Conversions between what tables hold and what Spark exchanges."""

import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from connector.types.batches import split, to_spark, to_stored
from lance_format import InvalidInputError, NotSupportedError, SchemaMismatchError

UTC = datetime.UTC


def convert(array: pa.Array, target: pa.DataType) -> pa.Array:
    batch = pa.record_batch([array], names=["c"])
    return to_spark(batch, pa.schema([("c", target)])).column(0)


def test_columns_whose_types_agree_are_not_copied() -> None:
    batch = pa.record_batch({"a": [1, 2, None], "b": ["x", None, "z"]})
    schema = pa.schema([("b", pa.string()), ("a", pa.int64())])
    converted = to_spark(batch.slice(1), schema)
    assert converted.schema == schema
    assert converted.column("a").buffers()[1].address == batch.column("a").buffers()[1].address
    assert converted.column("b").buffers()[2].address == batch.column("b").buffers()[2].address


@pytest.mark.parametrize(
    ("array", "target", "expected"),
    [
        (pa.array([255, None], pa.uint8()), pa.int16(), [255, None]),
        (pa.array([65535, None], pa.uint16()), pa.int32(), [65535, None]),
        (pa.array([2**32 - 1, None], pa.uint32()), pa.int64(), [2**32 - 1, None]),
        (pa.array([2**64 - 1, None], pa.uint64()), pa.decimal128(20, 0), [Decimal(2**64 - 1), None]),
        (pa.array(np.array([1.5, 65504], np.float16)), pa.float32(), [1.5, 65504.0]),
        (pa.array(["é", None], pa.large_string()), pa.string(), ["é", None]),
        (pa.array([b"\0", None], pa.large_binary()), pa.binary(), [b"\0", None]),
        (pa.array([b"ab", None], pa.binary(2)), pa.binary(), [b"ab", None]),
        (pa.array(["x", None, "x"]).dictionary_encode(), pa.string(), ["x", None, "x"]),
        (pa.array([1, None], pa.time32("s")), pa.time64("ns"), [datetime.time(0, 0, 1), None]),
        (pa.array([Decimal("1.25"), None], pa.decimal256(38, 2)), pa.decimal128(38, 2), [Decimal("1.25"), None]),
        (pa.array([-1, None], pa.duration("s")), pa.duration("us"), [datetime.timedelta(seconds=-1), None]),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else "",
)
def test_values_are_kept(array: pa.Array, target: pa.DataType, expected: list[Any]) -> None:
    assert convert(array, target).to_pylist() == expected


@pytest.mark.parametrize("offset", [0, 1, 3, 9])
@pytest.mark.parametrize("kind", [pa.timestamp("ns"), pa.timestamp("ns", "Asia/Tokyo"), pa.duration("ns")], ids=str)
def test_nanoseconds_are_rounded_down(kind: pa.DataType, offset: int) -> None:
    values = [-1, 0, 1, -1000, -1001, None, 999, 1000, 1999, None, -(2**63), 2**63 - 1]
    target = pa.duration("us") if pa.types.is_duration(kind) else pa.timestamp("us", "UTC" if kind.tz else None)
    converted = convert(pa.array(values, pa.int64()).cast(kind).slice(offset), target)
    converted.validate(full=True)
    expected = [None if value is None else value // 1000 for value in values[offset:]]
    assert converted.cast(pa.int64()).to_pylist() == expected


def test_milliseconds_are_rounded_down_to_days() -> None:
    day = 86_400_000
    converted = convert(pa.array([-1, 0, day - 1, None, -day - 1], pa.int64()).view(pa.date64()), pa.date32())
    assert converted.cast(pa.int32()).to_pylist() == [-1, 0, 0, None, -2]


def test_empty_columns_are_converted() -> None:
    assert len(convert(pa.array([], pa.timestamp("ns")), pa.timestamp("us"))) == 0


@pytest.mark.parametrize(
    ("array", "target"),
    [
        (pa.array([2**60], pa.timestamp("s")), pa.timestamp("us")),
        (pa.array([2**62], pa.int64()).view(pa.date64()), pa.date32()),
        (pa.array([2**60], pa.duration("s")), pa.duration("us")),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else "",
)
def test_values_out_of_range_are_refused(array: pa.Array, target: pa.DataType) -> None:
    with pytest.raises(NotSupportedError, match=r"column 'c'.*does not fit Spark's type"):
        convert(array, target)


def test_a_null_slot_may_hold_anything() -> None:
    garbage = pa.Array.from_buffers(pa.date64(), 1, [pa.py_buffer(b"\0"), pa.py_buffer(np.array([2**62]))])
    assert convert(garbage, pa.date32()).to_pylist() == [None]


@pytest.mark.parametrize(
    ("array", "target"),
    [
        (pa.array([256], pa.int16()), pa.uint8()),
        (pa.array([-1], pa.int16()), pa.uint8()),
        (pa.array([1], pa.timestamp("us")), pa.timestamp("s")),
        (pa.array([2**62], pa.timestamp("us")), pa.timestamp("ns")),
        (pa.array([b"abc"]), pa.binary(2)),
        (pa.array([65520.0], pa.float32()), pa.float16()),
        (pa.array([[0.5, None], None, [-1e9, 1.0]], pa.list_(pa.float32())), pa.list_(pa.float16(), 2)),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else "",
)
def test_a_value_that_the_table_cannot_hold_is_refused(array: pa.Array, target: pa.DataType) -> None:
    with pytest.raises(SchemaMismatchError, match=r"column 'c.*does not fit the table's type"):
        to_stored(pa.record_batch([array], names=["c"]), pa.schema([("c", target)]))


def test_numbers_are_rounded_to_halves() -> None:
    numbers = pa.array([0.1, 65519, -1e-10, None, float("inf"), -float("inf"), float("nan")], pa.float32())
    stored = to_stored(pa.record_batch([numbers[1:]], names=["c"]), pa.schema([("c", pa.float16())])).column("c")
    assert list(map(str, stored.to_pylist())) == ["65504.0", "-0.0", "None", "inf", "-inf", "nan"]
    assert convert(numbers[:1], pa.float16()).cast(pa.float32()).to_pylist() == [0.0999755859375]
    assert convert(numbers[:0], pa.float16()).to_pylist() == []


@pytest.mark.parametrize(
    ("array", "values"),
    [
        (pa.array([2**40, None, 1, 1]), pa.int64()),
        (pa.array([Decimal(2**64 - 1), None]), pa.uint64()),
        (pa.array([0.5, None], pa.float32()), pa.float16()),
        (pa.array([True, None, False]), pa.bool_()),
        (pa.array([b"\0", None]), pa.large_binary()),
    ],
    ids=lambda value: "" if isinstance(value, pa.Array) else str(value),
)
def test_dictionaries_of_all_values_are_made(array: pa.Array, values: pa.DataType) -> None:
    target = pa.dictionary(pa.int8(), values)
    for given, wanted in ((array, target), (array[1:], target), (array[:0], target)):
        stored = to_stored(pa.record_batch([given], names=["c"]), pa.schema([("c", wanted)])).column("c")
        stored.validate(full=True)
        assert (stored.type, stored.to_pylist()) == (target, given.to_pylist())
    with pytest.raises(SchemaMismatchError, match=r"column 'c': .* does not fit the table's type"):
        to_stored(pa.record_batch({"c": list(range(300))}), pa.schema([("c", pa.dictionary(pa.int8(), pa.int64()))]))


def test_nulls_are_refused_where_the_table_has_none() -> None:
    batch = pa.record_batch({"c": [1, None]})
    with pytest.raises(SchemaMismatchError, match="column 'c' holds nulls"):
        to_stored(batch, pa.schema([pa.field("c", pa.int64(), nullable=False)]))


def test_a_batch_without_columns_keeps_its_rows() -> None:
    batch = pa.record_batch({"a": [1, 2, 3]})
    assert to_spark(batch, pa.schema([])).num_rows == 3
    assert [part.num_rows for part in split(batch.select([]), 2)] == [2, 1]


def test_batches_are_split_by_rows() -> None:
    batch = pa.record_batch({"a": range(10)})
    assert [part.num_rows for part in split(batch, 4)] == [4, 4, 2]
    assert list(split(batch.slice(0, 0), 4)) == []


def test_batches_are_split_by_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("connector.types.batches._MAX_BATCH_BYTES", 100)
    batch = pa.record_batch({"a": pa.array(["x" * 60, "y" * 60, "z" * 200, "", ""])})
    parts = list(split(batch, 10))
    assert pa.Table.from_batches(parts).to_pydict() == batch.to_pydict()
    assert [part.num_rows for part in parts] == [1, 1, 1, 2]


def sliced(array: pa.Array) -> pa.Array:
    """Return the same values as a slice of a longer array, whose other values would fail or mislead."""
    return pa.concat_arrays([array[:2], array, array[-2:]])[2:-2]


NESTED = [
    (pa.list_(pa.int8()), pa.list_(pa.field("element", pa.int8())), [[1, None], None, [], [2]]),
    (pa.large_list(pa.uint8()), pa.list_(pa.int16()), [[255], None, [None], []]),
    (pa.list_(pa.float16(), 2), pa.list_(pa.float32()), [[0.5, None], None, [1.5, 2.5]]),
    (
        pa.list_(pa.list_(pa.large_string())),
        pa.list_(pa.list_(pa.string())),
        [[["a"], None], None, [[]], [["b", None]]],
    ),
    (pa.map_(pa.uint16(), pa.large_string()), pa.map_(pa.int32(), pa.string()), [[(1, "a")], None, [], [(2, None)]]),
    (
        pa.struct([("a", pa.uint8()), ("b", pa.large_list(pa.bool_()))]),
        pa.struct([("b", pa.list_(pa.bool_())), ("a", pa.int64())]),
        [{"b": [True, None], "a": 1}, None, {"b": None, "a": 255}, {"b": [], "a": None}],
    ),
    (pa.list_(pa.int64()), pa.list_(pa.int32(), 2), [[1, None], None, [3, 4]]),
    (pa.list_(pa.int64()), pa.list_(pa.int32(), 2), [[1, 2], [3, 4], [5, 6]]),
    (pa.list_(pa.int64()), pa.list_(pa.int32(), 2), [None, None, None]),
    (pa.list_(pa.list_(pa.int64())), pa.large_list(pa.list_(pa.int32(), 1)), [[[1], None], None, [], [[3]]]),
    (pa.list_(pa.null()), pa.list_(pa.null()), [[None], None, []]),
]


@pytest.mark.parametrize(("source", "target", "values"), NESTED, ids=str)
@pytest.mark.parametrize("shape", ["whole", "sliced", "empty", "nulls"])
def test_nested_values_are_kept(source: pa.DataType, target: pa.DataType, values: list[Any], shape: str) -> None:
    array = pa.array(values, source)
    array = {"whole": array, "sliced": sliced(array), "empty": array[:0], "nulls": pa.nulls(3, source)}[shape]
    for convert_batch in (to_spark, to_stored):
        schema = pa.schema([("c", target)])
        batch = convert_batch(pa.record_batch([array], names=["c"]), schema)
        batch.validate(full=True)
        assert str(batch.schema) == str(schema)
        assert batch.column(0).to_pylist() == array.to_pylist()


def test_nested_columns_whose_types_agree_are_not_copied() -> None:
    array = pa.array([[{"x": ["a", "b"]}], None, [{"x": None}]])
    target = pa.list_(pa.field("element", pa.struct([("x", pa.list_(pa.field("element", pa.string())))])))
    addresses = [buffer and buffer.address for buffer in array[1:].buffers()]
    assert [buffer and buffer.address for buffer in convert(array[1:], target).buffers()] == addresses


def test_what_agrees_inside_of_a_struct_is_not_copied() -> None:
    array = pa.array([{"a": 1, "b": "text"}], pa.struct([("a", pa.uint8()), ("b", pa.string())]))
    converted = convert(array, pa.struct([("a", pa.int16()), ("b", pa.string())]))
    assert converted.field(1).buffers()[2].address == array.field(1).buffers()[2].address


def test_a_value_inside_that_does_not_fit_is_named_by_its_path() -> None:
    array = pa.array([{"m": [("k", [256])]}], pa.struct([("m", pa.map_(pa.string(), pa.list_(pa.int16())))]))
    target = pa.struct([("m", pa.map_(pa.string(), pa.list_(pa.uint8())))])
    with pytest.raises(
        SchemaMismatchError, match=r"column 'c\.m\.value\.element': int16 does not fit the table's type"
    ):
        to_stored(pa.record_batch([array], names=["c"]), pa.schema([("c", target)]))


@pytest.mark.parametrize("lengths", [[3, 2], [2, 3], [0, 2], [None, 1]])
def test_vectors_of_another_length_are_refused(lengths: list[int | None]) -> None:
    array = pa.array([None if length is None else [1.0] * length for length in lengths])
    wrong = next(length for length in lengths if length not in (None, 2))
    with pytest.raises(InvalidInputError, match=f"column 'c' has an array of {wrong} values, where vectors of 2"):
        to_stored(pa.record_batch([array], names=["c"]), pa.schema([("c", pa.list_(pa.float64(), 2))]))


NO_NULL = pa.field("x", pa.int64(), nullable=False)


@pytest.mark.parametrize(
    ("target", "good", "bad", "path"),
    [
        (pa.list_(NO_NULL), [[1], None, []], [[1], [None]], "c.element"),
        (pa.struct([NO_NULL]), [{"x": 1}, None], [{"x": None}], "c.x"),
        (pa.map_(pa.int64(), NO_NULL), [[(1, 2)], None, []], [[(1, None)]], "c.value"),
        (pa.list_(pa.struct([NO_NULL])), [[{"x": 1}, None], None], [[{"x": None}]], "c.element.x"),
        (
            pa.struct([pa.field("s", pa.struct([NO_NULL]), nullable=False)]),
            [None, {"s": {"x": 1}}],
            [None, {"s": {"x": None}}],
            "c.s.x",
        ),
        (pa.list_(NO_NULL.with_nullable(False), 2), [[1, 2], None], [[1, None]], "c.element"),
    ],
    ids=str,
)
def test_nulls_inside_are_refused_where_there_must_be_none(
    target: pa.DataType, good: list[Any], bad: list[Any], path: str
) -> None:
    schema = pa.schema([("c", target)])
    assert to_stored(pa.record_batch([pa.array(good, target)], names=["c"]), schema).column(0).to_pylist() == good
    with pytest.raises(SchemaMismatchError, match=rf"column '{path}' holds nulls"):
        to_stored(pa.record_batch([pa.array(bad, target)], names=["c"]), schema)
