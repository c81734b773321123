"""The change feed: the rows that versions inserted, updated and deleted, as the rows of a DataFrame.

The driver compares each version with the one before it, which reads deletion files and row ids, but no values; see
`lance_format.ChangeLog`. Tasks read the values: old ones from the earlier version, new ones from the later.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from connector.options.change_options import LATEST
from connector.options.options import LanceOptions
from connector.options.snapshot import branch_uri, open_at
from connector.read.task_errors import told_briefly
from connector.stream.changes_reading import (
    CHANGE_FIELDS,
    KEEP_VERSIONS,
    ChangePartition,
    Commit,
    Part,
    RowReader,
    pack,
    plan_parts,
    without_change_fields,
)
from connector.types.compatibility import check_readable
from lance_format import ChangeLog, InvalidInputError, LanceDataset, RowChange, VersionNotFoundError
from lance_format.lazy_properties import cached_property

_NAMED = {"version": "version", "tag": "tag", "timestamp": "timestamp"}


def check_options(options: LanceOptions) -> None:
    """Refuse options that do not go with the change feed or a stream.

    Raises
    ------
    InvalidInputError
    """
    for name in _NAMED:
        if getattr(options, name) is not None:
            raise InvalidInputError(
                f"the option {name!r} names one version, but streams and the change feed read many; use"
                " 'startingVersion' or 'startingTimestamp', and 'endingVersion' for a batch"
            )


def refuse_stream_options(options: LanceOptions) -> None:
    """Refuse options of streams and of the change feed in a batch of rows, where they would be ignored.

    Raises
    ------
    InvalidInputError
    """
    given = options.changes.given()
    if given:
        raise InvalidInputError(
            f"the option {given[0]!r} is for streams (spark.readStream), and for batches with readChangeFeed; leave it"
            " out to read rows, or set 'version' or 'timestamp' to read an earlier version"
        )


def open_feed(options: LanceOptions) -> LanceDataset:
    """Open the version whose columns the change feed has: the last that is read.

    A first version that a cleanup removed is no error yet, because a restarted stream does not need it.

    Raises
    ------
    InvalidInputError
        If the options contradict each other, or the table has its own columns of the names of the feed.
    DatasetNotFoundError, VersionNotFoundError
        If there is no such table, branch or version.
    """
    check_options(options)
    dataset = open_at(options, branch_uri(options))
    changes, log = options.changes, ChangeLog(dataset)
    if changes.ending_version is not None:
        dataset = log.open(changes.ending_version)
    if changes.ending_timestamp is not None:
        dataset = log.open(log.last_version_until(changes.ending_timestamp))
    own = [name for name in dataset.schema.names if name in CHANGE_FIELDS]
    if own:
        raise InvalidInputError(f"the table {options.path} has its own column {own[0]!r}: rename it to read changes")
    is_started = changes.starting_version is not None or changes.starting_timestamp is not None
    if is_started and changes.starting_version != LATEST:
        with contextlib.suppress(VersionNotFoundError):
            _first_version(options, log, dataset.version)
    return dataset


def check_feed(options: LanceOptions) -> None:
    """Refuse a batch of changes that cannot be read.

    Raises
    ------
    InvalidInputError, DatasetNotFoundError, VersionNotFoundError
        See `open_feed`; also if the first version is missing, or was removed.
    """
    dataset = open_feed(options)
    _first_version(options, ChangeLog(dataset), dataset.version)


def feed_schema(rows: StructType) -> StructType:
    """Return the columns of the change feed of a table. All are nullable, because earlier versions may lack them."""
    return StructType([*rows.toNullable(), *CHANGE_FIELDS.values()])


def describe_feed(dataset: LanceDataset, schema: StructType) -> dict[str, Any]:
    """Describe the change feed for the planner bridge; see `connector.planner.answers.describe`. Columns are pruned."""
    rows = max(dataset.count_rows(), 1)
    return {
        "schema": schema.json(),
        "snapshot": json.dumps([dataset.uri, dataset.version]),
        "uri": dataset.uri,
        "version": dataset.version,
        "name": f"changes of {dataset.uri} up to version {dataset.version}",
        "rows": rows,
        "fragments": len(dataset.get_fragments()),
        "exact": False,
        "updates": dataset.has_stable_row_ids,
        "sizes": {},
        "filterable": [],
        "misfit": None,
    }


def find_all_changes(reader: RowReader, log: ChangeLog, version: int) -> list[RowChange]:
    """Find the changes of a version that the feed shows: of all of its columns, and of columns that it drops.

    Raises
    ------
    VersionNotFoundError, NotSupportedError
        See `ChangeLog.find_changes`.
    """
    return log.find_changes(version, dropped=reader.columns.dropped(version, log))


def plan_changes(reader: RowReader, log: ChangeLog, changes: Sequence[RowChange], commit: Commit) -> list[Part]:
    """Divide the changes of one commit; see `plan_parts`."""
    parts: list[Part] = []
    for (_, version), group in itertools.groupby(changes, key=lambda change: (change.kind, change.version)):
        dataset = log.open(version)
        parts += plan_parts(reader, dataset, list(group), commit, reader.columns.names_in(dataset, log))
    return parts


class ChangesReader(DataSourceReader):
    """Reader of the change feed of some versions, as a batch.

    Parameters
    ----------
    options : LanceOptions
        `path` and `version` name the last version.
    schema : StructType
        The columns that Spark wants.

    Raises
    ------
    InvalidInputError
        If the options name no first version, or contradict each other.
    SchemaMismatchError
        If the last version lacks a column.
    """

    commit: str | None = None
    """Nothing says that its rows stay the same."""

    def __init__(self, options: LanceOptions, schema: StructType) -> None:
        changes = options.changes
        for name in ("maxFilesPerTrigger", "maxBytesPerTrigger", "failOnDataLoss"):
            if name in changes.given():
                raise InvalidInputError(f"the option {name!r} is for streams; leave it out of a batch")
        dataset = open_at(options, options.path, options.version)
        check_readable(dataset.read_schema(options.blob_handling), without_change_fields(schema), options.path)
        self._rows = RowReader.of(dataclasses.replace(options, version=None), dataset, schema)
        self._last = dataset.version
        self._log = ChangeLog(dataset)
        self._first = _first_version(options, self._log, self._last)

    @cached_property
    def tasks(self) -> list[ChangePartition]:
        """The tasks of the scan.

        Raises
        ------
        VersionNotFoundError
            If a version with changes, or the one before it, no longer exists.
        """
        parts: list[Part] = []
        for version in range(self._first, self._last + 1):
            try:
                found = find_all_changes(self._rows, self._log, version)
            except VersionNotFoundError as error:
                raise VersionNotFoundError(
                    f"{error}: a cleanup removed it, and the changes since are unknown; {KEEP_VERSIONS}"
                ) from error
            parts += plan_changes(self._rows, self._log, found, Commit(version, self._log.timestamp(version)))
        return pack(parts, self._rows)

    @told_briefly
    def partitions(self) -> Sequence[InputPartition]:
        """Divide the changes among tasks."""
        return self.tasks

    def __getstate__(self) -> dict[str, Any]:
        return {"_rows": self._rows}

    @told_briefly
    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        """Read one task."""
        if isinstance(partition, ChangePartition):
            yield from self._rows.read(partition)


def starting_version(options: LanceOptions, log: ChangeLog) -> int | None:
    """Return the first version whose changes are read, or None if the options name none.

    Raises
    ------
    InvalidInputError
        If the version is later than the latest, or all are older than the time.
    VersionNotFoundError
        If the version is not there.
    """
    changes, latest = options.changes, log.latest_version()
    if changes.starting_timestamp is not None:
        try:
            return log.first_version_since(changes.starting_timestamp)
        except VersionNotFoundError as error:
            raise InvalidInputError(f"startingTimestamp is too late: {error}") from error
    version = changes.starting_version
    if version is None:
        return None
    if version == LATEST:
        return latest + 1
    assert isinstance(version, int)
    if version > latest:
        raise InvalidInputError(
            f"startingVersion {version} is later than version {latest}, the latest of {options.path}; a stream of what"
            " comes next has startingVersion 'latest'"
        )
    try:
        log.open(version)
    except VersionNotFoundError as error:
        raise VersionNotFoundError(f"startingVersion {version} is not there: {error}") from error
    return version


def _first_version(options: LanceOptions, log: ChangeLog, last: int) -> int:
    """Return the first version of a batch, after checking that it can be compared with the one before it."""
    if options.changes.starting_version == LATEST:
        raise InvalidInputError("startingVersion 'latest' is for streams; a batch of changes needs a number")
    first = starting_version(options, log)
    if first is None:
        raise InvalidInputError(
            "a batch of changes needs a first version: set 'startingVersion' or 'startingTimestamp'"
        )
    if first > last:
        raise InvalidInputError(f"startingVersion {first} is later than endingVersion {last}")
    if first > 1 and log.added_fragments(first) is None:
        try:
            log.open(first - 1)
        except VersionNotFoundError as error:
            raise VersionNotFoundError(f"the changes of version {first} need version {first - 1}: {error}") from error
    return first
