"""The options that can affect a column, by what its values are.

Found by trial for each option and type: whether pylance or this library writes other pages with it, for any values. An
option of a parent must affect one of the columns below it.
"""

from __future__ import annotations

import enum

import pyarrow as pa

from lance_format.blob_fields import is_description
from lance_format.compression.options import PREFIX
from lance_format.datatypes import Field
from lance_format.errors import InvalidInputError
from lance_format.file.columns.leaf_columns import Leaf, leaves_of
from lance_format.file.columns.leaves import BLOB_SHAPE, FIXED_SIZE_LIST_SHAPE, NULL_SHAPE, PACKED_SHAPE
from lance_format.file.columns.storable import has_fixed_width
from lance_format.metadata_values import is_yes
from lance_format.packing import PACKED_KEY


class _Kind(enum.Enum):
    """Kind of the values of a leaf, as a message names it."""

    NOTHING = "values without content"
    BITS = "booleans"
    BYTES = "values of 8 bits"
    SHORTS = "values of 16 bits"
    WORDS = "values of 32 or 64 bits"
    WIDE = "values of more than 64 bits"
    STRINGS = "strings and binaries"
    DICTIONARIES = "dictionaries"
    VECTORS = "fixed-size lists"
    PACKED = "packed structs"
    PACKED_STRINGS = "packed structs with strings"
    BLOBS = "blobs"


_BY_BITS = {1: _Kind.BITS, 8: _Kind.BYTES, 16: _Kind.SHORTS, 32: _Kind.WORDS, 64: _Kind.WORDS}
_WITH_DICTIONARY = (_Kind.SHORTS, _Kind.WORDS, _Kind.WIDE, _Kind.STRINGS)
_COMPRESSED = (*_WITH_DICTIONARY, _Kind.BITS, _Kind.BYTES, _Kind.DICTIONARIES, _Kind.VECTORS, _Kind.PACKED)
_AFFECTED: dict[str, tuple[_Kind, ...]] = {
    "compression": _COMPRESSED,
    "compression-level": _COMPRESSED,
    "rle-threshold": (*_WITH_DICTIONARY, _Kind.BYTES, _Kind.DICTIONARIES),
    "bss": (_Kind.WORDS, _Kind.WIDE, _Kind.STRINGS, _Kind.DICTIONARIES),
    "dict-divisor": _WITH_DICTIONARY,
    "dict-size-ratio": _WITH_DICTIONARY,
    "dict-max-size": _WITH_DICTIONARY,
    "dict-values-compression": (*_WITH_DICTIONARY, _Kind.DICTIONARIES),
    "dict-values-compression-level": (*_WITH_DICTIONARY, _Kind.DICTIONARIES),
    "minichunk-size": (_Kind.STRINGS,),
    "structural-encoding": (*_WITH_DICTIONARY, _Kind.BITS, _Kind.BYTES, _Kind.VECTORS),
}


def useless_options(field: Field, name: str, given: dict[bytes, bytes]) -> dict[bytes, InvalidInputError]:
    """Return the options that affect none of the columns of a field, and an error for each.

    Parameters
    ----------
    field : Field
        A field with descriptions in place of blobs, or a part of one.
    name : str
        The names along its path, for messages.
    given : dict of bytes to bytes
        Valid options, as metadata has them.
    """
    found: dict[bytes, InvalidInputError] = {}
    kinds = {_kind_of(leaf) for leaf in leaves_of(field)}
    for key, value in given.items():
        option = key.removeprefix(PREFIX).decode()
        affected = _AFFECTED[option]
        if value == b"none" or not kinds.isdisjoint(affected):  # Nothing is compressed by none.
            continue
        what = " and ".join(sorted(kind.value for kind in kinds))
        found[key] = InvalidInputError(
            f"column {name!r}: option '{key.decode()}' would have no effect on {what}; remove it"
        )
    return found


def useless_mark(field: Field, name: str) -> InvalidInputError | None:
    """Return an error if a field that is no struct asks to be packed; lists are refused elsewhere."""
    if field.children or not is_yes(field.metadata.get(PACKED_KEY)) or is_description(field):
        return None
    return InvalidInputError(
        f"column {name!r}: option '{PACKED_KEY.decode()}' would have no effect; remove it: only structs are packed"
    )


def _kind_of(leaf: Leaf) -> _Kind:
    if leaf.shape is BLOB_SHAPE or is_description(leaf.field):
        return _Kind.BLOBS
    if leaf.shape is PACKED_SHAPE:
        return _Kind.PACKED if has_fixed_width(leaf.arrow_type) else _Kind.PACKED_STRINGS
    if leaf.shape is FIXED_SIZE_LIST_SHAPE:
        return _Kind.VECTORS
    if leaf.shape is NULL_SHAPE:
        return _Kind.NOTHING
    if pa.types.is_dictionary(leaf.arrow_type):
        return _Kind.DICTIONARIES
    if leaf.shape.bits_per_value is None:
        return _Kind.STRINGS
    if not leaf.shape.bits_per_value:
        return _Kind.NOTHING
    return _BY_BITS.get(leaf.shape.bits_per_value, _Kind.WIDE)
