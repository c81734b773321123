"""Deleting a table with all that lies beside it."""

from __future__ import annotations

from lance_format.errors import DatasetNotFoundError, InvalidInputError
from lance_format.object_store import DirectoryStore, delete_objects, remove_empty_tree
from lance_format.table.format.table_directory import TableDirectory
from lance_format.table.versions.history import load_history


def drop_table(directory: TableDirectory, *, ignore_not_found: bool = False) -> None:
    """Delete a table: its versions, branches and tags, and all other files below its directory.

    Manifests are deleted last, the latest one at the end, so that an interrupted call can be repeated. The table must
    not be in use.

    Parameters
    ----------
    directory : TableDirectory
    ignore_not_found : bool
        Whether to return silently if the directory does not exist.

    Raises
    ------
    DatasetNotFoundError
        If the directory holds no table. Nothing is deleted, even if it holds other files.
    InvalidInputError
        If the directory is that of a branch.
    CorruptFileError, NotSupportedError
        If the latest version cannot be read, so that it may not be a table.
    """
    store, root = directory.store, directory.root
    history = load_history(directory)
    if not history.names:
        is_empty = next(store.list_tree(root), None) is None
        if is_empty and isinstance(store, DirectoryStore) and not store.absent_directories(directory.versions):
            # A drop was interrupted here.
            remove_empty_tree(store, root)
            return
        if is_empty and ignore_not_found:
            return
        raise DatasetNotFoundError(f"there is no Lance table at {root} to be dropped; nothing was deleted")
    latest = history.load(history.latest)
    if latest.branch is not None:
        raise InvalidInputError(f"{root} is the branch {latest.branch!r} of a table; delete it by branches.delete")
    manifests = [history.manifest_path(version) for version in sorted(history.names)]
    paths = [info.path for info in store.list_tree(root)]
    delete_objects(store, sorted(set(paths) - set(manifests)))
    delete_objects(store, manifests[:-1])
    remove_empty_tree(store, root)  # All except the directory of the latest manifest, which identifies the table.
    store.delete(manifests[-1])
    remove_empty_tree(store, root)
