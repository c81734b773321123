"""The files of a table: their branches, their kinds, and the versions that need them.

The directory of a branch holds those of branches whose names begin with its own: `tree/a` holds `tree/a/b`. Branches
are found by their manifests, whether or not a file names them.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Set
from dataclasses import dataclass

from lance_format.object_store import ObjectStore
from lance_format.table.format.file_entries import ExternalFile
from lance_format.table.format.fragment import place_of
from lance_format.table.format.layout import (
    BRANCH_TREE,
    DATA_DIRECTORY,
    DELETIONS_DIRECTORY,
    INDICES_DIRECTORY,
    TRANSACTIONS_DIRECTORY,
    VERSIONS_DIRECTORY,
)
from lance_format.table.format.manifest import Manifest

_DATA_SUFFIX = ".lance"
_SUFFIXES = {
    DATA_DIRECTORY: (_DATA_SUFFIX,),
    DELETIONS_DIRECTORY: (".arrow", ".bin"),
    TRANSACTIONS_DIRECTORY: (".txn",),
}
_SIDECAR_SUFFIX = ".blob"
_TEMPORARY = ".tmp"


class FileKind(enum.Enum):
    """Kind of a file of a table."""

    DATA = "data"
    DELETION = "deletion"
    TRANSACTION = "transaction"
    INDEX = "index"
    TEMPORARY = "temporary"


_KINDS = {
    DATA_DIRECTORY: FileKind.DATA,
    DELETIONS_DIRECTORY: FileKind.DELETION,
    TRANSACTIONS_DIRECTORY: FileKind.TRANSACTION,
}
_DIRECTORIES = frozenset({*_KINDS, INDICES_DIRECTORY, VERSIONS_DIRECTORY, "_refs"})


@dataclass(frozen=True, slots=True)
class OwnFile:
    """A file that the table layer made, other than manifests and references.

    Parameters
    ----------
    kind : FileKind
    path : str
        Relative to the table, or its branch.
    owner : str
        The path by which versions name the file: its own, that of its data file, or the directory of an index; relative
        too.
    """

    kind: FileKind
    path: str
    owner: str


def branch_roots(store: ObjectStore, main: str) -> frozenset[str]:
    """Return the directories of all branches, the main one included, given the path of the main one."""
    roots = {main}
    marker = f"/{VERSIONS_DIRECTORY}/"
    for info in store.list_tree(f"{main}/{BRANCH_TREE}"):
        root, found, name = info.path.rpartition(marker)
        if found and name.endswith(".manifest") and "/" not in name:
            roots.add(root)
    return frozenset(roots)


def owner_of(path: str, roots: Set[str]) -> str | None:
    """Return the innermost of some directories that contains a file."""
    while path:
        path = path.rpartition("/")[0]
        if path in roots:
            return path
    return None


def classify(path: str) -> OwnFile | None:
    """Return the kind of a file by its path relative to the table; None if a cleanup must never delete it."""
    directory, *rest = path.split("/")
    if not rest or directory not in _DIRECTORIES:
        return None
    name = rest[-1]
    if directory == INDICES_DIRECTORY:
        return OwnFile(FileKind.INDEX, path, f"{directory}/{rest[0]}") if len(rest) > 1 else None
    if name.startswith(_TEMPORARY):
        return OwnFile(FileKind.TEMPORARY, path, path)
    if directory == DATA_DIRECTORY and len(rest) == 2 and name.endswith(_SIDECAR_SUFFIX):
        return OwnFile(FileKind.DATA, path, f"{directory}/{rest[0]}{_DATA_SUFFIX}")
    if len(rest) == 1 and name.endswith(_SUFFIXES.get(directory, ())):
        return OwnFile(_KINDS[directory], path, path)
    return None


def named_files(manifest: Manifest, root: str) -> Iterator[str]:
    """Yield the paths in the store that a version requires: files, and directories of indices.

    Parameters
    ----------
    manifest : Manifest
    root : str
        The path of its branch in the store.
    """
    if manifest.transaction_file:
        yield f"{root}/{TRANSACTIONS_DIRECTORY}/{manifest.transaction_file}"
    for fragment in manifest.fragments:
        for file in fragment.stored_files():
            yield f"{place_of(file, root, manifest.bases)}/{file.relative_path}"
        deletion = fragment.deletion_file
        if deletion is not None:
            yield f"{place_of(deletion, root, manifest.bases)}/{deletion.path(fragment.id)}"
        for sequence in (fragment.row_id_meta, fragment.created_at_version_meta, fragment.last_updated_at_version_meta):
            if isinstance(sequence, ExternalFile):  # The manifest does not name its branch.
                yield from (f"{place}/{sequence.path}" for place in (root, *manifest.bases.values()))
    for index in manifest.indices:
        place = root if index.base_id is None else manifest.bases[index.base_id]
        yield f"{place}/{INDICES_DIRECTORY}/{index.uuid}"
