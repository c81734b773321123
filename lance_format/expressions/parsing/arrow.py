"""Expressions of pyarrow to expressions of ours.

pyarrow's expressions cannot be walked in Python, but they can be pickled: as an Arrow IPC file of one row, whose
columns are the constants and options, and whose schema's metadata is the tree in pre-order, one key for each token.

```
call: equal             a call begins
field_ref: a                its arguments; nested_field_ref: 3 makes one of the next three names
literal: 0                  the number of the column that holds the constant
options: 1                  likewise, a struct; its field _type_name says what kind
end: equal              the call ends
```

Unlike Substrait, the form has every function and every type, and needs no schema.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from lance_format.errors import InvalidInputError
from lance_format.expressions import nodes
from lance_format.expressions.nodes import Expression, Literal
from lance_format.lazy_dataclasses import dataclass


def from_arrow(expression: pc.Expression, schema: pa.Schema | None = None) -> Expression:  # noqa: ARG001
    """Turn an expression of pyarrow into one of ours, which has the reference's meaning (see `evaluation`).

    Parameters
    ----------
    expression : pyarrow.compute.Expression
    schema : pa.Schema, optional
        Not needed: types meet when the result is bound.

    Raises
    ------
    InvalidInputError
        If it calls a function that has no counterpart here, or refers to fields by number.
    """
    try:
        _, (buffer,) = expression.__reduce__()
    except pa.ArrowNotImplementedError as error:
        raise InvalidInputError(f"{expression} cannot be read ({error}); refer to columns by their names") from error
    batch = pa.ipc.open_file(buffer).get_batch(0)
    return _parse(iter(_metadata_items(batch.schema)), batch)


def _metadata_items(schema: pa.Schema) -> list[tuple[str, str]]:
    """Return the metadata of a schema in order.

    `pa.Schema.metadata` is a dict, which keeps one value a key; the C data interface has all of them. There the
    metadata is the third pointer of the struct, and is an int32 count, then each key and value after its int32 length.
    """
    capsule = schema.__arrow_c_schema__()
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype = ctypes.c_void_p
    get_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    metadata = ctypes.cast(get_pointer(capsule, b"arrow_schema"), ctypes.POINTER(ctypes.c_void_p))[2]
    if metadata is None:
        return []
    position = metadata

    def number() -> int:
        nonlocal position
        value = ctypes.c_int32.from_address(position).value
        position += 4
        return value

    def text() -> str:
        nonlocal position
        length = number()
        value = ctypes.string_at(position, length).decode()
        position += length
        return value

    return [(text(), text()) for _ in range(number())]


@dataclass(slots=True)
class _Open:
    """A call whose end is not reached yet."""

    function: str
    arguments: list[Expression]
    options: Mapping[str, pa.Scalar]


def _parse(tokens: Iterator[tuple[str, str]], batch: pa.RecordBatch) -> Expression:
    """Build the tree with a stack of our own, since chains of `|` nest as deeply as they are long."""
    top = _Open("", [], {})
    outer: list[_Open] = []
    for kind, value in tokens:
        match kind:
            case "literal":
                top.arguments.append(Literal(batch.column(int(value))[0]))
            case "field_ref":
                top.arguments.append(nodes.Column((value,)))
            case "nested_field_ref":
                top.arguments.append(nodes.Column(tuple(next(tokens)[1] for _ in range(int(value)))))
            case "options":
                top.options = dict(batch.column(int(value))[0].items())
            case "call":
                outer.append(top)
                top = _Open(value, [], {})
            case "end":
                build = _CALLS.get(top.function)
                if build is None:
                    raise InvalidInputError(f"pyarrow's function {top.function!r} is not supported in expressions")
                built = build(top.arguments, top.options)
                top = outer.pop()
                top.arguments.append(built)
    return top.arguments[0]


_Build = Callable[[list[Expression], Mapping[str, pa.Scalar]], Expression]


def _connective(kind: type[nodes.And] | type[nodes.Or]) -> _Build:
    def build(arguments: list[Expression], _options: Mapping[str, pa.Scalar]) -> Expression:
        first, *rest = arguments
        return kind((*(first.operands if isinstance(first, kind) else (first,)), *rest))

    return build


def _comparison(operator: nodes.ComparisonOperator) -> _Build:
    return lambda arguments, _: nodes.Comparison(operator, *arguments)


def _arithmetic(operator: nodes.ArithmeticOperator) -> _Build:
    return lambda arguments, _: nodes.Arithmetic(operator, *arguments)


def _call(name: str) -> _Build:
    return lambda arguments, _: nodes.Call(name, tuple(arguments))


def _flag(options: Mapping[str, pa.Scalar], name: str) -> bool:
    return name in options and bool(options[name].as_py())


def _is_null(arguments: list[Expression], options: Mapping[str, pa.Scalar]) -> Expression:
    null = nodes.IsNull(arguments[0])
    if not _flag(options, "nan_is_null"):
        return null
    return nodes.Or((null, nodes.Call("isnan", tuple(arguments))))


def _is_in(arguments: list[Expression], options: Mapping[str, pa.Scalar]) -> Expression:
    values = options["value_set"].values
    return nodes.In(arguments[0], values)


def _cast(arguments: list[Expression], options: Mapping[str, pa.Scalar]) -> Expression:
    return nodes.Cast(arguments[0], options["to_type"].type)


def _pattern(name: str) -> _Build:
    def build(arguments: list[Expression], options: Mapping[str, pa.Scalar]) -> Expression:
        pattern = Literal(options["pattern"].cast(pa.string()))
        if not _flag(options, "ignore_case"):
            return nodes.Call(name, (arguments[0], pattern))
        folded = nodes.Call("lower", (pattern,))
        return nodes.Call(name, (nodes.Call("lower", (arguments[0],)), folded))

    return build


def _like(arguments: list[Expression], options: Mapping[str, pa.Scalar]) -> Expression:
    return nodes.Like(arguments[0], options["pattern"].cast(pa.string()).as_py(), _flag(options, "ignore_case"))


def _regex(arguments: list[Expression], options: Mapping[str, pa.Scalar]) -> Expression:
    flags = (Literal(pa.scalar("i")),) if _flag(options, "ignore_case") else ()
    return nodes.Call("regexp_like", (arguments[0], Literal(options["pattern"].cast(pa.string())), *flags))


def _if_else(arguments: list[Expression], _options: Mapping[str, pa.Scalar]) -> Expression:
    condition, value, default = arguments
    # unlike CASE, pyarrow's function is null where the condition is
    return nodes.Case((nodes.IsNull(condition), condition), (Literal(pa.scalar(None)), value), default)


def _date_part(part: str) -> _Build:
    return lambda arguments, _: nodes.Call("date_part", (Literal(pa.scalar(part)), arguments[0]))


_CALLS: dict[str, _Build] = {
    "equal": _comparison("="),
    "not_equal": _comparison("!="),
    "less": _comparison("<"),
    "less_equal": _comparison("<="),
    "greater": _comparison(">"),
    "greater_equal": _comparison(">="),
    "and": _connective(nodes.And),
    "and_kleene": _connective(nodes.And),
    "or": _connective(nodes.Or),
    "or_kleene": _connective(nodes.Or),
    "invert": lambda arguments, _: nodes.Not(arguments[0]),
    "is_null": _is_null,
    "is_valid": lambda arguments, _: nodes.Not(nodes.IsNull(arguments[0])),
    "true_unless_null": lambda arguments, _: nodes.Not(nodes.IsNull(arguments[0])),
    "is_nan": _call("isnan"),
    "is_in": _is_in,
    "add": _arithmetic("+"),
    "add_checked": _arithmetic("+"),
    "subtract": _arithmetic("-"),
    "subtract_checked": _arithmetic("-"),
    "multiply": _arithmetic("*"),
    "multiply_checked": _arithmetic("*"),
    "divide": _arithmetic("/"),
    "divide_checked": _arithmetic("/"),
    "negate": lambda arguments, _: nodes.Negate(arguments[0]),
    "negate_checked": lambda arguments, _: nodes.Negate(arguments[0]),
    "abs": _call("abs"),
    "abs_checked": _call("abs"),
    "floor": _call("floor"),
    "ceil": _call("ceil"),
    "sqrt": _call("sqrt"),
    "sqrt_checked": _call("sqrt"),
    "cast": _cast,
    "coalesce": _call("coalesce"),
    "if_else": _if_else,
    "utf8_lower": _call("lower"),
    "utf8_upper": _call("upper"),
    "utf8_length": _call("length"),
    "binary_length": _call("octet_length"),
    "starts_with": _pattern("starts_with"),
    "ends_with": _pattern("ends_with"),
    "match_substring": _pattern("contains"),
    "match_substring_regex": _regex,
    "match_like": _like,
    "list_value_length": _call("array_length"),
    **{part: _date_part(part) for part in ("year", "month", "day", "quarter", "hour", "minute", "second")},
}
