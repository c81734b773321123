"""Copy of a version of a table, with all files that it needs, to another directory as a separate table."""

from __future__ import annotations

import dataclasses
import os
import time
import uuid
from collections.abc import Iterator, Mapping

from lance_format.errors import DatasetExistsError, DatasetNotFoundError, InvalidInputError, NotSupportedError
from lance_format.object_store import (
    ObjectExistsError,
    ObjectNotFoundError,
    ObjectStore,
    read_chunks,
    write_chunks,
)
from lance_format.progress import Work, advance, expect, is_reported
from lance_format.table.format.file_entries import ExternalFile
from lance_format.table.format.fragment import FragmentMetadata
from lance_format.table.format.fragment_list import FragmentList
from lance_format.table.format.layout import is_detached, transaction_name
from lance_format.table.format.manifest import Manifest
from lance_format.table.format.successor import make_successor
from lance_format.table.format.table_directory import TableDirectory
from lance_format.table.maintenance.file_inventory import DATA_FILE, TRANSACTION_FILE, list_named_files
from lance_format.table.transaction.transaction import serialize_clone
from lance_format.table.versions.checkout import Reference, check_out
from lance_format.table.versions.first_version import create_first_version
from lance_format.table.versions.history import load_history
from lance_format.table.versions.planned_change import bytes_of
from lance_format.table.versions.table_version import TableVersion


def deep_clone(
    table: TableVersion,
    target: str | os.PathLike[str],
    reference: Reference,
    storage_options: Mapping[str, str] | None = None,
) -> None:
    """Copy a version of a table to another directory.

    Parameters
    ----------
    table : TableVersion
    target : str or path
        Directory of the copy. Its first version has the number of the copied one.
    reference : int, str, or tuple of (str or None) and (int or None)
        The version to copy; see `lance_format.table.versions.checkout`.
    storage_options : mapping of str to str, optional
        Options of the target's storage.

    Raises
    ------
    DatasetExistsError
        If the target already holds a table.
    VersionNotFoundError
        If there is no such version.
    DatasetNotFoundError
        If a file of the version is missing. There is no table at the target then; another call continues the copy.
    NotSupportedError
        If the version keeps row ids in separate files.
    """
    source = check_out(table, reference)
    if is_detached(source.manifest.version):
        raise InvalidInputError(f"version {source.manifest.version} is detached, and cannot be cloned")
    _check_row_ids(source.manifest)
    directory = TableDirectory.at(target, storage_options)
    directory.store.check_writable(directory.root)
    if load_history(directory).names:
        raise DatasetExistsError(f"the table {directory} exists; choose another path for the clone")
    rows = _rows_by_file(source)
    expect(Work.COPYING, sum(rows.values()), bytes_of(source.manifest.fragments))
    for root, path in _files(source):
        _copy(source.store, f"{root}/{path}", directory.store, directory.path(path))
        advance(Work.COPYING, rows.get(path, 0), 0)
    try:
        create_first_version(directory, _first_manifest(source))
    except ObjectExistsError as error:
        raise DatasetExistsError(f"another writer has created the table {directory} concurrently") from error


def _files(source: TableVersion) -> Iterator[tuple[str, str]]:
    """Yield the directories of the files of a version, and the paths that they have there, and in a table."""
    for root, path, kind in list_named_files(source.manifest, source.directory):
        if kind != TRANSACTION_FILE:
            yield root, path
        if kind == DATA_FILE:
            for info in source.store.list_tree(f"{root}/{path.removesuffix('.lance')}"):  # of its blobs
                yield root, info.path[len(root) + 1 :]


def _rows_by_file(source: TableVersion) -> dict[str, int]:
    """Return the physical rows of each fragment by the path of its first data file, if somebody watches."""
    if not is_reported(Work.COPYING):
        return {}
    return {f"data/{each.files[0].path}": each.physical_rows for each in source.manifest.fragments if each.files}


def _copy(source: ObjectStore, path: str, target: ObjectStore, copy: str) -> None:
    try:
        reader = source.open_reader(path)
    except ObjectNotFoundError as error:
        raise DatasetNotFoundError(
            f"{path} is missing, which the cloned version needs; if a cleanup has removed it, clone another"
        ) from error
    try:
        write_chunks(target, copy, _counted(read_chunks(reader)))
    finally:
        reader.close()


def _counted(chunks: Iterator[bytes]) -> Iterator[bytes]:
    for chunk in chunks:
        yield chunk
        advance(Work.COPYING, 0, len(chunk))


def _first_manifest(source: TableVersion) -> Manifest:
    """Return the first version of the copy, all of whose files lie in its own directory."""
    manifest = source.manifest
    message = type(manifest.message)()
    message.CopyFrom(manifest.message)
    message.ClearField("branch")
    del message.base_paths[:]
    fragments = manifest.fragments
    if manifest.bases:
        fragments = FragmentList(_in_table(fragment) for fragment in fragments)
    state = dataclasses.replace(
        manifest,
        fragments=fragments,
        indices=tuple(index.in_table() for index in manifest.indices),
        branch=None,
        bases={},
        message=message,
    )
    identity = str(uuid.uuid4())
    # The numbers continue from the version where it starts; earlier versions are not its history.
    before = dataclasses.replace(manifest, version=manifest.version - 1, transaction_file="", ancestors=b"")
    return make_successor(
        before,
        state,
        transaction_file=transaction_name(manifest.version, identity),
        inline_transaction=serialize_clone(
            manifest.version, identity, manifest.branch, source.uri, None, is_shallow=False
        ),
        now_ns=time.time_ns(),
    )


def _check_row_ids(manifest: Manifest) -> None:
    for fragment in manifest.fragments:
        for sequence in (fragment.row_id_meta, fragment.created_at_version_meta, fragment.last_updated_at_version_meta):
            if isinstance(sequence, ExternalFile):
                raise NotSupportedError(
                    f"fragment {fragment.id} has its row ids in a separate file; compact the table, and clone that"
                )


def _in_table(fragment: FragmentMetadata) -> FragmentMetadata:
    deletion = fragment.deletion_file
    return dataclasses.replace(
        fragment,
        files=tuple(dataclasses.replace(file, base_id=None) for file in fragment.files),
        deletion_file=None if deletion is None else dataclasses.replace(deletion, base_id=None),
    )
