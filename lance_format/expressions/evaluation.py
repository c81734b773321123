"""Computing bound expressions over record batches.

Every node is one function of the values of its children: Arrow arrays, or scalars if they are the same for every row.
`binding` runs the same functions over empty arrays to find the type of a result, and over scalars to fold constants, so
each node has one definition.

The semantics are those of the reference, and of Spark:

* three-valued logic: `AND`, `OR` and `NOT` are Kleene's, a comparison with null is null;
* floating-point numbers have a total order: NaN equals itself and exceeds all others, and -0.0 equals 0.0;
* `+`, `-` and `*` of integers wrap around; `/` truncates towards zero; `%` has the sign of the dividend; division by
  zero is an error for integers, and not for floating-point numbers;
* checked arithmetic with null is null, also if its other operand, which comes second, has no value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_format.arrow_rows import keep_rows, take_rows
from lance_format.errors import InvalidInputError
from lance_format.expressions import nodes
from lance_format.expressions.bound import BoundExpression
from lance_format.expressions.functions.patterns import like
from lance_format.expressions.functions.registry import FUNCTIONS
from lance_format.expressions.items import by_items, dependent_nodes, looked_up
from lance_format.expressions.nodes import ArithmeticOperator, Expression
from lance_format.expressions.rendering import name_to_sql, to_sql
from lance_format.expressions.values.casts import cast
from lance_format.expressions.values.checked_arithmetic import compute_checked
from lance_format.expressions.values.choice import choose
from lance_format.expressions.values.order import compare, is_among
from lance_format.masks import is_true

Value: TypeAlias = pa.Array | pa.Scalar
"""The values of an expression: one for each row, or one for all of them."""


Known: TypeAlias = dict[Expression, Value | None]
"""Values of expressions for all rows of one batch; None for one that is to be remembered once it has been computed."""


def evaluate(bound: BoundExpression, batch: pa.RecordBatch, known: Known | None = None) -> pa.Array:
    """Compute an expression for every row.

    Parameters
    ----------
    bound : BoundExpression
    batch : pa.RecordBatch
        Has at least `bound.columns`, found by name. It may have other columns, and its structs fewer fields.
    known : dict, optional
        What other expressions have found for the same batch, see `Known`; updated.

    Returns
    -------
    pa.Array
        Of type `bound.type`, as long as the batch.

    Raises
    ------
    InvalidInputError
        If the batch lacks a column, or values have no result: an integer divided by zero, text that is no number.
    """
    value = evaluate_items(bound, batch, known)
    return value if value.type == bound.type else looked_up(value)


def evaluate_items(bound: BoundExpression, batch: pa.RecordBatch, known: Known | None = None) -> pa.Array:
    """Compute an expression for every row, or for the items of the dictionary on which alone it depends.

    See `evaluate` for the rest.

    Returns
    -------
    pa.Array
        Of type `bound.type`, or a dictionary of such items.
    """
    root = bound.expression
    if isinstance(root, nodes.Column):
        return _column(root.path, batch)
    known = {} if known is None else known
    for node, column in dependent_nodes(root, batch):
        if known.get(node) is None:
            values = by_items(node, column, _of_every_row)
            if values is not None and node is root:
                return values
            known[node] = None if values is None else looked_up(values)
    try:
        try:
            value = _value(root, batch, known=known)
        except (pa.ArrowInvalid, InvalidInputError):  # possibly of an operand of null, or of a branch that is not taken
            value = _value(root, batch, is_lazy=True)
    except pa.ArrowInvalid as error:
        raise InvalidInputError(f"{to_sql(root)} has no value for some row: {error}") from error
    return _as_array(value, batch.num_rows)


def _of_every_row(node: Expression, batch: pa.RecordBatch) -> pa.Array:
    return _as_array(_value(node, batch), batch.num_rows)


def filter_mask(bound: BoundExpression, batch: pa.RecordBatch) -> pa.BooleanArray:
    """Return for every row whether a predicate holds.

    Parameters
    ----------
    bound : BoundExpression
        Of type boolean.
    batch : pa.RecordBatch
        See `evaluate`.

    Returns
    -------
    pa.BooleanArray
        Without nulls: where the predicate is unknown it does not hold.

    Raises
    ------
    InvalidInputError
        If the expression is not a predicate, and as `evaluate` does.
    """
    bound.require_predicate()
    mask = evaluate(bound, batch)
    return is_true(mask) if mask.null_count else mask


def apply(node: Expression, values: list[Value]) -> Value:
    """Compute a node from the values of its children."""
    return _APPLY[type(node)](node, values)


def _value(node: Expression, batch: pa.RecordBatch, *, is_lazy: bool = False, known: Known | None = None) -> Value:
    """Compute a node; see `evaluate` for `known`."""
    match node:
        case nodes.Literal(constant):
            return constant
        case nodes.Column(path):
            return looked_up(_column(path, batch))
    if known and (found := known.get(node)) is not None:
        return found
    match node:
        case nodes.Case():
            value: Value = _case(node, batch, is_lazy=is_lazy, known=known)
        case nodes.CheckedArithmetic() if is_lazy:
            value = _checked(node, batch)
        case _:
            value = apply(node, [_value(child, batch, is_lazy=is_lazy, known=known) for child in node.children])
    if known and node in known:
        known[node] = value
    return value


def _as_array(value: Value, num_rows: int) -> pa.Array:
    if isinstance(value, pa.Scalar):
        return pa.repeat(value, num_rows) if value.is_valid else pa.nulls(num_rows, value.type)
    return value


def _column(path: nodes.FieldPath, batch: pa.RecordBatch) -> pa.Array:
    index = batch.schema.get_field_index(path[0])
    if index < 0:
        raise InvalidInputError(f"the batch has no column {name_to_sql(path)}; it has {', '.join(batch.schema.names)}")
    values = batch.column(index)
    for name in path[1:]:
        values = pc.struct_field(_storage(values), [name])  # It would take a text that begins with a dot for a path.
    return _storage(values)


def _storage(values: pa.Array) -> pa.Array:
    return values.storage if isinstance(values, pa.ExtensionArray) else values


_ALWAYS_DEFINED = (nodes.Column, nodes.Literal, nodes.Comparison, nodes.And, nodes.Or, nodes.Not, nodes.IsNull)
"""Nodes that cannot fail for any values of their children; computing them needlessly does no harm."""


_RIGHT_FIRST = ("/", "%")
"""Operators of which Spark computes the divisor before the dividend."""


def _checked(node: nodes.CheckedArithmetic, batch: pa.RecordBatch) -> Value:
    """Compute the second operand only for the rows where the first is not null: it may have no value for others."""
    is_right_first = node.operator in _RIGHT_FIRST
    one, other = (node.right, node.left) if is_right_first else (node.left, node.right)
    first = _as_array(_value(one, batch, is_lazy=True), batch.num_rows)
    known = first.is_valid()
    rows = np.flatnonzero(known.to_numpy(zero_copy_only=False))
    second = _as_array(_value(other, keep_rows(batch, known), is_lazy=True), len(rows))
    position = np.zeros(len(first), dtype=np.int64)
    position[rows] = np.arange(len(rows))
    second = take_rows(second, pa.array(position, mask=first.is_null().to_numpy(zero_copy_only=False)))
    return apply(node, [second, first] if is_right_first else [first, second])


def _case(node: nodes.Case, batch: pa.RecordBatch, *, is_lazy: bool, known: Known | None) -> pa.Array:
    """Compute all branches for all rows, or each for the rows that take it, if the others have no value there."""
    branches = (*node.values, node.default)
    if not is_lazy or all(isinstance(child, _ALWAYS_DEFINED) for branch in branches for child in nodes.walk(branch)):
        conditions = [
            _as_array(_value(condition, batch, is_lazy=is_lazy, known=known), batch.num_rows)
            for condition in node.conditions
        ]
        *values, default = (_value(branch, batch, is_lazy=is_lazy, known=known) for branch in branches)
        return choose(conditions, values, default)
    rest = batch.select(list(dict.fromkeys(path[0] for path in nodes.columns_of(node))))
    left = np.arange(batch.num_rows)
    rows, parts = [], []
    for condition, branch in zip(node.conditions, node.values, strict=True):
        holds = is_true(_as_array(_value(condition, rest, is_lazy=is_lazy), len(left)))
        taken = holds.to_numpy(zero_copy_only=False)
        rows.append(left[taken])
        parts.append(_as_array(_value(branch, keep_rows(rest, holds), is_lazy=is_lazy), len(rows[-1])))
        left, rest = left[~taken], keep_rows(rest, pc.invert(holds))
    rows.append(left)
    parts.append(_as_array(_value(node.default, rest, is_lazy=is_lazy), len(left)))
    position = np.empty(batch.num_rows, dtype=np.int64)
    position[np.concatenate(rows)] = np.arange(batch.num_rows)
    return take_rows(pa.concat_arrays(parts), pa.array(position))


def _null_safe_equal(node: Any, values: list[Value]) -> Value:  # noqa: ARG001
    left, right = values
    both_null = pc.and_(pc.is_null(left), pc.is_null(right))
    return pc.or_(is_true(compare("=", left, right)), both_null)


def _connective(kernel: Callable[[Any, Any], Value]) -> Callable[[Any, list[Value]], Value]:
    def fold(node: Any, values: list[Value]) -> Value:  # noqa: ARG001
        result = values[0]
        for value in values[1:]:
            result = kernel(result, value)
        return result

    return fold


def _in(node: Any, values: list[Value]) -> Value:
    (value,) = values
    found = is_among(value, node.values.drop_null() if node.values.null_count else node.values)
    unknown = pc.is_null(value)
    if node.values.null_count:
        unknown = pc.or_(unknown, pc.invert(found))
    return pc.if_else(unknown, pa.scalar(None, pa.bool_()), found)


_WRAPPING: dict[ArithmeticOperator, Callable[[Any, Any], Value]] = {
    "+": pc.add,
    "-": pc.subtract,
    "*": pc.multiply,
}


def _arithmetic(node: Any, values: list[Value]) -> Value:
    left, right = values
    if node.operator in _WRAPPING:
        return _WRAPPING[node.operator](left, right)
    if node.operator == "/":
        return pc.divide(left, right) if pa.types.is_floating(left.type) else pc.divide_checked(left, right)
    return _remainder(left, right)


def _remainder(left: Value, right: Value) -> Value:
    """Return what C's `%` and `fmod` give; Arrow has no such kernel."""
    if pa.types.is_integer(left.type):
        if pa.types.is_signed_integer(left.type):
            # the least integer has no quotient by -1; by 1 it leaves 0 too
            one = pa.scalar(1, right.type)
            right = pc.if_else(pc.equal(right, pa.scalar(-1, right.type)), one, right)
        return pc.subtract(left, pc.multiply(pc.divide(left, right), right))
    if isinstance(left, pa.Scalar) and isinstance(right, pa.Scalar):
        return _remainder(_as_array(left, 1), right)[0]
    num_rows = len(right) if isinstance(left, pa.Scalar) else len(left)
    left, right = _as_array(left, num_rows), _as_array(right, num_rows)
    valid = pc.and_(pc.is_valid(left), pc.is_valid(right)).to_numpy(zero_copy_only=False)
    with np.errstate(invalid="ignore", divide="ignore"):
        remainder = np.fmod(left.to_numpy(zero_copy_only=False), right.to_numpy(zero_copy_only=False))
    return pa.array(remainder, left.type, mask=~valid)


_APPLY: dict[type[Expression], Callable[[Any, list[Value]], Value]] = {
    nodes.Not: lambda _, values: pc.invert(values[0]),
    nodes.IsNull: lambda _, values: pc.is_null(values[0]),
    nodes.Negate: lambda _, values: pc.negate(values[0]),
    nodes.Comparison: lambda node, values: compare(node.operator, *values),
    nodes.NullSafeEqual: _null_safe_equal,
    nodes.And: _connective(pc.and_kleene),
    nodes.Or: _connective(pc.or_kleene),
    nodes.In: _in,
    nodes.Like: lambda node, values: like(values[0], node.pattern, node.ignore_case),
    nodes.Arithmetic: _arithmetic,
    nodes.CheckedArithmetic: lambda node, values: compute_checked(node.operator, values[0], values[1], node.type),
    nodes.Cast: lambda node, values: cast(values[0], node.type, null_on_failure=node.null_on_failure),
    nodes.Call: lambda node, values: FUNCTIONS[node.name].apply(*values),
    nodes.GetField: lambda node, values: pc.struct_field(values[0], [node.name]),
}
