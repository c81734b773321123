"""SQL text to expressions.

The text is parsed by sqlglot, in a dialect made here after the one that the reference's users write: names are quoted
by backticks and strings by either kind of quote, `==` is `=`, and every function keeps the name that it was called by.
sqlglot's parser is used as it is, because no class can be derived from its compiled form (`sqlglot[c]`).

| construct | example |
|---|---|
| names | `a`, `a.b`, `` `odd name` ``, `a['b']`, `items[1]` (from 1, or from -1 backwards) |
| constants | `1`, `2.5`, `'text'`, `"text"`, `X'ab'`, `TRUE`, `NULL`, `[1, 2]` |
| typed constants | `date '2020-01-01'`, `timestamp(3) '…'`, `decimal(10, 2) '1.50'`, `interval '2 days'` |
| comparisons | `= == != <> < <= > >= <=>`, `BETWEEN`, `IN`, `IS [NOT] NULL / TRUE / FALSE / UNKNOWN / DISTINCT FROM` |
| patterns | `LIKE`, `ILIKE`, with `ESCAPE` |
| others | `AND OR NOT + - * / %`, `\\|\\|`, `CASE`, `CAST`, `TRY_CAST`, `::`, functions |
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa
from sqlglot import Token, TokenType, exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError
from sqlglot.parser import Parser as PlainParser
from sqlglot.tokens import Tokenizer as BaseTokenizer

from lance_format.errors import InvalidInputError
from lance_format.expressions import nodes
from lance_format.expressions.nodes import Expression, Literal, NullSafeEqual
from lance_format.expressions.parsing.arrow_type_names import parse_arrow_type
from lance_format.expressions.parsing.sql_constants import (
    NOW,
    UnsupportedError,
    interval_of,
    now,
    number_of,
    today,
    type_of,
    unsupported,
    with_backslashes,
)
from lance_format.expressions.rendering import to_sql
from lance_format.expressions.values.casts import cast

_PREFIX = "SELECT "
_MARK = "\0"
_RENAMED = (
    PlainParser.FUNCTIONS.keys() - PlainParser.FUNCTION_PARSERS.keys() - PlainParser.NO_PAREN_FUNCTION_PARSERS.keys()
)
_AGGREGATES = frozenset({"avg", "count", "max", "mean", "median", "min", "stddev", "sum", "var"})


class LanceSQL(Dialect):
    """The dialect, as sqlglot wants it described."""

    class Tokenizer(BaseTokenizer):  # noqa: D106
        IDENTIFIERS = ["`"]
        QUOTES = ["'", '"']
        HEX_STRINGS = [("x'", "'"), ("X'", "'")]
        STRING_ESCAPES = ["'", '"']

    Parser = PlainParser


def parse(text: str) -> Expression:
    """Parse SQL text to an expression, without resolving names and types.

    Raises
    ------
    InvalidInputError
        If the text is not an expression, or is not supported; the message says what and where.
    """
    try:
        return _convert(_parse_tree(text))
    except SqlglotError as error:
        raise InvalidInputError(f"{text!r} is no SQL expression: {_reason(error)}") from error
    except UnsupportedError as error:
        raise InvalidInputError(f"{error.args[0]} not supported in SQL expressions{_position(error.args[1])}") from None
    except RecursionError:
        raise InvalidInputError("the SQL expression is nested too deeply; split it into several") from None


def _parse_tree(text: str) -> exp.Expression:
    dialect = LanceSQL()
    tokens = dialect.tokenize(_PREFIX + text)
    if len(tokens) == 1:
        raise InvalidInputError(f"{text!r} is no SQL expression: it is empty")
    _mark_functions(tokens)
    (select, *others) = dialect.parser().parse(tokens, _PREFIX + text)
    if others or not isinstance(select, exp.Select) or len(select.expressions) != 1:
        raise InvalidInputError(f"{text!r} is not one SQL expression but several; give one")
    for name, clause in select.args.items():
        if name != "expressions" and clause:
            raise InvalidInputError(
                f"{text!r} is more than a SQL expression: it has a clause {name.rstrip('_').upper()}"
            )
    tree: exp.Expression = select.expressions[0]
    _unmark_functions(tree)
    return tree


def _mark_functions(tokens: list[Token]) -> None:
    """Hide the names of functions from sqlglot, which has special nodes for calls of known ones."""
    for token, following in itertools.pairwise(tokens):
        if following.token_type is TokenType.L_PAREN and token.text.upper() in _RENAMED:
            token.text = _MARK + token.text


def _unmark_functions(tree: exp.Expression) -> None:
    for named in tree.find_all(exp.Anonymous, exp.Identifier):
        if isinstance(named.this, str):
            named.set("this", named.this.removeprefix(_MARK))


def _position(node: exp.Expression) -> str:
    starts = [part.meta["start"] for part in node.walk() if "start" in part.meta]
    return f", near character {min(starts) - len(_PREFIX) + 1}: {node.sql()}" if starts else f": {node.sql()}"


def _reason(error: SqlglotError) -> str:
    details = getattr(error, "errors", None)
    if not details:
        return str(error).removeprefix(f"Error tokenizing '{_PREFIX}").strip()
    first = details[0]
    where = f"line {first['line']}, near {first['highlight']!r}"
    description = re.sub(r"<class '[\w.]*\.(\w+)'>", r"\1", first["description"])
    return f"{description} ({where})"


def _convert(node: exp.Expression) -> Expression:
    convert = _CONVERT.get(type(node))
    if convert is None:
        raise unsupported(f"{_construct(node)} is", node)
    return convert(node)


def _construct(node: exp.Expression) -> str:
    return _CONSTRUCTS.get(type(node).__name__, f"the construct {type(node).__name__}")


_CONSTRUCTS = {
    "Window": "a window function",
    "Subquery": "a subquery",
    "Select": "a subquery",
    "Exists": "a subquery",
    "Star": "*",
    "Alias": "an alias",
    "Placeholder": "a placeholder",
    "Parameter": "a parameter",
}


def _column(node: Any) -> Expression:
    parts = node.parts
    if any(not isinstance(part, exp.Identifier) for part in parts):
        raise unsupported("* is", node)
    return nodes.Column(tuple(part.this for part in parts))


def _dot(node: Any) -> Expression:
    operand = _convert(node.this)
    if not isinstance(node.expression, exp.Identifier):
        raise unsupported("a method call is", node)
    return _get_field(operand, node.expression.this)


def _get_field(operand: Expression, name: str) -> Expression:
    if isinstance(operand, nodes.Column):
        return nodes.Column((*operand.path, name))
    return nodes.GetField(operand, name)


def _bracket(node: Any) -> Expression:
    operand = _convert(node.this)
    for index in node.expressions:
        if isinstance(index, exp.Slice):
            raise unsupported("a slice of a list is", node)
        if isinstance(index, exp.Literal) and index.is_string:
            operand = _get_field(operand, index.this)
        else:
            operand = nodes.Call("array_element", (operand, _convert(index)))
    return operand


def _literal(node: Any) -> Expression:
    return Literal(pa.scalar(node.this) if node.is_string else number_of(node.this))


def _negate(node: Any) -> Expression:
    if isinstance(node.this, exp.Literal) and not node.this.is_string:
        return Literal(number_of("-" + node.this.this))
    return nodes.Negate(_convert(node.this))


def _hex(node: Any) -> Expression:
    digits = node.this
    try:
        return Literal(pa.scalar(bytes.fromhex(digits if len(digits) % 2 == 0 else "0" + digits)))
    except ValueError:
        raise InvalidInputError(f"X'{digits}' is no hexadecimal constant") from None


def _array(node: Any) -> Expression:
    values = [_convert(item) for item in node.expressions]
    return _array_of(values, node)


def _array_of(values: list[Expression], node: exp.Expression) -> Expression:
    scalars = [value.value for value in values if isinstance(value, Literal)]
    if len(scalars) < len(values):
        raise unsupported("a list of anything but constants is", node)
    types = {scalar.type for scalar in scalars if scalar.is_valid}
    if len(types) > 1 and not types <= {pa.int64(), pa.float64(), pa.uint64()}:
        raise InvalidInputError(f"the list {node.sql()} has values of several types; cast them to one")
    arrow_type = pa.null() if not types else types.pop() if len(types) == 1 else pa.float64()
    items = [cast(scalar, arrow_type) for scalar in scalars]
    return Literal(pa.scalar(items, pa.list_(arrow_type)))


def _chain(node: Any) -> Expression:
    """Gather a chain of one connective, which sqlglot nests as deeply as it is long."""
    operands, kind = [], type(node)
    while isinstance(node, (kind, exp.Paren)):
        if isinstance(node, exp.Paren):
            if not isinstance(node.unnest(), kind):
                break
            node = node.unnest()
            continue
        operands.append(node.expression)
        node = node.this
    operands.append(node)
    joined = nodes.And if kind is exp.And else nodes.Or
    return joined(tuple(_convert(operand) for operand in reversed(operands)))


def _comparison(operator: nodes.ComparisonOperator) -> Callable[[Any], Expression]:
    def convert(node: Any) -> Expression:
        return nodes.Comparison(operator, _convert(node.this), _convert(node.expression))

    return convert


def _arithmetic(operator: nodes.ArithmeticOperator) -> Callable[[Any], Expression]:
    def convert(node: Any) -> Expression:
        return nodes.Arithmetic(operator, _convert(node.this), _convert(node.expression))

    return convert


def _is(node: Any) -> Expression:
    operand, test = _convert(node.this), node.expression
    if isinstance(test, exp.Null):
        return nodes.IsNull(operand)
    if isinstance(test, exp.Boolean):
        return NullSafeEqual(operand, Literal(pa.scalar(bool(test.this))))
    raise unsupported("IS with anything but NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM is", node)


def _between(node: Any) -> Expression:
    operand = _convert(node.this)
    low = nodes.Comparison(">=", operand, _convert(node.args["low"]))
    return nodes.And((low, nodes.Comparison("<=", operand, _convert(node.args["high"]))))


def _in(node: Any) -> Expression:
    if node.args.get("query") or node.args.get("field") or node.args.get("unnest"):
        raise unsupported("IN with anything but a list of values is", node)
    if not node.expressions:
        raise InvalidInputError(f"{node.sql()} has no values")
    operand = _convert(node.this)
    by_type: dict[pa.DataType, list[pa.Scalar]] = {}
    terms: list[Expression] = []
    for item in node.expressions:
        value = _convert(item)
        if isinstance(value, Literal):
            by_type.setdefault(value.value.type, []).append(value.value)
        else:
            terms.append(nodes.Comparison("=", operand, value))
    nulls = by_type.pop(pa.null(), []) if len(by_type) > 1 else []
    for arrow_type, scalars in by_type.items():
        scalars += [pa.scalar(None, arrow_type)] * len(nulls)
        terms.append(nodes.In(operand, pa.array(scalars, arrow_type)))
    return nodes.disjunction(tuple(terms))


def _like(node: Any, escape: str = "\\") -> Expression:
    operand, pattern = _convert(node.this), _convert(node.expression)
    if not isinstance(pattern, Literal) or not (pattern.is_null or pa.types.is_string(pattern.value.type)):
        raise unsupported("LIKE with a pattern that is not a constant is", node)
    if pattern.is_null:
        return Literal(pa.scalar(None, pa.bool_()))
    text = with_backslashes(pattern.value.as_py(), escape)
    like: Expression = nodes.Like(operand, text, isinstance(node, exp.ILike))
    return nodes.Not(like) if node.args.get("negate") else like


def _escape(node: Any) -> Expression:
    escape = _convert(node.expression)
    negated = isinstance(node.this, exp.Not)
    like = node.this.this if negated else node.this
    if (
        not isinstance(escape, Literal)
        or len(str(escape.value.as_py())) != 1
        or not isinstance(like, (exp.Like, exp.ILike))
    ):
        raise InvalidInputError(f"{node.sql()} needs one character to escape by")
    converted = _like(like, str(escape.value.as_py()))
    return nodes.Not(converted) if negated else converted


def _cast(node: Any) -> Expression:
    return _cast_to(_convert(node.this), type_of(node.args["to"]), null_on_failure=isinstance(node, exp.TryCast))


def _arrow_cast(operand: Expression, name: Expression) -> Expression:
    if not isinstance(name, Literal) or not isinstance(name.value.as_py(), str):
        raise InvalidInputError("arrow_cast needs the name of a type as a text constant, as 'Int32'")
    return _cast_to(operand, parse_arrow_type(name.value.as_py()), null_on_failure=False)


def _cast_to(operand: Expression, arrow_type: pa.DataType, *, null_on_failure: bool) -> Expression:
    if not isinstance(operand, Literal):
        return nodes.Cast(operand, arrow_type, null_on_failure)
    try:
        return Literal(cast(operand.value, arrow_type, null_on_failure=null_on_failure))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InvalidInputError(f"{to_sql(operand)} is no {arrow_type}: {error}") from error


def _case(node: Any) -> Expression:
    branches = node.args["ifs"]
    conditions = [_convert(branch.this) for branch in branches]
    if node.this is not None:
        operand = _convert(node.this)
        conditions = [nodes.Comparison("=", operand, value) for value in conditions]
    default = node.args.get("default")
    values = tuple(_convert(branch.args["true"]) for branch in branches)
    return nodes.Case(tuple(conditions), values, _convert(default) if default else Literal(pa.scalar(None)))


def _function(node: Any) -> Expression:
    name = node.name.lower()
    if name in _AGGREGATES:
        raise unsupported(f"the aggregate {name} is", node)
    arguments = tuple(_convert(argument) for argument in node.expressions)
    if name in ("is_valid", "isnotnull") and len(arguments) == 1:
        return nodes.Not(nodes.IsNull(arguments[0]))
    if name == "get_field" and len(arguments) == 2 and isinstance(arguments[1], Literal):
        return _get_field(arguments[0], str(arguments[1].value.as_py()))
    if name == "arrow_cast" and len(arguments) == 2:
        return _arrow_cast(*arguments)
    if name == "make_array":
        return _array_of(list(arguments), node)
    if name in NOW and not arguments:
        return NOW[name]()
    return nodes.Call(name, arguments)


def _named(name: str, *arguments: str) -> Callable[[Any], Expression]:
    """Return a function that turns a special node of sqlglot into a call, and refuses unnamed parts."""

    def convert(node: Any) -> Expression:
        given = {key: value for key, value in node.args.items() if value}
        if set(given) - set(arguments):
            raise unsupported(f"this form of {name} is", node)
        return nodes.Call(name, tuple(_convert(given[key]) for key in arguments if key in given))

    return convert


def _extract(node: Any) -> Expression:
    return nodes.Call("date_part", (Literal(pa.scalar(node.this.name.lower())), _convert(node.expression)))


def _if(node: Any) -> Expression:
    default = node.args.get("false")
    value = _convert(node.args["true"])
    return nodes.Case((_convert(node.this),), (value,), _convert(default) if default else Literal(pa.scalar(None)))


_CONVERT: dict[type[exp.Expression], Callable[[Any], Expression]] = {
    exp.Paren: lambda node: _convert(node.unnest()),
    exp.Column: _column,
    exp.Dot: _dot,
    exp.Bracket: _bracket,
    exp.Literal: _literal,
    exp.Neg: _negate,
    exp.Null: lambda _: Literal(pa.scalar(None)),
    exp.Boolean: lambda node: Literal(pa.scalar(bool(node.this))),
    exp.HexString: _hex,
    exp.Array: _array,
    exp.And: _chain,
    exp.Or: _chain,
    exp.Not: lambda node: nodes.Not(_convert(node.this)),
    exp.EQ: _comparison("="),
    exp.NEQ: _comparison("!="),
    exp.LT: _comparison("<"),
    exp.LTE: _comparison("<="),
    exp.GT: _comparison(">"),
    exp.GTE: _comparison(">="),
    exp.NullSafeEQ: lambda node: NullSafeEqual(_convert(node.this), _convert(node.expression)),
    exp.NullSafeNEQ: lambda node: nodes.Not(NullSafeEqual(_convert(node.this), _convert(node.expression))),
    exp.Is: _is,
    exp.Between: _between,
    exp.In: _in,
    exp.Like: _like,
    exp.ILike: _like,
    exp.Escape: _escape,
    exp.Add: _arithmetic("+"),
    exp.Sub: _arithmetic("-"),
    exp.Mul: _arithmetic("*"),
    exp.Div: _arithmetic("/"),
    exp.Mod: _arithmetic("%"),
    exp.DPipe: lambda node: nodes.Call("||", (_convert(node.this), _convert(node.expression))),
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Case: _case,
    exp.If: _if,
    exp.Interval: interval_of,
    exp.Anonymous: _function,
    exp.CurrentDate: lambda _: today(),
    exp.CurrentTimestamp: lambda _: now(),
    exp.Extract: _extract,
    exp.Floor: _named("floor", "this"),
    exp.Ceil: _named("ceil", "this"),
    exp.Trim: _named("btrim", "this", "expression"),
    exp.Substring: _named("substr", "this", "start", "length"),
    exp.StrPosition: _named("strpos", "this", "substr"),
}
