"""A table whose reads of data files are counted where they leave for the storage."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import lance_format
from lance_format.byte_io import ByteRange, RangeReader
from lance_format.object_store.local import LocalReader, LocalStore
from lance_format.table.dataset.dataset import LanceDataset
from lance_format.table.format.table_directory import TableDirectory


class _Reader(LocalReader):
    def __init__(self, path: str, requests: list[ByteRange]) -> None:
        super().__init__(path)
        self._requests = requests

    def read_ranges(self, ranges: Sequence[ByteRange]) -> list[bytes]:
        self._requests += ranges
        return super().read_ranges(ranges)


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
        dataset.uri, dataclasses.replace(dataset._table, directory=TableDirectory(store, dataset._table.root))
    ), store
