"""The functions of expressions, by their SQL names.

A function is a row of `FUNCTIONS`: its computation, and the kinds of its arguments.

| argument | is |
|---|---|
| `any` | anything |
| `string` | a string, or bytes that are one |
| `text` | anything, turned into a string |
| `number`, `float`, `integer` | a number; one turned into a float; an integer |
| `temporal` | a date, time, timestamp or duration |
| `list` | a list |
| `json` | JSON, as it is stored |
| `constant` | a constant of any type |
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lance_format.errors import InvalidInputError
from lance_format.expressions.functions import json_functions, letter_case, lists
from lance_format.expressions.functions.patterns import contains, with_unicode_classes
from lance_format.expressions.functions.sampling import hash_fraction
from lance_format.expressions.values import calendar
from lance_format.expressions.values.casts import round_decimals
from lance_format.expressions.values.choice import choose, first_valid
from lance_format.expressions.values.order import compare
from lance_format.lazy_dataclasses import dataclass
from lance_format.masks import is_true

_MOST_REPEATED_BYTES = 1 << 28


@dataclass(frozen=True, slots=True)
class Function:
    """A function of the values of its arguments.

    Parameters
    ----------
    apply : callable
        Takes one array or scalar for each argument, and returns one.
    arguments : tuple of str
        Kind of each argument; `binding` casts to it or raises.
    required : int, optional
        Number of required arguments, by default all.
    variadic : bool
        Whether the last argument may repeat.
    unified : bool
        Whether the arguments are first cast to one type.
    """

    apply: Callable[..., Any]
    arguments: tuple[str, ...]
    required: int | None = None
    variadic: bool = False
    unified: bool = False

    def check_count(self, name: str, count: int) -> None:
        """Refuse a call with too few arguments or too many.

        Raises
        ------
        InvalidInputError
            Naming the function and its numbers of arguments.
        """
        most = len(self.arguments)
        least = most if self.required is None else self.required
        if count < least or (count > most and not self.variadic):
            takes = f"{least} or more" if self.variadic else f"{least} to {most}" if least < most else str(most)
            raise InvalidInputError(f"{name} takes {takes} arguments, and is given {count}")

    def kinds(self, count: int) -> tuple[str, ...]:
        """Return what each of `count` arguments must be."""
        return (self.arguments + self.arguments[-1:] * count)[:count]


def _over_arrays(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let a function of arrays take scalars too."""

    def apply(*values: Any) -> Any:
        lengths = [len(value) for value in values if not isinstance(value, pa.Scalar)]
        arrays = [_repeat(value, lengths[0] if lengths else 1) for value in values]
        return function(*arrays) if lengths else function(*arrays)[0]

    return apply


def _of_array(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let a function of an array and constants take a scalar for the array."""

    def apply(values: Any, *constants: Any) -> Any:
        if isinstance(values, pa.Scalar):
            return function(_repeat(values, 1), *constants)[0]
        return function(values, *constants)

    return apply


def _has_item(values: Any, item: Any) -> Any:
    if isinstance(item, pa.Scalar) and not isinstance(values, pa.Scalar):
        return lists.contains_constant(values, item)
    return _over_arrays(lists.contains)(values, item)


def _repeat_text(values: Any, counts: Any) -> Any:
    """Repeat texts, negative counts as zero, up to a limit on the memory of a batch."""
    counts = pc.max_element_wise(counts, pa.scalar(0, counts.type), skip_nulls=False)
    sizes = pc.multiply(pc.cast(pc.binary_length(values), pa.float64()), pc.cast(counts, pa.float64(), safe=False))
    total = pc.sum(sizes).as_py() if isinstance(sizes, pa.Array) else sizes.as_py()
    if (total or 0) > _MOST_REPEATED_BYTES:
        raise InvalidInputError(
            f"repeat makes text of {total:.3g} bytes of the rows of one batch; at most {_MOST_REPEATED_BYTES} are made"
        )
    return pc.binary_repeat(values, counts)


def _repeat(value: Any, count: int) -> pa.Array:
    if not isinstance(value, pa.Scalar):
        return value
    return pa.repeat(value, count) if value.is_valid else pa.nulls(count, value.type)


def _text_of(constant: pa.Scalar, what: str) -> str:
    if not constant.is_valid or not isinstance(constant.as_py(), str):
        raise InvalidInputError(f"{what} must be a text, and is {constant}")
    return str(constant.as_py())


def _integer_of(constant: pa.Scalar, what: str) -> int:
    if not constant.is_valid or not pa.types.is_integer(constant.type):
        raise InvalidInputError(f"{what} must be an integer, and is {constant}")
    return int(constant.as_py())


def _match(kernel: Callable[..., Any]) -> Callable[..., Any]:
    def apply(values: Any, pattern: pa.Scalar) -> Any:
        if not pattern.is_valid:
            return pc.if_else(True, pa.scalar(None, pa.bool_()), pc.is_null(values))
        return kernel(values, pattern=_text_of(pattern, "the pattern"))

    return apply


def _regexp_like(values: Any, pattern: pa.Scalar, flags: pa.Scalar | None = None) -> Any:
    text = "" if flags is None else _text_of(flags, "the flags of regexp_like")
    if set(text) - {"i"}:
        raise InvalidInputError(f"regexp_like knows the flag 'i' only, and is given {text!r}")
    if not pattern.is_valid:
        return _match(pc.match_substring_regex)(values, pattern)
    unicode = with_unicode_classes(_text_of(pattern, "the pattern"))
    return pc.match_substring_regex(values, pattern=unicode, ignore_case="i" in text)


def _regexp_match(values: Any, pattern: pa.Scalar, flags: pa.Scalar | None = None) -> Any:
    return is_true(_regexp_like(values, pattern, flags))


def _concat(*values: Any, nulls: str = "replace") -> Any:
    large = any(pa.types.is_large_string(value.type) for value in values)
    arrow_type = pa.large_string() if large else pa.string()
    texts = [pc.cast(value, arrow_type) for value in values]
    return pc.binary_join_element_wise(*texts, pa.scalar("", arrow_type), null_handling=nulls, null_replacement="")


def _count(kernel: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda values: pc.cast(kernel(values), _count_type(values))


def _count_type(texts: Any) -> pa.DataType:
    """Return the type of numbers of characters and bytes, which is that of the offsets of texts."""
    return pa.int64() if pa.types.is_large_string(texts.type) else pa.int32()


def _position(values: Any, pattern: pa.Scalar) -> Any:
    """Return where a text begins in others: in characters, from 1, or 0. Arrow counts bytes."""
    text = _text_of(pattern, "the text to find")
    found = pc.match_substring(values, text)
    before = (
        pc.list_element(pc.split_pattern(values, text, max_splits=1), 0)
        if text
        else pc.utf8_slice_codeunits(values, 0, 0)
    )
    count_type = _count_type(values)
    return pc.if_else(found, pc.cast(pc.add(pc.utf8_length(before), 1), count_type), pa.scalar(0, count_type))


def _substr(values: Any, start: pa.Scalar, length: pa.Scalar | None = None) -> Any:
    first = _integer_of(start, "the start of substr") - 1
    if length is None:
        return pc.utf8_slice_codeunits(values, max(first, 0))
    count = _integer_of(length, "the length of substr")
    if count < 0:
        raise InvalidInputError(f"the length of substr must not be negative, and is {count}")
    return pc.utf8_slice_codeunits(values, max(first, 0), max(first + count, 0))


def _left(values: Any, count: pa.Scalar) -> Any:
    return pc.utf8_slice_codeunits(values, 0, _integer_of(count, "the length of left"))


def _right(values: Any, count: pa.Scalar) -> Any:
    number = _integer_of(count, "the length of right")
    return pc.utf8_slice_codeunits(values, -number) if number else pc.utf8_slice_codeunits(values, 0, 0)


def _trim(kernel: Callable[..., Any]) -> Callable[..., Any]:
    def apply(values: Any, characters: pa.Scalar | None = None) -> Any:
        return kernel(values, characters=" " if characters is None else _text_of(characters, "what to trim"))

    return apply


def _replace(values: Any, old: pa.Scalar, new: pa.Scalar) -> Any:
    pattern, replacement = _text_of(old, "what to replace"), _text_of(new, "the replacement")
    if not pattern:  # found before and after each character; the kernel for texts would search forever
        return pc.replace_substring_regex(values, "", replacement.replace("\\", "\\\\"))
    return pc.replace_substring(values, pattern, replacement)


def _round(values: Any, digits: pa.Scalar | None = None) -> Any:
    count = 0 if digits is None else _integer_of(digits, "the number of digits of round")
    if pa.types.is_integer(values.type):
        values = pc.cast(values, pa.float64(), safe=False)
    if pa.types.is_decimal(values.type):
        return round_decimals(values, max(count, 0))
    return pc.round(values, ndigits=count, round_mode="half_towards_infinity")


def _power(values: Any, exponents: Any) -> Any:
    if pa.types.is_float32(values.type):
        values, exponents = pc.cast(values, pa.float64()), pc.cast(exponents, pa.float64())
    return pc.power(values, exponents)


def _abs(values: Any) -> Any:
    return pc.abs_checked(values) if pa.types.is_integer(values.type) else pc.abs(values)


def _nullif(left: Any, right: Any) -> Any:
    return pc.if_else(is_true(compare("=", left, right)), pa.scalar(None, left.type), left)


def _extreme(operator: Any) -> Callable[..., Any]:
    def better(best: Any, value: Any) -> Any:
        is_better = pc.or_(is_true(compare(operator, value, best)), pc.is_null(best))
        are_alike = isinstance(is_better, pa.Scalar)
        return pc.if_else(is_better, value, best) if are_alike else choose([is_better], [value], best)

    return lambda *values: reduce(better, values)


def _date_part(part: pa.Scalar, values: Any) -> Any:
    return calendar.date_part(_text_of(part, "the part of date_part").lower(), values)


def _date_trunc(part: pa.Scalar, values: Any) -> Any:
    return calendar.date_trunc(_text_of(part, "the part of date_trunc").lower(), values)


_COALESCE = Function(first_valid, ("any",), variadic=True, unified=True)
_IFNULL = Function(first_valid, ("any", "any"), unified=True)
_LENGTH = Function(_count(pc.utf8_length), ("text",))
_POSITION = Function(_position, ("string", "constant"))
_SUBSTR = Function(_substr, ("string", "constant", "constant"), required=2)
_TRIM = Function(_trim(pc.utf8_trim), ("string", "constant"), required=1)
_POWER = Function(_power, ("float", "float"), unified=True)
_DATE_PART = Function(_date_part, ("constant", "temporal"))
_DATE_TRUNC = Function(_date_trunc, ("constant", "temporal"))
_HAS = Function(_has_item, ("list", "any"))
_HAS_ANY = Function(_of_array(lists.contains_any), ("list", "constant"))
_HAS_ALL = Function(_of_array(lists.contains_all), ("list", "constant"))
_LIST_LENGTH = Function(_over_arrays(lists.lengths), ("list",))
_ELEMENT = Function(_over_arrays(lists.element), ("list", "integer"))
_EMPTY = Function(_over_arrays(lists.is_empty), ("list",))

FUNCTIONS: dict[str, Function] = {
    # null or not
    "coalesce": _COALESCE,
    "ifnull": _IFNULL,
    "nvl": _IFNULL,
    "nullif": Function(_nullif, ("any", "any"), unified=True),
    "greatest": Function(_extreme(">"), ("any",), variadic=True, unified=True),
    "least": Function(_extreme("<"), ("any",), variadic=True, unified=True),
    # strings
    "lower": Function(letter_case.lower, ("string",)),
    "upper": Function(letter_case.upper, ("string",)),
    "length": _LENGTH,
    "char_length": _LENGTH,
    "character_length": _LENGTH,
    "octet_length": Function(_count(pc.binary_length), ("string",)),
    "concat": Function(_concat, ("text",), variadic=True),
    "||": Function(lambda *values: _concat(*values, nulls="emit_null"), ("text", "text")),
    "starts_with": Function(_match(pc.starts_with), ("string", "constant")),
    "ends_with": Function(_match(pc.ends_with), ("string", "constant")),
    "contains": Function(_match(contains), ("string", "constant")),
    "strpos": _POSITION,
    "position": _POSITION,
    "instr": _POSITION,
    "substr": _SUBSTR,
    "substring": _SUBSTR,
    "left": Function(_left, ("string", "constant")),
    "right": Function(_right, ("string", "constant")),
    "btrim": _TRIM,
    "trim": _TRIM,
    "ltrim": Function(_trim(pc.utf8_ltrim), ("string", "constant"), required=1),
    "rtrim": Function(_trim(pc.utf8_rtrim), ("string", "constant"), required=1),
    "reverse": Function(pc.utf8_reverse, ("string",)),
    "repeat": Function(_repeat_text, ("string", "integer")),
    "replace": Function(_replace, ("string", "constant", "constant")),
    "regexp_like": Function(_regexp_like, ("string", "constant", "constant"), required=2),
    "regexp_match": Function(_regexp_match, ("string", "constant", "constant"), required=2),
    # numbers
    "abs": Function(_abs, ("number",)),
    "round": Function(_round, ("number", "constant"), required=1),
    "floor": Function(pc.floor, ("float",)),
    "ceil": Function(pc.ceil, ("float",)),
    "trunc": Function(pc.trunc, ("float",)),
    "sqrt": Function(pc.sqrt, ("float",)),
    "exp": Function(pc.exp, ("float",)),
    "ln": Function(pc.ln, ("float",)),
    "log2": Function(pc.log2, ("float",)),
    "log10": Function(pc.log10, ("float",)),
    "power": _POWER,
    "pow": _POWER,
    "isnan": Function(pc.is_nan, ("float",)),
    "is_nan": Function(pc.is_nan, ("float",)),
    "iszero": Function(lambda values: pc.equal(values, 0.0), ("float",)),
    "nanvl": Function(
        lambda values, other: pc.if_else(pc.is_nan(values), other, values), ("float", "float"), unified=True
    ),
    "hash_fraction": Function(_of_array(hash_fraction), ("integer", "constant", "constant"), required=2),
    # dates and times
    "date_part": _DATE_PART,
    "datepart": _DATE_PART,
    "date_trunc": _DATE_TRUNC,
    "datetrunc": _DATE_TRUNC,
    # lists
    "array_has": _HAS,
    "array_contains": _HAS,
    "list_has": _HAS,
    "list_contains": _HAS,
    "array_has_any": _HAS_ANY,
    "list_has_any": _HAS_ANY,
    "array_has_all": _HAS_ALL,
    "list_has_all": _HAS_ALL,
    "array_length": _LIST_LENGTH,
    "list_length": _LIST_LENGTH,
    "cardinality": _LIST_LENGTH,
    "array_element": _ELEMENT,
    "list_element": _ELEMENT,
    "empty": _EMPTY,
    "array_empty": _EMPTY,
    "list_empty": _EMPTY,
    # JSON
    "json_get": Function(json_functions.json_get, ("json", "text")),
    "json_get_string": Function(json_functions.json_get_string, ("json", "text")),
    "json_get_int": Function(json_functions.json_get_int, ("json", "text")),
    "json_get_float": Function(json_functions.json_get_float, ("json", "text")),
    "json_get_bool": Function(json_functions.json_get_bool, ("json", "text")),
    "json_extract": Function(json_functions.json_extract, ("json", "text")),
    "json_exists": Function(json_functions.json_exists, ("json", "text")),
    "json_array_length": Function(json_functions.json_array_length, ("json", "text")),
    "json_array_contains": Function(json_functions.json_array_contains, ("json", "text", "text")),
}
