"""`restore`, `history`, and the procedures for tags and branches."""

from __future__ import annotations

import dataclasses
import datetime
import itertools

from pyspark.sql.types import LongType, StringType

from connector.metadata.tables import TABLES
from connector.options.snapshot import open_snapshot
from connector.procedures.declaring import Result, Target, columns
from lance_format import InvalidInputError, LanceDataset

RESTORE_SCHEMA = columns(restored_version=LongType(), version=LongType())
TAG_SCHEMA = columns(name=StringType(), branch=StringType(), version=LongType())
BRANCH_SCHEMA = columns(name=StringType(), parent_branch=StringType(), parent_version=LongType())
NAME_SCHEMA = columns(name=StringType())


def restore(target: Target, *, version: int | None, tag: str | None, timestamp: datetime.datetime | None) -> Result:
    """Make an old version the latest one, as a new version.

    Parameters
    ----------
    target : Target
    version, tag, timestamp
        One of them names the version.

    Raises
    ------
    InvalidInputError
        If not exactly one is given, or the tag names a version of another branch.
    """
    given = {"version": version, "tag": tag, "timestamp": timestamp}
    named = [name for name, value in given.items() if value is not None]
    if len(named) != 1:
        raise InvalidInputError(
            f"restore takes one of the arguments version, tag and timestamp, not {' and '.join(named) or 'none'}"
        )
    if tag is not None:
        dataset = _on_branch(target, tag)
    else:
        dataset = open_snapshot(dataclasses.replace(target.options, version=version, timestamp=timestamp))
    restored = dataset.version
    dataset.restore()
    return Result(RESTORE_SCHEMA, [(restored, dataset.version)])


def _on_branch(target: Target, tag: str) -> LanceDataset:
    """Open the version that a tag names, if it is one of the branch of the target."""
    dataset = target.open()
    found = dataset.checkout_version(tag)
    branch = dataset.tags.list()[tag]["branch"]
    if branch != target.options.branch:
        raise InvalidInputError(
            f"the tag {tag!r} names a version of {branch or 'the main branch'!r}, and a branch can be restored to its"
            f" own versions only: name the table as t{'' if branch is None else f'.branch_{branch}'}"
        )
    return found


def history(target: Target, *, limit: int | None) -> Result:
    """List versions, latest first, as the metadata table `history` does.

    Raises
    ------
    InvalidInputError
        If the limit is negative.
    """
    if limit is not None and limit < 0:
        raise InvalidInputError(f"limit is {limit}; a whole number from 0 on is needed")
    table = TABLES["history"]
    rows = itertools.islice(table.rows(target.open()), limit)
    return Result(table.schema, list(rows))


def create_tag(target: Target, *, name: str, version: int | None) -> Result:
    """Name a version, by default the latest; see `Tags.create`."""
    dataset = target.open()
    dataset.tags.create(name, version)
    return _describe_tag(dataset, name)


def update_tag(target: Target, *, name: str, version: int | None) -> Result:
    """Let a tag name another version, by default the latest; see `Tags.update`."""
    dataset = target.open()
    dataset.tags.update(name, version)
    return _describe_tag(dataset, name)


def delete_tag(target: Target, *, name: str) -> Result:
    """Delete a tag."""
    dataset = target.open()
    described = _describe_tag(dataset, name)
    dataset.tags.delete(name)
    return described


def _describe_tag(dataset: LanceDataset, name: str) -> Result:
    dataset.tags.get_version(name)  # Raises an error that lists the tags.
    tag = dataset.tags.list()[name]
    return Result(TAG_SCHEMA, [(name, tag["branch"], tag["version"])])


def create_branch(target: Target, *, name: str, version: int | None, tag: str | None) -> Result:
    """Create a branch from a version or a tag, by default from the latest version.

    Parameters
    ----------
    target : Target
    name : str
    version, tag
        One of them may name the version.

    Raises
    ------
    InvalidInputError
        If both are given, the branch exists, or the name is not allowed.
    """
    if version is not None and tag is not None:
        raise InvalidInputError("create_branch takes one of the arguments version and tag, not both")
    dataset = target.open()
    dataset.create_branch(name, version if tag is None else tag)
    branch = dataset.branches.list()[name]
    return Result(BRANCH_SCHEMA, [(name, branch["parent_branch"], branch["parent_version"])])


def delete_branch(target: Target, *, name: str) -> Result:
    """Delete a branch with its versions and files."""
    target.open().branches.delete(name)
    return Result(NAME_SCHEMA, [(name,)])
