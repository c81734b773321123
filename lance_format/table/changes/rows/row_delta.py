"""Row deltas: rows deleted, replaced and inserted one by one, by an engine that finds them with joins.

Other changes find their rows themselves. Here the caller gives them: the addresses in the version that the delta was
planned on, and the new values. The caller decides on the number of tasks; each has a writer.

>>> delta = dataset.plan_row_delta(["price"])  # doctest: +SKIP
>>> writer = delta.open_writer(dataset, number=0)  # doctest: +SKIP
>>> writer.delete(addresses)  # doctest: +SKIP
>>> writer.update(other_addresses, batch)  # doctest: +SKIP
>>> delta.commit(dataset, [writer.finish()])  # doctest: +SKIP
RowDeltaResult(num_inserted_rows=0, num_updated_rows=7, num_deleted_rows=3)

Rows stream into data files. A task keeps the address of each row in a bitmap. In a table with stable row ids, it also
keeps the id and the creating version of replaced rows. Replaced rows have separate files, which begin with the ids that
they keep.
"""

from __future__ import annotations

import contextlib
import dataclasses
import random
import time
import uuid as uuids
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

import pyarrow as pa

from lance_format.blob_fields import has_blobs
from lance_format.datatypes import Field
from lance_format.errors import (
    InvalidInputError,
    RepeatedRowError,
    RetryableCommitConflictError,
    VersionNotFoundError,
)
from lance_format.lazy_dataclasses import dataclass
from lance_format.table.changes.rows.key_absence import absence_of, absence_of_primary_keys
from lance_format.table.changes.rows.replaced_rows import mark_deleted
from lance_format.table.changes.rows.row_changes import unite
from lance_format.table.changes.rows.row_delta_writer import RowDeltaChanges, RowDeltaWriter
from lance_format.table.format.column_names import check_new_names
from lance_format.table.format.lineage import maker_of
from lance_format.table.format.manifest import Manifest
from lance_format.table.fragments.writer import check_new_columns
from lance_format.table.transaction.appended_columns import plan_new_columns
from lance_format.table.transaction.inserted_keys import unite_keys
from lance_format.table.transaction.operations import Delete, Update
from lance_format.table.versions.change_result import ChangeResult
from lance_format.table.versions.checkout import check_out
from lance_format.table.versions.commit import Precondition, same_table
from lance_format.table.versions.open_table import OpenTable
from lance_format.table.versions.planned_change import WriterPlan
from lance_format.table.versions.table_version import Draft, TableVersion

_BATCH_ROWS = 128 * 1024
"""Maximum number of rows whose keys are looked up at a time when upserts are written again."""
_LONGEST_PAUSE_SECONDS = 1.0
"""Two writers that collide wait for random times, so that they do not collide again."""


@dataclass(frozen=True, eq=False)
class RowDeltaResult(ChangeResult):
    """Outcome of a row delta.

    Parameters
    ----------
    num_inserted_rows, num_updated_rows, num_deleted_rows : int
    """

    num_inserted_rows: int
    num_updated_rows: int
    num_deleted_rows: int


@dataclass(frozen=True, slots=True)
class RowDelta(WriterPlan[RowDeltaChanges, RowDeltaResult]):
    """Planned change of single rows. Made by `plan_row_delta`.

    Parameters
    ----------
    read_version : int
    uuid : str
    columns : tuple of str
        Columns whose values may change in replaced rows.
    description : str
        Description of the deleted rows, for the transaction.
    heeds_keys : bool
        Whether inserted rows may not have a primary key that another writer has added concurrently.
    notes : mapping of str to str
        Further properties of the transaction, such as those of a `BatchMarker`.
    key : tuple of str
        Columns whose values another writer may not have added concurrently if an inserted row has them. It is in
        addition to the primary key.
    new_fields : tuple of Field
        Columns and struct fields that the table lacks, and that the commit adds.
    deletes_again : bool
        Whether tasks may delete a row that they or others have deleted, which counts once. The caller then sees to it
        that no row is both deleted and replaced by different tasks.
    read_uuid : str
        The uuid of the transaction that made the version that it was planned on; empty if it is unknown.
    """

    read_version: int
    uuid: str
    columns: tuple[str, ...]
    description: str = ""
    heeds_keys: bool = True
    notes: Mapping[str, str] = field(default_factory=dict)
    key: tuple[str, ...] = ()
    new_fields: tuple[Field, ...] = ()
    deletes_again: bool = False
    read_uuid: str = ""

    def open_writer(self, dataset: OpenTable, number: int) -> RowDeltaWriter:
        """Return the writer of a task.

        Parameters
        ----------
        dataset : LanceDataset
            Any version of the table.
        number : int
            Of the task, from 0.
        """
        table = check_out(dataset._table, self.read_version)
        changed = with_fields(table, self.new_fields)
        return RowDeltaWriter(changed, self.uuid, number, deletes_again=self.deletes_again)

    def commit_upserts(
        self, dataset: OpenTable, results: Iterable[RowDeltaChanges], max_attempts: int = 10
    ) -> RowDeltaResult:
        """Commit as `commit` does, if the writers have only upserted rows by `key`, also after conflicts.

        If another writer has changed rows with the same keys, or added such rows, this looks the keys up in the latest
        version and writes the rows again, in this process. They then replace the rows of the other writer.

        Parameters
        ----------
        dataset : LanceDataset
            Any version of the table.
        results : iterable of RowDeltaChanges
            One per task.
        max_attempts : int

        Raises
        ------
        RetryableCommitConflictError
            If other writers kept changing these rows, or rows have blobs, which are not written again.
        LanceError
            See `commit`. No file is left, unless it is unclear whether the commit landed.
        """
        given = self.checked(results)
        if not self.key:
            raise InvalidInputError("a delta without a key has no upserts; commit it by `commit`")
        planned = self.find_planned(dataset)
        try:
            return self._commit(dataset, given, keeps_rows=True)
        except RetryableCommitConflictError:
            if max_attempts < 2 or any(map(has_blobs, planned.manifest.schema.fields)):
                self.abort(dataset)
                raise
        try:
            for _ in range(max_attempts - 2):
                with contextlib.suppress(RetryableCommitConflictError):
                    return self._commit_again(planned, dataset, given)
                time.sleep(random.uniform(0, _LONGEST_PAUSE_SECONDS))
            return self._commit_again(planned, dataset, given)
        finally:
            self.abort(dataset)

    def _commit_again(
        self, planned: TableVersion, dataset: OpenTable, given: Sequence[RowDeltaChanges]
    ) -> RowDeltaResult:
        """Look the keys of the written rows up in the latest version, write the rows for it, and commit these."""
        dataset._table = planned.latest()
        read_version = dataset._table.manifest.version
        read_uuid = maker_of(dataset._table.manifest)
        again = dataclasses.replace(self, read_version=read_version, read_uuid=read_uuid, uuid=str(uuids.uuid4()))
        with again.open_writer(dataset, 0) as writer:
            for fragment in (fragment for result in given for fragment in result.written):
                scan = planned.scan(fragment, planned.manifest.schema)
                for batch, _ in scan.read(0, scan.num_rows(), batch_size=_BATCH_ROWS):
                    writer.upsert(batch, self.key)
            changes = writer.finish()
        return again.commit(dataset, [changes])

    def _commit(self, dataset: OpenTable, given: list[RowDeltaChanges], *, keeps_rows: bool = False) -> RowDeltaResult:
        planned = self.find_planned(dataset)
        same_table(planned.directory, self.read_version, self.read_uuid)(planned.manifest)
        return WriterPlan._commit(self, dataset, given, keeps_rows=keeps_rows)

    def checked(self, results: Iterable[RowDeltaChanges]) -> list[RowDeltaChanges]:
        """Check that there is one result per task of this plan, and that no two changed the same row.

        Raises
        ------
        InvalidInputError
            If a result is missing, or of another plan.
        RepeatedRowError
            If a row was changed by several.
        """
        given = WriterPlan.checked(self, results)
        if self.deletes_again:
            return given
        twice = sum(len(result.removed) for result in given) - self._num_removed(given)
        if twice:
            raise RepeatedRowError(
                f"{twice} {'row was' if twice == 1 else 'rows were'} changed by several tasks, so the result is"
                " ambiguous; nothing was changed: change each row once"
            )
        return given

    def properties(self, results: Sequence[RowDeltaChanges]) -> Mapping[str, str]:
        """Return the notes, and the numbers of rows by the names of `RowDeltaResult`."""
        counts = self.outcome(results)
        return {**self.notes, **{name: str(getattr(counts, name)) for name in _COUNTS}}

    def find(self, dataset: OpenTable) -> RowDeltaResult | None:
        """Return the outcome of this delta if it was committed, by any process, and move the dataset to its version.

        Parameters
        ----------
        dataset : LanceDataset
            Any version of the table.

        Returns
        -------
        RowDeltaResult or None
            None if no version has it. A delta without rows and without new columns makes no version.

        Raises
        ------
        VersionNotFoundError
            If it was committed, but a cleanup has removed its version.
        """
        table = check_out(dataset._table, self.read_version)
        history = table.history()
        landed = history.find_transaction(self.uuid, self.read_version)
        if landed is None:
            return None
        transaction = history.load_transaction(landed.version)
        if transaction.uuid != self.uuid:
            raise VersionNotFoundError(
                f"the rows of {table.root} were changed, but a cleanup has removed the version with their numbers"
            )
        dataset._table = dataclasses.replace(table, manifest=landed)
        return RowDeltaResult(*(int(transaction.transaction_properties[name]) for name in _COUNTS))

    def operation(self, draft: Draft, results: Sequence[RowDeltaChanges]) -> Delete | Update | None:
        """Write deletion files for the rows that are removed."""
        removed, written = unite([RowDeltaChanges(0, self.uuid), *results])
        adds = bool(written or self.new_fields)
        if not len(removed) and not adds:
            return None
        marked = mark_deleted(draft, removed)
        if not adds:
            return Delete(marked.updated, marked.emptied, self.description)
        schema = with_fields(draft.table, self.new_fields).manifest.schema
        fields = frozenset(node.id for name in self.columns for node in schema.field(name).walk())
        keys = unite_keys(result.keys for result in results) if self.heeds_keys else None
        return Update(
            marked.emptied,
            marked.updated,
            written,
            fields_rewritten=fields,
            inserted_keys=keys,
            new_fields=self.new_fields,
        )

    def precondition(self, table: TableVersion, results: Sequence[RowDeltaChanges]) -> Precondition | None:
        """Return a check that no other writer has added the keys of inserted rows; see `ChangePlan`."""
        inserted = [fragment for result in results for fragment in result.inserted]
        wanted = [absence_of(table, self.key, inserted)]
        if self.heeds_keys:
            wanted.append(absence_of_primary_keys(table, inserted))
        checks = [check for check in wanted if check is not None]

        def check_all(latest: Manifest) -> None:
            for check in checks:
                check(latest)

        return check_all if checks else None

    def outcome(self, results: Sequence[RowDeltaChanges]) -> RowDeltaResult:
        """Count the rows."""
        num_updated = sum(result.num_updated for result in results)
        num_written = sum(result.num_written for result in results)
        return RowDeltaResult(num_written - num_updated, num_updated, self._num_removed(results) - num_updated)

    def _num_removed(self, results: Sequence[RowDeltaChanges]) -> int:
        removed, _ = unite([RowDeltaChanges(0, self.uuid), *results])
        return len(removed)


_COUNTS = tuple(field.name for field in dataclasses.fields(RowDeltaResult))


def plan_row_delta(
    table: TableVersion,
    columns: Sequence[str] | None = None,
    description: str = "",
    uuid: str | None = None,
    new_columns: pa.Schema | None = None,
) -> RowDelta:
    """Plan a change of single rows.

    Parameters
    ----------
    table : TableVersion
    columns : sequence of str, optional
        The columns whose values may change in replaced rows, by default all.
    description : str
        Description of the deleted rows, for the transaction.
    uuid : str, optional
        The uuid of the delta, for several processes that plan the same one. By default a new one.
    new_columns : pyarrow.Schema, optional
        Columns, and structs with fields, of which the commit adds those that the table lacks. They are null in all
        other rows.

    Raises
    ------
    InvalidInputError
        If the table has no such column, or pylance could not read a new one by its name.
    StorageError
        If files plainly cannot be created in the directory of the table.
    """
    new_fields = () if new_columns is None else _plan_fields(table, new_columns)
    schema = with_fields(table, new_fields).manifest.schema
    chosen = tuple(schema.names if columns is None else columns)
    unknown = [name for name in chosen if name not in schema.names]
    if unknown:
        raise InvalidInputError(f"there is no column {unknown[0]!r} in {table.root}, whose values are to change")
    table.manifest.file_version.require_changeable()
    table.store.check_writable(table.root)
    read_version, read_uuid = table.manifest.version, maker_of(table.manifest)
    uuid = uuid or str(uuids.uuid4())
    return RowDelta(read_version, uuid, chosen, description, new_fields=new_fields, read_uuid=read_uuid)


def with_new_columns(table: TableVersion, columns: pa.Schema) -> TableVersion:
    """Return a version as it would be with further columns, null in all rows, which are not committed.

    Parameters
    ----------
    table : TableVersion
    columns : pyarrow.Schema
        See `plan_row_delta`.

    Raises
    ------
    SchemaMismatchError, NotSupportedError, InvalidInputError
        If the table cannot have them.
    """
    return with_fields(table, _plan_fields(table, columns))


def with_fields(table: TableVersion, new_fields: Sequence[Field]) -> TableVersion:
    """Return a version with further fields that no file has."""
    if not new_fields:
        return table
    schema = table.manifest.schema.with_fields(new_fields)
    return dataclasses.replace(table, manifest=dataclasses.replace(table.manifest, schema=schema))


def _plan_fields(table: TableVersion, columns: pa.Schema) -> tuple[Field, ...]:
    version, schema = table.manifest.file_version, table.manifest.schema
    fields = plan_new_columns(table.manifest, columns, version)
    check_new_names(fields)
    check_new_columns(schema, schema.with_fields(fields), version)
    return fields
