"""Fitting expressions to a schema: names become columns, and types are made to meet.

The rules are the reference's, except that a constant out of the range of the column it is compared with is placed
exactly (see `values.coercion`), where the reference refuses it.
"""

from __future__ import annotations

import difflib
from typing import Any

import pyarrow as pa

from lance_format.errors import InvalidInputError
from lance_format.expressions import nodes
from lance_format.expressions.binding.argument_types import as_text, fit_argument, unify
from lance_format.expressions.binding.arithmetic import adopt_type, compute, negate
from lance_format.expressions.binding.comparisons import compare, compare_null_safe, is_among
from lance_format.expressions.binding.lookups import gather_constants
from lance_format.expressions.binding.typed import Typed, to_plain, typed_node
from lance_format.expressions.bound import BoundExpression
from lance_format.expressions.functions.registry import FUNCTIONS
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


class _Binder:
    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema

    def bind_root(self, node: Expression) -> Typed:
        """Bind the whole expression.

        A column alone keeps its type, a dictionary for example; and of a column and a constant alone the result has
        the type of the column, while elsewhere it has the wider type of the two.
        """
        if isinstance(node, nodes.Column):
            return self._column(node.path)
        if isinstance(node, nodes.Arithmetic):
            left, right = self.bind(node.left), self.bind(node.right)
            left, right = adopt_type(left, right, node.left), adopt_type(right, left, node.right)
            return compute(node.operator, left, right)
        return self.bind(node)

    def bind(self, node: Expression) -> Typed:
        match node:
            case Literal(value):
                return to_plain(Typed(node, value.type))
            case nodes.Column(path):
                return to_plain(self._column(path))
            case nodes.And() | nodes.Or():
                return _connective(node, [self._boolean(child) for child in gather_constants(node, self._type_of)])
            case nodes.Not(operand):
                return _negation(self._boolean(operand))
            case nodes.IsNull(nodes.Call("regexp_match") as call):
                return self.bind(nodes.Not(call))  # the call returns whether the text matches, and is never null
            case nodes.Comparison(operator, left, right):
                return compare(operator, self.bind(left), self.bind(right))
            case nodes.NullSafeEqual(left, right):
                return compare_null_safe(self.bind(left), self.bind(right))
            case nodes.In(operand, values):
                return is_among(self.bind(operand), values)
            case nodes.Cast(operand, arrow_type):
                typed = self.bind(operand)
                return typed if typed.type == arrow_type else typed_node(node, [typed])
            case nodes.Like(operand):
                return typed_node(node, [as_text(self.bind(operand), "LIKE")])
            case nodes.Arithmetic(operator, left, right):
                return compute(operator, self.bind(left), self.bind(right))
            case nodes.Negate(operand):
                return negate(self.bind(operand))
            case nodes.Case(conditions, values, default):
                return self._case(conditions, values, default)
            case nodes.Call(name, arguments):
                return self._call(name, arguments)
            case nodes.GetField(operand, name):
                return self._field(operand, name)
        return typed_node(node, [self.bind(child) for child in node.children])

    def _boolean(self, node: Expression) -> Typed:
        typed = self.bind(node)
        if pa.types.is_null(typed.type):
            return Typed(Literal(pa.scalar(None, pa.bool_())), pa.bool_())
        if not pa.types.is_boolean(typed.type):
            raise InvalidInputError(f"{to_sql(node)} is {typed.type}, but a boolean is needed; compare it")
        return typed

    def _column(self, path: nodes.FieldPath) -> Typed:
        index = self._schema.get_field_index(path[0])
        if index < 0:
            names = self._schema.names
            matches = [index for index, name in enumerate(names) if name.lower() == path[0].lower()]
            if len(matches) != 1:
                raise InvalidInputError(_unknown("column", path[0], names))
            index = matches[0]
        column = self._schema.field(index)
        arrow_type = column.type
        for depth, name in enumerate(path[1:], start=1):
            arrow_type = _field_type(arrow_type, name, name_to_sql(path[:depth]))
        return Typed(nodes.Column((column.name, *path[1:])), _storage_type(arrow_type))

    def _type_of(self, path: nodes.FieldPath) -> pa.DataType:
        return self._column(path).type

    def _field(self, operand: Expression, name: str) -> Typed:
        if isinstance(operand, nodes.Column):
            return self.bind(nodes.Column((*operand.path, name)))
        typed = self.bind(operand)
        _field_type(typed.type, name, to_sql(operand))
        return to_plain(typed_node(nodes.GetField(operand, name), [typed]))

    def _case(self, conditions: Any, values: Any, default: Expression) -> Typed:
        bound_conditions = [self._boolean(condition) for condition in conditions]
        branches = unify([self.bind(value) for value in (*values, default)], "the branches of CASE")
        expressions = [typed.expression for typed in bound_conditions + branches]
        count = len(conditions)
        node = nodes.Case(tuple(expressions[:count]), tuple(expressions[count:-1]), expressions[-1])
        return Typed(node, branches[0].type)

    def _call(self, name: str, arguments: tuple[Expression, ...]) -> Typed:
        function = FUNCTIONS.get(name)
        if function is None:
            raise InvalidInputError(_unknown("function", name, list(FUNCTIONS)))
        function.check_count(name, len(arguments))
        typed = [self.bind(argument) for argument in arguments]
        if function.unified:
            typed = unify(typed, f"the arguments of {name}")
        typed = [fit_argument(value, kind, name) for value, kind in zip(typed, function.kinds(len(typed)), strict=True)]
        return typed_node(nodes.Call(name, tuple(value.expression for value in typed)), typed)


def _connective(node: nodes.And | nodes.Or, children: list[Typed]) -> Typed:
    """Join bound predicates: chains of one connective become one node, and constants that decide nothing go."""
    kind, neutral = type(node), isinstance(node, nodes.And)
    terms: list[Typed] = []
    for child in children:
        literal = child.literal
        if isinstance(child.expression, kind):
            terms.extend(Typed(operand, pa.bool_()) for operand in child.expression.operands)
        elif literal is None or not literal.is_valid:
            terms.append(child)
        elif literal.as_py() is not neutral:
            return child
    if len(terms) < 2:
        return terms[0] if terms else Typed(Literal(pa.scalar(neutral)), pa.bool_())
    if all(term.literal is not None for term in terms):
        return terms[0]
    return Typed(kind(tuple(term.expression for term in terms)), pa.bool_())


def _negation(operand: Typed) -> Typed:
    """Negate a bound predicate, pushing the negation down as far as possible."""
    match operand.expression:
        case nodes.Not(inner):
            return Typed(inner, pa.bool_())
        case nodes.Comparison(operator, left, right):
            return Typed(nodes.Comparison(nodes.NEGATED[operator], left, right), pa.bool_())
        case nodes.And(operands):
            return _connective(nodes.Or(()), [_negation(Typed(term, pa.bool_())) for term in operands])
        case nodes.Or(operands):
            return _connective(nodes.And(()), [_negation(Typed(term, pa.bool_())) for term in operands])
    return typed_node(nodes.Not(operand.expression), [operand])


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
