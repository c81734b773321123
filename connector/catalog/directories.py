"""The layout of a catalog: directories are namespaces, and `<name>.lance` in one of them is a table.

It is the layout of pylance's directory namespace (`lance.namespace`) without the table `__manifest`: each namespace is
the root of such a directory namespace. A table that was dropped without being purged keeps its directory. An empty file
`.lance-deregistered` beside its versions tells both libraries not to list it.

Names that start with a dot or an underscore, or that contain `$`, belong to other programs and are no namespaces.
"""

from __future__ import annotations

import os
from pathlib import Path

from connector.options.options import LanceOptions
from connector.options.snapshot import branch_uri, open_at
from lance_format import DatasetNotFoundError, InvalidInputError, LanceDataset, StorageError, VersionNotFoundError

SUFFIX = ".lance"
_DROPPED = ".lance-deregistered"
_OTHERS = (".", "_")
_RESERVED = "$"


def list_directory(path: Path) -> tuple[list[str], list[str]] | None:
    """Return the namespaces and the tables of a namespace, in order; None if there is no such namespace.

    Parameters
    ----------
    path : Path
        The directory of the namespace.

    Raises
    ------
    StorageError
        If the directory cannot be listed.
    """
    try:
        names = sorted(entry.name for entry in os.scandir(path) if entry.is_dir())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise StorageError(f"the directory {path} cannot be listed: {error}") from error
    tables = [name for name in names if name.endswith(SUFFIX) and name != SUFFIX]
    namespaces = [name for name in names if _is_namespace(name)]
    return namespaces, [name.removesuffix(SUFFIX) for name in tables if not is_dropped(path / name)]


def _is_namespace(name: str) -> bool:
    return not name.startswith(_OTHERS) and not name.endswith(SUFFIX) and _RESERVED not in name


def create_directory(path: Path) -> None:
    """Create a namespace; succeed if another process has just created it.

    Raises
    ------
    StorageError
        If the directory cannot be created.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"the namespace {path} cannot be created: {error}") from error


def remove_directory(path: Path, *, cascade: bool) -> bool:
    """Remove a namespace.

    Parameters
    ----------
    path : Path
    cascade : bool
        Whether to remove its namespaces too, and to purge its tables.

    Returns
    -------
    bool
        False if the namespace was kept because it is not empty and `cascade` is false.

    Raises
    ------
    InvalidInputError
        If an entry is neither a table nor a namespace. Entries before it in the order of names are already removed.
    """
    if cascade:
        for entry in sorted(os.scandir(path), key=lambda entry: entry.name):
            if entry.is_dir(follow_symlinks=False) and entry.name.endswith(SUFFIX):
                LanceDataset.drop(entry.path)
            elif entry.is_dir(follow_symlinks=False) and _is_namespace(entry.name):
                remove_directory(Path(entry.path), cascade=True)
            else:
                raise InvalidInputError(
                    f"{entry.path} is neither a table nor a namespace, and is not removed: move or delete it, and drop"
                    " the namespace again"
                )
    elif next(path.iterdir(), None) is not None:
        return False
    try:
        path.rmdir()
    except OSError as error:
        raise StorageError(f"the namespace {path} cannot be removed: {error}") from error
    return True


def has_table(options: LanceOptions) -> bool:
    """Return whether the table that options name exists, dropped or not, and its branch if they name one."""
    try:
        open_at(options, branch_uri(options))
    except (DatasetNotFoundError, VersionNotFoundError):
        return False
    return True


def is_dropped(path: Path) -> bool:
    """Return whether the table in a directory was dropped without being purged."""
    return (path / _DROPPED).exists()


def mark_dropped(path: Path) -> None:
    """Hide a table from listings, and keep its files.

    Raises
    ------
    StorageError
        If the mark cannot be written.
    """
    try:
        (path / _DROPPED).touch()
    except OSError as error:
        raise StorageError(f"the table {path} cannot be dropped: {error}") from error


def rename_table(path: Path, to: Path) -> None:
    """Give a table another name, or another namespace.

    Raises
    ------
    StorageError
        If the directory cannot be moved.
    """
    try:
        path.rename(to)
    except OSError as error:
        raise StorageError(f"the table {path} cannot be renamed to {to}: {error}") from error
