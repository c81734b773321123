"""The data source of a sorted rewrite: reads the rows of fragments, and writes their replacements.

Spark sees the columns as `c0`, `c1` …, the address of the row as `address`, and its z-value as `key` if the order is a
z-order. Names of the table therefore do not matter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceWriter, InputPartition
from pyspark.sql.types import LongType, StructField, StructType

from connector.jobs.requests import Request, RequestWriter
from connector.read.partition import ScanPartition
from connector.sorting.zorder import ZOrder
from connector.types.batches import split, to_spark, to_stored
from connector.types.schemas import to_exchange_schema, to_spark_schema
from lance_format import LanceDataset, LanceScanner, RowDeltaChanges, RowRewrite
from lance_format.lazy_dataclasses import dataclass

ADDRESS = "address"
KEY = "key"
_ROW_ADDRESS = "_rowaddr"
_BATCH_ROWS = 16_384
_MIN_TASKS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class SortRequest(Request):
    """A sorted rewrite.

    Parameters
    ----------
    fragment_ids : tuple of int
    max_bytes_per_file : int, optional
        By default that of the plan.
    zorder : tuple of str
        The columns of the z-order, if the order is one.
    """

    fragment_ids: tuple[int, ...]
    max_bytes_per_file: int | None = None
    zorder: tuple[str, ...] = ()

    def plan(self, dataset: LanceDataset) -> RowRewrite:
        """Return the plan, the same one in each process."""
        limits = {} if self.max_bytes_per_file is None else {"max_bytes_per_file": self.max_bytes_per_file}
        return dataset.optimize.plan_row_rewrite(self.fragment_ids, uuid=self.uuid, **limits)


class SortedRewriteSource(DataSource):
    """Data source of one rewrite."""

    @classmethod
    def name(cls) -> str:
        """See `connector.source.private_sources`."""
        return "sorted rewrite"

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
    def _request(self) -> SortRequest:
        return SortRequest.of(self.options)


class SortedRewriteReader(DataSourceReader):
    """Reader of the live rows of fragments, with their addresses and z-values.

    Parameters
    ----------
    request : SortRequest
    schema : StructType
    """

    def __init__(self, request: SortRequest, schema: StructType) -> None:
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


class SortedRewriteWriter(RequestWriter):
    """Writer of the new fragments; the commit replaces the old ones.

    Parameters
    ----------
    request : SortRequest
    """

    def __init__(self, request: SortRequest) -> None:
        super().__init__(request, RowDeltaChanges)

    def _fill(self, writer: Any, dataset: LanceDataset, batches: Iterator[pa.RecordBatch]) -> None:
        schema = _stored(dataset)
        names = schema.names
        for batch in batches:
            addresses = batch.column(len(names)).to_numpy(zero_copy_only=False).astype(np.uint64)
            rows = pa.RecordBatch.from_arrays(batch.columns[: len(names)], names=names)
            writer.write(addresses, to_stored(rows, schema))


def _stored(dataset: LanceDataset) -> pa.Schema:
    return dataset.read_schema("all_binary")
