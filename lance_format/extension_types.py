"""The metadata by which Arrow's extension types travel.

An extension type is a storage type and two entries of its field's metadata. PyArrow writes them wherever a field leaves
the process, but tells only of types that are defined in Python what the second would be; so the field is exported
through Arrow's C data interface, which has them for all.
"""

from __future__ import annotations

import ctypes
import struct

import pyarrow as pa


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
    """Return a field's metadata, with the entries that say which extension type it has."""
    exported = _ArrowSchema()
    field._export_to_c(ctypes.addressof(exported))
    try:
        return _parse(exported.metadata) if exported.metadata else {}
    finally:
        pa.Field._import_from_c(ctypes.addressof(exported))  # takes it over, and so releases it


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
