"""Single rows of several files at once, as if the files followed each other in one.

A few rows cost calls and requests rather than bytes: as many for a file as for all of them, whose pages of one form are
decoded together. In the offsets of the joined file, each file has a stretch of its own.

Nothing is an error here. A file that is damaged, or that holds anything unusual, is left to `FileReader`, which reads
it or says what is wrong.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Generator, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa

from lance_format.array_encodings.array import Planned
from lance_format.byte_io import Buffer, ByteRange, RangeReader, stream_ranges
from lance_format.data_block import Bytes, Counts
from lance_format.errors import CorruptFileError, NotSupportedError
from lance_format.file.columns.assembly import merge
from lance_format.file.columns.dictionaries import concat
from lance_format.file.columns.projection import ColumnProjection
from lance_format.file.reading.batches import to_batch
from lance_format.file.reading.column_reader import ColumnReader
from lance_format.file.reading.reader import FileReader
from lance_format.file.reading.single_rows import expected_bytes, take_arrays
from lance_format.file.reading.structural_leaf import StructuralLeaf, plan_pages
from lance_format.structural.page import RowSelection

_STRETCH_BITS = 44
_STRETCH_BYTES = 1 << _STRETCH_BITS
_MOST_BYTES = 64 * 1024 * 1024
"""More rows are not a few: they are in memory twice while those of several files are put together."""
_MOST_FILES_AT_ONCE = 16
"""Maximum number of files that are read concurrently, where a request takes long."""


def take_joined(
    readers: Sequence[FileReader], columns: Sequence[ColumnProjection], rows: Sequence[Counts]
) -> pa.RecordBatch | None:
    """Read single rows of some files.

    Parameters
    ----------
    readers : sequence of FileReader
    columns : sequence of ColumnProjection
        The columns, which all files hold alike.
    rows : sequence of int64[…]
        Rows of each file, ascending; they may repeat.

    Returns
    -------
    pa.RecordBatch or None
        The rows of the first file, then those of the next; None if each file has to be read for itself.

    Raises
    ------
    StorageError
        If the storage fails.
    """
    if any(column.stored is not column.field for column in columns):
        return None  # Blobs, whose payloads are elsewhere.
    try:
        opened = [[leaf for found in reader.leaves(columns) for leaf in found] for reader in readers]
        by_leaf = [_JoinedLeaf(found) for leaves in zip(*opened, strict=True) if (found := _structural(leaves))]
        if not opened or len(by_leaf) < len(opened[0]):
            return None
        bases = np.cumsum([0, *(reader.num_rows for reader in readers)])
        wanted = np.concatenate([own + base for own, base in zip(rows, bases[:-1].tolist(), strict=True)])
        source = _JoinedSource([reader.source for reader in readers])
        joined = [ColumnReader(leaf) for leaf in by_leaf]
        if not wanted.size or expected_bytes(joined, wanted)[-1] > _MOST_BYTES:
            return None
        gathered = iter(take_arrays(source, joined, wanted))
        arrays = [merge(column.stored, [concat(next(gathered)) for _ in column.leaves]) for column in columns]
    except (CorruptFileError, NotSupportedError):
        return None
    return to_batch(arrays, pa.schema([column.arrow_field for column in columns]), wanted.size)


def _structural(leaves: Sequence[ColumnReader]) -> list[StructuralLeaf]:
    """Return the pages of a column in each file; nothing if those of a file are of format 2.0 or older."""
    pages = [leaf.pages for leaf in leaves]
    found = [leaf for leaf in pages if isinstance(leaf, StructuralLeaf)]
    return found if len(found) == len(pages) else []


class _JoinedSource:
    """The `RangeReader` of several files as one."""

    def __init__(self, sources: Sequence[RangeReader]) -> None:
        if any(source.size_bytes > _STRETCH_BYTES for source in sources):
            raise NotSupportedError("a file is too large to be read with others")
        self._sources = sources
        self.path = sources[0].path
        self.size_bytes = len(sources) << _STRETCH_BITS
        self.request_shape = sources[0].request_shape

    def read_ranges(self, ranges: Sequence[ByteRange]) -> list[bytes]:
        """See `RangeReader`."""
        return [bytes(found) for found in self.stream_ranges(ranges)]

    def stream_ranges(self, ranges: Sequence[ByteRange]) -> Generator[Buffer, None, None]:
        """See `StreamingReader`. Where a request takes long, files are read concurrently."""
        parts = [
            (self._sources[number], [ByteRange(wanted.offset % _STRETCH_BYTES, wanted.size) for wanted in own])
            for number, own in itertools.groupby(ranges, lambda wanted: wanted.offset >> _STRETCH_BITS)
        ]
        if len(parts) < 2 or not self.request_shape.reads_ahead:
            for source, own in parts:
                yield from stream_ranges(source, own)
            return
        with ThreadPoolExecutor(min(len(parts), _MOST_FILES_AT_ONCE), "lance-take") as pool:
            for found in pool.map(lambda part: list(stream_ranges(*part)), parts):
                yield from found

    def close(self) -> None:
        """Leave the files open."""


class _JoinedLeaf:
    """The pages of a leaf in several files; see `LeafPages`."""

    def __init__(self, leaves: Sequence[StructuralLeaf]) -> None:
        self.leaf = leaves[0].leaf
        self._leaves = leaves
        self._first_pages = [0, *itertools.accumulate(leaf.first_rows.size - 1 for leaf in leaves)]
        before = [0, *itertools.accumulate(int(leaf.first_rows[-1]) for leaf in leaves)]
        counted = [leaf.first_rows[:-1] + rows for leaf, rows in zip(leaves, before[:-1], strict=True)]
        self.first_rows: Counts = np.concatenate([*counted, before[-1:]])

    @property
    def size_bytes(self) -> Counts:
        """See `LeafPages`."""
        return np.concatenate([leaf.size_bytes for leaf in self._leaves])

    def extent(self, index: int) -> ByteRange | None:
        """See `LeafPages`."""
        number, page = self._locate(index)
        found = self._leaves[number].extent(page)
        return None if found is None else _moved([found], number)[0]

    def rows_at_once(self, index: int) -> int:
        """See `LeafPages`."""
        number, page = self._locate(index)
        return self._leaves[number].rows_at_once(page)

    def form(self, index: int) -> Hashable:
        """See `LeafPages`."""
        number, page = self._locate(index)
        return self._leaves[number].form(page)

    def plan(self, index: int, rows: RowSelection) -> Planned[list[pa.Array]]:
        """See `LeafPages`."""
        number, page = self._locate(index)
        return _plan_moved(self._leaves[number].plan(page, rows), number)

    def plan_single_rows(self, indices: Sequence[int], rows: Sequence[Counts]) -> Planned[list[pa.Array]]:
        """See `LeafPages`."""
        places = [self._locate(index) for index in indices]
        pages = [self._leaves[number].single_rows(page, own) for (number, page), own in zip(places, rows, strict=True)]
        return plan_pages(self.leaf, pages, [number << _STRETCH_BITS for number, _ in places])

    def _locate(self, index: int) -> tuple[int, int]:
        """Return the number of the file that has a page, and the page's number in it."""
        number = bisect.bisect_right(self._first_pages, index) - 1
        return number, index - self._first_pages[number]


def _plan_moved(plan: Planned[list[pa.Array]], number: int) -> Planned[list[pa.Array]]:
    """Return the plan of a file's page with ranges in the joined file."""
    data: Sequence[Bytes] | None = None
    try:
        while True:
            wanted = next(plan) if data is None else plan.send(data)
            data = yield _moved(wanted, number)
    except StopIteration as stop:
        arrays: list[pa.Array] = stop.value
        return arrays


def _moved(ranges: Sequence[ByteRange], number: int) -> list[ByteRange]:
    base = number << _STRETCH_BITS
    return [ByteRange(base + int(wanted.offset), wanted.size) for wanted in ranges]
