"""The files of a table: their branches, and the versions that need them.

The directory of a branch holds those of branches whose names begin with its own: `tree/a` holds `tree/a/b`. Branches
are found by their manifests, whether or not a file names them.
"""

from __future__ import annotations

from collections.abc import Iterator, Set

from lance_format.table.format.file_entries import ExternalFile
from lance_format.table.format.manifest import Manifest
from lance_format.table.format.table_directory import TableDirectory


def branch_roots(main: TableDirectory) -> frozenset[str]:
    """Return the directories of all branches, the main one included, given the path of the main one."""
    roots = {main.root}
    marker = f"/{main.relative(main.versions)}/"
    for info in main.store.list_tree(main.branch_tree):
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


def named_files(manifest: Manifest, directory: TableDirectory) -> Iterator[str]:
    """Yield the paths in the store that a version requires: files, and directories of indices.

    Parameters
    ----------
    manifest : Manifest
    directory : TableDirectory
        The directory of its branch.
    """
    bases = manifest.bases
    if manifest.transaction_file:
        yield directory.transaction(manifest.transaction_file)
    for fragment in manifest.fragments:
        for file in fragment.stored_files():
            yield directory.holding(file, bases).path(file.relative_path)
        deletion = fragment.deletion_file
        if deletion is not None:
            yield directory.holding(deletion, bases).path(deletion.path(fragment.id))
        for sequence in (fragment.row_id_meta, fragment.created_at_version_meta, fragment.last_updated_at_version_meta):
            if isinstance(sequence, ExternalFile):  # The manifest does not name its branch.
                yield from (directory.moved(root).path(sequence.path) for root in (directory.root, *bases.values()))
    for index in manifest.indices:
        yield directory.holding(index, bases).index(index.uuid)
