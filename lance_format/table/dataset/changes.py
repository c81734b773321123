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
from lance_format.table.changes.columns.alter import alter_columns, drop_columns
from lance_format.table.changes.columns.column_source import NewColumns
from lance_format.table.changes.columns.join import merge_columns
from lance_format.table.changes.columns.metadata import (
    Values,
    update_config,
    update_field_metadata,
    update_schema_metadata,
    update_table_metadata,
)
from lance_format.table.changes.rows.delete import DeletePlan, DeleteResult, plan_delete
from lance_format.table.changes.rows.update import UpdatePlan, UpdateResult, plan_update
from lance_format.table.changes.write.options import WriteKeywords, WriteOptions
from lance_format.table.changes.write.plan import choose_file_version
from lance_format.table.changes.write.run import write_data
from lance_format.table.dataset.merge_builder import MergeInsertBuilder
from lance_format.table.dataset.optimize import DatasetOptimizer
from lance_format.table.format.duration import timeout_seconds
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
    """Methods that change a table, and move the object to the version that they make. Part of `LanceDataset`."""

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
            How often to start again when other writers change the same rows first.
        retry_timeout : datetime.timedelta, optional
            How long after the beginning it may start again at all; without limit if not given.

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
            How much of the files a task reads, about.

        Returns
        -------
        DeletePlan
            It deletes rows of the version that this object shows.
        """
        return plan_delete(self._table, predicate, split_size_bytes)

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
            SQL expressions over the old values of a row, by the columns that they replace.
        where : str or pyarrow.compute.Expression, optional
            Which rows; all if not given.
        conflict_retries : int
            How often to start again when other writers change the same rows first.
        retry_timeout : datetime.timedelta, optional
            How long after the beginning it may start again at all; without limit if not given.
        data_storage_version : str, optional
            Of the files that are written; that of the table, which stays, if not given.

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
            How much of the files a task reads, about.

        Returns
        -------
        UpdatePlan
            It changes rows of the version that this object shows.
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
            SQL expressions over the other columns, by the names of the new ones; or fields, whose values become null,
            and a struct that is there gets those of its fields that it lacks; or a function from record batches to
            record batches of as many rows, with a checkpoint if it is made by `batch_udf`; or these rows themselves, in
            the order of the table, as a reader or an iterator.
        read_columns : sequence of str, optional
            The columns that a function gets, `_rowid` and `_rowaddr` among them if they are named; all of the table
            if not given.
        reader_schema : pa.Schema, optional
            What a function returns, found out by calling it on the first rows if not given; or the schema of an
            iterator's rows.
        batch_size : int, optional
            The most rows that are computed at once; 8192 if not given.
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
        """Plan to add columns, by tasks that run anywhere; see `lance_format.table.versions.planned_change`.

        Parameters
        ----------
        transforms, read_columns, reader_schema, batch_size
            See `add_columns`. Rows themselves, and functions with a checkpoint, are for `add_columns` alone. A function
            has to be one that can be pickled if tasks run in other processes.
        split_size_bytes : int
            How much of the files a task reads, about. A fragment belongs to one task as a whole.

        Returns
        -------
        AddColumnsPlan
            It adds columns to the version that this object shows.
        """
        return plan_add_columns(
            self._table,
            transforms,
            read_columns=read_columns,
            output_schema=reader_schema,
            batch_size=batch_size,
            split_size_bytes=split_size_bytes,
        )

    def drop_columns(self, columns: Sequence[str]) -> None:
        """Drop columns, or fields below structs (`a.b`); their values stay in the files until these are rewritten."""
        self._move(lambda table: drop_columns(table, columns))

    def alter_columns(self, *alterations: Mapping[str, Any]) -> None:
        """Rename columns, change their types, allow or forbid nulls.

        Parameters
        ----------
        *alterations : mapping
            Each with the `path` of a column (its name, or a dotted path of a field below structs), and what is to
            change: `name`, `nullable`, `data_type`. Nulls can be forbidden where there are none.
        """
        self._move(lambda table: alter_columns(table, alterations))

    def merge_insert(self, on: str | Iterable[str] | None = None) -> MergeInsertBuilder:
        """Merge data into the table by key: replace or delete rows that match, insert those that do not.

        Parameters
        ----------
        on : str or iterable of str, optional
            The columns of the key; those of the table's primary key if not given. A key with a null matches none.

        Returns
        -------
        MergeInsertBuilder
            Takes the clauses, and then the data: ``table.merge_insert("id").when_matched_update_all()
            .when_not_matched_insert_all().execute(data)`` is an upsert.
        """
        return MergeInsertBuilder(self, on)

    def insert(self, data: Any, *, mode: str = "append", **options: Unpack[InsertKeywords]) -> None:
        """Write data to the table; further arguments are those of `write_dataset`."""
        given: dict[str, Any] = {"storage_options": self._table.storage_options, **options}
        schema, progress = given.pop("schema", None), given.pop("progress", None)
        made = write_data(data, self._table.uri, schema, WriteOptions.of(mode, **given), progress)
        self._table = dataclasses.replace(self._table, manifest=made)

    def merge(self, data_obj: Any, left_on: str, right_on: str | None = None, schema: pa.Schema | None = None) -> None:
        """Add columns by key.

        Parameters
        ----------
        data_obj, schema
            The data: see `write_dataset`. It is read into memory. Of rows with one key the last one counts.
        left_on : str
            The key of the table.
        right_on : str, optional
            The key of the data; `left_on` if not given. All its other columns are added, as null in rows whose key the
            data lacks. Null is a key like others.
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

    def update_config(self, values: Values, *, replace: bool = False) -> dict[str, str]:
        """Set entries of the table's configuration; those given as None go, and all others if `replace`.

        Returns
        -------
        dict
            The configuration since.
        """
        self._move(lambda table: update_config(table, values, replace=replace))
        return self.config()

    def delete_config_keys(self, keys: Sequence[str]) -> None:
        """Remove entries of the table's configuration, so far as there are."""
        self.update_config(dict.fromkeys(keys))

    @property
    def metadata(self) -> dict[str, str]:
        """The table's metadata."""
        return dict(self._table.manifest.table_metadata)

    def update_metadata(self, values: Values, *, replace: bool = False) -> dict[str, str]:
        """Set entries of the table's metadata, and return them; see `update_config`."""
        self._move(lambda table: update_table_metadata(table, values, replace=replace))
        return self.metadata

    @property
    def schema_metadata(self) -> dict[str, str]:
        """The metadata of the schema."""
        metadata = self._table.manifest.schema.metadata
        return {key.decode(errors="replace"): value.decode(errors="replace") for key, value in metadata.items()}

    def update_schema_metadata(self, values: Values, *, replace: bool = False) -> dict[str, str]:
        """Set entries of the schema's metadata, and return them; see `update_config`."""
        self._move(lambda table: update_schema_metadata(table, values, replace=replace))
        return self.schema_metadata

    def replace_schema_metadata(self, new_metadata: Mapping[str, str]) -> None:
        """Replace all metadata of the schema; by its newer name `update_schema_metadata(…, replace=True)`."""
        self.update_schema_metadata(new_metadata, replace=True)

    def replace_field_metadata(self, field_name: str, new_metadata: Mapping[str, str]) -> None:
        """Replace all metadata of a field; by its newer name `update_field_metadata(…, replace=True)`."""
        self.update_field_metadata({field_name: new_metadata}, replace=True)

    def update_field_metadata(self, field_updates: Mapping[str, Values], *, replace: bool = False) -> None:
        """Set entries of the metadata of fields, which are given by their paths; see `update_config`."""
        self._move(lambda table: update_field_metadata(table, field_updates, replace=replace))

    def restore(self) -> None:
        """Make the version that this object shows the latest again."""
        # On the latest version: of those since this one some may be gone, and nothing in them stands in the way.
        operation = Restore(self._table.manifest.version)
        self._move(lambda table: table.commit(operation))
