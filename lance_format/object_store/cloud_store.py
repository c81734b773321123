"""Object stores: S3 and what speaks its language, Google Cloud Storage, Azure.

Requests are those of the `object_store` library, by its binding obstore. It repeats a request that fails for a passing
cause, with growing pauses of random length. A path is a URI whose key is not encoded: `s3://bucket/table/data/x.lance`.

An object is created by a conditional put, of which exactly one of several wins. The stores of the clouds promise that.
Any other store is asked once per process and bucket whether it heeds the condition; see `_ConditionalPuts`.
"""

from __future__ import annotations

import itertools
import os
import threading
import uuid
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from lance_format.byte_io import ByteRange, RequestShape
from lance_format.errors import CorruptFileError, NotSupportedError, StorageError
from lance_format.object_store.cloud_client import is_ordered, load_obstore, make_client
from lance_format.object_store.cloud_errors import CloudErrors, Redaction
from lance_format.object_store.cloud_options import CloudOptions
from lance_format.object_store.cloud_places import CloudPlace
from lance_format.object_store.store import (
    FirstNames,
    ObjectExistsError,
    ObjectInfo,
    ObjectNotFoundError,
    check_ranges,
)

REQUEST_SHAPE = RequestShape(gap_bytes=512 * 1024, max_bytes=16 * 1024 * 1024)
"""A request takes as long as reading some MiB: what lies between two ranges is read with them up to a gap of half a
MiB. Larger requests than 16 MiB are divided, since a connection has a part of the bandwidth only."""

_PARALLEL_REQUESTS = 16
_TAIL_BYTES = 64 * 1024
_PAGE_NAMES = 1000
_PART_BYTES = 10 * 1024 * 1024  # S3 permits 10,000 parts, and some stores demand equal ones.
_PARTS_AT_ONCE = 4
_DELETES_AT_ONCE = 1000


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
        self._client = make_client(place, parsed)
        self._provider = place.provider
        self._prefix = place.prefix
        self._has_ordered_listings = is_ordered(place)
        self._redaction = Redaction(parsed.secrets)
        is_own = place.provider != "s3" or parsed.endpoint is None
        self._conditional_puts = _ConditionalPuts(self, is_known=is_own)

    def __repr__(self) -> str:
        return f"CloudStore({self._prefix!r})"

    @property
    def atomic_put_if_absent(self) -> bool:
        """See `ObjectStore`; a store of which it is not true is found out by `put_if_absent`."""
        return True

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
        except _NoSuchRangeError:  # It is empty.
            return CloudReader(self, path, self.size(path))
        return CloudReader(self, path, size, tail=data)

    def open_writer(self, path: str) -> CloudWriter:
        """See `ObjectStore`; large objects are uploaded in parts while they are written."""
        return CloudWriter(self, path)

    def read(self, path: str, max_bytes: int) -> bytes:
        """See `ObjectStore`."""
        with self.errors("read", path):
            found = self._obstore.get(self._client, self.key(path))
            size = found.meta["size"]
            if size > max_bytes:
                raise CorruptFileError(f"the object has {size} bytes; at most {max_bytes} are expected", path=path)
            return bytes(found.bytes())

    def fetch(self, path: str, wanted: Any) -> tuple[bytes, int]:
        """Read a range of an object, as obstore describes it; return its bytes and the size of the object."""
        try:
            with self.errors("read", path):
                found = self._obstore.get(self._client, self.key(path), options={"range": wanted})
                return bytes(found.bytes()), found.meta["size"]
        except StorageError as error:
            if " 416 " in str(error) or "Range" in str(error):
                raise _NoSuchRangeError(str(error)) from None
            raise

    def put(self, path: str, data: bytes, *, durable: bool = True) -> None:
        """See `ObjectStore`; what a store has acknowledged is durable."""
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
        """Create an object by a conditional put; see `put_if_absent`."""
        with self.errors("create", path):
            self._obstore.put(self._client, self.key(path), data, mode="create", use_multipart=False)

    def list_objects(self, prefix: str) -> list[ObjectInfo]:
        """See `ObjectStore`."""
        with self.errors("list", prefix):
            found = self._obstore.list_with_delimiter(self._client, self.key(prefix) or None)
            infos = [self._info(meta) for meta in found["objects"]]
        return sorted((info for info in infos if _is_below(info.path, prefix)), key=lambda info: info.path)

    def list_names(self, prefix: str) -> list[str]:
        """See `ObjectStore`."""
        return [info.path[len(prefix) + 1 :] for info in self.list_objects(prefix)]

    def list_first(self, prefix: str) -> FirstNames:
        """See `ObjectStore`."""
        if not self._has_ordered_listings:
            return FirstNames(self.list_names(prefix), True)
        with self.errors("list", prefix):
            page: Sequence[Mapping[str, Any]] = next(iter(self._pages(prefix)), ())
        below = [f"{self._prefix}/{meta['path']}"[len(prefix) + 1 :] for meta in page]
        return FirstNames([name for name in below if name and "/" not in name], len(page) < _PAGE_NAMES)

    def list_tree(self, prefix: str) -> Iterator[ObjectInfo]:
        """See `ObjectStore`."""
        pages = iter(self._pages(prefix))
        while True:
            with self.errors("list", prefix):
                page = next(pages, None)
            if page is None:
                return
            for meta in page:
                info = self._info(meta)
                if _is_below(info.path, prefix):
                    yield info

    def size(self, path: str) -> int:
        """See `ObjectStore`."""
        with self.errors("look up", path):
            return int(self._obstore.head(self._client, self.key(path))["size"])

    def delete(self, path: str) -> None:
        """See `ObjectStore`."""
        try:
            with self.errors("delete", path):
                self._obstore.delete(self._client, self.key(path))
        except ObjectNotFoundError:
            return

    def delete_all(self, paths: Sequence[str]) -> list[str]:
        """See `ObjectStore`; after a failure the objects of the request are deleted one by one."""
        failed: list[str] = []
        for start in range(0, len(paths), _DELETES_AT_ONCE):
            some = paths[start : start + _DELETES_AT_ONCE]
            try:
                with self.errors("delete", some[0]):
                    self._obstore.delete(self._client, [self.key(path) for path in some])
            except StorageError:
                failed += self._delete_each(some)
        return failed

    def delete_exact(self, path: str, data: bytes) -> bool:
        """See `ObjectStore`.

        An object that takes its place between the look at it and the deletion is deleted: the interval is one request.
        """
        try:
            if self.read(path, len(data)) != data:
                return False
        except (ObjectNotFoundError, CorruptFileError):
            return False
        self.delete(path)
        return True

    def check_writable(self, path: str) -> None:
        """See `ObjectStore`; rights are not asked for, which would take a request."""
        self._conditional_puts.check(path)

    def key(self, path: str) -> str:
        """Return the key of a path, which has to be in the bucket."""
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

    def _pages(self, prefix: str) -> Any:
        return self._obstore.list(self._client, self.key(prefix) or None, chunk_size=_PAGE_NAMES)

    def _info(self, meta: Mapping[str, Any]) -> ObjectInfo:
        return ObjectInfo(f"{self._prefix}/{meta['path']}", meta["size"], meta["last_modified"].timestamp())

    def _delete_each(self, paths: Sequence[str]) -> list[str]:
        def fails(path: str) -> bool:
            try:
                self.delete(path)
            except StorageError:
                return True
            return False

        return [path for path, failed in zip(paths, _pool().map(fails, paths), strict=True) if failed]


class _NoSuchRangeError(StorageError):
    """An object is too short for a range."""


class _ConditionalPuts:
    """Proof, once, that a store heeds the condition of a put.

    A store that ignores it would let two writers replace each other's versions. It is asked to create an object that
    exists, under a name that no other writer uses.

    Parameters
    ----------
    store : CloudStore
    is_known : bool
        Whether the store is known to heed it.
    """

    def __init__(self, store: CloudStore, *, is_known: bool) -> None:
        self._store = store
        self._is_known = is_known
        self._lock = threading.Lock()

    def check(self, directory: str) -> None:
        """Raise `NotSupportedError` if the store ignores the condition; leave no object in the directory."""
        if self._is_known:
            return
        with self._lock:
            if self._is_known:
                return
            path = f"{directory}/.tmp_probe_{uuid.uuid4().hex}"
            try:
                self._store.put(path, b"probe")
                self._probe(path)
            finally:
                self._store.delete_all([path])
            self._is_known = True

    def _probe(self, path: str) -> None:
        try:
            self._store.create(path, b"probe")
        except ObjectExistsError:
            return
        raise NotSupportedError(
            f"{self._store!r} ignores the condition If-None-Match of a put, so that two writers would replace each"
            " other's versions; nothing was written. Use a release of the store that supports conditional puts, or"
            " another store; reading works"
        )


class CloudReader:
    """A `RangeReader` of an object.

    Parameters
    ----------
    store : CloudStore
    path : str
    size_bytes : int
    tail : bytes
        The last bytes of the object, if they are at hand.
    """

    def __init__(self, store: CloudStore, path: str, size_bytes: int, tail: bytes = b"") -> None:
        self._store = store
        self._path = path
        self._size_bytes = size_bytes
        self._tail = tail

    @property
    def path(self) -> str:
        """See `RangeReader`."""
        return self._path

    @property
    def size_bytes(self) -> int:
        """See `RangeReader`."""
        return self._size_bytes

    @property
    def request_shape(self) -> RequestShape:
        """See `RangeReader`."""
        return REQUEST_SHAPE

    def read_ranges(self, ranges: Sequence[ByteRange]) -> list[bytes]:
        """See `RangeReader`; ranges are read in parallel, and large ones in parts."""
        check_ranges(self, ranges)
        parts = [_divide(wanted) for wanted in ranges]
        flat = list(itertools.chain.from_iterable(parts))
        found = iter(map(self._read, flat) if len(flat) == 1 else _pool().map(self._read, flat))
        return [_join([next(found) for _ in divided]) for divided in parts]

    def close(self) -> None:
        """See `RangeReader`."""
        self._tail = b""

    def _read(self, wanted: ByteRange) -> bytes:
        if not wanted.size:
            return b""
        tail_start = self._size_bytes - len(self._tail)
        if wanted.offset >= tail_start:
            return self._tail[wanted.offset - tail_start : wanted.end - tail_start]
        try:
            data, size = self._store.fetch(self._path, (wanted.offset, wanted.end))
        except _NoSuchRangeError:
            data, size = b"", self._store.size(self._path)
        if size != self._size_bytes or len(data) != wanted.size:
            raise CorruptFileError(f"the object has {size} bytes instead of {self._size_bytes}", path=self._path)
        return data


class CloudWriter:
    """A `RangeWriter` of an object. Memory is bounded by the parts in flight.

    Parameters
    ----------
    store : CloudStore
    path : str
    """

    def __init__(self, store: CloudStore, path: str) -> None:
        self._store = store
        self._path = path
        self._position = 0
        self._upload = store.upload(path)

    @property
    def path(self) -> str:
        """See `RangeWriter`."""
        return self._path

    @property
    def position(self) -> int:
        """See `RangeWriter`."""
        return self._position

    def write(self, data: bytes | memoryview) -> None:
        """See `RangeWriter`."""
        piece = bytes(data)
        with self._store.errors("write", self._path):
            self._upload.write(piece)
        self._position += len(piece)

    def close(self) -> None:
        """See `RangeWriter`."""
        if self._upload is None:
            return
        with self._store.errors("write", self._path):
            self._upload.close()
        self._upload = None

    def abort(self) -> None:
        """See `RangeWriter`; parts that were uploaded are deleted."""
        upload, self._upload = getattr(self, "_upload", None), None
        if upload is None:
            return
        try:
            with self._store.errors("delete", self._path):
                upload.__exit__(StorageError, StorageError("aborted"), None)
        except StorageError:  # The error that led here says more; a rule of the bucket removes the parts.
            return

    def __del__(self) -> None:
        self.abort()


def _is_below(path: str, prefix: str) -> bool:
    """Return whether a listed object is in a directory, and not a mark of the directory itself."""
    return path.startswith(f"{prefix}/") and len(path) > len(prefix) + 1


def _divide(wanted: ByteRange) -> list[ByteRange]:
    if wanted.size <= REQUEST_SHAPE.max_bytes:
        return [wanted]
    starts = range(wanted.offset, wanted.end, REQUEST_SHAPE.max_bytes)
    return [ByteRange(start, min(REQUEST_SHAPE.max_bytes, wanted.end - start)) for start in starts]


def _join(pieces: Sequence[bytes]) -> bytes:
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


_pools: dict[int, ThreadPoolExecutor] = {}
_pools_lock = threading.Lock()


def _pool() -> ThreadPoolExecutor:
    """Return the threads of this process that wait for replies."""
    with _pools_lock:
        pool = _pools.get(os.getpid())
        if pool is None:
            pool = _pools[os.getpid()] = ThreadPoolExecutor(_PARALLEL_REQUESTS, "lance-fetch")
        return pool
