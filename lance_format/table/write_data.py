"""Writes in one step, or in two: the fragments, and the commit that makes them part of a table."""

from __future__ import annotations

import os
from typing import Any

import pyarrow as pa

from lance_format.errors import CommitStateUnknownError
from lance_format.table.data_source import to_batches
from lance_format.table.fragment import FragmentMetadata
from lance_format.table.manifest import Manifest
from lance_format.table.write import plan_write


def write_data(data: Any, uri: str, schema: pa.Schema | None = None, **options: Any) -> Manifest:
    """Write data to a table, and return what it made.

    Parameters
    ----------
    data, schema
        See `lance_format.table.data_source.to_batches`.
    uri : str
    **options
        See `plan_write`.

    Raises
    ------
    LanceError
        See `lance_format.table.write_dataset.write_dataset`.
    """
    batches, data_schema = to_batches(data, schema)
    write = plan_write(uri, data_schema, **options)
    fragments = write.write_fragments(batches)
    try:
        return write.land(fragments)
    except CommitStateUnknownError:
        raise
    except BaseException:
        write.abort(fragments)
        raise


def write_fragments(
    data: Any,
    dataset_uri: str | os.PathLike[str],
    schema: pa.Schema | None = None,
    *,
    mode: str = "append",
    **options: Any,
) -> list[FragmentMetadata]:
    """Write data into fragments that are not part of a table yet; `LanceDataset.commit` makes them so.

    Parameters
    ----------
    data, schema
        See `lance_format.table.data_source.to_batches`.
    dataset_uri : str or path
    mode : {"append", "create", "overwrite"}
        Whether the columns have to be the table's.
    **options
        See `plan_write`.

    Returns
    -------
    list of FragmentMetadata
        To be committed once, by an operation that adds them.
    """
    batches, data_schema = to_batches(data, schema)
    return plan_write(os.fspath(dataset_uri), data_schema, mode=mode, **options).write_fragments(batches)
