"""Writes in one step, or in two: the fragments, and the commit that makes them part of a table."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Literal, overload

import pyarrow as pa

from lance_format.errors import CommitStateUnknownError
from lance_format.table.data_source import to_batches
from lance_format.table.fragment import FragmentMetadata
from lance_format.table.manifest import Manifest
from lance_format.table.open_table import OpenTable
from lance_format.table.transaction import Transaction
from lance_format.table.write import plan_write
from lance_format.table.write_progress import FragmentWriteProgress


def write_data(
    data: Any,
    uri: str,
    schema: pa.Schema | None = None,
    *,
    progress: FragmentWriteProgress | None = None,
    **options: Any,
) -> Manifest:
    """Write data to a table, and return what it made.

    Parameters
    ----------
    data, schema
        See `lance_format.table.data_source.to_batches`.
    uri : str
    progress : FragmentWriteProgress, optional
        Told of each fragment that is begun and completed.
    **options
        See `plan_write`.

    Raises
    ------
    LanceError
        See `lance_format.table.write_dataset.write_dataset`.
    """
    batches, data_schema = to_batches(data, schema)
    write = plan_write(uri, data_schema, **options)
    fragments = write.write_fragments(batches, progress=progress)
    try:
        return write.land(fragments)
    except CommitStateUnknownError:
        raise
    except BaseException:
        write.abort(fragments)
        raise


@overload
def write_fragments(
    data: Any,
    dataset_uri: str | os.PathLike[str] | OpenTable,
    schema: pa.Schema | None = ...,
    *,
    return_transaction: Literal[False] = ...,
    **options: Any,
) -> list[FragmentMetadata]: ...


@overload
def write_fragments(
    data: Any,
    dataset_uri: str | os.PathLike[str] | OpenTable,
    schema: pa.Schema | None = ...,
    *,
    return_transaction: Literal[True],
    **options: Any,
) -> Transaction: ...


def write_fragments(
    data: Any,
    dataset_uri: str | os.PathLike[str] | OpenTable,
    schema: pa.Schema | None = None,
    *,
    mode: str = "append",
    progress: FragmentWriteProgress | None = None,
    fragment_id: int = 0,
    return_transaction: bool = False,
    storage_options: Mapping[str, str] | None = None,
    **options: Any,
) -> list[FragmentMetadata] | Transaction:
    """Write data into fragments that are not part of a table yet; `LanceDataset.commit` makes them so.

    Parameters
    ----------
    data, schema
        See `lance_format.table.data_source.to_batches`.
    dataset_uri : str, path or LanceDataset
    mode : {"append", "create", "overwrite"}
        Whether the columns have to be the table's.
    progress : FragmentWriteProgress, optional
        Told of each fragment that is begun and completed.
    fragment_id : int
        What the fragments have for an id until the commit gives them others.
    return_transaction : bool
        Whether to return what commits them.
    storage_options : mapping, optional
    **options
        See `plan_write`.

    Returns
    -------
    list of FragmentMetadata or Transaction
        To be committed once, fragments by an operation that adds them.
    """
    batches, data_schema = to_batches(data, schema)
    if not isinstance(dataset_uri, str | os.PathLike):
        storage_options = dataset_uri._table.storage_options if storage_options is None else storage_options
        dataset_uri = dataset_uri.uri
    plan = plan_write(os.fspath(dataset_uri), data_schema, mode=mode, storage_options=storage_options, **options)
    fragments = plan.write_fragments(batches, fragment_id=fragment_id, progress=progress)
    return plan.transaction(fragments) if return_transaction else fragments
