"""Clones: a version of a table as a table of its own, with a copy of all files that it needs, or with the same ones."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping, Set

from lance_format.blob_fields import has_blobs
from lance_format.errors import DatasetExistsError, DatasetNotFoundError, InvalidInputError
from lance_format.object_store import (
    ALLOWED_BASE_PATHS,
    ObjectExistsError,
    ObjectNotFoundError,
    ObjectStore,
    map_together,
    prefix_of,
    read_chunks,
    write_chunks,
)
from lance_format.progress import Work, advance, expect, is_reported
from lance_format.table.format.base_paths import lies_in
from lance_format.table.format.fragment import FragmentMetadata
from lance_format.table.format.fragment_list import FragmentList
from lance_format.table.format.layout import is_detached, main_location
from lance_format.table.format.manifest import Manifest
from lance_format.table.format.table_directory import TableDirectory
from lance_format.table.maintenance.file_inventory import DATA_FILE, TRANSACTION_FILE, list_named_files
from lance_format.table.versions.checkout import Reference, check_out
from lance_format.table.versions.first_version import (
    check_row_ids,
    create_first_version,
    first_manifest,
    sharing_manifest,
)
from lance_format.table.versions.history import load_history
from lance_format.table.versions.planned_change import bytes_of
from lance_format.table.versions.table_version import TableVersion

_SMALL_BYTES = 1024 * 1024
_LARGE_AT_ONCE = 4
"""Number of files of more than `_SMALL_BYTES` that are copied at the same time."""


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
        Directory of the clone. Its first version has the number of the cloned one.
    reference : int, str, or tuple of (str or None) and (int or None)
        The version to clone; see `lance_format.table.versions.checkout`.
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
    source = _check_out(table, reference)
    for fragment in source.manifest.fragments:
        check_row_ids(fragment)
    directory = TableDirectory.at(target, storage_options)
    _check_free(directory)
    rows = _rows_by_file(source)
    expect(Work.COPYING, sum(rows.values()), bytes_of(source.manifest.fragments))
    counted = {f"data/{file.path}" for fragment in source.manifest.fragments for file in fragment.files}
    copies = _Copies(source.store, directory, counted)
    slower = source.store if source.store.is_remote else directory.store
    with contextlib.closing(map_together(slower, copies.copy, _files(source))) as copied:
        for path, size_bytes in copied:
            advance(Work.COPYING, rows.get(path, 0), size_bytes)
    _create(directory, _copied_manifest(source))


def shallow_clone(
    table: TableVersion,
    target: str | os.PathLike[str],
    reference: Reference,
    storage_options: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Make a table that begins with a version of another one, and shares its files.

    Parameters
    ----------
    table, target, reference, storage_options
        See `deep_clone`.

    Returns
    -------
    dict of str to str
        Options with which the clone can be opened: these, and the directories that it may read.

    Raises
    ------
    DatasetExistsError
        If the target already holds a table.
    VersionNotFoundError
        If there is no such version.
    InvalidInputError
        If the target is in another store, or one of the two tables would lie in the directory of the other.
    NotSupportedError
        If the version keeps row ids in separate files, or has features that are unknown.
    """
    source = _check_out(table, reference)
    manifest = source.manifest
    manifest.check_writable(f"the table {source.root}")
    main = main_location(source.root, manifest.branch)
    options = _with_allowed(storage_options or {}, [source.uri, *(base.path for base in manifest.message.base_paths)])
    directory = TableDirectory.at(target, options)
    if prefix_of(directory.root) != prefix_of(main):
        raise InvalidInputError(
            f"{directory} is in another store than {main}, and cannot share its files; copy the table by deep_clone"
        )
    if lies_in(directory.root, main) or lies_in(main, directory.root):
        raise InvalidInputError(f"of {directory} and {main}, one lies in the other; choose another path for the clone")
    _check_free(directory)
    _create(directory, sharing_manifest(manifest, None, source.uri, source.root))
    return options


def _check_out(table: TableVersion, reference: Reference) -> TableVersion:
    source = check_out(table, reference)
    if is_detached(source.manifest.version):
        raise InvalidInputError(f"version {source.manifest.version} is detached, and cannot be cloned")
    return source


def _check_free(directory: TableDirectory) -> None:
    directory.store.check_writable(directory.root)
    if load_history(directory).names:
        raise DatasetExistsError(f"the table {directory} exists; choose another path for the clone")


def _create(directory: TableDirectory, first: Manifest) -> None:
    try:
        create_first_version(directory, first)
    except ObjectExistsError as error:
        raise DatasetExistsError(f"another writer has created the table {directory} concurrently") from error


def _with_allowed(storage_options: Mapping[str, str], locations: list[str]) -> dict[str, str]:
    """Return options that also allow the directories of base paths."""
    for location in locations:
        if "," in location:
            raise InvalidInputError(
                f"{location!r} has a comma, which {ALLOWED_BASE_PATHS!r} cannot name; move the table"
            )
    options = {name: value for name, value in storage_options.items() if name.lower() != ALLOWED_BASE_PATHS}
    given = [value for name, value in storage_options.items() if name.lower() == ALLOWED_BASE_PATHS]
    return {**options, ALLOWED_BASE_PATHS: ",".join(dict.fromkeys([*given, *locations]))}


def _files(source: TableVersion) -> Iterator[tuple[str, str]]:
    """Yield the paths in the store of the files of a version, and their paths relative to a table that has them."""
    with_blobs = any(has_blobs(field) for field in source.manifest.schema.fields)
    listed: dict[str, Mapping[str, list[str]]] = {}
    for holding, path, kind in list_named_files(source.manifest, source.directory):
        if kind != TRANSACTION_FILE:
            yield holding.path(path), path
        if kind == DATA_FILE and with_blobs:
            if holding.root not in listed:
                listed[holding.root] = _blobs_in(holding)
            for original in listed[holding.root].get(holding.path(path), ()):
                yield original, f"{path.removesuffix('.lance')}{original[len(holding.path(path)) - len('.lance') :]}"


def _blobs_in(directory: TableDirectory) -> Mapping[str, list[str]]:
    """Return the files of blobs by the data file beside whose rows they are; they lie in a directory of its name."""
    found = defaultdict[str, list[str]](list)
    for info in directory.store.list_tree(directory.data):
        name, is_below, _ = info.path[len(directory.data) + 1 :].partition("/")
        if is_below:
            found[f"{directory.data}/{name}.lance"].append(info.path)
    return found


def _rows_by_file(source: TableVersion) -> dict[str, int]:
    """Return the physical rows of each fragment by the path of its first data file, if somebody watches."""
    if not is_reported(Work.COPYING):
        return {}
    return {f"data/{each.files[0].path}": each.physical_rows for each in source.manifest.fragments if each.files}


class _Copies:
    """Copies files of a store to a directory, several at once; of large ones few, whose pieces are in memory.

    Parameters
    ----------
    source : ObjectStore
    target : TableDirectory
    counted : set of str
        Paths in the table of the files whose bytes are work: the data files, whose sizes a table records.
    """

    def __init__(self, source: ObjectStore, target: TableDirectory, counted: Set[str]) -> None:
        self._source = source
        self._target = target
        self._counted = counted
        self._large = threading.BoundedSemaphore(_LARGE_AT_ONCE)

    def copy(self, file: tuple[str, str]) -> tuple[str, int]:
        """Copy a file of `_files`; return its path in the table, and the bytes of whose copy nobody was told."""
        original, path = file
        try:
            reader = self._source.open_reader(original)
        except ObjectNotFoundError as error:
            raise DatasetNotFoundError(
                f"{original} is missing, which the cloned version needs; if a cleanup has removed it, clone another"
            ) from error
        try:
            with self._large if reader.size_bytes > _SMALL_BYTES else contextlib.nullcontext():
                chunks = _counted(read_chunks(reader)) if path in self._counted else read_chunks(reader)
                write_chunks(self._target.store, self._target.path(path), chunks)
        finally:
            reader.close()
        return path, 0 if path not in self._counted or is_reported(Work.COPYING) else reader.size_bytes


def _counted(chunks: Iterator[bytes]) -> Iterator[bytes]:
    for chunk in chunks:
        yield chunk
        advance(Work.COPYING, 0, len(chunk))  # Threads tell nothing.


def _copied_manifest(source: TableVersion) -> Manifest:
    """Return the first version of a copy, all of whose files lie in its own directory."""
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
    return first_manifest(manifest, state, source.uri, is_shallow=False)


def _in_table(fragment: FragmentMetadata) -> FragmentMetadata:
    deletion = fragment.deletion_file
    return dataclasses.replace(
        fragment,
        files=tuple(dataclasses.replace(file, base_id=None) for file in fragment.files),
        deletion_file=None if deletion is None else dataclasses.replace(deletion, base_id=None),
    )
