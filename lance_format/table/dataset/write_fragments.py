"""Writes in two steps: the fragments first, and the commit that makes them part of a table later."""

from __future__ import annotations

import os
from typing import Any, Literal, Unpack, overload

import pyarrow as pa

from lance_format.arguments import checked
from lance_format.table.batches.given_data import to_batches
from lance_format.table.changes.write.options import WriteKeywords
from lance_format.table.changes.write.plan import plan_write
from lance_format.table.format.fragment import FragmentMetadata
from lance_format.table.fragments.progress import FragmentWriteProgress
from lance_format.table.transaction.transaction import Transaction
from lance_format.table.versions.open_table import OpenTable


@overload
def write_fragments(
    data: Any,
    dataset_uri: str | os.PathLike[str] | OpenTable,
    schema: pa.Schema | None = ...,
    *,
    mode: str = ...,
    progress: FragmentWriteProgress | None = ...,
    fragment_id: int = ...,
    return_transaction: Literal[False] = ...,
    **options: Unpack[WriteKeywords],
) -> list[FragmentMetadata]: ...


@overload
def write_fragments(
    data: Any,
    dataset_uri: str | os.PathLike[str] | OpenTable,
    schema: pa.Schema | None = ...,
    *,
    mode: str = ...,
    progress: FragmentWriteProgress | None = ...,
    fragment_id: int = ...,
    return_transaction: Literal[True],
    **options: Unpack[WriteKeywords],
) -> Transaction: ...


@checked
def write_fragments(
    data: Any,
    dataset_uri: str | os.PathLike[str] | OpenTable,
    schema: pa.Schema | None = None,
    *,
    mode: str = "append",
    progress: FragmentWriteProgress | None = None,
    fragment_id: int = 0,
    return_transaction: bool = False,
    **options: Unpack[WriteKeywords],
) -> list[FragmentMetadata] | Transaction:
    """Write data into fragments without committing them; see `LanceDataset.commit`.

    Parameters
    ----------
    data, schema
        See `lance_format.table.batches.given_data.to_batches`.
    dataset_uri : str, path or LanceDataset
    mode : {"append", "create", "overwrite"}
        With "append" the columns must be those of the table.
    progress : FragmentWriteProgress, optional
        Notified of each fragment that is begun and completed.
    fragment_id : int
        Id of the fragments until the commit assigns others.
    return_transaction : bool
        Whether to return a transaction that appends, creates or overwrites.
    **options
        See `plan_write`. The storage options default to those of the dataset.

    Returns
    -------
    list of FragmentMetadata or Transaction
        For one commit; fragments by an operation that adds them.
    """
    batches, data_schema = to_batches(data, schema)
    if not isinstance(dataset_uri, str | os.PathLike):
        if options.get("storage_options") is None:
            options["storage_options"] = dataset_uri._table.storage_options
        dataset_uri = dataset_uri.uri
    plan = plan_write(os.fspath(dataset_uri), data_schema, mode=mode, **options)
    fragments = plan.write_fragments(batches, fragment_id=fragment_id, progress=progress)
    return plan.transaction(fragments) if return_transaction else fragments
