"""Functions of JSON documents, which expressions see in stored form, as JSONB.

A missing value is null. A value that cannot be converted to the requested type is an error, as in the reference.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from lance_format import json_paths, jsonb
from lance_format.errors import CorruptFileError, InvalidInputError, NotSupportedError

_INTEGER = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|inf|infinity|nan)", re.IGNORECASE)
_BOOLEANS = {"true": True, "yes": True, "false": False, "no": False}
_LEAST, _MOST = -(2**63), 2**63 - 1
_MAX_INTEGER_DIGITS = 40


def _row_by_row(function: Callable[..., Any], arrow_type: pa.DataType) -> Callable[..., Any]:
    """Lift a function of a document and texts to arrays and scalars; null if an argument is null."""

    def apply(*values: Any) -> Any:
        is_constant = [isinstance(value, pa.Scalar) for value in values]
        columns = [
            itertools.repeat(x.as_py()) if constant else x.to_pylist()
            for x, constant in zip(values, is_constant, strict=True)
        ]
        if all(is_constant):
            columns[0] = [values[0].as_py()]
        try:
            made = [None if any(x is None for x in row) else function(*row) for row in zip(*columns, strict=False)]
        except (CorruptFileError, NotSupportedError) as error:
            raise InvalidInputError(f"a value that is taken for JSON is none that can be read: {error}") from error
        array = pa.array(made, arrow_type)
        return array[0] if all(is_constant) else array

    return apply


def _extract(document: bytes, path: str) -> str | None:
    found = json_paths.select(document, json_paths.parse_path(path))
    if not found:
        return None
    return jsonb.to_text(found[0] if len(found) == 1 else jsonb.pack_array(found))


def _exists(document: bytes, path: str) -> bool:
    return bool(json_paths.select(document, json_paths.parse_path(path)))


def _array_length(document: bytes, path: str) -> int | None:
    found = json_paths.select(document, json_paths.parse_path(path))
    return len(json_paths.items(found[0]) or ()) if found else None


def _array_contains(document: bytes, path: str, value: str) -> bool:
    wanted = (value, f'"{value}"')
    return any(
        jsonb.to_text(item) in wanted
        for found in json_paths.select(document, json_paths.parse_path(path))
        for item in json_paths.items(found) or ()
    )


def _get(convert: Callable[[Any], Any], what: str) -> Callable[[bytes, str], Any]:
    """Return a function that finds a value by its key and converts it; `convert` returns None if it cannot."""

    def get(document: bytes, key: str) -> Any:
        found = json_paths.child(document, key)
        value = None if found is None else jsonb.to_scalar(found)
        if value is None:
            return None
        made = convert(value)
        if made is None:
            raise InvalidInputError(f"the JSON value {value!r} of {key!r} is no {what}; json_get returns it as it is")
        return made

    return get


def _get_text(document: bytes, key: str) -> str | None:
    found = json_paths.child(document, key)
    if found is None:
        return None
    value = jsonb.to_scalar(found)
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, float) and not math.isfinite(value):  # JSON has no text for it but null.
        return "NaN" if math.isnan(value) else str(value)
    return jsonb.to_text(found)


def _to_integer(value: str | float | bool) -> int | None:
    """Convert, with halves rounded away from zero."""
    if isinstance(value, str):
        if _INTEGER.fullmatch(value) and len(value) <= _MAX_INTEGER_DIGITS and _LEAST <= int(value) <= _MOST:
            return int(value)
        number = _to_float(value)
    else:
        number = value if isinstance(value, int) else float(value)
    if number is None or not math.isfinite(number):
        return None
    whole = math.trunc(number)
    if abs(number - whole) >= 0.5:
        whole += 1 if number > 0 else -1
    return whole if _LEAST <= whole <= _MOST else None


def _to_float(value: str | float | bool) -> float | None:
    return float(value) if not isinstance(value, str) or _NUMBER.fullmatch(value) else None


def _to_boolean(value: str | float | bool) -> bool | None:
    if isinstance(value, str):
        return _BOOLEANS.get(value.lower())
    return value if isinstance(value, bool) else None


json_get = _row_by_row(json_paths.child, pa.large_binary())
"""Return the member of an object, or the item of an array, as JSON."""
json_get_string = _row_by_row(_get_text, pa.string())
"""Return it as text."""
json_get_int = _row_by_row(_get(_to_integer, "integer of 8 bytes"), pa.int64())
"""Return it as an integer, rounded if it is none."""
json_get_float = _row_by_row(_get(_to_float, "number"), pa.float64())
"""Return it as a number."""
json_get_bool = _row_by_row(_get(_to_boolean, "boolean"), pa.bool_())
"""Return it as true or false."""
json_extract = _row_by_row(_extract, pa.string())
"""Return the text of the value at a path, or of an array if there are several."""
json_exists = _row_by_row(_exists, pa.bool_())
"""Return whether a path leads to anything."""
json_array_length = _row_by_row(_array_length, pa.int64())
"""Return how many items the first value has that a path leads to, if it is an array."""
json_array_contains = _row_by_row(_array_contains, pa.bool_())
"""Return whether an array that a path leads to has an item, given as its text, without quotes if it is a string."""
