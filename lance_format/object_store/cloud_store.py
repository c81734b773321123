"""Object stores: S3 and what speaks its language, Google Cloud Storage, Azure.

Requests are those of the `object_store` library, by its binding obstore. It repeats a request that fails for a passing
cause, with growing pauses of random length. A path is a URI whose key is not encoded: `s3://bucket/table/data/x.lance`.

An object is created by a conditional put; exactly one of several concurrent ones succeeds. The stores of the clouds
promise that. Any other store is tested once per process and bucket.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from lance_format.byte_io import Buffer
from lance_format.errors import CorruptFileError, NotSupportedError, StorageError
from lance_format.object_store.cloud_client import is_ordered, load_obstore, make_client
from lance_format.object_store.cloud_errors import (
    BrokenReplyError,
    CloudErrors,
    Redaction,
    UnansweredError,
    UnavailableError,
)
from lance_format.object_store.cloud_objects import (
    CHUNK_BYTES,
    PARALLEL_REQUESTS,
    CloudReader,
    CloudWriter,
    NoSuchRangeError,
    fetch_pool,
)
from lance_format.object_store.cloud_options import CloudOptions
from lance_format.object_store.cloud_places import CloudPlace
from lance_format.object_store.conditional_puts import ConditionalPuts
from lance_format.object_store.remembered import RememberedContents
from lance_format.object_store.store import (
    FirstNames,
    ObjectExistsError,
    ObjectInfo,
    ObjectNotFoundError,
    RefusedError,
    find_size,
)

_TAIL_BYTES = 64 * 1024
_PAGE_NAMES = 1000
_PART_BYTES = 10 * 1024 * 1024  # S3 permits 10,000 parts, and some stores demand equal ones.
_PARTS_AT_ONCE = 4
_DELETES_AT_ONCE = 1000
_ATTEMPTS = 4
_PAUSE_SECONDS = 0.2
_MAX_PAUSE_SECONDS = 15.0
_NOT_PARTIAL = "non-partial response"
"""The whole object is the reply to a request for a range: it is empty, or the server knows no ranges."""

_T = TypeVar("_T")


class CloudStore:
    """Objects of one bucket.

    Parameters
    ----------
    place : CloudPlace
        A place in the bucket.
    options : mapping of str to str
        In the names of pylance.
    """

    def __init__(self, place: CloudPlace, options: Mapping[str, str]) -> None:
        parsed = CloudOptions.parse(place.provider, options)
        self._obstore = load_obstore()
        self._made_client, self._contact = make_client(place, parsed)
        self._max_retries: int = parsed.retry["max_retries"]
        self._retry_seconds: float = parsed.retry["retry_timeout"].total_seconds()
        self._is_in_contact = False
        self._provider = place.provider
        self._prefix = place.prefix
        self._has_ordered_listings = is_ordered(place)
        self._redaction = Redaction(parsed.secrets)
        self._remembered = RememberedContents()
        is_own = place.provider != "s3" or parsed.endpoint is None
        self._conditional_puts = ConditionalPuts(self, is_known=is_own)

    def __repr__(self) -> str:
        return f"CloudStore({self._prefix!r})"

    @property
    def _client(self) -> Any:
        if not self._is_in_contact:
            self._contact.check()
            self._is_in_contact = True
        return self._made_client

    @property
    def atomic_put_if_absent(self) -> bool:
        """See `ObjectStore`; `put_if_absent` detects stores that do not support it."""
        return True

    @property
    def is_remote(self) -> bool:
        """See `ObjectStore`."""
        return True

    @property
    def parallel_requests(self) -> int:
        """See `ObjectStore`."""
        return PARALLEL_REQUESTS

    @property
    def needs_hint(self) -> bool:
        """See `ObjectStore`."""
        return not self._has_ordered_listings

    def open_reader(self, path: str, size_bytes: int | None = None) -> CloudReader:
        """See `ObjectStore`; without a size, one request finds it and reads the end of the object."""
        if size_bytes is not None:
            return CloudReader(self, path, size_bytes)
        if self._provider == "az":  # It has no ranges that count from the end.
            return CloudReader(self, path, self.size(path))
        try:
            data, size = self.fetch(path, {"suffix": _TAIL_BYTES})
        except NoSuchRangeError:  # It is empty.
            return CloudReader(self, path, self.size(path))
        return CloudReader(self, path, size, tail=bytes(data))

    def open_writer(self, path: str) -> CloudWriter:
        """See `ObjectStore`; large objects are uploaded in parts while they are written."""
        return CloudWriter(self, path)

    def read(self, path: str, max_bytes: int, tag: str | None = None) -> bytes:
        """See `ObjectStore`; what is read with a tag is remembered."""
        remembered = self._remembered.get(path, tag)
        if remembered is not None:
            _check_size(path, len(remembered), max_bytes)
            return remembered

        def request() -> bytes:
            found = self._obstore.get(self._client, self.key(path))
            _check_size(path, found.meta["size"], max_bytes)
            data = bytes(found.bytes())
            if tag is not None:
                self._remembered.put(path, found.meta.get("e_tag"), data)
            return data

        return self._repeat("read", path, request)

    def fetch(self, path: str, wanted: Any) -> tuple[Buffer, int]:
        """Read a range of an object, as obstore describes it; return its bytes, not copied, and the size of the object.

        Raises
        ------
        ObjectNotFoundError
            If there is no object.
        StorageError
            If the object ends before the range, or the storage fails.
        """

        return self._get(path, wanted, lambda found: memoryview(found.bytes()))

    def fetch_into(self, path: str, wanted: Any, out: npt.NDArray[np.uint8]) -> tuple[int, int]:
        """Read a range of an object into an array; return the number of its bytes and the size of the object.

        obstore would collect the body in memory that the C library keeps for the thread.

        Parameters
        ----------
        path : str
        wanted : object
            The range, as obstore describes it.
        out : uint8[…]
            What does not fit is counted only.

        Raises
        ------
        ObjectNotFoundError, StorageError
            See `fetch`.
        """

        def receive(found: Any) -> int:
            num_bytes = 0
            for chunk in found.stream(min_chunk_size=CHUNK_BYTES):
                piece = np.frombuffer(chunk, np.uint8)
                if num_bytes + piece.size <= out.size:
                    out[num_bytes : num_bytes + piece.size] = piece
                num_bytes += piece.size
            return num_bytes

        return self._get(path, wanted, receive)

    def put(self, path: str, data: bytes, *, durable: bool = True) -> None:
        """See `ObjectStore`; acknowledged writes are durable."""
        del durable
        with self.errors("write", path):
            self._obstore.put(self._client, self.key(path), data, use_multipart=False)

    def put_if_absent(self, path: str, data: bytes) -> None:
        """See `ObjectStore`.

        Raises
        ------
        NotSupportedError
            If the store ignores the condition; nothing is written.
        """
        self._conditional_puts.check(path.rpartition("/")[0])
        self.create(path, data)

    def create(self, path: str, data: bytes) -> None:
        """Create an object by a conditional put; see `put_if_absent`.

        If an attempt got no reply, and a later one finds the object with this content, the former has created it.
        """
        num_attempts = 0

        def request() -> Any:
            nonlocal num_attempts
            num_attempts += 1
            return self._obstore.put(self._client, self.key(path), data, mode="create", use_multipart=False)

        try:
            made = self._repeat("create", path, request)
        except ObjectExistsError:
            if num_attempts == 1 or not self._holds(path, data):
                raise
        except RefusedError as error:
            if num_attempts == 1:
                raise
            raise StorageError(str(error)) from None  # An attempt without a reply may have been carried out.
        else:
            self._remembered.put(path, made.get("e_tag"), data)

    def list_objects(self, prefix: str) -> list[ObjectInfo]:
        """See `ObjectStore`."""
        infos = [self._info(meta) for meta in self._list_level(prefix)["objects"]]
        return sorted((info for info in infos if _is_below(info.path, prefix)), key=lambda info: info.path)

    def list_names(self, prefix: str) -> list[str]:
        """See `ObjectStore`."""
        return [info.path[len(prefix) + 1 :] for info in self.list_objects(prefix)]

    def list_directories(self, prefix: str) -> list[str]:
        """See `ObjectStore`."""
        return [key.rstrip("/").rpartition("/")[2] for key in self._list_level(prefix)["common_prefixes"]]

    def list_first(self, prefix: str) -> FirstNames:
        """See `ObjectStore`."""
        if not self._has_ordered_listings:
            return FirstNames(self.list_names(prefix), True)
        page = self._repeat("list", prefix, lambda: self._page(prefix, None))
        below = ((f"{self._prefix}/{meta['path']}"[len(prefix) + 1 :], meta.get("e_tag")) for meta in page)
        tags = {name: tag for name, tag in below if name and "/" not in name}
        return FirstNames(
            list(tags), len(page) < _PAGE_NAMES, {name: tag for name, tag in tags.items() if tag is not None}
        )

    def list_tree(self, prefix: str) -> Iterator[ObjectInfo]:
        """See `ObjectStore`."""
        if not self._has_ordered_listings:
            yield from self._list_unordered_tree(prefix)
            return
        last: str | None = None
        while page := self._repeat("list", prefix, functools.partial(self._page, prefix, last)):
            if last is not None and page[0]["path"] <= last:
                raise NotSupportedError(
                    f"cannot list {prefix}: the store ignores start-after, by which long listings go on; use another"
                )
            for info in map(self._info, page):
                if _is_below(info.path, prefix):
                    yield info
            if len(page) < _PAGE_NAMES:
                return
            last = page[-1]["path"]

    def size(self, path: str) -> int:
        """See `ObjectStore`."""
        return self._repeat("look up", path, lambda: int(self._obstore.head(self._client, self.key(path))["size"]))

    def sizes(self, paths: Sequence[str]) -> list[int | None]:
        """See `ObjectStore`; in parallel."""
        return list(fetch_pool().map(functools.partial(find_size, self), paths))

    def delete(self, path: str) -> None:
        """See `ObjectStore`."""
        try:
            self._repeat("delete", path, lambda: self._obstore.delete(self._client, self.key(path)))
        except ObjectNotFoundError:
            return

    def delete_all(self, paths: Sequence[str]) -> list[str]:
        """See `ObjectStore`; after a failure the objects of the request are deleted one by one.

        A store that is not available is left alone: each further request would take the time of all its retries.
        """
        failed: list[str] = []
        for start in range(0, len(paths), _DELETES_AT_ONCE):
            some = paths[start : start + _DELETES_AT_ONCE]
            try:
                keys = [self.key(path) for path in some]
                self._repeat("delete", some[0], functools.partial(self._obstore.delete, self._client, keys))
            except UnavailableError:
                return [*failed, *paths[start:]]
            except StorageError:
                failed += self._delete_each(some)
        return failed

    def delete_exact(self, path: str, data: bytes) -> bool:
        """See `ObjectStore`.

        An object that takes its place between the look at it and the deletion is deleted: the interval is one request.
        """
        is_there = False

        def request() -> None:
            nonlocal is_there
            if self._holds(path, data):  # Before each attempt: another writer may have put one there since the last.
                is_there = True
                self._obstore.delete(self._client, self.key(path))

        with contextlib.suppress(ObjectNotFoundError):
            self._repeat("delete", path, request)
        return is_there

    def check_writable(self, path: str) -> None:
        """See `ObjectStore`; rights are not asked for, which would take a request."""
        self._conditional_puts.check(path)

    def key(self, path: str) -> str:
        """Return the key of a path.

        Raises
        ------
        StorageError
            If it is not in the bucket.
        """
        if path == self._prefix:
            return ""
        if not path.startswith(f"{self._prefix}/"):
            raise StorageError(f"{path} is not in {self._prefix}")
        return path[len(self._prefix) + 1 :]

    def errors(self, action: str, path: str) -> CloudErrors:
        """Return what converts the errors of a request."""
        return CloudErrors(action, path, self._provider, self._redaction)

    def upload(self, path: str) -> Any:
        """Start an object of unknown size."""
        return self._obstore.open_writer(
            self._client, self.key(path), buffer_size=_PART_BYTES, max_concurrency=_PARTS_AT_ONCE
        )

    def _get(self, path: str, wanted: Any, receive: Callable[[Any], _T]) -> tuple[_T, int]:
        """Request a range of an object; return what becomes of the reply, and the size of the object."""

        def request() -> tuple[_T, int]:
            found = self._obstore.get(self._client, self.key(path), options={"range": wanted})
            return receive(found), found.meta["size"]

        try:
            return self._repeat("read", path, request)
        except StorageError as error:
            is_short = " 416 " in str(error) or "Range" in str(error)
            if is_short or (_NOT_PARTIAL in str(error) and not self.size(path)):
                raise NoSuchRangeError(str(error)) from None
            raise

    def _list_level(self, prefix: str) -> Any:
        """Return the objects and the common prefixes directly below a prefix."""
        key = self.key(prefix) or None
        return self._repeat("list", prefix, lambda: self._obstore.list_with_delimiter(self._client, key))

    def _page(self, prefix: str, after: str | None) -> Sequence[Mapping[str, Any]]:
        """Return a page of a listing, of the keys after another one; empty at the end."""
        found = self._obstore.list(self._client, self.key(prefix) or None, offset=after, chunk_size=_PAGE_NAMES)
        page: Sequence[Mapping[str, Any]] = next(iter(found), ())
        return page

    def _list_unordered_tree(self, prefix: str) -> Iterator[ObjectInfo]:
        def request() -> list[Mapping[str, Any]]:
            found = self._obstore.list(self._client, self.key(prefix) or None, chunk_size=_PAGE_NAMES)
            return list(itertools.chain.from_iterable(found))

        metas = self._repeat("list", prefix, request)
        yield from (info for info in map(self._info, metas) if _is_below(info.path, prefix))

    def _holds(self, path: str, data: bytes) -> bool:
        """Return whether there is an object of this content."""
        try:
            return self.read(path, len(data)) == data
        except (ObjectNotFoundError, CorruptFileError):
            return False

    def _repeat(self, action: str, path: str, request: Callable[[], _T]) -> _T:
        """Run a request that does no harm if it runs again.

        It does if the reply broke off, which obstore repeats for single objects only, or if there was none, which
        obstore does not repeat for deletions and conditional puts.
        """
        deadline = time.monotonic() + self._retry_seconds
        for attempt in itertools.count():
            try:
                with self.errors(action, path):
                    return request()
            except BrokenReplyError:
                if attempt >= _ATTEMPTS - 1:
                    raise
            except UnansweredError:
                if attempt >= self._max_retries or time.monotonic() >= deadline:
                    raise
            time.sleep(random.random() * min(_PAUSE_SECONDS * 2**attempt, _MAX_PAUSE_SECONDS))
        raise AssertionError

    def _info(self, meta: Mapping[str, Any]) -> ObjectInfo:
        return ObjectInfo(f"{self._prefix}/{meta['path']}", meta["size"], meta["last_modified"].timestamp())

    def _delete_each(self, paths: Sequence[str]) -> list[str]:
        is_unavailable = threading.Event()

        def fails(path: str) -> bool:
            if is_unavailable.is_set():
                return True
            try:
                self.delete(path)
            except UnavailableError:
                is_unavailable.set()
                return True
            except StorageError:
                return True
            return False

        return [path for path, failed in zip(paths, fetch_pool().map(fails, paths), strict=True) if failed]


def _is_below(path: str, prefix: str) -> bool:
    """Return whether a listed object is in a directory, and not a mark of the directory itself."""
    return path.startswith(f"{prefix}/") and len(path) > len(prefix) + 1


def _check_size(path: str, size: int, max_bytes: int) -> None:
    if size > max_bytes:
        raise CorruptFileError(f"the object has {size} bytes; at most {max_bytes} are expected", path=path)
