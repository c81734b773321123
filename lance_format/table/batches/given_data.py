"""Data that users give, in whichever form, as a stream of record batches."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from lance_format.datatypes import Field
from lance_format.errors import InvalidInputError, SchemaMismatchError
from lance_format.table.batches.fitting import unsliced


def to_batches(data: Any, schema: pa.Schema | None) -> tuple[Iterable[pa.RecordBatch], pa.Schema]:
    """Return data as a stream of batches, and their schema.

    Parameters
    ----------
    data : pa.Table, pa.RecordBatch, pa.RecordBatchReader, iterable of pa.RecordBatch, pandas.DataFrame, dict of \
lists, list of dicts, or anything that becomes Arrow by `to_arrow`, `to_reader`, `to_batches` and `schema`, or as an \
Arrow stream: a DataFrame of polars, a dataset, a scanner, a relation of duckdb
    schema : pa.Schema, optional
        Needed with an iterable of batches, which are cast to it.

    Raises
    ------
    InvalidInputError
        If it is nothing of these.
    """
    data = _as_arrow(data, schema)
    if isinstance(data, pa.Table):
        if schema is not None and not data.schema.equals(schema):
            data = _cast(data, schema)
        return data.to_batches(), data.schema
    if isinstance(data, pa.RecordBatchReader):
        return data, data.schema
    if not isinstance(data, Iterable) or isinstance(data, str | bytes):
        raise InvalidInputError(f"data of type {type(data).__name__} cannot be written; give an Arrow table or batches")
    if schema is None:
        raise InvalidInputError("an iterable of batches has no schema; give it as schema=")
    return _fitting(data, schema), schema


def to_table(data: Any, schema: pa.Schema | None) -> pa.Table:
    """Return data as a table in memory; see `to_batches`. Views become plain values: Arrow takes no rows of them."""
    batches, data_schema = to_batches(data, schema)
    table = pa.Table.from_batches(batches, data_schema)
    for position, field in enumerate(data_schema):
        if _has_views(field.type):
            plain = field.with_type(Field.from_arrow(field).to_arrow_type())
            table = table.set_column(position, plain, table.column(position).cast(plain.type))
    return table


def _has_views(arrow_type: pa.DataType) -> bool:
    if pa.types.is_string_view(arrow_type) or pa.types.is_binary_view(arrow_type):
        return True
    return any(_has_views(arrow_type.field(number).type) for number in range(arrow_type.num_fields))


def is_data_frame(data: Any) -> bool:
    """Return whether something is a DataFrame of pandas, which is not imported for this."""
    return hasattr(data, "to_parquet") and hasattr(data, "iloc")


def _as_arrow(data: Any, schema: pa.Schema | None) -> Any:
    """Convert data of other kinds to a table or a reader; data of unknown kinds is returned as it is."""
    try:
        data = _from_python(data, schema)
    except (TypeError, ValueError, KeyError, AttributeError, OverflowError, pa.ArrowException) as error:
        raise InvalidInputError(f"the values given make no Arrow table: {error}") from error
    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    if isinstance(data, pa.Table | pa.RecordBatchReader):
        return data
    if callable(getattr(data, "to_arrow", None)):  # Of polars: as a stream it would have views of strings.
        return data.to_arrow()
    if callable(getattr(data, "to_reader", None)):
        return data.to_reader()
    if callable(getattr(data, "to_batches", None)) and isinstance(getattr(data, "schema", None), pa.Schema):
        return pa.RecordBatchReader.from_batches(data.schema, data.to_batches())  # A dataset, ours or pyarrow's.
    if hasattr(data, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(data)
    return data


def _from_python(data: Any, schema: pa.Schema | None) -> Any:
    """Return lists and data frames as a table, and anything else as it is."""
    if is_data_frame(data):
        # What pandas says about itself in the metadata concerns its index, which is not stored.
        return pa.Table.from_pandas(data, schema=schema, preserve_index=False).replace_schema_metadata(
            None if schema is None else schema.metadata
        )
    if isinstance(data, dict):
        return pa.Table.from_pydict(data, schema=schema)
    if isinstance(data, list) and data and all(isinstance(row, dict) for row in data):
        return pa.Table.from_pylist(data, schema=schema)
    return data


def _fitting(batches: Iterable[Any], schema: pa.Schema) -> Iterable[pa.RecordBatch]:
    """Yield batches, cast to a schema if their columns differ only in type."""
    for batch in batches:
        if not isinstance(batch, pa.Table | pa.RecordBatch):
            raise InvalidInputError(f"an iterable of batches has an item of type {type(batch).__name__}")
        if batch.schema.names == schema.names and not batch.schema.equals(schema):
            batch = _cast(batch, schema)
        yield from batch.to_batches() if isinstance(batch, pa.Table) else [batch]


def _cast(data: pa.Table | pa.RecordBatch, schema: pa.Schema) -> pa.Table | pa.RecordBatch:
    columns = [_unsliced_column(column) for column in data.columns]
    try:
        return type(data).from_arrays(columns, schema=data.schema).cast(schema)
    except (pa.ArrowException, ValueError) as error:
        raise SchemaMismatchError(f"the data cannot be cast to the schema that was given: {error}") from error


def _unsliced_column(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    if isinstance(column, pa.ChunkedArray):
        return pa.chunked_array([unsliced(chunk) for chunk in column.chunks], column.type)
    return unsliced(column)
