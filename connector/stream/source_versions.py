"""The rows or changes that a stream delivers of each version."""

from __future__ import annotations

import logging

from connector.options.options import LanceOptions
from connector.stream.changes_columns import ReadColumns
from connector.stream.changes_reading import KEEP_VERSIONS, row_bytes
from lance_format import (
    ChangeLog,
    InvalidInputError,
    LanceDataset,
    RowChange,
    SchemaMismatchError,
    VersionNotFoundError,
)
from lance_format.lazy_dataclasses import dataclass

_log = logging.getLogger(__name__)

_DELETE, _POSTIMAGE, _INSERT = "delete", "update_postimage", "insert"


@dataclass(frozen=True, slots=True)
class Delivery:
    """The changes of one version that a stream delivers.

    Parameters
    ----------
    version : int
    changes : tuple of RowChange
        In order.
    sizes : tuple of int
        The bytes of data files that each of them is of.
    is_divisible : bool
        Whether a batch may end between two changes.
    """

    version: int
    changes: tuple[RowChange, ...] = ()
    sizes: tuple[int, ...] = ()
    is_divisible: bool = True


class VersionReader:
    """Finds out what to deliver of versions.

    Parameters
    ----------
    options : LanceOptions
    log : ChangeLog
    baseline : LanceDataset
        The version that the columns of the stream are of. Versions after it must have the same columns.
    columns : ReadColumns
        The columns of the stream.
    """

    def __init__(self, options: LanceOptions, log: ChangeLog, baseline: LanceDataset, columns: ReadColumns) -> None:
        self._options = options
        self._log = log
        self._baseline = baseline.version
        self._read_columns = columns
        wanted = options.columns
        self._checked = None if wanted is None else (*wanted, *columns.tested)
        self._columns = _describe_columns(baseline, self._checked)

    def snapshot(self, version: int) -> Delivery | None:
        """Return all rows of a version, or None if it is lost and may be.

        Raises
        ------
        VersionNotFoundError
            If it is lost and may not be.
        """
        try:
            dataset = self._log.open(version)
        except VersionNotFoundError as error:
            self._lose(version, error)
            return None
        return self._added(dataset, [fragment.fragment_id for fragment in dataset.get_fragments()])

    def changes(self, version: int) -> Delivery | None:
        """Return what a version changed, or None if it is lost and may be.

        Raises
        ------
        VersionNotFoundError
            If it is lost and may not be.
        SchemaMismatchError
            If it has other columns than the stream.
        InvalidInputError
            If it changed rows, and the options do not say what to do about that.
        """
        try:
            dataset = self._log.open(version)
            self._check_columns(dataset)
            feeds = self._options.changes.read_change_feed
            dropped = self._read_columns.dropped(version, self._log) if feeds else frozenset[int]()
            added = self._log.added_fragments(version)
            if added is not None and not dropped:
                return self._added(dataset, added)
            found = self._log.find_changes(version, self._compared(dataset), dropped=dropped, with_new_columns=feeds)
        except VersionNotFoundError as error:
            self._lose(version, error)
            return None
        if not feeds:
            found = self._choose(version, found)
        return Delivery(version, tuple(found), tuple(map(self._size, found)), is_divisible=False)

    def _compared(self, dataset: LanceDataset) -> list[str] | None:
        """Return the columns whose changes count; None if all do, as in a batch of the feed."""
        wanted = None if self._options.changes.read_change_feed else self._options.columns
        if wanted is None:
            return None
        names = set(dataset.schema.names)
        return [name for name in wanted if name in names]

    def _added(self, dataset: LanceDataset, fragment_ids: list[int]) -> Delivery:
        fragments = [dataset.get_fragment(number) for number in fragment_ids]
        entries = [fragment.metadata for fragment in fragments if fragment is not None]
        changes = [
            RowChange(_INSERT, dataset.version, entry.id, max(entry.physical_rows - entry.num_deletions, 0))
            for entry in entries
        ]
        sizes = [entry.known_bytes for entry in entries]
        return Delivery(dataset.version, tuple(changes), tuple(sizes))

    def _choose(self, version: int, found: list[RowChange]) -> list[RowChange]:
        """Return the changes that a stream of rows delivers."""
        kinds = {change.kind for change in found}
        options = self._options.changes
        if kinds <= {_INSERT}:
            return found
        if options.skip_change_commits:
            return []
        if options.ignore_changes:
            return [change for change in found if change.kind in (_INSERT, _POSTIMAGE)]
        if options.ignore_deletes and kinds == {_DELETE}:
            return []
        raise InvalidInputError(_describe_change(self._options.path, version, self._log.operation(version), kinds))

    def _size(self, change: RowChange) -> int:
        fragment = self._log.open(change.version).get_fragment(change.fragment_id)
        return 0 if fragment is None else int(change.num_rows * row_bytes(fragment.metadata))

    def _check_columns(self, dataset: LanceDataset) -> None:
        if dataset.version <= self._baseline:
            return
        found = _describe_columns(dataset, self._checked)
        if found != self._columns:
            before, after = set(self._columns.items()), set(found.items())
            raise SchemaMismatchError(
                f"version {dataset.version} of {self._options.path} changed the columns of the table:"
                f" {_spell(before - after) or 'none'} became {_spell(after - before) or 'none'}; restart the query to"
                " read the new columns"
            )

    def _lose(self, version: int, error: VersionNotFoundError) -> None:
        message = (
            f"version {version} of {self._options.path}, or the one before it, was removed by a cleanup before the"
            " stream read it"
        )
        if self._options.changes.fail_on_data_loss:
            raise VersionNotFoundError(
                f"{message}: {error}; {KEEP_VERSIONS}, and start again with another checkpoint; or set"
                " failOnDataLoss=false to skip what is lost"
            ) from error
        _log.warning("%s; failOnDataLoss is false, so its rows are skipped", message)


def _describe_columns(dataset: LanceDataset, columns: tuple[str, ...] | None) -> dict[tuple[str, int], str]:
    """Return the types of columns by their names and field ids."""
    types = {field.name: str(field.type) for field in dataset.schema}
    fields = dataset.lance_schema.fields()
    return {(x.name(), x.id()): types[x.name()] for x in fields if columns is None or x.name() in columns}


def _spell(columns: set[tuple[tuple[str, int], str]]) -> str:
    return ", ".join(f"{name} {kind}" for (name, _), kind in sorted(columns))


def _describe_change(path: str, version: int, operation: str, kinds: set[str]) -> str:
    did = "deleted rows" if kinds == {_DELETE} else "changed rows"
    remedy = "ignoreDeletes=true to ignore deletes, " if kinds == {_DELETE} else ""
    return (
        f"version {version} of {path} {did} that the stream may have delivered ({operation}); set {remedy}"
        "skipChangeCommits=true to skip versions that change rows, ignoreChanges=true to deliver updated rows again, or"
        " readChangeFeed=true with another checkpoint to read deletes and updates"
    )
