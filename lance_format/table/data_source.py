"""Data that users give, in whichever form, as a stream of record batches."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from lance_format.errors import InvalidInputError


def to_batches(data: Any, schema: pa.Schema | None) -> tuple[Iterable[pa.RecordBatch], pa.Schema]:
    """Return data as a stream of batches, and their schema.

    Parameters
    ----------
    data : pa.Table, pa.RecordBatch, pa.RecordBatchReader, iterable of pa.RecordBatch, pandas.DataFrame, dict of \
lists, list of dicts, or anything with `schema` and `to_batches`, such as a dataset
    schema : pa.Schema, optional
        Needed with an iterable of batches.

    Raises
    ------
    InvalidInputError
        If it is nothing of these.
    """
    if hasattr(data, "to_parquet") and hasattr(data, "columns"):  # A pandas DataFrame, which is not imported for this.
        # What pandas says about itself in the metadata concerns its index, which is not stored.
        data = pa.Table.from_pandas(data, schema=schema, preserve_index=False).replace_schema_metadata(
            None if schema is None else schema.metadata
        )
    elif isinstance(data, dict):
        data = pa.Table.from_pydict(data, schema=schema)
    elif isinstance(data, list) and data and all(isinstance(row, dict) for row in data):
        data = pa.Table.from_pylist(data, schema=schema)
    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    if isinstance(data, pa.Table):
        if schema is not None and not data.schema.equals(schema):
            data = data.cast(schema)
        return data.to_batches(), data.schema
    if isinstance(data, pa.RecordBatchReader):
        return data, data.schema
    if isinstance(getattr(data, "schema", None), pa.Schema) and callable(getattr(data, "to_batches", None)):
        return data.to_batches(), data.schema  # A dataset, ours or pyarrow's.
    if not isinstance(data, Iterable) or isinstance(data, str | bytes):
        raise InvalidInputError(f"data of type {type(data).__name__} cannot be written; give an Arrow table or batches")
    if schema is None:
        raise InvalidInputError("an iterable of batches does not tell its schema; give it as schema=")
    return _checked(data), schema


def _checked(batches: Iterable[Any]) -> Iterable[pa.RecordBatch]:
    for batch in batches:
        if isinstance(batch, pa.Table):
            yield from batch.to_batches()
        elif isinstance(batch, pa.RecordBatch):
            yield batch
        else:
            raise InvalidInputError(f"an iterable of batches has an item of type {type(batch).__name__}")
