"""Shallow clones: tables of their own whose first version shares the files of a version of another table."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping

from lance_format.errors import DatasetExistsError, InvalidInputError
from lance_format.object_store import ALLOWED_BASE_PATHS, ObjectExistsError, prefix_of
from lance_format.table.format.base_paths import lies_in
from lance_format.table.format.layout import is_detached, main_location
from lance_format.table.format.table_directory import TableDirectory
from lance_format.table.versions.checkout import Reference, check_out
from lance_format.table.versions.first_version import create_first_version
from lance_format.table.versions.history import load_history
from lance_format.table.versions.sharing import sharing_manifest
from lance_format.table.versions.table_version import TableVersion


def shallow_clone(
    table: TableVersion,
    target: str | os.PathLike[str],
    reference: Reference,
    storage_options: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Make a table that begins with a version of another one, and shares its files.

    Parameters
    ----------
    table : TableVersion
    target : str or path
        Directory of the clone. Its first version has the number of the shared one.
    reference : int, str, or tuple of (str or None) and (int or None)
        The version to share; see `lance_format.table.versions.checkout`.
    storage_options : mapping of str to str, optional
        Options of the clone's storage.

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
    source = check_out(table, reference)
    manifest = source.manifest
    if is_detached(manifest.version):
        raise InvalidInputError(f"version {manifest.version} is detached, and cannot be cloned")
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
    directory.store.check_writable(directory.root)
    if load_history(directory).names:
        raise DatasetExistsError(f"the table {directory} exists; choose another path for the clone")
    first = sharing_manifest(manifest, str(uuid.uuid4()), None, manifest.branch, source.uri, source.root)
    try:
        create_first_version(directory, first)
    except ObjectExistsError as error:
        raise DatasetExistsError(f"another writer has created the table {directory} concurrently") from error
    return options


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
