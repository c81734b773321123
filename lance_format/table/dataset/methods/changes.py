"""The methods of `LanceDataset` that change a table."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Unpack

import pyarrow as pa

from lance_format.arguments import checked_methods
from lance_format.datatypes import Field
from lance_format.progress import Report
from lance_format.table.changes.rows.delete import DeletePlan, DeleteResult, plan_delete
from lance_format.table.changes.rows.replace_where import replace_where
from lance_format.table.changes.rows.row_delta import RowDelta, RowDeltaResult, plan_row_delta
from lance_format.table.changes.rows.row_delta_writer import RowDeltaChanges
from lance_format.table.changes.rows.update import UpdatePlan, UpdateResult, plan_update
from lance_format.table.changes.write.options import WriteKeywords, WriteOptions
from lance_format.table.changes.write.plan import check_data_files, choose_file_version
from lance_format.table.changes.write.run import write_data
from lance_format.table.dataset.merge_builder import MergeInsertBuilder
from lance_format.table.dataset.optimize import DatasetOptimizer
from lance_format.table.format.duration import timeout_seconds
from lance_format.table.format.fragment import FragmentMetadata
from lance_format.table.fragments.progress import FragmentWriteProgress
from lance_format.table.scan.projection import Filter
from lance_format.table.scan.tasks import DEFAULT_SPLIT_SIZE_BYTES
from lance_format.table.transaction.operations import Restore
from lance_format.table.versions.open_table import OpenTable
from lance_format.table.versions.planned_change import run_change


class InsertKeywords(WriteKeywords, total=False):
    """Keyword arguments of `LanceDataset.insert`; see `write_dataset`."""

    schema: pa.Schema | None
    progress: FragmentWriteProgress | Report


@checked_methods
class DatasetChanges(OpenTable):
    """Methods that change a table and move the object to the version that they make. Part of `LanceDataset`."""

    def delete(
        self,
        predicate: Filter,
        *,
        conflict_retries: int = 10,
        retry_timeout: datetime.timedelta | None = None,
    ) -> DeleteResult:
        """Delete the rows for which a predicate is true.

        Parameters
        ----------
        predicate : str or pyarrow.compute.Expression
        conflict_retries : int
            Number of restarts after other writers change the same rows first.
        retry_timeout : datetime.timedelta, optional
            Time after the first attempt when restarts end. By default there is no limit.

        Returns
        -------
        DeleteResult
            Also a mapping, with the key `num_deleted_rows`.
        """
        seconds = timeout_seconds(retry_timeout)
        return self._change_at_once(
            lambda table: run_change(table, plan_delete(table, predicate)), conflict_retries, seconds
        )

    def plan_delete(self, predicate: Filter, *, split_size_bytes: int = DEFAULT_SPLIT_SIZE_BYTES) -> DeletePlan:
        """Plan a delete whose tasks run anywhere; see `lance_format.table.versions.planned_change`.

        Parameters
        ----------
        predicate : str or pyarrow.compute.Expression
        split_size_bytes : int
            Approximate number of bytes that a task reads.

        Returns
        -------
        DeletePlan
            A plan for the version that this object shows.
        """
        return plan_delete(self._table, predicate, split_size_bytes)

    def replace_where(
        self,
        predicate: Filter,
        fragments: Sequence[FragmentMetadata],
        *,
        uuid: str | None = None,
        found: RowDeltaChanges | None = None,
        new_fields: Sequence[Field] = (),
    ) -> RowDeltaResult:
        """Delete the rows for which a predicate is true, and add fragments, in one version.

        Only rows of the version that this object shows are deleted. Rows that others append concurrently are kept.

        Parameters
        ----------
        predicate : str or pyarrow.compute.Expression
        fragments : sequence of FragmentMetadata
            Made by `TableWrite.write_fragments` of an append.
        uuid : str, optional
            The uuid of that write. If a version of the table carries it already, nothing changes.
        found : RowDeltaChanges, optional
            The rows for which the predicate is true, if tasks have found them: `RowDeltaChanges.of_deleted` of the
            results of `plan_delete` of this version.
        new_fields : sequence of Field
            Columns of the fragments that the table lacks: `TableWrite.new_fields` of that write.

        Returns
        -------
        RowDeltaResult

        Raises
        ------
        CommitError
            If a data file is missing or incomplete.
        RetryableCommitConflictError
            If another writer changed the same rows. Files whose names carry the uuid are deleted.
        """
        table = self._table
        check_data_files(table.directory, fragments)
        return replace_where(self, predicate, fragments, uuid, found, new_fields)

    def plan_row_delta(
        self,
        columns: Sequence[str] | None = None,
        *,
        description: str = "",
        uuid: str | None = None,
        new_columns: pa.Schema | None = None,
    ) -> RowDelta:
        """Plan to delete, replace and insert single rows; see `lance_format.table.changes.rows.row_delta`.

        Parameters
        ----------
        columns : sequence of str, optional
            The columns whose values may change in rows that are replaced; all if not given.
        description : str
            Of what is deleted, for the transaction.
        uuid : str, optional
            Identifies the delta where several processes plan the same one. By default a new one.
        new_columns : pyarrow.Schema, optional
            Columns, and structs with fields, of which the commit adds those that the table lacks. They are null in all
            other rows.

        Returns
        -------
        RowDelta
            It changes rows of the version that this object shows.

        Raises
        ------
        InvalidInputError
            If the table has no such column.
        """
        return plan_row_delta(self._table, columns, description, uuid, new_columns)

    def update(
        self,
        updates: Mapping[str, str],
        where: Filter | None = None,
        conflict_retries: int = 10,
        retry_timeout: datetime.timedelta | None = None,
        data_storage_version: str | None = None,
    ) -> UpdateResult:
        """Change values of the rows for which a predicate is true.

        Parameters
        ----------
        updates : mapping of str to str
            SQL expressions over the old values of a row, by column.
        where : str or pyarrow.compute.Expression, optional
            Condition on the rows to change, by default all rows. conflict_retries : int Number of restarts after other
            writers change the same rows first.
        retry_timeout : datetime.timedelta, optional
            Time after the first attempt when restarts end. By default there is no limit.
        data_storage_version : str, optional
            File format version of the new files, by default that of the table. The table's own stays.

        Returns
        -------
        UpdateResult
            Also a mapping, with the key `num_rows_updated`.
        """
        wanted = None
        if data_storage_version is not None:
            wanted = choose_file_version(self._table.manifest, data_storage_version)
        seconds = timeout_seconds(retry_timeout)
        return self._change(
            lambda table: run_change(table, plan_update(table, updates, where, wanted)), conflict_retries, seconds
        )

    def plan_update(
        self,
        updates: Mapping[str, str],
        where: Filter | None = None,
        *,
        data_storage_version: str | None = None,
        split_size_bytes: int = DEFAULT_SPLIT_SIZE_BYTES,
    ) -> UpdatePlan:
        """Plan an update whose tasks run anywhere; see `lance_format.table.versions.planned_change`.

        Parameters
        ----------
        updates, where, data_storage_version
            See `update`.
        split_size_bytes : int
            Approximate number of bytes that a task reads.

        Returns
        -------
        UpdatePlan
            A plan for the version that this object shows.
        """
        version = self._table.manifest
        wanted = None if data_storage_version is None else choose_file_version(version, data_storage_version)
        return plan_update(self._table, updates, where, wanted, split_size_bytes)

    def merge_insert(self, on: str | Iterable[str] | None = None) -> MergeInsertBuilder:
        """Merge data into the table by key: update or delete matched rows, insert the others.

        Parameters
        ----------
        on : str or iterable of str, optional
            The key columns, by default the table's primary key. A key with a null matches no row.

        Returns
        -------
        MergeInsertBuilder
            A builder that takes the clauses, then the data: ``table.merge_insert("id").when_matched_update_all()
            .when_not_matched_insert_all().execute(data)`` is an upsert.
        """
        return MergeInsertBuilder(self, on)

    def insert(self, data: Any, *, mode: str = "append", **options: Unpack[InsertKeywords]) -> None:
        """Write data to the table; see `write_dataset` for the arguments."""
        given: dict[str, Any] = {"storage_options": self._table.storage_options, **options}
        schema, progress = given.pop("schema", None), given.pop("progress", None)
        made = write_data(data, self._table.uri, schema, WriteOptions.of(mode, **given), progress)
        self._table = dataclasses.replace(self._table, manifest=made)

    def truncate_table(self) -> None:
        """Delete all rows; the columns stay."""
        self.delete("true")

    @property
    def optimize(self) -> DatasetOptimizer:
        """Ways to make the table faster to read."""
        return DatasetOptimizer(self)

    def restore(self) -> None:
        """Make the version that this object shows the latest again."""
        # On the latest version: versions since this one may be cleaned up, and none of them conflicts.
        operation = Restore(self._table.manifest.version)
        self._move(lambda table: table.commit(operation))
