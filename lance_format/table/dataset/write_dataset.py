"""Writing a table in one call."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Unpack

import pyarrow as pa

from lance_format.arguments import checked
from lance_format.object_store import absolute_uri
from lance_format.progress import Report
from lance_format.table.changes.write.options import WriteOptions
from lance_format.table.changes.write.run import write_data
from lance_format.table.changes.write.settings import WriteTuning
from lance_format.table.dataset.dataset import LanceDataset
from lance_format.table.format.table_directory import TableDirectory
from lance_format.table.fragments.progress import FragmentWriteProgress
from lance_format.table.fragments.writer import DEFAULT_MAX_BYTES_PER_FILE, DEFAULT_MAX_ROWS_PER_FILE
from lance_format.table.versions.table_version import TableVersion


@checked
def write_dataset(
    data_obj: Any,
    uri: str | os.PathLike[str] | LanceDataset,
    schema: pa.Schema | None = None,
    mode: str = "create",
    *,
    max_rows_per_file: int = DEFAULT_MAX_ROWS_PER_FILE,
    max_bytes_per_file: int = DEFAULT_MAX_BYTES_PER_FILE,
    data_storage_version: str | None = None,
    enable_stable_row_ids: bool = False,
    merge_schema: bool = False,
    allow_unportable_names: bool = False,
    storage_options: Mapping[str, str] | None = None,
    encoding: Mapping[str, Any] | None = None,
    column_encoding: Mapping[str, Mapping[str, Any]] | None = None,
    zone_index: str | None = None,
    commit_message: str | None = None,
    transaction_properties: Mapping[str, str] | None = None,
    auto_cleanup_options: Mapping[str, int] | None = None,
    progress: FragmentWriteProgress | Report = None,
    **tuning: Unpack[WriteTuning],
) -> LanceDataset:
    """Write data to a table, as one version.

    Parameters
    ----------
    data_obj : pa.Table, pa.RecordBatch, pa.RecordBatchReader, iterable of pa.RecordBatch, pandas.DataFrame, dict of \
lists or list of dicts
        A reader or an iterable is consumed as a stream.
    uri : str, path or LanceDataset
    schema : pa.Schema, optional
        Required with an iterable of batches.
    mode, max_rows_per_file, max_bytes_per_file, data_storage_version, enable_stable_row_ids, merge_schema, \
allow_unportable_names, storage_options, encoding, column_encoding, zone_index, commit_message, \
transaction_properties, auto_cleanup_options, **tuning
        See `WriteOptions`. Tuning arguments of pylance (`max_rows_per_group` …) are ignored.
    progress : FragmentWriteProgress, callable or bool, optional
        A function is called with a `Progress` after each part of a batch, whose totals are known unless the data is a
        stream. True shows a bar. A `FragmentWriteProgress` is notified of each fragment that is begun and completed.

    Returns
    -------
    LanceDataset
        The version written.

    Raises
    ------
    LanceError
        See `plan_write` and `TableWrite.commit`. The table is unchanged, and no new file is left.
    CommitStateUnknownError
        If the storage failed such that the commit may have landed. The new files are kept.
    """
    if isinstance(uri, LanceDataset):
        storage_options = uri._table.storage_options if storage_options is None else storage_options
        uri = uri.uri
    made = write_data(
        data_obj,
        os.fspath(uri),
        schema,
        WriteOptions.of(
            mode,
            max_rows_per_file=max_rows_per_file,
            max_bytes_per_file=max_bytes_per_file,
            data_storage_version=data_storage_version,
            enable_stable_row_ids=enable_stable_row_ids,
            merge_schema=merge_schema,
            allow_unportable_names=allow_unportable_names,
            storage_options=storage_options,
            encoding=encoding,
            column_encoding=column_encoding,
            zone_index=zone_index,
            commit_message=commit_message,
            transaction_properties=transaction_properties,
            auto_cleanup_options=auto_cleanup_options,
            **tuning,
        ),
        progress,
    )
    directory = TableDirectory.at(uri, storage_options)
    table = TableVersion(absolute_uri(os.fspath(uri)), directory, made, dict(storage_options or {})).moved(made)
    return LanceDataset(os.fspath(uri), table)
