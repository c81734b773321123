"""Fitting expressions to a schema: names become columns, and types are made to meet.

The rules are the reference's, except that a constant out of the range of the column it is compared with is placed
exactly (see `coercion`), where the reference refuses it.
"""

from __future__ import annotations

import difflib
from fractions import Fraction
from typing import Any, NamedTuple

import pyarrow as pa

from lance_format.errors import InvalidInputError
from lance_format.expressions import nodes
from lance_format.expressions.bound import BoundExpression
from lance_format.expressions.casts import cast
from lance_format.expressions.coercion import (
    as_decimal,
    axis_of,
    common_type,
    is_bytes,
    is_number,
    is_text,
    plain_type,
    position_of,
)
from lance_format.expressions.evaluation import apply
from lance_format.expressions.functions import FUNCTIONS
from lance_format.expressions.lookups import gather_constants
from lance_format.expressions.nodes import Expression, Literal
from lance_format.expressions.rendering import name_to_sql, to_sql


def bind(expression: Expression, schema: pa.Schema) -> BoundExpression:
    """Fit an expression to a schema.

    Parameters
    ----------
    expression : Expression
    schema : pa.Schema
        Schema of the batches to evaluate. Top-level columns are also found by names that differ only in case, as in the
        reference; fields below structs are not.

    Raises
    ------
    InvalidInputError
        If a column or function does not exist, or types do not fit each other.
    """
    try:
        typed = _Binder(schema).bind_root(expression)
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise InvalidInputError(f"{to_sql(expression)} makes no sense: {error}") from error
    except RecursionError:
        raise InvalidInputError("the expression is nested too deeply; split it into several") from None
    return BoundExpression(typed.expression, typed.type, nodes.columns_of(typed.expression))


class _Typed(NamedTuple):
    expression: Expression
    type: pa.DataType

    @property
    def literal(self) -> pa.Scalar | None:
        return self.expression.value if isinstance(self.expression, Literal) else None


class _Binder:
    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema

    def bind_root(self, node: Expression) -> _Typed:
        """Bind the whole expression.

        A column alone keeps its type, a dictionary for example; and of a column and a constant alone the result has
        the type of the column, while elsewhere it has the wider type of the two.
        """
        if isinstance(node, nodes.Column):
            return self._column(node.path)
        if isinstance(node, nodes.Arithmetic):
            left, right = self.bind(node.left), self.bind(node.right)
            left, right = _adopt(left, right, node.left), _adopt(right, left, node.right)
            return _arithmetic(node.operator, left, right)
        return self.bind(node)

    def bind(self, node: Expression) -> _Typed:
        match node:
            case Literal(value):
                return _plain(_Typed(node, value.type))
            case nodes.Column(path):
                return _plain(self._column(path))
            case nodes.And() | nodes.Or():
                return _connective(node, [self._boolean(child) for child in gather_constants(node, self._type_of)])
            case nodes.Not(operand):
                return _negation(self._boolean(operand))
            case nodes.IsNull(nodes.Call("regexp_match") as call):
                return self.bind(nodes.Not(call))  # the call returns whether the text matches, and is never null
            case nodes.Comparison(operator, left, right):
                return _comparison(operator, self.bind(left), self.bind(right))
            case nodes.NullSafeEqual(left, right):
                return _null_safe_equal(self.bind(left), self.bind(right))
            case nodes.In(operand, values):
                return _in(self.bind(operand), values)
            case nodes.Like(operand):
                return _typed(node, [_as_text(self.bind(operand), "LIKE")])
            case nodes.Arithmetic(operator, left, right):
                return _arithmetic(operator, self.bind(left), self.bind(right))
            case nodes.Negate(operand):
                return _negate(self.bind(operand))
            case nodes.Case(conditions, values, default):
                return self._case(conditions, values, default)
            case nodes.Call(name, arguments):
                return self._call(name, arguments)
            case nodes.GetField(operand, name):
                return self._field(operand, name)
        return _typed(node, [self.bind(child) for child in node.children])

    def _boolean(self, node: Expression) -> _Typed:
        typed = self.bind(node)
        if pa.types.is_null(typed.type):
            return _Typed(Literal(pa.scalar(None, pa.bool_())), pa.bool_())
        if not pa.types.is_boolean(typed.type):
            raise InvalidInputError(f"{to_sql(node)} is {typed.type}, where a boolean is needed; compare it")
        return typed

    def _column(self, path: nodes.FieldPath) -> _Typed:
        names = self._schema.names
        index = self._schema.get_field_index(path[0])
        if index < 0:
            matches = [index for index, name in enumerate(names) if name.lower() == path[0].lower()]
            if len(matches) != 1:
                raise InvalidInputError(_unknown("column", path[0], names))
            index = matches[0]
        arrow_type = self._schema.field(index).type
        for depth, name in enumerate(path[1:], start=1):
            arrow_type = _field_type(arrow_type, name, name_to_sql(path[:depth]))
        return _Typed(nodes.Column((names[index], *path[1:])), _storage_type(arrow_type))

    def _type_of(self, path: nodes.FieldPath) -> pa.DataType:
        return self._column(path).type

    def _field(self, operand: Expression, name: str) -> _Typed:
        if isinstance(operand, nodes.Column):
            return self.bind(nodes.Column((*operand.path, name)))
        typed = self.bind(operand)
        _field_type(typed.type, name, to_sql(operand))
        return _plain(_typed(nodes.GetField(operand, name), [typed]))

    def _case(self, conditions: Any, values: Any, default: Expression) -> _Typed:
        bound_conditions = [self._boolean(condition) for condition in conditions]
        branches = _unify([self.bind(value) for value in (*values, default)], "the branches of CASE")
        expressions = [typed.expression for typed in bound_conditions + branches]
        count = len(conditions)
        node = nodes.Case(tuple(expressions[:count]), tuple(expressions[count:-1]), expressions[-1])
        return _Typed(node, branches[0].type)

    def _call(self, name: str, arguments: tuple[Expression, ...]) -> _Typed:
        function = FUNCTIONS.get(name)
        if function is None:
            raise InvalidInputError(_unknown("function", name, list(FUNCTIONS)))
        function.check_count(name, len(arguments))
        typed = [self.bind(argument) for argument in arguments]
        if function.unified:
            typed = _unify(typed, f"the arguments of {name}")
        typed = [_fit(value, kind, name) for value, kind in zip(typed, function.kinds(len(typed)), strict=True)]
        return _typed(nodes.Call(name, tuple(value.expression for value in typed)), typed)


def _typed(node: Expression, children: list[_Typed]) -> _Typed:
    """Put a node over bound children, learn its type, and fold it if all of them are constants."""
    node = node.with_children(tuple(child.expression for child in children))
    if children and all(child.literal is not None for child in children):
        value = apply(node, [child.literal for child in children])
        return _Typed(Literal(value), value.type)
    # a null in each place: kernels look at their options, a pattern for example, once there is a value only
    values = [pa.nulls(1, child.type) if child.literal is None else child.literal for child in children]
    return _Typed(node, apply(node, values).type)


def _connective(node: nodes.And | nodes.Or, children: list[_Typed]) -> _Typed:
    """Join bound predicates: chains of one connective become one node, and constants that decide nothing go."""
    kind, neutral = type(node), isinstance(node, nodes.And)
    terms: list[_Typed] = []
    for child in children:
        literal = child.literal
        if isinstance(child.expression, kind):
            terms.extend(_Typed(operand, pa.bool_()) for operand in child.expression.operands)
        elif literal is None or not literal.is_valid:
            terms.append(child)
        elif literal.as_py() is not neutral:
            return child
    if len(terms) < 2:
        return terms[0] if terms else _Typed(Literal(pa.scalar(neutral)), pa.bool_())
    if all(term.literal is not None for term in terms):
        return terms[0]
    return _Typed(kind(tuple(term.expression for term in terms)), pa.bool_())


def _negation(operand: _Typed) -> _Typed:
    """Negate a bound predicate, pushing the negation down as far as possible."""
    match operand.expression:
        case nodes.Not(inner):
            return _Typed(inner, pa.bool_())
        case nodes.Comparison(operator, left, right):
            return _Typed(nodes.Comparison(nodes.NEGATED[operator], left, right), pa.bool_())
        case nodes.And(operands):
            return _connective(nodes.Or(()), [_negation(_Typed(term, pa.bool_())) for term in operands])
        case nodes.Or(operands):
            return _connective(nodes.And(()), [_negation(_Typed(term, pa.bool_())) for term in operands])
    return _typed(nodes.Not(operand.expression), [operand])


def _cast(typed: _Typed, to: pa.DataType) -> _Typed:
    return typed if typed.type == to else _typed(nodes.Cast(typed.expression, to), [typed])


def _plain(typed: _Typed) -> _Typed:
    return _cast(typed, plain_type(typed.type))


def _storage_type(arrow_type: pa.DataType) -> pa.DataType:
    return arrow_type.storage_type if isinstance(arrow_type, pa.BaseExtensionType) else arrow_type


def _field_type(arrow_type: pa.DataType, name: str, parent: str) -> pa.DataType:
    arrow_type = _storage_type(arrow_type)
    if not pa.types.is_struct(arrow_type):
        raise InvalidInputError(f"{parent} is {arrow_type}, not a struct, and has no field {name!r}")
    index = arrow_type.get_field_index(name)
    if index < 0:
        fields = [arrow_type.field(index).name for index in range(arrow_type.num_fields)]
        raise InvalidInputError(_unknown(f"field of {parent}", name, fields))
    return arrow_type.field(index).type


def _unknown(what: str, name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name.lower(), [other.lower() for other in known], n=3)
    meant = [other for other in known if other.lower() in near][:3]
    hint = f"did you mean {' or '.join(meant)}?" if meant else f"there are {', '.join(known[:20]) or 'none'}"
    return f"there is no {what} {name!r}; {hint}"


def _comparison(operator: nodes.ComparisonOperator, left: _Typed, right: _Typed) -> _Typed:
    if left.literal is not None and right.literal is None:
        return _comparison(nodes.MIRRORED[operator], right, left)
    if right.literal is not None:
        if not right.literal.is_valid:
            return _Typed(Literal(pa.scalar(None, pa.bool_())), pa.bool_())
        fitted = _compare_with_literal(operator, left, right.literal)
        if fitted is not None:
            return fitted
    left, right = _meet(left, right, operator)
    return _typed(nodes.Comparison(operator, left.expression, right.expression), [left, right])


def _compare_with_literal(operator: nodes.ComparisonOperator, left: _Typed, value: pa.Scalar) -> _Typed | None:
    axis = axis_of(left.type)
    if axis is None:
        return None
    position = position_of(value, left.type)
    if position is None:
        return None
    comparison = axis.compare(operator, left.expression, position)
    assert isinstance(comparison, nodes.Comparison)
    right = comparison.right
    assert isinstance(right, Literal)
    return _typed(comparison, [left, _Typed(right, right.value.type)])


def _null_safe_equal(left: _Typed, right: _Typed) -> _Typed:
    if left.literal is not None and right.literal is None:
        left, right = right, left
    if right.literal is not None and not right.literal.is_valid:
        return _typed(nodes.IsNull(left.expression), [left])
    if right.literal is not None and axis_of(left.type) is not None:
        equal = _comparison("=", left, right)
        constant = pa.scalar(False)
        return _coalesce_false(equal, constant)
    left, right = _meet(left, right, "=")
    return _typed(nodes.NullSafeEqual(left.expression, right.expression), [left, right])


def _coalesce_false(typed: _Typed, constant: pa.Scalar) -> _Typed:
    return _typed(
        nodes.Call("coalesce", (typed.expression, Literal(constant))), [typed, _Typed(Literal(constant), pa.bool_())]
    )


def _meet(left: _Typed, right: _Typed, operator: str) -> tuple[_Typed, _Typed]:
    """Cast the sides of a comparison to a type in which they meet."""
    arrow_type = common_type(left.type, right.type)
    if arrow_type is not None and right.literal is not None and pa.types.is_floating(left.type):
        arrow_type = left.type if _fits_float(right.literal, left.type) else pa.float64()
    if arrow_type is None or pa.types.is_nested(arrow_type):
        raise InvalidInputError(
            f"{to_sql(left.expression)} {operator} {to_sql(right.expression)} compares {left.type} with {right.type}; "
            "cast one of them"
        )
    if pa.types.is_fixed_size_binary(arrow_type):
        arrow_type = pa.binary()
    return _cast(left, arrow_type), _cast(right, arrow_type)


def _fits_float(value: pa.Scalar, arrow_type: pa.DataType) -> bool:
    """Tell whether a constant stays finite as a float of the type."""
    number = float(value.as_py())
    return arrow_type == pa.float64() or not abs(number) > 3.4028235677973366e38 or abs(number) == float("inf")


def _in(operand: _Typed, values: pa.Array) -> _Typed:
    if pa.types.is_null(values.type):
        values = pa.nulls(len(values), operand.type)
    elif axis_of(operand.type) is not None and operand.type != values.type:
        values = _index(values, operand)
    else:
        arrow_type = common_type(operand.type, values.type)
        if arrow_type is None or pa.types.is_nested(arrow_type):
            raise _not_comparable(operand, values)
        if pa.types.is_floating(operand.type):
            arrow_type = operand.type
        operand, values = _cast(operand, arrow_type), cast(values, arrow_type)
    return _typed(nodes.In(operand.expression, values), [operand])


def _index(values: pa.Array, operand: _Typed) -> pa.Array:
    """Return the constants that are values of the type of an operand, and null if it is one of them."""
    axis = axis_of(operand.type)
    assert axis is not None
    if pa.types.is_integer(operand.type) and pa.types.is_integer(values.type):
        try:
            return cast(values, operand.type)
        except pa.ArrowInvalid:  # some are out of its range
            pass
    kept = [pa.scalar(None, operand.type)] if values.null_count else []
    for value in values.drop_null():
        position = position_of(value, operand.type)
        if position is None:
            raise _not_comparable(operand, values)
        if isinstance(position, Fraction) and position.denominator == 1 and axis.lowest <= position <= axis.highest:
            kept.append(axis.scalar(int(position)))
    return pa.array(kept, operand.type)


def _not_comparable(operand: _Typed, values: pa.Array) -> InvalidInputError:
    return InvalidInputError(
        f"{to_sql(operand.expression)} is {operand.type} and cannot be among {values.type}; cast it"
    )


def _arithmetic(operator: nodes.ArithmeticOperator, left: _Typed, right: _Typed) -> _Typed:
    wide = pa.types.is_decimal256(left.type) or pa.types.is_decimal256(right.type)
    if pa.types.is_date(left.type) and pa.types.is_date(right.type):
        left, right = _days(left), _days(right)
    elif not (pa.types.is_temporal(left.type) or pa.types.is_temporal(right.type)):
        left, right = _meet_in_number(operator, left, right)
    typed = _typed(nodes.Arithmetic(operator, left.expression, right.expression), [left, right])
    if pa.types.is_decimal256(typed.type) and typed.type.scale <= 38 and not wide:
        return _cast(typed, pa.decimal128(38, typed.type.scale))
    return typed


def _meet_in_number(operator: nodes.ArithmeticOperator, left: _Typed, right: _Typed) -> tuple[_Typed, _Typed]:
    for side in (left, right):
        if not (is_number(side.type) or pa.types.is_null(side.type)):
            raise InvalidInputError(
                f"{to_sql(left.expression)} {operator} {to_sql(right.expression)} computes with {side.type}; cast it"
            )
    arrow_type = common_type(left.type, right.type)
    assert arrow_type is not None
    if pa.types.is_null(arrow_type):
        arrow_type = pa.int64()
    if not pa.types.is_decimal(arrow_type):
        return _cast(left, arrow_type), _cast(right, arrow_type)
    if operator in ("/", "%"):
        raise InvalidInputError(f"{operator} of decimals is not supported; cast them to double")
    types = [as_decimal(arrow_type if pa.types.is_null(side.type) else side.type) for side in (left, right)]
    if sum(decimal.precision for decimal in types) >= 38:  # the result may have more digits than 128 bits hold
        types = [pa.decimal256(decimal.precision, decimal.scale) for decimal in types]
    return _cast(left, types[0]), _cast(right, types[1])


def _days(typed: _Typed) -> _Typed:
    return _cast(_cast(_cast(typed, pa.date32()), pa.int32()), pa.int64())


def _adopt(typed: _Typed, other: _Typed, node: Expression) -> _Typed:
    """Give a constant the type of the column that it is computed with, if that can hold it."""
    columnar = isinstance(other.expression, (nodes.Column, nodes.Cast))
    if not isinstance(node, Literal) or not columnar or not is_number(typed.type) or not is_number(other.type):
        return typed
    if pa.types.is_floating(other.type):
        return _cast(typed, other.type)
    axis, position = axis_of(other.type), position_of(node.value, other.type)
    if axis is None or not isinstance(position, Fraction) or position.denominator != 1:
        return typed
    if pa.types.is_floating(typed.type) or not axis.lowest <= position <= axis.highest:
        return typed
    return _Typed(Literal(axis.scalar(int(position))), other.type)


def _negate(operand: _Typed) -> _Typed:
    if not is_number(operand.type) or pa.types.is_unsigned_integer(operand.type):
        raise InvalidInputError(f"-{to_sql(operand.expression)} negates {operand.type}; cast it to a signed number")
    return _typed(nodes.Negate(operand.expression), [operand])


def _unify(values: list[_Typed], what: str) -> list[_Typed]:
    arrow_type = pa.null()
    for value in values:
        common = common_type(arrow_type, value.type)
        if common is None:
            raise InvalidInputError(f"{what} have the types {arrow_type} and {value.type}; cast them to one")
        arrow_type = common
    return [_cast(value, arrow_type) for value in values]


def _as_text(typed: _Typed, what: str) -> _Typed:
    if is_text(typed.type):
        return typed
    if is_bytes(typed.type) or pa.types.is_null(typed.type):
        return _cast(typed, pa.string())
    raise InvalidInputError(f"{what} needs a string, and {to_sql(typed.expression)} is {typed.type}; cast it")


def _fit(value: _Typed, kind: str, function: str) -> _Typed:
    match kind:
        case "string":
            return _as_text(value, function)
        case "text":
            return value if is_text(value.type) else _cast(value, pa.string())
        case "float":
            if is_number(value.type) or pa.types.is_null(value.type):
                return value if pa.types.is_floating(value.type) else _cast(value, pa.float64())
        case "number":
            if is_number(value.type):
                return value
        case "integer":
            if pa.types.is_integer(value.type):
                return _cast(value, pa.int64())
        case "constant":
            if value.literal is not None:
                return value
        case "list":
            if pa.types.is_list(value.type) or pa.types.is_large_list(value.type):
                return value
            if pa.types.is_fixed_size_list(value.type):
                return _cast(value, pa.list_(value.type.value_type))
        case "json":
            if pa.types.is_large_binary(value.type):
                return value
        case "temporal":
            if pa.types.is_temporal(value.type):
                return value
        case _:
            return value
    raise InvalidInputError(f"{function} needs a {kind} where it is given {to_sql(value.expression)}, {value.type}")
