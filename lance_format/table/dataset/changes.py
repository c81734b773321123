"""The methods of `LanceDataset` that change a table."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Unpack

import pyarrow as pa

from lance_format.arguments import checked_methods
from lance_format.table.batches.given_data import to_table
from lance_format.table.changes.columns.add import AddColumnsPlan, add_columns, plan_add_columns
from lance_format.table.changes.columns.alter import AlterColumnsPlan, alter_columns, drop_columns, plan_alter_columns
from lance_format.table.changes.columns.backfill import ColumnBackfill, plan_column_backfill
from lance_format.table.changes.columns.column_source import NewColumns
from lance_format.table.changes.columns.join import merge_columns
from lance_format.table.changes.columns.metadata import (
    MetadataEntries,
    update_config,
    update_field_metadata,
    update_schema_metadata,
    update_table_metadata,
)
from lance_format.table.changes.rows.delete import DeletePlan, DeleteResult, plan_delete
from lance_format.table.changes.rows.replace_where import replace_where
from lance_format.table.changes.rows.row_delta import RowDelta, RowDeltaResult, plan_row_delta
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
    progress: FragmentWriteProgress | None


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
        return self._change(lambda table: run_change(table, plan_delete(table, predicate)), conflict_retries, seconds)

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
        self, predicate: Filter, fragments: Sequence[FragmentMetadata], *, uuid: str | None = None
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
        return replace_where(self, predicate, fragments, uuid)

    def plan_row_delta(
        self, columns: Sequence[str] | None = None, *, description: str = "", uuid: str | None = None
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

        Returns
        -------
        RowDelta
            It changes rows of the version that this object shows.

        Raises
        ------
        InvalidInputError
            If the table has no such column.
        """
        return plan_row_delta(self._table, columns, description, uuid)

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

    def add_columns(
        self,
        transforms: NewColumns,
        read_columns: Sequence[str] | None = None,
        reader_schema: pa.Schema | None = None,
        batch_size: int | None = None,
    ) -> None:
        """Add columns.

        Parameters
        ----------
        transforms : mapping of str to str, pa.Field, sequence of pa.Field, pa.Schema, callable or iterator of \
pa.RecordBatch
            SQL expressions over the other columns, by the names of the new ones. Or fields, whose values become null;
            an existing struct gets the fields that it lacks. Or a function from record batches to record batches of as
            many rows, with a checkpoint if `batch_udf` makes it. Or the new rows, in the order of the table, as a
            reader or an iterator.
        read_columns : sequence of str, optional
            The columns that a function gets, which may include `_rowid` and `_rowaddr`. By default all columns of the
            table.
        reader_schema : pa.Schema, optional
            The schema of the batches that a function returns, or of an iterator's rows. By default a function is called
            on the first rows to find it out.
        batch_size : int, optional
            Maximum number of rows to compute at once, by default 8192.
        """
        self._move(
            lambda table: add_columns(
                table, transforms, read_columns=read_columns, output_schema=reader_schema, batch_size=batch_size
            ),
            conflict_retries=0 if isinstance(transforms, Iterator) else 10,  # An iterator cannot be read again.
        )

    def plan_add_columns(
        self,
        transforms: NewColumns,
        read_columns: Sequence[str] | None = None,
        reader_schema: pa.Schema | None = None,
        batch_size: int | None = None,
        *,
        split_size_bytes: int = DEFAULT_SPLIT_SIZE_BYTES,
    ) -> AddColumnsPlan:
        """Plan to add columns by tasks that run anywhere; see `lance_format.table.versions.planned_change`.

        Parameters
        ----------
        transforms, read_columns, reader_schema, batch_size
            See `add_columns`. Rows, and functions with a checkpoint, are not allowed here. A function must be picklable
            if tasks run in other processes.
        split_size_bytes : int
            Approximate number of bytes that a task reads. Fragments are not divided.

        Returns
        -------
        AddColumnsPlan
            A plan for the version that this object shows.
        """
        return plan_add_columns(
            self._table,
            transforms,
            read_columns=read_columns,
            output_schema=reader_schema,
            batch_size=batch_size,
            split_size_bytes=split_size_bytes,
        )

    def plan_column_backfill(self, columns: pa.Schema, *, uuid: str | None = None) -> ColumnBackfill:
        """Plan to add columns whose values the caller has by the addresses of rows.

        Parameters
        ----------
        columns : pa.Schema
            The new columns. Rows that get no values are null.
        uuid : str, optional
            The uuid of the plan, by default a new one. Plans of one uuid, version and schema are the same plan.

        Returns
        -------
        ColumnBackfill
            A plan whose tasks are writers; see `lance_format.table.changes.columns.backfill`.
        """
        return plan_column_backfill(self._table, columns, uuid)

    def drop_columns(self, columns: Sequence[str]) -> None:
        """Drop columns, or fields below structs (`a.b`); their values stay in the files until these are rewritten."""
        self._move(lambda table: drop_columns(table, columns))

    def alter_columns(self, *alterations: Mapping[str, Any]) -> None:
        """Rename columns, change their types, allow or forbid nulls.

        Parameters
        ----------
        *alterations : mapping
            Each with the `path` of a column (its name, or a dotted path of a field below structs), and its new `name`,
            `nullable` or `data_type`. Nulls can be forbidden if the column has none.
        """
        self._move(lambda table: alter_columns(table, alterations))

    def plan_alter_columns(
        self, *alterations: Mapping[str, Any], split_size_bytes: int = DEFAULT_SPLIT_SIZE_BYTES
    ) -> AlterColumnsPlan:
        """Plan to change columns by tasks that run anywhere; see `lance_format.table.versions.planned_change`.

        Parameters
        ----------
        *alterations : mapping
            See `alter_columns`.
        split_size_bytes : int
            Approximate number of bytes that a task reads. Fragments are not divided. There are no tasks if no column
            gets another type.

        Returns
        -------
        AlterColumnsPlan
            A plan for the version that this object shows.
        """
        return plan_alter_columns(self._table, alterations, split_size_bytes)

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

    def merge(self, data_obj: Any, left_on: str, right_on: str | None = None, schema: pa.Schema | None = None) -> None:
        """Add columns by key.

        Parameters
        ----------
        data_obj, schema
            The data; see `write_dataset`. It is read into memory. The last row wins if a key repeats.
        left_on : str
            The key of the table.
        right_on : str, optional
            The key of the data, by default `left_on`. All other columns of the data are added. They are null in rows
            whose key the data lacks. Null is a key like any other.
        """
        data = to_table(data_obj, schema)
        self._move(lambda table: merge_columns(table, data, left_on, left_on if right_on is None else right_on))

    def truncate_table(self) -> None:
        """Delete all rows; the columns stay."""
        self.delete("true")

    @property
    def optimize(self) -> DatasetOptimizer:
        """Ways to make the table faster to read."""
        return DatasetOptimizer(self)

    def config(self) -> dict[str, str]:
        """Return the table's configuration."""
        return dict(self._table.manifest.config)

    def update_config(self, values: MetadataEntries, *, replace: bool = False) -> dict[str, str]:
        """Set entries of the table's configuration.

        Parameters
        ----------
        values : mapping of str to (str or None)
            Entries by key. None removes an entry.
        replace : bool
            Whether to remove all other entries.

        Returns
        -------
        dict
            The new configuration.
        """
        self._move(lambda table: update_config(table, values, replace=replace))
        return self.config()

    def delete_config_keys(self, keys: Sequence[str]) -> None:
        """Remove entries of the table's configuration. Missing ones are ignored."""
        self.update_config(dict.fromkeys(keys))

    @property
    def metadata(self) -> dict[str, str]:
        """The table's metadata."""
        return dict(self._table.manifest.table_metadata)

    def update_metadata(self, values: MetadataEntries, *, replace: bool = False) -> dict[str, str]:
        """Set entries of the table's metadata, and return them; see `update_config`."""
        self._move(lambda table: update_table_metadata(table, values, replace=replace))
        return self.metadata

    @property
    def schema_metadata(self) -> dict[str, str]:
        """The metadata of the schema."""
        metadata = self._table.manifest.schema.metadata
        return {key.decode(errors="replace"): value.decode(errors="replace") for key, value in metadata.items()}

    def update_schema_metadata(self, values: MetadataEntries, *, replace: bool = False) -> dict[str, str]:
        """Set entries of the schema's metadata, and return them; see `update_config`."""
        self._move(lambda table: update_schema_metadata(table, values, replace=replace))
        return self.schema_metadata

    def replace_schema_metadata(self, new_metadata: Mapping[str, str]) -> None:
        """Replace all metadata of the schema. An older name of `update_schema_metadata(…, replace=True)`."""
        self.update_schema_metadata(new_metadata, replace=True)

    def replace_field_metadata(self, field_name: str, new_metadata: Mapping[str, str]) -> None:
        """Replace all metadata of a field. An older name of `update_field_metadata(…, replace=True)`."""
        self.update_field_metadata({field_name: new_metadata}, replace=True)

    def update_field_metadata(self, field_updates: Mapping[str, MetadataEntries], *, replace: bool = False) -> None:
        """Set entries of the metadata of fields, by field path; see `update_config`."""
        self._move(lambda table: update_field_metadata(table, field_updates, replace=replace))

    def restore(self) -> None:
        """Make the version that this object shows the latest again."""
        # On the latest version: versions since this one may be cleaned up, and none of them conflicts.
        operation = Restore(self._table.manifest.version)
        self._move(lambda table: table.commit(operation))
