"""Writes in one step, or in two: the fragments, and the commit that makes them part of a table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from lance_format.errors import CommitStateUnknownError, LanceError
from lance_format.progress import Report, Work, expect, is_reported, reported
from lance_format.table.batches.given_data import to_batches
from lance_format.table.changes.write.options import WriteOptions
from lance_format.table.changes.write.plan import TableWrite, plan_with
from lance_format.table.format.manifest import Manifest
from lance_format.table.fragments.progress import FragmentWriteProgress


def write_data(
    data: Any,
    uri: str,
    schema: pa.Schema | None,
    options: WriteOptions,
    progress: FragmentWriteProgress | Report = None,
) -> Manifest:
    """Write data to a table, and return the manifest of the new version.

    Parameters
    ----------
    data, schema
        See `lance_format.table.batches.given_data.to_batches`.
    uri : str
    options : WriteOptions
    progress : FragmentWriteProgress, callable or bool, optional
        See `lance_format.table.dataset.write_dataset.write_dataset`.

    Raises
    ------
    LanceError
        See `lance_format.table.dataset.write_dataset.write_dataset`.
    """
    batches, data_schema = to_batches(data, schema)
    if isinstance(progress, FragmentWriteProgress):
        return _write(batches, plan_with(uri, data_schema, options), progress)
    with reported(progress, "write", Work.WRITING):
        if isinstance(batches, list) and is_reported(Work.WRITING):
            expect(Work.WRITING, sum(batch.num_rows for batch in batches), sum(int(batch.nbytes) for batch in batches))
        return _write(batches, plan_with(uri, data_schema, options), None)


def _write(batches: Iterable[pa.RecordBatch], write: TableWrite, progress: FragmentWriteProgress | None) -> Manifest:
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
