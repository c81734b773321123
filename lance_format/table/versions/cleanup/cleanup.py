"""Cleanup: removal of old versions and of the files that no other version needs.

Deletable files. A file that a kept version names is kept. A file that only removed versions name belongs to no write in
progress, and is deleted. A file that no version names may belong to a pending commit: it is kept until it is a week
old. Files with names that the table layer does not give are kept, and so are those that detached versions and other
branches name, independent of their age.

Concurrent changes. Manifests are deleted first, the oldest ones before others, so that no visible version lacks files,
even after an interrupt. A writer that tags a version or starts a branch from it checks the version after the tag or the
branch exists. Tags and branches are therefore listed again after manifests are deleted, and a manifest that was named
in between is restored. Versions are listed again before files are deleted, and files of new ones are kept. The
remaining race is a restore of a version while it is removed.
"""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field

from lance_format.errors import InvalidInputError, LanceError
from lance_format.lazy_dataclasses import dataclass
from lance_format.metadata_values import parse_unsigned
from lance_format.object_store import ObjectExistsError, ObjectNotFoundError, map_together, remove_empty_tree
from lance_format.progress import Work, expect
from lance_format.table.format.duration import parse_duration
from lance_format.table.format.file_kinds import classify
from lance_format.table.format.manifest import Manifest
from lance_format.table.format.manifest_file import MAX_MANIFEST_BYTES
from lance_format.table.format.table_directory import TableDirectory
from lance_format.table.versions.cleanup.cleanup_policy import (
    CleanupCandidateFile,
    CleanupExplanation,
    CleanupPolicy,
    CleanupReferencedBranch,
    CleanupStats,
)
from lance_format.table.versions.cleanup.garbage import (
    GarbageFile,
    is_named,
    no_counts,
    remove_directories,
    remove_files,
)
from lance_format.table.versions.cleanup.tag_check import contradicting_tags
from lance_format.table.versions.history import History, load_detached, load_history
from lance_format.table.versions.named_files import SharedFragments, branch_roots, named_files, owner_of
from lance_format.table.versions.refs import list_branches, list_tags

_DEFAULT_AUTOMATIC_AGE = "14days"
UNVERIFIED_AGE_SECONDS = 7 * 24 * 3600
"""Files that no version names belong to no write in progress from this age on."""

_MAX_VERSIONS_AT_ONCE = 64
_MAX_BYTES_AT_ONCE = 64 << 20


def clean_up(directory: TableDirectory, branch: str | None, kept_from: int, policy: CleanupPolicy) -> CleanupStats:
    """Remove old versions of a branch, and files that no version needs.

    Parameters
    ----------
    directory : TableDirectory
    branch : str or None
        The name of the branch; None for the main one.
    kept_from : int
        A version of the branch. It and later ones are kept.
    policy : CleanupPolicy

    Raises
    ------
    InvalidInputError
        If one of the versions has a tag, unless the policy allows that. Nothing is removed.
    CorruptFileError, NotSupportedError
        If a version cannot be read, so that its files are unknown, or a tag does not agree with its version. Nothing is
        removed.
    """
    return _Cleanup(directory, branch, kept_from, policy).run()


def begin_cleanup(
    directory: TableDirectory, branch: str | None, kept_from: int, policy: CleanupPolicy
) -> tuple[list[GarbageFile], CleanupStats]:
    """Remove old versions of a branch, and return the files that nothing needs since.

    Parameters
    ----------
    directory, branch, kept_from, policy
        See `clean_up`.

    Returns
    -------
    list of GarbageFile
        For `remove_files`.
    CleanupStats
        Of the versions.

    Raises
    ------
    InvalidInputError, CorruptFileError, NotSupportedError
        As `clean_up` does.
    """
    cleanup = _Cleanup(directory, branch, kept_from, policy)
    garbage = cleanup.remove_versions()
    return garbage, cleanup.stats


def explain_cleanup(
    directory: TableDirectory, branch: str | None, kept_from: int, policy: CleanupPolicy, max_files: int
) -> CleanupExplanation:
    """Return what `clean_up` would remove, without removing it.

    Parameters
    ----------
    directory, branch, kept_from, policy
        See `clean_up`.
    max_files : int
        Maximum number of files to name.

    Raises
    ------
    InvalidInputError, CorruptFileError, NotSupportedError
    """
    return _Cleanup(directory, branch, kept_from, policy).explain(max_files)


@dataclass(slots=True)
class _Names:
    """Named versions of one branch: by tags, and by the branches that start from them."""

    tags: dict[int, list[str]] = field(default_factory=dict)
    branches: set[int] = field(default_factory=set)

    @property
    def versions(self) -> set[int]:
        return self.branches.union(self.tags)


class _Cleanup:
    """One cleanup."""

    def __init__(self, directory: TableDirectory, branch: str | None, kept_from: int, policy: CleanupPolicy) -> None:
        self._directory = directory
        self._store = directory.store
        self._branch = branch
        self._kept_from = kept_from
        self._policy = policy
        self._main = directory.main(branch)
        self._started = time.time()
        self._used: set[str] = set()
        self._used_fragments = SharedFragments()
        self._known: set[str] = set()
        self._known_fragments = SharedFragments()
        self._seen: set[str] = set()
        self._held: set[int] = set()
        self._rate = policy.delete_rate_limit
        self._counts = no_counts()

    @property
    def stats(self) -> CleanupStats:
        return CleanupStats(**self._counts)

    def run(self) -> CleanupStats:
        garbage = self.remove_versions()
        expect(Work.DELETING, None, sum(each.info.size_bytes for each in garbage))
        remove_directories(self._store, remove_files(self._directory, garbage, self._counts, self._rate))
        return self.stats

    def remove_versions(self) -> list[GarbageFile]:
        """Remove versions, and return the files that nothing needs since."""
        roots = branch_roots(self._main)
        history = load_history(self._directory)
        old = self._inspect(history)
        self._protect_others(roots)
        garbage = list(self._garbage(roots))
        self._remove_versions(history, old)
        self._protect_news()
        for directory in (self._directory.indices, self._directory.data):  # Killed writers left empty ones there.
            remove_empty_tree(self._store, directory)
        return [each for each in garbage if not is_named(each.file, self._directory, self._used)]

    def explain(self, max_files: int) -> CleanupExplanation:
        roots = branch_roots(self._main)
        history = load_history(self._directory)
        found = []
        for version in self._inspect(history):
            path = history.manifest_path(version)
            with contextlib.suppress(ObjectNotFoundError):  # Another cleanup was here.
                found.append(CleanupCandidateFile(path, "manifest", False, self._store.size(path)))
                self._count_version(found[-1].size_bytes)
        self._protect_others(roots)
        for each in self._garbage(roots):
            each.count(self._counts)
            path, size = each.info.path, each.info.size_bytes
            found.append(CleanupCandidateFile(path, each.file.kind.value, not each.is_known, size))
        is_cut = 0 < max_files < len(found)
        return CleanupExplanation(
            self._kept_from,
            self.stats,
            found[:max_files],
            is_cut,
            max_files,
            [
                CleanupReferencedBranch(name, started.parent_version)
                for name, started in sorted(list_branches(self._main).items())
                if started.parent_branch == self._branch and started.parent_version in self._held
            ],
            [f"candidate_files truncated to {max_files} entries"] if is_cut else [],
        )

    def _inspect(self, history: History) -> list[int]:
        """Return the versions to remove, and record the files that they and the others name."""
        for error in contradicting_tags(self._main, list_tags(self._main), self._branch, history):
            raise error
        named = self._load_names()
        candidates = self._candidates(history)
        old, tagged = [], []
        for version, manifest in history.read_each(history.load, history.names):
            self._seen.add(history.manifest_path(version))
            wanted = version in candidates and self._is_old(manifest)
            if wanted and version in named.tags:
                tagged.append(version)
            if wanted and version in named.branches:
                self._held.add(version)
            if wanted and version not in named.versions:
                old.append(version)
                self._known.update(named_files(manifest, self._directory, self._known_fragments))
            else:
                self._used.update(named_files(manifest, self._directory, self._used_fragments))
        if tagged and self._policy.error_if_tagged_old_versions:
            tags = ", ".join(f"{name!r} ({version})" for version in tagged for name in named.tags[version])
            raise InvalidInputError(
                f"versions of {self._directory} to be removed have tags: {tags}; delete the tags, or pass"
                " error_if_tagged_old_versions=False to keep these versions. Nothing was removed"
            )
        return old

    def _candidates(self, history: History) -> set[int]:
        """Return the versions that may be removed according to their numbers."""
        found = {version for version in history.names if version < min(self._kept_from, history.latest)}
        if self._policy.retain_versions is not None:
            found -= set(sorted(history.names)[-self._policy.retain_versions :])
        if self._policy.versions is not None:
            found &= self._policy.versions
        return found

    def _is_old(self, manifest: Manifest) -> bool:
        age = self._policy.older_than
        return age is None or manifest.timestamp_ns / 1e9 < self._started - age.total_seconds()

    def _load_names(self) -> _Names:
        names = _Names()
        for name, tag in list_tags(self._main).items():
            if tag.branch == self._branch:
                names.tags.setdefault(tag.version, []).append(name)
        for started in list_branches(self._main).values():
            if started.parent_branch == self._branch:
                names.branches.add(started.parent_version)
        return names

    def _protect_others(self, roots: Iterable[str]) -> None:
        """Record the files of all versions of other branches, and of detached versions, except those read before."""
        for root in roots:
            directory = self._directory.moved(root)
            for path, manifest in load_detached(directory, self._seen):
                self._protect(path, manifest, directory)
            if directory != self._directory:
                self._protect_history(load_history(directory))

    def _protect_news(self) -> None:
        """Record the files of versions committed since."""
        self._protect_history(load_history(self._directory))
        self._protect_others(branch_roots(self._main))

    def _protect_history(self, history: History) -> None:
        new = [version for version in history.names if history.manifest_path(version) not in self._seen]
        for version, manifest in history.read_each(history.load, new):
            self._protect(history.manifest_path(version), manifest, history.directory)

    def _protect(self, path: str, manifest: Manifest, directory: TableDirectory) -> None:
        self._seen.add(path)
        self._used.update(named_files(manifest, directory, self._used_fragments))

    def _garbage(self, roots: frozenset[str]) -> Iterator[GarbageFile]:
        """Yield the files that may be deleted according to the versions read so far."""
        verified = self._started - UNVERIFIED_AGE_SECONDS
        for info in self._store.list_tree(self._directory.root):
            file = classify(self._directory.relative(info.path))
            if (
                file is None
                or is_named(file, self._directory, self._used)
                or owner_of(info.path, roots) != self._directory.root
            ):
                continue
            known = self._directory.path(file.owner) in self._known
            if known or self._policy.delete_unverified or info.modified < verified:
                yield GarbageFile(info, file, known)

    def _remove_versions(self, history: History, old: Sequence[int]) -> None:
        """Delete manifests, some of the oldest at once."""
        pending: dict[int, bytes] = {}
        size = 0

        def read(version: int) -> bytes | None:
            with contextlib.suppress(ObjectNotFoundError):  # Another cleanup was here.
                return self._store.read(history.manifest_path(version), MAX_MANIFEST_BYTES)
            return None

        for version, content in zip(old, map_together(self._store, read, old), strict=True):
            if content is not None:
                pending[version] = content
                size += len(content)
            if len(pending) == _MAX_VERSIONS_AT_ONCE or size > _MAX_BYTES_AT_ONCE:
                self._remove_manifests(history, pending)
                pending, size = {}, 0
        self._remove_manifests(history, pending)

    def _remove_manifests(self, history: History, contents: dict[int, bytes]) -> None:
        named = self._load_names().versions if contents else set()
        paths = [history.manifest_path(version) for version in contents if version not in named]
        deque(map_together(self._store, self._store.delete, paths), maxlen=0)
        named = self._load_names().versions if contents else set()
        for version, content in contents.items():
            path = history.manifest_path(version)
            if version in named:  # It was named since the lookup: keep or restore it.
                self._put_back(path, content)
                manifest = self._directory.parse_manifest(content, path, version)
                self._protect(path, manifest, self._directory)
            else:
                self._count_version(len(content))

    def _put_back(self, path: str, content: bytes) -> None:
        try:
            self._store.put_if_absent(path, content)
        except ObjectExistsError:  # Another cleanup restored it, or a late writer created a stray.
            self._store.put(path, content)

    def _count_version(self, size_bytes: int) -> None:
        self._counts["old_versions"] += 1
        self._counts["bytes_removed"] += size_bytes


def clean_up_if_due(directory: TableDirectory, committed: Manifest) -> None:
    """Clean up after a commit if the table's configuration asks for it.

    A failure is logged and is no error of the commit. `lance.auto_cleanup.interval` is the number of commits between
    cleanups. `lance.auto_cleanup.older_than`, a duration such as "14days" or "2h 30m", and
    `lance.auto_cleanup.retain_versions`
    choose the versions to remove; the default is versions older than two weeks. The version before the committed one is
    kept, since readers that opened the table before the commit use it.

    Parameters
    ----------
    directory : TableDirectory
    committed : Manifest
        The version that the commit made.
    """
    config = committed.config
    interval = parse_unsigned(config.get("lance.auto_cleanup.interval", "").encode(), 64)
    age, retained = config.get("lance.auto_cleanup.older_than"), config.get("lance.auto_cleanup.retain_versions")
    if age is None and retained is None:
        age = _DEFAULT_AUTOMATIC_AGE
    kept = None if retained is None else parse_unsigned(retained.encode(), 64)
    if not interval or committed.version % interval or (retained is not None and kept is None):
        return
    with contextlib.suppress(LanceError, OverflowError):
        policy = CleanupPolicy(
            older_than=None if age is None else parse_duration(age),
            retain_versions=kept,
            error_if_tagged_old_versions=False,
        )
        clean_up(directory, committed.branch, committed.version - 1, policy)
