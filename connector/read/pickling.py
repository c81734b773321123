"""Readers and partitions as Spark's planning worker pickles them, in base64, for the planner bridge."""

from __future__ import annotations

import base64
import io
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StructType

_ARROW_BATCH_ROWS = 10_000
"""Maximum number of rows per batch for readers that yield rows; this source's readers yield batches."""


class _NamedSource(DataSource):
    """The data source as tasks need it: for Spark's messages. They do not import what plans and writes."""

    @classmethod
    def name(cls) -> str:
        return "lance"


def pickle_reader(reader: DataSourceReader | DataSourceStreamReader, schema: StructType) -> tuple[str, list[str]]:
    """Pickle the function that tasks run, and the partitions; a stream has none yet.

    Parameters
    ----------
    reader : DataSourceReader or DataSourceStreamReader
    schema : StructType
        The columns that it reads.
    """
    from pyspark.sql.worker.plan_data_source_read import write_read_func_and_partitions

    out: Any = io.BytesIO()
    write_read_func_and_partitions(
        out,
        reader=reader,
        data_source=_NamedSource({}),
        schema=schema,
        max_arrow_batch_size=_ARROW_BATCH_ROWS,
        binary_as_bytes=True,
    )
    out.seek(0)
    function = _read_encoded(out)
    return function, [_read_encoded(out) for _ in range(_read_int(out))]


def pickled(value: object) -> str:
    """Pickle a value as Spark does, in base64."""
    from pyspark.serializers import CPickleSerializer

    serializer: Any = CPickleSerializer()
    return base64.b64encode(serializer.dumps(value)).decode()


def _read_int(stream: io.BytesIO) -> int:
    return int.from_bytes(stream.read(4), "big")


def _read_encoded(stream: io.BytesIO) -> str:
    """Read length-prefixed bytes."""
    return base64.b64encode(stream.read(_read_int(stream))).decode()
