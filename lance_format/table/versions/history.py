"""The versions of a table: finding and loading manifests and transactions."""

from __future__ import annotations

import contextlib
import datetime
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import field
from typing import Any, TypeVar

import numpy as np

from lance_format.errors import CorruptFileError, DatasetNotFoundError, LanceError, VersionNotFoundError
from lance_format.lazy_dataclasses import dataclass
from lance_format.object_store import ObjectNotFoundError, ObjectStore, map_together
from lance_format.table.format.layout import (
    ManifestNaming,
    check_segment,
    is_detached,
    parse_detached_name,
    parse_manifest_name,
    parse_transaction_name,
)
from lance_format.table.format.lineage import is_ancestor
from lance_format.table.format.manifest import Manifest
from lance_format.table.format.manifest_file import MAX_MANIFEST_BYTES, parse_transaction_of
from lance_format.table.format.table_directory import TableDirectory
from lance_format.table.transaction.transaction import Transaction, parse_transaction
from lance_format.table.versions.absence import describe_absence
from lance_format.table.versions.listing import ManifestNames

_MAX_TRANSACTION_BYTES = 1 << 30
_MAX_HINT_BYTES = 1 << 12

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class History:
    """Versions of a table at the time of a listing.

    Parameters
    ----------
    directory : TableDirectory
    names : ManifestNames
        The manifest file of each version, by ascending version.
    tags : mapping of str to str
        The entity tags of some of these files, by name; see `ObjectStore.read`.
    """

    directory: TableDirectory
    names: ManifestNames
    tags: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def root(self) -> str:
        """The path of the table in the store."""
        return self.directory.root

    @property
    def latest(self) -> int:
        """The latest version; 0 if there is no table."""
        return self.names.latest

    def manifest_path(self, version: int) -> str:
        """Return the path of the manifest of a version, existing or next, in the store."""
        if is_detached(version):
            return self.directory.detached_manifest(version)
        name = self.names.get(version)
        if name is None:
            return self.directory.manifest(version, self.names.naming)
        return f"{self.directory.versions}/{name}"

    def load(self, version: int) -> Manifest:
        """Load the manifest of a version.

        Raises
        ------
        DatasetNotFoundError
            If there is no table.
        VersionNotFoundError
            If the table does not have the version, or no longer has it.
        """
        content, path = self._read(version)
        return self.directory.parse_manifest(content, path, version)

    def load_transaction(self, version: int) -> Transaction:
        """Load the transaction that made a version.

        Raises
        ------
        DatasetNotFoundError, VersionNotFoundError
            See `load`.
        CorruptFileError
            If the transaction is malformed, or the version has none.
        """
        content, path = self._read(version)
        file_name, inline = parse_transaction_of(content, path=path, version=version, verifies=self.directory.verifies)
        return _load_transaction(self.directory, version, file_name, inline)

    def load_both(self, version: int) -> tuple[Manifest, Transaction | None]:
        """Load the manifest of a version, and the transaction that made it, or None if it is missing or unreadable.

        Raises
        ------
        DatasetNotFoundError, VersionNotFoundError, CorruptFileError
            See `load`.
        """
        content, path = self._read(version)
        return _parse_both(self.directory, version, content, path)

    def read_each(self, read: Callable[[int], _T], versions: Iterable[int]) -> Iterator[tuple[int, _T]]:
        """Read versions in order, several at once where a request takes long.

        Parameters
        ----------
        read : callable
            Reads a version, as `load` does.
        versions : iterable of int

        Yields
        ------
        (int, T)
            A version, and what was read; those that were removed since they were listed are left out.
        """

        def attempt(version: int) -> tuple[int, _T] | None:
            with contextlib.suppress(VersionNotFoundError):
                return version, read(version)
            return None

        return filter(None, map_together(self.directory.store, attempt, versions))

    def _read(self, version: int) -> tuple[bytes, str]:
        """Return the content and the path of the manifest of a version."""
        if not self.names:
            raise DatasetNotFoundError(describe_absence(self.directory))
        path = self.manifest_path(version)
        if version in self.names or is_detached(version):
            with contextlib.suppress(ObjectNotFoundError):  # A cleanup came in between.
                tag = self.tags.get(path.rpartition("/")[2])
                return self.directory.store.read(path, MAX_MANIFEST_BYTES, tag), path
        raise VersionNotFoundError(
            f"the table {self.root} has no version {version}; it has {describe_versions(list(self.names))}"
        )

    def find_transaction(self, uuid: str, after: int, *, strays: bool = False) -> Manifest | None:
        """Find the version, later than another one, that the transaction of this uuid made.

        Parameters
        ----------
        uuid : str
        after : int
        strays : bool
            Whether to include versions outside the history, whose writers were too late.

        Returns
        -------
        Manifest or None
            None if there is none; the latest version if a cleanup has removed the one that it made.

        Raises
        ------
        LanceError
            If that is undecidable, because a version or its transaction is unreadable, or removed and not remembered.
        """
        for version in range(after + 1, self.latest + 1):
            try:
                content, path = self._read(version)
            except VersionNotFoundError:
                latest = self.load(self.latest)
                remembered = is_ancestor(latest, version, uuid)
                if remembered is None:
                    raise
                if remembered:
                    return latest
                continue
            verifies = self.directory.verifies
            file_name, inline = parse_transaction_of(content, path=path, version=version, verifies=verifies)
            found = (
                parse_transaction_name(file_name) or _load_transaction(self.directory, version, file_name, inline).uuid
            )
            if found == uuid and (strays or is_ancestor(self.load(self.latest), version, uuid) is not False):
                return self.directory.parse_manifest(content, path, version)
        return None


def load_history(directory: TableDirectory) -> History:
    """List the versions of a table, none if there is no table.

    Raises
    ------
    CorruptFileError
        If the table mixes the two schemes of manifest names.
    """
    try:
        first = directory.store.list_first(directory.versions)
        rest = None if first.is_complete else lambda: directory.store.list_names(directory.versions)
        return History(directory, ManifestNames(first.names, rest), first.tags)
    except CorruptFileError as error:
        raise CorruptFileError(error.what, path=directory.versions) from error


def load_version(directory: TableDirectory, version: int) -> Manifest:
    """Load a version by its number; see `History.load`. Only tables of early releases are listed for that."""
    path = directory.manifest(version)
    with contextlib.suppress(ObjectNotFoundError):
        if parse_manifest_name(path.rpartition("/")[2]) == (version, ManifestNaming.V2):
            return directory.parse_manifest(directory.store.read(path, MAX_MANIFEST_BYTES), path, version)
    return load_history(directory).load(version)


def load_with_transaction(directory: TableDirectory, version: int) -> tuple[Manifest, Transaction | None]:
    """Load a version by its number, with its transaction; see `History.load_both` and `load_version`."""
    path = directory.manifest(version)
    if parse_manifest_name(path.rpartition("/")[2]) == (version, ManifestNaming.V2):
        with contextlib.suppress(ObjectNotFoundError):
            return _parse_both(directory, version, directory.store.read(path, MAX_MANIFEST_BYTES), path)
    return load_history(directory).load_both(version)


def _parse_both(
    directory: TableDirectory, version: int, content: bytes, path: str
) -> tuple[Manifest, Transaction | None]:
    manifest = directory.parse_manifest(content, path, version)
    try:
        file_name, inline = parse_transaction_of(content, path=path, version=version, verifies=directory.verifies)
        return manifest, _load_transaction(directory, version, file_name, inline)
    except CorruptFileError:
        return manifest, None


def _load_transaction(directory: TableDirectory, version: int, file_name: str, inline: bytes | None) -> Transaction:
    if inline is not None:
        return parse_transaction(inline, verifies=directory.verifies)
    if not file_name:
        raise CorruptFileError(f"version {version} of {directory.root} does not say what it changed")
    name = check_segment(file_name, f"the transaction file of version {version}")
    path = directory.transaction(name)
    try:
        return parse_transaction(directory.store.read(path, _MAX_TRANSACTION_BYTES), verifies=directory.verifies)
    except ObjectNotFoundError as error:
        raise CorruptFileError(f"version {version} lacks its transaction file", path=path) from error


def load_latest(directory: TableDirectory, known: Manifest | None = None) -> Manifest:
    """Load the latest version of a table.

    Parameters
    ----------
    directory : TableDirectory
    known : Manifest, optional
        A version loaded before. It is returned if it is still the latest.

    Raises
    ------
    DatasetNotFoundError
        If there is no table.
    """
    history = load_history(directory)
    while True:
        if known is not None and known.version == history.latest:
            return known
        try:
            return history.load(history.latest)
        except VersionNotFoundError:  # It was superseded and removed before it was read.
            tried, history = history.latest, load_history(directory)
            if history.latest == tried:
                raise


def load_detached(directory: TableDirectory, known: Set[str]) -> Iterator[tuple[str, Manifest]]:
    """Yield the paths and manifests of the detached versions, except those of known paths.

    Parameters
    ----------
    directory : TableDirectory
    known : set of str
        Paths to skip.
    """
    for name in directory.store.list_names(directory.versions):
        path, version = f"{directory.versions}/{name}", parse_detached_name(name)
        if version is not None and path not in known:
            try:
                content = directory.store.read(path, MAX_MANIFEST_BYTES)
            except ObjectNotFoundError:  # It was deleted since it was listed.
                continue
            yield path, directory.parse_manifest(content, path, version)


def write_hint(directory: TableDirectory, version: int) -> None:
    """Write the number of the latest version as a hint to other readers, unless they have a later hint.

    Readers do not rely on it. Where listings are in order, they have no use for it.

    Parameters
    ----------
    directory : TableDirectory
    version : int
    """
    store, path = directory.store, directory.version_hint
    if not store.needs_hint:
        return
    with contextlib.suppress(LanceError):
        if _read_hint(store, path) < version:
            hint = json.dumps({"version": version}, separators=(",", ":")).encode()
            store.put(path, hint, durable=False)


def _read_hint(store: ObjectStore, path: str) -> int:
    """Return the version of the hint; 0 if there is no valid hint."""
    try:
        hint = json.loads(store.read(path, _MAX_HINT_BYTES))["version"]
    except (ObjectNotFoundError, CorruptFileError, ValueError, LookupError, TypeError, RecursionError):
        return 0
    return hint if isinstance(hint, int) else 0


def describe_versions(versions: list[int]) -> str:
    """Return a short text that lists versions."""
    if len(versions) > 1 and versions[-1] - versions[0] == len(versions) - 1:
        return f"versions {versions[0]} to {versions[-1]}"
    shown = ", ".join(str(version) for version in versions[-10:])
    return f"{'… ' if len(versions) > 10 else ''}{shown}"


def summarize(manifest: Manifest) -> dict[str, Any]:
    """Return the description of a version in `LanceDataset.versions`; keys and types are those of pylance."""
    columns = manifest.fragments.columns
    physical = int(columns.physical_rows.sum())
    deleted = int(columns.num_deleted_rows.clip(0).sum())
    metadata = {
        "total_data_file_rows": physical,
        "total_data_files": int(columns.num_files.sum()),
        "total_deletion_file_rows": deleted,
        "total_deletion_files": int(np.count_nonzero(columns.num_deleted_rows)),
        "total_files_size": sum(columns.size_bytes.tolist()),
        "total_fragments": len(manifest.fragments),
        "total_rows": physical - deleted,
    }
    seconds, nanoseconds = divmod(manifest.timestamp_ns, 10**9)
    timestamp = datetime.datetime.fromtimestamp(seconds).replace(microsecond=nanoseconds // 1000)
    return {
        "version": manifest.version,
        "timestamp": timestamp,
        "metadata": {key: str(value) for key, value in metadata.items()},
    }
