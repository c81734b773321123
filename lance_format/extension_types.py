"""Arrow's extension types, and their conversion to storage types and back.

An extension type is a storage type and two entries of its field's metadata. PyArrow writes them whenever a field leaves
the process, but reveals the second only for types that are defined in Python. The field is therefore exported through
Arrow's C data interface, which has both for all types. On import PyArrow rebuilds the extension type from storage and
entries, at any depth of a type, if one of that name is registered.

All other modules use storage types; extension types appear only in public schemas and batches.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable

import pyarrow as pa

from lance_format.arguments import checked

EXTENSION_KEYS = (b"ARROW:extension:name", b"ARROW:extension:metadata")
"""The entries of a field's metadata that name its extension type."""
_NAME = EXTENSION_KEYS[0]


class _ArrowSchema(ctypes.Structure):
    """The struct of the C data interface."""

    _fields_ = (
        ("format", ctypes.c_char_p),
        ("name", ctypes.c_char_p),
        ("metadata", ctypes.c_void_p),
        ("flags", ctypes.c_int64),
        ("n_children", ctypes.c_int64),
        ("children", ctypes.c_void_p),
        ("dictionary", ctypes.c_void_p),
        ("release", ctypes.c_void_p),
        ("private_data", ctypes.c_void_p),
    )


def metadata_of(field: pa.Field) -> dict[bytes, bytes]:
    """Return a field's metadata, with the entries that name its extension type."""
    exported = _ArrowSchema()
    field._export_to_c(ctypes.addressof(exported))
    try:
        return _parse(exported.metadata) if exported.metadata else {}
    finally:
        pa.Field._import_from_c(ctypes.addressof(exported))  # Takes it over, and thus releases it.


def _parse(address: int) -> dict[bytes, bytes]:
    """Read `int32 entries, (int32 size, key, int32 size, value) …`."""
    position = address

    def read_integer() -> int:
        nonlocal position
        (number,) = struct.unpack("=i", ctypes.string_at(position, 4))
        position += 4
        return int(number)

    def read_bytes() -> bytes:
        nonlocal position
        size = read_integer()
        data = ctypes.string_at(position, size)
        position += size
        return data

    return {read_bytes(): read_bytes() for _ in range(read_integer())}


class _Reinterpreted:
    """The buffers of an array, offered to PyArrow under another type."""

    def __init__(self, array: pa.Array, arrow_type: pa.DataType) -> None:
        self._array = array
        self._type = arrow_type

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        del requested_schema
        return self._type.__arrow_c_schema__(), self._array.__arrow_c_array__()[1]


def retype(array: pa.Array, arrow_type: pa.DataType) -> pa.Array:
    """Return an array under another type of the same memory layout, without a copy."""
    return array if array.type == arrow_type else pa.array(_Reinterpreted(array, arrow_type))


class _Schema:
    """A field, offered to PyArrow as from elsewhere."""

    def __init__(self, field: pa.Field) -> None:
        self._schema = pa.schema([field])

    def __arrow_c_schema__(self) -> object:
        return self._schema.__arrow_c_schema__()


def resolve(field: pa.Field) -> pa.Field:
    """Return a field of storage types with the extension types that its metadata names.

    Unregistered ones stay storage types with their metadata. So does the whole field if one of its extension types
    rejects its parameters, or has another storage: stored values stay readable.
    """
    if not _names_extensions(field):
        return field
    try:
        resolved = pa.schema(_Schema(field)).field(0)
    except (pa.ArrowException, ValueError, TypeError, KeyError):
        return field
    return resolved if map_leaf_types(resolved.type, lambda leaf: leaf) == field.type else field


def _names_extensions(field: pa.Field) -> bool:
    if field.metadata is not None and _NAME in field.metadata:
        return True
    return any(_names_extensions(field.type.field(index)) for index in range(field.type.num_fields))


def map_leaf_types(arrow_type: pa.DataType, change: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    """Map the types without fields inside of a type.

    Extension types become storage types, and maps with sorted keys plain ones, which have the same layout.
    """
    if isinstance(arrow_type, pa.BaseExtensionType):
        arrow_type = arrow_type.storage_type
    if not arrow_type.num_fields:
        return change(arrow_type)
    if pa.types.is_struct(arrow_type):
        return pa.struct([_map_field(child, change) for child in arrow_type])
    if pa.types.is_map(arrow_type):
        key, item = _map_field(arrow_type.key_field, change), _map_field(arrow_type.item_field, change)
        return pa.map_(key, item)
    if is_list(arrow_type):
        return with_item(arrow_type, _map_field(arrow_type.value_field, change))
    return change(arrow_type)


def _map_field(field: pa.Field, change: Callable[[pa.DataType], pa.DataType]) -> pa.Field:
    return field.with_type(map_leaf_types(field.type, change))


def is_list(arrow_type: pa.DataType) -> bool:
    """Return whether values of a type are lists, including large and fixed-size ones, but not maps."""
    return any(check(arrow_type) for check in (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list))


def with_item(list_type: pa.DataType, item: pa.Field) -> pa.DataType:
    """Return a type of lists of the same kind, with other items."""
    if pa.types.is_fixed_size_list(list_type):
        return pa.list_(item, list_type.list_size)
    return pa.large_list(item) if pa.types.is_large_list(list_type) else pa.list_(item)


@checked
def storage_schema(schema: pa.Schema) -> pa.Schema:
    """Return a schema with storage types in place of extension types, without their metadata."""
    return pa.schema([_map_field(field, lambda leaf: leaf) for field in schema], metadata=schema.metadata)


def storage_of(array: pa.Array) -> pa.Array:
    """Return an array with storage types instead of extension types, without a copy."""
    return retype(array, map_leaf_types(array.type, lambda leaf: leaf))
