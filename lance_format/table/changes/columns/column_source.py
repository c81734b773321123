"""Sources of new columns: SQL expressions, functions, given rows; and their values for a fragment.

A data file holds deleted rows too. Values are computed only for live rows. Deleted ones repeat the preceding row.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from lance_format.arrow_rows import take_rows
from lance_format.datatypes import Schema
from lance_format.errors import InvalidInputError, SchemaMismatchError
from lance_format.expressions import BoundExpression, as_expression, evaluate
from lance_format.expressions.nodes import Literal
from lance_format.lazy_dataclasses import dataclass
from lance_format.table.batches.given_data import is_data_frame, to_batches
from lance_format.table.batches.streams import RowStream
from lance_format.table.changes.columns.batch_udf import BatchFunction, BatchUDF, Checkpoint
from lance_format.table.fragments.deletion_file import RowOffsets
from lance_format.table.fragments.reader import FragmentReader
from lance_format.table.fragments.row_columns import ROW_ADDRESS, ROW_ID, LiveRows, row_column
from lance_format.table.scan.projection import as_seen
from lance_format.table.versions.table_version import TableVersion

NewColumns: TypeAlias = (
    Mapping[str, str]
    | pa.Field
    | Sequence[pa.Field]
    | pa.Schema
    | BatchFunction
    | pa.Table
    | pa.RecordBatch
    | Iterable[pa.RecordBatch]
)


def _finish_nothing() -> None:
    """Find nothing left over."""


@dataclass(frozen=True, slots=True)
class ColumnSource:
    """Source of new columns: a value that can be pickled if `compute` can.

    Parameters
    ----------
    reads : Schema
        The stored columns that are needed.
    makes : pa.Schema
        The new columns.
    compute : callable, optional
        From a batch of `reads`, and of `row_columns` behind them, to one of `makes`, row by row, or to a table where a
        batch might not hold the values; nulls if not given.
    finish : callable
        Called once all rows have been computed; raises `SchemaMismatchError` if rows are left over.
    row_columns : tuple of str
        Those of `_rowid` and `_rowaddr` that are needed.
    checkpoint : Checkpoint, optional
        Results that have already been computed.
    """

    reads: Schema
    makes: pa.Schema
    compute: BatchFunction | None
    finish: Callable[[], None] = _finish_nothing
    row_columns: tuple[str, ...] = ()
    checkpoint: Checkpoint | None = None

    @property
    def in_any_order(self) -> bool:
        """True if threads may compute the columns of several fragments at the same time; functions are the caller's."""
        return not isinstance(self.compute, _Function | _Rows)

    def read(self, scan: FragmentReader, num_rows: int, batch_size: int) -> Iterator[tuple[pa.RecordBatch, LiveRows]]:
        """Yield the inputs of `compute` for the first rows of a fragment, and these rows; see `compute_columns`."""
        for batch, offsets in scan.read(0, num_rows, batch_size=batch_size):
            rows = LiveRows(scan, offsets, 0)
            if self.row_columns:
                columns = [*batch.columns, *(row_column(name, rows) for name in self.row_columns)]
                batch = pa.RecordBatch.from_arrays(columns, names=[*batch.schema.names, *self.row_columns])
            yield batch, rows


def plan_source(
    table: TableVersion,
    new: NewColumns,
    read_columns: Sequence[str] | None,
    output_schema: pa.Schema | None,
    batch_size: int,
) -> ColumnSource:
    """Fit new columns to a table; see `lance_format.table.changes.columns.add.add_columns`.

    A function of unknown schema is called on the first rows of the table.
    """
    schema = table.manifest.schema
    if isinstance(new, Mapping):
        return _from_expressions(schema, new)
    if callable(new):
        return _from_function(table, new, read_columns, output_schema, batch_size)
    if are_rows(new):
        return _from_rows(new, output_schema)
    fields = [new] if isinstance(new, pa.Field) else list(new)
    if not all(isinstance(field, pa.Field) for field in fields):
        raise InvalidInputError(f"{type(new).__name__} is no description of columns; give expressions or fields")
    if required := [field.name for field in fields if not field.nullable]:
        raise InvalidInputError(f"column {required[0]!r} has no values and cannot be null; make its field nullable")
    return ColumnSource(schema.select([]), pa.schema(fields), None)


def are_rows(new: NewColumns) -> bool:
    """Return whether new columns are given by their values, in the order of the table."""
    return isinstance(new, pa.Table | pa.RecordBatch | pa.RecordBatchReader | Iterator)


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
    checkpoint = None
    if isinstance(function, BatchUDF):
        output_schema = output_schema or function.output_schema
        checkpoint = None if function.checkpoint_file is None else Checkpoint(function.checkpoint_file)
    source = ColumnSource(
        reads,
        output_schema or pa.schema([]),
        _Function(function, reads, row_columns),
        row_columns=row_columns,
        checkpoint=checkpoint,
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
    return ColumnSource(reads, makes, _Expressions(tuple(bound.values()), makes))


def _from_rows(rows: NewColumns, schema: pa.Schema | None) -> ColumnSource:
    if schema is None and isinstance(rows, Iterator) and not isinstance(rows, pa.RecordBatchReader):
        raise InvalidInputError("an iterable of batches has no schema; give it as reader_schema")
    batches, schema = to_batches(rows, schema)
    stream = RowStream(batches)
    return ColumnSource(Schema(()), schema, _Rows(stream), stream.check_exhausted)


@dataclass(frozen=True, slots=True)
class _Expressions:
    """Computes SQL expressions."""

    values: tuple[BoundExpression, ...]
    makes: pa.Schema

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays([evaluate(value, batch) for value in self.values], schema=self.makes)


@dataclass(frozen=True, slots=True)
class _Function:
    """Calls a function with columns as readers see them."""

    function: BatchFunction
    reads: Schema
    row_columns: tuple[str, ...]

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch | pa.Table:
        if not self.row_columns:
            return _as_rows(self.function(as_seen(batch, self.reads)))
        num_stored = len(self.reads.fields)
        stored = as_seen(batch.select(range(num_stored)), self.reads)
        names = [*stored.schema.names, *self.row_columns]
        given = pa.RecordBatch.from_arrays([*stored.columns, *batch.columns[num_stored:]], names=names)
        return _as_rows(self.function(given))


def _as_rows(made: object) -> pa.RecordBatch | pa.Table:
    if is_data_frame(made):
        return pa.RecordBatch.from_pandas(made, preserve_index=False).replace_schema_metadata(None)
    if not isinstance(made, pa.RecordBatch | pa.Table):
        raise SchemaMismatchError(f"the function for new columns returned {type(made).__name__}, not a RecordBatch")
    return made


@dataclass(frozen=True, slots=True)
class _Rows:
    """Hands out the next rows of a stream."""

    stream: RowStream

    def __call__(self, batch: pa.RecordBatch) -> pa.Table:
        return pa.Table.from_batches(self.stream.take(batch.num_rows)).combine_chunks()


def _infer_schema(table: TableVersion, source: ColumnSource, batch_size: int) -> pa.Schema:
    for fragment in table.manifest.fragments:
        scan = table.scan(fragment, source.reads)
        for batch, _ in source.read(scan, min(batch_size, scan.num_rows()), batch_size):
            return _compute(source, batch).schema
    raise InvalidInputError("the table has no row to find out what the function returns; give output_schema")


def _compute(source: ColumnSource, batch: pa.RecordBatch) -> pa.RecordBatch | pa.Table:
    if source.compute is None:
        raise TypeError("there is nothing to compute")
    made = source.compute(batch)
    num_rows = batch.num_rows
    if made.num_rows != num_rows:
        raise SchemaMismatchError(f"the function for new columns returned {made.num_rows} rows for {num_rows}")
    return made


def _identify(scan: FragmentReader, source: ColumnSource, schema: Schema, batch_size: int) -> bytes:
    """Return a key of all inputs of the new columns of a fragment, except the function."""
    columns = [str(source.reads.to_storage()), *source.row_columns, str(schema.to_storage())]
    return hashlib.sha256(repr((scan.fragment.to_json(), columns, batch_size)).encode()).digest()


def _compute_once(source: ColumnSource, batch: pa.RecordBatch, part: bytes, position: int) -> pa.RecordBatch | pa.Table:
    if source.checkpoint is None:
        return _compute(source, batch)
    known = source.checkpoint.find(part, position)
    if known is not None and known.num_rows == batch.num_rows:
        return known
    made = _compute(source, batch)
    source.checkpoint.keep(part, position, made)
    return made


def compute_columns(
    scan: FragmentReader, source: ColumnSource, schema: Schema, batch_size: int
) -> Iterator[pa.RecordBatch]:
    """Yield the new columns of all physical rows of a fragment.

    Parameters
    ----------
    scan : FragmentReader
    source : ColumnSource
    schema : Schema
        The new columns.
    batch_size : int
        Maximum number of rows to compute at once.

    Raises
    ------
    SchemaMismatchError
        If a function returns other columns than expected.
    """
    arrow = schema.to_storage()
    row = 0
    last: pa.RecordBatch | pa.Table | None = None
    part = b"" if source.checkpoint is None else _identify(scan, source, schema, batch_size)
    for position, (batch, rows) in enumerate(source.read(scan, scan.num_rows(), batch_size)):
        made = _compute_once(source, batch, part, position)
        if made.schema.names != arrow.names:
            raise SchemaMismatchError(
                "Output schema of function does not match the expected schema: it returned the columns"
                f" {made.schema.names} instead of {arrow.names}"
            )
        stop = int(rows.offsets[-1]) + 1
        yield from _filled(made, rows.offsets - row, stop - row)
        row, last = stop, made.slice(made.num_rows - 1)
    if last is not None and row < scan.physical_rows():
        for start in range(row, scan.physical_rows(), batch_size):
            yield from _filled(last, np.zeros(1, np.int64), min(batch_size, scan.physical_rows() - start))


def _filled(made: pa.RecordBatch | pa.Table, positions: RowOffsets, num_rows: int) -> list[pa.RecordBatch]:
    """Put rows at their offsets, and copies of them into the gaps between."""
    filled = made if isinstance(made, pa.Table) else pa.Table.from_batches([made])
    if positions.size < num_rows:
        is_live = np.zeros(num_rows, np.int64)
        is_live[positions] = 1
        filled = take_rows(filled, pa.array(np.maximum(np.cumsum(is_live) - 1, 0)))
    return list(filled.to_batches())
