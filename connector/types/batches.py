"""Record batches from the table's types to Spark's, and from Spark's to the table's.

Columns, and parts of nested columns, whose types agree are passed on without a copy. Values never change silently: a
conversion keeps them or fails. There are two exceptions. Spark's own resolution forces one: timestamps and durations in
nanoseconds are rounded down to microseconds, dates in milliseconds down to days. The other is that Spark has no
floating-point numbers of 16 bits: its numbers are rounded to these.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa

from connector.types.arrays import ConversionError, Origin, convert, find_nulls
from lance_format import LanceError, NotSupportedError, SchemaMismatchError

_MAX_BATCH_BYTES = 1 << 30
"""Size at which a batch is halved, well before the 32-bit offsets of Spark's strings overflow."""
_FEWEST_ROWS = 1 << 14
"""Number of rows from which on a batch is not joined with others."""
_FEWEST_BYTES = 8 << 20
"""Number of bytes from which on a batch is not joined with others."""


def to_spark(batch: pa.RecordBatch, schema: pa.Schema, origins: Mapping[str, Origin] | None = None) -> pa.RecordBatch:
    """Convert a batch of a table to the types that Spark expects.

    Parameters
    ----------
    batch : pyarrow.RecordBatch
        A batch with the columns of `schema`, in any order.
    schema : pyarrow.Schema
        Of `connector.types.schemas.to_exchange_schema`.
    origins : mapping of str to Origin, optional
        The columns of the batch that those of the schema have their values from, by the names of the latter; the
        others are null. By default, all have their own names.

    Returns
    -------
    pyarrow.RecordBatch

    Raises
    ------
    NotSupportedError
        If a value is out of the range of Spark's type.
    SchemaMismatchError
        If a column holds nulls that the schema rules out.
    """
    return _convert(batch, schema, NotSupportedError, "Spark", origins)


def to_spark_items(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Convert a batch as `to_spark` does, but leave dictionaries of what Spark expects as they are.

    Batches of few rows, which `join` joins, have none.
    """
    kept = [field.name for field in schema if _is_kept(batch.column(field.name), field)]
    if not kept or batch.num_rows < _FEWEST_ROWS:
        return to_spark(batch, schema)
    others = to_spark(batch, pa.schema([field for field in schema if field.name not in kept]))
    columns = [(batch if name in kept else others).column(name) for name in schema.names]
    return pa.RecordBatch.from_arrays(columns, schema.names)


def _is_kept(column: pa.Array, field: pa.Field) -> bool:
    is_fitting = isinstance(column, pa.DictionaryArray) and column.dictionary.type == field.type
    return is_fitting and find_nulls(column, field) is None


def to_stored(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Convert a batch from Spark to the stored types.

    Parameters
    ----------
    batch : pyarrow.RecordBatch
        A batch with the columns of `schema`, in any order.
    schema : pyarrow.Schema
        Of the table.

    Returns
    -------
    pyarrow.RecordBatch

    Raises
    ------
    SchemaMismatchError
        If a value does not fit the stored type, or a non-nullable column has nulls.
    InvalidInputError
        If an array does not have the length of the table's vectors.
    """
    return _convert(batch, schema, SchemaMismatchError, "the table")


def split(batch: pa.RecordBatch, max_rows: int) -> Iterator[pa.RecordBatch]:
    """Cut a batch into slices of at most `max_rows` rows and about a gigabyte, without a copy."""
    for start in range(0, batch.num_rows, max_rows):
        yield from _halve(batch.slice(start, max_rows))


def join(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Join small batches: a filter may leave few rows per batch."""
    gathered: list[pa.RecordBatch] = []
    for batch in batches:
        if batch.num_columns == 0 or _is_large([batch]):
            yield batch
            continue
        gathered.append(batch)
        if _is_large(gathered):
            yield pa.concat_batches(gathered)
            gathered = []
    if gathered:
        yield pa.concat_batches(gathered)


def _is_large(batches: list[pa.RecordBatch]) -> bool:
    if sum(batch.num_rows for batch in batches) >= _FEWEST_ROWS:
        return True
    num_bytes: int = sum(batch.nbytes for batch in batches)
    return num_bytes >= _FEWEST_BYTES


def _halve(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    if batch.nbytes <= _MAX_BATCH_BYTES or batch.num_rows < 2:
        yield batch
        return
    middle = batch.num_rows // 2
    yield from _halve(batch.slice(0, middle))
    yield from _halve(batch.slice(middle))


def _convert(
    batch: pa.RecordBatch,
    schema: pa.Schema,
    error: type[LanceError],
    owner: str,
    origins: Mapping[str, Origin] | None = None,
) -> pa.RecordBatch:
    """Convert a batch to the types of a schema.

    Parameters
    ----------
    batch : pyarrow.RecordBatch
    schema : pyarrow.Schema
    error : type of LanceError
        Raised if a value does not fit.
    owner : str
        The owner of the types, for messages.
    origins : mapping of str to Origin, optional
        See `to_spark`.
    """
    columns = []
    for field in schema:
        origin = Origin(field.name) if origins is None else origins.get(field.name)
        try:
            if origin is None:
                converted = pa.nulls(batch.num_rows, field.type)
            else:
                converted = convert(batch.column(origin.name), field.type, field.name, origin.below)
        except ConversionError as mismatch:
            raise error(
                f"column {mismatch.path!r}: {mismatch.source} does not fit {owner}'s type {mismatch.target}: "
                f"{mismatch.cause}"
            ) from mismatch
        nulls = find_nulls(converted, field)
        if nulls is not None:
            raise SchemaMismatchError(f"column {nulls!r} holds nulls, but {owner} declares it as not nullable")
        columns.append(converted)
    if not columns:
        return batch.select([])  # This keeps the number of rows.
    return pa.RecordBatch.from_arrays(columns, schema=schema)
