"""`LanceDataset`, the public face of a table, and `dataset`, which opens one."""

from __future__ import annotations

import dataclasses
import datetime
import os
from collections.abc import Mapping, Sequence
from typing import Any, Unpack

import pyarrow as pa

from lance_format.arguments import checked, checked_methods
from lance_format.errors import StorageError
from lance_format.object_store import absolute_uri
from lance_format.progress import Report, Work, reported
from lance_format.table.changes.rows.row_delta import with_new_columns
from lance_format.table.changes.write.settings import (
    OpeningTuning,
    WriteTuning,
    check_opening,
    check_tuning,
    merge_properties,
)
from lance_format.table.dataset.lance_operation import commit_operation, join_appends
from lance_format.table.dataset.methods.changes import DatasetChanges
from lance_format.table.dataset.methods.columns import DatasetColumns
from lance_format.table.dataset.methods.content import DatasetContent
from lance_format.table.dataset.methods.indexing import DatasetIndices
from lance_format.table.dataset.methods.metadata import DatasetMetadata
from lance_format.table.dataset.reports.reporting import DatasetReports
from lance_format.table.dataset.session import Session
from lance_format.table.format.table_directory import TableDirectory, wants_verification
from lance_format.table.maintenance.clones import deep_clone, shallow_clone
from lance_format.table.maintenance.drop_table import drop_table
from lance_format.table.transaction.operations import Operation
from lance_format.table.transaction.transaction import Transaction
from lance_format.table.versions.branching import create_branch
from lance_format.table.versions.checkout import Reference, check_out, check_out_as_of
from lance_format.table.versions.history import load_latest, load_version
from lance_format.table.versions.table_version import TableVersion


class OpeningKeywords(OpeningTuning, total=False):
    """Keyword arguments of `dataset` besides location and storage options."""

    version: Reference | None
    asof: datetime.datetime | str | None
    index_cache_size_bytes: int | None
    metadata_cache_size_bytes: int | None
    default_scan_options: Mapping[str, Any] | None
    verify_checksums: bool | None
    session: Session | None


class CommitKeywords(WriteTuning, total=False):
    """Keyword arguments of `LanceDataset.commit` besides location and operation."""

    enable_stable_row_ids: bool | None
    commit_message: str | None
    transaction_properties: Mapping[str, str] | None
    max_retries: int
    detached: bool
    storage_options: Mapping[str, str] | None


@checked
def dataset(
    uri: str | os.PathLike[str],
    version: Reference | None = None,
    asof: datetime.datetime | str | None = None,
    *,
    storage_options: Mapping[str, str] | None = None,
    index_cache_size_bytes: int | None = None,
    metadata_cache_size_bytes: int | None = None,
    default_scan_options: Mapping[str, Any] | None = None,
    verify_checksums: bool | None = None,
    session: Session | None = None,
    **tuning: Unpack[OpeningTuning],
) -> LanceDataset:
    """Open a table.

    Parameters
    ----------
    uri : str or path
        The directory of the table.
    version : int, str, or tuple of (str or None) and (int or None), optional
        The version to open: its number, the name of a tag, or a branch and one of its versions. None stands for the
        main branch, and for the latest version. By default the latest version.
    asof : datetime or str, optional
        Open the latest version committed before this time. A time without a zone is local. Ignored if `version` is
        given.
    storage_options : mapping, optional
    index_cache_size_bytes : int, optional
        Size of the cache of what searches read of indices; by default four times `metadata_cache_size_bytes`.
    metadata_cache_size_bytes : int, optional
        Size of the cache that finds rows sooner, shared by all files and checked-out versions of the table. 64 MiB by
        default, 0 for no cache.
    default_scan_options : mapping, optional
        Defaults for the arguments of `LanceDataset.scanner`. Scans of single fragments ignore them.
    verify_checksums : bool, optional
        Whether reads compare the checksums of the table's files, which files of other writers lack. By default, the
        entry `lance.verify_checksums` in the configuration of the table decides; without it they are compared.
    session : Session, optional
        Caches that other tables share, instead of own ones.
    **tuning
        Tuning arguments of pylance (`block_size`, `index_cache_size`, `read_params` …): accepted and ignored.

    Raises
    ------
    DatasetNotFoundError
        If there is no table.
    VersionNotFoundError
        If it has no such version.
    NotSupportedError
        If the table needs a feature that is not supported.
    ChecksumError
        If its manifest is not what was written. Reads raise it for other files.
    CorruptFileError
        If its manifest is malformed.
    """
    check_opening(tuning)
    cache = (session or Session(index_cache_size_bytes, metadata_cache_size_bytes)).cache
    directory = TableDirectory.at(uri, storage_options, verifies=verify_checksums is not False)
    number = version if isinstance(version, int) and not isinstance(version, bool) else None
    manifest = load_latest(directory) if number is None else load_version(directory, number)
    if verify_checksums is None:
        directory = dataclasses.replace(directory, verifies=wants_verification(manifest.config))
    table = TableVersion(absolute_uri(os.fspath(uri)), directory, manifest, dict(storage_options or {}), cache)
    if number is None:
        table = table.moved(manifest)
    if version is None and asof is not None:
        table = check_out_as_of(table, asof)
    opened = LanceDataset(os.fspath(uri), table, default_scan_options)
    return opened if version is None or number is not None else opened.checkout_version(version)


@checked_methods
class LanceDataset(DatasetReports, DatasetContent, DatasetChanges, DatasetColumns, DatasetMetadata, DatasetIndices):
    """A version of a table. `dataset` and `write_dataset` make it; it can be pickled.

    It shows the version that was opened, even if other writers commit later ones. A method that changes the table moves
    the object to the version that it made.

    Parameters
    ----------
    uri : str
    table : TableVersion
    default_scan_options : mapping, optional
    """

    def __init__(self, uri: str, table: TableVersion, default_scan_options: Mapping[str, Any] | None = None) -> None:
        super().__init__(uri, table)
        self._default_scan_options = dict(default_scan_options or {})

    def __repr__(self) -> str:
        return f"LanceDataset({self._uri!r}, version={self.version})"

    def __reduce__(self) -> tuple[object, ...]:
        table = self._table
        options = self._default_scan_options
        sizes = table.cache.of_indices.capacity_bytes, table.cache.capacity_bytes
        return _reopen, (table.uri, self.version, table.storage_options, *sizes, options, table.directory.verifies)

    @property
    def schema(self) -> pa.Schema:
        """The columns and their types; with `default_scan_options` those of a scan."""
        if self._default_scan_options:
            return self.scanner().projected_schema
        return super().schema

    def checkout_version(self, version: Reference) -> LanceDataset:
        """Return another version of the table.

        Parameters
        ----------
        version : int, str, or tuple of (str or None) and (int or None)
            A version of this branch, the name of a tag, or a branch and one of its versions. None stands for the main
            branch, and for the latest version.

        Raises
        ------
        VersionNotFoundError
            If there is no such version, tag or branch.
        """
        table = check_out(self._table, version)
        uri = self._uri if table.root == self._table.root else table.uri
        return LanceDataset(uri, table, self._default_scan_options)

    def with_new_columns(self, columns: pa.Schema) -> LanceDataset:
        """Return this version as it would be with further columns, null in all rows. Nothing is committed.

        A row delta with the same `new_columns` can be computed from it, and adds them.

        Parameters
        ----------
        columns : pyarrow.Schema
            Columns, and structs with fields. Those that the table has are ignored.

        Raises
        ------
        SchemaMismatchError, NotSupportedError
            If the table cannot have them.
        """
        return LanceDataset(self._uri, with_new_columns(self._table, columns), self._default_scan_options)

    def checkout_latest(self) -> None:
        """Move this object to the latest version of its branch."""
        self._table = self._table.latest()

    def create_branch(self, branch: str, reference: Reference | None = None) -> LanceDataset:
        """Create a branch and return it.

        Parameters
        ----------
        branch : str
            Name of the branch: letters, digits and `. _ -`, in segments between slashes.
        reference : int, str, or tuple of (str or None) and (int or None), optional
            The version that the branch starts from; see `checkout_version`. By default the version that this object
            shows.

        Raises
        ------
        InvalidInputError
            If the branch exists, or the name is not allowed.
        VersionNotFoundError
            If there is no version to start from.
        """
        table = create_branch(self._table, branch, reference)
        return LanceDataset(table.uri, table)

    def deep_clone(
        self,
        target_path: str | os.PathLike[str],
        reference: Reference,
        storage_options: Mapping[str, str] | None = None,
        *,
        progress: Report = None,
        **options: Unpack[OpeningKeywords],
    ) -> LanceDataset:
        """Copy a version with all of its files to another directory, and return the copy.

        Parameters
        ----------
        target_path : str or path
            Directory of the copy.
        reference : int, str, or tuple of (str or None) and (int or None)
            The version to copy; see `checkout_version`. The copy has no earlier versions.
        storage_options : mapping of str to str, optional
            Options of the copy's storage. By default those of this table.
        progress : callable or bool, optional
            A function that is called with a `Progress`, or True for a bar.
        **options
            See `dataset`.

        Raises
        ------
        DatasetExistsError
            If the directory already holds a table.
        VersionNotFoundError
            If there is no such version.
        StorageError
            If the storage fails. If only the opening of the copy failed, the message says that there is one.
        """
        if storage_options is None:
            storage_options = self._table.storage_options
        with reported(progress, "clone", Work.COPYING):
            deep_clone(self._table, target_path, reference, storage_options)
        return _open_clone(target_path, storage_options, options)

    def shallow_clone(
        self,
        target_path: str | os.PathLike[str],
        reference: Reference,
        storage_options: Mapping[str, str] | None = None,
        **options: Unpack[OpeningKeywords],
    ) -> LanceDataset:
        """Make a table that begins with a version of this one and shares its files, and return it.

        What is written to either is not seen by the other. The clone needs the shared files: a cleanup or a deletion
        of this table removes them, unless a tag keeps their version. Whoever opens the clone has to allow it to read
        them, by the storage option `allowed_base_paths`: directories, separated by commas. The returned object does.

        Parameters
        ----------
        target_path : str or path
            Directory of the clone, on the same disk or in the same bucket.
        reference, storage_options, **options
            See `deep_clone`.

        Raises
        ------
        DatasetExistsError, VersionNotFoundError, StorageError
            See `deep_clone`.
        InvalidInputError
            If the directory is in another store, or one of the two would lie in the other.
        """
        if storage_options is None:
            storage_options = self._table.storage_options
        allowing = shallow_clone(self._table, target_path, reference, storage_options)
        return _open_clone(target_path, allowing, options)

    @staticmethod
    def commit(
        base_uri: str | os.PathLike[str] | LanceDataset,
        operation: Operation | Transaction,
        read_version: int | None = None,
        *,
        enable_stable_row_ids: bool | None = None,
        commit_message: str | None = None,
        transaction_properties: Mapping[str, str] | None = None,
        max_retries: int = 20,
        detached: bool = False,
        storage_options: Mapping[str, str] | None = None,
        **tuning: Unpack[WriteTuning],
    ) -> LanceDataset:
        """Commit an operation on fragments that are already written.

        Parameters
        ----------
        base_uri : str or path or LanceDataset
        operation : one of `LanceOperation`, or Transaction
            A transaction has its own read version and properties.
        read_version : int, optional
            The version that the operation was prepared on. Required except for `Overwrite` and `Restore`.
        enable_stable_row_ids : bool, optional
            See `write_dataset`. Ignored unless the commit creates the table.
        commit_message : str, optional
        transaction_properties : mapping of str to str, optional
            Kept with the transaction.
        max_retries : int
            Number of retries after other writers commit first.
        detached : bool
            Whether to make a version outside the history, which only its number finds. It follows the version that the
            operation was prepared on, even if other writers have committed since.
        storage_options : mapping of str to str, optional
        **tuning
            Tuning arguments of pylance (`enable_v2_manifest_paths=True`, `session`): accepted and ignored.

        Raises
        ------
        CommitConflictError
            If a commit since `read_version` conflicts with the operation.
        CommitError
            If a data file of the operation is missing or incomplete.
        """
        check_tuning(tuning)
        uri = base_uri.uri if isinstance(base_uri, LanceDataset) else os.fspath(base_uri)
        if isinstance(base_uri, LanceDataset) and storage_options is None:
            storage_options = base_uri._table.storage_options
        table = commit_operation(
            uri,
            operation,
            read_version,
            enable_stable_row_ids=enable_stable_row_ids,
            properties=merge_properties(transaction_properties, commit_message),
            max_retries=max_retries,
            detached=detached,
            storage_options=storage_options,
        )
        return LanceDataset(uri, table)

    @staticmethod
    def commit_batch(
        dest: str | os.PathLike[str] | LanceDataset,
        transactions: Sequence[Transaction],
        **options: Unpack[CommitKeywords],
    ) -> dict[str, Any]:
        """Commit several appends as one version.

        Parameters
        ----------
        dest : str or path or LanceDataset
        transactions : sequence of Transaction
        **options
            See `commit`.

        Returns
        -------
        dict
            `dataset`, and `merged`, the transaction that was committed.
        """
        merged = join_appends(transactions)
        return {"dataset": LanceDataset.commit(dest, merged, **options), "merged": merged}

    @staticmethod
    def drop(
        base_uri: str | os.PathLike[str],
        storage_options: Mapping[str, str] | None = None,
        ignore_not_found: bool = False,
    ) -> None:
        """Delete a table: its versions, branches and tags, and all other files below its directory.

        The table must not be in use. Call it again to complete an interrupted call.

        Parameters
        ----------
        base_uri : str or path
        storage_options : mapping of str to str, optional
        ignore_not_found : bool
            Whether to return silently if the directory does not exist.

        Raises
        ------
        DatasetNotFoundError
            If the directory holds no table. Nothing is deleted, even if it holds other files.
        InvalidInputError
            If the directory is that of a branch.
        CorruptFileError, NotSupportedError
            If the latest version cannot be read. Nothing is deleted.
        """
        directory = TableDirectory.at(base_uri, storage_options)
        drop_table(directory, ignore_not_found=bool(ignore_not_found))


def _reopen(
    uri: str,
    version: int,
    storage_options: Mapping[str, str],
    index_bytes: int,
    cache_bytes: int,
    default_scan_options: Mapping[str, Any],
    verifies: bool,
) -> LanceDataset:
    return dataset(
        uri,
        version,
        storage_options=storage_options,
        index_cache_size_bytes=index_bytes,
        metadata_cache_size_bytes=cache_bytes,
        default_scan_options=default_scan_options,
        verify_checksums=verifies,
    )


def _open_clone(
    path: str | os.PathLike[str], storage_options: Mapping[str, str] | None, options: OpeningKeywords
) -> LanceDataset:
    try:
        return dataset(path, storage_options=storage_options, **options)
    except StorageError as error:
        raise StorageError(f"the clone {path} was made, and cannot be opened now: {error}") from error
