"""Writes in one step, or in two: the fragments, and the commit that makes them part of a table."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from lance_format.errors import CommitStateUnknownError
from lance_format.table.batches.given_data import to_batches
from lance_format.table.changes.write.plan import plan_write
from lance_format.table.format.manifest import Manifest
from lance_format.table.fragments.progress import FragmentWriteProgress


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
        See `lance_format.table.batches.given_data.to_batches`.
    uri : str
    progress : FragmentWriteProgress, optional
        Told of each fragment that is begun and completed.
    **options
        See `plan_write`.

    Raises
    ------
    LanceError
        See `lance_format.table.dataset.write_dataset.write_dataset`.
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
