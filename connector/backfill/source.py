"""The private data source that writes new columns: rows of `address`, `c0`, `c1` …, sorted by the address."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, DataSourceWriter, WriterCommitMessage
from pyspark.sql.types import StructType

import lance_format
from connector.jobs.storage import read_storage
from connector.types.batches import to_stored
from connector.types.schemas import to_stored_schema
from connector.write.writer import delete_files
from lance_format import BackfilledFragments, CommitError, InvalidInputError, LanceDataset

NAME = "lance_column_backfill"


@dataclass(frozen=True, slots=True)
class Request:
    """New columns of a version of a table.

    Parameters
    ----------
    uri : str
    version : int
    uuid : str
        Of the plan.
    columns : str
        The schema of the new columns, as JSON of Spark.
    storage : mapping of str to str
        Options of the storage. They may hold secrets.
    """

    uri: str
    version: int
    uuid: str
    columns: str
    storage: Mapping[str, str] = field(default_factory=dict, repr=False)

    def to_json(self) -> str:
        """Return it as text, without the options of the storage."""
        return json.dumps({name: value for name, value in dataclasses.asdict(self).items() if name != "storage"})

    @classmethod
    def from_json(cls, text: str, storage: Mapping[str, str]) -> Request:
        """Rebuild what `to_json` returned."""
        return cls(**json.loads(text), storage=storage)

    @property
    def schema(self) -> pa.Schema:
        """The new columns as they are stored."""
        return to_stored_schema(StructType.fromJson(json.loads(self.columns)))

    def open(self) -> LanceDataset:
        """Open the version that gets the columns."""
        return lance_format.dataset(self.uri, self.version, storage_options=self.storage)

    def plan(self, dataset: LanceDataset) -> lance_format.ColumnBackfill:
        """Return the plan, the same one in each process."""
        return dataset.plan_column_backfill(self.schema, uuid=self.uuid)


@dataclass(frozen=True, slots=True)
class BackfillMessage(WriterCommitMessage):
    """The message of one task: bytes, so that no object of an executor takes part in the commit.

    Parameters
    ----------
    payload : bytes
        Of `BackfilledFragments.to_bytes`.
    """

    payload: bytes


class ColumnBackfillSource(DataSource):
    """Data source of one backfill. It can be written only."""

    @classmethod
    def name(cls) -> str:
        """Return the name that `format` takes."""
        return NAME

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:  # noqa: ARG002
        """Plan to write the columns."""
        return ColumnBackfillWriter(Request.from_json(self.options["request"], read_storage(self.options)))


class ColumnBackfillWriter(DataSourceArrowWriter):
    """Writer of the new columns; the commit adds them to the table.

    Parameters
    ----------
    request : Request
    """

    def __init__(self, request: Request) -> None:
        self._request = request

    def write(self, iterator: Iterator[pa.RecordBatch]) -> BackfillMessage:
        """Write one partition.

        Raises
        ------
        InvalidInputError
            If a row of the source names no row of the table, or one that another row names.
        CommitError
            Outside of a Spark task.
        """
        context = TaskContext.get()
        if context is None:
            raise CommitError("a partition can be written by a Spark task only")
        dataset, schema = self._request.open(), self._request.schema
        with self._request.plan(dataset).open_writer(dataset, context.partitionId()) as writer:
            for batch in iterator:
                keys = batch.column(0)
                if keys.null_count:
                    raise InvalidInputError("a row of the source names no row of the table: its key is null or unknown")
                addresses = keys.to_numpy(zero_copy_only=False).astype(np.uint64)
                values = pa.RecordBatch.from_arrays(batch.columns[1:], names=schema.names)
                writer.write(addresses, to_stored(values, schema))
            return BackfillMessage(writer.finish().to_bytes())

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Add the columns in one version.

        Raises
        ------
        RetryableCommitConflictError
            If another writer changed the table in a way that the columns do not fit.
        CommitError
            If the messages are not one per partition.
        """
        dataset = self._request.open()
        plan = self._request.plan(dataset)
        plan.commit(dataset, [_parse(message) for message in messages])
        plan.discard_lost(dataset)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Delete all files of this backfill, unless a version of the table may refer to them."""
        dataset = self._request.open()
        plan = self._request.plan(dataset)
        delete_files(lambda: plan.abort(dataset), sum(message is None for message in messages))


def _parse(message: WriterCommitMessage | None) -> BackfilledFragments:
    if not isinstance(message, BackfillMessage):
        raise CommitError("a write task sent no commit message; nothing was committed")
    try:
        return BackfilledFragments.from_bytes(message.payload)
    except InvalidInputError as error:
        raise CommitError(f"a write task sent a malformed commit message: {error}") from error
