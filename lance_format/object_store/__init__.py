"""Storages behind one protocol, and which of them a path means."""

from __future__ import annotations

import os
import pathlib
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from lance_format.errors import InvalidInputError, NotSupportedError
from lance_format.object_store import cloud_places, memory
from lance_format.object_store.buckets import Buckets
from lance_format.object_store.copying import CHUNK_BYTES, read_chunks, write_chunks
from lance_format.object_store.counted import CountedStore, ReadCounter
from lance_format.object_store.local import LocalStore
from lance_format.object_store.memory import MemoryStore
from lance_format.object_store.store import (
    ALLOWED_BASE_PATHS,
    DirectoryStore,
    ObjectExistsError,
    ObjectInfo,
    ObjectNotFoundError,
    ObjectStore,
    ReadableStore,
    RefusedError,
    absent_directories,
    delete_objects,
    remove_empty_tree,
    remove_if_empty,
)
from lance_format.object_store.together import map_together, run_together

if TYPE_CHECKING:
    from lance_format.object_store.cloud_store import CloudStore

__all__ = [
    "ALLOWED_BASE_PATHS",
    "CHUNK_BYTES",
    "CountedStore",
    "DirectoryStore",
    "ObjectExistsError",
    "ObjectInfo",
    "ObjectNotFoundError",
    "ObjectStore",
    "ReadCounter",
    "ReadableStore",
    "RefusedError",
    "absent_directories",
    "absolute_uri",
    "delete_objects",
    "map_together",
    "prefix_of",
    "read_chunks",
    "remove_empty_tree",
    "remove_if_empty",
    "resolve",
    "run_together",
    "shares_readers",
    "uri_path",
    "with_buckets",
    "write_chunks",
]


_MEMORY = MemoryStore()
_MAX_CLOUD_STORES = 64

_cloud_stores: OrderedDict[tuple[object, ...], CloudStore] = OrderedDict()
_cloud_stores_lock = threading.Lock()


def _resolve_local(_scheme: str, path: str, _options: Mapping[str, str]) -> tuple[ObjectStore, str]:
    return LocalStore(), _absolute(path)


def _resolve_file_uri(_scheme: str, uri: str, _options: Mapping[str, str]) -> tuple[ObjectStore, str]:
    return LocalStore(), _file_uri_path(uri)


def _resolve_memory(scheme: str, uri: str, _options: Mapping[str, str]) -> tuple[ObjectStore, str]:
    # The scheme stays, so that the path is a URI that means the same.
    return _MEMORY, f"{scheme}://{'/'.join(part for part in uri.partition(':')[2].split('/') if part)}"


def _resolve_cloud(scheme: str, uri: str, options: Mapping[str, str]) -> tuple[ObjectStore, str]:
    # The clients of clouds, which local tables do not need.
    from lance_format.object_store.cloud_store import CloudStore

    place = cloud_places.parse_place(scheme, uri)
    identity = (os.getpid(), place.prefix, _endpoints(), *sorted(options.items()))
    with _cloud_stores_lock:  # A store keeps connections and learned properties.
        store = _cloud_stores.get(identity)
        if store is None:
            store = _cloud_stores[identity] = CloudStore(place, options)
            if len(_cloud_stores) > _MAX_CLOUD_STORES:
                _cloud_stores.popitem(last=False)
        _cloud_stores.move_to_end(identity)
    return store, place.path


def _endpoints() -> tuple[tuple[str, str], ...]:
    """Return the settings of the environment that choose a store and its credentials."""
    return tuple(
        (name, value)
        for name, value in sorted(os.environ.items())
        if name.upper().startswith(("AWS_", "AZURE_", "GOOGLE_"))
    )


_RESOLVERS: dict[str, Callable[[str, str, Mapping[str, str]], tuple[ObjectStore, str]]] = {
    "": _resolve_local,
    "file": _resolve_file_uri,
    memory.SCHEME: _resolve_memory,
    **dict.fromkeys(cloud_places.PROVIDERS, _resolve_cloud),
}
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(?=/)")


def resolve(uri: str | os.PathLike[str], storage_options: Mapping[str, str] | None = None) -> tuple[ObjectStore, str]:
    """Return the store of a path or URI, and the path within the store.

    Parameters
    ----------
    uri : str or path
        A path, absolute or relative to the working directory, where `~` is the home directory; or a `file:` URI; or
        `memory://` and a path, in the memory of this process; or the URI of an object store: `s3://bucket/table`,
        `s3a://…`, `gs://…`, `az://container/table`, `abfss://container@account.dfs.core.windows.net/table`.
    storage_options : mapping, optional
        Options of the store, in the names of pylance. Local files ignore them.

    Raises
    ------
    InvalidInputError
        If the path is empty, or an option of the object store is unknown or malformed.
    NotSupportedError
        If the URI names a storage that is not supported, or obstore is missing.
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
    resolver = _RESOLVERS.get(scheme)
    if resolver is None:
        raise NotSupportedError(
            f"the storage {scheme}:// is not supported; use a path of the local file system or a file:// URI, or an"
            " object store: s3://, gs://, az:// or abfss://"
        )
    return resolver(scheme, text, storage_options or {})


def with_buckets(
    store: ObjectStore, root: str, paths: Iterable[str], storage_options: Mapping[str, str] | None
) -> ObjectStore:
    """Return a store in which objects can be read at other paths, too, if these are in other buckets.

    Parameters
    ----------
    store : ObjectStore
    root : str
        A path in it.
    paths : iterable of str
        Of stores.
    storage_options : mapping, optional
        Of all buckets. Reads raise what `resolve` does.
    """
    others = {prefix_of(path) for path in paths if _is_cloud(path)} - {prefix_of(root)}
    if not others or not _is_cloud(root):
        return store
    return Buckets(store, others, lambda prefix: resolve(f"{prefix}/", storage_options)[0])


def shares_readers(path: str, other: str) -> bool:
    """Return whether files at one path can be read with those at another; see `with_buckets`."""
    return prefix_of(path) == prefix_of(other) or (_is_cloud(path) and _is_cloud(other))


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # A lone surrogate is in no encoding.
        return False
    return True


def absolute_uri(uri: str | os.PathLike[str]) -> str:
    """Return a URI that means the same from every working directory; raises what `resolve` does."""
    path = uri_path(uri)
    # In URIs of object stores some characters are codes.
    return path.replace("%", "%25").replace("?", "%3F").replace("#", "%23") if _is_cloud(path) else path


def uri_path(uri: str | os.PathLike[str]) -> str:
    """Return the path of a URI in its store, without looking at the store; raises what `resolve` does."""
    text = os.fspath(uri)
    if isinstance(text, str) and _is_cloud(text):
        return cloud_places.parse_place(text.partition(":")[0].lower(), text).path
    return resolve(uri)[1]


def prefix_of(path: str) -> str:
    """Return the part of a path in a store that is the same for all paths of the store; empty for local files."""
    scheme, found, rest = path.partition("://")
    if not found:
        return ""
    return f"{scheme}://{rest.partition('/')[0] if scheme in cloud_places.PROVIDERS else ''}"


def _is_cloud(text: str) -> bool:
    match = _SCHEME.match(text)
    return match is not None and match[1].lower() in cloud_places.PROVIDERS


def _file_uri_path(uri: str) -> str:
    # Not by `urlsplit`, which drops newlines and tabs.
    path = uri.partition(":")[2]
    host, slash, rest = path[2:].partition("/") if path.startswith("//") else ("", "", path)
    if "?" in uri or "#" in uri:
        raise InvalidInputError(
            f"{uri} has a query or a fragment, which files do not have; write ? as %3F and # as %23, or give a path"
        )
    if host not in ("", "localhost"):
        raise InvalidInputError(f"{uri} names the host {host!r}; a local path reads file:///directory/table")
    return _absolute(cloud_places.decode_path(uri, slash + rest))


def _is_below_home(path: str) -> bool:
    """Return whether a path begins with the home directory, as `~/t`; `./~/t` and `~t` do not, nor for pylance."""
    return path == "~" or path.startswith("~/")


def _absolute(path: str) -> str:
    try:
        # Not `resolve`, which would replace a symbolic link by its target in every message.
        return os.path.abspath(pathlib.Path(path).expanduser() if _is_below_home(path) else path)  # noqa: PTH100
    except (RuntimeError, ValueError) as error:
        raise InvalidInputError(f"{path!r} is not a path: {error}") from error
