"""The commit, which makes a transaction the next version of a table, with other writers committing concurrently.

A version exists once its manifest does, and a manifest is only ever created, never replaced. A commit therefore

1. loads the latest version, checks the transaction against all commits since it was planned, and rebases it if both
   changed the same fragments, or added the same columns;
2. writes the transaction file, then creates the manifest of the next version. On object stores it writes the file
   while it looks for the latest version, and again only if a rebase changes it;
3. reads that manifest back if the storage reports anything but success. A reply may be lost after the storage has done
   its work, so "exists already" may mean this very commit: only the content identifies its writer;
4. proves that the version is part of the history, and removes it if it was created too late; see
   `lance_format.table.versions.landing`.

A transaction may mark its version with the batch of an application (`BatchMarker`): each attempt checks that no other
writer has committed the batch.

A transaction is recognised by its uuid. If a version committed since it was planned has this uuid, the transaction has
landed before, and committing it again changes nothing.
"""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import random
import textwrap
import time
from collections.abc import Callable, Iterable
from typing import TypeAlias

from lance_format.errors import (
    CommitConflictError,
    CommitError,
    CommitStateUnknownError,
    CorruptFileError,
    DatasetNotFoundError,
    LanceError,
    NotSupportedError,
    RetryableCommitConflictError,
    StorageError,
    VersionNotFoundError,
)
from lance_format.lazy_dataclasses import dataclass
from lance_format.object_store import ObjectExistsError, ObjectNotFoundError, RefusedError, run_together
from lance_format.table.format.lineage import is_ancestor, maker_of
from lance_format.table.format.manifest import Manifest
from lance_format.table.format.manifest_file import MAX_MANIFEST_BYTES, serialize_manifest
from lance_format.table.format.successor import make_successor
from lance_format.table.format.table_directory import TableDirectory
from lance_format.table.transaction.appended_columns import is_settled_as, settle
from lance_format.table.transaction.batch_marker import BatchMarker
from lance_format.table.transaction.conflicts import check_conflict, check_reuse, dropped_fields
from lance_format.table.transaction.file_versions import check_file_versions
from lance_format.table.transaction.operations import (
    Append,
    Operation,
    OtherOperation,
    Overwrite,
    Restore,
    Update,
)
from lance_format.table.transaction.transaction import Transaction, serialize_transaction
from lance_format.table.versions.cleanup.cleanup import clean_up_if_due
from lance_format.table.versions.history import History, load_history, write_hint
from lance_format.table.versions.landing import Standing, find_standing, prove, take_back, unknown
from lance_format.table.versions.rebase import Rebasable, rebase


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Limits of the retries of a commit.

    Parameters
    ----------
    max_attempts : int
    max_seconds : float
        No attempt starts later.
    max_absent : int
        Number of failures of the storage to create the manifest before its error is raised.
    """

    max_attempts: int = 20
    max_seconds: float = 30.0
    max_absent: int = 3

    def pause(self, attempt: int, first_attempt_seconds: float) -> float:
        """Return the seconds to wait before the attempt after number `attempt`.

        Writers choose among ever more slots, each a little longer than an attempt takes.
        """
        slots = 4 * 2 ** min(attempt, 7)
        return random.randrange(slots) * 1.1 * first_attempt_seconds


DEFAULT_RETRY = RetryPolicy()

Precondition: TypeAlias = Callable[[Manifest], None]
"""A check of the version that a commit would follow; its exception prevents the commit."""


def same_table(directory: TableDirectory, version: int, uuid: str) -> Precondition:
    """Return the check that a table has not been dropped and created again since a change of it was planned.

    Parameters
    ----------
    directory : TableDirectory
    version : int
        The version that the change was planned on.
    uuid : str
        Of the transaction that made this version; empty if it is unknown.

    Returns
    -------
    callable
        Raises a CommitConflictError. It passes if the latest version does not tell.
    """

    def check(latest: Manifest) -> None:
        known = maker_of(latest) == uuid if latest.version == version else is_ancestor(latest, version, uuid)
        if uuid and known is False:
            raise CommitConflictError(
                f"{directory} is not the table that this change was planned on: it was dropped and created again;"
                " nothing was changed: run it again"
            )

    return check


def commit(
    directory: TableDirectory,
    transaction: Transaction,
    retry: RetryPolicy = DEFAULT_RETRY,
    precondition: Precondition | None = None,
    *,
    only_after_read_version: bool = False,
) -> Manifest:
    """Make a transaction the next version of a table.

    Parameters
    ----------
    directory : TableDirectory
    transaction : Transaction
        A transaction of an operation that this library makes. The files that it refers to are written.
    retry : RetryPolicy
    precondition : callable, optional
        Called before every attempt with the latest version, after the check for conflicts.
    only_after_read_version : bool
        Whether to refuse, as a conflict, if there is a later version than the one read at the start of the commit.

    Returns
    -------
    Manifest
        The version that the transaction made, now or before; the latest one if a cleanup has removed that.

    Raises
    ------
    RetryableCommitConflictError, CommitConflictError
        If another writer committed a conflicting change first. This one changes nothing.
    CommitStateUnknownError
        If the commit may or may not have landed.
    StorageError
        If the storage failed; the transaction did not land.
    """
    if not directory.store.atomic_put_if_absent:
        raise NotSupportedError(
            f"{directory}: this storage cannot create an object only if it is absent; nothing was written"
        )
    made = _Commit(directory, transaction, retry, precondition, only_after_read_version).run()
    clean_up_if_due(directory, made)
    return made


class _Outcome(enum.Enum):
    LANDED = enum.auto()
    FOREIGN = enum.auto()
    ABSENT = enum.auto()


class _Commit:
    """A commit in progress."""

    def __init__(
        self,
        directory: TableDirectory,
        transaction: Transaction,
        retry: RetryPolicy,
        precondition: Precondition | None,
        only_after_read_version: bool,
    ) -> None:
        self._directory = directory
        self._store = directory.store
        self._transaction = transaction
        self._retry = retry
        self._precondition = precondition
        self._marker = BatchMarker.of(transaction.transaction_properties)
        self._only_after_read_version = only_after_read_version
        self._checked = transaction.read_version
        self._dropped_fields: frozenset[int] = frozenset()
        self._others: dict[int, Operation] = {}
        self._num_absent = 0
        self._rebased_files: list[str] = []
        self._former_files: list[str] = []
        self._transaction_written: bytes | None = None
        self._transaction_path = directory.transaction(transaction.file_name)

    def run(self) -> Manifest:
        try:
            return self._run()
        except CommitStateUnknownError:
            raise
        except LanceError:
            written = [] if self._transaction_written is None else [self._transaction_path]
            self._delete([*self._former_files, *self._rebased_files, *written])
            raise

    def _run(self) -> Manifest:
        start = time.monotonic()
        first_attempt_seconds = 0.0
        for attempt in range(self._retry.max_attempts):
            history, current = self._look_up()
            if self._only_after_read_version and attempt == 0 and history.latest != self._checked:
                raise RetryableCommitConflictError(
                    f"version {self._checked} of {self._directory} is not the latest one; nothing was changed"
                )
            landed = self._check_others(history, current)
            if landed is not None:
                return landed
            successor = self._apply(history, current)
            self._write_transaction(successor)
            outcome = self._create(history, successor, current)
            if outcome is _Outcome.LANDED:
                write_hint(self._directory, successor.version)
                self._delete(self._former_files)
                return successor
            # Files of other attempts are kept while it is unknown which attempt lands.
            self._former_files += self._rebased_files
            self._rebased_files.clear()
            elapsed = time.monotonic() - start
            first_attempt_seconds = first_attempt_seconds or elapsed
            pause = self._retry.pause(attempt, first_attempt_seconds)
            if elapsed + pause > self._retry.max_seconds:
                break
            time.sleep(pause)
        raise RetryableCommitConflictError(
            f"other writers committed to {self._directory} first, {attempt + 1} times in a row; nothing was changed:"
            " run it again when fewer write at once"
        )

    def _look_up(self) -> tuple[History, Manifest | None]:
        """List the versions, and load the latest.

        Where requests take long, the transaction file is first written at the same time, in the form without a rebase.
        """
        calls: list[Callable[[], tuple[History, Manifest | None] | None]] = [self._load_latest]
        if self._store.is_remote and self._transaction_written is None:
            calls.append(self._write_first_transaction)
        found = run_together(self._store, calls)[0]
        assert found is not None
        return found

    def _load_latest(self) -> tuple[History, Manifest | None]:
        history = load_history(self._directory)
        return history, self._load(history, history.latest) if history.names else None

    def _check_others(self, history: History, current: Manifest | None) -> Manifest | None:
        """Check all commits since the last check; return the version that this transaction made, if any.

        A missing version may be the one that it made. So may a version of its number that is not in the history.
        """
        if history.latest < self._checked:
            raise CommitConflictError(
                f"{self._directory} had version {self._checked} when this {self._transaction.operation.name}"
                f" was planned and now ends with {history.latest}: the table was deleted or replaced; run it again"
            )
        if current is None:
            return None
        gone: int | None = None
        for version in range(self._checked + 1, history.latest + 1):
            committed = self._load_transaction(history, version)
            uuid = self._transaction.uuid if committed is None else committed.uuid
            remembered = is_ancestor(current, version, uuid)
            if committed is None and remembered:
                return current
            if committed is not None and uuid == self._transaction.uuid:
                landed = self._recognise(history, version, committed)
                if landed is not None:
                    return landed
                remembered = False
            if committed is None or remembered is False:
                gone = gone or version
            elif gone is None:
                check_conflict(self._transaction, committed, version)
                check_reuse(self._transaction, committed, version, self._dropped_fields)
                if not isinstance(committed.operation, OtherOperation):
                    self._others[version] = committed.operation
                self._dropped_fields |= dropped_fields(self._transaction, committed)
                self._checked = version
        if gone is not None:
            raise self._gone(gone)
        return None

    def _load_transaction(self, history: History, version: int) -> Transaction | None:
        """Return the transaction of a version; None if it no longer exists."""
        try:
            return history.load_transaction(version)
        except VersionNotFoundError:
            return None
        except CorruptFileError as error:
            raise CommitConflictError(
                f"version {version} of {self._directory}, which another writer committed concurrently, does not"
                f" say what it changed ({error}); nothing was changed: run it again on the latest version"
            ) from error

    def _load(self, history: History, version: int) -> Manifest:
        try:
            return history.load(version)
        except VersionNotFoundError as error:
            raise self._gone(version) from error

    def _gone(self, version: int) -> CommitError:
        """Return the error for a missing version."""
        gone = (
            f"a cleanup removed version {version} of {self._directory} while this"
            f" {self._transaction.operation.name} was on its way, so that it cannot be told what has changed since"
        )
        if self._num_absent:
            return CommitStateUnknownError(
                f"{gone}; an earlier attempt, which the storage refused, may have landed all the same; no file was"
                " deleted. Look at the latest version before running it again"
            )
        return RetryableCommitConflictError(f"{gone}; nothing was changed: run it again on the latest version")

    def _recognise(self, history: History, version: int, committed: Transaction) -> Manifest | None:
        """Return a version that a transaction of this uuid made, or None if it is a stray, which is removed."""
        own = self._transaction
        same = committed.operation.name == own.operation.name and committed.data_files == own.data_files
        if not same and not is_settled_as(own.operation, committed.operation):
            raise CommitConflictError(
                f"version {version} of {self._directory} has the uuid {own.uuid} of this transaction but other content;"
                " nothing was changed: one uuid serves one commit, plan a new one"
            )
        found = self._load(history, version)
        try:
            content = self._store.read(history.manifest_path(version), MAX_MANIFEST_BYTES)
            before = history.load(version - 1) if version - 1 in history.names else None
            standing = find_standing(history, own, found, before)
        except LanceError as error:
            raise unknown(self._directory, found, str(error)) from error
        return found if self._is_in_history(standing, history, found, content) else None

    def _is_in_history(self, standing: Standing, history: History, made: Manifest, content: bytes) -> bool:
        """Return whether a version that this transaction made is part of the history; remove it if it is a stray."""
        if standing is Standing.UNKNOWN:
            raise unknown(self._directory, made, "the next of them does not remember it")
        if standing is Standing.STRAY:
            take_back(history, made, content)
        return standing is Standing.HISTORY

    def _apply(self, history: History, current: Manifest | None) -> Manifest:
        if current is not None:
            current.check_writable(f"the table {self._directory}")
            if self._marker is not None:
                self._marker.check(current)
            if self._precondition is not None:
                self._precondition(current)
        operation = self._transaction.operation
        if isinstance(operation, OtherOperation):
            raise TypeError(f"the operation {operation.name} cannot be committed")
        read_version = self._transaction.read_version
        if isinstance(operation, Rebasable) and current is not None and current.version > read_version:
            planned_on = self._load(history, read_version)
            operation = rebase(self._directory, operation, planned_on, current, self._rebased_files, self._others)
        if isinstance(operation, (Append, Update)) and current is not None:
            operation = settle(operation, current)
        landing = dataclasses.replace(self._transaction, operation=operation)
        return make_successor(
            current,
            self._apply_operation(operation, current, history),
            transaction_file=self._transaction.file_name,
            inline_transaction=serialize_transaction(landing),
            now_ns=time.time_ns(),
        )

    def _apply_operation(self, operation: Operation, current: Manifest | None, history: History) -> Manifest:
        if isinstance(operation, Overwrite) and current is None:
            current = operation.create()
        if isinstance(operation, Restore):
            operation = dataclasses.replace(operation, restored=history.load(operation.version))
        if current is None:
            raise DatasetNotFoundError(
                f"there is no Lance table at {self._directory} to {operation.name}; it was deleted"
            )
        made = operation.apply(current)
        check_file_versions(current, made)
        return made if self._marker is None else self._marker.mark(made)

    def _write_transaction(self, successor: Manifest) -> None:
        """Write the transaction file; again, if a rebase changed it.

        It is not synced to the disk if the manifest, which is synced, holds the same: readers use the manifest.
        """
        content = successor.inline_transaction or b""
        if content != self._transaction_written:
            self._transaction_written = content
            self._store.put(self._transaction_path, content, durable=not successor.stores_transaction)

    def _write_first_transaction(self) -> None:
        """Write the transaction file as it was planned, unless there is one: the transaction may have landed before."""
        content = serialize_transaction(self._transaction)
        with contextlib.suppress(ObjectExistsError):
            self._transaction_written = content
            self._store.put_if_absent(self._transaction_path, content)
            return
        self._transaction_written = None

    def _delete(self, paths: Iterable[str]) -> None:
        """Delete files of failed attempts."""
        self._store.delete_all(list(paths))

    def _create(self, history: History, successor: Manifest, current: Manifest | None) -> _Outcome:
        """Create the manifest, and determine whether it exists."""
        path, content = history.manifest_path(successor.version), serialize_manifest(successor)
        try:
            self._store.put_if_absent(path, content)
        except StorageError as error:
            outcome = self._read_back(path, content, error)
            if outcome is _Outcome.ABSENT:
                self._num_absent += 1
                if self._num_absent >= self._retry.max_absent:
                    raise
            if outcome is not _Outcome.LANDED:
                return outcome
        standing = prove(self._directory, self._transaction, successor, current)
        return _Outcome.LANDED if self._is_in_history(standing, history, successor, content) else _Outcome.FOREIGN

    def _read_back(self, path: str, content: bytes, cause: StorageError) -> _Outcome:
        try:
            found = self._store.read(path, MAX_MANIFEST_BYTES)
        except ObjectNotFoundError:
            return _Outcome.ABSENT
        except LanceError as error:
            if isinstance(cause, RefusedError) and not self._num_absent:
                raise StorageError(f"{cause}; nothing was committed") from error
            reason = textwrap.shorten(str(cause).rpartition(f"{path}: ")[2], 200, placeholder=" …")
            raise CommitStateUnknownError(
                f"the commit may have landed: neither creating {path} nor reading it back succeeded; no file was"
                f" deleted. Look at the latest version before running it again ({reason})"
            ) from error
        return _Outcome.LANDED if found == content else _Outcome.FOREIGN
