"""Parts of an index that tasks write, each with the files of some fragments; and which parts an update replaces."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from lance_format.datatypes import Field, Schema
from lance_format.errors import VersionNotFoundError
from lance_format.file import FileWriter
from lance_format.lazy_dataclasses import dataclass
from lance_format.proto import table_pb2
from lance_format.table.format.index_metadata import IndexMetadata, new_index, parse_index
from lance_format.table.format.layout import index_file_name, new_index_uuid
from lance_format.table.format.manifest import Manifest
from lance_format.table.fragments.row_columns import created_at_of
from lance_format.table.indices.index_kind import IndexKind, PlannedIndexPart
from lance_format.table.versions.table_version import TableVersion
from lance_format.version import STABLE

OpenFile: TypeAlias = Callable[[str, pa.Schema], FileWriter]
"""Opens a file of the index, by its name."""


def write_file(
    open_file: OpenFile,
    name: str,
    columns: Sequence[pa.Field],
    batches: Iterable[Sequence[pa.Array]],
    metadata: Mapping[bytes, bytes] | None = None,
    buffers: Mapping[str, Callable[[], bytes]] | None = None,
) -> int:
    """Write a file of an index, and return its size in bytes.

    Parameters
    ----------
    open_file : callable
    name : str
    columns : sequence of pa.Field
    batches : iterable of sequences of pa.Array
        The columns of some rows at a time.
    metadata : mapping of bytes to bytes, optional
        Of its schema.
    buffers : mapping of str to callable, optional
        What makes global buffers, once all rows are written; that metadata tells their numbers by these keys.
    """
    schema = pa.schema(columns, metadata=metadata)
    writer = open_file(name, schema)
    try:
        for arrays in batches:
            writer.write_batch(pa.RecordBatch.from_arrays(list(arrays), schema=schema))
        for key, make in (buffers or {}).items():
            writer.add_schema_metadata(key, str(writer.add_global_buffer(make())))
        return writer.finish().size_bytes
    except BaseException:
        writer.abort()
        raise


@dataclass(frozen=True, slots=True)
class WrittenParts:
    """Parts of an index that a task has written. Can be pickled.

    Parameters
    ----------
    messages : tuple of bytes
        Their protobuf.
    """

    messages: tuple[bytes, ...]

    @classmethod
    def of(cls, parts: Iterable[IndexMetadata]) -> WrittenParts:
        """Return parts in the form that can be pickled."""
        return cls(tuple(index.message.SerializeToString(deterministic=True) for index in parts))

    def parse(self) -> tuple[IndexMetadata, ...]:
        """Return the metadata of the parts."""
        return tuple(parse_index(table_pb2.IndexMetadata.FromString(message)) for message in self.messages)


def write_part(
    table: TableVersion,
    uuid: str,
    part: PlannedIndexPart,
    fragment_ids: Sequence[int],
    details: tuple[str, bytes],
    write_files: Callable[[OpenFile], Mapping[str, int]],
    *,
    index_version: int,
) -> IndexMetadata:
    """Write the files of a part, in a directory that carries the uuid of the plan.

    Parameters
    ----------
    table : TableVersion
    uuid : str
        Of the plan.
    part : PlannedIndexPart
    fragment_ids : sequence of int
        The fragments that it covers.
    details, index_version
        See `new_index`.
    write_files : callable
        Returns the sizes of the files in bytes, by name. The ids of the fragments may be complete only then.
    """
    identity = new_index_uuid(uuid)

    def open_file(name: str, schema: pa.Schema) -> FileWriter:
        sink = table.store.open_writer(f"{table.directory.index(str(identity))}/{name}")
        sealed = index_file_name(str(identity), name)
        return FileWriter(sink, Schema.from_arrow(schema), version=STABLE, rows_per_zone=None, name=sealed)

    files = write_files(open_file)
    return new_index(
        part.name,
        part.field_id,
        details,
        uuid=identity,
        version=table.manifest.version,
        fragment_ids=fragment_ids,
        files=files,
        index_version=index_version,
    )


def plan_row_update(
    kind: IndexKind[Any, Any],
    table: TableVersion,
    parts: Sequence[IndexMetadata],
    path: Sequence[Field],
    num_to_merge: int | None,
) -> tuple[PlannedIndexPart, Sequence[int]] | None:
    """Plan an update of an index whose parts name rows; see `IndexKind.plan_update`.

    By default the latest parts are merged that together have no more rows than the
    new one before it takes them up: after many updates a row has been indexed a logarithmic number of times, and there
    are as many parts. Parts that may name rows of the new fragments by former values are merged in any case, since
    pylance does not look at the values again.

    Parameters
    ----------
    kind : IndexKind
    table : TableVersion
    parts : sequence of IndexMetadata
        Of the index.
    path : sequence of Field
        See `IndexKind.train`.
    num_to_merge : int, optional
        See `IndexKind.plan_update`.
    """
    columns = table.manifest.fragments.columns
    covered = [np.isin(columns.ids, index.covered_ids()) for index in parts]
    lacking = ~np.logical_or.reduce(covered) & ~np.isin(columns.ids, list(table.manifest.fragments.repeated_ids))
    first = len(parts) if num_to_merge is None else max(len(parts) - num_to_merge, 0)
    if not lacking.any() and len(parts) - first < 2:
        return None
    first = min(first, _first_stale(table, parts, np.flatnonzero(lacking).tolist()))
    num_rows = table.num_rows()
    while num_to_merge is None and first and num_rows[covered[first - 1]].sum() <= num_rows[lacking].sum():
        first -= 1
        lacking |= covered[first]
    for merged in covered[first:]:
        lacking |= merged
    # parts without rows may have no files, which pylance looks for beside other parts
    replaced = tuple(index.uuid for number, index in enumerate(parts) if number >= first or not covered[number].any())
    details = kind.stored_details(table, parts[-1])
    return PlannedIndexPart(parts[0].name, path[-1].id, kind.name, details, replaced), np.flatnonzero(lacking).tolist()


def _first_stale(table: TableVersion, parts: Sequence[IndexMetadata], positions: Sequence[int]) -> int:
    """Return the position of the first part that may name rows of fragments that it does not cover.

    A row keeps its stable id in the fragment that an update writes, or where its column is written again in place. It
    was created before the part was made then. Addresses are kept in place only, in a fragment older than the part.
    """
    if not table.manifest.stable_row_ids:
        return first_naming(table, parts, positions)
    oldest = table.manifest.version + 1
    for position in positions:
        created = created_at_of(table.scan(table.manifest.fragments[position], Schema((), {})))
        oldest = min(oldest, 0 if created is None else int(created.versions.min(initial=oldest)))
    return next((number for number, index in enumerate(parts) if index.dataset_version >= oldest), len(parts))


def first_naming(table: TableVersion, parts: Sequence[IndexMetadata], positions: Sequence[int]) -> int:
    """Return the position of the first part that may name rows of some fragments by addresses without covering these.

    Parameters
    ----------
    table : TableVersion
    parts : sequence of IndexMetadata
        Of an index.
    positions : sequence of int
        The positions of the fragments in the table.

    Returns
    -------
    int
        The number of parts if there is none.
    """
    if not positions:
        return len(parts)
    first = min(table.manifest.fragments[position].id for position in positions)
    older = _newest_before(table, first)
    known = frozenset() if older is None else {index.uuid for index in older.indices}
    return next((number for number, index in enumerate(parts) if index.uuid not in known), len(parts))


def _newest_before(table: TableVersion, fragment_id: int) -> Manifest | None:
    """Return the newest version that is older than a fragment; None if a cleanup removed all of them.

    Its parts of indices name no row of the fragment by address. That cannot be told of a part that is younger, whatever
    its version: compactions by pylance move parts to new fragments, with former values of rows that they do not cover.
    """
    history = table.history()
    versions = [version for version in history.names if version < table.manifest.version]

    def has_fragment(version: int) -> bool:
        try:
            return history.load(version).max_fragment_id >= fragment_id
        except VersionNotFoundError:  # It has been removed since.
            return True

    stop, step = len(versions), 1
    while stop and has_fragment(versions[max(stop - step, 0)]):
        stop, step = max(stop - step, 0), step * 2
    if not stop:
        return None
    start = max(stop - step, 0)
    found = bisect.bisect_left(versions, True, start + 1, stop, key=has_fragment) - 1
    try:
        return history.load(versions[found])
    except VersionNotFoundError:
        return None
