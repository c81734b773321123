"""Writing a table in one call."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from lance_format.errors import CommitStateUnknownError, InvalidInputError
from lance_format.table.dataset import LanceDataset, dataset
from lance_format.table.fragment_writer import DEFAULT_MAX_BYTES_PER_FILE, DEFAULT_MAX_ROWS_PER_FILE
from lance_format.table.write import plan_write


def write_dataset(
    data_obj: Any,
    uri: str | os.PathLike[str],
    schema: pa.Schema | None = None,
    mode: str = "create",
    *,
    max_rows_per_file: int = DEFAULT_MAX_ROWS_PER_FILE,
    max_bytes_per_file: int = DEFAULT_MAX_BYTES_PER_FILE,
    data_storage_version: str | None = None,
    enable_stable_row_ids: bool = False,
    storage_options: Mapping[str, str] | None = None,
    encoding: Mapping[str, Any] | None = None,
    column_encoding: Mapping[str, Mapping[str, Any]] | None = None,
) -> LanceDataset:
    """Write data to a table, as one version.

    Parameters
    ----------
    data_obj : pa.Table, pa.RecordBatch, pa.RecordBatchReader, iterable of pa.RecordBatch, pandas.DataFrame, dict of \
lists or list of dicts
        A reader or an iterable is consumed as a stream.
    uri : str or path
    schema : pa.Schema, optional
        Needed with an iterable of batches.
    mode, max_rows_per_file, max_bytes_per_file, data_storage_version, enable_stable_row_ids, storage_options
        See `plan_write`.
    encoding, column_encoding
        See `plan_write`.

    Returns
    -------
    LanceDataset
        The version written.

    Raises
    ------
    LanceError
        See `plan_write` and `TableWrite.commit`. The table is then as it was before, and no new file is left.
    CommitStateUnknownError
        If the storage does not tell whether the write succeeded. Its files are left.
    """
    batches, data_schema = _to_batches(data_obj, schema)
    write = plan_write(
        os.fspath(uri),
        data_schema,
        mode=mode,
        data_storage_version=data_storage_version,
        max_rows_per_file=max_rows_per_file,
        max_bytes_per_file=max_bytes_per_file,
        enable_stable_row_ids=enable_stable_row_ids,
        storage_options=storage_options,
        encoding=encoding,
        column_encoding=column_encoding,
    )
    fragments = write.write_fragments(batches)
    try:
        version = write.commit(fragments)
    except CommitStateUnknownError:
        raise
    except BaseException:
        write.abort(fragments)
        raise
    return dataset(uri, version, storage_options=storage_options)


def _to_batches(data: Any, schema: pa.Schema | None) -> tuple[Iterable[pa.RecordBatch], pa.Schema]:
    """Return data as a stream of batches, and their schema."""
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
