"""The write side: every task writes data files, and the driver commits all of them as one transaction.

The transaction is planned, and its uuid chosen, in the constructor: Spark makes the writer once, on the driver, and
sends copies of it to the tasks and to the separate processes that commit or abort. Attributes set later are lost.

| event | result |
|---|---|
| all tasks succeed, the commit lands | the new version |
| a task fails | it deletes its own files; `abort` deletes those of all other tasks           |
| a task runs again | the files that a dead attempt has left are deleted after the commit |
| the commit fails, Spark calls `abort` | files that provably no version refers to are deleted |
| the driver dies | unreferenced files remain until a cleanup |
| the table has the batch that `txnAppId` and `txnVersion` name | tasks write nothing, the commit changes nothing |
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

import lance_format
from connector.options.column_options import apply_to_new, check_against_table
from connector.options.options import LanceOptions
from connector.options.snapshot import branch_uri, open_at
from connector.read.task_errors import told_briefly
from connector.types.batches import to_stored
from connector.types.compatibility import check_appendable, name_as_stored, with_new_fields
from connector.types.declared_types import with_entries_of_fields
from connector.types.field_metadata import without_copied_keys
from connector.types.schemas import to_spark_schema, to_stored_schema
from connector.write.commit_message import LanceCommitMessage, TaskResult
from connector.write.default_values import DefaultValues
from connector.write.replaced_rows import FoundRows, ReplacedRows
from lance_format import BatchMarker, CommitError, DatasetNotFoundError, InvalidInputError

_KILL_SECONDS = 3.0
"""Time that a task may run after Spark has told it to stop: `spark.python.task.killTimeout`, 2 s, and a margin."""


class LanceWriter(DataSourceArrowWriter):
    """Writer of a DataFrame to a table, which appends or overwrites.

    Parameters
    ----------
    options : LanceOptions
    schema : StructType
        Of the DataFrame.
    mode : {"append", "overwrite", "create"}
        The first two add or replace rows, and create a missing table. "create" requires that there is no table, now and
        at the commit.
    check_names : bool
        Whether to refuse new columns that differ only in case.
    config : mapping of str to str, optional
        Configuration of a table that is created or replaced.
    replaced : ReplacedRows, optional
        Rows that an append deletes in the same version.
    keeps_columns : bool
        Whether an overwrite replaces the rows only.
    may_repeat : bool
        Whether Spark may run copies of slow tasks (speculation), of which the messages of tasks do not tell.
    uuid : str, optional
        Identifies the write. By default a new one.
    source_version : int, optional
        The version of the same table that the query reads, if it reads the table which it overwrites.

    Raises
    ------
    DatasetExistsError
        If the table to create exists.
    InvalidInputError
        If an option is invalid, or contradicts the table.
    NotSupportedError
        If a column's type cannot be stored.
    SchemaMismatchError
        If the DataFrame does not fit the table on append.
    StorageError
        If the table's directory cannot be written.
    """

    def __init__(
        self,
        options: LanceOptions,
        schema: StructType,
        mode: str,
        *,
        check_names: bool = True,
        config: Mapping[str, str] | None = None,
        replaced: ReplacedRows | None = None,
        keeps_columns: bool = False,
        may_repeat: bool = False,
        uuid: str | None = None,
        source_version: int | None = None,
    ) -> None:
        if replaced is not None and options.sink.txn_app_id is not None:
            raise InvalidInputError(
                "the options 'txnAppId' and 'txnVersion' are for writes that append or replace all rows, not for those"
                " that replace the rows of a condition; nothing was changed"
            )
        if mode == "overwrite" and options.merge_schema:
            raise InvalidInputError("option 'mergeSchema' is for appends; an overwrite has its own schema")
        self._options = options
        self._path, self._replaced = branch_uri(options), replaced
        self._may_repeat = may_repeat
        table = self._open_table()
        self._config = {} if table is None else table.config()
        self._marker = plan_marker(options, self._config)
        if table is not None:
            _check_stable_row_ids(options, table)
        is_new = mode == "overwrite" and not keeps_columns
        self._defaults: DefaultValues | None = None
        if table is None or is_new:
            stored = apply_to_new(to_stored_schema(schema), options.column_options)
            named, self._schema = schema, without_copied_keys(stored)
        else:
            named, self._schema, self._defaults = _plan_append(options, schema, table)
        if check_names:
            _check_names(self._schema.names, () if table is None or is_new else _stored_names(table))
        self._names = dict(zip(schema.fieldNames(), named.fieldNames(), strict=True))
        limits = {"max_rows_per_file": options.max_row_per_file, "max_bytes_per_file": options.max_bytes_per_file}
        given: dict[str, Any] = {name: limit for name, limit in limits.items() if limit is not None}
        self._table_write = lance_format.plan_write(
            self._path,
            self._schema,
            mode=mode,
            data_storage_version=options.file_format_version,
            enable_stable_row_ids=bool(options.enable_stable_row_ids),
            merge_schema=options.merge_schema or (options.new_columns is not None and mode == "append"),
            config=config,
            allow_unportable_names=options.allow_unportable_names,
            storage_options=options.storage,
            **given,
        )
        if uuid is not None:
            self._table_write = dataclasses.replace(self._table_write, uuid=uuid)
        if source_version is not None:
            self._table_write = self._table_write.deriving(source_version)

    @property
    def config(self) -> Mapping[str, str]:
        """The configuration that the table had before the write was planned; empty if there was none."""
        return self._config

    @property
    def plan(self) -> lance_format.TableWrite:
        """The plan of the write."""
        return self._table_write

    @told_briefly
    def write(self, iterator: Iterator[pa.RecordBatch]) -> LanceCommitMessage:
        """Write one partition; delete its files before an error reaches Spark.

        Nothing is written of a batch that the table has.

        Raises
        ------
        CommitError
            If no Spark task calls it.
        """
        number, attempt = task_number(), attempt_number()
        if self._is_committed:
            for _ in iterator:
                pass
        batches = (to_stored(self._stored_columns(batch), self._schema) for batch in iterator)
        return LanceCommitMessage.of(number, attempt, self._table_write.write_fragments(batches))

    @told_briefly
    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Make the fragments of all partitions, in their order, a new version of the table.

        Raises
        ------
        CommitError
            If the messages are not exactly one per partition, or the table cannot be committed to.
        """
        found = next((message for message in messages if isinstance(message, FoundRows)), None)
        written = [message for message in messages if not isinstance(message, FoundRows)]
        fragments = collect(written, self._path)
        if self._is_committed:
            return
        if self._replaced is None:
            self._table_write.commit(fragments, self._marker)
        else:
            self._replaced.commit(fragments, self._table_write, found)
        if self._may_repeat or is_repeated(written):
            self._table_write.discard_lost()

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Delete all files of this write, unless a version of the table may refer to them."""
        written = [message for message in messages if not isinstance(message, FoundRows)]
        results = [_result(message, self._path) for message in written if message is not None]
        delete_files(lambda: self._table_write.abort(_fragments(results)), len(written) - len(results))

    @property
    def _is_committed(self) -> bool:
        return self._marker is not None and self._marker.is_committed

    def _open_table(self) -> lance_format.LanceDataset | None:
        try:
            return open_at(self._options, self._path)
        except DatasetNotFoundError:
            return None

    def _stored_columns(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the columns of a batch by their names in the table, and those with default values."""
        named = batch.rename_columns([self._names[name] for name in batch.schema.names])
        return named if self._defaults is None else self._defaults.beside(named)


def collect(messages: Iterable[WriterCommitMessage | None], path: str) -> list[lance_format.FragmentMetadata]:
    """Return the fragments of all partitions of a write, in their order.

    Parameters
    ----------
    messages : iterable of LanceCommitMessage
        What the tasks sent.
    path : str
        Of the table, for errors.

    Raises
    ------
    CommitError
        If the messages are not exactly one per partition.
    """
    results = [_result(message, path) for message in messages]
    found = [result.partition_id for result in results]
    if found != list(range(len(results))):
        raise CommitError(f"expected one result from each of {len(results)} write tasks in order, but got {found}")
    return _fragments(results)


def is_repeated(messages: Iterable[WriterCommitMessage | None]) -> bool:
    """Return whether Spark has started a task more than once, so that an earlier attempt may have left files."""
    return any(isinstance(message, LanceCommitMessage) and message.parse().attempt for message in messages)


def _result(message: WriterCommitMessage | None, path: str) -> TaskResult:
    if not isinstance(message, LanceCommitMessage):
        raise CommitError(f"a write task into {path} sent no commit message; nothing was committed")
    return message.parse()


def task_number() -> int:
    """Return the number of the partition that this Spark task writes.

    Raises
    ------
    CommitError
        Outside of a Spark task.
    """
    return _task().partitionId()


def attempt_number() -> int:
    """Return how often Spark has started this task before.

    Raises
    ------
    CommitError
        Outside of a Spark task.
    """
    return _task().attemptNumber()


def _task() -> TaskContext:
    context = TaskContext.get()
    if context is None:
        raise CommitError("a partition can be written by a Spark task only")
    return context


def delete_files(abort: Callable[[], object], num_lost: int) -> None:
    """Delete the files of a write that Spark gives up.

    Spark aborts as soon as one task has failed, and gives the others some time to stop before it kills their processes.
    A second deletion after that removes the files that they still write.

    Parameters
    ----------
    abort : callable
        Deletes the files that exist.
    num_lost : int
        Number of tasks that sent no message.
    """
    abort()
    if num_lost:
        time.sleep(_KILL_SECONDS)
        abort()


def _fragments(results: Iterable[TaskResult]) -> list[lance_format.FragmentMetadata]:
    return [fragment for result in results for fragment in result.fragments]


def plan_marker(options: LanceOptions, config: Mapping[str, str]) -> BatchMarker | None:
    """Return the batch that the options number; None if they do not.

    Parameters
    ----------
    options : LanceOptions
    config : mapping of str to str
        The configuration of the table; empty if there is none.
    """
    if options.sink.txn_app_id is None or options.sink.txn_version is None:
        return None
    return BatchMarker.plan(config, options.sink.txn_app_id, options.sink.txn_version)


def _check_names(names: Sequence[str], stored: Sequence[str]) -> None:
    """Refuse new columns that Spark cannot distinguish by default; data sources cannot see the setting."""
    known: dict[str, str] = {}
    for name in names:
        other = known.setdefault(name.lower(), name)
        if other != name and name not in stored:
            raise InvalidInputError(
                f"columns {other!r} and {name!r} differ in case only, and queries cannot distinguish them unless"
                " spark.sql.caseSensitive is true: rename one of them; or set it and call connector.register(spark),"
                " without which Spark does not tell a data source about it"
            )


def _stored_names(table: lance_format.LanceDataset) -> list[str]:
    names: list[str] = table.schema.names
    return names


def _check_stable_row_ids(options: LanceOptions, table: lance_format.LanceDataset) -> None:
    wanted = options.enable_stable_row_ids
    if wanted is not None and wanted != table.has_stable_row_ids:
        raise InvalidInputError(
            f"option 'enable_stable_row_ids' is {str(wanted).lower()}, but the table {options.path} was created"
            f" {'with' if table.has_stable_row_ids else 'without'} stable row ids, which cannot be changed later; leave"
            " the option out, or write another table"
        )


def _plan_append(
    options: LanceOptions, schema: StructType, table: lance_format.LanceDataset
) -> tuple[StructType, pa.Schema, DefaultValues | None]:
    """Return the columns of a DataFrame by the table's names, and what is stored: those of the table, then new ones.

    Columns that the DataFrame lacks are among them if they have default values, which are returned, too.
    """
    stored = table.read_schema("all_binary")
    named = name_as_stored(schema, stored.names)
    wanted = apply_to_new(to_stored_schema(with_entries_of_fields(named)), options.column_options)
    check_appendable(named, to_spark_schema(stored), options.path, allow_new=options.merge_schema)
    check_against_table(wanted, stored, options.column_options, options.path)
    given, held = set(wanted.names), set(stored.names)
    defaults = DefaultValues.current(field for field in stored if field.name not in given)
    filled = set(() if defaults is None else defaults.columns.names)
    known = [
        with_new_fields(field, wanted.field(field.name)) if field.name in given else field
        for field in stored
        if field.name in given or field.name in filled
    ]
    return named, pa.schema([*known, *(field for field in wanted if field.name not in held)]), defaults
