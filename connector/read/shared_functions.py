"""Aggregate functions of which some follow from others, and are not computed.

* A function that is there twice, as `sum(x)` is with `sum(x)` and `avg(x)`.
* Sums of integers that differ by a constant: `sum(x + 2)` is `sum(x) + 2 * count(x)`. That is so unless `x + 2` exceeds
  its type for some row, which is an error; so only of types that hold every sum, as Spark's `int` does of a `smallint`
  and a small constant.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from lance_format.expressions import BoundExpression, Expression, bind, nodes

Function: TypeAlias = tuple[str, Sequence[BoundExpression]]
"""The name of an aggregate function, and its arguments."""

_SHIFTS = {"+": 1, "-": -1}


class SharedFunctions:
    """Some functions, and those that have to be computed for them.

    Parameters
    ----------
    functions : sequence of (str, sequence of BoundExpression)
    schema : pa.Schema
        Of the rows.
    """

    def __init__(self, functions: Sequence[Function], schema: pa.Schema) -> None:
        self.computed: list[Function] = []
        """The functions to compute, each once."""
        self._places: dict[tuple[str, tuple[BoundExpression, ...]], int] = {}
        shifts = [_shift(name, values, schema) for name, values in functions]
        shared = Counter(base for base, _ in {shift for shift in shifts if shift})
        self._made: list[tuple[int, int, int]] = []
        for (name, values), shift in zip(functions, shifts, strict=True):
            if shift and shared[shift[0]] > 1:
                base, constant = shift
                self._made.append((self._place("sum", [base]), self._place("count", [base]), constant))
            else:
                self._made.append((self._place(name, values), -1, 0))

    def _place(self, name: str, values: Sequence[BoundExpression]) -> int:
        place = self._places.setdefault((name, tuple(values)), len(self.computed))
        if place == len(self.computed):
            self.computed.append((name, values))
        return place

    def complete(self, columns: Sequence[pa.Array]) -> list[pa.Array]:
        """Return the values of all functions.

        Parameters
        ----------
        columns : sequence of pa.Array
            Partial values of `computed`.
        """
        return [
            pc.add_checked(columns[place], pc.multiply_checked(columns[count], constant))
            if constant
            else columns[place]
            for place, count, constant in self._made
        ]


def _shift(name: str, values: Sequence[BoundExpression], schema: pa.Schema) -> tuple[BoundExpression, int] | None:
    """Return what a function adds up, without a constant that it adds to every value, and this constant."""
    if name != "sum" or not pa.types.is_integer(values[0].type):
        return None
    base, constant = _parts(values[0].expression)
    bound = bind(base, schema)
    bounds = _bounds(bound.expression, schema)
    most = _limits(values[0].type)[1]
    if bounds is None or not -most <= bounds[0] + constant <= bounds[1] + constant <= most:
        return None
    return bound, constant


def _parts(value: Expression) -> tuple[Expression, int]:
    match value:
        case nodes.CheckedArithmetic(operator, other, nodes.Literal(constant)) if (
            constant.is_valid and operator in _SHIFTS
        ):
            return other, _SHIFTS[operator] * constant.as_py()
        case nodes.CheckedArithmetic("+", nodes.Literal(constant), other) if constant.is_valid:
            return other, constant.as_py()
    return value, 0


def _bounds(value: Expression, schema: pa.Schema) -> tuple[int, int] | None:
    """Return the least and the greatest value that the type of a column has; None for other expressions."""
    while isinstance(value, nodes.Cast):
        value = value.operand
    if not isinstance(value, nodes.Column):
        return None
    arrow_type = bind(value, schema).type
    return _limits(arrow_type) if pa.types.is_signed_integer(arrow_type) else None


def _limits(arrow_type: pa.DataType) -> tuple[int, int]:
    most = 1 << (arrow_type.bit_width - 1)
    return -most, most - 1
