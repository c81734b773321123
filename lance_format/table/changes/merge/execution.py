"""Merging rows into a table by key: those that are there are replaced or deleted, those that are not are inserted.

`lance_format.table.changes.merge.matching` finds what becomes of which row. Replaced rows are marked as
deleted, and written anew beside those that are inserted. Columns that the data lacks are read for
replaced rows only.

Of two merges that insert the same new key at the same time, the one that commits last has to be planned again, and then
finds the key: before every attempt to create the new version, the rows that others have added are searched for it.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_format.blob_fields import BlobHandling, read_schema
from lance_format.datatypes import Schema
from lance_format.errors import RetryableCommitConflictError
from lance_format.table.batches.key_index import Numbers
from lance_format.table.batches.partial_structs import overlay
from lance_format.table.changes.merge.clauses import Merging, WriteMode
from lance_format.table.changes.merge.in_place import check_in_place, merge_in_place
from lance_format.table.changes.merge.matching import Matches, MergeSource, describe_key, find_matches, read_source
from lance_format.table.changes.rows.replaced_rows import MovedRows, mark_deleted
from lance_format.table.format.file_entries import DataFile
from lance_format.table.format.fragment import FragmentMetadata
from lance_format.table.format.manifest import Manifest
from lance_format.table.scan.metrics import ScanMetrics
from lance_format.table.transaction.operations import Update
from lance_format.table.versions.commit import Precondition
from lance_format.table.versions.table_version import Draft, TableVersion

_BATCH_ROWS = 8192


@dataclass(frozen=True, slots=True)
class MergeResult:
    """Numbers of rows that a merge changed.

    Parameters
    ----------
    num_inserted_rows : int
        New ones.
    num_updated_rows : int
        Rows of the target that were replaced.
    num_deleted_rows : int
        Rows of the target that are gone.
    """

    num_inserted_rows: int
    num_updated_rows: int
    num_deleted_rows: int


def merge_insert(table: TableVersion, merging: Merging, source: pa.Table) -> tuple[TableVersion, MergeResult]:
    """Merge rows into a table, and commit that.

    Parameters
    ----------
    table : TableVersion
    merging : Merging
    source : pa.Table
        With the columns of the key. Columns of the table, and fields of structs, that it lacks keep their values in
        rows that are updated, and become null in rows that are inserted.

    Returns
    -------
    TableVersion
        The version that it made, even if no row changed.
    MergeResult

    Raises
    ------
    RetryableCommitConflictError
        If another writer changed the same rows meanwhile, or inserted the same keys.
    SchemaMismatchError
        If the source does not fit the table.
    InvalidInputError
        If several rows of the source match the same row of the target, if a row matches that must not, if an
        expression does not fit, or if the merge cannot be written in the mode that is wanted.
    """
    with Draft(table, str(uuid.uuid4())) as draft:
        planned = plan_merge(draft, merging, source)
        made = draft.commit(planned.operation, precondition=planned.precondition)
    return made, planned.result


@dataclass(frozen=True, slots=True)
class PlannedMerge:
    """A merge whose files have been written. Made by `plan_merge`.

    Parameters
    ----------
    operation : Update
        What is to be committed.
    precondition : callable, optional
        Raises if others have added keys that this merge inserts.
    result : MergeResult
    reads : ScanMetrics, optional
        What was read of the target to find rows that match.
    """

    operation: Update
    precondition: Precondition | None
    result: MergeResult
    reads: ScanMetrics | None


def plan_merge(draft: Draft, merging: Merging, source: pa.Table) -> PlannedMerge:
    """Find out what a merge changes, and write the files for it; see `merge_insert`."""
    table = draft.table
    rows = read_source(table, merging, source)
    in_place = merging.write_mode is WriteMode.REWRITE_COLUMNS
    if in_place:
        check_in_place(table.manifest.schema, merging, table.manifest.schema.select(rows.table.schema.names))
    found = find_matches(table, merging, rows)
    num_updated = sum(len(update) for update in found.updates.values())
    if in_place:
        operation = merge_in_place(draft, merging, rows, found)
        return PlannedMerge(operation, None, MergeResult(0, num_updated, 0), found.reads)
    is_new = rows.without_match(found.matched) if merging.inserts else np.zeros(rows.table.num_rows, np.bool_)
    moved = MovedRows()
    batches = _new_rows(table, rows, found, np.flatnonzero(is_new), moved)
    written = moved.name(
        table.write_fragments(batches, table.manifest.schema, uuid=draft.uuid, file_version=merging.file_version)
    )
    marked = mark_deleted(draft, found.gone)
    fields = frozenset(node.id for node in table.manifest.schema.walk())
    operation = Update(marked.emptied, marked.updated, tuple(written), fields_rewritten=fields)
    result = MergeResult(int(is_new.sum()), num_updated, len(found.gone) - num_updated)
    return PlannedMerge(operation, _absence_of(table, rows, is_new), result, found.reads)


def _new_rows(
    table: TableVersion, source: MergeSource, found: Matches, inserted: Numbers, moved: MovedRows
) -> Iterator[pa.RecordBatch]:
    """Yield the rows that are to be written: replaced ones in the order of the target, then those that are inserted."""
    schema = table.manifest.schema
    given = [name for name in source.table.schema.names if name not in source.partial]
    missing = read_schema(schema.select(name for name in schema.names if name not in given), BlobHandling.ALL_BINARY)
    for update in found.updates.values():
        rows, source_rows = update.all()
        moved.add(rows)
        scan = table.scan(update.scan.fragment, missing)
        for row in range(0, source_rows.size, _BATCH_ROWS):
            part = slice(row, row + _BATCH_ROWS)
            kept = scan.take_physical(rows.offsets[part]) if missing.fields else None
            values = source.table.take(pa.array(source_rows[part]))
            if kept is not None:
                values = overlay(kept, values, source.partial)
            yield from _assemble(schema, values, kept)
    for row in range(0, inserted.size, _BATCH_ROWS):
        yield from _assemble(schema, source.table.take(pa.array(inserted[row : row + _BATCH_ROWS])), None)


def _assemble(schema: Schema, given: pa.Table, kept: pa.RecordBatch | None) -> Iterator[pa.RecordBatch]:
    """Return rows of the table: columns of the source, others as they were, or else null."""
    for node in schema.fields:
        if node.name in given.schema.names:
            continue
        column = pa.nulls(given.num_rows, node.to_arrow_type()) if kept is None else kept.column(node.name)
        given = given.append_column(pa.field(node.name, column.type), column)
    return iter(given.select(schema.names).to_batches())


def _absence_of(table: TableVersion, source: MergeSource, is_new: npt.NDArray[np.bool_]) -> Precondition | None:
    """Return what makes sure, before a version is made, that nobody has added the keys that are to be inserted."""
    is_inserted = np.zeros(source.keys.num_keys, np.bool_)
    is_inserted[source.numbers[is_new & (source.numbers >= 0)]] = True
    if not is_inserted.any():
        return None
    keys = [table.manifest.schema.field(name) for name in source.keys.names]
    known: dict[int, tuple[DataFile, ...]] = {}

    def check(latest: Manifest) -> None:
        if not all(key in latest.schema.fields for key in keys):
            raise RetryableCommitConflictError(
                f"another writer changed the columns {', '.join(source.keys.names)} of {table.root} meanwhile, by which"
                " this merge matches rows; nothing was changed: run it again on the latest version"
            )
        for fragment in latest.fragments.beyond(table.manifest.fragments):
            before = table.manifest.fragment(fragment.id)
            if fragment.files != known.get(fragment.id, () if before is None else before.files):
                _check_absence(table, latest, fragment, source, is_inserted)
                known[fragment.id] = fragment.files

    return check


def _check_absence(
    table: TableVersion,
    latest: Manifest,
    fragment: FragmentMetadata,
    source: MergeSource,
    is_inserted: npt.NDArray[np.bool_],
) -> None:
    scan = table.scan(fragment, latest.schema.select(source.keys.names))
    for batch, _ in scan.read(0, scan.num_rows(), batch_size=source.rows_to_search):
        rows = pa.Table.from_batches([batch])
        numbers = source.find(rows)
        clashing = (numbers >= 0) & is_inserted[numbers]
        if clashing.any():
            raise RetryableCommitConflictError(
                f"another writer added a row with {describe_key(rows, int(clashing.argmax()))} to {table.root}"
                " meanwhile, which this merge was to insert; nothing was changed: run it again on the latest version"
            )
