"""The stream source: the rows of a table, then those that versions add, in the order of their commits.

A batch is the rows between two offsets; see `connector.stream.offsets`. Every row is read at the version that delivers
it, so that a batch has the same rows whenever it is read, whatever was compacted since.

Spark keeps one reader per query in a process in the driver. Each trigger looks up the latest version, by one request,
and opens the versions that are new, after it has made sure that the table is still the same. Since 4.2 Spark lets a
source limit its batches.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from connector.options.options import LanceOptions
from connector.options.snapshot import branch_uri, open_at
from connector.read.task_errors import told_briefly
from connector.stream.changes import check_options, open_feed, plan_changes, starting_version
from connector.stream.changes_reading import ChangePartition, Commit, Part, RowReader, pack, without_change_fields
from connector.stream.offsets import Offset
from connector.stream.source_versions import Delivery, VersionReader
from connector.types.compatibility import check_readable
from lance_format import ChangeLog, InvalidInputError, LanceError, RowChange, VersionNotFoundError

try:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadLimit,
        ReadMaxBytes,
        ReadMaxFiles,
        SupportsTriggerAvailableNow,
    )

    LIMITS_BATCHES = True
except ImportError:  # Spark 4.1
    LIMITS_BATCHES = False

_REMEMBERED = 1024


def create_stream_reader(
    options: LanceOptions, schema: StructType, parallelism: int | None = None
) -> DataSourceStreamReader:
    """Return the stream reader for this version of Spark.

    Parameters
    ----------
    options : LanceOptions
    schema : StructType
        The columns that Spark expects.
    parallelism : int, optional
        Number of tasks that can run concurrently; None if unknown.

    Raises
    ------
    InvalidInputError
        If an option does not work for streams.
    DatasetNotFoundError, VersionNotFoundError
        If there is no such table or branch.
    SchemaMismatchError
        If the table lacks a column of the schema.
    """
    reader = LimitedStreamReader if LIMITS_BATCHES else LanceStreamReader
    return reader(options, schema, parallelism)


def check_stream(options: LanceOptions, schema: StructType) -> None:
    """Refuse a stream that cannot be read, whether a query starts or is restarted.

    A restarted query does not need the version that it started with.

    Raises
    ------
    LanceError
        See `create_stream_reader` and `starting_version`.
    """
    reader = create_stream_reader(options, schema)
    with contextlib.suppress(VersionNotFoundError):
        reader.initialOffset()


class LanceStreamReader(DataSourceStreamReader):
    """Stream of the rows of a table, in batches of all that is new.

    Parameters
    ----------
    options : LanceOptions
    schema : StructType
    parallelism : int, optional
    """

    def __init__(self, options: LanceOptions, schema: StructType, parallelism: int | None = None) -> None:
        _check(options)
        baseline = open_feed(options) if options.changes.read_change_feed else open_at(options, branch_uri(options))
        self._options = dataclasses.replace(options, path=baseline.uri)
        check_readable(baseline.read_schema(options.blob_handling), without_change_fields(schema), options.path)
        self._rows = RowReader.of(self._options, baseline, schema, parallelism)
        self._log = ChangeLog(baseline)
        self._versions = VersionReader(self._options, self._log, baseline, self._rows.columns)
        self._deliveries: dict[tuple[int, bool], Delivery | None] = {}
        self._seen = baseline.version
        self._checked: Hashable = None
        self._first: Offset | None = None
        self._position: Offset | None = None

    @property
    def uri(self) -> str:
        """The location of the table, or of its branch."""
        return self._options.path

    @property
    def needed_version(self) -> int | None:
        """The first version that the stream still reads, or compares the next one with; None before its first batch."""
        position = self._position
        return None if position is None else position.version - (not position.is_snapshot)

    @told_briefly
    def initialOffset(self) -> dict[str, Any]:
        """Return where a new query starts: before the rows of the latest version, unless options say otherwise.

        Raises
        ------
        InvalidInputError, VersionNotFoundError
            If there is no such version.
        """
        return self._initial().to_json()

    @told_briefly
    def latestOffset(self) -> dict[str, Any]:  # type: ignore[override]  # of Spark 4.1
        """Return the offset after the latest version."""
        version = self._latest() + 1
        try:
            initial = self._initial()
        except LanceError:  # a restarted query no longer needs the version that it started with
            initial = Offset(version)
        return initial.moved(version, self._identity(version - 1)).to_json()

    @told_briefly
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Divide the rows between two offsets among tasks.

        Raises
        ------
        LanceError
            See `VersionReader.changes`.
        """
        last = Offset.parse(end)
        position = self._position = Offset.parse(start).begin(last)
        self._check_identity(position)
        parts: list[tuple[RowChange, int]] = []
        while position.key < last.key:
            delivery = self._deliver(position)
            is_last = (position.version, position.is_snapshot) == (last.version, last.is_snapshot)
            if delivery is not None:
                stop = last.index if is_last else len(delivery.changes)
                parts += [(change, position.version) for change in delivery.changes[position.index : stop]]
            if is_last:
                break
            position = self._after(position, delivery)
        return pack(self._plan(parts), self._rows)

    @told_briefly
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read one task."""
        if isinstance(partition, ChangePartition):
            yield from self._rows.read(partition)

    def commit(self, end: dict[str, Any]) -> None:
        """Forget what was delivered."""
        position = self._position = Offset.parse(end)
        self._deliveries = {key: found for key, found in self._deliveries.items() if key[0] >= position.version}

    def __getstate__(self) -> dict[str, Any]:
        return {"_rows": self._rows}  # all that tasks need

    def _latest(self) -> int:
        self._seen = self._log.latest_version()
        return self._seen

    def _initial(self) -> Offset:
        """Return where a new query starts; the same offset for the life of this reader."""
        if self._first is None:
            version = starting_version(self._options, self._log)
            is_snapshot = version is None
            version = self._latest() if version is None else version
            after = self._identity(version if is_snapshot else version - 1)
            self._first = Offset.initial(version, is_snapshot=is_snapshot, after=after)
        return self._first

    def _identity(self, version: int) -> str:
        """Return the uuid of the transaction of a version; empty if the version is not there."""
        try:
            return self._log.identity(version) if version > 0 else ""
        except VersionNotFoundError:
            return ""

    def _deliver(self, position: Offset) -> Delivery | None:
        """Return what the version at an offset delivers, or None if it is lost."""
        key = (position.version, position.is_snapshot)
        if key not in self._deliveries:
            read = self._versions.snapshot if position.is_snapshot else self._versions.changes
            if len(self._deliveries) >= _REMEMBERED:
                self._deliveries.pop(next(iter(self._deliveries)))
            self._deliveries[key] = read(position.version)
        return self._deliveries[key]

    def _after(self, position: Offset, delivery: Delivery | None) -> Offset:
        """Return the offset after a version."""
        version: int | None = position.version + 1
        if delivery is None:
            version = self._log.next_version(position.version + 1)
        version = version or self._seen + 1
        return position.moved(version, self._identity(version - 1))

    def _check_identity(self, position: Offset) -> None:
        """Refuse an offset of another table. One check lasts until a look-up may have found another table.

        Raises
        ------
        InvalidInputError
        """
        if self._checked is not None and self._checked == self._log.evidence:
            return
        last = position.version if position.is_snapshot else position.version - 1
        latest = self._latest() if self._log.evidence is None else self._seen
        is_known = not last or (last <= latest and (not position.after or self._log.is_made_by(last, position.after)))
        if is_known is False:
            raise InvalidInputError(
                f"the table {self._options.path} is not the one that the checkpoint is of: its version {last} is"
                " another, or not there; it was dropped and created again; choose another checkpoint location"
            )
        self._checked = self._log.evidence

    def _plan(self, found: Sequence[tuple[RowChange, int]]) -> list[Part]:
        """Plan the changes of a batch; for a stream of rows those of versions that can be read together."""
        if not self._options.changes.read_change_feed:
            return self._plan_rows([change for change, _ in found])
        parts: list[Part] = []
        for number in dict.fromkeys(version for _, version in found):
            changes = [change for change, version in found if version == number]
            parts += plan_changes(self._rows, self._log, changes, Commit(number, self._log.timestamp(number)))
        return parts

    def _plan_rows(self, changes: Sequence[RowChange]) -> list[Part]:
        """Read appended fragments at the last version of the batch if it has them in the same form.

        One that a restore brings back is delivered twice: the first time it is read at the version that appended it.
        """
        if not changes:
            return []
        last = max(change.version for change in changes)
        found: dict[tuple[int, int], RowChange] = {}
        moved: list[RowChange] = []
        for change in reversed(changes):
            later = self._log.at_version(change, last)
            kept = found.setdefault((later.version, later.fragment_id), later)
            moved.append(later if kept is later else change)
        moved.reverse()
        moved.sort(key=lambda change: change.version)
        parts: list[Part] = []
        for version in dict.fromkeys(change.version for change in moved):
            commit = Commit(version, self._log.timestamp(version))
            group = [change for change in moved if change.version == version]
            parts += plan_changes(self._rows, self._log, group, commit)
        return parts


if LIMITS_BATCHES:

    class LimitedStreamReader(LanceStreamReader, SupportsTriggerAvailableNow):
        """The same, in batches that options or the trigger limit.

        Parameters
        ----------
        options : LanceOptions
        schema : StructType
        parallelism : int, optional
        """

        _target: int | None = None

        def prepareForTriggerAvailableNow(self) -> None:
            """Fix the last version that the query delivers."""
            self._target = self._latest()

        def _latest(self) -> int:
            return super()._latest() if self._target is None else self._target

        def getDefaultReadLimit(self) -> ReadLimit:
            """Return the limit that the options name. Of two, the other is heeded, too."""
            changes = self._options.changes
            if changes.max_files is not None:
                return ReadMaxFiles(changes.max_files)
            return ReadAllAvailable() if changes.max_bytes is None else ReadMaxBytes(changes.max_bytes)

        @told_briefly
        def reportLatestOffset(self) -> dict[str, Any]:
            """Return the offset after the latest version that was seen."""
            return Offset(self._seen + 1).to_json()

        @told_briefly
        def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # type: ignore[override]
            """Return where the next batch ends.

            Parameters
            ----------
            start : dict
                Where the last one ended.
            limit : ReadLimit

            Raises
            ------
            LanceError
                See `VersionReader.changes`.
            """
            position = Offset.parse(start)
            latest = self._latest()
            self._check_identity(position)
            budget = _Budget.of(limit, self._options)
            while position.version <= latest and not budget.is_spent:
                delivery = self._deliver(position)
                if delivery is not None and not budget.takes_all(delivery, position.index):
                    index = budget.cut(delivery, position.index)
                    return start if index == 0 and position.is_initial else position.to_index(index).to_json()
                position = self._after(position, delivery)
            return start if position == Offset.parse(start) else position.to_json()


@dataclasses.dataclass(slots=True)
class _Budget:
    """The rest of a batch: at least one fragment or version.

    Parameters
    ----------
    files, size_bytes : float
    is_untouched : bool
    """

    files: float
    size_bytes: float
    is_untouched: bool = True

    @classmethod
    def of(cls, limit: ReadLimit, options: LanceOptions) -> _Budget:
        """Return the budget of a batch."""
        if isinstance(limit, ReadMaxFiles):
            changes = options.changes
            return cls(limit.max_files, float("inf") if changes.max_bytes is None else changes.max_bytes)
        return cls(float("inf"), limit.max_bytes if isinstance(limit, ReadMaxBytes) else float("inf"))

    @property
    def is_spent(self) -> bool:
        """True if nothing more fits."""
        return not self.is_untouched and (self.files <= 0 or self.size_bytes <= 0)

    def takes_all(self, delivery: Delivery, index: int) -> bool:
        """Take the rest of a version if it fits, or cannot be divided and is the first."""
        sizes = delivery.sizes[index:]
        fits = len(sizes) <= self.files and sum(sizes) <= self.size_bytes
        if not sizes or fits or (self.is_untouched and (len(sizes) == 1 or not delivery.is_divisible)):
            self._take(sizes)
            return True
        return False

    def cut(self, delivery: Delivery, index: int) -> int:
        """Return how many fragments of a version are delivered after this batch."""
        while delivery.is_divisible:
            size = delivery.sizes[index]
            if not self.is_untouched and (self.files < 1 or size > self.size_bytes):
                break
            self._take((size,))
            index += 1
        return index

    def _take(self, sizes: Sequence[int]) -> None:
        self.files -= len(sizes)
        self.size_bytes -= sum(sizes)
        self.is_untouched = self.is_untouched and not sizes


def _check(options: LanceOptions) -> None:
    """Refuse options that do not work for streams."""
    check_options(options)
    changes = options.changes
    if options.metadata_table is not None:
        raise InvalidInputError(f"the metadata table {options.metadata_table!r} cannot be read as a stream")
    if changes.ending_version is not None or changes.ending_timestamp is not None:
        raise InvalidInputError("'endingVersion' and 'endingTimestamp' are for batches; a stream ends by its trigger")
    limits = [name for name in ("maxFilesPerTrigger", "maxBytesPerTrigger") if name in changes.given()]
    if limits and not LIMITS_BATCHES:
        raise InvalidInputError(f"the option {limits[0]!r} needs Spark 4.2, which lets sources limit batches")
