"""Writers as Spark's planning worker pickles them, and their ends, for the planner bridge."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
from pyspark.serializers import CPickleSerializer
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, DataSourceWriter
from pyspark.sql.types import BinaryType, StructField, StructType

from connector.read.pickling import pickled

_MESSAGE = "message"
"""The column with the message of a task, as Spark calls it."""

_serializer: Any = CPickleSerializer()


def pickle_writer(writer: DataSourceArrowWriter | DataSourceStreamArrowWriter) -> tuple[str, str]:
    """Pickle the function that tasks run, and the writer, which is asked to commit or abort later; both in base64.

    Parameters
    ----------
    writer : DataSourceArrowWriter or DataSourceStreamArrowWriter
    """

    def data_source_write_func(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        message = _serializer.dumps(writer.write(batches))
        yield pa.record_batch([pa.array([message], pa.binary())], names=[_MESSAGE])

    # Spark's profiler tells functions of data sources from those of users by this.
    data_source_write_func.__module__ = "pyspark.sql.worker.write_into_data_source"
    command = data_source_write_func, StructType([StructField(_MESSAGE, BinaryType())])
    return pickled(command), pickled(writer)


def end_write(written: Mapping[str, Any], *, aborts: bool) -> None:
    """Commit or abort what tasks have written.

    Parameters
    ----------
    written : mapping of str to object
        `writer` and `messages` as tasks sent them, None for those that sent none; all pickled, in base64.
    aborts : bool

    Raises
    ------
    LanceError
        If the writer does.
    """
    writer: DataSourceWriter = _decoded(written["writer"])
    messages = [None if message is None else _decoded(message) for message in written["messages"]]
    if aborts:
        writer.abort(messages)
    else:
        writer.commit(messages)


def _decoded(text: str) -> Any:
    return _serializer.loads(base64.b64decode(text))
