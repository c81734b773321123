"""Resolving references to versions: a number, a tag, or a version of a branch."""

from __future__ import annotations

import dataclasses
import datetime
from typing import Any

from lance_format.errors import DatasetNotFoundError, InvalidInputError, VersionNotFoundError
from lance_format.table.format.layout import branch_location, main_location
from lance_format.table.format.ref_names import MAIN, check_branch_name
from lance_format.table.format.table_directory import TableDirectory
from lance_format.table.versions.history import History, load_history
from lance_format.table.versions.refs import Branch, list_branches, list_tags, load_branch, load_tag
from lance_format.table.versions.table_version import TableVersion

Reference = int | str | tuple[str | None, int | None]
"""A version of the current branch, the name of a tag, or a branch and one of its versions.

A branch that is None or "main" is the main one; a version that is None is the latest.
"""


def main_of(table: TableVersion) -> TableDirectory:
    """Return the directory of a table's main branch."""
    return table.directory.main(table.manifest.branch)


def resolve_reference(table: TableVersion, reference: Reference | None) -> tuple[str | None, int | None]:
    """Return the branch and the version that a reference means; None for the latest version.

    Parameters
    ----------
    table : TableVersion
        A number alone is a version of its branch.
    reference : Reference, optional
        By default the version of `table`.

    Raises
    ------
    InvalidInputError
        If it is not a reference.
    VersionNotFoundError
        If there is no such tag.
    """
    if reference is None:
        return table.manifest.branch, table.manifest.version
    if isinstance(reference, str):
        main = main_of(table)
        tag = load_tag(main, reference)
        if tag is None:
            names = _shown(list(list_tags(main)))
            raise VersionNotFoundError(f"the table {main} has no tag {reference!r}; {names}")
        return tag.branch, tag.version
    if isinstance(reference, tuple) and len(reference) == 2:
        branch, version = reference
        if branch is not None and branch != MAIN:
            check_branch_name(branch)
        return (None if branch == MAIN else branch), None if version is None else _check_version(version)
    return table.manifest.branch, _check_version(reference)


def load_branch_history(table: TableVersion, branch: str | None) -> History:
    """List the versions of a branch, or of the main one.

    Raises
    ------
    VersionNotFoundError
        If there is no such branch.
    """
    if branch == table.manifest.branch:
        return table.history()
    main = main_of(table)
    history = load_history(main.branch(branch))
    if branch is not None and (not history.names or load_branch(main, branch) is None):
        names = _shown(list(list_whole_branches(main)))
        raise VersionNotFoundError(f"the table {main} has no branch {branch!r}; {names}")
    return history


def list_whole_branches(main: TableDirectory) -> dict[str, Branch]:
    """Read all branches of a table except the main one, without names that have no version (yet)."""
    branches = list_branches(main)
    return {name: branches[name] for name in branches if load_history(main.branch(name)).names}


def check_out(table: TableVersion, reference: Reference) -> TableVersion:
    """Return another version of a table, possibly of another branch.

    Raises
    ------
    InvalidInputError, VersionNotFoundError
        See `resolve_reference` and `load_branch_history`; or if the branch has no such version.
    """
    branch, version = resolve_reference(table, reference)
    history = load_branch_history(table, branch)
    manifest = history.load(history.latest if version is None else version)
    uri = branch_location(main_location(table.uri, table.manifest.branch), branch)
    return dataclasses.replace(table, uri=uri, directory=history.directory, manifest=manifest)


def check_out_as_of(table: TableVersion, time: datetime.datetime | str) -> TableVersion:
    """Return the latest version of the branch of a table that was committed before a time.

    Parameters
    ----------
    table : TableVersion
    time : datetime or str
        In local time unless it has a time zone. A string is in ISO 8601.

    Raises
    ------
    VersionNotFoundError
        If no version is older.
    """
    limit_ns = as_nanoseconds(time)
    history = table.history()
    if not history.names:
        raise DatasetNotFoundError(f"there is no Lance table at {table.root} anymore")
    for version in sorted(history.names, reverse=True):
        manifest = history.load(version)
        if manifest.timestamp_ns < limit_ns:
            return dataclasses.replace(table, manifest=manifest)
    seconds, nanoseconds = divmod(manifest.timestamp_ns, 10**9)
    first = datetime.datetime.fromtimestamp(seconds).replace(microsecond=nanoseconds // 1000)
    raise VersionNotFoundError(
        f"no version of {table.root} is as old as the time given: the earliest, {version}, was committed at {first}"
    )


def as_nanoseconds(time: Any) -> int:
    """Return a time, given as a datetime or a string, in nanoseconds since the epoch.

    Raises
    ------
    InvalidInputError
        If it is neither, or the string is no time.
    """
    if isinstance(time, str):
        try:
            time = datetime.datetime.fromisoformat(time)
        except ValueError as error:
            raise InvalidInputError(f"{time!r} is no time; write it like 2026-01-31 12:00:00") from error
    if not isinstance(time, datetime.datetime):
        raise InvalidInputError(f"a time is needed, as a datetime or a string; it is {time!r}")
    since = time.astimezone(datetime.UTC) - datetime.datetime.fromtimestamp(0, datetime.UTC)
    return (since // datetime.timedelta(microseconds=1)) * 1000


def _check_version(version: Any) -> int:
    if isinstance(version, bool) or not isinstance(version, int):
        raise InvalidInputError(
            f"version is {version!r}; a whole number, the name of a tag, or a tuple of branch and version is needed"
        )
    return version


def _shown(names: list[str]) -> str:
    if not names:
        return "it has none"
    return f"it has {', '.join(names[:20])}{' …' if len(names) > 20 else ''}"
