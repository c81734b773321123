"""`ChangeLog`: the versions of a branch one by one, and what each changed, without listing them."""

from __future__ import annotations

import bisect
import dataclasses
import datetime
import functools
from collections import OrderedDict
from collections.abc import Hashable, Sequence, Set
from typing import TypeAlias

import numpy as np

from lance_format.arguments import checked_methods
from lance_format.errors import VersionNotFoundError
from lance_format.table.dataset.change_feed.field_history import FieldHistory
from lance_format.table.dataset.change_feed.row_changes import (
    INSERT,
    ComparedFields,
    RowChange,
    Undone,
    find_row_changes,
    find_unrecorded_updates,
)
from lance_format.table.dataset.dataset import LanceDataset
from lance_format.table.format.lineage import is_ancestor
from lance_format.table.format.manifest import Manifest
from lance_format.table.transaction.operations import (
    Append,
    CreateIndex,
    Delete,
    Overwrite,
    Project,
    ReserveFragments,
    Restore,
    Rewrite,
    UpdateConfig,
)
from lance_format.table.transaction.transaction import Transaction
from lance_format.table.versions.checkout import as_nanoseconds
from lance_format.table.versions.history import load_with_transaction
from lance_format.table.versions.table_version import TableVersion
from lance_format.table.versions.watch import VersionWatch

_KEEPS_ROWS = (Rewrite, CreateIndex, Project, ReserveFragments, UpdateConfig)
_KEEPS_COLUMNS = (Append, CreateIndex, Delete, ReserveFragments, Rewrite, UpdateConfig)
_Path: TypeAlias = tuple[str | int, ...]
_CLONE = "clone"
"""The operation that makes the first version of a branch."""
_REMEMBERED = 4
_NANOSECONDS = 1000
"""Times are given to the microsecond."""


@checked_methods
class ChangeLog:
    """Changes of the versions of a branch.

    Each version is read once, by one request for its manifest and at most one for its transaction. The last few are
    remembered.

    Parameters
    ----------
    dataset : LanceDataset
        Any version of the branch.

    Attributes
    ----------
    fields : FieldHistory
        Which fields of versions are the same.
    """

    def __init__(self, dataset: LanceDataset) -> None:
        self._uri = dataset.uri
        self._table = dataset._table
        self._watch = VersionWatch(dataset._table.directory)
        self._known: OrderedDict[int, tuple[Manifest, Transaction | None]] = OrderedDict()
        self.fields = FieldHistory(self._load)

    def latest_version(self) -> int:
        """Look up the latest version: by one request, however many versions there are; see `VersionWatch`."""
        return self._watch.look_up()

    @property
    def evidence(self) -> Hashable:
        """A value that stays the same as long as `latest_version` cannot have found another table; None before."""
        return self._watch.evidence

    def is_made_by(self, version: int, uuid: str) -> bool | None:
        """Return whether the transaction of a uuid made a version of the table that is there now.

        What was read before does not count: the table may have been dropped and created again since. The latest
        version is read, and the version itself unless the latest remembers it.

        Parameters
        ----------
        version : int
        uuid : str

        Returns
        -------
        bool or None
            None if nothing tells, because a cleanup removed the version, or its transaction cannot be read.
        """
        latest = self._watch.latest
        try:
            if version < latest:
                remembered = is_ancestor(self._reload(latest)[0], version, uuid)
                if remembered is not None:
                    return remembered
            transaction = self._reload(version)[1]
        except VersionNotFoundError:
            return None
        return None if transaction is None else transaction.uuid == uuid

    def open(self, version: int) -> LanceDataset:
        """Open a version.

        Raises
        ------
        VersionNotFoundError
            If there is no such version, or not any more.
        """
        return LanceDataset(self._uri, self._open(version))

    def identity(self, version: int) -> str:
        """Return the uuid of the transaction that made a version; empty if it is unknown."""
        transaction = self._load(version)[1]
        return "" if transaction is None else transaction.uuid

    def operation(self, version: int) -> str:
        """Return the name of the operation that made a version, for messages."""
        transaction = self._load(version)[1]
        return "unknown" if transaction is None else transaction.operation.name

    def timestamp(self, version: int) -> datetime.datetime:
        """Return the time of the commit, in UTC."""
        micros = self._load(version)[0].timestamp_ns // 1000
        return datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(microseconds=micros)

    def added_fragments(self, version: int) -> list[int] | None:
        """Return the ids of the fragments that a version added, if its transaction alone tells what it did to rows.

        Returns
        -------
        list of int or None
            Empty if it changed no row, as compactions, indices and new branches do not. All rows of version 1 are new,
            also if a branch or clone begins with it. None if the version may have changed rows of earlier ones:
            `find_changes` tells.
        """
        manifest, transaction = self._load(version)
        operation = None if transaction is None else transaction.operation
        if isinstance(operation, _KEEPS_ROWS):
            return []
        if operation is not None and operation.name == _CLONE:
            return [] if version > 1 else sorted(manifest.fragments.ids)
        if not isinstance(operation, Append):
            return None
        num_new = len(operation.fragments)
        added = manifest.fragments[len(manifest.fragments) - num_new :] if num_new else ()
        expected = [[file.path for file in fragment.files] for fragment in operation.fragments]
        if [[file.path for file in fragment.files] for fragment in added] != expected:
            return None
        return [fragment.id for fragment in added]

    def find_changes(
        self,
        version: int,
        columns: Sequence[str] | None = None,
        *,
        dropped: Set[int] = frozenset(),
        with_new_columns: bool = True,
    ) -> list[RowChange]:
        """Find the rows that a version inserted, updated and deleted.

        Parameters
        ----------
        version : int
        columns : sequence of str, optional
            Columns of the version; changes of other columns do not count. By default all.
        dropped : set of int
            Ids of fields of the version before that this one lacks, and whose loss updates the rows that had values.
        with_new_columns : bool
            Whether an added column updates the rows that it has values for.

        Returns
        -------
        list of RowChange
            Deletes and values before updates first.

        Raises
        ------
        VersionNotFoundError
            If the version is not there, or the one before it, unless `added_fragments` tells what changed.
        NotSupportedError
            If two fragments of a version have the same id.
        """
        added = self.added_fragments(version)
        if added is not None and not dropped:
            return self._inserts(version, added)
        after, transaction = self._open(version), self._load(version)[1]
        before = self._open(version - 1) if version > 1 else _emptied(after)
        schemas = before.manifest.schema, after.manifest.schema
        fields = ComparedFields.of(*schemas, columns, dropped, with_new=with_new_columns)
        operation = None if transaction is None else transaction.operation
        undone = None
        if isinstance(operation, Restore):
            undone = functools.partial(self._find_undone, operation.version, version, fields.before | fields.after)
        return find_row_changes(before, after, operation, fields, undone)

    def _find_undone(self, restored: int, version: int, fields: frozenset[int]) -> Undone | None:
        """Find what a restore undid, from the restored version up to it. None if a version in between is not there."""
        row_ids, lacking = [np.empty(0, np.uint64)], set[int]()
        number, first = version - 1, restored
        try:
            while number > first:
                after, transaction = self._open(number), self._load(number)[1]
                operation = None if transaction is None else transaction.operation
                lacking |= fields.difference(self.fields.ids(number))
                if isinstance(operation, Restore):
                    first = min(first, operation.version)
                elif not isinstance(operation, Overwrite):
                    row_ids += find_unrecorded_updates(self._open(number - 1), after, operation, fields)
                number -= 1
        except VersionNotFoundError:
            return None
        return Undone(np.concatenate(row_ids), frozenset(lacking))

    def _inserts(self, version: int, fragment_ids: Sequence[int]) -> list[RowChange]:
        fragments = self._load(version)[0].fragments
        found = [entry for entry in map(fragments.find, fragment_ids) if entry is not None]
        sizes = [max(entry.physical_rows - entry.num_deletions, 0) for entry in found]
        return [RowChange(INSERT, version, entry.id, size) for entry, size in zip(found, sizes, strict=True)]

    def may_drop_columns(self, version: int) -> bool:
        """Return whether a version may lack columns of the version before it, by its operation."""
        transaction = self._load(version)[1]
        operation = None if transaction is None else transaction.operation
        keeps = isinstance(operation, _KEEPS_COLUMNS) or (operation is not None and operation.name == _CLONE)
        return version > 1 and not keeps

    def at_version(self, change: RowChange, version: int) -> RowChange:
        """Return a change with a later version to read its rows from, or itself if that would differ.

        Whole fragments that the later version has in the same form, and with the same columns, have the same rows.

        Raises
        ------
        VersionNotFoundError
            If one of the versions is not there.
        """
        if change.version == version or change.offsets is not None:
            return change
        before, after = self._load(change.version)[0], self._load(version)[0]
        fragment = before.fragments.find(change.fragment_id)
        is_same = before.schema.fields == after.schema.fields and fragment == after.fragments.find(change.fragment_id)
        return dataclasses.replace(change, version=version) if is_same else change

    def first_version_since(self, time: datetime.datetime) -> int:
        """Return the first version that was committed at a time or later, assuming that times ascend.

        Raises
        ------
        VersionNotFoundError
            If all versions are older.
        """
        limit = as_nanoseconds(time)
        versions = sorted(self._table.history().names)
        position = bisect.bisect_left(versions, limit, key=lambda version: self._load(version)[0].timestamp_ns)
        if position == len(versions):
            raise VersionNotFoundError(
                f"no version of {self._table.root} was committed at {time} or later; the latest, version"
                f" {versions[-1]}, is of {self.timestamp(versions[-1])}"
            )
        return versions[position]

    def last_version_until(self, time: datetime.datetime) -> int:
        """Return the last version that was committed at a time or earlier, assuming that times ascend.

        Raises
        ------
        VersionNotFoundError
            If all versions are younger.
        """
        limit = as_nanoseconds(time) + _NANOSECONDS - 1
        versions = sorted(self._table.history().names)
        position = bisect.bisect_right(versions, limit, key=lambda version: self._load(version)[0].timestamp_ns)
        if position == 0:
            raise VersionNotFoundError(
                f"no version of {self._table.root} was committed at {time} or earlier; the earliest, version"
                f" {versions[0]}, is of {self.timestamp(versions[0])}"
            )
        return versions[position - 1]

    def next_version(self, version: int) -> int | None:
        """Return the first version from a number on that is there, or None. This lists all versions."""
        return min((number for number in self._table.history().names if number >= version), default=None)

    def _open(self, version: int) -> TableVersion:
        return dataclasses.replace(self._table, manifest=self._load(version)[0])

    def _load(self, version: int) -> tuple[Manifest, Transaction | None]:
        if version in self._known:
            self._known.move_to_end(version)
            return self._known[version]
        return self._reload(version)

    def _reload(self, version: int) -> tuple[Manifest, Transaction | None]:
        found = load_with_transaction(self._table.directory, version)
        self._known[version] = found
        while len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)
        return found


def _emptied(table: TableVersion) -> TableVersion:
    """Return the state before the first version."""
    manifest = dataclasses.replace(
        table.manifest, version=0, fragments=table.manifest.fragments.changed(removed=table.manifest.fragments.ids)
    )
    return dataclasses.replace(table, manifest=manifest)
