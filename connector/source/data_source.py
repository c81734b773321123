"""Lance tables as a Spark data source.

========================= ===== ==================================================================================
option                    for   value
========================= ===== ==================================================================================
`path`                    both  the table's directory; `.load(path)` and `.save(path)` set it
`version`                 read  the version to read; by default the latest at each query, without the planner when the
                                DataFrame or view is made
`tag`                     read  the name of the version to read
`timestamp`               read  the latest version at a time: `2026-01-31 12:00:00+01:00`, or microseconds since 1970
`versionAsOf`             read  the number or the tag of the version to read: Spark's own name
`timestampAsOf`           read  the same as `timestamp`: Spark's own name
`branch`                  both  the branch; by default the main one
`columns`                 read  the columns to read, separated by commas, or as a JSON list; all by default
`metadata_columns`        read  of `_rowid`, `_rowaddr`, `_fragid`, `_row_created_at_version`,
                                `_row_last_updated_at_version` and `_rowoffset` those to add, separated by commas
`filter`                  read  which rows to read, as SQL: `id > 5 AND name LIKE 'o%'`; all by default
`split_size_bytes`        read  how much of the table's files a task reads, about; 134217728 by default
`batch_size`              read  the most rows in a batch that is handed to Spark; 65,536 by default
`blob_handling`           read  blobs as bytes, `all_binary` (the default), or where they are: `blobs_descriptions`
`readChangeFeed`          read  the inserts, updates and deletes of versions, instead of rows; `docs/streaming.md`
                                has the options of streams and of the change feed
`metadata_table`          read  what is known of the table, instead of its rows: `history`, `files`, `fragments` …
`file_format_version`     write `2.1`, `2.2` or `stable` (the default, 2.2)
`max_row_per_file`        write the most rows in a data file; a task that has more of them writes several
`max_bytes_per_file`      write the size from which on a task starts another data file
`enable_stable_row_ids`   write whether the rows of a new table keep their ids when they move
`mergeSchema`             write whether an append adds the columns that the table lacks
`txnAppId`                write the application that numbers its writes, each of which is done once; see
                                `docs/streaming.md`, also for the options of streams that write
`txnVersion`              write the number of the write
`allow_unportable_names`  write whether new columns may have names that pylance cannot read, as `a.b`
`storage.<option>`        both  an option of the object store, in the names of `storage_options`: `storage.aws_region`
`<column>.…`              write how a column of a new table is stored, see below
========================= ===== ==================================================================================

======================================== ======================================================================
option of a column                       value
======================================== ======================================================================
`<column>.arrow.fixed-size-list.size`    the number of values that every array of the column has: it holds vectors
`<column>.lance.encoding`                `blob`: the values of a binary column are stored apart, each by itself
`<column>.lance.compression`             `zstd`, `lz4`, `fsst` or `none`; chosen page by page by default
`<column>.lance.compression-level`       0 to 22, of zstd
`<column>.lance.packed`                  `true`: a struct is one column, with its fields side by side
`<column>.lance.structural-encoding`     `miniblock` or `fullzip`, the layout of pages
`<column>.lance.rle-threshold`           0.0 to 1.0: runs a value below which runs are encoded; 0.5 by default
`<column>.lance.bss`                     `off`, `on` or `auto` (the default): bytes split before zstd or lz4
`<column>.lance.dict-divisor`            from 2: values a distinct one that a dictionary has at least; 2 by default
`<column>.lance.dict-size-ratio`         up to 1.0: how small a dictionary has to make a page; 0.8 by default
`<column>.lance.dict-values-compression` `zstd`, `lz4` or `none`, of dictionaries
`<column>.lance.minichunk-size`          the most bytes in a chunk of strings; 4,096 by default
======================================== ======================================================================

>>> import tempfile
>>> from pyspark.sql import SparkSession
>>> spark = SparkSession.builder.master("local[2]").getOrCreate()
>>> path = tempfile.mkdtemp() + "/numbers.lance"
>>> df = spark.createDataFrame([(1, "one"), (2, "two")], "id long, name string")
>>> df.write.format("lance").mode("append").save(path)
>>> spark.read.format("lance").load(path).where("id = 2").show()
+---+----+
| id|name|
+---+----+
|  2| two|
+---+----+
<BLANKLINE>

Spark finds the data source through the package `pyspark_lance`. A program that imports that package, or calls
`pyspark_lance.register(spark)`, also lets Spark's planner push operations to tables.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import MutableMapping
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from connector.active_session import active_session
from connector.catalog.actions import act
from connector.catalog.properties import split_properties
from connector.dml.delta_form import DeltaForm
from connector.dml.delta_writer import DeltaWriter
from connector.dml.driver_delete import delete_rows
from connector.dml.refusals import check_change
from connector.jobs.row_search import find_replaced_rows
from connector.metadata.reading import MetadataReader, describe_metadata, open_described, refuse_writing, schema_of
from connector.options.options import LanceOptions
from connector.options.snapshot import branch_uri, commit_of, open_at, open_snapshot
from connector.planner.answers import answer, bounds, describe, in_schema
from connector.protocol import (
    ASK,
    CATALOG,
    DELTA,
    ENTRY,
    NAMES_CHECKED,
    PRIVATE,
    PROPERTIES,
    REPLACED,
    SAVING,
    SCHEMA,
    SINK,
    SNAPSHOT,
    SPECULATION,
    STREAM,
    WRITE,
    WRITTEN,
)
from connector.read.pushed import Pushed, read_snapshot
from connector.read.reader import create_reader
from connector.read.task_errors import told_briefly
from connector.stream.changes import (
    ChangesReader,
    describe_feed,
    feed_schema,
    open_feed,
    refuse_stream_options,
)
from connector.stream.changes_reading import without_change_fields
from connector.stream.driver_streams import answer_stream
from connector.stream.sink import RowSink, StreamSink
from connector.stream.sink_form import SinkForm
from connector.stream.sink_refusals import check_sink, refuse_sink_options
from connector.stream.sink_upsert import UpsertSink
from connector.stream.source import check_stream, create_stream_reader
from connector.types.compatibility import find_misfit
from connector.types.row_columns import ROW_FIELDS
from connector.types.schemas import to_spark_schema
from connector.write.pickling import end_write
from connector.write.replaced_rows import ReplacedRows
from connector.write.writer import LanceWriter
from lance_format import DatasetNotFoundError, InvalidInputError, LanceDataset
from lance_format.lazy_properties import cached_property

_CHECKPOINT = "checkpointlocation"


class LanceDataSource(DataSource):
    """Data source behind `format("lance")`: reads and writes tables.

    Save modes are `append` and `overwrite`; the planner bridge adds `errorifexists` and `ignore`.

    Spark makes one instance on the driver for every `load` and every `save`.

    Parameters
    ----------
    options : mapping of str to str
        See the table above; names in any case.
    """

    options: MutableMapping[str, str]
    _snapshot: tuple[str, int] | None = None

    @told_briefly
    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        if _CHECKPOINT in self._given:
            # A query with a sink starts. Without the planner bridge nothing else is told until there are rows.
            check_sink(self._parsed_options, None)

    @classmethod
    def name(cls) -> str:
        """Return the name that `format` takes."""
        return "lance"

    @told_briefly
    def schema(self) -> StructType | str:
        """Look the schema up in the table: the columns that the options `columns` and `metadata_columns` name.

        This also fixes the version to read. Spark plans a DataFrame or view only once, or again for some of its
        queries, depending on their filters; fixing the version here makes all of them see the same table.

        Raises
        ------
        DatasetNotFoundError, VersionNotFoundError
            If the table or version does not exist.
        InvalidInputError
            If the options are wrong, or name columns that the table does not have.
        NotSupportedError
            If a column's type cannot be read.
        """
        given = self._given
        if ASK in given:
            return in_schema(answer(type(self), given[ASK], given, given.get(SCHEMA)))
        if PRIVATE in given:
            return self._private.schema()
        dataset = self._open()
        self._snapshot = (dataset.uri, dataset.version)
        return self._infer_schema(dataset)

    def describe(self, schema: StructType | None) -> dict[str, Any]:
        """Describe the table for the planner bridge; see `connector.planner.answers`.

        Parameters
        ----------
        schema : StructType, optional
            The columns that Spark sees; inferred if not given.
        """
        options, dataset = self._parsed_options, self._opened
        if options.metadata_table is not None:
            return describe_metadata(options, dataset)
        if options.changes.read_change_feed:
            return describe_feed(dataset, self._infer_schema(dataset) if schema is None else schema)
        if options.search:
            from connector.read.searching import describe_search  # Other plans do without it.

            return describe_search(options, dataset, self._infer_schema(dataset) if schema is None else schema)
        seen = self._infer_schema(dataset) if schema is None else schema
        found = describe(dataset, seen, exact=_is_plain(options), blob_handling=options.blob_handling)
        return {**found, "misfit": None if schema is None else self._misfit(dataset, schema)}

    def commit(self) -> str | None:
        """Return what tells the version that is read from all others, also of another table at its path; or None."""
        return commit_of(self._opened)

    def act(self, schema: StructType | None) -> dict[str, Any]:
        """Do the action that a catalog requests; see `connector.catalog.actions`."""
        return act(self._given, schema)

    def exists(self) -> bool:
        """Return whether the table, or the branch of it, to be written to exists."""
        try:
            open_at(self._parsed_options, branch_uri(self._parsed_options))
        except DatasetNotFoundError:
            return False
        return True

    def misfit(self, schema: StructType) -> str | None:
        """Return the reason why the table cannot be read with a schema; None if it can, or if there is no table."""
        try:
            return self._misfit(open_snapshot(self._parsed_options), schema)
        except DatasetNotFoundError:
            return None

    def bounds(self, schema: StructType) -> dict[str, Any]:
        """Return the bounds of columns for the planner bridge; see `connector.planner.answers`."""
        uri, version = self._seen()
        return bounds(open_at(self._parsed_options, uri, version), schema)

    def check_change(self, schema: StructType) -> None:
        """Refuse a change of rows that cannot be made; see `connector.dml.refusals`."""
        command = DeltaForm.parse(self._given[DELTA]).command
        snapshot = self._seen()
        is_declared = self._given.get(CATALOG) == "true" and ENTRY not in self._given
        check_change(self._parsed_options, command, schema, snapshot, is_declared=is_declared)

    def delete(self, schema: StructType) -> int:
        """Delete the rows for which the pushed predicate is true, and return their number."""
        return delete_rows(self._parsed_options, self._pushed().predicate, schema)

    def find_replaced_rows(self) -> bytes:
        """Find the rows that a write replaces; see `connector.jobs.row_search`."""
        return find_replaced_rows(active_session(), self._replaced_rows(self._parsed_options))

    @told_briefly
    def reader(self, schema: StructType) -> DataSourceReader:
        """Plan a read of the columns of `schema`."""
        if PRIVATE in self._given:
            return self._private.reader(schema)
        pushed = self._pushed()
        uri, version = self._seen()
        options = dataclasses.replace(self._parsed_options, path=uri, version=version)
        if options.metadata_table is not None:
            return MetadataReader(options, schema)
        if options.changes.read_change_feed:
            return ChangesReader(options, schema)
        refuse_stream_options(options)
        if options.search:
            from connector.read.searching import SearchReader

            return SearchReader(options, schema, pushed)
        if pushed.aggregates is not None:
            from connector.read.aggregates import AggregateReader

            return AggregateReader(options, schema, pushed)
        if pushed.first is not None:
            from connector.read.first_rows import FirstRowsReader

            return FirstRowsReader(options, schema, pushed)
        return create_reader(options, schema, pushed)

    @told_briefly
    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Plan a write; invalid writes are refused here, before a task runs."""
        if PRIVATE in self._given:
            return self._private.writer(schema, overwrite)
        refuse_writing(self._parsed_options)
        refuse_sink_options(self._parsed_options)
        if DELTA in self._given:
            form = DeltaForm.parse(self._given[DELTA])
            return DeltaWriter(self._parsed_options, form, self._seen())
        mode = "overwrite" if overwrite else "create" if self._given.get(SAVING) == "create" else "append"
        named, config = split_properties(json.loads(self._given.get(PROPERTIES, "{}")))
        options = LanceOptions.parse({**named, **self.options})
        return LanceWriter(
            options,
            schema,
            mode,
            check_names=NAMES_CHECKED not in self._given,
            config=config,
            replaced=self._replaced_rows(options) if REPLACED in self._given else None,
            keeps_columns=CATALOG in self._given and SAVING not in self._given,
            may_repeat=SPECULATION in self._given,
            source_version=self._seen()[1] if overwrite and SNAPSHOT in self._given else None,
        )

    def plan_write(self, schema: StructType) -> DataSourceWriter | DataSourceStreamArrowWriter:
        """Plan a write for the planner bridge: of a DataFrame, or of a batch of a stream."""
        form = json.loads(self._given[WRITE])
        plan = self.streamWriter if form["streaming"] else self.writer
        return plan(schema, form["overwrite"])

    def end_write(self, *, aborts: bool) -> None:
        """Commit or abort a write for the planner bridge."""
        end_write(json.loads(self._given[WRITTEN]), aborts=aborts)

    @told_briefly
    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Plan a stream of the rows that versions add, or of the changes of rows."""
        return create_stream_reader(self._parsed_options, schema, self._pushed().parallelism)

    def answer_stream(self, schema: StructType) -> dict[str, Any]:
        """Answer a question about a stream; see `connector.stream.driver_streams`."""
        return answer_stream(self, json.loads(self._given[STREAM]), schema)

    @told_briefly
    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamSink:
        """Plan the write of one batch of a stream, or its commit; see `connector.stream.sink`."""
        options, form = self._parsed_options, SinkForm.parse(self._given.get(SINK), replaces=overwrite)
        check_sink(options, form)
        if options.sink.merge_key:
            return UpsertSink(options, schema, form)
        return RowSink(options, schema, form, check_names=NAMES_CHECKED not in self._given)

    def check_sink(self, schema: StructType) -> list[str]:
        """Refuse a query that cannot write to the table; return the columns by which its rows are brought together."""
        writer = self.streamWriter(schema, overwrite=False)
        writer.check()
        return list(writer.key) if isinstance(writer, UpsertSink) else []

    def check_stream(self, schema: StructType) -> None:
        """Refuse a stream of the table that cannot be read, whatever its checkpoint has."""
        check_stream(self._parsed_options, schema)

    def _pushed(self) -> Pushed:
        return Pushed.parse(
            self.options,
            lambda: open_at(self._parsed_options, *self._seen()),
            lambda options, schema: type(self)(options).reader(schema),
        )

    def _seen(self) -> tuple[str, int]:
        """Return the version that Spark has seen, or fix it now."""
        if self._snapshot is None:
            self._snapshot = read_snapshot(self.options)
        if self._snapshot is None:
            self._snapshot = (self._opened.uri, self._opened.version)
        return self._snapshot

    def _replaced_rows(self, options: LanceOptions) -> ReplacedRows:
        return ReplacedRows(options, *self._seen(), self._given[REPLACED])

    def _open(self) -> LanceDataset:
        options = self._parsed_options
        if options.metadata_table is not None:
            return open_described(options)
        return open_feed(options) if options.changes.read_change_feed else open_snapshot(options)

    @cached_property
    def _opened(self) -> LanceDataset:
        """The version that Spark has seen, or else the one that the options name."""
        snapshot = read_snapshot(self.options)
        return self._open() if snapshot is None else open_at(self._parsed_options, *snapshot)

    def _misfit(self, dataset: LanceDataset, schema: StructType) -> str | None:
        options = self._parsed_options
        if options.metadata_table is not None:
            return None
        stored = dataset.read_schema(options.blob_handling)
        own = without_change_fields(schema) if options.changes.read_change_feed else schema
        return find_misfit(stored, own, options.path)

    def _infer_schema(self, dataset: LanceDataset) -> StructType:
        options = self._parsed_options
        if options.metadata_table is not None:
            return schema_of(options)
        stored = dataset.read_schema(options.blob_handling)
        _check_columns(options, stored.names)
        if options.columns is not None:
            stored = pa.schema([stored.field(column) for column in options.columns])
        found = StructType([*to_spark_schema(stored), *(ROW_FIELDS[name] for name in options.metadata_columns)])
        if options.search:
            from connector.read.searching import with_rank

            return with_rank(found, options)
        return feed_schema(found) if options.changes.read_change_feed else found

    @cached_property
    def _given(self) -> dict[str, str]:
        """The options, by names in lower case."""
        return {name.lower(): value for name, value in self.options.items()}

    @property
    def _private(self) -> DataSource:
        from connector.source.private_sources import private_source  # Others do without it.

        return private_source(self._given)

    @cached_property
    def _parsed_options(self) -> LanceOptions:
        return LanceOptions.parse(self.options)


def _is_plain(options: LanceOptions) -> bool:
    """Return whether the number of rows is that of the table, and no reader has to refuse an option."""
    return options.filter is None and not options.changes.given()


def _check_columns(options: LanceOptions, stored: list[str]) -> None:
    missing = [column for column in options.columns or () if column not in stored]
    if missing:
        raise InvalidInputError(
            f"option 'columns' names {', '.join(map(repr, missing))}, but the table {options.path} "
            f"has {', '.join(map(repr, stored))}"
        )
    own = [column for column in options.metadata_columns if column in stored]
    if own:
        raise InvalidInputError(
            f"option 'metadata_columns' names {own[0]!r}, but the table {options.path} has its own column of this"
            " name; leave it out"
        )
