"""Proof that a created manifest is a version of the history, and its removal otherwise.

A writer looks up the latest version N and creates the manifest N + 1. If it is delayed in between, other writers may
commit N + 1, N + 2 … and a cleanup may remove N + 1: the creation succeeds all the same. Such a stray is a version that
no other was made from, so its changes are lost. A cleanup never removes the latest version, so a later version exists
and stays in that case. A listing after the creation without a later version is therefore sufficient proof. That is the
common case.

If the listing shows later versions, other writers may simply have been fast. The lowest later version then decides, by
the ancestors that it remembers. If another library made it, it proves descent by a file that only the new version can
have contributed, or by equalling the result of its transaction on the new version. Otherwise the outcome is unknown,
and nothing is deleted.

A stray is removed, but never another writer's manifest, nor one that got a tag or a branch in between. A stray whose
writer died is an old version like others: a cleanup removes it, and no commit relies on it, because the latest version
remembers another one of its number. The remaining race is a restore of a stray while it is removed.
"""

from __future__ import annotations

import contextlib
import dataclasses
import enum

from lance_format.errors import CommitStateUnknownError, LanceError, VersionNotFoundError
from lance_format.object_store import ObjectExistsError, ObjectNotFoundError
from lance_format.table.format.fragment_list import FragmentList
from lance_format.table.format.lineage import is_ancestor
from lance_format.table.format.manifest import Manifest
from lance_format.table.format.table_directory import TableDirectory
from lance_format.table.transaction.batch_marker import BatchMarker
from lance_format.table.transaction.operations import OtherOperation, Restore
from lance_format.table.transaction.transaction import Transaction
from lance_format.table.versions.history import History, load_history
from lance_format.table.versions.named_files import named_files
from lance_format.table.versions.refs import list_named_versions

_MAX_LISTINGS = 3
_STATE = (
    "schema",
    "file_version",
    "max_fragment_id",
    "config",
    "table_metadata",
    "stable_row_ids",
    "next_row_id",
    "branch",
    "bases",
)


class Standing(enum.Enum):
    """The standing of a manifest among the versions of its table."""

    HISTORY = enum.auto()
    STRAY = enum.auto()
    UNKNOWN = enum.auto()


def prove(directory: TableDirectory, transaction: Transaction, made: Manifest, before: Manifest | None) -> Standing:
    """Determine whether a manifest that was just created is part of the history.

    Parameters
    ----------
    directory : TableDirectory
    transaction : Transaction
        The transaction that made the version.
    made : Manifest
    before : Manifest, optional
        The preceding version; None for the first one.

    Raises
    ------
    CommitStateUnknownError
        If the later versions cannot be listed or read.
    """
    reason = ""
    for _ in range(_MAX_LISTINGS):
        try:
            history = load_history(directory)
            if history.latest >= made.version:
                return find_standing(history, transaction, made, before)
            reason = "listings do not show it"
        except LanceError as error:
            reason = str(error)
    raise unknown(directory, made, reason)


def unknown(directory: TableDirectory, made: Manifest, reason: str) -> CommitStateUnknownError:
    """Return the error for a version that may be part of the history.

    Parameters
    ----------
    directory : TableDirectory
    made : Manifest
    reason : str
        Why it is not known.
    """
    return CommitStateUnknownError(
        f"version {made.version} of {directory} was created, but it cannot be told whether later versions were made of"
        f" it; no file was deleted. Look at the latest version before running this again ({reason})"
    )


def find_standing(history: History, transaction: Transaction, made: Manifest, before: Manifest | None) -> Standing:
    """Determine whether a version is part of the history; see `prove`.

    Raises
    ------
    LanceError
        If that is undecidable, because a later version is unreadable, or all of them were removed since the listing.
    """
    if history.latest == made.version:
        return Standing.HISTORY if _stands_on_its_table(history, transaction, made) else Standing.STRAY
    later = _load_next(history, made.version)
    remembered = is_ancestor(later, made.version, transaction.uuid)
    if remembered is not None:
        return Standing.HISTORY if remembered else Standing.STRAY
    if _has_files_of(later, made, before, history.directory) or _continues(history, later, made):
        return Standing.HISTORY
    return Standing.UNKNOWN


def take_back(history: History, made: Manifest, content: bytes) -> None:
    """Delete the manifest of a stray.

    Parameters
    ----------
    history : History
        A listing of its table, at any time.
    made : Manifest
    content : bytes
        Content of the manifest's file. Another file of its name is left alone.

    Raises
    ------
    CommitStateUnknownError
        If it remains, because it cannot be deleted, or got a tag or a branch.
    """
    store, path = history.directory.store, history.manifest_path(made.version)
    stray = f"version {made.version} of {history.root} came too late to be part of the history, since others committed"
    try:
        if not _is_named(history.directory, made):
            store.delete_exact(path, content)
            if not _is_named(history.directory, made):
                return
            with contextlib.suppress(ObjectExistsError):
                store.put_if_absent(path, content)
    except LanceError as error:
        raise CommitStateUnknownError(
            f"{stray} later versions, and could not be removed ({error}); no file was deleted. A cleanup removes it;"
            " look at the latest version before running this again"
        ) from error
    raise CommitStateUnknownError(
        f"{stray} later versions, and has got a tag or a branch; no file was deleted. Look at the latest version before"
        " running this again"
    )


def _stands_on_its_table(history: History, transaction: Transaction, made: Manifest) -> bool:
    """Return whether the latest version belongs to a table that still exists: a drop leaves no transaction file."""
    if made.version == 1 or made.version - 1 in history.names:
        return True
    with contextlib.suppress(ObjectNotFoundError):
        history.directory.store.size(history.directory.transaction(transaction.file_name))
        return True
    return False


def _load_next(history: History, version: int) -> Manifest:
    """Load the lowest version above another one."""
    for later in (number for number in history.names if number > version):
        with contextlib.suppress(VersionNotFoundError):  # A cleanup removed it since it was listed.
            return history.load(later)
    raise VersionNotFoundError(f"the versions of {history.root} after {version} are gone")


def _has_files_of(later: Manifest, made: Manifest, before: Manifest | None, directory: TableDirectory) -> bool:
    """Return whether a version names a file that another one added."""
    if before is None and made.version > 1:
        return False
    known = set() if before is None else _files(before, made, directory)
    return not (_files(made, before, directory) - known).isdisjoint(_files(later, before, directory))


def _files(manifest: Manifest, other: Manifest | None, directory: TableDirectory) -> set[str]:
    """Return the files of a version, except those of fragments that another one has in the same form."""
    fragments = manifest.fragments if other is None else FragmentList(manifest.fragments.beyond(other.fragments))
    return set(named_files(dataclasses.replace(manifest, fragments=fragments, transaction_file=""), directory))


def _continues(history: History, later: Manifest, made: Manifest) -> bool:
    """Return whether a version is the result of its transaction on the preceding one."""
    if later.version != made.version + 1:
        return False
    try:
        transaction = history.load_transaction(later.version)
        operation, marker = transaction.operation, BatchMarker.of(transaction.transaction_properties)
        if isinstance(operation, OtherOperation | Restore):
            return False
        expected = operation.apply(made)
        expected = expected if marker is None else marker.mark(expected)
    except LanceError:
        return False
    return (
        all(getattr(expected, name) == getattr(later, name) for name in _STATE)
        and expected.fragments.by_id() == later.fragments.by_id()
        and {index.uuid for index in expected.indices} == {index.uuid for index in later.indices}
    )


def _is_named(directory: TableDirectory, made: Manifest) -> bool:
    return made.version in list_named_versions(directory.main(made.branch), made.branch)
