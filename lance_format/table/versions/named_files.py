"""The files of a table: their branches, and the versions that need them.

The directory of a branch holds those of branches whose names begin with its own: `tree/a` holds `tree/a/b`. Branches
are found by their manifests, whether or not a file names them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Set

from lance_format.table.format.file_entries import ExternalFile
from lance_format.table.format.fragment import FragmentMetadata
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


class SharedFragments:
    """Fragments that versions share, so that each is looked at once: parsing it takes longer than finding it here."""

    def __init__(self) -> None:
        self._stored: dict[Hashable, set[bytes]] = {}
        """The protobuf of the fragments, by what else decides where their files are."""

    def new_in(self, manifest: Manifest, directory: TableDirectory) -> Iterator[FragmentMetadata]:
        """Yield the fragments of a version that those before it did not have; see `named_files`."""
        known = self._stored.setdefault((directory.root, frozenset(manifest.bases.items())), set())
        for position, stored in enumerate(manifest.fragments.serialize()):
            if stored not in known:
                known.add(stored)
                yield manifest.fragments[position]


def named_files(manifest: Manifest, directory: TableDirectory, shared: SharedFragments | None = None) -> Iterator[str]:
    """Yield the paths in the store that a version requires: files, and directories of indices.

    Parameters
    ----------
    manifest : Manifest
    directory : TableDirectory
        The directory of its branch.
    shared : SharedFragments, optional
        The files of fragments that are among them are left out; the others are added to them.
    """
    bases = manifest.bases
    if manifest.transaction_file:
        yield directory.transaction(manifest.transaction_file)
    for fragment in manifest.fragments if shared is None else shared.new_in(manifest, directory):
        for file in fragment.stored_files():
            yield directory.holding(file, bases).path(file.relative_path)
        deletion = fragment.deletion_file
        if deletion is not None:
            yield directory.holding(deletion, bases).path(deletion.path(fragment.id))
        for sequence in (fragment.row_id_meta, fragment.created_at_version_meta, fragment.last_updated_at_version_meta):
            if isinstance(sequence, ExternalFile):  # The manifest does not name its branch.
                yield from (place.path(sequence.path) for place in (directory, *map(directory.base, bases.values())))
    for index in manifest.indices:
        yield directory.holding(index, bases).index(index.uuid)
