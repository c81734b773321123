"""Files below one directory, by the names of pylance's `LanceFileSession`."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from lance_format.arguments import checked_methods
from lance_format.byte_io import ByteRange
from lance_format.errors import InvalidInputError, local_file_errors
from lance_format.file.standalone.lance_file import LanceFileReader, LanceFileWriter
from lance_format.lazy_dataclasses import dataclass
from lance_format.object_store import CHUNK_BYTES, ObjectNotFoundError, read_chunks, resolve, write_chunks


@dataclass(frozen=True, slots=True)
class ListResult:
    """Content of a directory.

    Parameters
    ----------
    common_prefixes : list of str
        The directories in it, by their paths below that of the session.
    objects : list of str
        The files in it, likewise.
    """

    common_prefixes: list[str]
    objects: list[str]


@checked_methods
class LanceFileSession:
    """Reads and writes files below one directory; all paths are relative to it, and none leads out of it.

    Parameters
    ----------
    base_path : str or path
        A local path, or a URI.
    storage_options : mapping of str to str, optional
    """

    def __init__(self, base_path: str | os.PathLike[str], storage_options: Mapping[str, str] | None = None) -> None:
        self._base = os.fspath(base_path).rstrip("/")
        self._storage_options = storage_options
        self._store, self._root = resolve(base_path, storage_options)

    def open_reader(self, path: str, columns: Sequence[str] | None = None) -> LanceFileReader:
        """Open a data file; see `LanceFileReader`."""
        return LanceFileReader(f"{self._base}/{_check(path)}", self._storage_options, columns)

    def open_writer(
        self,
        path: str,
        *,
        schema: pa.Schema | None = None,
        data_cache_bytes: int | None = None,
        version: str | None = None,
        keep_original_array: bool | None = None,
        max_page_bytes: int | None = None,
    ) -> LanceFileWriter:
        """Start a data file; see `LanceFileWriter`. `keep_original_array` has no effect."""
        del keep_original_array
        return LanceFileWriter(
            f"{self._base}/{_check(path)}",
            schema,
            data_cache_bytes=data_cache_bytes,
            version=version,
            storage_options=self._storage_options,
            max_page_bytes=max_page_bytes,
        )

    def contains(self, path: str) -> bool:
        """Return whether there is a file of this path; a directory is none."""
        directory, _, name = _check(path).rpartition("/")
        return name in self._store.list_names(self._stored_path(directory))

    def list(self, path: str | None = None) -> list[str]:
        """Return the files below a directory at any depth; of all if it is not given."""
        return sorted(info.path[len(self._root) + 1 :] for info in self._store.list_tree(self._stored_path(path)))

    def list_with_delimiter(self, path: str | None = None) -> ListResult:
        """List the direct entries of a directory."""
        above = f"{self._stored_path(path)}/"
        below = [info.path[len(above) :] for info in self._store.list_tree(above.rstrip("/"))]
        prefix = above[len(self._root) + 1 :]
        return ListResult(
            sorted({prefix + name.split("/")[0] for name in below if "/" in name}),
            sorted(prefix + name for name in below if "/" not in name),
        )

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        """Read bytes of a file.

        Parameters
        ----------
        path : str
        offset, length : int
            Byte range within the file.

        Raises
        ------
        StorageError
            If the file does not exist.
        InvalidInputError
            If the range is not within the file.
        """
        reader = self._store.open_reader(self._stored_path(_check(path)))
        try:
            if offset < 0 or length < 0 or offset + length > reader.size_bytes:
                raise InvalidInputError(
                    f"{length} bytes at byte {offset} are not within {path}, which has {reader.size_bytes} bytes"
                )
            return reader.read_ranges([ByteRange(offset, length)])[0] if length else b""
        finally:
            reader.close()

    def upload_file(self, local_path: str | os.PathLike[str], remote_path: str) -> None:
        """Copy a local file to a path of the session, replacing an existing file."""
        target = self._stored_path(_check(remote_path))
        with local_file_errors("read", local_path), Path(local_path).open("rb") as source:
            write_chunks(self._store, target, iter(lambda: source.read(CHUNK_BYTES), b""))

    def download_file(self, remote_path: str, local_path: str | os.PathLike[str]) -> None:
        """Copy a file of the session to a local path in an existing directory."""
        reader = self._store.open_reader(self._stored_path(_check(remote_path)))
        part = Path(f"{os.fspath(local_path)}.part")
        with contextlib.closing(reader), local_file_errors("write", local_path):
            try:
                with part.open("wb") as target:
                    target.writelines(read_chunks(reader))
                part.replace(local_path)
            finally:
                part.unlink(missing_ok=True)

    def delete_file(self, path: str) -> None:
        """Delete a file.

        Raises
        ------
        StorageError
            If there is none.
        """
        stored = self._stored_path(_check(path))
        if not self.contains(path):
            raise ObjectNotFoundError(f"there is no file {stored} to delete")
        self._store.delete(stored)

    def _stored_path(self, path: str | None) -> str:
        return self._root if not path else f"{self._root}/{_check(path.rstrip('/'))}"


def _check(path: str) -> str:
    if not path or any(part in ("", ".", "..") for part in path.split("/")):
        raise InvalidInputError(f"{path!r} is no path below the directory of the session")
    return path
