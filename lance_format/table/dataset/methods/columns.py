"""The methods of `LanceDataset` that add, change and drop columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from lance_format.arguments import checked_methods
from lance_format.table.batches.given_data import to_table
from lance_format.table.changes.columns.add import AddColumnsPlan, add_columns, plan_add_columns
from lance_format.table.changes.columns.alter import AlterColumnsPlan, alter_columns, drop_columns, plan_alter_columns
from lance_format.table.changes.columns.backfill import ColumnBackfill, plan_column_backfill
from lance_format.table.changes.columns.column_source import NewColumns
from lance_format.table.changes.columns.join import merge_columns
from lance_format.table.scan.tasks import DEFAULT_SPLIT_SIZE_BYTES
from lance_format.table.versions.open_table import OpenTable


@checked_methods
class DatasetColumns(OpenTable):
    """Methods that change the columns of a table. Part of `LanceDataset`."""

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
        transforms : mapping of str to str, pa.Field, sequence of pa.Field, pa.Schema, callable, pa.Table, \
pa.RecordBatch or iterator of pa.RecordBatch
            SQL expressions over the other columns, by the names of the new ones. Or fields, whose values become null;
            an existing struct gets the fields that it lacks. Or a function from record batches to record batches or
            tables of as many rows, with a checkpoint if `batch_udf` makes it. Or the new rows, in the order of the
            table.
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
        """Rename columns, change their types and metadata, allow or forbid nulls.

        Parameters
        ----------
        *alterations : mapping
            Each with the `path` of a column (its name, or a dotted path of a field below structs), and its new `name`,
            `nullable`, `data_type` or `metadata`: text to set by key, or None to remove a key. Nulls can be forbidden
            if the column has none.
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
