"""Expressions that the reference refuses or leaves open, compared with plain Python."""

from __future__ import annotations

import datetime
import itertools
import operator
import random
from decimal import Decimal
from fractions import Fraction

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lance_format import expressions
from lance_format.errors import InvalidInputError
from lance_format.expressions import nodes
from tests.expressions.birds import make_table
from tests.expressions.predicates import TERMS, predicate

_OPERATORS = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_COLUMNS = {
    "i8": pa.array([-128, -1, 0, 1, 127, None], pa.int8()),
    "u8": pa.array([0, 1, 255, None], pa.uint8()),
    "i64": pa.array([-(2**63), -1, 2**53 + 1, 2**63 - 1, None], pa.int64()),
    "u64": pa.array([0, 2**64 - 1, None], pa.uint64()),
    "dec": pa.array([Decimal("-9.99"), Decimal("0.10"), Decimal("1.50"), Decimal("9.99"), None], pa.decimal128(3, 2)),
}
_NUMBERS = [
    *("0", "1", "-1", "1.5", "-0.5", "0.1", "127", "128", "-128", "-129", "255", "256", "1000", "9.99", "9.995", "10"),
    *("9007199254740993", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "18446744073709551616"),
    *("-18446744073709551616", "1e30", "-1e30", "1e300", "1" + "0" * 80),
]


def _evaluate(text: str, batch: pa.RecordBatch) -> list[object]:
    return expressions.evaluate(expressions.as_expression(text, batch.schema), batch).to_pylist()


@pytest.mark.parametrize("name", _COLUMNS)
@pytest.mark.parametrize("text", _NUMBERS)
def test_a_number_of_any_size_compares_exactly_with_a_column_of_any_width(name: str, text: str) -> None:
    batch = pa.record_batch({"x": _COLUMNS[name]})
    for sign, compare in _OPERATORS.items():
        expected = [None if x is None else compare(Fraction(x), Fraction(text)) for x in batch["x"].to_pylist()]
        assert _evaluate(f"x {sign} {text}", batch) == expected, sign
        mirrored = nodes.MIRRORED[sign]  # type: ignore[index]
        assert _evaluate(f"{text} {mirrored} x", batch) == expected, sign


@pytest.mark.parametrize("name", _COLUMNS)
def test_values_out_of_range_are_among_no_column(name: str) -> None:
    batch = pa.record_batch({"x": _COLUMNS[name]})
    wanted = [Fraction(text) for text in _NUMBERS]
    expected = [None if x is None else Fraction(x) in wanted for x in batch["x"].to_pylist()]
    assert _evaluate(f"x in ({', '.join(_NUMBERS)})", batch) == expected
    unknown = [True if found else None for found in expected]
    assert _evaluate(f"x in ({', '.join(_NUMBERS)}, null)", batch) == unknown
    assert _evaluate("x is not distinct from 1e30", batch) == [False] * len(batch)
    assert _evaluate("x is distinct from null", batch) == [x is not None for x in batch["x"].to_pylist()]


def test_infinities_and_nan_lie_beyond_all_integers() -> None:
    batch = pa.record_batch({"x": _COLUMNS["i8"]})
    for text, sign in (("inf", "<"), ("-inf", ">"), ("nan", "<")):
        number = f"cast('{text}' as double)"
        assert _evaluate(f"x {sign} {number}", batch) == [True] * 5 + [None]
        assert _evaluate(f"x = {number}", batch) == [False] * 5 + [None]


def test_dates_compare_with_moments_and_texts() -> None:
    days = [datetime.date(1969, 12, 31), datetime.date(1970, 1, 1), datetime.date(1970, 1, 2), None]
    batch = pa.record_batch({"d": pa.array(days), "ts": pa.array(days).cast(pa.timestamp("s"))})
    assert _evaluate("d > timestamp '1970-01-01 12:00:00'", batch) == [False, False, True, None]
    assert _evaluate("d >= timestamp '1970-01-01 00:00:00'", batch) == [False, True, True, None]
    assert _evaluate("d = timestamp '1970-01-01 00:00:00.000001'", batch) == [False, False, False, None]
    assert _evaluate("d < '1970-01-01'", batch) == [True, False, False, None]
    assert _evaluate("ts <= '1970-01-01T00:00:00.999999999'", batch) == [True, True, False, None]
    assert _evaluate("ts = date '1970-01-02'", batch) == [False, False, True, None]
    assert _evaluate("d in ('1970-01-01', '1970-01-02')", batch) == [False, True, True, None]
    assert _evaluate("ts + interval '2 days' > '1970-01-03'", batch) == [False, False, True, None]


def test_moments_without_a_zone_are_of_the_clock_of_the_column() -> None:
    moment = datetime.datetime(2020, 1, 1, 17, tzinfo=datetime.UTC)
    batch = pa.record_batch({"ts": pa.array([moment], pa.timestamp("us", "America/New_York"))})
    assert _evaluate("ts = timestamp '2020-01-01 12:00:00'", batch) == [True]
    assert _evaluate("ts = '2020-01-01T17:00:00Z'", batch) == [True]


def test_nan_equals_itself_and_exceeds_all_whatever_its_sign() -> None:
    nan = float("nan")
    batch = pa.record_batch({"x": [nan, -nan, float("inf"), None], "y": [-nan, 1.0, nan, nan]})
    assert _evaluate("x = y", batch) == [True, False, False, None]
    assert _evaluate("x < y", batch) == [False, False, True, None]
    assert _evaluate("x >= y", batch) == [True, True, False, None]
    assert _evaluate("x <=> y", batch) == [True, False, False, False]
    assert _evaluate("x in (1.0, cast('nan' as double))", batch) == [True, True, False, None]


def test_zeros_of_both_signs_are_equal() -> None:
    batch = pa.record_batch({"x": [0.0, -0.0, 1.0], "y": [-0.0, 0.0, 0.0]})
    assert _evaluate("x = y", batch) == [True, True, False]
    assert _evaluate("x < y or x > y", batch) == [False, False, True]
    assert _evaluate("x in (-0.0)", batch) == [True, True, False]


def test_case_computes_a_branch_only_where_it_is_taken() -> None:
    batch = pa.record_batch({"x": [0, 2, None, -4], "y": [1, 2, 3, 4]})
    assert _evaluate("case when x != 0 then 8 / x else y end", batch) == [1, 4, 3, -2]
    assert _evaluate("case x when 0 then 'none' when 2 then 'two' end", batch) == ["none", "two", None, None]
    assert _evaluate("case when x > 0 then y end", batch) == [None, 2, None, None]
    assert _evaluate("case when x is null then 1 else 2.5 end", batch) == [2.5, 2.5, 1.0, 2.5]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("s like 'a!%b' escape '!'", [True, False, False, False]),
        ("s like 'a\\%b'", [True, False, False, False]),
        ("s not like 'a_b' escape '!'", [False, False, True, True]),
        ("s like 'a!\\b' escape '!'", [False, False, False, False]),
        ("substr(s, 2)", ["%b", "xb", "", "ü"]),
        ("substring(s, 0, 2)", ["a", "a", "", "ä"]),
        ("trim(s)", ["a%b", "axb", "", "äü"]),
        ("b is unknown", [False, False, True, False]),
        ("floor(x)", [1.0, -2.0, 0.0, 2.0]),
        ("ceil(x)", [2.0, -1.0, 0.0, 3.0]),
        ("extract(year from d)", [1970] * 4),
        ("if(b, 'yes', 'no')", ["yes", "no", "no", "yes"]),
        ('s = "axb"', [False, True, False, False]),
        ("`s` == 'axb'", [False, True, False, False]),
        ("S = 'axb'", [False, True, False, False]),
        ("l['k']", [1, 2, None, 4]),
    ],
)
def test_what_the_reference_does_not_parse(text: str, expected: list[object]) -> None:
    batch = pa.record_batch(
        {
            "s": ["a%b", "axb", "", "äü"],
            "b": [True, False, None, True],
            "x": [1.5, -1.5, 0.0, 2.5],
            "d": pa.array([0] * 4, pa.int32()).cast(pa.date32()),
            "l": [{"k": 1}, {"k": 2}, None, {"k": 4}],
        }
    )
    assert _evaluate(text, batch) == expected


def test_items_below_null_lists_are_not_seen() -> None:
    lists = pa.ListArray.from_arrays([0, 2, 4, 5], ["a", "b", "c", "d", "e"], mask=pa.array([False, True, False]))
    batch = pa.record_batch({"l": lists, "x": ["b", "c", "e"]})
    assert _evaluate("array_has(l, 'c')", batch) == [False, None, False]
    assert _evaluate("array_has(l, x)", batch) == [True, None, True]
    assert _evaluate("array_has_any(l, ['d', 'e'])", batch) == [False, None, True]
    assert _evaluate("array_has_all(l, ['a', 'b'])", batch) == [True, None, False]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "it is empty"),
        ("x =", "is no SQL expression"),
        ("(x = 1", "is no SQL expression"),
        ("x = 'a", "is no SQL expression"),
        ("x = 1; drop table birds", "is not one SQL expression"),
        ("x, y", "is not one SQL expression"),
        ("x = 1 order by x", "more than a SQL expression"),
        ("x = 1 as y", "an alias is not supported in SQL expressions, near character 1"),
        ("x = 1 and exists (select 1)", "a subquery is not supported"),
        ("x in (select 1)", "IN with anything but a list"),
        ("x > 1 and sum(x) > 1", "the aggregate sum is not supported in SQL expressions, near character 11"),
        ("row_number() over () = 1", "a window function is not supported"),
        ("x = ?", "a placeholder is not supported"),
        ("nose = 1", "there is no column 'nose'; did you mean noise?"),
        ("st.Name = 'a'", "there is no field of st 'Name'; did you mean name?"),
        ("x.y = 1", "x is int64, not a struct"),
        ("lowre(noise) = 'a'", "there is no function 'lowre'; did you mean lower"),
        ("lower(noise, 1) = 'a'", "lower takes 1 arguments, and is given 2"),
        ("lower(x) = 'a'", "lower needs a string, and x is int64"),
        ("x = 'a'", "x = 'a' compares int64 with string; cast one of them"),
        ("x between 'a' and 'b'", "compares int64 with string"),
        ("x in ('a')", "x is int64 and cannot be among string"),
        ("noise like x", "LIKE with a pattern that is not a constant is not supported"),
        ("x and true", "x is int64, but a boolean is needed"),
        ("noise + 1 = 2", "computes with string"),
        ("d = 'yesterday'", "makes no sense"),
        ("d = date 'yesterday'", "is no date32"),
        ("cast(x as geometry) = 1", "the type GEOMETRY is not supported"),
        ("X'0g' = noise", "is no SQL expression"),
        ("regexp_like(noise, '(')", "makes no sense"),
        ("regexp_like(noise, 'a', 'x')", "knows the flag 'i' only"),
        ("array_has(noise, 1)", "array_has needs a list"),
        ("date_part('aeon', d) = 1", "date_part has no part 'aeon'"),
        ("d + interval '1 month' > d", "an interval of anything but"),
        ("not " * 2000 + "true", "nested too deeply"),
    ],
)
def test_what_is_wrong_is_said_at_once(text: str, message: str) -> None:
    schema = pa.schema(
        {"x": pa.int64(), "noise": pa.string(), "d": pa.date32(), "st": pa.struct({"name": pa.string()})}
    )
    with pytest.raises(InvalidInputError) as caught:
        expressions.as_expression(text, schema)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (pc.field(0) > 1, "refer to columns by their names"),
        (pc.hour(pc.field("x")) == pc.cumulative_sum(pc.field("x")), "cumulative_sum"),
        (pc.field("y") > 1, "there is no column 'y'"),
    ],
)
def test_what_is_wrong_with_an_expression_of_pyarrow(expression: pc.Expression, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        expressions.as_expression(expression, pa.schema({"x": pa.int64()}))


def test_a_filter_is_a_predicate() -> None:
    batch = pa.record_batch({"x": [1]})
    bound = expressions.as_expression("x + 1", batch.schema)
    with pytest.raises(InvalidInputError, match="not a boolean"):
        expressions.filter_mask(bound, batch)


def test_no_text_whatever_raises_anything_else() -> None:
    batch = make_table().combine_chunks().to_batches()[0]
    rng = random.Random(0)
    pieces = [
        *"'\"`()[],;@?{}.%\\",
        "null",
        " not ",
        " is ",
        "1",
        "--",
        "/*",
        "cast(",
        "X'",
        "over()",
        "date ",
        "st",
        "li",
    ]
    for _ in range(1500):
        text = rng.choice(TERMS)(rng)
        for _ in range(rng.randint(1, 2)):
            start = rng.randrange(len(text) + 1)
            text = text[:start] + rng.choice(["", rng.choice(pieces)]) + text[start + rng.randint(0, 3) :]
        try:
            bound = expressions.as_expression(text, batch.schema)
            expressions.evaluate(bound, batch)
        except InvalidInputError:
            continue
        assert expressions.to_sql(bound.expression)


def test_rendered_predicates_mean_the_same() -> None:
    batch = make_table().combine_chunks().to_batches()[0]
    rng = random.Random(5)
    for _ in range(400):
        text = predicate(rng, depth=1)
        if "ny" in text or "cast" in text or "['x']" in text:
            continue
        parsed = expressions.parse(text)
        again = expressions.parse(expressions.to_sql(parsed, full=True))
        masks = [expressions.filter_mask(expressions.bind(node, batch.schema), batch) for node in (parsed, again)]
        assert masks[0].equals(masks[1]), text


def test_predicates_of_pyarrow_are_what_pyarrow_computes() -> None:
    table = pa.table(
        {
            "x": [1, 2, None],
            "s": ["ab", "B", None],
            "l": [[1], [], None],
            "f": [1.5, float("nan"), None],
            "st": [{"a": {"b": 1}}, None, {"a": None}],
        }
    )
    x, s, l, f = (pc.field(name) for name in table.column_names[:4])  # noqa: E741
    batch = table.to_batches()[0]
    for expression in (
        x.isin([1, 5]),
        pc.field("st", "a", "b") == 1,
        pc.is_null(f, nan_is_null=True),
        pc.is_nan(f),
        pc.starts_with(s, "A", ignore_case=True),
        pc.match_substring(s, "b"),
        pc.match_substring_regex(s, "^[ab]+$", ignore_case=True),
        pc.match_like(s, "a_"),
        pc.utf8_lower(s) == "b",
        pc.if_else(x > 1, s, "none") == "none",
        pc.coalesce(x, 7) > 1,
        pc.list_value_length(l) == 1,
        x.cast(pa.string()) == "2",
        pc.negate(x) < -1,
        pc.abs(x) * 2 - 1 == 3,
    ):
        mask = expressions.filter_mask(expressions.as_expression(expression, table.schema), batch)
        assert table.filter(mask)["x"].equals(table.filter(expression)["x"]), expression


def test_long_chains_are_one_node() -> None:
    text = " or ".join(f"x = {number}" for number in range(3000))
    parsed = expressions.parse(text)
    assert isinstance(parsed, nodes.Or)
    assert len(parsed.operands) == 3000
    chain = pc.field("x") == 0
    for number in range(1, 1000):
        chain = chain | (pc.field("x") == number)
    from_arrow = expressions.from_arrow(chain)
    assert isinstance(from_arrow, nodes.Or)
    assert len(from_arrow.operands) == 1000


def test_a_predicate_comes_apart_for_pruning() -> None:
    schema = pa.schema({"a": pa.int8(), "st": pa.struct({"B": pa.date32()}), "s": pa.string()})
    bound = expressions.as_expression("A < 1000 and (5 <= a and st.B = '2020-01-01') and s like 'x%'", schema)
    assert bound.columns == (("a",), ("st", "B"), ("s",))
    terms = expressions.conjuncts(bound.expression)
    assert [expressions.to_sql(term) for term in terms] == [
        "a <= 127",
        "a >= 5",
        "st.B = date '2020-01-01'",
        "s LIKE 'x%'",
    ]
    for term, kind in itertools.product(terms[:3], ("left", "right")):
        assert isinstance(getattr(term, kind), nodes.Column if kind == "left" else nodes.Literal)
    assert expressions.conjunction(terms) == bound.expression


def test_constants_fold() -> None:
    schema = pa.schema({"a": pa.int32()})
    bound = expressions.as_expression("a = 2 * (3 + 4) and not (1 > 2)", schema)
    assert expressions.to_sql(bound.expression) == "a = 14"


def test_batches_may_have_fewer_fields_and_other_columns() -> None:
    full = pa.schema({"a": pa.int32(), "st": pa.struct({"x": pa.int64(), "y": pa.string()})})
    bound = expressions.as_expression("st.y = 'b'", full)
    batch = pa.record_batch({"z": [1, 2], "st": [{"y": "a"}, {"y": "b"}]})
    assert expressions.filter_mask(bound, batch).to_pylist() == [False, True]
    with pytest.raises(InvalidInputError, match="the batch has no column st"):
        expressions.filter_mask(bound, pa.record_batch({"z": [1]}))


def test_nodes_are_values() -> None:
    assert expressions.parse("a > 1 and b in (1, 2)") == expressions.parse("a>1 AND b IN (1,2)")
    assert len({expressions.parse("a > 1"), expressions.parse("a > 1"), expressions.parse("a > 2")}) == 2
    assert repr(expressions.parse("a > 1")).startswith("Comparison('>', Column(('a',)), Literal(")
    long = expressions.parse(f"a IN ({', '.join(map(str, range(10_000)))})")
    assert len(repr(long)) < 200
