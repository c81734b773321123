"""Cleanup in steps: old versions are removed first, then tasks delete the files that nothing needs since.

It differs from other changes in two ways. Planning removes manifests, because only their removal decides which files
are garbage. Its commit makes no version. Files that a task does not delete are left for the next cleanup.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence

from lance_format.errors import InvalidInputError
from lance_format.lazy_dataclasses import dataclass
from lance_format.table.transaction.operations import Operation
from lance_format.table.versions.cleanup.cleanup import begin_cleanup
from lance_format.table.versions.cleanup.cleanup_policy import CleanupPolicy, CleanupStats
from lance_format.table.versions.cleanup.garbage import (
    GarbageFile,
    is_named,
    no_counts,
    remove_directories,
    remove_files,
)
from lance_format.table.versions.named_files import named_files
from lance_format.table.versions.open_table import OpenTable
from lance_format.table.versions.planned_change import ChangePlan, ChangeTask
from lance_format.table.versions.table_version import Draft, TableVersion

FILES_PER_TASK = 10_000


@dataclass(frozen=True, slots=True)
class DeletedFiles:
    """Files that a task has deleted. Can be pickled.

    Parameters
    ----------
    number : int
        Of the task.
    uuid : str
        Of the plan.
    counts : mapping of str to int
        By the names of `CleanupStats`.
    directories : frozenset of str
        Directories that may be empty now; paths in the store.
    """

    number: int
    uuid: str
    counts: Mapping[str, int]
    directories: frozenset[str]


@dataclass(frozen=True, slots=True)
class DeleteFilesTask(ChangeTask[DeletedFiles]):
    """Task that deletes some unneeded files, except those that newer versions name.

    Parameters
    ----------
    read_version : int
        The oldest version that stays in any case.
    number : int
        Tells the tasks of the plan apart.
    uuid : str
        Of the plan.
    files : tuple of GarbageFile
    known_version : int
        The latest version when they were found.
    rate : float, optional
        The most files that are deleted in a second.
    """

    read_version: int
    number: int
    uuid: str
    files: tuple[GarbageFile, ...]
    known_version: int
    rate: float | None = None

    def run(self, table: TableVersion) -> DeletedFiles:
        """Delete the files; see `execute`."""
        named: set[str] = set()
        history = table.history()
        later = (version for version in history.names if version > self.known_version)
        for _, manifest in history.read_each(history.load, later):
            named.update(named_files(manifest, table.directory))
        garbage = [file for file in self.files if not is_named(file.file, table.directory, named)]
        counts = no_counts()
        directories = remove_files(table.directory, garbage, counts, self.rate)
        return DeletedFiles(self.number, self.uuid, counts, frozenset(directories))


@dataclass(frozen=True, slots=True)
class CleanupPlan(ChangePlan[DeletedFiles, CleanupStats]):
    """Cleanup whose versions have been removed. Made by `plan_cleanup`.

    Parameters
    ----------
    read_version : int
        The oldest version that stays in any case.
    uuid : str
    removed : CleanupStats
        Of the versions.
    tasks : tuple of DeleteFilesTask
    """

    read_version: int
    uuid: str
    removed: CleanupStats
    tasks: tuple[DeleteFilesTask, ...]

    def input_bytes(self, dataset: OpenTable) -> int | None:  # noqa: ARG002
        """Return 0 for a single task: it reads no data. The work of several is not measured in bytes."""
        return 0 if len(self.tasks) < 2 else None

    def operation(self, draft: Draft, results: Sequence[DeletedFiles]) -> Operation | None:
        """Remove directories that have become empty. There is nothing to commit."""
        remove_directories(draft.table.store, frozenset[str]().union(*(result.directories for result in results)))
        return None

    def outcome(self, results: Sequence[DeletedFiles]) -> CleanupStats:
        """Count the removed versions and files."""
        counts = dict(self.removed)
        for result in results:
            for name, count in result.counts.items():
                counts[name] += count
        return CleanupStats(**counts)


def plan_cleanup(table: TableVersion, policy: CleanupPolicy, files_per_task: int = FILES_PER_TASK) -> CleanupPlan:
    """Remove old versions of a branch, and plan to delete the files that nothing needs since.

    Parameters
    ----------
    table : TableVersion
        This version and later ones stay.
    policy : CleanupPolicy
        Its rate is that of all tasks together.
    files_per_task : int

    Raises
    ------
    InvalidInputError
        If one of the versions has a tag and the policy forbids that, or `files_per_task` is invalid. Nothing was
        removed.
    CorruptFileError, NotSupportedError
        If a version cannot be read, so that its files are unknown. Nothing was removed.
    """
    if isinstance(files_per_task, bool) or not isinstance(files_per_task, int) or files_per_task < 1:
        raise InvalidInputError(f"files_per_task is {files_per_task!r}; a whole number from 1 on is needed")
    version, latest = table.manifest.version, table.history().latest
    garbage, removed = begin_cleanup(table.directory, table.manifest.branch, version, policy)
    groups = [tuple(garbage[start : start + files_per_task]) for start in range(0, len(garbage), files_per_task)]
    rate = None if policy.delete_rate_limit is None else policy.delete_rate_limit / max(len(groups), 1)
    identity = str(uuid.uuid4())
    tasks = tuple(
        DeleteFilesTask(version, number, identity, group, latest, rate) for number, group in enumerate(groups)
    )
    return CleanupPlan(version, identity, removed, tasks)
