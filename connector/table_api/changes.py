"""`LanceTable.readChanges`: the rows that versions inserted, updated and deleted, as a DataFrame.

This process compares the fragments of each version with those of the one before it. That reads row ids and deletion
files, but no values. Tasks read the values of the rows by their ids: old values from the earlier version, new ones from
the later one.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyroaring
from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

from connector.table_api.target import Target
from connector.types.batches import split, to_spark
from connector.types.schemas import to_exchange_schema, to_spark_schema
from lance_format import InvalidInputError, LanceDataset

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TYPE, _VERSION, _TIMESTAMP = "_change_type", "_commit_version", "_commit_timestamp"
_FIELDS = (
    StructField(_TYPE, StringType(), nullable=False),
    StructField(_VERSION, LongType(), nullable=False),
    StructField(_TIMESTAMP, TimestampType(), nullable=False),
)
_ROWS_PER_TASK = 1 << 20
_ROWS_PER_BATCH = 8192


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows of one version and of one kind of change, which one task reads.

    Parameters
    ----------
    kind : str
        The value of `_change_type`.
    version : int
        The version that has the values.
    commit_version : int
        The version that made the change.
    micros : int
        When that was, in microseconds since 1970.
    row_ids : bytes
        A serialized bitmap.
    """

    kind: str
    version: int
    commit_version: int
    micros: int
    row_ids: bytes


def read_changes(target: Target, first: int, last: int | None) -> DataFrame:
    """Return the changes that versions made; see `LanceTable.readChanges`."""
    dataset = target.open()
    last = dataset.version if last is None else last
    for name, value in (("startingVersion", first), ("endingVersion", last)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise InvalidInputError(f"{name} is {value!r}; the number of a version is needed")
    if first > last:
        raise InvalidInputError(f"startingVersion {first} is later than endingVersion {last}")
    dataset = dataset.checkout_version(last)
    schema = StructType([*to_spark_schema(dataset.read_schema("all_binary")), *_FIELDS])
    own = [name for name in schema.names[: -len(_FIELDS)] if name in (_TYPE, _VERSION, _TIMESTAMP)]
    if own:
        raise InvalidInputError(f"the table {target.path} has its own column {own[0]!r}: rename it to read changes")
    parts = [part for version in range(first, last + 1) for part in _find(dataset.checkout_version(version))]
    if not parts:
        return target.spark.createDataFrame([], schema)
    return target.spark.range(0, len(parts), 1, len(parts)).mapInArrow(_reader(dataset, parts, schema), schema)


def _find(dataset: LanceDataset) -> Iterator[_Rows]:
    """Yield the changes that a version made."""
    version = dataset.version
    changed = dataset.delta(version - 1).find_changed_rows()
    made: datetime.datetime = dataset.get_version()["timestamp"]
    micros = (made.astimezone(datetime.UTC) - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)) // datetime.timedelta(
        microseconds=1
    )
    kinds = (
        ("delete", version - 1, changed.deleted),
        ("update_preimage", version - 1, changed.updated),
        ("update_postimage", version, changed.updated),
        ("insert", version, changed.inserted),
    )
    for kind, source, row_ids in kinds:
        for start in range(0, row_ids.size, _ROWS_PER_TASK):
            bitmap = pyroaring.BitMap64(row_ids[start : start + _ROWS_PER_TASK].tolist())
            yield _Rows(kind, source, version, micros, bitmap.serialize())


def _reader(dataset: LanceDataset, parts: Sequence[_Rows], schema: StructType) -> Any:
    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from read_rows(dataset, parts[number], schema)

    return read


def read_rows(dataset: LanceDataset, rows: _Rows, schema: StructType) -> Iterator[pa.RecordBatch]:
    """Read rows of a version, with the columns of a change, in a worker.

    Parameters
    ----------
    dataset : LanceDataset
        Any version of the table.
    rows : _Rows
    schema : StructType
        Columns that the version lacks are null.
    """
    dataset = dataset.checkout_version(rows.version)
    exchanged = to_exchange_schema(schema)
    known = [name for name in schema.names if name in dataset.schema.names]
    row_ids = np.array(pyroaring.BitMap64.deserialize(rows.row_ids).to_array(), np.uint64)
    for start in range(0, row_ids.size, _ROWS_PER_BATCH):
        table = dataset.take_rows(row_ids[start : start + _ROWS_PER_BATCH], known, blob_handling="all_binary")
        columns: dict[str, Any] = {name: table[name].combine_chunks() for name in known}
        columns[_TYPE] = pa.repeat(rows.kind, table.num_rows)
        columns[_VERSION] = pa.repeat(rows.commit_version, table.num_rows)
        columns[_TIMESTAMP] = pa.repeat(rows.micros, table.num_rows).cast(exchanged.field(_TIMESTAMP).type)
        values = [
            columns[field.name] if field.name in columns else pa.nulls(table.num_rows, field.type)
            for field in exchanged
        ]
        yield from split(to_spark(pa.RecordBatch.from_arrays(values, names=schema.names), exchanged), _ROWS_PER_BATCH)
