"""The write side: every task writes data files, the driver commits them all as one transaction.

The transaction is planned, and its uuid chosen, in the constructor: Spark makes the writer once, on the driver, and
sends copies of it to the tasks and to the separate processes that commit or abort. Whatever is set on it later is lost.

| what happens | what is left |
|---|---|
| all tasks succeed, the commit lands | the new version |
| a task fails | it deletes its own files; those of the others, dead or alive, are deleted by `abort` |
| the commit fails, Spark calls `abort` | what the table refers to stays, what provably no version refers to goes |
| the driver dies | files that nothing refers to, until a cleanup |
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

import lance_format
from connector.batches import to_stored
from connector.column_options import apply_to_new, check_against_table
from connector.commit_message import LanceCommitMessage, TaskResult
from connector.compatibility import check_same_types
from connector.options import LanceOptions
from connector.types import to_spark_schema, to_stored_schema
from lance_format import CommitError, DatasetNotFoundError

_KILL_SECONDS = 3.0
"""How long a task may go on after Spark has told it to stop: `spark.python.task.killTimeout`, 2 s, and some more."""


class LanceWriter(DataSourceArrowWriter):
    """Writes a DataFrame to a table, by appending or by replacing what is there.

    Parameters
    ----------
    options : LanceOptions
    schema : StructType
        Of the DataFrame.
    overwrite : bool
        Whether the new rows replace the old ones. A table that is missing is created either way.

    Raises
    ------
    InvalidInputError
        If an option of a column makes no sense, or is not what the table has that is appended to.
    NotSupportedError
        If a column's type cannot be stored.
    SchemaMismatchError
        If the DataFrame does not have the columns of the table that it is appended to.
    StorageError
        If the table's directory cannot be written.
    """

    def __init__(self, options: LanceOptions, schema: StructType, overwrite: bool) -> None:
        self._path = options.path
        self._schema = apply_to_new(to_stored_schema(schema), options.column_options)
        stored = None if overwrite else self._schema_of_table(schema)
        if stored is not None:
            check_against_table(self._schema, stored, options.column_options, self._path)
            self._schema = stored
        limits = {"max_rows_per_file": options.max_row_per_file, "max_bytes_per_file": options.max_bytes_per_file}
        given: dict[str, Any] = {name: limit for name, limit in limits.items() if limit is not None}
        self._table_write = lance_format.plan_write(
            options.path,
            self._schema,
            mode="overwrite" if overwrite else "append",
            data_storage_version=options.file_format_version,
            **given,
        )

    def write(self, iterator: Iterator[pa.RecordBatch]) -> LanceCommitMessage:
        """Write one partition; on any failure its files are deleted before the error goes on to Spark."""
        context = TaskContext.get()
        if context is None:
            raise CommitError("a partition can be written by a Spark task only")
        batches = (to_stored(batch, self._schema) for batch in iterator)
        return LanceCommitMessage.of(context.partitionId(), self._table_write.write_fragments(batches))

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Make the fragments of all partitions, in their order, a new version of the table.

        Raises
        ------
        CommitError
            If the messages are not exactly one a partition, or the table cannot be committed to.
        """
        results = [self._result(message) for message in messages]
        found = [result.partition_id for result in results]
        if found != list(range(len(messages))):
            raise CommitError(f"expected one result from each of {len(messages)} write tasks in order, but got {found}")
        self._table_write.commit(_fragments(results))

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Delete all files of this write, unless a version of the table may refer to them.

        Spark aborts as soon as one task has failed, and gives the others, which it has told to stop, some time until it
        kills their processes. What they still write meanwhile is deleted by looking again after that.
        """
        results = [self._result(message) for message in messages if message is not None]
        self._table_write.abort(_fragments(results))
        if len(results) < len(messages):
            time.sleep(_KILL_SECONDS)
            self._table_write.abort(_fragments(results))

    def _schema_of_table(self, schema: StructType) -> pa.Schema | None:
        try:
            stored = lance_format.dataset(self._path).scanner(blob_handling="all_binary").projected_schema
        except DatasetNotFoundError:
            return None
        check_same_types(schema, to_spark_schema(stored), self._path)
        return stored

    def _result(self, message: WriterCommitMessage | None) -> TaskResult:
        if not isinstance(message, LanceCommitMessage):
            raise CommitError(f"a write task into {self._path} sent no commit message; nothing was committed")
        return message.parse()


def _fragments(results: Iterable[TaskResult]) -> list[lance_format.FragmentMetadata]:
    return [fragment for result in results for fragment in result.fragments]
