"""Content of a part of a ZONEMAP index: trained, read, united with that of others, and written."""

from __future__ import annotations

from collections.abc import Sequence, Set

import numpy as np
import pyarrow as pa

from lance_format.datatypes import Field
from lance_format.lazy_dataclasses import dataclass
from lance_format.table.format.fragment import FragmentMetadata
from lance_format.table.format.index_metadata import IndexMetadata, new_index
from lance_format.table.format.layout import index_file_name, new_index_uuid
from lance_format.table.indices.zones.zone_map import NullRows, Zones
from lance_format.table.indices.zones.zone_map_file import ZONE_MAP_FILE, write_zone_map
from lance_format.table.indices.zones.zone_map_index import ZoneMapDetails, load_zones, open_zone_map
from lance_format.table.indices.zones.zone_map_training import train_zones
from lance_format.table.versions.table_version import Draft, TableVersion
from lance_format.version import STABLE


@dataclass(frozen=True, slots=True, eq=False)
class IndexPart:
    """The content of a part of an index. Can be pickled.

    Parameters
    ----------
    fragment_ids : frozenset of int
        The fragments that it covers.
    zones : Zones
        Their zones.
    null_rows : mapping of int to bytes, optional
        None if they are unknown for some of these fragments.
    """

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
    ) -> IndexPart:
        """Find the zones of fragments; see `train_zones`."""
        zones, null_rows = train_zones(table, path, fragments, rows_per_zone, any_seeds=any_seeds)
        return cls(frozenset(fragment.id for fragment in fragments), zones, null_rows)

    @classmethod
    def stored(cls, table: TableVersion, index: IndexMetadata, value_type: pa.DataType) -> IndexPart:
        """Return the stored zones of a part that can be kept.

        Parameters
        ----------
        table : TableVersion
        index : IndexMetadata
        value_type : pa.DataType
            The type of the column.
        """
        loaded = load_zones(table, index, value_type)
        if loaded is None:
            return cls(frozenset(), Zones.empty(value_type), {})
        with open_zone_map(table, index, value_type) as file:
            null_rows = file.read_null_rows()
        zones = loaded.of(table, index)
        kept = frozenset(zones.fragment_ids.tolist())
        return cls(kept, zones, _of_fragments(null_rows, kept))

    def without(self, fragment_ids: Set[int]) -> IndexPart:
        """Return the part without the zones of some fragments."""
        left = self.fragment_ids - fragment_ids
        zones = self.zones.of_fragments(np.array(sorted(left), np.int64))
        return IndexPart(left, zones, _of_fragments(self.null_rows, left))

    @classmethod
    def united(cls, parts: Sequence[IndexPart], value_type: pa.DataType) -> IndexPart:
        """Unite the content of several parts of different fragments."""
        if len(parts) == 1:
            return parts[0]
        null_rows: dict[int, bytes] | None = {}
        for part in parts:
            null_rows = None if null_rows is None or part.null_rows is None else {**null_rows, **part.null_rows}
        zones = Zones.concatenate([Zones.empty(value_type), *(part.zones for part in parts)])
        return cls(frozenset[int]().union(*(part.fragment_ids for part in parts)), zones, null_rows)

    def in_order(self) -> IndexPart:
        """Return the part with its zones sorted by fragment and first row."""
        return IndexPart(self.fragment_ids, self.zones.in_order(), self.null_rows)


def _of_fragments(null_rows: NullRows | None, fragment_ids: Set[int]) -> NullRows | None:
    return null_rows and {x: rows for x, rows in null_rows.items() if x in fragment_ids}


def reliable_fragments(table: TableVersion, index: IndexMetadata, value_type: pa.DataType) -> frozenset[int]:
    """Return the fragments with reliable zones in a part of an index; see `IndexPart.stored`."""
    loaded = load_zones(table, index, value_type)
    return frozenset() if loaded is None else frozenset(loaded.of(table, index).fragment_ids.tolist())


def write_part(draft: Draft, name: str, field: Field, details: ZoneMapDetails, part: IndexPart) -> IndexMetadata:
    """Write the file of a part of an index; no reader sees it before the commit.

    Parameters
    ----------
    draft : Draft
        The file is added to it.
    name : str
        Name of the index.
    field : Field
        The column.
    details : ZoneMapDetails
    part : IndexPart
    """
    table, identity = draft.table, new_index_uuid(draft.uuid)
    path = f"{table.directory.index(str(identity))}/{ZONE_MAP_FILE}"
    draft.paths.append(path)
    zones = part.zones
    if part.null_rows is None:
        columns = table.manifest.fragments.columns
        zones = zones.filling(columns.ids, columns.physical_rows)
    sealed = index_file_name(str(identity), ZONE_MAP_FILE)
    size = write_zone_map(table.store.open_writer(path), zones, part.null_rows, details.rows_per_zone, STABLE, sealed)
    return new_index(
        name,
        field.id,
        details.serialize(knows_null_rows=part.null_rows is not None),
        uuid=identity,
        version=table.manifest.version,
        fragment_ids=part.fragment_ids,
        files={ZONE_MAP_FILE: size},
    )
