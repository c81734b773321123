"""The mini-block layout: pages of small values, cut into chunks that are compressed and read one by one.

Encoding strategy document, "Mini-block page layout". The page has two buffers. The first holds a word a chunk, of 16
bits up to file format 2.1 and of 32 from 2.2 on:

    │ size in bytes / 8 - 1 │ log2 of the number of values: 4 bits │

The last chunk may have 0 there; it holds the values that are left. The second buffer holds the chunks:

    │ u16 levels │ u16 bytes of rep? │ u16 bytes of def? │ bytes of each value buffer: u16, or u32 from 2.2 on │ fill │
    │ repetition levels? │ fill │ definition levels? │ fill │ value buffer 0 │ fill │ …

Chunks and their buffers start at multiples of 8 bytes; fill is 0xFE.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lance_format.byte_io import ByteRange
from lance_format.compression import strategy
from lance_format.compression.codec import CompressedChunks, Context, Decompressor
from lance_format.compression.registry import parse_decompressor
from lance_format.data_block import (
    BufferSlices,
    Bytes,
    Counts,
    DataBlock,
    FixedWidthBlock,
    aligned,
    starts_of,
)
from lance_format.errors import CorruptFileError, NotSupportedError
from lance_format.kernels import mini_block as kernels
from lance_format.proto import encodings_pb2
from lance_format.structural.page import (
    DecodedRows,
    EncodedPage,
    Levels,
    PageDescription,
    Plan,
    RowSelection,
    check_levels,
    parse_flat_layers,
    rows_within_answer,
    select_levels,
)

_ALIGNMENT = 8
_FILL = 0xFE
_LOG_BITS = 4
_MAX_VALUE_BUFFERS = 16
_MAX_LEVEL_BITS = 16


@dataclass(frozen=True, slots=True)
class _ChunkTable:
    """Where the chunks are and which values they hold.

    Parameters
    ----------
    offsets : int64[num_chunks + 1]
        Bytes into the chunk buffer.
    first_values : int64[num_chunks + 1]
    """

    offsets: Counts
    first_values: Counts


class MiniBlockPage:
    """A page of chunks.

    Parameters
    ----------
    layout : MiniBlockLayout
    page : PageDescription

    Raises
    ------
    CorruptFileError
        If the layout contradicts itself or the page.
    NotSupportedError
        If the layout uses what cannot be read yet.
    """

    def __init__(self, layout: encodings_pb2.MiniBlockLayout, page: PageDescription) -> None:
        self._page = page
        self._table: _ChunkTable | None = None
        self._nullable = parse_flat_layers(layout.layers)
        if layout.HasField("rep_compression") or layout.repetition_index_depth:
            raise CorruptFileError("a page without list layers has repetition levels")
        if layout.HasField("dictionary"):
            raise NotSupportedError("pages with a dictionary cannot be read yet")
        if layout.has_large_chunk != page.large_chunks:
            raise CorruptFileError("the width of the page's chunk words is not that of the file's version")
        if layout.num_items != page.num_rows:
            raise CorruptFileError(f"the page has {page.num_rows} rows but {layout.num_items} values")
        if len(page.buffers) < 2:
            raise CorruptFileError(f"a mini-block page has {len(page.buffers)} buffers; expected at least 2")
        self._values = parse_decompressor(layout.value_compression, Context.MINI_BLOCK)
        self._levels: Decompressor | None = None
        if layout.HasField("def_compression"):
            self._levels = parse_decompressor(layout.def_compression, Context.BLOCK)
        if layout.num_buffers != self._values.num_buffers or layout.num_buffers > _MAX_VALUE_BUFFERS:
            raise CorruptFileError(
                f"chunks have {layout.num_buffers} value buffers; their encoding has {self._values.num_buffers}"
            )

    @property
    def rows_at_once(self) -> int:
        """See `Page`; compressed pages are taken to be written from some tens of MiB, as all known writers do."""
        return rows_within_answer(self._page.buffers[1].size / max(self._page.num_rows, 1))

    def plan(self, rows: RowSelection) -> Plan:
        """Plan the reading of some rows; see `Page`."""
        if self._table is None:
            (words,) = yield (self._page.buffers[0],)
            self._table = self._parse_table(words)
        table = self._table
        chunks = _chunks_of(table, rows)
        runs = np.split(chunks, np.flatnonzero(np.diff(chunks) > 1) + 1)
        base = self._page.buffers[1].offset
        fetched = yield tuple(
            ByteRange(base + int(table.offsets[run[0]]), int(table.offsets[run[-1] + 1] - table.offsets[run[0]]))
            for run in runs
        )
        data = aligned(fetched[0] if len(fetched) == 1 else np.concatenate(fetched))
        counts = np.diff(table.first_values)[chunks]
        values, levels = self._decode(data, np.diff(table.offsets)[chunks], counts)
        return _select(values, levels, rows, table.first_values[chunks], starts_of(counts))

    def _parse_table(self, buffer: Bytes) -> _ChunkTable:
        width = 4 if self._page.large_chunks else 2
        if buffer.size % width or (buffer.size == 0) != (self._page.num_rows == 0):
            raise CorruptFileError(f"the chunk table has {buffer.size} bytes for {self._page.num_rows} values")
        words = buffer.view(f"<u{width}").astype(np.int64)
        offsets = np.zeros(words.size + 1, np.int64)
        np.cumsum(((words >> _LOG_BITS) + 1) * _ALIGNMENT, out=offsets[1:])
        if offsets[-1] > self._page.buffers[1].size:
            raise CorruptFileError(
                f"the chunks have {offsets[-1]} bytes; their buffer has {self._page.buffers[1].size}"
            )
        first_values = np.zeros(words.size + 1, np.int64)
        np.cumsum(np.left_shift(np.int64(1), words & (2**_LOG_BITS - 1)), out=first_values[1:])
        left = self._page.num_rows - int(first_values[-2]) if words.size else 0
        last_log = int(words[-1]) & (2**_LOG_BITS - 1) if words.size else 0
        if words.size and (left <= 0 or (last_log > 0 and left != 1 << last_log)):
            raise CorruptFileError(f"the chunks do not hold the page's {self._page.num_rows} values")
        first_values[-1] = self._page.num_rows
        return _ChunkTable(offsets, first_values)

    def _decode(self, data: Bytes, chunk_sizes: Counts, counts: Counts) -> tuple[DataBlock, Levels | None]:
        num_chunks = len(chunk_sizes)
        rows = 2 + self._values.num_buffers
        sizes = np.zeros((rows, num_chunks), np.int64)
        sizes[0] = -1
        sizes[1] = -1 if self._levels is None else 0
        starts = np.zeros((rows, num_chunks), np.int64)
        num_levels = np.zeros(num_chunks, np.int64)
        size_width = 4 if self._page.large_chunks else 2
        found = kernels.parse_headers(data, starts_of(chunk_sizes), chunk_sizes, size_width, num_levels, starts, sizes)
        if found < 0:
            raise CorruptFileError(f"the buffers of chunk {-1 - found} do not fit into it")
        slices = [BufferSlices(data, starts[row], sizes[row]) for row in range(2, rows)]
        values = self._values.decompress(slices, counts)
        if self._levels is None:
            return values, None
        if (num_levels != counts).any():
            raise CorruptFileError("a chunk has another number of definition levels than of values")
        block = self._levels.decompress([BufferSlices(data, starts[1], sizes[1])], counts)
        return values, check_levels(_as_levels(block), int(self._nullable))


def _as_levels(block: DataBlock) -> Levels:
    if not isinstance(block, FixedWidthBlock) or block.bits_per_value != _MAX_LEVEL_BITS:
        raise CorruptFileError("levels are not stored as 16-bit words")
    return block.data[: block.size_bytes].view("<u2")


def _chunks_of(table: _ChunkTable, rows: RowSelection) -> Counts:
    """Return the chunks that hold the rows, ascending, each once."""
    if isinstance(rows, range):
        first, last = np.searchsorted(table.first_values, [rows.start, rows.stop - 1], side="right") - 1
        return np.arange(first, last + 1, dtype=np.int64)
    return np.unique(np.searchsorted(table.first_values, rows, side="right") - 1)


def _select(
    values: DataBlock, levels: Levels | None, rows: RowSelection, first_values: Counts, decoded_starts: Counts
) -> DecodedRows:
    """Pick rows from the decoded chunks, whose first values were `first_values` and are now `decoded_starts`."""
    if isinstance(rows, range):
        shift = int(first_values[0])
        within: RowSelection = range(rows.start - shift, rows.stop - shift)
    else:
        chunk = np.searchsorted(first_values, rows, side="right") - 1
        within = rows - first_values[chunk] + decoded_starts[chunk]
    selected = values.slice(within.start, within.stop) if isinstance(within, range) else values.take(within)
    return DecodedRows(selected, select_levels(levels, within), len(rows))


def encode(values: DataBlock, definition: Levels | None, *, large_chunks: bool) -> EncodedPage:
    """Lay out a flat page.

    Parameters
    ----------
    values : DataBlock
        One a row, nulls included.
    definition : uint16[num_rows] or None
        0 where the value is there, 1 where it is null; None if none is null.
    large_chunks : bool
        Whether the file's version has 32-bit chunk words.

    Raises
    ------
    NotSupportedError
        If a value is too large for a chunk of the file's version.
    """
    chunks = strategy.compress_values(values)
    levels: CompressedChunks | None = None
    if definition is not None:
        block = FixedWidthBlock(definition.view(np.uint8), _MAX_LEVEL_BITS, definition.size)
        levels = strategy.compress_levels(block, chunks.num_values)
    table, data = _assemble(chunks, levels, large_chunks=large_chunks)
    nullable = encodings_pb2.REPDEF_ALL_VALID_ITEM if levels is None else encodings_pb2.REPDEF_NULLABLE_ITEM
    layout = encodings_pb2.MiniBlockLayout(
        def_compression=None if levels is None else levels.encoding,
        value_compression=chunks.encoding,
        layers=[nullable],
        num_buffers=len(chunks.buffers),
        num_items=values.num_values,
        has_large_chunk=large_chunks,
    )
    return EncodedPage((table, data), encodings_pb2.PageLayout(mini_block_layout=layout), values.num_values)


def _assemble(chunks: CompressedChunks, levels: CompressedChunks | None, *, large_chunks: bool) -> tuple[Bytes, Bytes]:
    """Return the chunk table and the chunks."""
    size_width = 4 if large_chunks else 2
    header_bytes = 2 + (2 if levels is not None else 0) + size_width * len(chunks.buffers)
    pieces = [*(() if levels is None else zip(levels.buffers, levels.sizes, strict=True))]
    pieces += zip(chunks.buffers, chunks.sizes, strict=True)
    chunk_bytes = np.full(len(chunks.num_values), _padded(header_bytes), np.int64)
    within = []
    for _, sizes in pieces:
        within.append(chunk_bytes.copy())
        chunk_bytes += _padded(sizes)
    _check_chunk_size(int(chunk_bytes.max()), large_chunks=large_chunks)
    starts = starts_of(chunk_bytes)
    data = np.full(int(chunk_bytes.sum()), _FILL, np.uint8)
    position = starts.copy()
    counts = chunks.num_values if levels is not None else np.zeros_like(chunks.num_values)
    kernels.write_integers(counts, 2, position, data)
    position += 2
    if levels is not None:
        kernels.write_integers(levels.sizes[0], 2, position, data)
        position += 2
    for sizes in chunks.sizes:
        kernels.write_integers(sizes, size_width, position, data)
        position += size_width
    for (buffer, sizes), offset in zip(pieces, within, strict=True):
        kernels.scatter(buffer, sizes, starts + offset, data)
    logs = np.zeros(len(chunks.num_values), np.int64)
    logs[:-1] = np.round(np.log2(chunks.num_values[:-1])).astype(np.int64)
    words = ((chunk_bytes // _ALIGNMENT - 1) << _LOG_BITS) | logs
    return words.astype(f"<u{size_width}").view(np.uint8), data


def _padded(sizes: Counts | int) -> Counts:
    return np.asarray((sizes + _ALIGNMENT - 1) // _ALIGNMENT * _ALIGNMENT)


def _check_chunk_size(size: int, *, large_chunks: bool) -> None:
    limit = _ALIGNMENT << (32 - _LOG_BITS if large_chunks else 16 - _LOG_BITS)
    if size > limit:
        raise NotSupportedError(
            f"a value needs a chunk of {size} bytes; this file format version allows {limit}."
            " Write file format 2.2, or split the value"
        )
