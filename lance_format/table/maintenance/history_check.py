"""Checks around a version: the other versions, their transactions, tags and branches, and files that no version needs.

Versions are read before files are listed, so that the files of a later commit are not missed. A file that is missing is
looked for once more with its version, which a cleanup may have removed in between.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Iterator

from lance_format.checksums import ends_with_checksum
from lance_format.errors import ChecksumError, CorruptFileError, LanceError, NotSupportedError
from lance_format.object_store import ObjectInfo, ObjectNotFoundError, map_together
from lance_format.table.format.file_kinds import classify
from lance_format.table.format.manifest import Manifest
from lance_format.table.format.manifest_file import MAX_MANIFEST_BYTES, has_checksum
from lance_format.table.format.table_directory import TableDirectory
from lance_format.table.maintenance.findings import (
    INCONSISTENT,
    INTACT,
    MISSING,
    ORPHANED,
    UNVERIFIED,
    WRITE_AGAIN,
    Finding,
    status_of,
)
from lance_format.table.transaction.transaction import parse_transaction
from lance_format.table.versions.belonging import contradict
from lance_format.table.versions.cleanup.cleanup import UNVERIFIED_AGE_SECONDS
from lance_format.table.versions.cleanup.garbage import is_named
from lance_format.table.versions.cleanup.tag_check import contradicting_tags
from lance_format.table.versions.history import History, load_detached, load_history
from lance_format.table.versions.named_files import SharedFragments, branch_roots, named_files, owner_of
from lance_format.table.versions.refs import Tag, inspect_branches, inspect_tags

_MAX_TRANSACTION_BYTES = 1 << 30


def check_history(directory: TableDirectory, branch: str | None, version: int) -> Iterator[Finding]:
    """Yield findings of other versions of a table, their transactions, tags, branches, and files that none needs.

    Parameters
    ----------
    directory : TableDirectory
        The directory of the table, or of its branch. It verifies.
    branch : str or None
        The name of the branch; None for the main one.
    version : int
        The version whose manifest, data files, deletion files and indices are checked elsewhere.
    """
    history = load_history(directory)
    needed: dict[str, int] = {}
    shared = SharedFragments()
    checked: set[str] = set()
    is_complete = True
    later: Manifest | None = None
    versions = sorted(history.names, reverse=True)
    found = map_together(directory.store, functools.partial(_read_version, directory, history), versions)
    for other, stored in zip(versions, found, strict=True):
        if stored is None:
            continue
        content, manifest, of_transaction = stored
        relative = directory.relative(history.manifest_path(other))
        if isinstance(manifest, LanceError):
            is_complete = False
            if other != version:
                status = UNVERIFIED if isinstance(manifest, NotSupportedError) else status_of(manifest)
                yield Finding(relative, "manifest", status, None, len(content), detail=str(manifest))
            continue
        if later is not None and contradict(manifest, later):
            follower = directory.relative(history.manifest_path(later.version))
            detail = (
                f"{follower} does not follow this version: one of the two is the manifest of another table, or of a"
                " writer that was too late; restore the right one from a copy, or delete the wrong one"
            )
            yield Finding(relative, "manifest", INCONSISTENT, None, len(content), detail=detail)
        else:
            later = manifest
            if other != version:
                yield _finding(relative, "manifest", len(content), has_checksum(content))
        for name in named_files(manifest, directory, shared):
            needed.setdefault(name, other)
        if other == version:
            checked = set(named_files(manifest, directory)) - {directory.transaction(manifest.transaction_file)}
        if of_transaction is not None:
            yield of_transaction
    files = list(directory.store.list_tree(directory.root))
    expected = {path: needed[path] for path in needed.keys() - checked - {info.path for info in files}}
    yield from _check_presence(directory, history, expected)
    if is_complete:
        yield from _find_orphans(directory, branch, files, set(needed), shared)
    yield from _check_refs(directory, branch, history)


def _read_version(
    directory: TableDirectory, history: History, version: int
) -> tuple[bytes, Manifest | LanceError, Finding | None] | None:
    """Return the content of a manifest's file, what it says, and the finding of its transaction; None if it is gone."""
    path = history.manifest_path(version)
    try:
        content = directory.store.read(path, MAX_MANIFEST_BYTES)
    except ObjectNotFoundError:  # A cleanup removed the version since it was listed.
        return None
    try:
        manifest = directory.parse_manifest(content, path, version)
    except LanceError as error:
        return content, error, None
    return content, manifest, _check_transaction(directory, manifest)


def _finding(path: str, kind: str, size: int, is_verified: bool) -> Finding:
    return Finding(path, kind, INTACT if is_verified else UNVERIFIED, None, size, size if is_verified else 0)


def _check_transaction(directory: TableDirectory, manifest: Manifest) -> Finding | None:
    """Return the finding of the transaction file of a version. Readers do not need it if the manifest has a copy."""
    if not manifest.transaction_file:
        return None
    path = directory.transaction(manifest.transaction_file)
    kind, relative = "transaction file", directory.relative(path)
    content, copy = b"", manifest.inline_transaction
    has_copy = copy is not None and ends_with_checksum(copy)
    try:
        content = directory.store.read(path, _MAX_TRANSACTION_BYTES)
        parse_transaction(content)
        if has_copy and content != copy:
            raise ChecksumError("the transaction is not that of which the manifest has a copy")
    except ObjectNotFoundError:  # It is reported as missing below, if it is needed.
        return None
    except LanceError as error:
        detail = f"{path}: {error}" + ("" if copy is None else "; readers use the copy in the manifest")
        repair = WRITE_AGAIN if has_copy else ""
        return Finding(relative, kind, status_of(error), None, len(content), detail=detail, repair=repair)
    return _finding(relative, kind, len(content), ends_with_checksum(content))


def _check_presence(directory: TableDirectory, history: History, unlisted: dict[str, int]) -> Iterator[Finding]:
    """Yield the unlisted files that versions need and that are missing. Files of indices are not named one by one."""
    for path, version in sorted(unlisted.items()):
        file = classify(directory.relative(path)) if path.startswith(f"{directory.root}/") else None
        if file is None:
            continue
        (size,) = directory.store.sizes([path])
        (manifest_size,) = directory.store.sizes([history.manifest_path(version)])
        if size is None and manifest_size is not None and not _has_copy(history, version, file.path, directory):
            yield Finding(file.path, f"{file.kind.value} file", MISSING, detail=f"version {version} needs the file")


def _has_copy(history: History, version: int, path: str, directory: TableDirectory) -> bool:
    """Return whether a missing file is a transaction whose manifest has a copy."""
    manifest = history.load(version)
    is_transaction = manifest.transaction_file and directory.transaction(manifest.transaction_file).endswith(f"/{path}")
    return bool(is_transaction) and manifest.inline_transaction is not None


def _check_refs(directory: TableDirectory, branch: str | None, history: History) -> Iterator[Finding]:
    """Yield malformed tags and branches of a table, and tags of a branch that do not agree with their versions."""
    main = directory.main(branch)
    found = [*inspect_tags(main), *inspect_branches(main)]
    errors = [ref for _, ref in found if isinstance(ref, CorruptFileError)]
    tags = {name: ref for name, ref in found if isinstance(ref, Tag)}
    for error in (*errors, *contradicting_tags(main, tags, branch, history)):
        yield Finding(main.relative(error.path or main.root), "reference", INCONSISTENT, detail=str(error))


def _find_orphans(
    directory: TableDirectory, branch: str | None, files: list[ObjectInfo], needed: set[str], shared: SharedFragments
) -> Iterator[Finding]:
    """Yield the files that no version needs, and that are too old to be those of a write in progress."""
    roots = branch_roots(directory.main(branch))
    try:
        for root in roots:
            other = directory.moved(root)
            for _, manifest in load_detached(other, set()):
                needed.update(named_files(manifest, other, shared))
            if root != directory.root:
                history = load_history(other)
                for version in history.names:
                    needed.update(named_files(history.load(version), other, shared))
    except LanceError:  # What a damaged version needs is unknown.
        return
    newest = time.time() - UNVERIFIED_AGE_SECONDS
    for info in files:
        file = classify(directory.relative(info.path))
        if file is None or info.modified > newest or owner_of(info.path, roots) != directory.root:
            continue
        if not is_named(file, directory, needed):
            detail = "no version needs the file; a cleanup of old versions deletes it"
            yield Finding(file.path, f"{file.kind.value} file", ORPHANED, None, info.size_bytes, detail=detail)
