"""Logical types: the names of types in files and manifests, and their Arrow types.

`int32`, `timestamp:us:UTC`, `fixed_size_list:float:128`, `struct` … The types of a struct's fields are
separate fields of a schema (`datatypes.py`).
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from lance_format.errors import CorruptFileError, InvalidInputError, NotSupportedError
from lance_format.extension_types import EXTENSION_KEYS, metadata_of

JSON = "json"
"""The logical type of JSON, whose values are JSONB."""

_EXTENSION_NAME = EXTENSION_KEYS[0]
# The items of a fixed-size list are no field, which could name their extension type; the format knows this one.
BFLOAT16 = "lance.bfloat16"
BFLOAT16_STORAGE = "fixed_size_binary:2"
_BFLOAT16_ITEM = pa.field(
    "item", pa.binary(2), metadata=dict(zip(EXTENSION_KEYS, (BFLOAT16.encode(), b""), strict=True))
)
_MAX_TYPE_PARTS = 100

_PLAIN_TYPES: dict[str, pa.DataType] = {
    "null": pa.null(),
    "bool": pa.bool_(),
    "int8": pa.int8(),
    "uint8": pa.uint8(),
    "int16": pa.int16(),
    "uint16": pa.uint16(),
    "int32": pa.int32(),
    "uint32": pa.uint32(),
    "int64": pa.int64(),
    "uint64": pa.uint64(),
    "halffloat": pa.float16(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "large_string": pa.large_string(),
    "large_binary": pa.large_binary(),
    "date32:day": pa.date32(),
    "date64:ms": pa.date64(),
    JSON: pa.large_binary(),
}
_PLAIN_NAMES: dict[pa.DataType, str] = {
    **{arrow_type: name for name, arrow_type in _PLAIN_TYPES.items() if name != JSON},
    pa.string_view(): "string",
    pa.binary_view(): "binary",
}
# The format spells a dictionary with the types of its values and keys between colons; these must not have colons.
_VIEWS = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}
_DICTIONARY_VALUES = frozenset(
    arrow_type for name, arrow_type in _PLAIN_TYPES.items() if ":" not in name and name not in ("null", JSON)
)
_UNITS = ("s", "ms", "us", "ns")


def logical_type_of(arrow_type: pa.DataType, name: str) -> str:
    """Return the spelling of a type in the format.

    Raises
    ------
    NotSupportedError
        If Lance cannot store the type.
    InvalidInputError
        If it is a type of lists without items.
    """
    is_extension = isinstance(arrow_type, pa.BaseExtensionType)  # Extension types defined in Python have no hash.
    plain = None if is_extension else _PLAIN_NAMES.get(arrow_type)
    if plain is not None:
        return plain
    for matches, spell in _PARAMETRIC_TYPES:
        if matches(arrow_type):
            return spell(arrow_type, name)
    raise NotSupportedError(f"column {name!r} has type {arrow_type}, which Lance cannot store; cast it first")


def _spell_fixed_size_list(arrow_type: pa.FixedSizeListType, name: str) -> str:
    item = arrow_type.value_type
    if arrow_type.list_size == 0:
        raise InvalidInputError(f"column {name!r} is a {arrow_type}, lists without items, which Lance cannot store")
    if _is_bfloat16(arrow_type.value_field):
        return f"fixed_size_list:{BFLOAT16}:{arrow_type.list_size}"
    unfit = (pa.types.is_list, pa.types.is_large_list, pa.types.is_map, pa.types.is_dictionary)
    if any(check(item) for check in unfit):
        raise NotSupportedError(f"column {name!r} is a fixed-size list of {item}, which Lance cannot store")
    return f"fixed_size_list:{logical_type_of(item, name)}:{arrow_type.list_size}"


def _is_bfloat16(field: pa.Field) -> bool:
    storage = field.type.storage_type if isinstance(field.type, pa.BaseExtensionType) else field.type
    return bool(storage == _BFLOAT16_ITEM.type) and metadata_of(field).get(_EXTENSION_NAME) == BFLOAT16.encode()


def _spell_dictionary(arrow_type: pa.DictionaryType, name: str) -> str:
    value, index = arrow_type.value_type, arrow_type.index_type
    if _has_nameless_dictionary(arrow_type):
        return logical_type_of(value, name)
    if isinstance(value, pa.BaseExtensionType) or value not in _DICTIONARY_VALUES:
        raise NotSupportedError(
            f"column {name!r} is a dictionary of {value}, which Lance cannot store; cast it to {value}"
        )
    return f"dict:{logical_type_of(value, name)}:{logical_type_of(index, name)}:false"


def _has_nameless_dictionary(arrow_type: pa.DictionaryType) -> bool:
    """Return whether a dictionary is stored as its values because the format has no name for its type."""
    value = arrow_type.value_type
    checks = (pa.types.is_temporal, pa.types.is_decimal128, pa.types.is_decimal256, pa.types.is_fixed_size_binary)
    return any(check(value) for check in checks) and not isinstance(value, pa.BaseExtensionType)


def stored_leaf_type(arrow_type: pa.DataType) -> pa.DataType:
    """Return the stored type of values without fields: views and some dictionaries change."""
    if pa.types.is_dictionary(arrow_type):
        return arrow_type.value_type if _has_nameless_dictionary(arrow_type) else arrow_type
    return _VIEWS.get(arrow_type, arrow_type)


def _spell_list(prefix: str, arrow_type: pa.ListType) -> str:
    return f"{prefix}.struct" if pa.types.is_struct(arrow_type.value_type) else prefix


_PARAMETRIC_TYPES: list[tuple[Callable[[pa.DataType], bool], Callable[[pa.DataType, str], str]]] = [
    (pa.types.is_time32, lambda t, _: f"time32:{t.unit}"),
    (pa.types.is_time64, lambda t, _: f"time64:{t.unit}"),
    (pa.types.is_timestamp, lambda t, _: f"timestamp:{t.unit}:{t.tz or '-'}"),
    (pa.types.is_duration, lambda t, _: f"duration:{t.unit}"),
    (pa.types.is_decimal128, lambda t, _: f"decimal:128:{t.precision}:{t.scale}"),
    (pa.types.is_decimal256, lambda t, _: f"decimal:256:{t.precision}:{t.scale}"),
    (pa.types.is_fixed_size_binary, lambda t, _: f"fixed_size_binary:{t.byte_width}"),
    (pa.types.is_fixed_size_list, _spell_fixed_size_list),
    (pa.types.is_struct, lambda _t, _n: "struct"),
    (pa.types.is_list, lambda t, _: _spell_list("list", t)),
    (pa.types.is_large_list, lambda t, _: _spell_list("large_list", t)),
    (pa.types.is_map, lambda _t, _n: "map"),
    (pa.types.is_dictionary, _spell_dictionary),
]


def parse_logical_type(text: str) -> pa.DataType:
    """Return the type of a name, except types whose fields have names.

    Raises
    ------
    CorruptFileError
        If the name is malformed.
    NotSupportedError
        If it is unknown.
    """
    plain = _PLAIN_TYPES.get(text)
    if plain is not None:
        return plain
    kind, _, rest = text.partition(":")
    parse = _PARSERS.get(kind)
    if text.count(":") > _MAX_TYPE_PARTS:
        raise CorruptFileError(f"malformed logical type {text[:100]!r}…: it has more than {_MAX_TYPE_PARTS} parts")
    try:
        if parse is not None:
            return parse(rest)
    except (ValueError, TypeError, KeyError, OverflowError, pa.ArrowException) as error:
        if isinstance(error, NotSupportedError):
            raise
        raise CorruptFileError(f"malformed logical type {text!r}: {error}") from error
    raise NotSupportedError(f"logical type {text!r} is not supported")


def parse_size(text: str, least: int = 0) -> int:
    """Return a size in a name, between a minimum and 2**31 - 1.

    Raises
    ------
    ValueError
        If it is another text.
    """
    value = int(text)
    if not least <= value < 2**31:
        raise ValueError(f"size {value} is out of range")
    return value


def _unit(text: str) -> str:
    if text not in _UNITS:
        raise ValueError(f"unknown unit {text!r}")
    return text


def _parse_timestamp(rest: str) -> pa.DataType:
    unit, _, zone = rest.partition(":")
    return pa.timestamp(_unit(unit), None if zone in ("-", "") else zone)


def _parse_decimal(rest: str) -> pa.DataType:
    width, precision, scale = rest.split(":")
    make = {"128": pa.decimal128, "256": pa.decimal256}[width]
    return make(int(precision), int(scale))


def _parse_fixed_size_list(rest: str) -> pa.DataType:
    item, _, size = rest.rpartition(":")
    if item == BFLOAT16:
        return pa.list_(_BFLOAT16_ITEM, parse_size(size, 1))
    return pa.list_(parse_logical_type(item), parse_size(size, 1))


def _parse_dictionary(rest: str) -> pa.DataType:
    value, index, _ordered = rest.rsplit(":", 2)
    return pa.dictionary(parse_logical_type(index), parse_logical_type(value))


_PARSERS: dict[str, Callable[[str], pa.DataType]] = {
    "time32": lambda rest: pa.time32(_unit(rest)),
    "time64": lambda rest: pa.time64(_unit(rest)),
    "timestamp": _parse_timestamp,
    "duration": lambda rest: pa.duration(_unit(rest)),
    "decimal": _parse_decimal,
    "fixed_size_binary": lambda rest: pa.binary(parse_size(rest)),
    "fixed_size_list": _parse_fixed_size_list,
    "dict": _parse_dictionary,
}
