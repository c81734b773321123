"""Single rows of several files at once, as if the files followed each other in one.

A few rows cost calls and requests rather than bytes: as many for a file as for all of them, whose pages of one form are
decoded together. In the offsets of the joined file, each file has a stretch of its own.

Nothing is an error here. A file that is damaged, or that holds anything unusual, is left to `FileReader`, which reads
it or says what is wrong.
"""

from __future__ import annotations

import itertools
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_format.byte_io import Buffer, ByteRange, ByteRanges, RangeReader, stream_ranges
from lance_format.data_block import Counts
from lance_format.errors import CorruptFileError, NotSupportedError
from lance_format.file.columns.assembly import merge
from lance_format.file.columns.dictionaries import concat
from lance_format.file.columns.projection import ColumnProjection
from lance_format.file.container.joined_reads import read_joined
from lance_format.file.reading.batches import to_batch
from lance_format.file.reading.column_reader import ColumnReader
from lance_format.file.reading.reader import FileReader
from lance_format.file.reading.single_rows import expected_bytes, take_arrays
from lance_format.file.reading.stacked_leaf import StackedLeaf
from lance_format.file.reading.structural_leaf import StructuralLeaf

_STRETCH_BITS = 44
_STRETCH_BYTES = 1 << _STRETCH_BITS
_MOST_BYTES = 64 * 1024 * 1024
"""More rows are not a few: they are in memory twice while those of several files are put together."""
_LEAST_RANGES = 16
"""Fewer ranges of a column in each file are better read with those of other columns."""
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
        starts = [number << _STRETCH_BITS for number in range(len(readers))]
        by_leaf = [StackedLeaf(found, starts) for leaves in zip(*opened, strict=True) if (found := _structural(leaves))]
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

    def read_joined(self, ranges: ByteRanges) -> npt.NDArray[np.uint8] | None:
        """See `lance_format.file.container.joined_reads`."""
        numbers = ranges.offsets >> _STRETCH_BITS
        firsts = np.flatnonzero(np.diff(numbers, prepend=-1)).tolist()
        if len(ranges) < _LEAST_RANGES * len(firsts):
            return None
        parts = []
        for first, stop in zip(firsts, [*firsts[1:], len(ranges)], strict=True):
            number = int(numbers[first])
            found = read_joined(self._sources[number], ranges[first:stop].moved(-(number << _STRETCH_BITS)))
            if found is None:
                return None
            parts.append(found)
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

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
