"""Chains of comparisons as lookups: one lookup per row replaces a comparison per constant."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from lance_format.expressions import nodes
from lance_format.expressions.nodes import Expression, FieldPath, Literal
from lance_format.expressions.values.coercion import is_text


def gather_constants(node: nodes.And | nodes.Or, type_of: Callable[[FieldPath], pa.DataType]) -> list[Expression]:
    """Return the operands of a connective, those together that compare one column with a constant each.

    `a = 1 OR a = 2` is `a IN (1, 2)`, and `a != 1 AND a != 2` is `a NOT IN (1, 2)`.

    Parameters
    ----------
    node : And or Or
    type_of : callable
        Returns the type of a column.
    """
    operator = "=" if isinstance(node, nodes.Or) else "!="
    terms: list[Expression] = []
    positions: dict[tuple[FieldPath, pa.DataType], int] = {}
    constants: dict[int, list[pa.Scalar]] = {}
    for child in node.children:
        match child:
            case nodes.Comparison(sign, nodes.Column(path), Literal(value)) if sign == operator and value.is_valid:
                position = positions.setdefault((path, value.type), len(terms))
                if position in constants:
                    constants[position].append(value)
                    continue
                if position == len(terms) and _looks_up(type_of(path), value.type):
                    constants[position] = [value]
        terms.append(child)
    for position, values in constants.items():
        first = terms[position]
        if len(values) > 1 and isinstance(first, nodes.Comparison):
            among = nodes.In(first.left, pa.array(values, values[0].type))
            terms[position] = among if operator == "=" else nodes.Not(among)
    return terms


def _looks_up(column: pa.DataType, constant: pa.DataType) -> bool:
    """Return whether a value is among constants exactly where it equals one of them, as they are."""
    both = (column, constant)
    return all(map(pa.types.is_integer, both)) or all(map(is_text, both))
