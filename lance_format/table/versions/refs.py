"""Stored form of tags and branches: one JSON file each, below the main branch.

    _refs/tags/<name>.json            the branch and the version that a tag names
    _refs/branches/<name>.json        the version where a branch starts; "/" in the name reads %2F

Files are created only if they are absent, so one of two writers of a name succeeds. A version that gets a tag or a
branch must not be cleaned up concurrently: the creator of a reference checks that the version still exists after the
reference does, and a cleanup looks for references right before it deletes versions.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import time
import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from typing import Any, TypeVar

from lance_format.errors import CommitStateUnknownError, CorruptFileError, InvalidInputError, LanceError, StorageError
from lance_format.lazy_dataclasses import dataclass
from lance_format.object_store import (
    ObjectExistsError,
    ObjectNotFoundError,
    ObjectStore,
    absent_directories,
    remove_if_empty,
)
from lance_format.object_store.store import RefusedError, find_size
from lance_format.table.format.ref_names import check_branch_name, check_tag_name
from lance_format.table.format.table_directory import TableDirectory

_MAX_REF_BYTES = 1 << 24
_SUFFIX = ".json"


@dataclass(frozen=True, slots=True)
class Tag:
    """Version that a tag names.

    Parameters
    ----------
    branch : str or None
        None for the main one.
    version : int
    manifest_size : int
        Bytes of the version's manifest.
    created_at, updated_at : str or None
        Times in UTC, as in RFC 3339 with nanoseconds; None in tags of early releases.
    metadata : mapping of str to str
    """

    branch: str | None
    version: int
    manifest_size: int
    created_at: str | None
    updated_at: str | None
    metadata: Mapping[str, str] = field(default_factory=dict)

    def describe(self) -> dict[str, Any]:
        """Return the description in `Tags.list`; keys and types are those of pylance."""
        return {
            "branch": self.branch,
            "version": self.version,
            "created_at": _parse_time(self.created_at),
            "updated_at": _parse_time(self.updated_at),
            "manifest_size": self.manifest_size,
            "metadata": dict(self.metadata),
        }


@dataclass(frozen=True, slots=True)
class Branch:
    """Version that a branch started from.

    Parameters
    ----------
    parent_branch : str or None
        None for the main one.
    parent_version : int
    identifier : tuple of (int, str)
        The versions that its ancestors and it start from, with an identity each, oldest first.
    create_at : int
        Seconds since the epoch, UTC.
    manifest_size : int
        Bytes of the parent's manifest.
    metadata : mapping of str to str
    """

    parent_branch: str | None
    parent_version: int
    identifier: tuple[tuple[int, str], ...]
    create_at: int
    manifest_size: int
    metadata: Mapping[str, str] = field(default_factory=dict)

    def describe(self) -> dict[str, Any]:
        """Return the description in `Branches.list`; keys and types are those of pylance."""
        return {
            "parent_branch": self.parent_branch,
            "branch_identifier": list(self.identifier),
            "parent_version": self.parent_version,
            "create_at": self.create_at,
            "manifest_size": self.manifest_size,
            "metadata": dict(self.metadata),
        }


Ref = TypeVar("Ref", Tag, Branch)


def now() -> str:
    """Return the current time as references store it."""
    seconds, nanoseconds = divmod(time.time_ns(), 10**9)
    whole = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    return f"{whole:%Y-%m-%dT%H:%M:%S}.{nanoseconds:09}Z"


def list_tags(main: TableDirectory) -> dict[str, Tag]:
    """Read all tags of a table, by name, given the path of its main branch."""
    return _list(main.store, main.tags, _parse_tag)


def list_branches(main: TableDirectory) -> dict[str, Branch]:
    """Read all branches of a table except the main one, by name."""
    return _list(main.store, main.branches, _parse_branch)


def inspect_tags(main: TableDirectory) -> Iterator[tuple[str, Tag | CorruptFileError]]:
    """Yield the name of each tag, and it, or the error of reading it; see `list_tags`."""
    return _inspect(main.store, main.tags, _parse_tag)


def inspect_branches(main: TableDirectory) -> Iterator[tuple[str, Branch | CorruptFileError]]:
    """Yield the name of each branch except the main one, and it, or the error of reading it; see `list_tags`."""
    return _inspect(main.store, main.branches, _parse_branch)


def list_named_versions(main: TableDirectory, branch: str | None) -> set[int]:
    """Return the versions of a branch with tags, or that other branches start from; see `list_tags`."""
    tagged = {tag.version for tag in list_tags(main).values() if tag.branch == branch}
    return tagged.union(
        started.parent_version for started in list_branches(main).values() if started.parent_branch == branch
    )


def load_tag(main: TableDirectory, name: str) -> Tag | None:
    """Read a tag; None if it does not exist; see `list_tags`."""
    return _load(main.store, _path(main.tags, check_tag_name(name)), _parse_tag)


def load_branch(main: TableDirectory, name: str) -> Branch | None:
    """Read the start of a branch; None if the branch does not exist; see `list_tags`."""
    return _load(main.store, _path(main.branches, check_branch_name(name)), _parse_branch)


@contextlib.contextmanager
def removing_new_directories(main: TableDirectory, kind: type[Tag | Branch]) -> Iterator[None]:
    """Remove the directories of tags or of branches after an error, if they were made since and are empty."""
    made = absent_directories(main.store, _directory(main, kind))
    try:
        yield
    except LanceError:
        remove_if_empty(main.store, made)
        raise


def create_ref(main: TableDirectory, name: str, ref: Tag | Branch) -> None:
    """Store a new tag or branch.

    Parameters
    ----------
    main : TableDirectory
        The directory of the main branch.
    name : str
    ref : Tag or Branch

    Raises
    ------
    InvalidInputError
        If the tag or branch exists.
    CommitStateUnknownError
        If the storage fails, and does not tell whether the tag is there.
    """
    store, path, content = main.store, ref_path(main, name, ref), _serialize(ref)
    try:
        try:
            store.put_if_absent(path, content)
        except ObjectExistsError:
            if find_size(store, path) is not None:
                raise
            store.put_if_absent(path, content)  # It was being deleted.
    except ObjectExistsError as error:
        if store.read(path, _MAX_REF_BYTES) != content:  # This very call may have created it and lost the reply.
            kind = type(ref).__name__.lower()
            raise InvalidInputError(f"the {kind} {name!r} of {main} exists; choose another name") from error
    except StorageError as error:
        try:
            store.delete_exact(path, content)  # It may exist all the same.
        except StorageError:
            # A branch is not there without a version.
            if isinstance(ref, Tag) and not isinstance(error, RefusedError):
                raise CommitStateUnknownError(
                    f"it is not known whether the tag {name!r} of {main} was created: look for it before you create it"
                    f" again: {error}"
                ) from error
        raise


def replace_ref(main: TableDirectory, name: str, ref: Tag | Branch) -> None:
    """Replace an existing tag or branch; see `create_ref`."""
    store, path, content = main.store, ref_path(main, name, ref), _serialize(ref)
    try:
        store.put(path, content)
    except StorageError as error:  # Its reply may have been lost.
        try:
            found = store.read(path, _MAX_REF_BYTES)
        except LanceError:
            raise error from None
        if found != content:
            raise


def delete_ref(main: TableDirectory, name: str, ref: Tag | Branch) -> None:
    """Delete the file of a tag or branch, unless another one has replaced it; see `create_ref`."""
    store, path = main.store, ref_path(main, name, ref)
    with contextlib.suppress(ObjectNotFoundError):
        content = store.read(path, _MAX_REF_BYTES)
        found = _parsed(content, path, _parse_tag) if isinstance(ref, Tag) else _parsed(content, path, _parse_branch)
        if found == ref:
            store.delete_exact(path, content)


def check_metadata(metadata: Any) -> dict[str, str]:
    """Check and return the metadata of a reference.

    Raises
    ------
    InvalidInputError
        If it is not a mapping of strings to strings.
    """
    if not isinstance(metadata, Mapping) or not all(isinstance(x, str) for pair in metadata.items() for x in pair):
        raise InvalidInputError(f"the metadata is {metadata!r}; a mapping of strings to strings is needed")
    return dict(metadata)


def ref_path(main: TableDirectory, name: str, ref: Tag | Branch) -> str:
    """Return the path of the file of a tag or branch; see `create_ref`."""
    return _path(_directory(main, type(ref)), name)


def _directory(main: TableDirectory, kind: type[Tag | Branch]) -> str:
    return main.tags if kind is Tag else main.branches


def _path(directory: str, name: str) -> str:
    return f"{directory}/{urllib.parse.quote(name, safe='')}{_SUFFIX}"


def _list(store: ObjectStore, directory: str, parse: Callable[[dict[str, Any]], Ref]) -> dict[str, Ref]:
    found = {}
    for name, ref in _inspect(store, directory, parse):
        if isinstance(ref, CorruptFileError):
            raise ref
        found[name] = ref
    return dict(sorted(found.items()))


def _inspect(
    store: ObjectStore, directory: str, parse: Callable[[dict[str, Any]], Ref]
) -> Iterator[tuple[str, Ref | CorruptFileError]]:
    for file in sorted(store.list_names(directory)):
        # Skip those being written.
        if file.endswith(_SUFFIX) and not file.startswith(".tmp_"):
            ref: Ref | CorruptFileError | None
            try:
                ref = _load(store, f"{directory}/{file}", parse)
            except CorruptFileError as error:
                ref = error
            if ref is not None:  # Else it was deleted since it was listed.
                yield urllib.parse.unquote(file.removesuffix(_SUFFIX)), ref


def _load(store: ObjectStore, path: str, parse: Callable[[dict[str, Any]], Ref]) -> Ref | None:
    try:
        content = store.read(path, _MAX_REF_BYTES)
    except ObjectNotFoundError:
        return None
    return _parsed(content, path, parse)


def _parsed(content: bytes, path: str, parse: Callable[[dict[str, Any]], Ref]) -> Ref:
    try:
        return parse(json.loads(content))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise CorruptFileError(f"malformed reference: {type(error).__name__}: {error}", path=path) from error


def _parse_tag(stored: dict[str, Any]) -> Tag:
    tag = Tag(
        branch=_optional(stored, "branch", str),
        version=_count(stored, "version"),
        manifest_size=_count(stored, "manifestSize"),
        created_at=_optional(stored, "createdAt", str),
        updated_at=_optional(stored, "updatedAt", str),
        metadata=_metadata(stored),
    )
    tag.describe()
    if tag.branch is not None:
        check_branch_name(tag.branch)
    return tag


def _parse_branch(stored: dict[str, Any]) -> Branch:
    mapping = (stored.get("identifier") or {}).get("version_mapping", [])
    branch = Branch(
        parent_branch=_optional(stored, "parentBranch", str),
        parent_version=_count(stored, "parentVersion"),
        identifier=tuple((int(version), str(identity)) for version, identity in mapping),
        create_at=_count(stored, "createAt"),
        manifest_size=_count(stored, "manifestSize"),
        metadata=_metadata(stored),
    )
    if branch.parent_branch is not None:
        check_branch_name(branch.parent_branch)
    return branch


def _optional(stored: dict[str, Any], key: str, kind: type[str]) -> str | None:
    value = stored.get(key)
    if value is not None and not isinstance(value, kind):
        raise TypeError(f"{key} is {value!r}")
    return value


def _count(stored: dict[str, Any], key: str) -> int:
    value = stored[key]
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**64:
        raise TypeError(f"{key} is {value!r}")
    return value


def _metadata(stored: dict[str, Any]) -> dict[str, str]:
    metadata = stored.get("metadata") or {}
    return {str(key): str(value) for key, value in metadata.items()}


def _parse_time(text: str | None) -> datetime.datetime | None:
    return None if text is None else datetime.datetime.fromisoformat(text)


def _serialize(ref: Tag | Branch) -> bytes:
    stored: dict[str, Any]
    if isinstance(ref, Tag):
        stored = {
            "branch": ref.branch,
            "version": ref.version,
            "createdAt": ref.created_at,
            "updatedAt": ref.updated_at,
            "manifestSize": ref.manifest_size,
            "metadata": dict(ref.metadata),
        }
    else:
        stored = {
            "parentBranch": ref.parent_branch,
            "identifier": {"version_mapping": [list(pair) for pair in ref.identifier]},
            "parentVersion": ref.parent_version,
            "createAt": ref.create_at,
            "manifestSize": ref.manifest_size,
            "metadata": dict(ref.metadata),
        }
    return json.dumps(stored, indent=2).encode()
