"""The names of types that `arrow_cast` takes: those of Arrow's Rust implementation, as DataFusion has them.

Examples are `Timestamp(Microsecond, Some("UTC"))`, `Decimal128(10, 2)`, `FixedSizeList(32, Float32)` and `List(Utf8)`.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pyarrow as pa

from lance_format.errors import InvalidInputError

_NAME = re.compile(r"\s*(?:nullable )?(\w+)\s*(?:\((.*)\))?\s*", re.DOTALL)
_ZONE = re.compile(r'(?:Some\()?"([^"]+)"\)?')
_MAX_LENGTH = 1000
_PLAIN = {
    "Null": pa.null(),
    "Boolean": pa.bool_(),
    "Int8": pa.int8(),
    "Int16": pa.int16(),
    "Int32": pa.int32(),
    "Int64": pa.int64(),
    "UInt8": pa.uint8(),
    "UInt16": pa.uint16(),
    "UInt32": pa.uint32(),
    "UInt64": pa.uint64(),
    "Float32": pa.float32(),
    "Float64": pa.float64(),
    "Utf8": pa.string(),
    "LargeUtf8": pa.large_string(),
    "Binary": pa.binary(),
    "LargeBinary": pa.large_binary(),
    "Date32": pa.date32(),
    "Date64": pa.date64(),
}
_UNITS = {
    **dict.fromkeys(("Second", "s"), "s"),
    **dict.fromkeys(("Millisecond", "ms"), "ms"),
    **dict.fromkeys(("Microsecond", "us", "µs"), "us"),
    **dict.fromkeys(("Nanosecond", "ns"), "ns"),
}


def parse_arrow_type(text: str) -> pa.DataType:
    """Return the type of a name.

    Raises
    ------
    InvalidInputError
        If there is none.
    """
    try:
        if len(text) <= _MAX_LENGTH:
            return _parse(text)
    except (KeyError, ValueError, TypeError, OverflowError, pa.ArrowException) as error:
        raise InvalidInputError(f"arrow_cast knows no type {text[:100]!r}, as 'Int32' or 'List(Utf8)'") from error
    raise InvalidInputError(f"arrow_cast takes names of types up to {_MAX_LENGTH} characters; {len(text)} are given")


def _parse(text: str) -> pa.DataType:
    match = _NAME.fullmatch(text)
    if match is None:
        raise ValueError(text)
    name, inside = match.groups()
    return _PLAIN[name] if inside is None else _PARAMETRIC[name](*_split(inside))


def _split(text: str) -> list[str]:
    """Split at commas that no bracket encloses."""
    parts, depth = [""], 0
    for character in text:
        depth += (character == "(") - (character == ")")
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


def _timestamp(unit: str, zone: str = "None") -> pa.DataType:
    match = _ZONE.fullmatch(zone)
    if match is None and zone != "None":
        raise ValueError(zone)
    return pa.timestamp(_UNITS[unit], None if match is None else match[1])


def _fixed_size_list(size: str, item: str | None = None) -> pa.DataType:
    if item is None:  # "32 x Float32"
        size, _, item = size.partition(" x ")
    return pa.list_(_parse(item), _positive(size))


def _positive(text: str) -> int:
    number = int(text)
    if not 0 < number < 2**31:
        raise ValueError(text)
    return number


_PARAMETRIC: dict[str, Callable[..., pa.DataType]] = {
    "Timestamp": _timestamp,
    "Time32": lambda unit: pa.time32(_UNITS[unit]),
    "Time64": lambda unit: pa.time64(_UNITS[unit]),
    "Duration": lambda unit: pa.duration(_UNITS[unit]),
    "Decimal128": lambda precision, scale: pa.decimal128(int(precision), int(scale)),
    "Decimal256": lambda precision, scale: pa.decimal256(int(precision), int(scale)),
    "FixedSizeBinary": lambda size: pa.binary(_positive(size)),
    "FixedSizeList": _fixed_size_list,
    "List": lambda item: pa.list_(_parse(item)),
    "LargeList": lambda item: pa.large_list(_parse(item)),
}
