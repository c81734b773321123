"""Packed structs, which are stored as one column of adjacent fields: their marks in the metadata of a field.

Either of two keys suffices. The reference writes packed structs for every spelling of yes, but its readers accept only
`true`, in any case. They abort on columns with other spellings. This library writes `true`.
"""

from __future__ import annotations

from collections.abc import Mapping

from lance_format.metadata_values import is_yes

PACKED_KEY = b"lance-encoding:packed"
PACKED_KEYS = (PACKED_KEY, b"packed")
_TRUE = b"true"


def asks_to_pack(metadata: Mapping[bytes, bytes]) -> bool:
    """Return whether metadata asks to store a struct as one column."""
    return bool(metadata) and any(is_yes(metadata.get(key)) for key in PACKED_KEYS)


def spell_out(metadata: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
    """Return metadata with `true` in place of other spellings that request packing."""
    return {
        key: _TRUE if key in PACKED_KEYS and is_yes(value) and value.lower() != _TRUE else value
        for key, value in metadata.items()
    }
