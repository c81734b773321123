"""Coverage of an index, as users see it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lance_format.errors import IndexNotFoundError
from lance_format.table.format.index_metadata import IndexMetadata
from lance_format.table.indices.catalog import kind_of, path_of
from lance_format.table.indices.descriptions import type_of
from lance_format.table.indices.row_finder import UnusableError
from lance_format.table.indices.vectors.vector_index import VECTOR, VectorIndexReader
from lance_format.table.indices.zones.zone_map_index import ZoneMapDetails, load_zones
from lance_format.table.versions.table_version import TableVersion


def index_stats(table: TableVersion, name: str) -> dict[str, Any]:
    """Count the fragments and rows that an index covers and does not cover; see `LanceStats.index_stats`."""
    parts = [index for index in table.manifest.indices if index.name == name and not index.is_system]
    if not parts:
        raise IndexNotFoundError(f'Index "{name}" not found in {table.root}, version {table.manifest.version}')
    ids, num_rows = table.manifest.fragments.columns.ids, table.num_rows()
    covered = [np.isin(ids, part.covered_ids()) for part in parts]
    is_covered = np.logical_or.reduce(covered)
    segments = [_describe_part(table, part) for part in parts]
    return {
        "index_type": type_of(parts[0]),
        "name": name,
        "num_indices": len(parts),
        "num_segments": len(parts),
        "indices": segments,
        "segments": segments,
        "num_indexed_fragments": int(is_covered.sum()),
        "num_indexed_rows": int(num_rows[is_covered].sum()),
        "num_unindexed_fragments": int((~is_covered).sum()),
        "num_unindexed_rows": int(num_rows[~is_covered].sum()),
        "num_indexed_rows_per_delta": [int(num_rows[part].sum()) for part in covered],
        "updated_at_timestamp_ms": _last_made(parts),
    }


def _describe_part(table: TableVersion, part: IndexMetadata) -> dict[str, Any]:
    """Describe a part of an index: the number of its zones, or the partitions of its vectors."""
    if kind_of(part) == VECTOR:
        return _describe_vectors(table, part)
    details = ZoneMapDetails.parse(part)
    path = () if details is None else path_of(table.manifest.schema.fields, part.fields[0])
    if details is None or not path:
        return {}
    loaded = load_zones(table, part, path[-1].to_arrow_type())
    return {} if loaded is None else {"num_zones": len(loaded.zones), "rows_per_zone": details.rows_per_zone}


def _describe_vectors(table: TableVersion, part: IndexMetadata) -> dict[str, Any]:
    try:
        with VectorIndexReader(table, part) as reader:
            found = reader.index
    except UnusableError:
        return {}
    return {
        "index_type": type_of(part),
        "uuid": part.uuid,
        "metric_type": found.metric,
        "num_partitions": len(found.lengths),
        "partitions": [{"size": size} for size in found.lengths.tolist()],
    }


def _last_made(parts: Sequence[IndexMetadata]) -> int | None:
    """Return the creation time of the last part, in milliseconds since 1970; None if a part has none."""
    if not all(part.message.HasField("created_at") for part in parts):
        return None
    return max(int(part.message.created_at) for part in parts)
