"""Supersets of the rows that a filter selects, composed of those of its terms.

An index that answers some terms, and these perhaps with further rows, still bounds the rows of a whole filter: `AND` by
any answer of its operands, `OR` by all of them. The filter is evaluated over the rows that are left.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TypeVar

from lance_format.expressions import nodes
from lance_format.expressions.nodes import Expression

Answer = TypeVar("Answer")
"""Rows, or zones, that may match."""


def can_bound(expression: Expression, can_answer: Callable[[Expression], bool]) -> bool:
    """Return whether there is a superset of the rows of a predicate; see `superset`.

    Parameters
    ----------
    expression : Expression
    can_answer : callable
        Returns whether there is one of the rows of a term.
    """
    return superset(expression, lambda node: can_answer(node) or None, bool.__and__, bool.__or__) is not None


def consists_of(expression: Expression, is_answered: Callable[[Expression], bool]) -> bool:
    """Return whether a predicate is true exactly for the rows of `superset`.

    Parameters
    ----------
    expression : Expression
    is_answered : callable
        Returns whether the rows of a term are exactly those for which it is true.
    """
    match expression:
        case nodes.And(operands) | nodes.Or(operands):
            return all(consists_of(operand, is_answered) for operand in operands)
        case nodes.Call("coalesce", (operand, nodes.Literal(value))) if value.as_py() is False:
            return consists_of(operand, is_answered)
    return is_answered(expression)


def superset(
    expression: Expression,
    answer: Callable[[Expression], Answer | None],
    both: Callable[[Answer, Answer], Answer],
    either: Callable[[Answer, Answer], Answer],
) -> Answer | None:
    """Return rows outside of which a predicate is not true; None if they may be any.

    Parameters
    ----------
    expression : Expression
        A bound predicate.
    answer : callable
        Returns such rows for a term, or None.
    both, either : callable
        Return the intersection and the union of rows.
    """
    match expression:
        case nodes.And(operands):
            known = [found for operand in operands if (found := superset(operand, answer, both, either)) is not None]
            return functools.reduce(both, known) if known else None
        case nodes.Or(operands):
            all_rows = [superset(operand, answer, both, either) for operand in operands]
            known = [found for found in all_rows if found is not None]
            return functools.reduce(either, known) if len(known) == len(all_rows) else None
        case nodes.Call("coalesce", (operand, nodes.Literal(value))) if value.as_py() is False:
            return superset(operand, answer, both, either)
    return answer(expression)
