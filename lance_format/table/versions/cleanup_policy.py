"""Policy and results of a cleanup; the names are those of pylance."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Any, Self

from lance_format.errors import InvalidInputError

DEFAULT_AGE = datetime.timedelta(days=14)
"""How old a version has to be if nothing is asked for."""


@dataclass(frozen=True, slots=True)
class CleanupPolicy:
    """Versions that a cleanup removes. A version goes if all given conditions hold.

    Parameters
    ----------
    older_than : datetime.timedelta, optional
    retain_versions : int, optional
        How many of the latest versions stay.
    versions : frozenset of int, optional
        Only these.
    delete_unverified : bool
        Whether files that no version names go whatever their age; whoever writes to the table meanwhile loses data.
    error_if_tagged_old_versions : bool
        Whether it is an error that one of the versions has a tag; else it stays.
    delete_rate_limit : int, optional
        The most files that are deleted in a second.
    """

    older_than: datetime.timedelta | None = None
    retain_versions: int | None = None
    versions: frozenset[int] | None = None
    delete_unverified: bool = False
    error_if_tagged_old_versions: bool = True
    delete_rate_limit: int | None = None

    @classmethod
    def choose(cls, **conditions: Any) -> Self:
        """Return a policy of these parameters, where `versions` is any iterable, with the default for the age."""
        versions = conditions.pop("versions", None)
        if versions is None and all(conditions.get(name) is None for name in ("older_than", "retain_versions")):
            conditions["older_than"] = DEFAULT_AGE
        return cls(versions=None if versions is None else frozenset(versions), **conditions)

    def __post_init__(self) -> None:
        if self.older_than is not None and not isinstance(self.older_than, datetime.timedelta):
            raise InvalidInputError(f"older_than is {self.older_than!r}; a timedelta is needed")
        for name, value in (("retain_versions", self.retain_versions), ("delete_rate_limit", self.delete_rate_limit)):
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
                raise InvalidInputError(f"{name} is {value!r}; a whole number from 1 is needed")


@dataclass(frozen=True, slots=True)
class CleanupStats:
    """Counts of what a cleanup removed, or would remove.

    Parameters
    ----------
    bytes_removed : int
    old_versions : int
        How many versions were removed.
    data_files_removed, transaction_files_removed, index_files_removed, deletion_files_removed : int
    failed_deletes : int
        How many files the storage refused to delete; they are left over.
    """

    bytes_removed: int = 0
    old_versions: int = 0
    data_files_removed: int = 0
    transaction_files_removed: int = 0
    index_files_removed: int = 0
    deletion_files_removed: int = 0
    failed_deletes: int = 0


@dataclass(frozen=True, slots=True)
class CleanupCandidateFile:
    """A file that a cleanup would remove.

    Parameters
    ----------
    path : str
        In the store.
    kind : {"manifest", "data", "deletion", "transaction", "index", "temporary"}
    unverified : bool
        Whether no version names it, so that it may belong to a write in progress.
    size_bytes : int
    """

    path: str
    kind: str
    unverified: bool
    size_bytes: int


@dataclass(frozen=True, slots=True)
class CleanupReferencedBranch:
    """A branch that starts from a version which stays for that alone.

    Parameters
    ----------
    name : str
    referenced_version : int
    cleanup_candidate : bool
        Whether the branch would be cleaned up as well; never.
    """

    name: str
    referenced_version: int
    cleanup_candidate: bool = False


@dataclass(frozen=True, slots=True)
class CleanupExplanation:
    """Preview of a cleanup.

    Parameters
    ----------
    read_version : int
        The version from which on all stay.
    stats : CleanupStats
        Of all that would go.
    candidate_files : list of CleanupCandidateFile
        Some of what would go, if they were asked for.
    candidate_files_truncated : bool
        Whether there are more.
    candidate_file_limit : int
        How many there are at most.
    referenced_branches : list of CleanupReferencedBranch
    warnings : list of str
    """

    read_version: int
    stats: CleanupStats
    candidate_files: list[CleanupCandidateFile]
    candidate_files_truncated: bool
    candidate_file_limit: int
    referenced_branches: list[CleanupReferencedBranch]
    warnings: list[str]
