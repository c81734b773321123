"""Rows of small reads, which the driver's Python reads itself: a task in Python would take longer to start.

They reach Spark's tasks as streams of Arrow's, which the planner bridge puts into the tasks instead of a reader.
"""

from __future__ import annotations

import io
from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from connector.read.reader import LanceReader
from connector.types.schemas import to_exchange_schema

_MOST_BYTES = 512 * 1024
"""The most bytes of all rows, which Spark sends to executors with their tasks: as `DriverRows.MOST_RETURNED_BYTES`."""


def read_rows(reader: LanceReader, schema: StructType) -> list[bytes] | None:
    """Read the rows of all tasks.

    Parameters
    ----------
    reader : LanceReader
    schema : StructType
        The columns that it reads.

    Returns
    -------
    list of bytes or None
        For each task a stream of Arrow's; None if they have more than half a MiB, or might have far more.
    """
    if reader.reads_blobs:
        return None
    # Spark makes an empty partition if there are none.
    partitions: Sequence[InputPartition | None] = reader.partitions() or [None]
    left = _MOST_BYTES
    streams = []
    for partition in partitions:
        out = io.BytesIO()
        with pa.ipc.new_stream(out, to_exchange_schema(schema)) as stream:
            for batch in reader.read(partition):
                left -= batch.nbytes
                if left < 0:
                    return None
                stream.write_batch(batch)
        streams.append(out.getvalue())
    return streams
