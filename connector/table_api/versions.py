"""The methods of `LanceTable` about versions, tags and branches."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any

from connector.options.options import LanceOptions
from connector.options.snapshot import open_snapshot
from connector.options.timestamps import parse_timestamp
from connector.stream.changes import check_feed
from connector.table_api.target import Target
from lance_format import InvalidInputError, LanceDataset, VersionNotFoundError
from lance_format.lazy_dataclasses import dataclass

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_HISTORY = (
    "version bigint, timestamp timestamp, operation string, operationParameters map<string, string>,"
    " readVersion bigint, operationMetrics map<string, string>, userMetadata string"
)
_DETAIL = (
    "format string, name string, description string, location string, lastModified timestamp,"
    " partitionColumns array<string>, clusteringColumns array<string>, numFiles bigint, sizeInBytes bigint,"
    " properties map<string, string>, version bigint, branch string, numRows bigint, numFragments bigint,"
    " fileFormatVersion string, hasStableRowIds boolean"
)
_MESSAGE = "lance.commit.message"
"""The property of a transaction for the message of a writer, as in pylance."""
_TAGS = (
    "name string, branch string, version bigint, created_at timestamp, updated_at timestamp,"
    " metadata map<string, string>"
)
_BRANCHES = (
    "name string, parent_branch string, parent_version bigint, created_at timestamp, metadata map<string, string>"
)


@dataclass(frozen=True, slots=True)
class RestoreResult:
    """Outcome of a restore.

    Parameters
    ----------
    version : int
        The version that the restore made.
    restored_version : int
        The version whose rows it has.
    """

    version: int
    restored_version: int


class TableVersions:
    """Methods about versions. Part of `LanceTable`.

    Parameters
    ----------
    target : Target
    """

    def __init__(self, target: Target) -> None:
        self._target = target

    def history(self, limit: int | None = None) -> DataFrame:
        """Return the versions of the table, or of its branch, latest first.

        Parameters
        ----------
        limit : int, optional
            Maximum number of versions.

        Returns
        -------
        DataFrame
            `version`, `timestamp`, `operation`, `operationParameters`, `readVersion`, `operationMetrics` (the numbers
            of rows that a delete, update or merge has changed) and `userMetadata` (the message of the commit).

        Raises
        ------
        InvalidInputError
            If the limit is less than 1.
        """
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
            raise InvalidInputError(f"limit is {limit!r}; a whole number from 1 is needed")
        dataset = self._target.open()
        numbers = sorted((found["version"] for found in dataset.version_refs()), reverse=True)
        rows = []
        for number in [number for number in numbers if number <= dataset.version][:limit]:
            try:
                rows.append(_describe_version(dataset.checkout_version(number)))
            except VersionNotFoundError:  # a cleanup has removed it since it was listed
                continue
        return self._frame(rows, _HISTORY)

    def detail(self) -> DataFrame:
        """Return one row that describes the table: its location, size, properties and version."""
        dataset = self._target.open()
        fragments = [fragment.metadata for fragment in dataset.get_fragments()]
        files = [file for fragment in fragments for file in fragment.files]
        config = dataset.config()
        row: dict[str, Any] = {
            "format": "lance",
            "name": None,
            "description": config.get("comment"),
            "location": dataset.uri,
            "lastModified": _time(dataset),
            "partitionColumns": [],
            "clusteringColumns": [],
            "numFiles": len(files),
            "sizeInBytes": sum(file.file_size_bytes or 0 for file in files),
            "properties": config,
            "version": dataset.version,
            "branch": self._target.parsed.branch,
            "numRows": dataset.count_rows(),
            "numFragments": len(fragments),
            "fileFormatVersion": dataset.data_storage_version,
            "hasStableRowIds": dataset.has_stable_row_ids,
        }
        return self._frame([row], _DETAIL)

    def readChanges(self, startingVersion: int, endingVersion: int | None = None) -> DataFrame:
        """Return the rows that versions inserted, updated and deleted.

        Parameters
        ----------
        startingVersion, endingVersion : int
            The first and the last version whose changes are returned; by default up to the latest. The version before
            the first one must exist too.

        Returns
        -------
        DataFrame
            The columns of the last version, by name, and null where an earlier version lacks one; `_change_type`, which
            is `insert`, `update_preimage` (the values before an update), `update_postimage` or `delete`;
            `_commit_version`; `_commit_timestamp`. Tables without stable row ids have no updates: an updated row is
            deleted and inserted.

        Raises
        ------
        InvalidInputError
            If a version is no number, or the first one is later than the last.
        VersionNotFoundError
            If one of the versions does not exist, as after a vacuum.
        """
        for name, value in (("startingVersion", startingVersion), ("endingVersion", endingVersion)):
            is_missing = value is None and name == "endingVersion"
            if not is_missing and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
                raise InvalidInputError(f"{name} is {value!r}; the number of a version is needed")
        dataset = self._target.open()
        last = dataset.version if endingVersion is None else endingVersion
        versions = {"readChangeFeed": "true", "startingVersion": str(startingVersion), "endingVersion": str(last)}
        options = {**self._target.storage, **versions}
        check_feed(LanceOptions.parse({**options, "path": dataset.absolute_uri}))  # so that errors are raised here
        return self._target.spark.read.format("lance").options(**options).load(dataset.absolute_uri)

    def restoreToVersion(self, version: int) -> RestoreResult:
        """Make a former version the latest again, as a new version.

        Parameters
        ----------
        version : int

        Raises
        ------
        VersionNotFoundError
            If there is no such version.
        """
        if isinstance(version, bool) or not isinstance(version, int):
            raise InvalidInputError(f"version is {version!r}; a whole number is needed, or use restoreToTimestamp")
        return _restore(self._target.open_latest("RESTORE").checkout_version(version))

    def restoreToTimestamp(self, timestamp: str | datetime.datetime) -> RestoreResult:
        """Restore the version that was the latest at a time, as a new version.

        Parameters
        ----------
        timestamp : str or datetime
            Text such as `2026-01-31 12:00:00`, with a time zone or in that of the session. A datetime without a zone is
            in that of this process, like those that PySpark returns.

        Raises
        ------
        VersionNotFoundError
            If the table is younger.
        """
        return _restore(self._at(timestamp, self._target.open_latest("RESTORE")))

    def tags(self) -> DataFrame:
        """Return the tags: `name`, `branch`, `version`, `created_at`, `updated_at`, `metadata`.

        The branch is null for the main one.
        """
        found = self._target.open().tags.list()
        rows = [
            {
                "name": name,
                "branch": tag["branch"],
                "version": tag["version"],
                "created_at": tag["created_at"],
                "updated_at": tag["updated_at"],
                "metadata": tag["metadata"],
            }
            for name, tag in sorted(found.items())
        ]
        return self._frame(rows, _TAGS)

    def createTag(self, name: str, version: int | None = None) -> None:
        """Name a version, which also keeps it from being vacuumed.

        Parameters
        ----------
        name : str
        version : int, optional
            By default the latest.

        Raises
        ------
        InvalidInputError
            If the tag exists, or the name is not allowed.
        VersionNotFoundError
            If there is no such version.
        """
        self._target.open().tags.create(name, version)

    def replaceTag(self, name: str, version: int | None = None) -> None:
        """Let a tag name another version; see `createTag`."""
        self._target.open().tags.update(name, version)

    def deleteTag(self, name: str) -> None:
        """Delete a tag; its version stays until it is vacuumed.

        Raises
        ------
        VersionNotFoundError
            If there is no such tag.
        """
        self._target.open().tags.delete(name)

    def branches(self) -> DataFrame:
        """Return the branches: `name`, `parent_branch`, `parent_version`, `created_at` and `metadata`."""
        found = self._target.open().branches.list()
        rows = [
            {
                "name": name,
                "parent_branch": branch["parent_branch"],
                "parent_version": branch["parent_version"],
                "created_at": datetime.datetime.fromtimestamp(branch["create_at"], datetime.UTC),
                "metadata": branch["metadata"],
            }
            for name, branch in sorted(found.items())
        ]
        return self._frame(rows, _BRANCHES)

    def createBranch(self, name: str, version: int | None = None) -> None:
        """Create a branch, which `forPath(spark, path, {"branch": name})` opens.

        Parameters
        ----------
        name : str
        version : int, optional
            The version that it starts from, by default the latest.

        Raises
        ------
        InvalidInputError
            If the branch exists, or the name is not allowed.
        VersionNotFoundError
            If there is no such version.
        """
        self._target.open().create_branch(name, version)

    def deleteBranch(self, name: str) -> None:
        """Delete a branch with its versions and files.

        Raises
        ------
        VersionNotFoundError
            If there is no such branch.
        InvalidInputError
            If another branch starts from it, or a tag names one of its versions.
        """
        self._target.open().branches.delete(name)

    def _at(self, timestamp: str | datetime.datetime, dataset: LanceDataset) -> LanceDataset:
        """Return the version of a branch that was the latest at a time, given any version of it."""
        zone = self._target.spark.conf.get("spark.sql.session.timeZone") or "UTC"
        if isinstance(timestamp, datetime.date) and not isinstance(timestamp, datetime.datetime):
            timestamp = datetime.datetime.combine(timestamp, datetime.time())
        if isinstance(timestamp, datetime.datetime) and timestamp.tzinfo is None:
            timestamp = timestamp.astimezone()  # as in PySpark, which collects timestamps without a zone, too
        time = parse_timestamp("timestamp", str(timestamp), zone)
        micros = (time - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)) // datetime.timedelta(microseconds=1)
        options = LanceOptions.parse({**self._target.storage, "path": dataset.uri, "timestamp": str(micros)})
        return open_snapshot(options)

    def _frame(self, rows: list[dict[str, Any]], schema: str) -> DataFrame:
        """Return rows, whose values are in the order of the schema, as a DataFrame."""
        return self._target.spark.createDataFrame([tuple(row.values()) for row in rows], schema)


def _restore(dataset: LanceDataset) -> RestoreResult:
    restored = dataset.version
    dataset.restore()
    return RestoreResult(dataset.version, restored)


def _describe_version(dataset: LanceDataset) -> dict[str, Any]:
    transaction = dataset.read_transaction(dataset.version)
    properties = dict(transaction.transaction_properties)
    message = properties.pop(_MESSAGE, None)
    parameters = {}
    predicate = getattr(transaction.operation, "predicate", None)
    if isinstance(predicate, str) and predicate:
        parameters["predicate"] = predicate
    metrics = {name: value for name, value in properties.items() if name.startswith("num_")}
    return {
        "version": dataset.version,
        "timestamp": _time(dataset),
        "operation": getattr(transaction.operation, "name", type(transaction.operation).__name__),
        "operationParameters": parameters,
        "readVersion": transaction.read_version,
        "operationMetrics": metrics,
        "userMetadata": message,
    }


def _time(dataset: LanceDataset) -> datetime.datetime:
    made: datetime.datetime = dataset.get_version()["timestamp"]
    return made.astimezone(datetime.UTC)
