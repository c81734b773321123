"""Base paths: directories of the files that the parents of a branch or of a shallow clone wrote.

A manifest lists directories outside of the table's own, each under a number that its files refer to. Branches need
them: a branch is a separate table below `tree`, and shares files with the versions it starts from. Shallow clones are
the same at any other place of the store. Other base paths have nothing but data files of the table, which writers of
pylance distribute among several directories. A path in a manifest could name any directory, so those of the main branch
and of other branches of the same table are allowed, and others only where whoever opens the table says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lance_format.errors import CorruptFileError, InvalidInputError, NotSupportedError
from lance_format.lazy_dataclasses import dataclass
from lance_format.object_store import ALLOWED_BASE_PATHS, shares_readers, uri_path
from lance_format.proto import table_pb2
from lance_format.table.format.fragment_list import FragmentList
from lance_format.table.format.index_metadata import IndexMetadata
from lance_format.table.format.layout import BRANCH_TREE, main_location
from lance_format.table.format.ref_names import check_branch_name


@dataclass(frozen=True, slots=True)
class BasePath:
    """A directory of files of a table, outside of its own.

    Parameters
    ----------
    path : str
        In the store.
    is_table : bool
        Whether it is laid out as a table; else it has data files only, in no directory of their own.
    """

    path: str
    is_table: bool = True


def parse_allowed(storage_options: Mapping[str, str] | None) -> tuple[str, ...]:
    """Return the directories that tables may share files with, as paths in their stores.

    The option `allowed_base_paths` lists them, separated by commas; what lies below them is allowed, too.

    Raises
    ------
    InvalidInputError, NotSupportedError
        If one is no path.
    """
    given = next((value for name, value in (storage_options or {}).items() if name.lower() == ALLOWED_BASE_PATHS), "")
    return tuple(uri_path(part.strip()) for part in given.split(",") if part.strip())


def parse_base_paths(message: table_pb2.Manifest, root: str, allowed: Iterable[str] = ()) -> dict[int, BasePath]:
    """Return the directories of a manifest, by number.

    Parameters
    ----------
    message : table_pb2.Manifest
    root : str
        The path of the branch in the store.
    allowed : iterable of str
        See `parse_allowed`.

    Raises
    ------
    CorruptFileError
        If a number is given twice, or the branch's name is none.
    NotSupportedError
        If a path leads out of the table to a place that is not allowed, or to another store.
    """
    branch = message.branch if message.HasField("branch") else None
    if branch is not None:
        _check_name(branch)
    main = main_location(root, branch)
    bases: dict[int, BasePath] = {}
    for base in message.base_paths:
        if base.id in bases:
            raise CorruptFileError(f"base path {base.id} is listed twice")
        directory = _directory_of(base.path)
        if directory is None or not (_is_branch(directory, main) or any(lies_in(directory, each) for each in allowed)):
            raise NotSupportedError(
                f"the table {root} has files outside of its directory, in {base.path[:300]!r} (base paths, as shallow"
                " clones have them); if it may read there, name the directory in the storage option"
                f" {ALLOWED_BASE_PATHS!r}"
            )
        if not shares_readers(directory, root):
            raise NotSupportedError(
                f"the table {root} has files in another store, in {base.path[:300]!r}; base paths have to be in"
                " buckets if the table is, or on the same disk: copy it by the deep_clone of pylance"
            )
        bases[base.id] = BasePath(directory, base.is_dataset_root)
    return bases


def lies_in(path: str, directory: str) -> bool:
    """Return whether a path is a directory, or below it."""
    return path == directory or path.startswith(directory.rstrip("/") + "/")


def check_known_bases(fragments: FragmentList, indices: Iterable[IndexMetadata], bases: Mapping[int, BasePath]) -> None:
    """Check that the files of fragments and indices lie in listed directories.

    Parameters
    ----------
    fragments : FragmentList
    indices : iterable of IndexMetadata
    bases : mapping of int to BasePath
        The listed directories by number.

    Raises
    ------
    CorruptFileError
        If one does not.
    """
    known = {None, *bases}
    for fragment in () if fragments.columns.base_ids <= known else fragments:
        used = {file.base_id for file in fragment.files}
        if fragment.deletion_file is not None:
            used.add(fragment.deletion_file.base_id)
        if not used <= known:
            raise CorruptFileError(f"fragment {fragment.id} has a file in a base path that is not listed: {used}")
    for index in indices:
        if index.base_id not in known:
            raise CorruptFileError(f"index {index.uuid} lies in a base path that is not listed: {index.base_id}")


def _check_name(branch: str) -> None:
    try:
        check_branch_name(branch)
    except InvalidInputError as error:
        raise CorruptFileError(f"malformed name of a branch: {error}") from error


def _directory_of(path: str) -> str | None:
    try:
        return uri_path(path)
    except (InvalidInputError, NotSupportedError):
        return None


def _is_branch(directory: str, main: str) -> bool:
    if directory == main:
        return True
    prefix = f"{main}/{BRANCH_TREE}/"
    try:
        return directory.startswith(prefix) and bool(check_branch_name(directory.removeprefix(prefix)))
    except InvalidInputError:
        return False
