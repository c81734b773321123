"""A write in one step: plan, write fragments, commit."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from lance_format.errors import CommitStateUnknownError
from lance_format.table.data_source import to_batches
from lance_format.table.write import plan_write


def write_data(data: Any, uri: str, schema: pa.Schema | None = None, **options: Any) -> int:
    """Write data to a table, and return the version that it made.

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
        return write.commit(fragments)
    except CommitStateUnknownError:
        raise
    except BaseException:
        write.abort(fragments)
        raise
