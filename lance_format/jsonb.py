"""JSONB, the stored form of JSON in Lance: conversion from and to text.

The layout is that of the Rust crate `jsonb` (github.com/databendlabs/jsonb). All integers are big-endian. A document is
a container. A container is

    │ u32: kind in the upper 3 bits, number of values │ u32 for each value │ payloads, one after the other │

Its kind is a scalar (one value), an array, or an object, which has an entry per key, then one per value. The upper 4
bits of an entry are the kind of the value, the others the size of its payload:

    0 null   1 string, as UTF-8   2 number   3 false   4 true   5 array or object, a container again

A number begins with a byte for its form: none (zero, NaN and infinities), a signed or unsigned integer of 1, 2, 4 or 8
bytes, a double, or a decimal. A decimal is an integer of 8, 16 or 32 bytes and a byte of scale; early writers put a
byte of precision before the scale. Writers choose the smallest integer, unsigned unless it is negative, and doubles for
all other numbers. Keys are sorted by their bytes, and are unique.
"""

from __future__ import annotations

import json
import math
import struct
from collections import Counter
from collections.abc import Callable
from itertools import accumulate, repeat
from typing import Any, TypeAlias

from lance_format.errors import CorruptFileError, InvalidInputError, NotSupportedError

_KIND, _COUNT = 0xE000_0000, 0x1FFF_FFFF
ARRAY, OBJECT, SCALAR = 0x8000_0000, 0x4000_0000, 0x2000_0000
"""The kinds of containers."""
_SIZE = 0x0FFF_FFFF
NULL, STRING, NUMBER, FALSE, TRUE, CONTAINER, _EXTENSION = range(7)
"""The kinds of values."""
_NOT_FINITE = _NOT_A_NUMBER, _INFINITE, _NEGATIVE_INFINITE = (0x10, 0x20, 0x30)
_SIGNED, _UNSIGNED, _DOUBLE, _DECIMAL = 0x40, 0x50, 0x60, 0x70
_INTEGER_SIZES = (1, 2, 4, 8)
_DECIMAL_SIZES = {9: 8, 17: 16, 18: 16, 33: 32, 34: 32}
_MAX_SCALE = 76
_SMALLEST_PLAIN = 1e-5
_MAX_INTEGER_DIGITS = 20  # Of the largest unsigned integer of 8 bytes, and the smallest signed one with its sign.
_MAX_SHOWN = 60

_quote = json.JSONEncoder(ensure_ascii=False).encode

_Part: TypeAlias = "str | tuple[int, int]"
"""Text, or the byte range of a container that is yet to become text."""


def to_text(data: bytes) -> str:
    """Return the text of a JSON document.

    Parameters
    ----------
    data : bytes

    Raises
    ------
    CorruptFileError
        If it is not JSONB.
    NotSupportedError
        If it holds values that JSON lacks: bytes, dates, intervals.
    """
    pieces: list[str] = []
    pending: list[_Part] = [(0, len(data))]
    while pending:
        part = pending.pop()
        if isinstance(part, str):
            pieces.append(part)
        else:
            pending += reversed(_parts_of(data, *part))
    return "".join(pieces)


def read_container(data: bytes, start: int, end: int) -> tuple[int, list[int], list[int]]:
    """Return the kind of a container, the kinds of its values, and their offsets.

    The keys of an object are values as well, and precede the others.

    Parameters
    ----------
    data : bytes
    start, end : int
        Byte range of the container.

    Raises
    ------
    CorruptFileError
        If it is not a container.
    """
    if end - start < 4:
        raise CorruptFileError(f"JSON has a container of {end - start} bytes")
    (header,) = struct.unpack_from(">I", data, start)
    kind, count = header & _KIND, header & _COUNT
    if kind not in (ARRAY, OBJECT, SCALAR):
        raise CorruptFileError(f"JSON has a container of the unknown kind {header:#010x}")
    num_entries = 1 if kind == SCALAR else count if kind == ARRAY else 2 * count
    position = start + 4 + 4 * num_entries
    if position > end:
        raise CorruptFileError(f"JSON has a container of {num_entries} entries in {end - start} bytes")
    entries = struct.unpack_from(f">{num_entries}I", data, start + 4)
    bounds = list(accumulate([entry & _SIZE for entry in entries], initial=position))
    if bounds[-1] != end:
        raise CorruptFileError(f"JSON has values of {bounds[-1] - position} bytes where {end - position} are")
    return kind, [entry >> 28 for entry in entries], bounds


def _parts_of(data: bytes, start: int, end: int) -> list[_Part]:
    """Return the parts of a container."""
    kind, kinds, bounds = read_container(data, start, end)
    values = list(map(_value, kinds, repeat(data), bounds, bounds[1:]))
    if kind == SCALAR:
        return values
    if kind == ARRAY:
        return ["[", *_with_commas([[value] for value in values]), "]"]
    count = len(values) // 2
    keys = values[:count]
    if not all(isinstance(key, str) and key.startswith('"') for key in keys):
        raise CorruptFileError("JSON has an object with a key that is no string")
    return ["{", *_with_commas([[key, ":", value] for key, value in zip(keys, values[count:], strict=True)]), "}"]


def _with_commas(groups: list[list[_Part]]) -> list[_Part]:
    parts: list[_Part] = []
    for group in groups:
        if parts:
            parts.append(",")
        parts += group
    return parts


def _value(kind: int, data: bytes, start: int, end: int) -> _Part:
    if kind == CONTAINER:
        return start, end
    if kind == _EXTENSION:
        raise NotSupportedError("JSON with values of bytes, dates or intervals cannot be read")
    make = _SCALARS.get(kind)
    if make is None:
        raise CorruptFileError(f"JSON has a value of the unknown kind {kind}")
    return make(data[start:end])


def _string(data: bytes) -> str:
    try:
        return _quote(data.decode())
    except UnicodeDecodeError as error:
        raise CorruptFileError(f"JSON has a string that is not UTF-8: {error}") from error


def _number(data: bytes) -> str:
    kind, size = data[:1], len(data) - 1
    if size == 0 and kind == b"\0":
        return "0"
    if size == 0 and kind[0] in _NOT_FINITE:
        return "null"
    if size in _INTEGER_SIZES and kind and kind[0] in (_SIGNED, _UNSIGNED):
        return str(int.from_bytes(data[1:], signed=kind[0] == _SIGNED))
    if size == 8 and kind[0] == _DOUBLE:
        return _double(struct.unpack(">d", data[1:])[0])
    if size in _DECIMAL_SIZES and kind[0] == _DECIMAL:
        return _decimal(int.from_bytes(data[1 : 1 + _DECIMAL_SIZES[size]], signed=True), data[-1])
    raise CorruptFileError(f"JSON has a number of {len(data)} bytes that starts with {kind.hex() or 'nothing'}")


def _double(value: float) -> str:
    """Format a number as pylance does: with the fewest digits, and an exponent below 1e-5 and from 1e16 on."""
    text = repr(value)
    digits, exponent_sign, exponent = text.partition("e-")
    if not exponent_sign:
        return text if value - value == 0 else "null"
    if abs(value) < _SMALLEST_PLAIN:
        return f"{digits}e-{int(exponent)}"
    sign, digits = ("-", digits[1:]) if digits.startswith("-") else ("", digits)
    return f"{sign}0.{'0' * (int(exponent) - 1)}{digits.replace('.', '')}"


def _decimal(value: int, scale: int) -> str:
    if scale > _MAX_SCALE:
        raise CorruptFileError(f"JSON has a decimal of scale {scale}; at most {_MAX_SCALE} is possible")
    digits = str(abs(value)).rjust(scale + 1, "0")
    sign = "-" if value < 0 else ""
    return sign + (f"{digits[:-scale]}.{digits[-scale:]}" if scale else digits)


_SCALARS: dict[int, Callable[[bytes], str]] = {
    NULL: lambda _: "null",
    STRING: _string,
    NUMBER: _number,
    FALSE: lambda _: "false",
    TRUE: lambda _: "true",
}


def from_text(text: str) -> bytes:
    """Return the JSONB of a JSON document, byte for byte as pylance.

    Parameters
    ----------
    text : str
        JSON of RFC 8259. Strings may also have control characters, and numbers may be `NaN` or `Infinity`, which become
        null.

    Raises
    ------
    InvalidInputError
        If it is no JSON, has a key twice in an object, or half of a surrogate pair.
    NotSupportedError
        If it is nested too deeply, or too large.
    """
    try:
        value = _DECODER.decode(text)
        if type(value) is bytes:
            return value
        return _container(ARRAY | len(value), value) if type(value) is list else _container(SCALAR, [value])
    except json.JSONDecodeError as error:
        problem = str(error)
    except UnicodeEncodeError as error:
        problem = f"a string has the surrogate {error.object[error.start]!a} without the other of its pair"
    except _DuplicateKeyError as error:
        problem = f"an object has the key {error.args[0]!r} twice"
    except RecursionError:
        raise NotSupportedError(f"{_shown(text)} is nested too deeply to be stored as JSON") from None
    raise InvalidInputError(f"{_shown(text)} cannot be stored as JSON: {problem}")


def _shown(text: str) -> str:
    return repr(text) if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]!r}…"


class _DuplicateKeyError(Exception):
    """Signal that stops the parser at a repeated key, its argument."""


def _encode_object(members: list[tuple[str, Any]]) -> bytes:
    """Return an object; the parser calls this for inner objects first, which are bytes in outer ones."""
    values = dict(members)
    if len(values) < len(members):
        raise _DuplicateKeyError(Counter(key for key, _ in members).most_common(1)[0][0])
    keys = sorted(values)  # By code points, and so by the bytes of UTF-8.
    return _container(OBJECT | len(keys), [*keys, *[values[key] for key in keys]])


def _container(header: int, values: list[Any]) -> bytes:
    """Return a container of parsed values; bytes are containers themselves."""
    entries, payloads = [header], []
    for value in values:
        kind = type(value)
        if kind is str:
            entry, payload = STRING << 28, value.encode()
        elif kind is bytes:
            entry, payload = CONTAINER << 28, value
        elif kind is list:
            entry, payload = CONTAINER << 28, _container(ARRAY | len(value), value)
        elif kind is int:
            entry, payload = NUMBER << 28, _encode_integer(value)
        elif kind is float:
            entry, payload = NUMBER << 28, _encode_double(value)
        else:
            entry, payload = _CONSTANTS[value] << 28, b""
        entries.append(entry | len(payload))
        payloads.append(payload)
    joined = b"".join(payloads)
    if len(joined) > _SIZE:
        raise NotSupportedError(f"JSON of {len(joined)} bytes cannot be stored; at most {_SIZE} are possible")
    return struct.pack(f">{len(entries)}I", *entries) + joined


def _encode_integer(value: int) -> bytes:
    if 0 < value < 256:
        return _SMALL_INTEGERS[value]
    if value == 0:
        return b"\0"
    kind, bits = (_UNSIGNED, value.bit_length()) if value > 0 else (_SIGNED, (~value).bit_length() + 1)
    for size in _INTEGER_SIZES:
        if bits <= 8 * size:
            return bytes((kind,)) + value.to_bytes(size, signed=kind == _SIGNED)
    return _encode_double(float(value))


def _encode_double(value: float) -> bytes:
    if value - value == 0:
        return struct.pack(">Bd", _DOUBLE, value)
    return bytes((_NOT_A_NUMBER if value != value else _INFINITE if value > 0 else _NEGATIVE_INFINITE,))


def _parse_integer(text: str) -> int | float:
    """Return a number without fraction; a double if it has more digits than Python's limit."""
    return int(text) if len(text) <= _MAX_INTEGER_DIGITS else float(text)


_CONSTANTS = {None: NULL, False: FALSE, True: TRUE}
_SMALL_INTEGERS = [bytes((_UNSIGNED, value)) for value in range(256)]
_DECODER = json.JSONDecoder(object_pairs_hook=_encode_object, parse_int=_parse_integer, strict=False)


def pack(kind: int, payload: bytes) -> bytes:
    """Return a value of a document, a container or not, as a document."""
    return payload if kind == CONTAINER else struct.pack(">II", SCALAR, kind << 28 | len(payload)) + payload


def pack_array(documents: list[bytes]) -> bytes:
    """Return an array of documents."""
    entries, payloads = [ARRAY | len(documents)], []
    for document in documents:
        kind, kinds, bounds = read_container(document, 0, len(document))
        payload = document[bounds[0] :] if kind == SCALAR else document
        entries.append((kinds[0] if kind == SCALAR else CONTAINER) << 28 | len(payload))
        payloads.append(payload)
    return struct.pack(f">{len(entries)}I", *entries) + b"".join(payloads)


def to_scalar(document: bytes) -> str | int | float | bool | None:
    """Return the value of a scalar document.

    Raises
    ------
    CorruptFileError
        If it is not JSONB.
    InvalidInputError
        If it is an array or an object.
    """
    kind, kinds, bounds = read_container(document, 0, len(document))
    if kind != SCALAR:
        raise InvalidInputError(f"{_shown(to_text(document))} is no single value")
    payload = document[bounds[0] :]
    if payload[:1] and payload[0] in _NOT_FINITE and len(payload) == 1 and kinds[0] == NUMBER:
        return _NOT_FINITE_VALUES[payload[0]]
    text = to_text(document)
    if kinds[0] == NUMBER:
        return int(text) if text.lstrip("-").isdigit() else float(text)
    value: str | bool | None = json.loads(text, strict=False)
    return value


_NOT_FINITE_VALUES = {_NOT_A_NUMBER: math.nan, _INFINITE: math.inf, _NEGATIVE_INFINITE: -math.inf}
