"""Fitting the arguments of functions, and the branches of CASE, to the types that they need."""

from __future__ import annotations

import pyarrow as pa

from lance_format.errors import InvalidInputError
from lance_format.expressions.binding.typed import Typed, cast_to
from lance_format.expressions.rendering import to_sql
from lance_format.expressions.values.coercion import (
    common_type,
    is_bytes,
    is_number,
    is_text,
)


def unify(values: list[Typed], what: str) -> list[Typed]:
    """Cast values to their common type.

    Raises
    ------
    InvalidInputError
        If there is none.
    """
    arrow_type = pa.null()
    for value in values:
        common = common_type(arrow_type, value.type)
        if common is None:
            raise InvalidInputError(f"{what} have the types {arrow_type} and {value.type}; cast them to one")
        arrow_type = common
    return [cast_to(value, arrow_type) for value in values]


def as_text(typed: Typed, what: str) -> Typed:
    """Cast bytes and nulls to strings.

    Raises
    ------
    InvalidInputError
        If the type is another one.
    """
    if is_text(typed.type):
        return typed
    if is_bytes(typed.type) or pa.types.is_null(typed.type):
        return cast_to(typed, pa.string())
    raise InvalidInputError(f"{what} needs a string, and {to_sql(typed.expression)} is {typed.type}; cast it")


def fit_argument(value: Typed, kind: str, function: str) -> Typed:
    """Cast an argument of a function to the type that the function takes.

    Parameters
    ----------
    value : Typed
    kind : str
        Kind of the parameter; see `lance_format.expressions.functions.registry`.
    function : str
        Name of the function, for errors.

    Raises
    ------
    InvalidInputError
        If the argument is of another kind.
    """
    match kind:
        case "string":
            return as_text(value, function)
        case "text":
            return value if is_text(value.type) else cast_to(value, pa.string())
        case "float":
            if is_number(value.type) or pa.types.is_null(value.type):
                return value if pa.types.is_floating(value.type) else cast_to(value, pa.float64())
        case "number":
            if is_number(value.type):
                return value
        case "integer":
            if pa.types.is_integer(value.type):
                return cast_to(value, pa.int64())
        case "constant":
            if value.literal is not None:
                return value
        case "list":
            if pa.types.is_list(value.type) or pa.types.is_large_list(value.type):
                return value
            if pa.types.is_fixed_size_list(value.type):
                return cast_to(value, pa.list_(value.type.value_type))
        case "json":
            if pa.types.is_large_binary(value.type):
                return value
        case "temporal":
            if pa.types.is_temporal(value.type):
                return value
        case _:
            return value
    raise InvalidInputError(f"{function} needs a {kind} where it is given {to_sql(value.expression)}, {value.type}")
