"""Requests for indices: the kind, its parameters, and whether a column can have one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from lance_format.arguments import checked_methods
from lance_format.blob_fields import has_blobs
from lance_format.datatypes import Field
from lance_format.errors import InvalidInputError, NotSupportedError
from lance_format.file import ROWS_PER_ZONE
from lance_format.lazy_dataclasses import dataclass
from lance_format.table.indices.zone_map_index import ZoneMapDetails

ZONEMAP = "ZONEMAP"

_ROWS_PER_ZONE = range(1, 2**32)
_LARGE_BITS = 64


@checked_methods
@dataclass(frozen=True, slots=True)
class IndexConfig:
    """A kind of index and its parameters.

    Parameters
    ----------
    index_type : str
        "ZONEMAP".
    parameters : mapping of str to object
        `rows_per_zone`, by default 8192: smaller zones skip more rows and make a larger index. `use_seeds`: whether to
        update the index from statistics in data files, even if these leave open which rows are null, and whether
        pylance stores them in its files too; by default for values of more than 8 bytes.
    """

    index_type: str
    parameters: Mapping[str, Any] = field(default_factory=dict)


def parse_config(asked: str | IndexConfig, field: Field) -> ZoneMapDetails:
    """Parse the configuration of an index, with defaults filled in.

    Raises
    ------
    InvalidInputError
        If a parameter is invalid.
    NotSupportedError
        If the index type is another one.
    """
    kind = asked if isinstance(asked, str) else getattr(asked, "index_type", None)
    parameters = {} if isinstance(asked, str) else dict(getattr(asked, "parameters", None) or {})
    if not isinstance(kind, str):
        raise InvalidInputError(f"index_type is {asked!r}; {ZONEMAP!r} or an IndexConfig is needed")
    if kind.upper() != ZONEMAP:
        raise NotSupportedError(f"indices of type {kind} cannot be made; {ZONEMAP} can, and pylance makes others")
    rows_per_zone = parameters.pop("rows_per_zone", ROWS_PER_ZONE)
    use_seeds = parameters.pop("use_seeds", None)
    if parameters:
        raise InvalidInputError(
            f"parameter {min(parameters)!r} of a {ZONEMAP} index is unknown; there are rows_per_zone and use_seeds"
        )
    if isinstance(rows_per_zone, bool) or not isinstance(rows_per_zone, int) or rows_per_zone not in _ROWS_PER_ZONE:
        raise InvalidInputError(f"rows_per_zone is {rows_per_zone!r}; a whole number from 1 on is needed")
    if not isinstance(use_seeds, bool | None):
        raise InvalidInputError(f"use_seeds is {use_seeds!r}; True or False is needed")
    return ZoneMapDetails(rows_per_zone, _has_large_values(field) if use_seeds is None else use_seeds)


def _has_large_values(field: Field) -> bool:
    """Return whether values have more than 8 bytes, or a variable size."""
    try:
        return bool(field.to_arrow_type().bit_width > _LARGE_BITS)
    except ValueError:
        return True


def check_indexable(path: Sequence[Field], column: str) -> None:
    """Check that a column can have an index.

    Raises
    ------
    NotSupportedError
        If zones cannot hold its values.
    """
    field = path[-1]
    if any(parent.logical_type != "struct" for parent in path[:-1]):
        raise NotSupportedError(f"column {column!r} is inside of lists, which cannot be indexed")
    if has_blobs(field) or field.logical_type == "null":
        kind = "has blobs" if has_blobs(field) else "is of type null"
        raise NotSupportedError(f"column {column!r} {kind}, which cannot be indexed")
