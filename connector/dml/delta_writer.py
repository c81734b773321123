"""The write side of DELETE, UPDATE and MERGE: tasks stream rows into data files, the driver commits one version.

The delta is planned, and its uuid chosen, in the constructor, as `connector.write.writer` has it for appends: Spark
sends copies of this object to the tasks and to the processes that commit or abort.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from connector.dml.delta_form import DELETED, NEW, REPLACED, DeltaForm
from connector.dml.delta_message import DeltaMessage
from connector.options.options import LanceOptions
from connector.options.snapshot import open_at
from connector.types.batches import to_stored
from connector.write.writer import delete_files
from lance_format import CommitError, LanceDataset, RowDeltaChanges


class DeltaWriter(DataSourceArrowWriter):
    """Writes rows that are deleted, replaced or new.

    Parameters
    ----------
    options : LanceOptions
    form : DeltaForm
    snapshot : tuple of str and int
        Where the table is, and the version that the rows were read from.
    """

    def __init__(self, options: LanceOptions, form: DeltaForm, snapshot: tuple[str, int]) -> None:
        self._path = options.path
        self._form = form
        self._snapshot = snapshot
        self._options = options
        dataset = self._open()
        self._schema = dataset.read_schema("all_binary")
        description = f"{form.command} of Spark"
        self._delta = dataset.plan_row_delta(list(form.changed), description=description, uuid=form.uuid)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> DeltaMessage:
        """Write one partition; on any failure its files are deleted before the error goes on to Spark.

        Raises
        ------
        CommitError
            If no Spark task calls it.
        """
        context = TaskContext.get()
        if context is None:
            raise CommitError("a partition can be written by a Spark task only")
        dataset = self._open()
        with self._delta.open_writer(dataset, context.partitionId()) as writer:
            for batch in iterator:
                operations = batch.column(0)
                writer.delete(self._addresses(_those(batch, operations, (DELETED,))))
                replaced = _those(batch, operations, (REPLACED,))
                if replaced.num_rows:
                    writer.update(self._addresses(replaced), self._rows(replaced))
                new = _those(batch, operations, NEW)
                if new.num_rows:
                    writer.insert(self._rows(new))
            return DeltaMessage(writer.finish().to_bytes())

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Make what all partitions changed a new version of the table; none if they changed nothing.

        Raises
        ------
        RetryableCommitConflictError
            If another writer changed one of the same rows since they were read.
        CommitError
            If the messages are not exactly one a partition, or the table cannot be committed to.
        """
        results = [self._result(message) for message in messages]
        self._delta.commit(self._open(), results)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Delete all files of this write, unless a version of the table may refer to them."""
        dataset = self._open()
        results = [self._result(message) for message in messages if message is not None]
        delete_files(lambda: self._delta.abort(dataset, results), len(messages) - len(results))

    def _open(self) -> LanceDataset:
        """Open the version that the rows were read from."""
        return open_at(self._options, *self._snapshot)

    def _addresses(self, batch: pa.RecordBatch) -> npt.NDArray[np.uint64]:
        """Return the addresses of rows; Spark has no unsigned numbers, but none of these is negative."""
        addresses: npt.NDArray[np.int64] = batch.column(self._form.address).to_numpy(zero_copy_only=False)
        return addresses.astype(np.uint64)

    def _rows(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the values of rows, as the table stores them."""
        columns = [batch.column(position) for position in self._form.row]
        return to_stored(pa.RecordBatch.from_arrays(columns, names=list(self._form.names)), self._schema)

    def _result(self, message: WriterCommitMessage | None) -> RowDeltaChanges:
        if not isinstance(message, DeltaMessage):
            raise CommitError(f"a write task into {self._path} sent no commit message; nothing was committed")
        return message.parse()


def _those(batch: pa.RecordBatch, operations: pa.Array, wanted: Sequence[int]) -> pa.RecordBatch:
    return batch.filter(pc.is_in(operations, pa.array(wanted, operations.type)))
