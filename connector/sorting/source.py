"""The private data source of a sorted rewrite: reads the rows of fragments, and writes their replacements.

Spark sees the columns as `c0`, `c1` …, the address of the row as `address`, and its z-value as `key` if the order is a
z-order. Names of the table therefore do not matter. The option `request` is a `Request` as JSON.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceWriter,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.types import LongType, StructField, StructType

import lance_format
from connector.dml.delta_message import DeltaMessage
from connector.jobs.storage import read_storage
from connector.read.partition import ScanPartition
from connector.sorting.zorder import ZOrder
from connector.types.batches import split, to_spark, to_stored
from connector.types.schemas import to_exchange_schema, to_spark_schema
from connector.write.writer import delete_files
from lance_format import CommitError, LanceDataset, LanceScanner

NAME = "lance_sorted_rewrite"
ADDRESS = "address"
KEY = "key"
_ROW_ADDRESS = "_rowaddr"
_BATCH_ROWS = 16_384
_MIN_TASKS = 16


@dataclass(frozen=True, slots=True)
class Request:
    """A sorted rewrite.

    Parameters
    ----------
    uri : str
    version : int
    uuid : str
        Of the plan.
    fragment_ids : tuple of int
    max_bytes_per_file : int
    zorder : tuple of str
        The columns of the z-order, if the order is one.
    storage : mapping of str to str
        Options of the storage. They may hold secrets.
    """

    uri: str
    version: int
    uuid: str
    fragment_ids: tuple[int, ...]
    max_bytes_per_file: int
    zorder: tuple[str, ...] = ()
    storage: Mapping[str, str] = field(default_factory=dict, repr=False)

    def to_json(self) -> str:
        """Return it as text, without the options of the storage."""
        return json.dumps({name: value for name, value in dataclasses.asdict(self).items() if name != "storage"})

    @classmethod
    def from_json(cls, text: str, storage: Mapping[str, str]) -> Request:
        """Rebuild what `to_json` returned."""
        found = json.loads(text)
        lists = {name: tuple(found[name]) for name in ("fragment_ids", "zorder")}
        return cls(**{**found, **lists}, storage=storage)

    def open(self) -> LanceDataset:
        """Open the version that is rewritten."""
        return lance_format.dataset(self.uri, self.version, storage_options=self.storage)

    def plan(self, dataset: LanceDataset) -> lance_format.RowRewrite:
        """Return the plan, the same one in each process."""
        return dataset.optimize.plan_row_rewrite(
            self.fragment_ids, max_bytes_per_file=self.max_bytes_per_file, uuid=self.uuid
        )


class SortedRewriteSource(DataSource):
    """Data source of one rewrite."""

    @classmethod
    def name(cls) -> str:
        """Return the name that `format` takes."""
        return NAME

    def schema(self) -> StructType:
        """Return the columns of the table by position, the address, and the z-value."""
        request = self._request
        columns = to_spark_schema(_stored(request.open()))
        named = [StructField(f"c{place}", field.dataType, field.nullable) for place, field in enumerate(columns)]
        keys = [StructField(KEY, LongType())] if request.zorder else []
        return StructType([*named, StructField(ADDRESS, LongType()), *keys])

    def reader(self, schema: StructType) -> DataSourceReader:
        """Plan to read the rows."""
        return SortedRewriteReader(self._request, schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:  # noqa: ARG002
        """Plan to write the rows."""
        return SortedRewriteWriter(self._request)

    @property
    def _request(self) -> Request:
        return Request.from_json(self.options["request"], read_storage(self.options))


class SortedRewriteReader(DataSourceReader):
    """Reader of the live rows of fragments, with their addresses and z-values.

    Parameters
    ----------
    request : Request
    schema : StructType
    """

    def __init__(self, request: Request, schema: StructType) -> None:
        self._request = request
        self._schema = schema
        dataset = request.open()
        self._zorder = ZOrder.sampled(dataset, request.zorder, request.fragment_ids) if request.zorder else None

    def partitions(self) -> Sequence[InputPartition]:
        """Divide the rows into tasks."""
        return [ScanPartition(task) for task in self._scanner().plan_tasks(min_tasks=_MIN_TASKS)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read one task."""
        if not isinstance(partition, ScanPartition):
            return
        schema = to_exchange_schema(self._schema)
        for batch in self._scanner().read_task(partition.task):
            for part in split(batch, _BATCH_ROWS):
                columns = [f"c{place}" for place in range(part.num_columns - 1)]
                named = part.rename_columns([*columns, ADDRESS])
                if self._zorder is not None:
                    named = named.append_column(KEY, pa.array(self._zorder.keys(part)))
                yield to_spark(named, schema)

    def _scanner(self) -> LanceScanner:
        dataset = self._request.open()
        chosen = set(self._request.fragment_ids)
        return dataset.scanner(
            pa.schema([*_stored(dataset), pa.field(_ROW_ADDRESS, pa.uint64())]),
            fragments=[fragment for fragment in dataset.get_fragments() if fragment.fragment_id in chosen],
            batch_size=_BATCH_ROWS,
            blob_handling="all_binary",
        )


class SortedRewriteWriter(DataSourceArrowWriter):
    """Writer of the new fragments; the commit replaces the old ones.

    Parameters
    ----------
    request : Request
    """

    def __init__(self, request: Request) -> None:
        self._request = request

    def write(self, iterator: Iterator[pa.RecordBatch]) -> DeltaMessage:
        """Write one partition; after a failure its files are deleted.

        Raises
        ------
        CommitError
            Outside of a Spark task.
        """
        context = TaskContext.get()
        if context is None:
            raise CommitError("a partition can be written by a Spark task only")
        dataset = self._request.open()
        schema = _stored(dataset)
        names = schema.names
        with self._request.plan(dataset).open_writer(dataset, context.partitionId()) as writer:
            for batch in iterator:
                addresses = batch.column(len(names)).to_numpy(zero_copy_only=False).astype(np.uint64)
                rows = pa.RecordBatch.from_arrays(batch.columns[: len(names)], names=names)
                writer.write(addresses, to_stored(rows, schema))
            return DeltaMessage(writer.finish().to_bytes())

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Replace the fragments in one version.

        Raises
        ------
        RetryableCommitConflictError
            If another writer changed the same fragments.
        CommitError
            If the messages are not one per partition.
        """
        dataset = self._request.open()
        plan = self._request.plan(dataset)
        plan.commit(dataset, [_parse(message) for message in messages])
        plan.discard_lost(dataset)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Delete all files of this rewrite, unless a version of the table may refer to them."""
        dataset = self._request.open()
        plan = self._request.plan(dataset)
        delete_files(lambda: plan.abort(dataset), sum(message is None for message in messages))


def _parse(message: WriterCommitMessage | None) -> lance_format.RowDeltaChanges:
    if not isinstance(message, DeltaMessage):
        raise CommitError("a write task sent no commit message; nothing was committed")
    return message.parse()


def _stored(dataset: LanceDataset) -> pa.Schema:
    return dataset.read_schema("all_binary")
