"""The write side of planned changes whose tasks are the partitions of a DataFrame.

Spark sends copies of a writer to the tasks and to the processes that commit or abort. Its plan is the same in all of
them, so the files of every task carry one uuid.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from connector.read.task_errors import told_briefly
from connector.write.commit_message import TaskMessage
from connector.write.writer import delete_files, task_number
from lance_format import CommitError, LanceDataset, WriterPlan


class PlanWriter(DataSourceArrowWriter, ABC):
    """Writer of the partitions of a planned change.

    Parameters
    ----------
    location : str
        Of the table, for messages.
    result_type : type
        The class of the results of tasks.
    """

    def __init__(self, location: str, result_type: Any) -> None:
        self._location = location
        self._result_type = result_type

    @abstractmethod
    def _open(self) -> LanceDataset:
        """Open the version that the change was planned on."""

    @abstractmethod
    def _plan(self, dataset: LanceDataset) -> WriterPlan[Any, Any]:
        """Return the plan, the same one in each process."""

    @abstractmethod
    def _fill(self, writer: Any, dataset: LanceDataset, batches: Iterator[pa.RecordBatch]) -> None:
        """Give the rows of a partition to the writer of its task.

        Parameters
        ----------
        writer : object
            Of the plan.
        dataset : LanceDataset
            The version that the change was planned on.
        batches : iterator of pyarrow.RecordBatch
        """

    @told_briefly
    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskMessage:
        """Write one partition; after a failure its open files are deleted.

        Raises
        ------
        CommitError
            Outside of a Spark task.
        """
        number = task_number()
        dataset = self._open()
        with self._plan(dataset).open_writer(dataset, number) as writer:
            self._fill(writer, dataset, iterator)
            return TaskMessage(writer.finish().to_bytes())

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Make one version of what all partitions have written, and delete the files of repeated attempts of tasks.

        Raises
        ------
        RetryableCommitConflictError
            If another writer changed the same rows or fragments since they were read.
        CommitError
            If the messages are not one per partition, or the table cannot be committed to.
        """
        results = [self._parse(message) for message in messages]
        dataset = self._open()
        plan = self._plan(dataset)
        plan.commit(dataset, results)
        plan.discard_lost(dataset)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Delete all files of this change, unless a version of the table may refer to them."""
        dataset = self._open()
        plan = self._plan(dataset)
        delete_files(lambda: plan.abort(dataset), sum(message is None for message in messages))

    def _parse(self, message: WriterCommitMessage | None) -> Any:
        if not isinstance(message, TaskMessage):
            raise CommitError(f"a write task into {self._location} sent no commit message; nothing was committed")
        return message.parse(self._result_type)
