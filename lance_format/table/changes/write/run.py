"""Writes in one step, or in two: the fragments, and the commit that makes them part of a table."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from lance_format.errors import CommitStateUnknownError, LanceError
from lance_format.table.batches.given_data import to_batches
from lance_format.table.changes.write.options import WriteOptions
from lance_format.table.changes.write.plan import plan_with
from lance_format.table.format.manifest import Manifest
from lance_format.table.fragments.progress import FragmentWriteProgress


def write_data(
    data: Any,
    uri: str,
    schema: pa.Schema | None,
    options: WriteOptions,
    progress: FragmentWriteProgress | None = None,
) -> Manifest:
    """Write data to a table, and return the manifest of the new version.

    Parameters
    ----------
    data, schema
        See `lance_format.table.batches.given_data.to_batches`.
    uri : str
    options : WriteOptions
    progress : FragmentWriteProgress, optional
        Notified of each fragment that is begun and completed.

    Raises
    ------
    LanceError
        See `lance_format.table.dataset.write_dataset.write_dataset`.
    """
    batches, data_schema = to_batches(data, schema)
    write = plan_with(uri, data_schema, options)
    fragments = write.write_fragments(batches, progress=progress)
    try:
        return write.land(fragments)
    except CommitStateUnknownError:
        raise
    except LanceError:
        write.discard(fragments)
        raise
    except BaseException:
        write.abort(fragments)
        raise
