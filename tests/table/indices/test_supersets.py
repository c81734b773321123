"""Supersets of the rows of a filter, composed of those of its terms."""

from __future__ import annotations

import operator

import pyarrow as pa
import pytest

from lance_format.expressions import bind, nodes, parse
from lance_format.table.indices.supersets import consists_of, superset

ROWS = {1: {1, 2}, 2: {2, 3}, 3: {9}}
"""Rows that may have each value; of other values it is unknown."""


def answer(node: nodes.Expression) -> set[int] | None:
    match node:
        case nodes.Comparison("=", nodes.Column(), nodes.Literal(value)):
            return ROWS.get(value.as_py())
    return None


@pytest.mark.parametrize(
    ("given", "expected", "is_exact"),
    [
        ("a = 1", {1, 2}, True),
        ("a = 7", None, False),
        ("a = 1 AND b = 2", {2}, True),
        ("a = 1 AND b = 7", {1, 2}, False),
        ("a = 7 AND b = 7", None, False),
        ("a = 1 OR b = 2", {1, 2, 3}, True),
        ("a = 1 OR b = 7", None, False),
        ("(a = 1 OR b = 7) AND b = 2", {2, 3}, False),
        ("(a = 1 AND b = 7) OR b = 3", {1, 2, 9}, False),
        ("NOT (a = 1)", None, False),
        ("a <=> 1", {1, 2}, True),
        ("coalesce(a = 1, true)", None, False),
    ],
)
def test_terms_are_composed(given: str, expected: set[int] | None, is_exact: bool) -> None:
    bound = bind(parse(given), pa.schema([("a", pa.int64()), ("b", pa.int64())]))
    assert superset(bound.expression, answer, operator.and_, operator.or_) == expected
    assert consists_of(bound.expression, lambda node: answer(node) is not None) == is_exact
