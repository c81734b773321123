"""The sink of streams: each batch of a query becomes one version of a table, once.

Spark runs a batch again if the query died before its checkpoint had it. The version that a batch makes is therefore
marked with the id of the query, which the checkpoint keeps, and the number of the batch (`BatchMarker`). The latest
version says whether the table has a batch.

| event | result |
|---|---|
| the batch is in the table when its write is planned | tasks write nothing, the commit changes nothing |
| another instance of the query commits while this one writes | the commit fails, and so does the query |
| a task fails | it deletes its own files; `abort` deletes those of the others |
| a task is repeated | files of lost attempts are deleted after the commit |
| the driver dies | the batch is run again; unreferenced files remain until a cleanup |

Spark makes one writer per batch, whose copies go to the tasks, and another one that only commits or aborts. What this
one has to know comes with the messages of the tasks. It is made later, when the rows may no longer fit the table: so
tasks refuse rows that do not fit, and not the constructor.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from connector.options.options import LanceOptions
from connector.options.snapshot import branch_uri, open_at
from connector.read.task_errors import told_briefly
from connector.stream.sink_form import SinkForm
from connector.write.writer import LanceWriter, collect, delete_files
from lance_format import BatchMarker, CommitError, FragmentMetadata, LanceError, NotSupportedError, TableWrite
from lance_format.lazy_dataclasses import dataclass

_QUERY, _BATCH, _CONTINUOUS = "sql.streaming.queryId", "streaming.sql.batchId", "__is_continuous_processing"
"""Local properties of the tasks of a stream."""


@dataclass(frozen=True, slots=True)
class SinkMessage(WriterCommitMessage):
    """Message of a task.

    Parameters
    ----------
    marker : BatchMarker
        The batch that the task is a part of.
    plan : object
        The plan of the write, which the process that commits does not have otherwise.
    is_repeated : bool
        Whether an earlier attempt of the task was lost.
    content : WriterCommitMessage
        The files of the task.
    """

    marker: BatchMarker
    plan: Any
    is_repeated: bool
    content: Any


class StreamSink(DataSourceStreamArrowWriter):
    """Writer of the batches of a query.

    Parameters
    ----------
    options : LanceOptions
    prepare : callable
        Returns the configuration of the table, which is empty if there is none, and the plan of the write.
    """

    def __init__(self, options: LanceOptions, prepare: Callable[[], tuple[Mapping[str, str], Any]]) -> None:
        self._options = options
        self._config: dict[str, str] = {}
        self._plan: Any = None
        self._refusal: LanceError | None = None
        try:
            config, self._plan = prepare()
            self._config = dict(config)
        except LanceError as error:
            self._refusal = error

    def check(self) -> None:
        """Refuse rows that the table cannot take.

        Raises
        ------
        LanceError
            What kept the write from being planned.
        """
        if self._refusal is not None:
            raise self._refusal

    @told_briefly
    def write(self, iterator: Iterator[pa.RecordBatch]) -> SinkMessage:
        """Write one partition of a batch; nothing if the table has the batch.

        Raises
        ------
        CommitError
            If no task of a stream calls it.
        NotSupportedError
            If the query has a continuous trigger.
        LanceError
            If the table cannot take the rows.
        """
        self.check()
        context = TaskContext.get()
        query, batch = (context.getLocalProperty(name) if context else None for name in (_QUERY, _BATCH))
        if context is None or query is None or batch is None:
            raise CommitError("a batch of a stream can be written by a task of the stream only; nothing was written")
        if context.getLocalProperty(_CONTINUOUS) == "true":
            raise NotSupportedError(
                "the sink of Lance tables writes batches, and has no continuous trigger; nothing was written: use"
                " processingTime, availableNow or once"
            )
        marker = BatchMarker.plan(self._config, query, int(batch))
        if marker.is_committed:
            for _ in iterator:
                pass
        return SinkMessage(marker, self._plan, context.attemptNumber() > 0, self._write(iterator))

    @told_briefly
    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Make the rows of all partitions one version of the table, unless it has the batch.

        Raises
        ------
        CommitConflictError
            If another instance of the query has committed the batch concurrently.
        CommitError
            If the messages are not exactly one per partition, or the table cannot be committed to.
        """
        sent = [message for message in messages if isinstance(message, SinkMessage)]
        if len(sent) != len(messages) or not sent or any(message.marker.batch != batchId for message in sent):
            raise CommitError(
                f"the tasks of batch {batchId} did not send one message each; nothing was committed: start the query"
                " again"
            )
        marker, plan, contents = sent[0].marker, sent[0].plan, [message.content for message in sent]
        if marker.is_committed:
            return
        self._land(plan, contents, marker)
        if any(message.is_repeated for message in sent):
            self._discard_lost(plan)
        every = self._options.sink.compact_every
        if every is not None and (batchId + 1) % every == 0:
            self._compact()

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002
        """Delete all files of a batch, unless a version of the table may refer to them."""
        sent = [message for message in messages if isinstance(message, SinkMessage)]
        # A batch without any message was never tried to commit. The bridge gives all writers of a batch one uuid.
        plan = sent[0].plan if sent else self._plan
        contents = [message.content for message in sent]
        if plan is not None:
            delete_files(lambda: self._discard(plan, contents), len(messages) - len(sent))

    @abstractmethod
    def _write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write the rows of a partition."""

    @abstractmethod
    def _land(self, plan: Any, contents: Sequence[Any], marker: BatchMarker) -> None:
        """Commit what all partitions have written; `contents` are what `_write` returned."""

    @abstractmethod
    def _discard(self, plan: Any, contents: Sequence[Any]) -> None:
        """Delete the files of a batch that is given up."""

    @abstractmethod
    def _discard_lost(self, plan: Any) -> None:
        """Delete the files of attempts of tasks that are no part of the commit."""

    def _compact(self) -> None:
        """Combine small fragments. The batch is in the table, so that a failure must not fail the query."""
        try:
            open_at(self._options, branch_uri(self._options)).optimize.compact_files()
        except LanceError as error:
            warnings.warn(
                f"the table {self._options.path} was not compacted after a batch of a stream, which is in the table;"
                f" a later batch compacts it: {error}",
                stacklevel=1,
            )


class RowSink(StreamSink):
    """Writer of a query that adds the rows of a batch, or replaces all rows by them.

    Parameters
    ----------
    options : LanceOptions
    schema : StructType
        Of the batches.
    form : SinkForm
    check_names : bool
        Whether to refuse columns that differ only in case.
    """

    def __init__(self, options: LanceOptions, schema: StructType, form: SinkForm, *, check_names: bool = True) -> None:
        super().__init__(options, lambda: self._prepare(schema, form, check_names))

    def _prepare(self, schema: StructType, form: SinkForm, check_names: bool) -> tuple[Mapping[str, str], TableWrite]:
        replaces = form.mode == "complete"
        self._writer = LanceWriter(
            self._options,
            schema,
            "overwrite" if replaces else "append",
            check_names=check_names,
            keeps_columns=replaces,
            uuid=form.uuid,
        )
        return self._writer.config, self._writer.plan

    def _write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return self._writer.write(iterator)

    def _land(self, plan: TableWrite, contents: Sequence[Any], marker: BatchMarker) -> None:
        """Commit. A batch without rows makes no version if rows are appended to a table."""
        fragments = self._fragments(contents)
        if fragments or plan.mode == "overwrite" or not plan.read_version:
            plan.commit(fragments, marker)

    def _discard(self, plan: TableWrite, contents: Sequence[Any]) -> None:
        plan.abort([fragment for content in contents for fragment in content.parse().fragments])

    def _discard_lost(self, plan: TableWrite) -> None:
        plan.discard_lost()

    def _fragments(self, contents: Sequence[Any]) -> list[FragmentMetadata]:
        return collect(contents, self._options.path)
