"""Expressions that are bound to a schema, with their types; constants are folded as they are built."""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa

from lance_format.expressions import nodes
from lance_format.expressions.evaluation import apply
from lance_format.expressions.nodes import Expression, Literal
from lance_format.expressions.values.coercion import plain_type


class Typed(NamedTuple):
    """An expression that is bound to a schema, and its type."""

    expression: Expression
    type: pa.DataType

    @property
    def literal(self) -> pa.Scalar | None:
        """The value of a constant; None for other expressions."""
        return self.expression.value if isinstance(self.expression, Literal) else None


def typed_node(node: Expression, children: list[Typed]) -> Typed:
    """Put a node over bound children, find its type, and fold it if all children are constants.

    Raises
    ------
    pyarrow.ArrowInvalid, pyarrow.ArrowNotImplementedError, pyarrow.ArrowTypeError
        If the node cannot be computed for these types.
    """
    node = node.with_children(tuple(child.expression for child in children))
    if children and all(child.literal is not None for child in children):
        value = apply(node, [child.literal for child in children])
        return Typed(Literal(value), value.type)
    # Nulls stand for values: kernels parse their options, a pattern for example, only if there is a value.
    values = [pa.nulls(1, child.type) if child.literal is None else child.literal for child in children]
    return Typed(node, apply(node, values).type)


def cast_to(typed: Typed, to: pa.DataType) -> Typed:
    """Cast an expression to a type, unless it has it."""
    return typed if typed.type == to else typed_node(nodes.Cast(typed.expression, to), [typed])


def to_plain(typed: Typed) -> Typed:
    """Cast an expression to the plain type of its values: dictionaries become their items, for example."""
    return cast_to(typed, plain_type(typed.type))
