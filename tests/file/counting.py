"""A source that records its requests."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from pathlib import Path

import pyarrow as pa

from lance_format.byte_io import ByteRange
from lance_format.file import ColumnProjection, FileReader, SearchCache, Verification, column_indices
from lance_format.object_store.local_files import LocalReader


class CountingReader(LocalReader):
    """A local file; `requests` are the ranges that were read since it was last cleared."""

    def __init__(self, path: Path) -> None:
        super().__init__(str(path))
        self.requests: list[ByteRange] = []

    def stream_ranges(self, ranges: Sequence[ByteRange]) -> Generator[bytes, None, None]:
        self.requests += ranges
        return super().stream_ranges(ranges)


class CountedFile:
    """An open file, and the cost of its reads, without that of checksums.

    Each method returns the rows read, the number of requests and their bytes.
    """

    def __init__(self, path: Path, cache: SearchCache | None = None) -> None:
        self.source = CountingReader(path)
        self.reader = FileReader(self.source, cache, verification=Verification(is_wanted=False))
        self.opened = self._cost()
        self.ranges: list[ByteRange] = []

    def columns(self, names: Sequence[str] | None = None) -> list[ColumnProjection]:
        schema = self.reader.schema
        indices = column_indices(schema, self.reader.version)
        return [ColumnProjection(schema.field(name), indices) for name in names or schema.names]

    def take(self, rows: Sequence[int], names: Sequence[str] | None = None) -> tuple[pa.Table, int, int]:
        batch = self.reader.take(self.columns(names), rows)
        return pa.Table.from_batches([batch]), *self._cost()

    def read(
        self, start: int = 0, stop: int | None = None, names: Sequence[str] | None = None, batch_size: int = 1024
    ) -> tuple[pa.Table, int, int]:
        stop = self.reader.num_rows if stop is None else stop
        batches = self.reader.read(self.columns(names), start, stop, batch_size=batch_size)
        return pa.Table.from_batches(list(batches)), *self._cost()

    def _cost(self) -> tuple[int, int]:
        self.ranges = self.source.requests[:]
        self.source.requests.clear()
        return len(self.ranges), sum(wanted.size for wanted in self.ranges)
