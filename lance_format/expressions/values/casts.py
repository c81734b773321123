"""Casts with the results and the failures of the reference."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lance_format.expressions.values.calendar import CYCLE_DAYS, CYCLE_YEARS, DAY_TICKS

MAX_WORD_DIGITS = 18
"""Number of decimal digits that 64 bits always hold."""


def cast(values: pa.Array | pa.Scalar, to: pa.DataType, *, null_on_failure: bool = False) -> pa.Array | pa.Scalar:
    """Convert values to another type.

    Fractions are cut off when numbers become integers, and rounded half away from zero when decimals lose digits; finer
    units of time are cut off; a value that is out of the type's range is an error.

    Parameters
    ----------
    values : pa.Array or pa.Scalar
    to : pa.DataType
    null_on_failure : bool
        Whether values that cannot be converted become null.

    Raises
    ------
    pa.ArrowInvalid
        If a value cannot be converted.
    pa.ArrowNotImplementedError
        If no values of the type can.
    """
    if values.type == to:
        return values
    if isinstance(values, pa.Scalar):
        array = pa.repeat(values, 1) if values.is_valid else pa.nulls(1, values.type)
        return cast(array, to, null_on_failure=null_on_failure)[0]
    return _cast_or_null(values, to) if null_on_failure else _cast(values, to)


def _cast_or_null(values: pa.Array, to: pa.DataType) -> pa.Array:
    """Halve an array that does not convert until the values are found that do not."""
    try:
        return _cast(values, to)
    except pa.ArrowInvalid:
        if len(values) <= 1:
            return pa.nulls(len(values), to)
    middle = len(values) // 2
    return pa.concat_arrays([_cast_or_null(values[:middle], to), _cast_or_null(values[middle:], to)])


def _cast(values: pa.Array, to: pa.DataType) -> pa.Array:
    source = values.type
    if pa.types.is_dictionary(source):
        return _cast(pc.cast(values, source.value_type), to)
    if pa.types.is_string(to) or pa.types.is_large_string(to):
        values = _text(values)
    elif pa.types.is_integer(to) and (pa.types.is_floating(source) or pa.types.is_decimal(source)):
        values = pc.trunc(values)
    elif pa.types.is_decimal(to) and pa.types.is_decimal(source) and to.scale < source.scale:
        values = round_decimals(values, to.scale)
    elif pa.types.is_float64(to) and pa.types.is_decimal128(source) and source.precision <= MAX_WORD_DIGITS:
        return _quotients(values)
    elif pa.types.is_timestamp(to) and pa.types.is_timestamp(source) and to.tz and not source.tz:
        values = pc.assume_timezone(values, to.tz, ambiguous="earliest", nonexistent="earliest")
    elif (pa.types.is_timestamp(to) or pa.types.is_date(to)) and _is_text(source):
        values = _moments(values, to)
    elif pa.types.is_integer(source) and pa.types.is_temporal(to) and to.bit_width == 32:
        values = pc.cast(values, pa.int32())
    elif pa.types.is_boolean(to) and _is_text(source):
        values = _truths(values)
    elif pa.types.is_integer(to) and _is_text(source):
        # the reference reads a sign, and no hexadecimal digits
        values = pc.replace_substring_regex(values, r"^\+(\d)", r"\1")
        values = pc.replace_substring_regex(values, r"^(-?0)[xX]", r"\1?")
    elif pa.types.is_time(to) and pa.types.is_string(source):
        values = pc.cast(pc.binary_join_element_wise("1970-01-01", values, "T"), pa.timestamp("ns"))
    elif pa.types.is_decimal(to) and pa.types.is_integer(source):
        values = pc.cast(values, pa.decimal128(20, 0))  # Arrow asks for room for any integer, not for those there are
        values = pc.cast(values, pa.decimal256(20 + to.scale, to.scale))
    # decimals without a check would keep digits that the type has no room for
    options = pc.CastOptions(
        to,
        allow_time_truncate=True,
        allow_float_truncate=not pa.types.is_integer(to),
    )
    return pc.cast(values, options=options)


def _is_text(arrow_type: pa.DataType) -> bool:
    return bool(pa.types.is_string(arrow_type) or pa.types.is_large_string(arrow_type))


def decimal_words(decimals: pa.Array) -> npt.NDArray[np.int64] | None:
    """Return the digits of decimals of 128 bits, 0 for nulls; None if some have more than 64 bits hold."""
    if decimals.buffers()[1] is None:
        return None
    halves = np.frombuffer(decimals.buffers()[1], np.int64, 2 * len(decimals), 16 * decimals.offset)
    low, high = halves[::2], halves[1::2]
    if decimals.null_count:
        valid = decimals.is_valid().to_numpy(zero_copy_only=False)
        low, high = np.where(valid, low, 0), np.where(valid, high, 0)
    if decimals.type.precision > MAX_WORD_DIGITS and not np.array_equal(low >> 63, high):
        return None
    return low


def _quotients(decimals: pa.Array) -> pa.Array:
    """Divide the digits of decimals of 64 bits by their power of ten; Arrow multiplies by one that is not exact."""
    digits, scale = decimal_words(decimals), decimals.type.scale
    if digits is None:
        return pa.nulls(len(decimals), pa.float64())
    numbers = digits / 10.0**scale if scale >= 0 else digits * 10.0**-scale
    return pa.array(numbers, mask=np.asarray(decimals.is_null()) if decimals.null_count else None)


def round_decimals(values: pa.Array | pa.Scalar, scale: int) -> pa.Array | pa.Scalar:
    """Round decimals half away from zero to fewer digits after the point; the precision stays.

    Raises
    ------
    pa.ArrowInvalid
        If a result has too many digits.
    """
    source = values.type
    if scale >= source.scale:
        return values
    # Arrow's own result is 0 where 9.99 rounds to 10.0, which takes a digit more
    wide = pc.cast(values, pa.decimal256(min(source.precision + 1, 76), source.scale))
    rounded = pc.round(wide, scale, round_mode="half_towards_infinity")
    to = (pa.decimal128 if pa.types.is_decimal128(source) else pa.decimal256)(source.precision, scale)
    return pc.cast(rounded, to, safe=True)


_SIGNED_YEAR = re.compile(r"([+-]\d{4,6})(-.*)", re.DOTALL)


def _moments(texts: pa.Array, to: pa.DataType) -> pa.Array:
    """Parse dates or timestamps in ISO 8601; Arrow cannot read the signed years outside 0 to 9999.

    A text with such a year is parsed in another year with the same calendar; then the difference is added.
    """
    far = [None if text is None else _SIGNED_YEAR.fullmatch(text) for text in texts.to_pylist()]
    if not any(far):
        return _unsigned(texts, to)
    near, cycles = texts.to_pylist(), [0] * len(far)
    for index, match in enumerate(far):
        if match is not None:
            cycles[index], year = divmod(int(match[1]), CYCLE_YEARS)
            cycles[index] -= 5
            near[index] = f"{year + 5 * CYCLE_YEARS}{match[2]}"
    parsed = _unsigned(pa.array(near, pa.string()), to)
    number = pa.int32() if pa.types.is_date32(parsed.type) else pa.int64()
    unit_days = 1 if number == pa.int32() else DAY_TICKS[getattr(parsed.type, "unit", "ms")]
    try:
        days = pa.array([count * CYCLE_DAYS * unit_days for count in cycles], number)
    except OverflowError as error:
        raise pa.ArrowInvalid(f"a year does not fit into {to}") from error
    return pc.add_checked(parsed.cast(number), days).cast(parsed.type)


def _unsigned(texts: pa.Array, to: pa.DataType) -> pa.Array:
    return _timestamps(texts, to) if pa.types.is_timestamp(to) else _dates(texts, to)


_SHORT_DATES = (
    (r"^(\d{4})(\d\d)(\d\d)$", r"\1-\2-\3"),
    (r"^(\d{4})-(\d)-(\d\d?)$", r"\1-0\2-\3"),
    (r"^(\d{4}-\d\d)-(\d)$", r"\1-0\2"),
)


def _dates(texts: pa.Array, to: pa.DataType) -> pa.Array:
    """Parse dates, whose months and days may have one digit or no hyphens, and the days of timestamps."""
    for short in _SHORT_DATES:
        texts = pc.replace_substring_regex(texts, *short)
    has_time = pc.fill_null(pc.match_substring_regex(texts, r"^\d{4}-\d\d-\d\d[T ]\d\d:"), False)
    if not pc.any(has_time).as_py():
        return pc.cast(texts, to)
    nothing = pa.scalar(None, texts.type)
    moments = _timestamps(pc.if_else(has_time, texts, nothing), pa.timestamp("us"))
    return pc.coalesce(pc.cast(pc.if_else(has_time, nothing, texts), to), pc.cast(moments, to, safe=False))


_TRUE = ["t", "tr", "tru", "true", "y", "ye", "yes", "on", "1"]
_FALSE = ["f", "fa", "fal", "fals", "false", "n", "no", "of", "off", "0"]


def _truths(texts: pa.Array) -> pa.Array:
    """Give truth values the texts that Arrow knows."""
    words = pc.utf8_lower(pc.utf8_trim_whitespace(texts))
    for known in (_TRUE, _FALSE):
        texts = pc.if_else(pc.is_in(words, pa.array(known, words.type)), known[-1], texts)
    return texts


_UNIT_NAMES = {"s": "second", "ms": "millisecond", "us": "microsecond", "ns": "nanosecond"}


def _timestamps(texts: pa.Array, to: pa.DataType) -> pa.Array:
    """Parse ISO 8601 with any number of digits of a second, with or without a zone."""
    for unit in (to.unit, "us", "ns"):
        for zone in (to.tz, None if to.tz else "UTC"):
            try:
                parsed = pc.cast(texts, pa.timestamp(unit, zone))
                return parsed if unit == to.unit else pc.floor_temporal(parsed, unit=_UNIT_NAMES[to.unit])
            except pa.ArrowInvalid as error:
                failure = error
    raise failure


_MANY_DIGITS = (r"^(\d{5,}-)", r"+\1")
"""ISO 8601 wants a sign before a year of more than four digits, and the reference writes it."""


def _text(values: pa.Array) -> pa.Array:
    source = values.type
    if pa.types.is_date(source):
        return pc.replace_substring_regex(pc.cast(values, pa.string()), *_MANY_DIGITS)
    if pa.types.is_floating(source):
        return _digits(values)
    if pa.types.is_timestamp(source):
        # ISO 8601, with groups of three decimals of a second as needed.
        texts = pc.replace_substring(pc.cast(values, pa.string()), " ", "T", max_replacements=1)
        for pattern, replacement in (
            (r"\.(\d*?)(?:000)*(Z|[+-]\d{4})?$", r".\1\2"),
            (r"\.(Z|[+-]\d{4})?$", r"\1"),
            (r"([+-]\d\d)(\d\d)$", r"\1:\2"),
            _MANY_DIGITS,
        ):
            texts = pc.replace_substring_regex(texts, pattern, replacement)
        return texts
    return values


_WITHOUT_EXPONENT = {pa.float32(): (1e-6, 1e13), pa.float64(): (1e-5, 1e16)}
"""The sizes of numbers that the reference writes without an exponent, from and below, by type."""


def _digits(numbers: pa.Array) -> pa.Array:
    """Write floating-point numbers with the fewest digits; Arrow gives an exponent to others than the reference."""
    low, high = (pa.scalar(bound, numbers.type) for bound in _WITHOUT_EXPONENT[numbers.type])
    texts = pc.replace_substring(pc.replace_substring(pc.cast(numbers, pa.string()), "nan", "NaN"), "e+", "e")
    sizes = pc.abs(numbers)
    is_plain = pc.or_(pc.equal(sizes, 0), pc.and_(pc.greater_equal(sizes, low), pc.less(sizes, high)))
    differs = pc.and_(pc.is_finite(numbers), pc.equal(is_plain, pc.match_substring(texts, "e")))
    if pc.any(differs).as_py():
        odd = zip(texts.filter(differs).to_pylist(), is_plain.filter(differs).to_pylist(), strict=True)
        others = [_without_exponent(text) if plain else _with_exponent(text) for text, plain in odd]
        texts = pc.replace_with_mask(texts, differs, pa.array(others, pa.string()))
    return pc.replace_substring_regex(texts, r"^(-?\d+)$", r"\1.0")


def _without_exponent(text: str) -> str:
    return f"{Decimal(text):f}"


def _with_exponent(text: str) -> str:
    sign, digits, exponent = Decimal(text).normalize().as_tuple()
    first, *rest = map(str, digits)
    point = "." if rest else ""
    return f"{'-' * sign}{first}{point}{''.join(rest)}e{int(exponent) + len(rest)}"


def keeps_order(source: pa.DataType, to: pa.DataType) -> bool:
    """Return whether a cast keeps the order of values, possibly making some equal.

    Rounding casts keep it too. False if unknown, as for casts between text and numbers.
    """
    types = pa.types
    if types.is_timestamp(source):
        # a clock that is put back shows an hour twice
        same_clock = (to.tz is None) == (source.tz is None) if types.is_timestamp(to) else source.tz is None
        return same_clock and (types.is_timestamp(to) or types.is_date(to))
    if types.is_date(source):
        return types.is_date(to) or (types.is_timestamp(to) and not to.tz)
    return any(is_source(source) and any(is_target(to) for is_target in targets) for is_source, targets in _MONOTONIC)


_STRINGS = (
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_binary,
    pa.types.is_large_binary,
)
_MONOTONIC: tuple[tuple[Callable[[pa.DataType], bool], tuple[Callable[[pa.DataType], bool], ...]], ...] = (
    (pa.types.is_boolean, (pa.types.is_integer, pa.types.is_floating)),
    (pa.types.is_integer, (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)),
    (pa.types.is_floating, (pa.types.is_integer, pa.types.is_floating)),
    (pa.types.is_decimal, (pa.types.is_integer, pa.types.is_decimal)),
    (pa.types.is_time, (pa.types.is_time,)),
    (pa.types.is_duration, (pa.types.is_duration,)),
    *((is_source, _STRINGS) for is_source in (*_STRINGS, pa.types.is_fixed_size_binary)),
)
