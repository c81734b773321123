"""Tasks of streams and of the change feed: rows of fragments, each read at the version that has them."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

from connector.options.options import LanceOptions
from connector.options.snapshot import open_at
from connector.stream.changes_columns import ReadColumns
from connector.types.arrays import Origin
from connector.types.batches import split
from connector.types.schemas import to_exchange_schema
from lance_format import (
    FragmentMetadata,
    LanceDataset,
    LanceScanner,
    NotSupportedError,
    RowChange,
    ScanTask,
    VersionNotFoundError,
)
from lance_format.lazy_dataclasses import dataclass

CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP = "_change_type", "_commit_version", "_commit_timestamp"
CHANGE_FIELDS = {
    field.name: field
    for field in (
        StructField(CHANGE_TYPE, StringType(), nullable=False),
        StructField(COMMIT_VERSION, LongType(), nullable=False),
        StructField(COMMIT_TIMESTAMP, TimestampType(), nullable=False),
    )
}
KEEP_VERSIONS = "keep versions until they are read, by a tag or a longer retention"
DEFAULT_BATCH_ROWS = 65_536
DEFAULT_SPLIT_BYTES = 128 << 20
_SMALLEST_PARTITION_BYTES = 1 << 20
_DEFAULT_PARALLELISM = 16
"""Number of tasks of a reader that does not know how many can run concurrently."""


@dataclass(frozen=True, slots=True)
class Commit:
    """The version that made a change, as the feed shows it.

    Parameters
    ----------
    version : int
    timestamp : datetime
        In UTC.
    """

    version: int
    timestamp: datetime.datetime


@dataclass(frozen=True, slots=True)
class Part:
    """Rows that a task reads from one version.

    Parameters
    ----------
    version : int
    rows : ScanTask or RowChange
    kind : str
        The kind of the change.
    commit : Commit
    size_bytes : float
        Estimated.
    names : mapping of str to Origin
        Where the version has columns; see `ReadColumns.names_in`.
    """

    version: int
    rows: ScanTask | RowChange
    kind: str
    commit: Commit
    size_bytes: float
    names: Mapping[str, Origin]

    @property
    def num_rows(self) -> int:
        """Number of rows at most."""
        return self.rows.num_rows

    @property
    def fragment_ids(self) -> set[int]:
        """Ids of the fragments of the version that have the rows."""
        return self.rows.fragment_ids if isinstance(self.rows, ScanTask) else {self.rows.fragment_id}


@dataclass(frozen=True, slots=True)
class ChangePartition(InputPartition):
    """Parts that one task reads.

    Parameters
    ----------
    parts : tuple of Part
    """

    parts: tuple[Part, ...]

    @property
    def num_rows(self) -> int:
        """Number of rows at most."""
        return sum(part.num_rows for part in self.parts)

    @property
    def fragment_ids(self) -> set[int]:
        """Ids of the fragments that the task reads."""
        return set[int]().union(*(part.fragment_ids for part in self.parts))


@dataclass(frozen=True)
class RowReader:
    """Reader of rows of any versions. It can be pickled.

    Parameters
    ----------
    options : LanceOptions
        `path` is the location of the branch.
    columns : ReadColumns
        Columns of the table.
    schema : StructType
        The columns that Spark expects, with those of changes.
    parallelism : int
        Number of tasks to divide rows among, if there are enough of them.
    """

    options: LanceOptions
    columns: ReadColumns
    schema: StructType
    parallelism: int = _DEFAULT_PARALLELISM

    @classmethod
    def of(
        cls, options: LanceOptions, dataset: LanceDataset, schema: StructType, parallelism: int | None = None
    ) -> RowReader:
        """Return a reader of columns by their names in a version.

        Parameters
        ----------
        options : LanceOptions
        dataset : LanceDataset
            Shows the version.
        schema : StructType
            Columns of the table, and of changes.
        parallelism : int, optional
            Number of tasks that can run concurrently; None if unknown.
        """
        columns = ReadColumns.of(dataset, without_change_fields(schema), options.filter)
        return cls(options, columns, schema, parallelism or _DEFAULT_PARALLELISM)

    def scanner(
        self, dataset: LanceDataset, names: Mapping[str, Origin], fragment_ids: Sequence[int] | None = None
    ) -> LanceScanner:
        """Return a scanner of the columns in a version.

        Parameters
        ----------
        dataset : LanceDataset
            Shows the version.
        names : mapping of str to Origin
            Where it has columns; see `ReadColumns.names_in`.
        fragment_ids : sequence of int, optional
            The fragments to scan, all by default.
        """
        fragments = None if fragment_ids is None else [dataset.get_fragment(number) for number in fragment_ids]
        return dataset.scanner(
            self.columns.requested(self.columns.stored(names)),
            self.columns.fit_filter(dataset, names),
            batch_size=self.options.batch_size or DEFAULT_BATCH_ROWS,
            blob_handling=self.options.blob_handling,
            fragments=None if fragments is None else [fragment for fragment in fragments if fragment is not None],
        )

    def read(self, partition: ChangePartition) -> Iterator[pa.RecordBatch]:
        """Read the rows of a partition.

        Raises
        ------
        VersionNotFoundError
            If a cleanup has removed a version since the read was planned.
        NotSupportedError
            If a value of an earlier version does not fit the column of its name.
        """
        dataset: LanceDataset | None = None
        for part in partition.parts:
            if dataset is None or dataset.version != part.version:
                dataset = self._open(part.version)
                stored = self.columns.stored(part.names)
                scanner = self.scanner(dataset, part.names)
            if isinstance(part.rows, ScanTask):
                found = scanner.read_task(part.rows)
            else:
                found = scanner.read_rows(part.rows.fragment_id, part.rows.rows())
            for batch in found:
                for piece in split(batch, self.options.batch_size or DEFAULT_BATCH_ROWS):
                    yield self._complete(self._fit(piece, stored, part.version), part)

    def _fit(self, batch: pa.RecordBatch, stored: Mapping[str, Origin], version: int) -> pa.RecordBatch:
        try:
            return self.columns.fit(batch, stored)
        except NotSupportedError as error:
            raise NotSupportedError(
                f"version {version} of {self.options.path} has rows that do not fit the columns of version"
                f" {self.columns.version}: {error}; leave the column out by the option columns, or start after these"
                " rows, a stream with another checkpoint"
            ) from error

    def _open(self, version: int) -> LanceDataset:
        try:
            return open_at(self.options, self.options.path, version)
        except VersionNotFoundError as error:
            raise VersionNotFoundError(
                f"{error}: a cleanup removed version {version} while it was read; {KEEP_VERSIONS}"
            ) from error

    def _complete(self, batch: pa.RecordBatch, part: Part) -> pa.RecordBatch:
        """Add the columns of the change."""
        if len(self.schema) == len(self.columns.schema):
            return batch
        exchanged = to_exchange_schema(self.schema)
        values = {CHANGE_TYPE: part.kind, COMMIT_VERSION: part.commit.version, COMMIT_TIMESTAMP: part.commit.timestamp}
        columns = [
            pa.repeat(pa.scalar(values[field.name], field.type), batch.num_rows)
            if field.name in CHANGE_FIELDS
            else batch.column(field.name)
            for field in exchanged
        ]
        return pa.RecordBatch.from_arrays(columns, schema=exchanged)


def without_change_fields(schema: StructType) -> StructType:
    """Return the columns that are columns of the table."""
    return StructType([field for field in schema if field.name not in CHANGE_FIELDS])


def plan_parts(
    reader: RowReader,
    dataset: LanceDataset,
    changes: Sequence[RowChange],
    commit: Commit,
    names: Mapping[str, Origin],
) -> list[Part]:
    """Divide rows of one version that were changed by one commit.

    Parameters
    ----------
    reader : RowReader
    dataset : LanceDataset
        Shows the version that has the rows.
    changes : sequence of RowChange
        Of this version and of one kind.
    commit : Commit
    names : mapping of str to Origin
        Where the version has columns; see `ReadColumns.names_in`.

    Raises
    ------
    NotSupportedError
        If several fragments have the id of a changed one.
    """
    changed = {change.fragment_id for change in changes}
    shared = changed & dataset.repeated_fragment_ids()
    if shared:
        raise NotSupportedError(
            f"version {dataset.version} of {dataset.uri} lists several fragments of the id {min(shared)}, which streams"
            " and the change feed cannot tell apart; overwrite the table, and start a new query"
        )
    sizes = {
        fragment.fragment_id: row_bytes(fragment.metadata)
        for fragment in map(dataset.get_fragment, changed)
        if fragment is not None
    }
    whole = [change.fragment_id for change in changes if change.offsets is None]
    parts = []
    if whole:
        tasks = reader.scanner(dataset, names, whole).plan_tasks(
            reader.options.split_size_bytes or DEFAULT_SPLIT_BYTES, min_tasks=reader.parallelism
        )
        for task in tasks:
            size = sum((stop - start) * sizes[fragment_id] for fragment_id, start, stop in task.ranges)
            parts.append(Part(dataset.version, task, changes[0].kind, commit, size, names))
    for change in changes:
        if change.offsets is not None:
            size = change.num_rows * sizes[change.fragment_id]
            parts.append(Part(dataset.version, change, change.kind, commit, size, names))
    return parts


def row_bytes(fragment: FragmentMetadata) -> float:
    """Return the bytes of data files per row of a fragment; at least 1."""
    return max(fragment.known_bytes / max(fragment.physical_rows, 1), 1.0)


def pack(parts: Sequence[Part], reader: RowReader) -> list[ChangePartition]:
    """Pack parts, in order, into partitions of about the same size."""
    total = sum(part.size_bytes for part in parts)
    largest = reader.options.split_size_bytes or DEFAULT_SPLIT_BYTES
    limit = min(max(total / reader.parallelism, _SMALLEST_PARTITION_BYTES), largest)
    groups: list[list[Part]] = []
    filled = limit
    for part in parts:
        if filled + part.size_bytes / 2 >= limit:
            groups.append([])
            filled = 0
        groups[-1].append(part)
        filled += part.size_bytes
    return [ChangePartition(tuple(group)) for group in groups]
