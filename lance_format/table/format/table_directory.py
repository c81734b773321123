"""Directory of a table or branch: its store, its path there, and the paths of what lies below it.

Outside this room no module composes the path of a manifest, a data file, a transaction or a reference.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from typing import Self

from lance_format.file import Verification
from lance_format.lazy_dataclasses import dataclass
from lance_format.object_store import ObjectStore, resolve, with_buckets
from lance_format.table.format.base_paths import BasePath, parse_allowed
from lance_format.table.format.file_entries import DataFile, DeletionFile
from lance_format.table.format.index_metadata import IndexMetadata
from lance_format.table.format.layout import (
    BRANCH_TREE,
    BRANCHES_DIRECTORY,
    DATA_DIRECTORY,
    INDICES_DIRECTORY,
    TAGS_DIRECTORY,
    TRANSACTIONS_DIRECTORY,
    VERSION_HINT,
    VERSIONS_DIRECTORY,
    ManifestNaming,
    branch_location,
    detached_path,
    index_file_name,
    index_promises_checksums,
    is_index_of,
    main_location,
    promises_checksums,
)
from lance_format.table.format.manifest import Manifest
from lance_format.table.format.manifest_file import parse_manifest

_VERIFY_CHECKSUMS = "lance.verify_checksums"
_DATA_PREFIX = f"{DATA_DIRECTORY}/"


def wants_verification(config: Mapping[str, str]) -> bool:
    """Return whether readers of a table with this configuration compare checksums, unless they say otherwise."""
    return config.get(_VERIFY_CHECKSUMS, "true").lower() != "false"


@dataclass(frozen=True, slots=True)
class TableDirectory:
    """The directory of a table, or of one of its branches. It names files, and does no I/O.

    Parameters
    ----------
    store : ObjectStore
    root : str
        The path of the directory in the store.
    verifies : bool
        Whether checksums of files are compared when they are read.
    allowed : tuple of str
        The directories outside of this one that may have files of the table; see
        `lance_format.table.format.base_paths`.
    is_table : bool
        Whether it is laid out as a table; else it has data files of one only, in no directory of their own.
    """

    store: ObjectStore
    root: str
    verifies: bool = True
    allowed: tuple[str, ...] = ()
    is_table: bool = True

    @classmethod
    def at(
        cls,
        uri: str | os.PathLike[str],
        storage_options: Mapping[str, str] | None = None,
        *,
        verifies: bool = True,
    ) -> Self:
        """Return the directory that a path or URI means; see `lance_format.object_store.resolve`.

        Raises
        ------
        InvalidInputError, NotSupportedError
            If it means none, or none that is supported.
        """
        store, root = resolve(uri, storage_options)
        allowed = parse_allowed(storage_options)
        return cls(with_buckets(store, root, allowed, storage_options), root, verifies, allowed)

    def __str__(self) -> str:
        return self.root

    @property
    def data(self) -> str:
        """The directory of the data files."""
        return self.path(DATA_DIRECTORY) if self.is_table else self.root

    @property
    def indices(self) -> str:
        """The directory of the directories of indices."""
        return self.path(INDICES_DIRECTORY)

    @property
    def versions(self) -> str:
        """The directory of the manifests."""
        return self.path(VERSIONS_DIRECTORY)

    @property
    def version_hint(self) -> str:
        """The file that names the latest version, for readers that cannot list."""
        return self.path(VERSION_HINT)

    @property
    def branch_tree(self) -> str:
        """The directory of the branches of a main branch."""
        return self.path(BRANCH_TREE)

    @property
    def tags(self) -> str:
        """The directory of the files that name tags; that of a main branch has them."""
        return self.path(TAGS_DIRECTORY)

    @property
    def branches(self) -> str:
        """The directory of the files that name branches; that of a main branch has them."""
        return self.path(BRANCHES_DIRECTORY)

    @property
    def written(self) -> tuple[str, ...]:
        """The directories that a write makes."""
        return self.data, self.path(TRANSACTIONS_DIRECTORY), self.versions

    def path(self, relative: str) -> str:
        """Return the path in the store of a file, given its path relative to the directory of a table."""
        return f"{self.root}/{relative if self.is_table else relative.removeprefix(_DATA_PREFIX)}"

    def relative(self, path: str) -> str:
        """Return the path of a file relative to the directory, given its path in the store."""
        return path[len(self.root) + 1 :]

    def manifest(self, version: int, naming: ManifestNaming = ManifestNaming.V2) -> str:
        """Return the path of the manifest of a version of the history."""
        return self.path(naming.path(version))

    def detached_manifest(self, version: int) -> str:
        """Return the path of the manifest of a detached version."""
        return self.path(detached_path(version))

    def transaction(self, file_name: str) -> str:
        """Return the path of a transaction file."""
        return self.path(f"{TRANSACTIONS_DIRECTORY}/{file_name}")

    def parse_manifest(self, content: bytes, path: str, version: int) -> Manifest:
        """Return a version by the content of its manifest's file; see `lance_format.table.format.manifest_file`."""
        return parse_manifest(content, path=path, version=version, verifies=self.verifies, allowed=self.allowed)

    def index(self, uuid: str) -> str:
        """Return the directory of the files of an index."""
        return f"{self.indices}/{uuid}"

    def index_files_of(self, job: str) -> list[str]:
        """Return the paths in the store of the files of indices that a write has made, finished or not.

        Parameters
        ----------
        job : str
            The uuid of the write.
        """
        start = len(self.indices) + 1
        paths = (info.path for info in self.store.list_tree(self.indices))
        return sorted(path for path in paths if is_index_of(path[start:].partition("/")[0], job))

    def moved(self, root: str) -> Self:
        """Return another directory of the same store."""
        return dataclasses.replace(self, root=root)

    def main(self, branch: str | None) -> Self:
        """Return the directory of the main branch, given the name of the branch that lies here."""
        return self.moved(main_location(self.root, branch))

    def branch(self, name: str | None) -> Self:
        """Return the directory of a branch, or of the main one if None; this is that of the main one."""
        return self.moved(branch_location(self.root, name))

    def verification(self, data_file: str) -> Verification:
        """Return how a data file is verified, given its name."""
        return Verification(self.verifies, data_file if promises_checksums(data_file) else "")

    def index_verification(self, uuid: str, name: str) -> Verification:
        """Return how a file of an index is verified."""
        return Verification(self.verifies, index_file_name(uuid, name) if index_promises_checksums(uuid) else "")

    def base(self, base: BasePath) -> Self:
        """Return a directory of files that a manifest of this one lists."""
        return dataclasses.replace(self, root=base.path, is_table=base.is_table)

    def holding(self, entry: DataFile | DeletionFile | IndexMetadata | None, bases: Mapping[int, BasePath]) -> Self:
        """Return the directory that holds an entry of a manifest: this one, or another of the manifest.

        Parameters
        ----------
        entry : DataFile, DeletionFile or IndexMetadata, optional
        bases : mapping of int to BasePath
            See `Manifest.bases`.
        """
        return self if entry is None or entry.base_id is None else self.base(bases[entry.base_id])
