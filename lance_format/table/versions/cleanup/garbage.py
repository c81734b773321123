"""Files that nothing needs, and their deletion."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterable, Set

from lance_format.lazy_dataclasses import dataclass
from lance_format.object_store import ObjectInfo, ObjectStore, remove_if_empty
from lance_format.progress import Work, advance
from lance_format.table.format.file_kinds import FileKind, OwnFile
from lance_format.table.format.table_directory import TableDirectory
from lance_format.table.versions.cleanup.cleanup_policy import CleanupStats

_FILES_AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class GarbageFile:
    """File that may be deleted. Can be pickled.

    Parameters
    ----------
    info : ObjectInfo
    file : OwnFile
    is_known : bool
        Whether a removed version names it.
    """

    info: ObjectInfo
    file: OwnFile
    is_known: bool

    def count(self, counts: dict[str, int]) -> None:
        """Count it as removed, by the names of `CleanupStats`."""
        counts["bytes_removed"] += self.info.size_bytes
        if self.file.kind is not FileKind.TEMPORARY:
            counts[f"{self.file.kind.value}_files_removed"] += 1


def is_named(file: OwnFile, directory: TableDirectory, names: Set[str]) -> bool:
    """Return whether versions name the file or its owner; see `named_files`."""
    return directory.path(file.owner) in names or directory.path(file.path) in names


def no_counts() -> dict[str, int]:
    """Return zeros, by the names of `CleanupStats`."""
    return dict.fromkeys((field.name for field in dataclasses.fields(CleanupStats)), 0)


def remove_files(
    directory: TableDirectory, garbage: Iterable[GarbageFile], counts: dict[str, int], rate: float | None
) -> set[str]:
    """Delete files.

    Parameters
    ----------
    directory : TableDirectory
    garbage : iterable of GarbageFile
    counts : dict of str to int
        Counts of deleted files are added here, by the names of `CleanupStats`.
    rate : float, optional
        Maximum number of files to delete per second.

    Returns
    -------
    set of str
        Directories that may be empty now.
    """
    directories: set[str] = set()
    files = list(garbage)
    at_once = _FILES_AT_ONCE if rate is None else max(1, min(int(rate), _FILES_AT_ONCE))
    for start in range(0, len(files), at_once):
        some = files[start : start + at_once]
        if rate is not None:
            time.sleep(len(some) / rate)
        failed = set(directory.store.delete_all([each.info.path for each in some]))
        counts["failed_deletes"] += len(failed)
        for each in some:
            advance(Work.DELETING, 0, each.info.size_bytes)
            if each.info.path not in failed:
                each.count(counts)
                directories |= directories_of([each.info.path], directory)
    return directories


def directories_of(paths: Iterable[str], directory: TableDirectory) -> set[str]:
    """Return the directories of some files, such as those of indices, except those directly below that of the table."""
    found: set[str] = set()
    for path in paths:
        above = path.rpartition("/")[0]
        while "/" in directory.relative(above):
            found.add(above)
            above = above.rpartition("/")[0]
    return found


def remove_directories(store: ObjectStore, directories: Iterable[str]) -> None:
    """Remove directories that are empty."""
    remove_if_empty(store, sorted(directories, key=len, reverse=True))
