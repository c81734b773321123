"""Policy and results of a cleanup; the names are those of pylance."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from typing import Self, TypedDict, Unpack

from lance_format.errors import InvalidInputError
from lance_format.lazy_dataclasses import dataclass
from lance_format.table.versions.change_result import ChangeResult

DEFAULT_AGE = datetime.timedelta(days=14)
"""The default minimum age of a version to remove."""


class _Switches(TypedDict, total=False):
    delete_unverified: bool
    error_if_tagged_old_versions: bool
    delete_rate_limit: int | None


class CleanupKeywords(_Switches, total=False):
    """Conditions of a cleanup besides age and number; see `LanceDataset.cleanup_old_versions`."""

    versions: Iterable[int] | None


@dataclass(frozen=True, slots=True)
class CleanupPolicy:
    """Conditions on the versions that a cleanup removes. A version must meet all given ones.

    Parameters
    ----------
    older_than : datetime.timedelta, optional
    retain_versions : int, optional
        Number of latest versions to keep.
    versions : frozenset of int, optional
        The versions to consider.
    delete_unverified : bool
        Whether to delete files that no version names at any age. Concurrent writers lose data then.
    error_if_tagged_old_versions : bool
        Whether a tag on one of the versions is an error. Otherwise the version is kept.
    delete_rate_limit : int, optional
        Maximum number of files to delete per second.
    """

    older_than: datetime.timedelta | None = None
    retain_versions: int | None = None
    versions: frozenset[int] | None = None
    delete_unverified: bool = False
    error_if_tagged_old_versions: bool = True
    delete_rate_limit: int | None = None

    @classmethod
    def choose(
        cls,
        older_than: datetime.timedelta | None,
        retain_versions: int | None,
        *,
        versions: Iterable[int] | None = None,
        **conditions: Unpack[_Switches],
    ) -> Self:
        """Return a policy of these parameters, with the default for the age if no condition chooses versions.

        Parameters
        ----------
        older_than, retain_versions, versions, **conditions
            See the class.

        Raises
        ------
        InvalidInputError
            If one is invalid.
        """
        chosen = None if versions is None else list(versions)
        if chosen is not None and not all(isinstance(version, int) for version in chosen):
            raise InvalidInputError(f"versions is {repr(chosen)[:200]}; whole numbers are needed")
        if chosen is None and older_than is None and retain_versions is None:
            older_than = DEFAULT_AGE
        return cls(older_than, retain_versions, None if chosen is None else frozenset(chosen), **conditions)

    def __post_init__(self) -> None:
        if self.older_than is not None and not isinstance(self.older_than, datetime.timedelta):
            raise InvalidInputError(f"older_than is {self.older_than!r}; a timedelta is needed")
        for name, value in (("retain_versions", self.retain_versions), ("delete_rate_limit", self.delete_rate_limit)):
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
                raise InvalidInputError(f"{name} is {value!r}; a whole number from 1 is needed")


@dataclass(frozen=True, eq=False)
class CleanupStats(ChangeResult):
    """Counts of what a cleanup removed, or would remove.

    Parameters
    ----------
    bytes_removed : int
    old_versions : int
        Number of removed versions.
    data_files_removed, transaction_files_removed, index_files_removed, deletion_files_removed : int
    failed_deletes : int
        Number of files that the storage refused to delete.
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
    kind : {"manifest", "data", "deletion", "transaction", "index", "temporary"}
    unverified : bool
        Whether no version names the file, so that it may belong to a write in progress.
    size_bytes : int
    """

    path: str
    kind: str
    unverified: bool
    size_bytes: int


@dataclass(frozen=True, slots=True)
class CleanupReferencedBranch:
    """A branch that starts from a version, which is kept only for that reason.

    Parameters
    ----------
    name : str
    referenced_version : int
    cleanup_candidate : bool
        Always False: the branch would not be cleaned up.
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
        The first version that is kept with all later ones.
    stats : CleanupStats
        Counts of everything that would be removed.
    candidate_files : list of CleanupCandidateFile
        Some of the files that would be removed, if requested.
    candidate_files_truncated : bool
        Whether there are more candidate files.
    candidate_file_limit : int
        Maximum number of candidate files.
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
