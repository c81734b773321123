"""ZONEMAP indices: tasks return the zones of some fragments, and the commit writes one file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lance_format.datatypes import Field
from lance_format.errors import InvalidInputError
from lance_format.file import ROWS_PER_ZONE
from lance_format.table.format.fragment import FragmentMetadata
from lance_format.table.format.index_metadata import IndexMetadata
from lance_format.table.indices.catalog import path_of, value_type_of
from lance_format.table.indices.index_kind import IndexKind, PlannedIndexPart, refuse_others, take_whole_number
from lance_format.table.indices.written_parts import first_naming
from lance_format.table.indices.zones.index_part import IndexPart, reliable_fragments, write_part
from lance_format.table.indices.zones.zone_map_index import ZoneMapDetails, check_part
from lance_format.table.versions.table_version import Draft, TableVersion

_LARGE_BITS = 64


class ZoneMapKind(IndexKind[ZoneMapDetails, IndexPart]):
    """See `lance_format.table.indices.zones.zone_map_index`."""

    name = "ZONEMAP"

    def configure(self, parameters: Mapping[str, Any], field: Field) -> ZoneMapDetails:
        """See `IndexKind.configure`."""
        left = dict(parameters)
        rows_per_zone = take_whole_number(left, "rows_per_zone", ROWS_PER_ZONE)
        use_seeds = left.pop("use_seeds", None)
        refuse_others(left, self.name, ["rows_per_zone", "use_seeds"])
        if not isinstance(use_seeds, bool | None):
            raise InvalidInputError(f"use_seeds is {use_seeds!r}; True or False is needed")
        return ZoneMapDetails(rows_per_zone, _has_large_values(field) if use_seeds is None else use_seeds)

    def knows(self, index: IndexMetadata) -> bool:
        """See `IndexKind.knows`."""
        return ZoneMapDetails.parse(index) is not None

    def stored_details(self, table: TableVersion, index: IndexMetadata) -> ZoneMapDetails:  # noqa: ARG002
        """See `IndexKind.stored_details`."""
        details = ZoneMapDetails.parse(index)
        assert details is not None
        return details

    def check(self, table: TableVersion, index: IndexMetadata) -> None:
        """See `IndexKind.check`."""
        check_part(table, index, value_type_of(table, index))

    def train(
        self,
        table: TableVersion,
        uuid: str,  # noqa: ARG002
        part: PlannedIndexPart,
        path: Sequence[Field],
        fragments: Sequence[FragmentMetadata],
    ) -> IndexPart:
        """Find zones; an update accepts all seeds. See `IndexKind.train`."""
        details: ZoneMapDetails = part.details
        any_seeds = part.keeps_content and details.use_seeds
        return IndexPart.trained(table, path, fragments, details.rows_per_zone, any_seeds=any_seeds)

    def write(self, draft: Draft, part: PlannedIndexPart, contents: Sequence[IndexPart]) -> tuple[IndexMetadata, ...]:
        """Write the file of the part; see `IndexKind.write`."""
        table = draft.table
        field = path_of(table.manifest.schema.fields, part.field_id)[-1]
        value_type = field.to_arrow_type()
        if not part.keeps_content:
            return (write_part(draft, part.name, field, part.details, IndexPart.united(contents, value_type)),)
        kept, known = [], set(part.known_ids)
        for index in table.manifest.indices:
            if index.uuid in part.replaced:
                kept.append(IndexPart.stored(table, index, value_type).without(known))
                known |= kept[-1].fragment_ids
        content = IndexPart.united([*kept, *contents], value_type).in_order()
        return (write_part(draft, part.name, field, part.details, content),)

    def plan_update(
        self, table: TableVersion, parts: Sequence[IndexMetadata], path: Sequence[Field], num_to_merge: int | None
    ) -> tuple[PlannedIndexPart, Sequence[int]] | None:
        """Merge the zones with those of the latest part by default; see `IndexKind.plan_update`."""
        covered = [reliable_fragments(table, index, path[-1].to_arrow_type()) for index in parts]
        num_staying = max(len(parts) - (1 if num_to_merge is None else num_to_merge), 0)
        ids = table.manifest.fragments.columns.ids
        lacking = np.flatnonzero(~np.isin(ids, np.array(sorted(frozenset[int]().union(*covered)), np.int64))).tolist()
        # pylance believes any part which rows are null, also rows of fragments that the part does not cover.
        num_staying = min(num_staying, first_naming(table, parts, lacking))
        merged = parts[num_staying:]
        if not lacking and (num_to_merge is None or len(merged) < 2):
            return None
        staying = frozenset[int]().union(*covered[:num_staying])
        replaced = tuple(index.uuid for index in merged)
        details = self.stored_details(table, parts[-1])
        return PlannedIndexPart(parts[0].name, path[-1].id, self.name, details, replaced, True, staying), lacking


def _has_large_values(field: Field) -> bool:
    """Return whether values have more than 8 bytes, or a variable size."""
    try:
        return bool(field.to_arrow_type().bit_width > _LARGE_BITS)
    except ValueError:
        return True
