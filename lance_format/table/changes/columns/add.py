"""Adding columns: every fragment gets one more data file, with the new columns of all its rows.

A data file holds deleted rows as well. Values are only ever computed for the others; what stands in their place does
not matter, and repeats the row before.
"""

from __future__ import annotations

import dataclasses
import hashlib
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from lance_format.blob_fields import table_schema
from lance_format.datatypes import Schema
from lance_format.errors import InvalidInputError, SchemaMismatchError
from lance_format.expressions import as_expression, evaluate
from lance_format.expressions.nodes import Literal
from lance_format.table.batches.fitting import plan_append
from lance_format.table.batches.given_data import is_data_frame
from lance_format.table.batches.streams import RowStream
from lance_format.table.changes.columns.batch_udf import BatchFunction, BatchUDF, Checkpoint
from lance_format.table.format.fragment import FragmentMetadata
from lance_format.table.fragments.deletion_file import RowOffsets
from lance_format.table.fragments.reader import FragmentReader
from lance_format.table.fragments.row_columns import ROW_ADDRESS, ROW_ID, LiveRows, row_column
from lance_format.table.scan.projection import as_seen
from lance_format.table.transaction.appended_columns import plan_new_columns
from lance_format.table.transaction.operations import Merge
from lance_format.table.versions.table_version import Draft, TableVersion
from lance_format.version import FileVersion

NewColumns: TypeAlias = (
    Mapping[str, str] | pa.Field | Sequence[pa.Field] | pa.Schema | BatchFunction | Iterable[pa.RecordBatch]
)

_BATCH_ROWS = 8192


@dataclass(frozen=True, slots=True)
class ColumnSource:
    """Source of new columns.

    Parameters
    ----------
    reads : Schema
        The stored columns that are needed.
    makes : pa.Schema
        The new columns.
    compute : callable, optional
        From a batch of `reads`, and of `row_columns` behind them, to one of `makes`, row by row; nulls if not given.
    finish : callable
        Called once all rows have been computed; raises `SchemaMismatchError` if something is left over.
    row_columns : tuple of str
        Those of `_rowid` and `_rowaddr` that are needed.
    checkpoint : Checkpoint, optional
        What has been computed already.
    """

    reads: Schema
    makes: pa.Schema
    compute: BatchFunction | None
    finish: Callable[[], None] = lambda: None
    row_columns: tuple[str, ...] = ()
    checkpoint: Checkpoint | None = None

    def read(self, scan: FragmentReader, num_rows: int, batch_size: int) -> Iterator[tuple[pa.RecordBatch, RowOffsets]]:
        """Yield what `compute` takes of the first rows of a fragment, and where in its files these are."""
        for batch, offsets in scan.read(0, num_rows, batch_size=batch_size):
            if self.row_columns:
                rows = LiveRows(scan, offsets, offsets)
                columns = [*batch.columns, *(row_column(name, rows) for name in self.row_columns)]
                batch = pa.RecordBatch.from_arrays(columns, names=[*batch.schema.names, *self.row_columns])
            yield batch, offsets


def add_columns(
    table: TableVersion,
    new: NewColumns,
    *,
    read_columns: Sequence[str] | None = None,
    output_schema: pa.Schema | None = None,
    batch_size: int | None = None,
) -> TableVersion:
    """Add columns to a table, and commit that.

    Parameters
    ----------
    table : TableVersion
    new : mapping of str to str, pa.Field, sequence of pa.Field, pa.Schema, callable or iterable of pa.RecordBatch
        SQL expressions by the names of the new columns; or fields, whose values become null, and a struct that is there
        gets those of its fields that it lacks; or a function from record batches to record batches, or DataFrames of
        pandas, of as many rows; or these rows themselves, in the order of the table.
    read_columns : sequence of str, optional
        The columns that a function gets, `_rowid` and `_rowaddr` among them if they are named; all of the table if not
        given.
    output_schema : pa.Schema, optional
        What a function returns, found out by calling it on the first rows if not given; or the schema of rows.
    batch_size : int, optional
        The most rows that are computed at once.

    Raises
    ------
    InvalidInputError
        If a column exists already, or an expression makes no sense.
    SchemaMismatchError
        If a function returns something else than it should.
    """
    table.manifest.file_version.require_writable()
    batch_size = batch_size or _BATCH_ROWS
    source = _plan_source(table, new, read_columns, output_schema, batch_size)
    added, merged = _merged_schema(table, source)
    with Draft(table, str(uuid.uuid4())) as draft:
        fragments = tuple(table.manifest.fragments)
        if source.compute is not None:
            fragments = tuple(add_data_file(draft, fragment, source, added, batch_size) for fragment in fragments)
            source.finish()
        nullable = all(field.nullable for field in added.fields)
        made = table.commit(Merge(fragments, merged, preserves_nullability=nullable), uuid=draft.uuid)
    if source.checkpoint is not None:
        source.checkpoint.remove()
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
    batch_size = batch_size or _BATCH_ROWS
    source = _plan_source(table, new, read_columns, output_schema, batch_size)
    added, merged = _merged_schema(table, source)
    if source.compute is None:
        return fragment, merged
    with Draft(table, str(uuid.uuid4())) as draft:
        made = add_data_file(draft, fragment, source, added, batch_size)
        source.finish()
        return made, merged


def _merged_schema(table: TableVersion, source: ColumnSource) -> tuple[Schema, Schema]:
    """Return the new columns with ids for their fields, and the schema that the table gets."""
    schema = table.manifest.schema
    makes = source.makes.remove_metadata()
    taken = [name for name in makes.names if name in schema.names]
    if taken and source.compute is None:  # Nothing is written: fields of structs may be added as well.
        added = Schema(plan_new_columns(table.manifest, makes, table.manifest.file_version))
        merged = schema.with_fields(added.fields)
        taken = [name for name in taken if merged.field(name) == schema.field(name)]
        if not taken:
            plan_append(merged.select(makes.names), makes)
            return added, merged
    if taken or not makes.names:
        raise InvalidInputError(
            f"column {taken[0]!r} exists already; drop it first, or choose another name" if taken else "no column given"
        )
    added = Schema.from_arrow(table_schema(makes, table.manifest.file_version), first_id=table.manifest.next_field_id)
    return added, schema.with_fields(added.fields)


def add_data_file(
    draft: Draft,
    fragment: FragmentMetadata,
    source: ColumnSource,
    schema: Schema,
    batch_size: int = _BATCH_ROWS,
    file_version: FileVersion | None = None,
) -> FragmentMetadata:
    """Write the new columns of one fragment, and return it with the data file that holds them.

    Parameters
    ----------
    draft : Draft
    fragment : FragmentMetadata
    source : ColumnSource
        With a function.
    schema : Schema
        The new columns, with the ids of their fields.
    batch_size : int
    file_version : FileVersion, optional
        Of the data file; that of the table if not given.
    """
    scan = draft.table.scan(fragment, source.reads)
    written = draft.table.write_fragments(
        _computed(scan, source, schema, batch_size),
        schema,
        uuid=draft.uuid,
        max_rows_per_file=2**32 - 1,
        file_version=file_version,
    )
    files = tuple(file for part in written for file in part.files)
    if len(files) != 1 or written[0].physical_rows != scan.physical_rows():
        raise SchemaMismatchError(f"the new columns of fragment {fragment.id} do not fit one data file")
    return dataclasses.replace(fragment, files=(*fragment.files, *files), physical_rows=scan.physical_rows())


def _plan_source(
    table: TableVersion,
    new: NewColumns,
    read_columns: Sequence[str] | None,
    output_schema: pa.Schema | None,
    batch_size: int,
) -> ColumnSource:
    schema = table.manifest.schema
    if isinstance(new, Mapping):
        return _from_expressions(schema, new)
    if callable(new):
        return _from_function(table, new, read_columns, output_schema, batch_size)
    if isinstance(new, (pa.RecordBatchReader, Iterator)):
        return _from_rows(new, output_schema)
    fields = [new] if isinstance(new, pa.Field) else list(new)
    if not all(isinstance(field, pa.Field) for field in fields):
        raise InvalidInputError(f"{type(new).__name__} is no description of columns; give expressions or fields")
    if required := [field.name for field in fields if not field.nullable]:
        raise InvalidInputError(f"column {required[0]!r} has no values and cannot be null; make its field nullable")
    return ColumnSource(schema.select([]), pa.schema(fields), None)


def _from_function(
    table: TableVersion,
    function: BatchFunction,
    read_columns: Sequence[str] | None,
    output_schema: pa.Schema | None,
    batch_size: int,
) -> ColumnSource:
    schema = table.manifest.schema
    wanted = schema.names if read_columns is None else list(dict.fromkeys(read_columns))
    reads = schema.select([name for name in wanted if name not in (ROW_ID, ROW_ADDRESS)])
    row_columns = tuple(name for name in (ROW_ID, ROW_ADDRESS) if name in wanted)

    def compute(batch: pa.RecordBatch) -> pa.RecordBatch:
        if not row_columns:
            return function(as_seen(batch, reads))
        num_stored = len(reads.fields)
        stored = as_seen(batch.select(range(num_stored)), reads)
        names = [*stored.schema.names, *row_columns]
        return function(pa.RecordBatch.from_arrays([*stored.columns, *batch.columns[num_stored:]], names=names))

    checkpoint = None
    if isinstance(function, BatchUDF):
        output_schema = output_schema or function.output_schema
        checkpoint = None if function.checkpoint_file is None else Checkpoint(function.checkpoint_file)
    source = ColumnSource(
        reads, output_schema or pa.schema([]), compute, row_columns=row_columns, checkpoint=checkpoint
    )
    if output_schema is None:
        source = dataclasses.replace(source, makes=_infer_schema(table, source, batch_size))
    return source


def _from_expressions(schema: Schema, texts: Mapping[str, str]) -> ColumnSource:
    arrow = schema.to_storage()
    bound = {name: as_expression(text, arrow) for name, text in texts.items()}
    fields = [pa.field(name, value.type) for name, value in bound.items()]
    if all(isinstance(value.expression, Literal) and not value.expression.value.is_valid for value in bound.values()):
        return ColumnSource(schema.select([]), pa.schema(fields), None)
    used = {path[0] for value in bound.values() for path in value.columns}
    reads = Schema(tuple(field for field in schema.fields if field.name in used), schema.metadata)
    makes = pa.schema(fields)

    def compute(batch: pa.RecordBatch) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays([evaluate(value, batch) for value in bound.values()], schema=makes)

    return ColumnSource(reads, makes, compute)


def _from_rows(rows: Iterable[pa.RecordBatch], schema: pa.Schema | None) -> ColumnSource:
    if isinstance(rows, pa.RecordBatchReader):
        schema = rows.schema
    if schema is None:
        raise InvalidInputError("an iterable of batches does not tell its schema; give it as reader_schema")
    stream = RowStream(rows)

    def compute(batch: pa.RecordBatch) -> pa.RecordBatch:
        pieces = list(stream.take(batch.num_rows))
        return pa.Table.from_batches(pieces).combine_chunks().to_batches()[0]

    return ColumnSource(Schema(()), schema, compute, stream.check_exhausted)


def _infer_schema(table: TableVersion, source: ColumnSource, batch_size: int) -> pa.Schema:
    for fragment in table.manifest.fragments:
        scan = table.scan(fragment, source.reads)
        for batch, _ in source.read(scan, min(batch_size, scan.num_rows()), batch_size):
            return _compute(source, batch).schema
    raise InvalidInputError("the table has no row to find out what the function returns; give output_schema")


def _compute(source: ColumnSource, batch: pa.RecordBatch) -> pa.RecordBatch:
    if source.compute is None:
        raise TypeError("there is nothing to compute")
    made: object = source.compute(batch)
    num_rows = batch.num_rows
    if is_data_frame(made):
        made = pa.RecordBatch.from_pandas(made, preserve_index=False).replace_schema_metadata(None)
    if not isinstance(made, pa.RecordBatch):
        raise SchemaMismatchError(f"the function for new columns returned {type(made).__name__}, not a RecordBatch")
    if made.num_rows != num_rows:
        raise SchemaMismatchError(f"the function for new columns returned {made.num_rows} rows for {num_rows}")
    return made


def _identify(scan: FragmentReader, source: ColumnSource, schema: Schema, batch_size: int) -> bytes:
    """Return what stands for all that new columns of a fragment are computed of, but for the function."""
    columns = [str(source.reads.to_storage()), *source.row_columns, str(schema.to_storage())]
    return hashlib.sha256(repr((scan.fragment.to_json(), columns, batch_size)).encode()).digest()


def _compute_once(source: ColumnSource, batch: pa.RecordBatch, part: bytes, place: int) -> pa.RecordBatch:
    if source.checkpoint is None:
        return _compute(source, batch)
    known = source.checkpoint.find(part, place)
    if known is not None and known.num_rows == batch.num_rows:
        return known
    made = _compute(source, batch)
    source.checkpoint.keep(part, place, made)
    return made


def _computed(scan: FragmentReader, source: ColumnSource, schema: Schema, batch_size: int) -> Iterator[pa.RecordBatch]:
    """Yield the new columns of all physical rows of a fragment."""
    arrow = schema.to_storage()
    row = 0
    last: pa.RecordBatch | None = None
    part = b"" if source.checkpoint is None else _identify(scan, source, schema, batch_size)
    for place, (batch, offsets) in enumerate(source.read(scan, scan.num_rows(), batch_size)):
        made = _compute_once(source, batch, part, place)
        if made.schema.names != arrow.names:
            raise SchemaMismatchError(
                "Output schema of function does not match the expected schema: it returned the columns"
                f" {made.schema.names} instead of {arrow.names}"
            )
        stop = int(offsets[-1]) + 1
        yield _filled(made, offsets - row, stop - row)
        row, last = stop, made.slice(made.num_rows - 1)
    if last is not None and row < scan.physical_rows():
        for start in range(row, scan.physical_rows(), batch_size):
            yield _filled(last, np.zeros(1, np.int64), min(batch_size, scan.physical_rows() - start))


def _filled(made: pa.RecordBatch, places: RowOffsets, num_rows: int) -> pa.RecordBatch:
    """Put rows in their places, and copies of them into the gaps between."""
    if places.size == num_rows:
        return made
    is_live = np.zeros(num_rows, np.int64)
    is_live[places] = 1
    return made.take(pa.array(np.maximum(np.cumsum(is_live) - 1, 0)))
