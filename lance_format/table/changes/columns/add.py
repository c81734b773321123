"""Adding columns: every fragment gets one more data file, with the new columns of all its rows."""

from __future__ import annotations

import dataclasses
import itertools
import uuid
from collections.abc import Mapping, Sequence

import pyarrow as pa

from lance_format.blob_fields import table_schema
from lance_format.datatypes import Schema
from lance_format.errors import InvalidInputError, SchemaMismatchError
from lance_format.file import check_requests
from lance_format.lazy_dataclasses import dataclass
from lance_format.object_store import map_together
from lance_format.table.batches.fitting import plan_append
from lance_format.table.changes.columns.batch_udf import BatchUDF
from lance_format.table.changes.columns.column_source import (
    ColumnSource,
    NewColumns,
    are_rows,
    compute_columns,
    plan_source,
)
from lance_format.table.format.column_names import check_new_names
from lance_format.table.format.file_entries import TOMBSTONE, DataFile
from lance_format.table.format.fragment import FragmentMetadata, without_dropped_files
from lance_format.table.fragments.batch_rows import BATCH_ROWS, rows_at_once
from lance_format.table.fragments.writer import check_new_columns
from lance_format.table.scan.tasks import divide_fragments
from lance_format.table.transaction.appended_columns import plan_new_columns
from lance_format.table.transaction.operations import Merge
from lance_format.table.versions.planned_change import ChangePlan, ChangeTask, run_change
from lance_format.table.versions.table_version import Draft, TableVersion
from lance_format.version import FileVersion

_SMALL_BYTES = 4 * 1024 * 1024
"""Maximum size of the files of fragments whose columns are computed at the same time."""


@dataclass(frozen=True, slots=True)
class WidenedFragments:
    """Fragments for which a task has written new columns. Can be pickled.

    Parameters
    ----------
    number : int
    uuid : str
        The uuid of the plan.
    fragments : mapping of int to FragmentMetadata
        The fragments with their new data files, by position in the list of the version.
    """

    number: int
    uuid: str
    fragments: Mapping[int, FragmentMetadata]


@dataclass(frozen=True, slots=True)
class AddColumnsTask(ChangeTask[WidenedFragments]):
    """Task that writes the new columns of some fragments.

    Parameters
    ----------
    read_version : int
    number : int
        Number of the task within the plan.
    uuid : str
        The uuid of the plan, which the names of its data files carry.
    source : ColumnSource
        Picklable if the function for the columns is, or if there is none.
    added : Schema
        The new columns with field ids.
    positions : tuple of int
        Positions of the fragments in the list of the version.
    batch_size : int
        Maximum number of rows to compute at once.
    """

    read_version: int
    number: int
    uuid: str
    source: ColumnSource
    added: Schema
    positions: tuple[int, ...]
    batch_size: int = BATCH_ROWS

    def run(self, table: TableVersion) -> WidenedFragments:
        """Write the columns; see `execute`."""
        draft = Draft(table, self.uuid)
        listed = table.manifest.fragments

        def widen(position: int) -> FragmentMetadata:
            return add_data_file(draft, listed[position], self.source, self.added, self.batch_size)

        made: dict[int, FragmentMetadata] = {}
        for are_many, group in itertools.groupby(self.positions, lambda position: self._is_small(listed[position])):
            positions = list(group)
            found = map_together(table.store, widen, positions) if are_many else map(widen, positions)
            made.update(zip(positions, found, strict=True))
        self.source.finish()
        return WidenedFragments(self.number, self.uuid, made)

    def _is_small(self, fragment: FragmentMetadata) -> bool:
        """Return whether others may be computed at the same time, which then do not take much memory together."""
        return self.source.in_any_order and 0 < fragment.known_bytes <= _SMALL_BYTES


@dataclass(frozen=True, slots=True)
class AddColumnsPlan(ChangePlan[WidenedFragments, None]):
    """Planned columns. Made by `plan_add_columns`.

    Parameters
    ----------
    read_version : int
    uuid : str
    schema : Schema
        Schema of the table with the new columns.
    nullable : bool
        Whether all new columns may be null.
    tasks : tuple of AddColumnsTask
        Empty if the new columns are null in all rows.
    """

    read_version: int
    uuid: str
    schema: Schema
    nullable: bool
    tasks: tuple[AddColumnsTask, ...]

    def operation(self, draft: Draft, results: Sequence[WidenedFragments]) -> Merge:
        """Add the new files to the existing ones."""
        made = {position: fragment for result in results for position, fragment in result.fragments.items()}
        fragments = tuple(made.get(position, old) for position, old in enumerate(draft.table.manifest.fragments))
        return Merge(fragments, self.schema, preserves_nullability=self.nullable)

    def outcome(self, results: Sequence[WidenedFragments]) -> None:
        """Return nothing: all rows have the new columns."""


def plan_add_columns(
    table: TableVersion,
    new: NewColumns,
    *,
    read_columns: Sequence[str] | None = None,
    output_schema: pa.Schema | None = None,
    batch_size: int | None = None,
    split_size_bytes: int | None = None,
) -> AddColumnsPlan:
    """Plan to add columns to a table.

    Parameters
    ----------
    table : TableVersion
    new, read_columns, output_schema, batch_size
        See `add_columns`. A function of unknown schema is called on the first rows.
    split_size_bytes : int, optional
        Approximate number of bytes that a task reads. Fragments are not divided. By default there is one task.

    Raises
    ------
    InvalidInputError
        If a column exists already, or an expression is invalid. If a size is given, also for given rows, and
        for a checkpoint: one process must compute those, in the order of the table.
    SchemaMismatchError
        If a function returns other rows or columns than expected.
    NotSupportedError
        If the data files of the table cannot hold a column.
    """
    table.manifest.file_version.require_changeable()
    if split_size_bytes is not None and are_rows(new):
        raise InvalidInputError(
            "the rows that are given are for one process, in the order of the table: use add_columns, or merge for rows"
            " that have a key"
        )
    if split_size_bytes is not None and isinstance(new, BatchUDF) and new.checkpoint_file is not None:
        raise InvalidInputError(
            f"the checkpoint {new.checkpoint_file} is a file of one process: use add_columns, or leave it out"
        )
    source = plan_source(table, new, read_columns, output_schema, batch_size or BATCH_ROWS)
    batch_size = batch_size or _batch_rows(new, source)
    added, merged = merge_schemas(table, source.makes, is_null=source.compute is None)
    check_requests(added.fields)
    version, identity = table.manifest.version, str(uuid.uuid4())
    groups: list[tuple[int, ...]] = []
    if source.compute is not None:
        groups = divide_fragments(table, range(len(table.manifest.fragments)), source.reads, split_size_bytes)
        if split_size_bytes is None and not groups:
            groups = [()]  # Given rows must be found to be left over.
    tasks = tuple(
        AddColumnsTask(version, number, identity, source, added, group, batch_size)
        for number, group in enumerate(groups)
    )
    nullable = all(field.nullable for field in added.fields)
    return AddColumnsPlan(version, identity, merged, nullable, tasks)


def add_columns(
    table: TableVersion,
    new: NewColumns,
    *,
    read_columns: Sequence[str] | None = None,
    output_schema: pa.Schema | None = None,
    batch_size: int | None = None,
) -> TableVersion:
    """Add columns to a table and commit them.

    Parameters
    ----------
    table : TableVersion
    new : mapping of str to str, pa.Field, sequence of pa.Field, pa.Schema, callable, pa.Table, pa.RecordBatch \
or iterator of pa.RecordBatch
        SQL expressions by the names of the new columns. Or fields, whose values become null; an existing struct gets
        the fields that it lacks. Or a function from record batches to record batches, tables, or DataFrames of pandas,
        of as many rows. Or the new rows, in the order of the table.
    read_columns : sequence of str, optional
        The columns that a function gets, which may include `_rowid` and `_rowaddr`. By default all columns of the
        table.
    output_schema : pa.Schema, optional
        The schema of the batches that a function returns, or of the rows. By default a function is called on the first
        rows to find the schema.
    batch_size : int, optional
        Maximum number of rows to compute at once.

    Raises
    ------
    InvalidInputError
        If a column exists already, or an expression is invalid.
    SchemaMismatchError
        If a function returns other rows or columns than expected.
    """
    plan = plan_add_columns(table, new, read_columns=read_columns, output_schema=output_schema, batch_size=batch_size)
    made, _ = run_change(table, plan)
    for task in plan.tasks:
        if task.source.checkpoint is not None:
            task.source.checkpoint.remove()
    return made


def merge_fragment_columns(
    table: TableVersion,
    fragment: FragmentMetadata,
    new: NewColumns,
    *,
    read_columns: Sequence[str] | None = None,
    output_schema: pa.Schema | None = None,
    batch_size: int | None = None,
) -> tuple[FragmentMetadata, Schema]:
    """Write new columns of one fragment, and commit nothing; see `add_columns`.

    Returns
    -------
    FragmentMetadata
        With one more data file.
    Schema
        That of the table with the new columns.
    """
    if isinstance(new, BatchUDF) and new.checkpoint_file is not None:
        raise InvalidInputError("A checkpoint file cannot be used for a fragment by itself: add_columns takes it")
    source = plan_source(table, new, read_columns, output_schema, batch_size or BATCH_ROWS)
    batch_size = batch_size or _batch_rows(new, source)
    added, merged = merge_schemas(table, source.makes, is_null=source.compute is None)
    if source.compute is None:
        return fragment, merged
    with Draft(table, str(uuid.uuid4())) as draft:
        made = add_data_file(draft, fragment, source, added, batch_size)
        source.finish()
        return made, merged


def _batch_rows(new: NewColumns, source: ColumnSource) -> int:
    """Return how many rows to compute at once: functions, which see batches, get the same for every table."""
    return rows_at_once(source.reads) if isinstance(new, Mapping) else BATCH_ROWS


def merge_schemas(table: TableVersion, makes: pa.Schema, *, is_null: bool = False) -> tuple[Schema, Schema]:
    """Return the new columns with field ids, and the new schema of the table.

    Parameters
    ----------
    table : TableVersion
    makes : pa.Schema
        The new columns.
    is_null : bool
        Whether they have no values; fields of structs may then be new too.

    Raises
    ------
    InvalidInputError
        If a column exists already, or there is none.
    NotSupportedError
        If the data files of the table cannot hold a column.
    """
    schema, version = table.manifest.schema, table.manifest.file_version
    makes = makes.remove_metadata()
    taken = [name for name in makes.names if name in schema.names]
    if taken and is_null:  # Nothing is written: fields of structs may be added as well.
        added = Schema(plan_new_columns(table.manifest, makes, version))
        check_new_names(added.fields)
        merged = schema.with_fields(added.fields)
        taken = [name for name in taken if merged.field(name) == schema.field(name)]
        if not taken:
            plan_append(merged.select(makes.names), makes)
            check_new_columns(schema, merged, version)
            return added, merged
    if taken or not makes.names:
        raise InvalidInputError(
            f"column {taken[0]!r} exists already; drop it first, or choose another name" if taken else "no column given"
        )
    added = Schema.from_arrow(table_schema(makes, version), first_id=table.manifest.next_field_id)
    check_new_names(added.fields)
    merged = schema.with_fields(added.fields)
    check_new_columns(schema, merged, version)
    return added, merged


def add_data_file(
    draft: Draft,
    fragment: FragmentMetadata,
    source: ColumnSource,
    schema: Schema,
    batch_size: int = BATCH_ROWS,
    file_version: FileVersion | None = None,
) -> FragmentMetadata:
    """Write the columns of one fragment, and return the fragment with their data file, without earlier ones of theirs.

    Parameters
    ----------
    draft : Draft
    fragment : FragmentMetadata
    source : ColumnSource
        With a function.
    schema : Schema
        The columns with field ids.
    batch_size : int
    file_version : FileVersion, optional
        Of the data file; that of the table if not given.

    Raises
    ------
    SchemaMismatchError
        If the new columns do not fit one data file.
    """
    scan = draft.table.scan(fragment, source.reads)
    with scan.open() as opened:
        batch_rows = opened.batch_rows()
    written = draft.table.write_fragments(
        compute_columns(scan, source, schema, batch_size),
        schema,
        uuid=draft.uuid,
        max_rows_per_file=2**32 - 1,
        file_version=file_version,
        batch_rows=batch_rows,
    )
    files = tuple(file for part in written for file in part.files)
    if len(files) != 1 or written[0].physical_rows != scan.physical_rows():
        raise SchemaMismatchError(f"the new columns of fragment {fragment.id} do not fit one data file")
    widened = dataclasses.replace(fragment, physical_rows=scan.physical_rows())
    return with_new_file(widened, files[0], draft.table.manifest.schema)


def with_new_file(fragment: FragmentMetadata, new: DataFile, schema: Schema) -> FragmentMetadata:
    """Return a fragment with one more data file, and without those that hold nothing else of the table any more.

    Its fields get tombstones in earlier files. Values of fields within structs replace these structs as well in format
    2.0, which has columns for structs. Earlier files may also hold columns that were dropped: pylance calls a file
    damaged that has no others.

    Parameters
    ----------
    fragment : FragmentMetadata
    new : DataFile
    schema : Schema
        The columns of the table.
    """
    replaced = set(new.fields)
    files = [
        dataclasses.replace(file, fields=tuple(TOMBSTONE if x in replaced else x for x in file.fields))
        for file in fragment.files
    ]
    live = replaced | {field.id for field in schema.walk()}
    return without_dropped_files(dataclasses.replace(fragment, files=(*files, new)), live)
