"""Record batches from the table's types to Spark's, and from Spark's to the table's.

Columns whose types agree are passed on without a copy. Values never change silently: a conversion either keeps them or
fails, with one exception that Spark's own resolution forces: timestamps and durations in nanoseconds are rounded down
to microseconds, dates in milliseconds down to days.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_format import LanceError, NotSupportedError, SchemaMismatchError

_MAX_BATCH_BYTES = 1 << 30
"""Where a batch is halved, well before the 32-bit offsets of Spark's strings overflow."""

_NANOSECONDS_PER_MICROSECOND = 1_000
_MILLISECONDS_PER_DAY = 86_400_000


def to_spark(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Convert a batch of a table to what Spark expects.

    Parameters
    ----------
    batch : pyarrow.RecordBatch
        Has the columns of `schema`, in any order.
    schema : pyarrow.Schema
        Of `connector.types.to_exchange_schema`.

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
    return _convert(batch, schema, NotSupportedError, "Spark")


def to_stored(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Convert a batch that Spark hands over to what the table stores.

    Parameters
    ----------
    batch : pyarrow.RecordBatch
        Has the columns of `schema`, in any order.
    schema : pyarrow.Schema
        Of the table.

    Returns
    -------
    pyarrow.RecordBatch

    Raises
    ------
    SchemaMismatchError
        If a value does not fit the stored type, or a column holds nulls that the table rules out.
    """
    return _convert(batch, schema, SchemaMismatchError, "the table")


def split(batch: pa.RecordBatch, max_rows: int) -> Iterator[pa.RecordBatch]:
    """Cut a batch into slices of at most `max_rows` rows and about a gigabyte, without a copy."""
    for start in range(0, batch.num_rows, max_rows):
        yield from _halve(batch.slice(start, max_rows))


def _halve(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    if batch.nbytes <= _MAX_BATCH_BYTES or batch.num_rows < 2:
        yield batch
        return
    middle = batch.num_rows // 2
    yield from _halve(batch.slice(0, middle))
    yield from _halve(batch.slice(middle))


def _convert(batch: pa.RecordBatch, schema: pa.Schema, error: type[LanceError], owner: str) -> pa.RecordBatch:
    columns = []
    for field in schema:
        column = batch.column(field.name)
        try:
            converted = _convert_column(column, field.type)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as cause:
            raise error(
                f"column {field.name!r}: {column.type} does not fit {owner}'s type {field.type}: {cause}"
            ) from cause
        if converted.null_count and not field.nullable:
            raise SchemaMismatchError(f"column {field.name!r} holds nulls, but {owner} declares it as not nullable")
        columns.append(converted)
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _convert_column(column: pa.Array, target: pa.DataType) -> pa.Array:
    source = column.type
    if source == target:
        return column
    if isinstance(source, pa.BaseExtensionType):
        return _convert_column(column.storage, target)
    if pa.types.is_dictionary(source):
        return _convert_column(column.dictionary_decode(), target)
    if pa.types.is_timestamp(source) and pa.types.is_timestamp(target) and (source.unit, target.unit) == ("ns", "us"):
        return _divide(column, _NANOSECONDS_PER_MICROSECOND, np.dtype(np.int64), target)
    if pa.types.is_duration(source) and pa.types.is_duration(target) and (source.unit, target.unit) == ("ns", "us"):
        return _divide(column, _NANOSECONDS_PER_MICROSECOND, np.dtype(np.int64), target)
    if pa.types.is_date64(source) and pa.types.is_date32(target):
        return _divide(column, _MILLISECONDS_PER_DAY, np.dtype(np.int32), target)
    return column.cast(target)


def _divide(column: pa.Array, divisor: int, dtype: np.dtype[np.signedinteger], target: pa.DataType) -> pa.Array:
    """Divide int64 values, rounding down; Arrow's own casts round towards zero, which moves times before 1970 ahead."""
    if not len(column):
        return pa.array([], target)
    values: npt.NDArray[np.int64] = np.frombuffer(column.buffers()[1], np.int64, len(column), column.offset * 8)
    quotients = np.floor_divide(values, divisor)
    limits = np.iinfo(dtype)
    outside = (quotients < limits.min) | (quotients > limits.max)
    if outside.any() and (outside & column.is_valid().to_numpy(zero_copy_only=False)).any():
        raise pa.ArrowInvalid(f"a value is out of range of {target}")
    validity = column.is_valid().buffers()[1] if column.null_count else None
    data = pa.py_buffer(np.ascontiguousarray(quotients, dtype=dtype))
    return pa.Array.from_buffers(target, len(column), [validity, data], column.null_count)
