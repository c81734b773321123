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
from lance_format.expressions.values.coercion import Axis, axis_of

Function: TypeAlias = tuple[str, tuple[BoundExpression, ...]]
"""The name of an aggregate function, and its arguments."""

_SHIFTS = {"+": 1, "-": -1}


class SharedFunctions:
    """Some functions, and those that have to be computed for them.

    Parameters
    ----------
    functions : sequence of (str, tuple of BoundExpression)
    schema : pa.Schema
        Of the rows.
    """

    def __init__(self, functions: Sequence[Function], schema: pa.Schema) -> None:
        shifts = [_shift(function, schema) for function in functions]
        shared = Counter(base for base, _ in {shift for shift in shifts if shift})
        places: dict[Function, int] = {}
        self._made: list[tuple[int, tuple[int, int] | None]] = []
        for function, shift in zip(functions, shifts, strict=True):
            if shift and shared[shift[0]] > 1:
                base, constant = shift
                place, count = (places.setdefault((name, (base,)), len(places)) for name in ("sum", "count"))
                self._made.append((place, (count, constant)))
            else:
                self._made.append((places.setdefault(function, len(places)), None))
        self.computed = list(places)
        """The functions to compute, each once."""

    def complete(self, columns: Sequence[pa.Array]) -> list[pa.Array]:
        """Return the values of all functions.

        Parameters
        ----------
        columns : sequence of pa.Array
            Partial values of `computed`.
        """
        return [columns[place] if shift is None else _shifted(columns, place, *shift) for place, shift in self._made]


def _shifted(columns: Sequence[pa.Array], place: int, count: int, constant: int) -> pa.Array:
    return pc.add_checked(columns[place], pc.multiply_checked(columns[count], constant))


def _shift(function: Function, schema: pa.Schema) -> tuple[BoundExpression, int] | None:
    """Return what a sum of integers adds up, without a constant that it adds to every value, and this constant.

    None for other functions, and unless the type of the values holds them for all values of the column.
    """
    match function:
        case "sum", (value,) if pa.types.is_integer(value.type):
            base, constant = _parts(value.expression)
            column, values = _axis(base, schema), axis_of(value.type)
            if column and values and values.lowest - column.lowest <= constant <= values.highest - column.highest:
                return bind(base, schema), constant
    return None


def _parts(value: Expression) -> tuple[Expression, int]:
    match value:
        case nodes.CheckedArithmetic("+" | "-" as operator, other, nodes.Literal(constant)) if constant.is_valid:
            return other, _SHIFTS[operator] * constant.as_py()
        case nodes.CheckedArithmetic("+", nodes.Literal(constant), other) if constant.is_valid:
            return other, constant.as_py()
    return value, 0


def _axis(value: Expression, schema: pa.Schema) -> Axis | None:
    """Return the integers that a column can have; None for other expressions than integer columns and their casts."""
    while isinstance(value, nodes.Cast):
        value = value.operand
    if not isinstance(value, nodes.Column):
        return None
    arrow_type = bind(value, schema).type
    return axis_of(arrow_type) if pa.types.is_integer(arrow_type) else None
