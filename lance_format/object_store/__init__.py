"""Storages behind one protocol, and which of them a path means."""

from __future__ import annotations

import os
import pathlib
import re
import urllib.parse
from collections.abc import Callable, Mapping

from lance_format.errors import InvalidInputError, NotSupportedError
from lance_format.object_store import memory
from lance_format.object_store.copying import CHUNK_BYTES, read_chunks, write_chunks
from lance_format.object_store.counted import CountedStore, ReadCounter
from lance_format.object_store.local import LocalStore
from lance_format.object_store.memory import MemoryStore
from lance_format.object_store.store import (
    ObjectExistsError,
    ObjectInfo,
    ObjectNotFoundError,
    ObjectStore,
    ReadableStore,
)

__all__ = [
    "CHUNK_BYTES",
    "CountedStore",
    "ObjectExistsError",
    "ObjectInfo",
    "ObjectNotFoundError",
    "ObjectStore",
    "ReadCounter",
    "ReadableStore",
    "absolute_uri",
    "read_chunks",
    "resolve",
    "write_chunks",
]


_MEMORY = MemoryStore()


def _local_store(_storage_options: Mapping[str, str]) -> ObjectStore:
    return LocalStore()


def _memory_store(_storage_options: Mapping[str, str]) -> ObjectStore:
    return _MEMORY


_STORES: dict[str, Callable[[Mapping[str, str]], ObjectStore]] = {
    "": _local_store,
    "file": _local_store,
    memory.SCHEME: _memory_store,
}
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(?=/)")


def resolve(uri: str | os.PathLike[str], storage_options: Mapping[str, str] | None = None) -> tuple[ObjectStore, str]:
    """Return the store of a path or URI, and the path within the store.

    Parameters
    ----------
    uri : str or path
        A path, absolute or relative to the working directory, where `~` is the home directory; or a `file:` URI; or
        `memory://` and a path, in the memory of this process.
    storage_options : mapping, optional
        Options of the store. Local files ignore them.

    Raises
    ------
    InvalidInputError
        If the path is empty.
    NotSupportedError
        If the URI names a storage that is not supported.
    """
    if not isinstance(uri, str | os.PathLike):
        raise InvalidInputError(f"the path of a table is needed, as a string; it is {uri!r}")
    text = os.fspath(uri)
    if not isinstance(text, str):
        raise InvalidInputError(f"the path of a table is needed, as a string; it is {text!r}")
    if not _is_text(text) or "\0" in text:
        raise InvalidInputError(f"{text!r} is not a path: it has a character that no path can have")
    if not text.strip():
        raise InvalidInputError("the path of the table is empty; name the directory that holds it")
    match = _SCHEME.match(text)
    scheme = match[1].lower() if match else ""
    make_store = _STORES.get(scheme)
    if make_store is None:
        raise NotSupportedError(
            f"the storage {scheme}:// is not supported; use a path of the local file system or a file:// URI"
        )
    return make_store(storage_options or {}), _path_in_store(scheme, text)


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # A lone surrogate is in no encoding.
        return False
    return True


def absolute_uri(uri: str | os.PathLike[str]) -> str:
    """Return a URI that means the same from every working directory; raises what `resolve` does."""
    _, root = resolve(uri)
    return root


def _path_in_store(scheme: str, text: str) -> str:
    if not scheme:
        return _absolute(text)
    if scheme == memory.SCHEME:  # The scheme stays, so that the path is a URI that means the same.
        return f"{scheme}://{'/'.join(part for part in text.partition(':')[2].split('/') if part)}"
    return _file_uri_path(text)


def _file_uri_path(uri: str) -> str:
    parts = urllib.parse.urlsplit(uri)
    if parts.netloc not in ("", "localhost"):
        raise InvalidInputError(f"{uri} names the host {parts.netloc!r}; a local path reads file:///directory/table")
    if parts.query or parts.fragment or uri[-1] in "?#":
        raise InvalidInputError(
            f"{uri} has a query or a fragment, which files do not have; write ? as %3F and # as %23, or give a path"
        )
    return _absolute(urllib.parse.unquote(parts.path))


def _absolute(path: str) -> str:
    try:
        # Not `resolve`, which would replace a symbolic link by its target in every message.
        return os.path.abspath(pathlib.Path(path).expanduser())  # noqa: PTH100
    except (RuntimeError, ValueError) as error:
        raise InvalidInputError(f"{path!r} is not a path: {error}") from error
