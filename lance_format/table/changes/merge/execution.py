"""Merging by key: matched target rows are updated or deleted, other source rows are inserted.

`lance_format.table.changes.merge.matching` decides the action for each row. Updated rows are marked as deleted, and
their new forms written to other fragments. Columns that the data lacks are read only for updated rows.

A task searches a part of the target, and holds the whole source. The new rows are known after all tasks have ended: a
task that searches all of the target inserts them itself, otherwise the commit does.
"""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyroaring

from lance_format.datatypes import Schema
from lance_format.lazy_dataclasses import dataclass
from lance_format.row_numbers import from_bitmap, to_bitmap
from lance_format.table.batches.partial_structs import with_given_fields
from lance_format.table.changes.merge.absence import absence_of
from lance_format.table.changes.merge.clauses import Merging, WriteMode
from lance_format.table.changes.merge.in_place import check_in_place, rewrite_columns, rewriting
from lance_format.table.changes.merge.matching import (
    Matches,
    MergeSource,
    bind_terms,
    find_matches,
    open_search,
    read_source,
)
from lance_format.table.changes.merge.new_rows import inserted_rows, replaced_rows
from lance_format.table.changes.rows.key_absence import collect_primary_keys, primary_key
from lance_format.table.changes.rows.replaced_rows import MovedRows, mark_deleted
from lance_format.table.changes.rows.row_changes import RowChanges, divide, unite
from lance_format.table.format.fragment import FragmentMetadata
from lance_format.table.scan.metrics import ScanMetrics
from lance_format.table.scan.tasks import ScanTask, divide_fragments
from lance_format.table.transaction.inserted_keys import InsertedKeys
from lance_format.table.transaction.operations import Update
from lance_format.table.versions.change_result import ChangeResult
from lance_format.table.versions.commit import Precondition
from lance_format.table.versions.planned_change import ChangePlan, ChangeTask, run_change
from lance_format.table.versions.table_version import Draft, TableVersion


@dataclass(frozen=True, eq=False)
class MergeResult(ChangeResult):
    """Outcome of a merge.

    Parameters
    ----------
    num_inserted_rows : int
        Number of inserted rows.
    num_updated_rows : int
        Number of replaced target rows.
    num_deleted_rows : int
        Number of deleted target rows.
    """

    num_inserted_rows: int
    num_updated_rows: int
    num_deleted_rows: int


@dataclass(frozen=True, slots=True)
class MergeChanges(RowChanges):
    """Rows that a task of a merge replaced, deleted or inserted. Can be pickled.

    Parameters
    ----------
    num_updated : int
        Number of updated rows.
    matched : pyroaring.BitMap
        Numbers of the source keys that matched; empty if the merge inserts no rows.
    rewritten : tuple of FragmentMetadata
        Fragments whose columns were rewritten in place.
    offsets : mapping of int to bytes
        Offsets of the updated rows in `rewritten`, by fragment id.
    reads : ScanMetrics, optional
        Metrics of the search for matches.
    """

    num_updated: int = 0
    matched: pyroaring.BitMap = field(default_factory=pyroaring.BitMap)
    rewritten: tuple[FragmentMetadata, ...] = ()
    offsets: Mapping[int, bytes] = field(default_factory=dict)
    reads: ScanMetrics | None = None


@dataclass(frozen=True, slots=True)
class MergeTask(ChangeTask[MergeChanges]):
    """Finds the matching rows of a part of the target, and writes their new forms.

    Parameters
    ----------
    read_version : int
    number : int
        Number of the task within the plan.
    uuid : str
        The uuid of the plan, which the names of its data files carry.
    merging : Merging
    source : MergeSource
        The whole source, in each task.
    part : ScanTask, optional
        The rows to search, by default all.
    inserts : bool
        Whether to write the rows without a match too.
    """

    read_version: int
    number: int
    uuid: str
    merging: Merging
    source: MergeSource = field(repr=False)
    part: ScanTask | None = None
    inserts: bool = False

    def run(self, table: TableVersion) -> MergeChanges:
        """Find and write the rows; see `execute`."""
        found = find_matches(table, self.merging, self.source, self.part)
        num_updated = sum(len(update) for update in found.updates.values())
        if self.merging.write_mode is WriteMode.REWRITE_COLUMNS:
            rewritten, offsets = rewrite_columns(Draft(table, self.uuid), self.merging, self.source, found)
            return MergeChanges(
                self.number, self.uuid, num_updated=num_updated, rewritten=rewritten, offsets=offsets, reads=found.reads
            )
        moved = MovedRows()
        batches = self._rows(table, found, moved)
        version = self.merging.file_version
        written = table.write_fragments(batches, table.manifest.schema, uuid=self.uuid, file_version=version)
        matched = np.flatnonzero(found.matched) if self.merging.inserts else np.zeros(0, np.int64)
        return MergeChanges(
            self.number,
            self.uuid,
            found.gone,
            tuple(moved.name(written)),
            num_updated=num_updated,
            matched=to_bitmap(matched),
            reads=found.reads,
        )

    def _rows(self, table: TableVersion, found: Matches, moved: MovedRows) -> Iterator[pa.RecordBatch]:
        yield from replaced_rows(table, self.source, found.updates.values(), moved)
        if self.inserts:
            yield from inserted_rows(table, self.source, np.flatnonzero(self.source.without_match(found.matched)))


@dataclass(frozen=True, slots=True)
class MergePlan(ChangePlan[MergeChanges, MergeResult]):
    """Planned merge. Made by `plan_merge`.

    Parameters
    ----------
    read_version : int
    uuid : str
    merging : Merging
    source : MergeSource
    tasks : tuple of MergeTask
    """

    read_version: int
    uuid: str
    merging: Merging
    source: MergeSource = field(repr=False)
    tasks: tuple[MergeTask, ...]

    def operation(self, draft: Draft, results: Sequence[MergeChanges]) -> Update:
        """Write deletion files, and the rows that are inserted unless a task has."""
        table = draft.table
        if self.merging.write_mode is WriteMode.REWRITE_COLUMNS:
            rewritten = sorted(itertools.chain.from_iterable(result.rewritten for result in results), key=_id_of)
            offsets = {number: rows for result in results for number, rows in result.offsets.items()}
            return rewriting(table, self.merging, self.source, rewritten, offsets)
        removed, written = unite(results)
        schema = table.manifest.schema
        if self.merging.inserts and not any(task.inserts for task in self.tasks):
            batches = inserted_rows(table, self.source, np.flatnonzero(self._is_new(results)))
            version = self.merging.file_version
            written += tuple(table.write_fragments(batches, schema, uuid=self.uuid, file_version=version))
        marked = mark_deleted(draft, removed)
        fields = frozenset(node.id for node in schema.walk())
        keys = self._inserted_keys(schema, self._is_new(results))
        return Update(marked.emptied, marked.updated, written, fields_rewritten=fields, inserted_keys=keys)

    def _inserted_keys(self, schema: Schema, is_new: npt.NDArray[np.bool_]) -> InsertedKeys | None:
        """Return the keys of inserted rows for other writers, if rows are merged by the primary key."""
        names = primary_key(schema)
        collector = collect_primary_keys(schema) if set(names) == set(self.merging.on) else None
        if collector is None or not is_new.any():
            return None
        rows = self.source.table.select(names).filter(pa.array(is_new)).combine_chunks()
        collector.add([rows.column(name).combine_chunks() for name in names])
        return collector.keys()

    def precondition(self, table: TableVersion, results: Sequence[MergeChanges]) -> Precondition | None:
        """Return a check that no other writer has added the inserted keys; see `ChangePlan.precondition`."""
        return absence_of(table, self.source, self._is_new(results))

    def outcome(self, results: Sequence[MergeChanges]) -> MergeResult:
        """Count the rows."""
        num_updated = sum(result.num_updated for result in results)
        if self.merging.write_mode is WriteMode.REWRITE_COLUMNS:
            return MergeResult(0, num_updated, 0)
        num_gone = sum(len(result.removed) for result in results)
        return MergeResult(int(self._is_new(results).sum()), num_updated, num_gone - num_updated)

    def _is_new(self, results: Sequence[MergeChanges]) -> npt.NDArray[np.bool_]:
        """Return the rows of the source that are inserted."""
        if not self.merging.inserts:
            return np.zeros(self.source.table.num_rows, np.bool_)
        matched = np.zeros(self.source.keys.num_keys, np.bool_)
        for result in results:
            matched[from_bitmap(result.matched)] = True
        return self.source.without_match(matched)


def plan_merge(
    table: TableVersion, merging: Merging, source: pa.Table, split_size_bytes: int | None = None
) -> MergePlan:
    """Plan to merge rows into a table.

    Parameters
    ----------
    table : TableVersion
    merging : Merging
    source : pa.Table
        Rows with the columns of the key. Columns and struct fields that they lack keep their values in updated rows,
        and become null in inserted rows.
    split_size_bytes : int, optional
        Approximate number of bytes that a task reads to find matches. By default one task searches all rows.

    Raises
    ------
    SchemaMismatchError
        If the source does not fit the table.
    InvalidInputError
        If an expression does not fit, or if the merge cannot be written in the requested mode.
    """
    rows = read_source(table, merging, source)
    schema = table.manifest.schema
    if merging.write_mode is WriteMode.REWRITE_COLUMNS:
        check_in_place(schema, merging, schema.select(rows.table.schema.names))
    parts = _divide(table, merging, rows, split_size_bytes)
    version, identity = table.manifest.version, str(uuid.uuid4())
    inserts = merging.inserts and len(parts) == 1
    tasks = tuple(
        MergeTask(version, number, identity, merging, rows, part, inserts) for number, part in enumerate(parts)
    )
    return MergePlan(version, identity, merging, rows, tasks)


def merge_insert(table: TableVersion, merging: Merging, source: pa.Table) -> tuple[TableVersion, MergeResult]:
    """Merge rows into a table and commit them.

    Parameters
    ----------
    table : TableVersion
    merging, source
        See `plan_merge`.

    Returns
    -------
    TableVersion
        The new version, even if no row changed.
    MergeResult

    Raises
    ------
    RetryableCommitConflictError
        If another writer changed the same rows, or inserted the same keys, concurrently.
    SchemaMismatchError
        If the source does not fit the table.
    InvalidInputError
        If several source rows match one target row, if a row matches that must not, if an expression does not fit, or
        if the write mode does not allow the merge.
    """
    return run_change(table, plan_merge(table, merging, source))


def _divide(
    table: TableVersion, merging: Merging, source: MergeSource, split_size_bytes: int | None
) -> Sequence[ScanTask | None]:
    """Return the parts of the target that tasks search; fragments whose columns are rewritten are not divided."""
    if split_size_bytes is None:
        return [None]
    schema = table.manifest.schema
    terms = bind_terms(schema, merging, with_given_fields(source.table.schema, source.partial))
    if merging.write_mode is not WriteMode.REWRITE_COLUMNS:
        return divide(open_search(table, merging, source, terms), split_size_bytes)
    fragments = table.manifest.fragments
    read = schema.select(source.table.schema.names)
    nothing = schema.select([])
    return [
        ScanTask(tuple((fragments[x].id, 0, table.scan(fragments[x], nothing).physical_rows()) for x in group))
        for group in divide_fragments(table, range(len(fragments)), read, split_size_bytes)
    ]


def _id_of(fragment: FragmentMetadata) -> int:
    return fragment.id
