"""Making indices of columns, and keeping them up to date.

Of the kinds that pylance knows this library makes ZONEMAP; see `lance_format.table.indices.zone_map_index`. Indices of
other kinds are left as they are.
"""

from __future__ import annotations

import uuid as uuids
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from lance_format.blob_fields import has_blobs
from lance_format.datatypes import Field
from lance_format.errors import InvalidInputError, NotSupportedError
from lance_format.file import ROWS_PER_ZONE
from lance_format.table.format.field_paths import find_field
from lance_format.table.format.fragment import FragmentMetadata
from lance_format.table.format.index_metadata import SYSTEM_INDICES, IndexMetadata
from lance_format.table.format.layout import INDICES_DIRECTORY
from lance_format.table.indices.catalog import path_of
from lance_format.table.indices.zone_map import NullRows, Zones
from lance_format.table.indices.zone_map_file import ZONE_MAP_FILE, write_zone_map
from lance_format.table.indices.zone_map_index import ZoneMapDetails, load_zones, new_index, open_zone_map
from lance_format.table.indices.zone_map_training import train_zones
from lance_format.table.transaction.operations import CreateIndex
from lance_format.table.versions.table_version import Draft, TableVersion
from lance_format.version import STABLE

ZONEMAP = "ZONEMAP"

_ROWS_PER_ZONE = range(1, 2**32)
_LARGE_BITS = 64


@dataclass(frozen=True, slots=True)
class IndexConfig:
    """A kind of index, and what is asked of it.

    Parameters
    ----------
    index_type : str
        "ZONEMAP".
    parameters : mapping of str to object
        `rows_per_zone`, 8192 if not given: the fewer, the less is read to no avail, and the larger the index.
        `use_seeds`: whether to update the index by what data files store of their zones, even where that leaves open
        which rows are null, and whether pylance, too, is to store it in the files that it writes; if not given, where
        values have more than 8 bytes.
    """

    index_type: str
    parameters: Mapping[str, Any] = field(default_factory=dict)


def create_scalar_index(
    table: TableVersion,
    column: str | Sequence[str],
    index_type: str | IndexConfig,
    name: str | None = None,
    *,
    replace: bool = True,
    train: bool = True,
) -> TableVersion:
    """Make an index of a column, and commit that.

    Parameters
    ----------
    table : TableVersion
    column : str or sequence of str
        Its name, or the dotted path of a field below structs; one of them.
    index_type : str or IndexConfig
        "ZONEMAP", in either form, or what has the attributes of an `IndexConfig`.
    name : str, optional
        That of the column with `_idx` if not given.
    replace : bool
        Whether one of that name makes room.
    train : bool
        Whether it covers all fragments; else none, until it is updated.

    Raises
    ------
    InvalidInputError
        If there is no such column, an index of that name is not to be replaced, or a parameter makes no sense.
    NotSupportedError
        If it is to be of another kind, or of a column of which there are no zones.
    """
    names = [column] if isinstance(column, str) else list(column)
    if len(names) != 1 or not isinstance(names[0], str):
        raise InvalidInputError(f"column is {column!r}; an index is of one, whose name is needed")
    column = names[0]
    path = find_field(table.manifest.schema, column)
    _check_indexable(path, column)
    details = _parse_config(index_type, path[-1])
    name = f"{column}_idx" if name is None else name
    if not name or name in SYSTEM_INDICES:
        raise InvalidInputError(f"an index cannot be called {name!r}; choose another name")
    former = tuple(index for index in table.manifest.indices if index.name == name)
    if former and not replace:
        raise InvalidInputError(f"there is an index {name!r} already; choose another name, or replace it")
    with Draft(table, str(uuids.uuid4())) as draft:
        fragments = table.manifest.fragments if train else ()
        made = _Part.trained(table, path, fragments, details.rows_per_zone)
        index = _write_part(draft, name, path[-1], details, made)
        return table.commit(CreateIndex((index,), former), uuid=draft.uuid)


def optimize_indices(
    table: TableVersion,
    *,
    index_names: Collection[str] | None = None,
    num_indices_to_merge: int | None = None,
    retrain: bool = False,
) -> TableVersion:
    """Let ZONEMAP indices cover all fragments, and commit that; nothing is committed if they do.

    Parameters
    ----------
    table : TableVersion
    index_names : collection of str, optional
        Which; all if not given. Those of other kinds stay as they are.
    num_indices_to_merge : int, optional
        How many parts of each index, the last ones, become one with what is new; 1 if not given, and only if there is
        something new. With 0 there is one part more afterwards.
    retrain : bool
        Whether to make the indices anew, of one part each.

    Raises
    ------
    InvalidInputError
        If there is no such index, or a number makes no sense.
    """
    if num_indices_to_merge is not None and (isinstance(num_indices_to_merge, bool) or num_indices_to_merge < 0):
        raise InvalidInputError(f"num_indices_to_merge is {num_indices_to_merge!r}; a whole number from 0 on is needed")
    known = dict.fromkeys(index.name for index in table.manifest.indices if not index.is_system)
    for name in index_names or ():
        if isinstance(index_names, str) or name not in known:
            raise InvalidInputError(f"there is no index {name!r}; the indices are {', '.join(known) or '(none)'}")
    new: list[IndexMetadata] = []
    removed: list[IndexMetadata] = []
    with Draft(table, str(uuids.uuid4())) as draft:
        for name in known if index_names is None else dict.fromkeys(index_names):
            update = _update(draft, name, num_indices_to_merge, retrain)
            if update is not None:
                new.append(update[0])
                removed += update[1]
        return table.commit(CreateIndex(tuple(new), tuple(removed)), uuid=draft.uuid) if new else table


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """The content of a part of an index: the fragments that it covers, their zones, and their null rows if known."""

    fragment_ids: frozenset[int]
    zones: Zones
    null_rows: NullRows | None

    @classmethod
    def trained(
        cls,
        table: TableVersion,
        path: Sequence[Field],
        fragments: Sequence[FragmentMetadata],
        rows_per_zone: int,
        *,
        any_seeds: bool = False,
    ) -> _Part:
        zones, null_rows = train_zones(table, path, fragments, rows_per_zone, any_seeds=any_seeds)
        return cls(frozenset(fragment.id for fragment in fragments), zones, null_rows)

    @classmethod
    def stored(cls, table: TableVersion, index: IndexMetadata, value_type: pa.DataType) -> _Part:
        """Return what can be kept of a part."""
        loaded = load_zones(table, index, value_type)
        if loaded is None:
            return cls(frozenset(), Zones.empty(value_type), {})
        with open_zone_map(table, index, value_type) as file:
            null_rows = file.read_null_rows()
        zones = loaded.of(table, index)
        kept = frozenset(zones.fragment_ids.tolist())
        return cls(kept, zones, _of_fragments(null_rows, kept))

    def without(self, fragment_ids: Set[int]) -> _Part:
        """Return what there is of other fragments."""
        left = self.fragment_ids - fragment_ids
        zones = self.zones.of_fragments(np.array(sorted(left), np.int64))
        return _Part(left, zones, _of_fragments(self.null_rows, left))

    @classmethod
    def merged(cls, parts: Sequence[_Part]) -> _Part:
        null_rows: dict[int, bytes] | None = {}
        for part in parts:
            null_rows = None if null_rows is None or part.null_rows is None else {**null_rows, **part.null_rows}
        zones = Zones.concatenate([part.zones for part in parts]).in_order()
        return cls(frozenset[int]().union(*(part.fragment_ids for part in parts)), zones, null_rows)


def _of_fragments(null_rows: NullRows | None, fragment_ids: Set[int]) -> NullRows | None:
    return null_rows and {x: rows for x, rows in null_rows.items() if x in fragment_ids}


def _update(
    draft: Draft, name: str, num_to_merge: int | None, retrain: bool
) -> tuple[IndexMetadata, tuple[IndexMetadata, ...]] | None:
    """Write a part that covers what no other part of an index does; return it, and those of which it takes the place.

    None if there is nothing to do, or the index is of another kind.
    """
    table = draft.table
    parts = tuple(index for index in table.manifest.indices if index.name == name)
    details = [ZoneMapDetails.parse(index) for index in parts]
    path = path_of(table.manifest.schema.fields, parts[0].fields[0]) if parts[0].fields else ()
    if None in details or details[-1] is None or not path:
        return None
    value_type, rows_per_zone = path[-1].to_arrow_type(), details[-1].rows_per_zone
    fragments = table.manifest.fragments
    if retrain:
        made = _Part.trained(table, path, fragments, rows_per_zone)
        return _write_part(draft, name, path[-1], details[-1], made), parts
    covered = [_reliable(table, index, value_type) for index in parts]
    num_staying = max(len(parts) - (1 if num_to_merge is None else num_to_merge), 0)
    merged = parts[num_staying:]
    if all(any(x.id in known for known in covered) for x in fragments) and (num_to_merge is None or len(merged) < 2):
        return None
    known = set[int]().union(*covered[:num_staying])
    contents = []
    for index in merged:
        contents.append(_Part.stored(table, index, value_type).without(known))
        known |= contents[-1].fragment_ids
    lacking = [fragment for fragment in fragments if fragment.id not in known]
    contents.append(_Part.trained(table, path, lacking, rows_per_zone, any_seeds=details[-1].use_seeds))
    return _write_part(draft, name, path[-1], details[-1], _Part.merged(contents)), merged


def _reliable(table: TableVersion, index: IndexMetadata, value_type: pa.DataType) -> frozenset[int]:
    """Return the fragments of which a part of an index has zones that can be relied on."""
    loaded = load_zones(table, index, value_type)
    return frozenset() if loaded is None else frozenset(loaded.of(table, index).fragment_ids.tolist())


def _write_part(draft: Draft, name: str, field: Field, details: ZoneMapDetails, part: _Part) -> IndexMetadata:
    """Write the file of a part of an index, which no reader sees before it is committed."""
    table, identity = draft.table, uuids.uuid4()
    path = f"{table.root}/{INDICES_DIRECTORY}/{identity}/{ZONE_MAP_FILE}"
    draft.paths.append(path)
    zones = part.zones
    if part.null_rows is None:
        columns = table.manifest.fragments.columns
        zones = zones.filling(columns.ids, columns.physical_rows)
    size = write_zone_map(table.store.open_writer(path), zones, part.null_rows, details.rows_per_zone, STABLE)
    return new_index(
        name,
        field.id,
        details,
        uuid=identity,
        version=table.manifest.version,
        fragment_ids=part.fragment_ids,
        knows_null_rows=part.null_rows is not None,
        size_bytes=size,
    )


def _parse_config(asked: str | IndexConfig, field: Field) -> ZoneMapDetails:
    """Return what is asked for, defaults filled in."""
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
    """Tell whether values have more than 8 bytes, or any number of them."""
    try:
        return bool(field.to_arrow_type().bit_width > _LARGE_BITS)
    except ValueError:
        return True


def _check_indexable(path: Sequence[Field], column: str) -> None:
    field = path[-1]
    if any(parent.logical_type != "struct" for parent in path[:-1]):
        raise NotSupportedError(f"column {column!r} is inside of lists, of which there are no indices")
    if has_blobs(field) or field.logical_type == "null":
        kind = "has blobs" if has_blobs(field) else "is of type null"
        raise NotSupportedError(f"column {column!r} {kind}, of which there are no indices")
