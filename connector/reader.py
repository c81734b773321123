"""The read side: fixes a version on the driver, then reads one fragment a task.

Spark refuses a reader that has `pushFilters` while `spark.sql.python.filterPushdown.enabled` is off, which is the
default, and does not tell the data source whether it is on. What does tell is the worker that plans the read: Spark
runs `pyspark.sql.worker.data_source_pushdown_filters` only when the setting is on, and another module otherwise.
`create_reader` looks at that and picks one of two classes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition
from pyspark.sql.types import StructType

import lance_format
from connector.batches import split, to_spark
from connector.compatibility import check_readable
from connector.options import LanceOptions
from connector.partition import FragmentPartition
from connector.types import to_exchange_schema
from lance_format import CommitConflictError

_PUSHDOWN_WORKER = "pyspark.sql.worker.data_source_pushdown_filters"
_DEFAULT_BATCH_ROWS = 65_536


def create_reader(options: LanceOptions, schema: StructType) -> LanceReader:
    """Return the reader that fits the worker which is planning the query."""
    return PushdownLanceReader(options, schema) if _plans_with_pushdown() else LanceReader(options, schema)


class LanceReader(DataSourceReader):
    """Reads the columns of `schema` from one version of a table.

    The version is fixed here, so that every task of a query sees the same table, whatever is committed meanwhile.

    Parameters
    ----------
    options : LanceOptions
        Their `path` and `version` say what is read; see `connector.snapshot`.
    schema : StructType
        What Spark believes the table to have: from `LanceDataSource.schema`, or given by the user.

    Raises
    ------
    DatasetNotFoundError, VersionNotFoundError
        If there is nothing to read.
    SchemaMismatchError
        If the table does not have these columns with these types, any more or at all.
    """

    def __init__(self, options: LanceOptions, schema: StructType) -> None:
        dataset = lance_format.dataset(options.path, options.version)
        stored = dataset.scanner(blob_handling=options.blob_handling).projected_schema
        check_readable(stored, schema, options.path)
        self._path = options.path
        self._version = dataset.version
        self._schema = schema
        self._batch_rows = options.batch_size or _DEFAULT_BATCH_ROWS
        self._blob_handling = options.blob_handling

    def partitions(self) -> Sequence[InputPartition]:
        """List the fragments that have rows left; if there is none, Spark makes an empty partition of its own."""
        fragments = lance_format.dataset(self._path, version=self._version).get_fragments()
        return [FragmentPartition(fragment.fragment_id) for fragment in fragments if fragment.metadata.num_rows != 0]

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        """Read one fragment, in batches of exactly the schema that Spark expects."""
        if not isinstance(partition, FragmentPartition):
            return
        schema = to_exchange_schema(self._schema)
        dataset = lance_format.dataset(self._path, version=self._version)
        fragment = dataset.get_fragment(partition.fragment_id)
        if fragment is None:
            raise CommitConflictError(
                f"version {self._version} of {self._path} has no fragment {partition.fragment_id} any more: "
                "the table was replaced while it was read; run the query again"
            )
        batches = fragment.to_batches(
            columns=schema.names, batch_size=self._batch_rows, blob_handling=self._blob_handling
        )
        for batch in batches:
            for part in split(batch, self._batch_rows):
                yield to_spark(part, schema)


class PushdownLanceReader(LanceReader):
    """The same, for sessions that push filters. All of them are still evaluated by Spark.

    Up to version 4.3, Spark keeps one reader for all queries of a DataFrame or view, the one that was planned last, and
    runs it for every one of them, whatever filters it was given. So filters must not change what `read` yields.
    """

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Hand every filter back."""
        return filters


def _plans_with_pushdown() -> bool:
    main = getattr(sys.modules.get("__main__"), "__spec__", None)
    return _PUSHDOWN_WORKER in sys.modules or getattr(main, "name", None) == _PUSHDOWN_WORKER
