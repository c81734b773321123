"""Expressions that are computed together, and what they share."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_format.errors import InvalidInputError
from lance_format.expressions import BoundExpression, Together, as_expression, bind, evaluate, evaluation, nodes

SCHEMA = pa.schema([("a", pa.int32()), ("b", pa.float64())])
NUMBERS = [
    "a + 1",
    "(a + 1) * 2",
    "(a + 1) * (a + 1)",
    "CASE WHEN a + 1 > 2 THEN (a + 1) * 2 ELSE 7 END",
    "CASE WHEN b > 0 THEN CAST(b AS int) ELSE CAST(b AS int) + 1 END",
    "b * b",
    "CAST(a AS double) * b + CAST(a AS double)",
]
ROWS = st.fixed_dictionaries(
    {
        "a": st.none() | st.integers(-5, 5),
        "b": st.none() | st.sampled_from([0.0, -0.0, 1.5, -2.0]),
    }
)


def bound(text: str) -> BoundExpression:
    return as_expression(text, SCHEMA)


@given(st.lists(st.sampled_from(NUMBERS), min_size=1, max_size=6), st.lists(ROWS, max_size=8))
def test_values_are_those_of_each_alone(texts: list[str], rows: list[dict[str, object]]) -> None:
    batch = pa.RecordBatch.from_pylist(rows, SCHEMA)
    values = [bound(text) for text in texts]
    found = Together(values).evaluate(batch)
    for value in values:
        assert found[value].equals(evaluate(value, batch))


def test_a_common_part_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    computed: list[nodes.Expression] = []
    apply = evaluation.apply

    def counting(node: nodes.Expression, values: list[evaluation.Value]) -> evaluation.Value:
        computed.append(node)
        return apply(node, values)

    monkeypatch.setattr(evaluation, "apply", counting)
    values = [bound("(a + 1) * 2"), bound("(a + 1) * 3")]  # the column is widened, and 1 added to it, once
    Together(values).evaluate(pa.RecordBatch.from_pylist([{"a": 1}], SCHEMA))
    assert len(computed) == len(set(computed)) == 4


def test_what_rows_share_is_not_what_some_of_them_have() -> None:
    """A value may be missing for rows that a branch does not take."""
    checked = nodes.CheckedArithmetic("%", nodes.Literal(pa.scalar(7, pa.int32())), nodes.Column(("a",)), pa.int32())
    is_zero = nodes.Comparison("=", nodes.Column(("a",)), nodes.Literal(pa.scalar(0, pa.int32())))
    zero = nodes.Literal(pa.scalar(0, pa.int32()))
    guarded = bind(nodes.Case((is_zero,), (zero,), checked), SCHEMA)
    batch = pa.RecordBatch.from_pylist([{"a": 0}, {"a": 2}, {"a": 3}], SCHEMA)
    doubled = bind(nodes.Case((is_zero,), (zero,), nodes.Negate(checked)), SCHEMA)
    found = Together([guarded, doubled]).evaluate(batch)
    assert found[guarded].to_pylist() == [0, 1, 1]
    assert found[doubled].to_pylist() == [0, -1, -1]
    with pytest.raises(InvalidInputError, match="has no value"):
        Together([guarded, bind(checked, SCHEMA)]).evaluate(batch)


def test_zeros_of_both_signs_are_two_constants() -> None:
    column = nodes.Column(("b",))
    values = [bind(nodes.Arithmetic("*", column, nodes.Literal(pa.scalar(zero))), SCHEMA) for zero in (0.0, -0.0)]
    found = Together(values).evaluate(pa.RecordBatch.from_pylist([{"b": 2.0}], SCHEMA))
    assert [math.copysign(1, found[value][0].as_py()) for value in values] == [1, -1]
    one, other = (nodes.Literal(pa.scalar([zero])) for zero in (0.0, -0.0))
    assert one != other
    assert one == nodes.Literal(pa.scalar([0.0]))
