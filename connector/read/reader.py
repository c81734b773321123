"""The read side: fixes a version on the driver, then reads some ranges of rows per task.

Spark refuses a reader that has `pushFilters` while `spark.sql.python.filterPushdown.enabled` is off, which is the
default, and the data source cannot see that setting. The worker that plans the read reveals it: Spark runs
`pyspark.sql.worker.data_source_pushdown_filters` only when the setting is on, and another module otherwise.
`create_reader` chooses one of two classes by that.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition
from pyspark.sql.types import StructType

from connector.options.options import LanceOptions
from connector.options.snapshot import commit_of, open_at
from connector.read.partition import ScanPartition
from connector.read.pushed import Pushed
from connector.read.task_errors import told_briefly
from connector.types.batches import split, to_spark
from connector.types.compatibility import check_readable
from connector.types.schemas import to_exchange_schema
from lance_format import CommitConflictError, LanceDataset, LanceScanner, ScanTask
from lance_format.expressions import conjunction, parse
from lance_format.lazy_properties import cached_property

_PUSHDOWN_WORKER = "pyspark.sql.worker.data_source_pushdown_filters"
_WORKER_LOGS = "PYSPARK_SPARK_SESSION_UUID"
"""Spark sets it in workers if it keeps their log, as `spark.sql.pyspark.worker.logging.enabled` says."""
_DEFAULT_BATCH_ROWS = 65_536
_BATCH_BYTES = 64 * 1024 * 1024
"""Approximate maximum size of a batch, which Python and Spark both hold: rows can be documents and pictures."""
_SAMPLED_TASKS = 4
_SAMPLED_ROWS = 16_384
_DEFAULT_PARALLELISM = 16
"""Number of tasks of a scan that does not know how many can run concurrently."""


def create_reader(options: LanceOptions, schema: StructType, pushed: Pushed) -> LanceReader:
    """Return the reader for the setting of filter pushdown; see `LanceReader` for the parameters."""
    reader = PushdownLanceReader if _plans_with_pushdown() else LanceReader
    return reader(options, schema, pushed)


class LanceReader(DataSourceReader):
    """Reader of the columns of `schema` from one version of a table.

    The version is fixed here, so that every task of a query sees the same table, even if other writers commit.

    Parameters
    ----------
    options : LanceOptions
        `path` and `version` choose the version to read; see `connector.options.snapshot`.
    schema : StructType
        The columns that Spark expects: from `LanceDataSource.schema`, given by the user, or pruned by the planner
        bridge.
    pushed : Pushed, optional

    Raises
    ------
    DatasetNotFoundError, VersionNotFoundError
        If the table or the version does not exist.
    SchemaMismatchError
        If the table lacks these columns with these types.
    InvalidInputError
        If the option `filter` is invalid.
    """

    def __init__(self, options: LanceOptions, schema: StructType, pushed: Pushed | None = None) -> None:
        pushed = pushed or Pushed()
        dataset = open_at(options, options.path, options.version)
        self._options = options
        check_readable(self._readable(dataset), schema, options.path)
        self._path = options.path
        self._version = dataset.version
        self._dataset = dataset
        self._schema = schema
        self._batch_rows = options.batch_size or _DEFAULT_BATCH_ROWS
        self._blob_handling = options.blob_handling
        asked = None if options.filter is None else parse(options.filter)
        terms = tuple(term for term in (asked, pushed.predicate) if term is not None)
        self._filter = conjunction(terms) if terms else None
        self._limit = None if pushed.limit is None else max(pushed.limit - pushed.offset, 0)
        self._offset = pushed.offset
        self._order = pushed.order
        self._sizes = {"min_tasks": pushed.parallelism or _DEFAULT_PARALLELISM}
        if options.split_size_bytes is not None:
            self._sizes["split_size_bytes"] = options.split_size_bytes
        self._planned = self._scanner(dataset)  # Raises the errors of a filter here.

    def _readable(self, dataset: LanceDataset) -> pa.Schema:
        """Return the columns that can be read."""
        return dataset.read_schema(self._options.blob_handling)

    @told_briefly
    def partitions(self) -> Sequence[InputPartition]:
        """Divide the scan into tasks of about the same size. Without a task Spark makes an empty partition.

        If a limit suffices and no filter may drop rows, the tasks read no more rows than the limit.
        """
        return [ScanPartition(task) for task in self.tasks]

    @property
    def _columns(self) -> pa.Schema:
        return to_exchange_schema(self._schema)

    @cached_property
    def _dataset(self) -> LanceDataset:
        """The version that is read."""
        return open_at(self._options, self._path, self._version)

    @cached_property
    def _planned(self) -> LanceScanner:
        return self._scanner(self._dataset)

    @property
    def commit(self) -> str | None:
        """Digest that tells the version that is read from all others; None if nothing does."""
        return commit_of(self._dataset)

    @property
    def reads_blobs(self) -> bool:
        """True if values are read that are stored apart, of sizes that no plan knows."""
        apart = self._dataset.read_schema("blobs_descriptions")
        together = self._dataset.read_schema(self._blob_handling)
        return any(
            apart.field(name).type != together.field(name).type for name in self._columns.names if name in apart.names
        )

    @cached_property
    def tasks(self) -> list[ScanTask]:
        """The tasks of the scan."""
        return self._planned.plan_tasks(**self._sizes)

    def sample(self) -> tuple[int, int]:
        """Return how many rows of a sample were read, and how many of these pass the filter.

        The sample is from the beginnings of a few tasks, so statistics have excluded what they can.
        """
        step = max(len(self.tasks) // _SAMPLED_TASKS, 1)
        chosen = self.tasks[step // 2 :: step]
        ranges = []
        for task in chosen:
            left = _SAMPLED_ROWS // len(chosen)
            for fragment_id, start, stop in task.ranges:
                taken = min(stop - start, left)
                ranges += [(fragment_id, start, start + taken)] if taken else []
                left -= taken
        sample = ScanTask(tuple(ranges))
        scanner = self._dataset.scanner([], self._filter, blob_handling=self._blob_handling)
        return sample.num_rows, sum(batch.num_rows for batch in scanner.read_task(sample))

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_dataset", "_planned", "tasks")}

    @told_briefly
    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        """Read one task, in batches of exactly the schema that Spark expects.

        Raises
        ------
        CommitConflictError
            If the table was replaced while it was read.
        """
        if not isinstance(partition, ScanPartition):
            return
        if _WORKER_LOGS in os.environ:
            logging.getLogger("lance_format.scan").setLevel(logging.DEBUG)
        schema = to_exchange_schema(self._schema)
        dataset = self._dataset
        for fragment_id in partition.task.fragment_ids:
            if dataset.get_fragment(fragment_id) is None:
                raise CommitConflictError(
                    f"version {self._version} of {self._path} has no fragment {fragment_id} any more: "
                    "the table was replaced while it was read; run the query again"
                )
        for batch in self._read_task(self._planned, partition.task):
            for part in split(batch, self._batch_rows):
                yield self._exchanged(part, schema)

    def _read_task(self, scanner: LanceScanner, task: ScanTask) -> Iterator[pa.RecordBatch]:
        return scanner.read_task(task)

    def _exchanged(self, batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
        """Return rows that were read in the types that Spark expects."""
        return to_spark(batch, schema)

    def _scanner(self, dataset: LanceDataset) -> LanceScanner:
        return dataset.scanner(
            self._columns,
            self._filter,
            self._limit,
            self._offset,
            batch_size=self._batch_rows,
            batch_size_bytes=_BATCH_BYTES,
            blob_handling=self._blob_handling,
            order_by=self._order,
            use_scalar_index=self._options.use_scalar_index,
        )


class PushdownLanceReader(LanceReader):
    """Reader for sessions that push filters. Spark still evaluates all of them.

    Up to version 4.3, Spark keeps one reader for all queries of a DataFrame or view, the one that was planned last, and
    runs it for every one of them, ignoring their filters. So filters must not change what `read` yields.
    """

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Return every filter."""
        return filters


def _plans_with_pushdown() -> bool:
    main = getattr(sys.modules.get("__main__"), "__spec__", None)
    return _PUSHDOWN_WORKER in sys.modules or getattr(main, "name", None) == _PUSHDOWN_WORKER
