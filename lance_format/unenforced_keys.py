"""Unenforced primary and clustering keys: entries of the metadata of their fields.

`lance-schema:unenforced-primary-key` marks a field of the primary key. The entries that end with `:position` state its
position in the key, from 1. The format stores the same in members of the field.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict

from lance_format.metadata_values import is_yes, parse_unsigned

_PRIMARY = b"lance-schema:unenforced-primary-key"
_CLUSTERING = b"lance-schema:unenforced-clustering-key"
_POSITION = b":position"


class KeyMembers(TypedDict):
    """Roles of a field in keys; positions are 0 if it has none."""

    unenforced_primary_key: bool
    primary_key_position: int
    clustering_key_position: int


def keys_of(metadata: Mapping[bytes, bytes]) -> KeyMembers:
    """Return the roles in keys that the metadata of a field states."""
    position = _position(metadata, _PRIMARY)
    return {
        "unenforced_primary_key": position is not None or is_yes(metadata.get(_PRIMARY)),
        "primary_key_position": position or 0,
        "clustering_key_position": _position(metadata, _CLUSTERING) or 0,
    }


def _position(metadata: Mapping[bytes, bytes], key: bytes) -> int | None:
    return parse_unsigned(metadata.get(key + _POSITION), 32)
