"""The sink of queries with a key: the rows of a batch replace those of the table that have their keys, and are added.

Spark brings the rows of one key to one task, sorted, so that a task sees all of them one after the other. It looks up
where the table has their keys, some rows at a time, and writes a delta. A batch is one version. If another writer has
changed the same rows before the commit, the process that commits looks the keys up again.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import WriterCommitMessage
from pyspark.sql.types import StructType

from connector.options.options import LanceOptions
from connector.options.snapshot import branch_uri, open_at
from connector.stream.sink import StreamSink
from connector.stream.sink_form import SinkForm
from connector.types.batches import to_stored
from connector.types.column_names import find_name
from connector.types.compatibility import check_appendable, name_as_stored
from connector.types.equality import same_rows
from connector.types.field_metadata import check_key_column
from connector.types.schemas import to_spark_schema
from connector.write.commit_message import TaskMessage
from connector.write.writer import task_number
from lance_format import (
    BatchMarker,
    DatasetNotFoundError,
    InvalidInputError,
    LanceDataset,
    RepeatedRowError,
    RowDelta,
    RowDeltaChanges,
)

_ROWS_PER_LOOKUP = 128 * 1024
_BYTES_PER_LOOKUP = 64 * 1024 * 1024


class UpsertSink(StreamSink):
    """Writer of a query whose rows replace those with the same key.

    Parameters
    ----------
    options : LanceOptions
    schema : StructType
        Of the batches: all columns of the table.
    form : SinkForm
    """

    def __init__(self, options: LanceOptions, schema: StructType, form: SinkForm) -> None:
        super().__init__(options, lambda: self._prepare(options, schema, form))

    def _prepare(self, options: LanceOptions, schema: StructType, form: SinkForm) -> tuple[Mapping[str, str], RowDelta]:
        table = open_at(options, branch_uri(options))
        stored = table.read_schema("all_binary")
        named = name_as_stored(schema, stored.names)
        check_appendable(named, to_spark_schema(stored), options.path, allow_new=False)
        missing = [name for name in stored.names if name not in named.fieldNames()]
        if missing:
            raise InvalidInputError(
                f"the rows of the stream lack the column {missing[0]!r} of the table {options.path}; an update replaces"
                " whole rows: select all columns, or merge each batch by writeStream.foreachBatch"
            )
        self._names, self._schema = named.fieldNames(), stored
        self.key = key_columns(options, stored)
        plan = table.plan_row_delta(description="stream of Spark", uuid=form.uuid)
        return table.config(), dataclasses.replace(plan, key=self.key)

    def _write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        table = self._open(self._plan)
        with self._plan.open_writer(table, task_number()) as writer:
            last: pa.RecordBatch | None = None
            for rows in _gather(batch.rename_columns(self._names) for batch in iterator):
                first = rows.slice(0, 1).select(list(self.key))
                if last is not None and all(map(same_rows, first.columns, last.columns)):
                    raise RepeatedRowError(
                        f"several rows of a batch have the key {last.to_pylist()[0]}, so that it is not clear which of"
                        " them replaces the row of the table; nothing was changed: leave one of them"
                    )
                last = rows.slice(rows.num_rows - 1).select(list(self.key))
                writer.upsert(to_stored(rows, self._schema), self.key)
            return TaskMessage(writer.finish().to_bytes())

    def _land(self, plan: RowDelta, contents: Sequence[Any], marker: BatchMarker) -> None:
        results = [content.parse(RowDeltaChanges) for content in contents]
        dataclasses.replace(plan, notes=marker.properties).commit_upserts(self._open(plan), results)

    def _discard(self, plan: RowDelta, contents: Sequence[Any]) -> None:  # noqa: ARG002
        """Delete the files. The version that was planned on may be gone, and the table."""
        with contextlib.suppress(DatasetNotFoundError):
            self._discard_lost(plan)

    def _discard_lost(self, plan: RowDelta) -> None:
        plan.discard_lost(open_at(self._options, branch_uri(self._options)))

    def _open(self, plan: RowDelta) -> LanceDataset:
        return open_at(self._options, branch_uri(self._options), plan.read_version)


def key_columns(options: LanceOptions, stored: pa.Schema) -> tuple[str, ...]:
    """Return the columns that the option `mergeKey` names, as the table has them.

    Raises
    ------
    InvalidInputError
        If the table lacks one.
    NotSupportedError
        If one has a collation.
    """
    found = [find_name(name, stored.names, case_sensitive=False) for name in options.sink.merge_key]
    missing = [name for name, own in zip(options.sink.merge_key, found, strict=True) if own is None]
    if missing:
        raise InvalidInputError(
            f"option 'mergeKey' names {missing[0]!r}, but the table {options.path} has"
            f" {', '.join(map(repr, stored.names))}"
        )
    key = tuple(name for name in found if name is not None)
    for name in key:
        check_key_column(stored.field(name))
    return key


def _gather(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of batches in larger ones, of a limited size."""
    held: list[pa.RecordBatch] = []
    num_rows = num_bytes = 0
    for batch in batches:
        held.append(batch)
        num_rows, num_bytes = num_rows + batch.num_rows, num_bytes + batch.nbytes
        if num_rows >= _ROWS_PER_LOOKUP or num_bytes >= _BYTES_PER_LOOKUP:
            yield pa.concat_batches(held)
            held, num_rows, num_bytes = [], 0, 0
    if num_rows:
        yield pa.concat_batches(held)
