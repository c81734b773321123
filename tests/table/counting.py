"""A table whose reads of data files, without those for checksums, are counted where they leave for the storage."""

from __future__ import annotations

import dataclasses
from collections.abc import Generator, Sequence
from pathlib import Path

import lance_format
from lance_format.byte_io import ByteRange, RangeReader
from lance_format.object_store.local import LocalStore
from lance_format.object_store.local_files import LocalReader
from lance_format.table.dataset.dataset import LanceDataset
from lance_format.table.format.table_directory import TableDirectory


class _Reader(LocalReader):
    def __init__(self, path: str, requests: list[ByteRange]) -> None:
        super().__init__(path)
        self._requests = requests

    def stream_ranges(self, ranges: Sequence[ByteRange]) -> Generator[bytes, None, None]:
        self._requests += ranges
        return super().stream_ranges(ranges)


class CountingStore(LocalStore):
    """Local files; `requests` are the ranges that were read, and `opened` the files."""

    def __init__(self) -> None:
        self.requests: list[ByteRange] = []
        self.opened: list[str] = []

    def open_reader(self, path: str, size_bytes: int | None = None) -> RangeReader:
        del size_bytes
        self.opened.append(path)
        return _Reader(path, self.requests)

    def drain(self) -> int:
        """Return the bytes that were read since the last time, and forget them."""
        size = sum(read.size for read in self.requests)
        self.requests.clear()
        self.opened.clear()
        return size


def counted(path: Path | str) -> tuple[LanceDataset, CountingStore]:
    """Open a table with an empty cache."""
    store = CountingStore()
    dataset = lance_format.dataset(path)
    return LanceDataset(
        dataset.uri,
        dataclasses.replace(dataset._table, directory=TableDirectory(store, dataset._table.root, verifies=False)),
    ), store
