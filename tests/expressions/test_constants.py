"""Constants reach other processes as they are, and text as far as there is one."""

from __future__ import annotations

import copy
import pickle

import pyarrow as pa
import pytest

from lance_format import ColumnBounds, InvalidInputError
from lance_format.expressions import bind, nodes, parse, to_sql
from lance_format.expressions.nodes import Literal

DAY = 86_400 * 10**6
FAR = {"first": -719_162, "last": 2_932_896, "after": 2_932_897, "before": -735_000, "latest": 100_000_000}
"""Days since 1970: the first and last of Python's `datetime`, and others outside of that."""


def scalar(number: int, arrow_type: pa.DataType) -> pa.Scalar:
    return pa.scalar(number, pa.int32() if arrow_type.bit_width == 32 else pa.int64()).cast(arrow_type)


CONSTANTS = [
    *(scalar(days, pa.date32()) for days in FAR.values()),
    *(scalar(days * 86_400_000, pa.date64()) for days in FAR.values()),
    *(scalar(days * DAY + 1, pa.timestamp("us", zone)) for days in FAR.values() for zone in (None, "UTC")),
    scalar(-(2**63), pa.timestamp("us", "America/New_York")),
    scalar(2**63 - 1, pa.timestamp("s")),
    scalar(1_001, pa.timestamp("ns")),
    scalar(1_001, pa.time64("ns")),
    scalar(2**63 - 1, pa.duration("ms")),
    scalar(1_001, pa.duration("ns")),
    pa.scalar(None, pa.date32()),
    pa.scalar(None),
    pa.scalar([scalar(FAR["after"], pa.date32()), None], pa.list_(pa.date32())),
    pa.scalar("owl"),
    pa.scalar(b"\xff"),
    pa.scalar(float("nan")),
]


def bits(value: pa.Scalar) -> pa.Buffer:
    return pa.record_batch([pa.array([value], value.type)], names=["value"]).serialize()


@pytest.mark.parametrize("value", CONSTANTS, ids=lambda value: str(value.type))
def test_constants_are_pickled_exactly(value: pa.Scalar) -> None:
    values = pa.array([value], value.type)
    for copied in (pickle.loads(pickle.dumps(Literal(value))), copy.deepcopy(Literal(value))):
        assert copied.value.type == value.type
        assert bits(copied.value).equals(bits(value))
    among = pickle.loads(pickle.dumps(nodes.In(nodes.Column(("d",)), values)))
    assert among.operand == nodes.Column(("d",))
    assert bits(among.values[0]).equals(bits(value))


@pytest.mark.parametrize("value", CONSTANTS, ids=lambda value: str(value.type))
def test_bounds_of_columns_are_pickled_exactly(value: pa.Scalar) -> None:
    copied = pickle.loads(pickle.dumps(ColumnBounds(7, 1, value, None)))
    assert (copied.num_rows, copied.num_nulls, copied.maximum) == (7, 1, None)
    assert bits(copied.minimum).equals(bits(value))


@pytest.mark.parametrize(
    "value",
    [value for value in CONSTANTS if pa.types.is_temporal(value.type) and value.is_valid],
    ids=lambda value: str(value.type),
)
def test_the_text_of_a_time_is_that_time(value: pa.Scalar) -> None:
    text = to_sql(Literal(value))
    if getattr(value.type, "tz", None) is None:
        schema = pa.schema([("d", value.type)])
        comparisons = [
            nodes.Comparison("=", nodes.Column(("d",)), constant) for constant in (Literal(value), parse(text))
        ]
        original, parsed = (bind(comparison, schema) for comparison in comparisons)
        assert parsed == original


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("date '+10000-01-01'", 2_932_897),
        ("date '-0001-12-31'", -719_529),
        ("date '+0000-01-01'", -719_528),
        ("CAST('-0044-03-15' AS date)", -735_525),
    ],
)
def test_years_with_a_sign(text: str, days: int) -> None:
    literal = parse(text)
    assert isinstance(literal, Literal)
    assert literal.value.cast(pa.int32()).as_py() == days


def test_signed_years_of_timestamps() -> None:
    schema = pa.schema({"t": pa.timestamp("us"), "z": pa.timestamp("us", "UTC"), "c": pa.time64("ns")})
    for text, number in [
        ("t = '+10000-01-01 00:00:00.000001'", 2_932_897 * DAY + 1),
        ("t = timestamp '+10000-01-01T00:00:00'", 2_932_897 * DAY),
        ("t = '-0001-12-31'", -719_529 * DAY),
        ("z = '+100000-01-01 02:00:00+02:00'", 35_804_722 * DAY),
        ("c = '00:00:00.000001001'", 1_001),
    ]:
        comparison = bind(parse(text), schema).expression
        assert isinstance(comparison, nodes.Comparison)
        assert isinstance(comparison.right, Literal)
        assert comparison.right.value.cast(pa.int64()).as_py() == number, text


def test_lists_of_constants_keep_nanoseconds() -> None:
    times = "arrow_cast(1001, 'Time64(Nanosecond)'), arrow_cast(1002, 'Time64(Nanosecond)')"
    among = parse(f"c IN ({times}, NULL)")
    assert isinstance(among, nodes.In)
    assert among.values.cast(pa.int64()).to_pylist() == [1001, 1002, None]
    listed = parse(f"[{times}]")
    assert isinstance(listed, Literal)
    assert listed.value.values.cast(pa.int64()).to_pylist() == [1001, 1002]


def test_intervals_that_no_number_holds_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="292,471 years"):
        parse("t > interval '2000000000 days'")
