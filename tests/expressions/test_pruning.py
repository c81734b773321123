"""Pruning never loses a row, and loses few chances."""

from __future__ import annotations

import datetime
import functools
import random
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_format import expressions
from lance_format.errors import InvalidInputError
from lance_format.expressions import nodes
from lance_format.expressions.nodes import Column, Expression
from lance_format.expressions.pruning import ZoneVerdicts, classify
from lance_format.expressions.zones import ZoneStatistics
from tests.expressions.birds import make_table
from tests.expressions.predicates import predicate
from tests.expressions.zone_reference import (
    ORDERED_TYPES,
    blurred,
    random_sizes,
    random_tree,
    random_values,
    ranks_of,
    statistics_of,
)

_UNORDERED = {"li", "lstr", "st"}


def check(source: str | Expression, batch: pa.RecordBatch, statistics: Mapping[nodes.Path, ZoneStatistics]) -> int:
    """Hold verdicts against the rows that match; returns how many zones were decided."""
    bound = expressions.as_expression(source, batch.schema)
    verdicts = classify(bound, statistics, batch.num_rows)
    assert verdicts.boundaries[0] == 0
    assert verdicts.boundaries[-1] == batch.num_rows
    assert (np.diff(verdicts.boundaries) > 0).all()
    assert len(verdicts.may_match) == len(verdicts.must_match) == len(verdicts.boundaries) - 1
    try:
        mask = expressions.filter_mask(bound, batch).to_numpy(zero_copy_only=False)
    except InvalidInputError:  # some row has no value; then no rows are returned at all
        return 0
    for zone, (start, stop) in enumerate(zip(verdicts.boundaries[:-1], verdicts.boundaries[1:], strict=True)):
        assert verdicts.may_match[zone] or not mask[start:stop].any(), (source, start, stop)
        assert not verdicts.must_match[zone] or mask[start:stop].all(), (source, start, stop)
    return int((~verdicts.may_match | verdicts.must_match).sum())


def _leaves(batch: pa.RecordBatch) -> dict[nodes.Path, pa.Array]:
    leaves: dict[nodes.Path, pa.Array] = {(name,): batch[name] for name in batch.schema.names if name not in _UNORDERED}
    leaves["st", "x"] = pc.struct_field(batch["st"], "x")
    leaves["st", "Inner", "name"] = pc.struct_field(batch["st"], ["Inner", "name"])
    return leaves


@functools.cache
def _birds(seed: int) -> pa.RecordBatch:
    return make_table(seed).combine_chunks().to_batches()[0]


def _clustered_birds(rng: random.Random) -> pa.RecordBatch:
    batch = _birds(rng.randint(0, 5))
    leaves = _leaves(batch)
    values = leaves[rng.choice(sorted(leaves))]
    if isinstance(values, pa.DictionaryArray):
        values = values.dictionary_decode()
    return batch.take(pa.array(np.argsort(ranks_of(values), kind="stable")))


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32))
def test_no_predicate_loses_a_row(seed: int) -> None:
    rng = random.Random(seed)
    batch = _clustered_birds(rng)
    statistics = {}
    for path, values in _leaves(batch).items():
        if rng.random() < 0.9:
            found = statistics_of(values, random_sizes(rng, batch.num_rows))
            statistics[path] = blurred(found, rng) if rng.random() < 0.4 else found
    for _ in range(12):
        check(predicate(rng, depth=rng.randint(0, 3)), batch, statistics)


@pytest.mark.slow
@pytest.mark.parametrize("arrow_type", ORDERED_TYPES, ids=str)
def test_no_type_loses_a_row(arrow_type: pa.DataType) -> None:
    decided = 0
    for seed in range(8):
        rng = random.Random(seed)
        values = random_values(rng, arrow_type, rng.randint(1, 120))
        values = values.take(pa.array([None if rng.random() < 0.1 else row for row in range(len(values))], pa.int64()))
        if rng.random() < 0.7:
            values = values.take(pa.array(np.argsort(ranks_of(values), kind="stable")))
        other = values.take(pa.array([rng.randrange(len(values)) for _ in values]))
        batch = pa.record_batch({"x": values, "y": other})
        statistics = {
            (name,): statistics_of(batch[name], random_sizes(rng, batch.num_rows, most=12)) for name in ("x", "y")
        }
        if rng.random() < 0.3:
            statistics["x",] = blurred(statistics["x",], rng)
        for _ in range(10):
            decided += check(random_tree(rng, Column(("x",)), values, rng.randint(0, 3)), batch, statistics)
            between = nodes.Comparison(rng.choice(list(nodes.NEGATED)), Column(("x",)), Column(("y",)))
            check(between, batch, statistics)
    assert decided > 30


def _verdicts(text: str, columns: dict[str, Any], size: int = 4) -> ZoneVerdicts:
    """Classify zones of `size` rows, with exact statistics of all columns; checks them too."""
    batch = pa.record_batch(columns)
    sizes = [size] * (batch.num_rows // size)
    statistics: dict[nodes.Path, ZoneStatistics] = {}
    for name, values in zip(batch.schema.names, batch.columns, strict=True):
        if pa.types.is_struct(values.type):
            for field in values.type:
                statistics[name, field.name] = statistics_of(pc.struct_field(values, field.name), sizes)
        else:
            statistics[name,] = statistics_of(values, sizes)
    check(text, batch, statistics)
    return classify(expressions.as_expression(text, batch.schema), statistics, batch.num_rows)


_NAN = float("nan")
_DAY = datetime.date(2020, 1, 1)
_COLUMNS = {
    "x": pa.array([1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 9, 9, None, None, None, None, 5, None, 5, 5], pa.int32()),
    "y": pa.array([0] * 4 + [7] * 4 + [9] * 4 + [1] * 4 + [5] * 4, pa.int64()),
    "f": pa.array([1.0, 2, -0.0, 0.0] + [_NAN, 1, 1, 1] + [_NAN] * 4 + [None] * 4 + [-1.0, -0.0, None, -2]),
    "s": pa.array(["abc", "abd", "ab", "abz", *["b"] * 4, *["a%b"] * 4, *[None] * 4, "aé", "aê", "aè", "añ"]),
    "b": pa.array([True] * 4 + [False] * 4 + [True, False] * 2 + [None] * 4 + [True, None] * 2),
    "d": pa.array([_DAY + datetime.timedelta(row) for row in range(20)]),
    "dec": pa.array([Decimal(row) / 10 for row in range(20)], pa.decimal128(5, 1)),
    "st": pa.StructArray.from_arrays(
        [pa.array(range(20), pa.int16())], ["a"], mask=pa.array([row // 4 == 1 for row in range(20)])
    ),
}


@pytest.mark.parametrize(
    ("text", "may", "must"),
    [
        ("x = 3", "1....", "....."),
        ("3 = x", "1....", "....."),
        ("x = 9", "..1..", "..1.."),
        ("x != 9", "11..1", "11..."),
        ("not x = 9", "11..1", "11..."),
        ("x < 5", "1....", "1...."),
        ("x <= 5", "11..1", "1...."),
        ("5 < x", ".11..", "..1.."),
        ("x >= 5", ".11.1", ".11.."),
        ("x > 1000000000000", ".....", "....."),
        ("x < 1000000000000", "111.1", "111.."),
        ("x between 2 and 5", "11..1", "....."),
        ("x is null", "...11", "...1."),
        ("x is not null", "111.1", "111.."),
        ("x in (3, 9)", "1.1..", "..1.."),
        ("x not in (3, 9)", "11..1", ".1..."),
        ("x in (9, null)", "..1..", "..1.."),
        ("x not in (9, null)", ".....", "....."),
        ("x in (-5, 0, 100)", ".....", "....."),
        ("x is not distinct from 9", "..1..", "..1.."),
        ("x is distinct from 9", "11.11", "11.11"),
        ("x is distinct from null", "111.1", "111.."),
        ("x = y", ".11.1", "..1.."),
        ("x < y", ".1...", "....."),
        ("x > y", "11...", "1...."),
        ("x is not distinct from y", ".11.1", "..1.."),
        ("x = 3 and y = 7", ".....", "....."),
        ("x = 3 or y = 7", "11...", ".1..."),
        ("x = 9 and y = 9", "..1..", "..1.."),
        ("not (x < 5 or x is null)", ".11.1", ".11.."),
        ("(x > 4) is true", ".11.1", ".11.."),
        ("(x > 4) is not true", "1..11", "1..1."),
        ("(x > 4) is unknown", "...11", "...1."),
        ("f = 0", "1...1", "....."),
        ("f > 2", ".11..", "..1.."),
        ("f >= cast('nan' as double)", ".11..", "..1.."),
        ("f < cast('nan' as double)", "11..1", "1...."),
        ("f in (1, 3)", "11...", "....."),
        ("f < 0", "....1", "....."),
        ("f <= -0.0", "1...1", "....."),
        ("s like 'ab%'", "1....", "1...."),
        ("s not like 'ab%'", ".11.1", ".11.1"),
        ("s like 'a%'", "1.1.1", "1.1.1"),
        ("s like 'a\\%%'", "..1..", "..1.."),
        ("s like 'a\\%b'", "..1..", "..1.."),
        ("s like 'a\\%_'", "..1..", "....."),
        ("s like 'b'", ".1...", ".1..."),
        ("s like 'aé%'", "....1", "....."),
        ("s like '%'", "111.1", "111.1"),
        ("s like '_%'", "111.1", "....."),
        ("s ilike 'zz%'", "111.1", "....."),
        ("starts_with(s, 'b')", ".1...", ".1..."),
        ("s < 'abe'", "1.1..", "..1.."),
        ("substr(s, 1, 2) = 'ab'", "1....", "1...."),
        ("substr(s, 1, 2) in ('b', 'aê')", ".1..1", ".1..."),
        ("substr(s, 2, 1) = 'b'", "11111", "....."),
        ("left(s, 1) = 'a'", "1.1.1", "1.1.1"),
        ("left(s, -1) = 'a'", "11111", "....."),
        ("substr(s, 1, 2) is null", "...1.", "...1."),
        ("b", "1.1.1", "1...."),
        ("not b", ".11..", ".1..."),
        ("b = true", "1.1.1", "1...."),
        ("b is not true", ".1111", ".1.1."),
        ("b or x = 9", "1.1.1", "1.1.."),
        ("d >= date '2020-01-09'", "..111", "..111"),
        ("d = timestamp '2020-01-02 00:00:00'", "1....", "....."),
        ("cast(d as timestamp) < timestamp '2020-01-04 12:00:00'", "1....", "1...."),
        ("extract(year from d) = 2020", "11111", "11111"),
        ("extract(year from cast(d as timestamp)) < 2020", ".....", "....."),
        ("extract(day from d) = 3", "11111", "....."),
        ("date_trunc('week', d) >= timestamp '2020-01-13'", "...11", "...11"),
        ("dec > 1.55", "....1", "....1"),
        ("cast(dec as decimal(10, 3)) = cast(0.3 as decimal(5, 3))", "1....", "....."),
        ("dec < x", "111.1", "111.."),
        ("st.a < 10", "1.1..", "1...."),
        ("st.a is null", ".1...", ".1..."),
        ("cast(x as bigint) = y", ".11.1", "..1.."),
        ("try_cast(x as tinyint) = 9", "..1..", "....."),
        ("case when x < 5 then y = 7 when x is null then y = 1 else y = 9 end", "..11.", "..11."),
        ("x + 1 = 3", "11111", "....."),
        ("x = 3 and x + 1 = 4", "1....", "....."),
        ("true", "11111", "11111"),
        ("x = 1 and null", ".....", "....."),
        ("null or x = 9", "..1..", "..1.."),
    ],
)
def test_what_is_decided(text: str, may: str, must: str) -> None:
    verdicts = _verdicts(text, _COLUMNS)
    found = tuple("".join(".1"[int(flag)] for flag in flags) for flags in (verdicts.may_match, verdicts.must_match))
    if len(found[0]) == 1:  # no column was looked at
        found = (found[0] * 5, found[1] * 5)
    assert found == (may, must)


def test_zones_of_columns_need_not_be_the_same() -> None:
    batch = pa.record_batch({"x": list(range(12)), "y": list(range(12))})
    statistics = {("x",): statistics_of(batch["x"], [5, 0, 7]), ("y",): statistics_of(batch["y"], [4, 4, 4])}
    bound = expressions.as_expression("x >= 5 and y < 8", batch.schema)
    verdicts = classify(bound, statistics, batch.num_rows)
    assert verdicts.boundaries.tolist() == [0, 4, 5, 8, 12]
    assert verdicts.may_match.tolist() == verdicts.must_match.tolist() == [False, False, True, False]


def test_what_nothing_is_known_of_may_match() -> None:
    bound = expressions.as_expression("x = 5 or x != 5", pa.schema({"x": pa.int64()}))
    verdicts = classify(bound, {}, 10)
    assert (verdicts.boundaries.tolist(), verdicts.may_match.tolist()) == ([0, 10], [True])
    assert not verdicts.must_match.any()
    unknown = pa.nulls(2, pa.int64())
    nothing = ZoneStatistics(np.array([4, 6]), np.array([-1, -1]), unknown, unknown, exact=False)
    verdicts = classify(bound, {("x",): nothing}, 10)
    assert verdicts.may_match.all()
    assert not verdicts.must_match.any()


def test_years_of_zones_that_put_their_clock_back_say_nothing() -> None:
    moments = pa.array([1262304000, 1262304060], pa.timestamp("s", "America/New_York"))
    verdicts = _verdicts("extract(year from t) = 2010", {"t": moments}, size=1)
    assert verdicts.may_match.tolist() == [True, True]
    verdicts = _verdicts("extract(year from t) = 2011", {"t": moments.cast(pa.timestamp("s", "UTC"))}, size=1)
    assert verdicts.may_match.tolist() == [False, False]


def test_dates_out_of_the_range_of_a_function_may_match() -> None:
    days = pa.array([2**31 - 1, 0], pa.int32()).cast(pa.date32())
    bound = expressions.as_expression("date_trunc('year', d) = timestamp '1970-01-01'", pa.schema([("d", pa.date32())]))
    found = classify(bound, {("d",): statistics_of(days, [1, 1])}, 2)
    assert found.may_match.tolist() == [True, True]


def test_bounds_of_another_type_say_nothing() -> None:
    bound = expressions.as_expression("x = 5", pa.schema({"x": pa.int64()}))
    bounds = pa.array([100.0])
    other = ZoneStatistics(np.array([4]), np.array([0]), bounds, bounds, exact=True)
    assert classify(bound, {("x",): other}, 4).may_match.tolist() == [True]


def test_a_file_without_rows_has_no_zones() -> None:
    bound = expressions.as_expression("x = 5", pa.schema({"x": pa.int64()}))
    verdicts = classify(bound, {}, 0)
    assert verdicts.boundaries.tolist() == [0]
    assert len(verdicts.may_match) == len(verdicts.must_match) == 0


def test_statistics_of_other_rows_are_refused() -> None:
    bound = expressions.as_expression("x = 5", pa.schema({"x": pa.int64()}))
    found = statistics_of(pa.array([1, 2, 3]), [1, 2])
    with pytest.raises(InvalidInputError, match="the zones of x have 3 rows; there are 4"):
        classify(bound, {("x",): found}, 4)
    with pytest.raises(InvalidInputError, match="not a boolean"):
        classify(expressions.as_expression("x + 1", pa.schema({"x": pa.int64()})), {}, 4)
    with pytest.raises(InvalidInputError, match="of \\[1, 2\\] zones"):
        ZoneStatistics(np.array([4]), np.array([0]), pa.array([1]), pa.array([1, 2]), exact=True)


@pytest.mark.parametrize("arrow_type", [pa.int64(), pa.float64(), pa.string(), pa.decimal128(24, 2)], ids=str)
def test_thousands_of_constants_meet_thousands_of_zones(arrow_type: pa.DataType) -> None:
    rng = random.Random(0)
    low = pa.array(sorted(rng.randrange(10**6) for _ in range(5000)))
    numbers = pa.array([rng.randrange(10**6) for _ in range(2000)])

    def values(places: pa.Array) -> pa.Array:
        return (
            pc.utf8_lpad(places.cast(pa.string()), 7, "0")
            if pa.types.is_string(arrow_type)
            else places.cast(arrow_type)
        )

    zones = np.ones(5000, np.int64)
    found = ZoneStatistics(zones, zones * 0, values(low), values(pc.add(low, 100)), exact=True)
    predicate_in = nodes.In(Column(("x",)), values(numbers))
    bound = expressions.bind(predicate_in, pa.schema({"x": arrow_type}))
    places = np.array(numbers)
    expected = [((places >= start) & (places <= start + 100)).any() for start in low.to_pylist()]
    assert classify(bound, {("x",): found}, 5000).may_match.tolist() == expected
