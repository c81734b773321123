"""Names of the options that the Java classes of the planner bridge and Python exchange.

They start with two underscores, which keeps them apart from options of users.

======================== ============================================================================================
option                   value
======================== ============================================================================================
`__lance.ask`            the question that a forked worker answers; see `connector.planner.answers`
`__lance.schema`         the columns that the question is about, as JSON
`__lance.action`         the action that a catalog requests, instead of a question; see `connector.catalog.actions`
`__lance.details`        the arguments of the action, as a JSON object
`__lance.server`         the server of the names that the action is about; see `connector.catalog.server_actions`
`__lance.properties`     the properties of the table that a write makes, as a JSON object
`__lance.catalog`        `true` for a table whose columns and options are those that the session catalog has for it;
                         `own` for a table of a catalog of Lance tables
`__lance.mode`           `create` if a write must create the table
`__lance.credentials`    Hadoop's settings of S3, as JSON; see `connector.options.hadoop`
`__lance.names_checked`  `true` if columns to write do not differ in case only, or the session tells such columns apart
`__lance.time_zone`      the time zone of the session, in which timestamps without one are understood
`__lance.snapshot`       `[uri, version]`: the version that Spark has seen, even if others were committed since
`__lance.predicate`      the predicate on rows, as `connector.read.expressions` describes
`__lance.sample`         the predicate that draws a sample of the rows
`__lance.runtime`        another predicate, which Spark found while it ran the query
`__lance.keys`           columns of which only some keys are wanted, and the scans of these; see `connector.read.keys`
`__lance.replaced`       the predicate on the rows of that version that a write replaces
`__lance.limit`          the number of rows that suffice: of all partitions together without a filter, else of each
`__lance.offset`         the number of these rows that are skipped; only without a filter
`__lance.order`          `[[column, ascending, nulls first], …]`: each partition yields the first rows in this order
`__lance.aggregates`     the groups and aggregates that each partition computes; see `connector.read.aggregates`
`__lance.search`         a search of vectors or texts, as a JSON object of arguments of `LanceDataset.scanner`
`__lance.first`          the groups of which each partition yields the first rows; see `connector.read.first_rows`
`__lance.parallelism`    the number of tasks that can run concurrently
`__lance.row_level`      `true` for a scan that finds the rows that a DELETE, UPDATE or MERGE changes
`__lance.speculation`    `true` for a write of which Spark may run copies of slow tasks
`__lance.stream`         the question about a stream that is read; see `connector.stream.driver_streams`
`__lance.write`          whether a write is planned that replaces all rows, and whether a stream's, as a JSON object
`__lance.written`        the writer, and what its tasks sent; see `connector.write.pickling`
`__lance.private`        the data source of a job of this library; see `connector.source.private_sources`
`__lance.sink`           the batch of a stream that is written; see `connector.stream.sink_form`
`__lance.new_columns`    columns that a statement adds to the table, as JSON; see `connector.types.new_columns`
`__lance.entry`          the name by which the session catalog, if it is extended, has the table
`__lance.delta`          the command that changes rows, and the form of its rows; see `connector.dml.delta_form`
======================== ============================================================================================
"""

from __future__ import annotations

PREFIX = "__lance."
ASK = "__lance.ask"
SCHEMA = "__lance.schema"
ACTION = "__lance.action"
DETAILS = "__lance.details"
SERVER = "__lance.server"
PROPERTIES = "__lance.properties"
CATALOG = "__lance.catalog"
SAVING = "__lance.mode"
HADOOP = "__lance.credentials"
NAMES_CHECKED = "__lance.names_checked"
TIME_ZONE = "__lance.time_zone"
SNAPSHOT = "__lance.snapshot"
PREDICATE = "__lance.predicate"
SAMPLE = "__lance.sample"
RUNTIME = "__lance.runtime"
KEYS = "__lance.keys"
REPLACED = "__lance.replaced"
LIMIT = "__lance.limit"
OFFSET = "__lance.offset"
ORDER = "__lance.order"
AGGREGATES = "__lance.aggregates"
FIRST = "__lance.first"
SEARCH = "__lance.search"
PARALLELISM = "__lance.parallelism"
SPECULATION = "__lance.speculation"
ROW_LEVEL = "__lance.row_level"
WRITE = "__lance.write"
WRITTEN = "__lance.written"
PRIVATE = "__lance.private"
SINK = "__lance.sink"
STREAM = "__lance.stream"
DELTA = "__lance.delta"
NEW_COLUMNS = "__lance.new_columns"
ENTRY = "__lance.entry"
