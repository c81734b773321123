"""One version of a table, for reading it or planning a change of it."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_format.datatypes import Schema
from lance_format.errors import (
    CommitStateUnknownError,
    CorruptFileError,
    DatasetNotFoundError,
    LanceError,
    RetryableCommitConflictError,
)
from lance_format.file import SearchCache
from lance_format.lazy_dataclasses import dataclass
from lance_format.object_store import ObjectStore
from lance_format.table.format.fragment import FragmentMetadata
from lance_format.table.format.fragment_list import FragmentList
from lance_format.table.format.manifest import Manifest
from lance_format.table.format.table_directory import TableDirectory
from lance_format.table.fragments.reader import FragmentReader
from lance_format.table.fragments.writer import (
    DEFAULT_MAX_BYTES_PER_FILE,
    DEFAULT_MAX_ROWS_PER_FILE,
    DataFileOptions,
    FragmentWriter,
    list_data_files,
)
from lance_format.table.transaction.operations import Delete, Operation, Update
from lance_format.table.transaction.transaction import Transaction
from lance_format.table.versions.cleanup.garbage import directories_of, remove_directories
from lance_format.table.versions.commit import DEFAULT_RETRY, Precondition, RetryPolicy, commit
from lance_format.table.versions.history import History, load_history, load_latest
from lance_format.version import FileVersion

_RECENT_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class TableVersion:
    """A version of a table, and its location.

    Parameters
    ----------
    uri : str
        Absolute.
    directory : TableDirectory
    manifest : Manifest
    storage_options : mapping of str to str
    cache : SearchCache
        The cache of the table, shared by all versions derived from one.
    latest_at : float
        The time, on the clock of `time.monotonic`, when it was known to be the latest version.
    is_assumed : bool
        Whether it is assumed to be the latest one, so that a commit fails if it is not.
    """

    uri: str
    directory: TableDirectory
    manifest: Manifest
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    cache: SearchCache = field(default_factory=SearchCache, repr=False, compare=False)
    latest_at: float = field(default=-math.inf, repr=False, compare=False)
    is_assumed: bool = field(default=False, repr=False, compare=False)

    @property
    def store(self) -> ObjectStore:
        """The store of the table."""
        return self.directory.store

    @property
    def root(self) -> str:
        """The path of the table in the store."""
        return self.directory.root

    def history(self) -> History:
        """List the current versions of the table."""
        return load_history(self.directory)

    def latest(self) -> TableVersion:
        """Return the latest version."""
        latest = load_latest(self.directory, self.manifest)
        return self if latest is self.manifest else self.moved(latest)

    def moved(self, latest: Manifest) -> TableVersion:
        """Return the version of a manifest, which is the latest one right now."""
        return dataclasses.replace(self, manifest=latest, latest_at=time.monotonic(), is_assumed=False)

    @property
    def may_be_assumed(self) -> bool:
        """True if it was the latest version just now, and finding out whether it still is takes long."""
        return self.store.is_remote and 0 <= time.monotonic() - self.latest_at < _RECENT_SECONDS

    def scan(self, fragment: FragmentMetadata, schema: Schema) -> FragmentReader:
        """Return a reader of some columns of a fragment.

        Raises
        ------
        CorruptFileError
            If the fragment has no data file.
        """
        if not fragment.files and not fragment.stored_files():
            raise CorruptFileError(
                f"fragment {fragment.id} of version {self.manifest.version} has no data file; if pylance dropped all"
                " columns that it has values of, restore the version before: pylance cannot read such a table, either",
                path=self.root,
            )
        return FragmentReader(self.directory, fragment, schema, self.cache, self.manifest.schema, self.manifest.bases)

    def num_rows(self, fragments: Sequence[FragmentMetadata] | None = None) -> npt.NDArray[np.int64]:
        """Count the live rows of fragments. Files are opened only if the manifest lacks their numbers.

        Parameters
        ----------
        fragments : sequence of FragmentMetadata, optional
            Fragments of the table, by default all.

        Returns
        -------
        int64[num_fragments]
        """
        counted = self.manifest.fragments if fragments is None else FragmentList.of(fragments)
        num_rows = counted.columns.num_rows
        for position in np.flatnonzero(num_rows < 0).tolist():
            num_rows[position] = self.scan(counted[position], Schema(())).num_rows()
        return num_rows

    def rows_before(self) -> dict[int, int]:
        """Return the number of live rows before each fragment, by its id."""
        ids, num_rows = self.manifest.fragments.columns.ids, self.num_rows()
        return dict(zip(ids.tolist(), (np.cumsum(num_rows) - num_rows).tolist(), strict=True))

    def commit(
        self,
        operation: Operation,
        *,
        uuid: str | None = None,
        retry: RetryPolicy = DEFAULT_RETRY,
        precondition: Precondition | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> TableVersion:
        """Commit an operation that was planned on this version; see `lance_format.table.versions.commit.commit`."""
        transaction = Transaction(self.manifest.version, operation, transaction_properties=dict(properties or {}))
        if uuid is not None:
            transaction = dataclasses.replace(transaction, uuid=uuid)
        made = commit(self.directory, transaction, retry, precondition, only_after_read_version=self.is_assumed)
        return self.moved(made)

    def write_fragments(
        self,
        batches: Iterable[pa.RecordBatch],
        schema: Schema,
        *,
        uuid: str,
        max_rows_per_file: int = DEFAULT_MAX_ROWS_PER_FILE,
        max_bytes_per_file: int = DEFAULT_MAX_BYTES_PER_FILE,
        file_version: FileVersion | None = None,
        batch_rows: Sequence[int] = (),
    ) -> list[FragmentMetadata]:
        """Write rows into data files, which no reader sees before the commit.

        Parameters
        ----------
        batches : iterable of pa.RecordBatch
            Consumed one by one.
        schema : Schema
            The columns with field ids.
        uuid : str
            The uuid of the transaction that will commit them.
        max_rows_per_file, max_bytes_per_file : int
            A data file is closed when it reaches either limit.
        file_version : FileVersion, optional
            Version of the data files, by default that of the table.
        batch_rows : sequence of int
            See `LegacyFileWriter`.

        Returns
        -------
        list of FragmentMetadata
            Empty if there is no row. After an exception none of the files is left.
        """
        version = file_version or self.manifest.file_version
        version.require_changeable()
        writer = FragmentWriter(
            self.directory,
            schema,
            DataFileOptions(version, max_rows_per_file, max_bytes_per_file, batch_rows=batch_rows),
            job=uuid,
        )
        return writer.write_all(batches)


_T = TypeVar("_T")
Attempt = Callable[[TableVersion], tuple[TableVersion, _T]]
"""A change of a version, which returns the version that it made, and its result."""


def change(
    table: TableVersion, attempt: Attempt[_T], *, max_attempts: int = 10, max_seconds: float = math.inf
) -> tuple[TableVersion, _T]:
    """Plan and commit a change, and restart on the latest version after conflicts with other writers.

    Parameters
    ----------
    table : TableVersion
        The version that the change is planned on first.
    attempt : callable
        Plans the change on a version, commits it, and returns the new version and a result. It leaves no files if it
        fails.
    max_attempts : int
    max_seconds : float
        No attempt except the first starts later.

    Returns
    -------
    TableVersion
        The version that the attempt made.
    T
        The result of the attempt.

    Raises
    ------
    LanceError
        The error of the last attempt.
    """
    start = time.monotonic()
    for _ in range(max_attempts - 1):
        try:
            return attempt(table)
        except RetryableCommitConflictError:
            if time.monotonic() - start > max_seconds:
                raise
            table = table.latest()
        except DatasetNotFoundError:  # A cleanup removed the version while it was read; pylance its manifest last.
            latest = table.latest()
            if latest is table:
                raise
            table = latest
    return attempt(table)


def change_assumed(table: TableVersion, attempt: Attempt[_T]) -> tuple[TableVersion, _T] | None:
    """Plan and commit a change on a version that was the latest just now, without looking for a later one before.

    Parameters
    ----------
    table : TableVersion
    attempt : callable
        See `change`. It always commits.

    Returns
    -------
    (TableVersion, T) or None
        None if nothing was changed: it may not be assumed, or is not the latest version.

    Raises
    ------
    LanceError
        The error of the attempt, if it is the latest version.
    """
    if not table.may_be_assumed:
        return None
    try:
        return attempt(dataclasses.replace(table, is_assumed=True))
    except CommitStateUnknownError:
        raise
    except LanceError:
        if table.latest() is table:
            raise
        return None


@dataclass(slots=True)
class Draft:
    """The files of an uncommitted change: a context manager that deletes them if the change does not land.

    A change that was never committed, or whose commit raised a definite error, has not landed. After an interrupt the
    versions of the table decide.

    Parameters
    ----------
    table : TableVersion
    uuid : str
        It is part of the names of the data files, and of the directories of indices.
    paths : list of str
        Paths of other files in the store. A file is added before it is written.
    is_shared : bool
        Whether other processes may commit the same files, so that the versions decide in any case.
    keeps_rows : bool
        Whether the data files stay after a conflict that may be retried.
    superseded : list of str
        Paths of files of tasks that other files of the draft replace. They are deleted once the change has landed.
    """

    table: TableVersion
    uuid: str
    paths: list[str] = field(default_factory=list)
    is_shared: bool = False
    keeps_rows: bool = False
    superseded: list[str] = field(default_factory=list)
    _identity: str | None = field(default=None, init=False)
    _has_landed: bool = field(default=False, init=False)

    def __enter__(self) -> Draft:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if kind is None or self._has_landed or isinstance(error, CommitStateUnknownError):
            return
        self.keeps_rows = self.keeps_rows and isinstance(error, RetryableCommitConflictError)
        if not self.is_shared and (self._identity is None or isinstance(error, LanceError)):
            self._delete()
        else:
            self.discard()

    def commit(
        self,
        operation: Operation,
        *,
        uuid: str | None = None,
        precondition: Precondition | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> TableVersion:
        """Commit an operation that refers to the files; see `TableVersion.commit`.

        Parameters
        ----------
        operation : Operation
        uuid : str, optional
            The uuid of the transaction, by default that of the files.
        precondition : callable, optional
        properties : mapping of str to str, optional
            Notes to keep with the transaction.
        """
        self._identity = self.uuid if uuid is None else uuid
        made = self.table.commit(operation, uuid=self._identity, precondition=precondition, properties=properties)
        self._has_landed = True
        self._delete_superseded(operation, made.manifest)
        return made

    def discard(self) -> None:
        """Delete the files if no version of the table refers to them."""
        identity = self.uuid if self._identity is None else self._identity
        with contextlib.suppress(LanceError):
            if not self.table.history().find_transaction(identity, self.table.manifest.version, strays=True):
                self._delete()

    def _delete_superseded(self, operation: Operation, made: Manifest) -> None:
        """Delete files that the commit does not name, such as deletion files that it has united with others."""
        is_own = self._identity is not None and self._identity in made.transaction_file
        if is_own:
            self._delete_files(self.superseded)
        if not is_own or not isinstance(operation, (Delete, Update)):
            return
        superseded = []
        for planned in operation.updated_fragments:
            now = made.fragment(planned.id)
            if planned.deletion_file is not None and (now is None or now.deletion_file != planned.deletion_file):
                superseded.append(self.table.directory.path(planned.deletion_file.path(planned.id)))
        self._delete_files(path for path in superseded if path in self.paths)

    def _delete(self) -> None:
        paths = list(self.paths)
        with contextlib.suppress(LanceError):
            paths += [] if self.keeps_rows else list_data_files(self.table.directory, self.uuid)
            paths += self.table.directory.index_files_of(self.uuid)
        self._delete_files(paths)

    def _delete_files(self, paths: Iterable[str]) -> None:
        files = list(paths)
        self.table.store.delete_all(files)
        remove_directories(self.table.store, directories_of(files, self.table.directory))
