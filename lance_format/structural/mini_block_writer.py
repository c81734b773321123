"""Writing mini-block pages; `mini_block.py` has the byte diagram."""

from __future__ import annotations

import numpy as np

from lance_format.compression.choice import strategy
from lance_format.compression.codec import CompressedChunks
from lance_format.compression.options import CompressionOptions
from lance_format.data_block import Bytes, Counts, FixedWidthBlock, ValueBlock
from lance_format.kernels.pages import mini_block as kernels
from lance_format.kernels.pages.mini_block import ALIGNMENT, LOG_BITS
from lance_format.memory import empty
from lance_format.proto import encodings_pb2
from lance_format.structural.layers import LayerStack, Levels
from lance_format.structural.page import EncodedPage
from lance_format.structural.rep_def import LevelPair, visible, visible_definition
from lance_format.version import FileVersion

_LEVEL_BITS = 16
_MAX_LEVELS = 2**16 - 1


class TooManyLevelsError(Exception):
    """A chunk would have more levels than it can count."""


class TooLargeForMiniBlockError(Exception):
    """A value needs a chunk larger than the file's version allows."""


def encode(
    values: ValueBlock,
    levels: LevelPair,
    stack: LayerStack,
    num_rows: int,
    *,
    options: CompressionOptions,
    version: FileVersion,
) -> EncodedPage:
    """Lay out a page.

    Parameters
    ----------
    values : ValueBlock
        One for each visible entry, nulls included; at least one.
    levels : LevelPair
    stack : LayerStack
    num_rows : int
    options : CompressionOptions
    version : FileVersion

    Raises
    ------
    TooLargeForMiniBlockError
    TooManyLevelsError
    """
    page = strategy.compress_page(values, visible_definition(levels, stack), options, version)
    chunks, large_chunks = page.chunks, version.has_large_chunks
    counts = _levels_of_chunks(levels, stack, chunks.num_values)
    repetition = _compress_levels(levels.repetition, counts, version)
    definitions = _compress_levels(levels.definition, counts, version)
    table, data = _assemble(chunks, [repetition, definitions], counts, large_chunks=large_chunks)
    buffers = [table, data]
    if page.dictionary is not None:
        buffers.append(page.dictionary.buffer)
    if levels.repetition is not None:
        buffers.append(_repetition_index(levels.repetition, stack.max_repetition, counts))
    layout = encodings_pb2.MiniBlockLayout(
        rep_compression=None if repetition is None else repetition.encoding,
        def_compression=None if definitions is None else definitions.encoding,
        value_compression=chunks.encoding,
        dictionary=None if page.dictionary is None else page.dictionary.encoding,
        num_dictionary_items=0 if page.dictionary is None else page.dictionary.num_items,
        layers=stack.layers,  # type: ignore[arg-type]
        num_buffers=len(chunks.buffers),
        repetition_index_depth=int(levels.repetition is not None),
        num_items=values.num_values,
        has_large_chunk=large_chunks,
    )
    return EncodedPage(tuple(buffers), encodings_pb2.PageLayout(mini_block_layout=layout), num_rows)


def _levels_of_chunks(levels: LevelPair, stack: LayerStack, num_values: Counts) -> Counts:
    """Return the levels of each chunk: up to its last value, in the last chunk all remaining ones.

    Raises
    ------
    TooManyLevelsError
    """
    seen = visible(levels.definition, stack)
    if seen is None:
        return num_values
    ends = np.flatnonzero(seen)[np.cumsum(num_values) - 1] + 1
    ends[-1] = levels.num_levels
    counts = np.diff(ends, prepend=0)
    if int(counts.max()) > _MAX_LEVELS:
        raise TooManyLevelsError
    return counts


def _repetition_index(repetition: Levels, row_start: int, counts: Counts) -> Bytes:
    """For each chunk, return the number of rows that end in it, and of levels of the row that continues."""
    starts = np.flatnonzero(repetition == row_start)
    ends = np.cumsum(counts)
    started = np.searchsorted(starts, ends)
    is_boundary = np.append(repetition, np.uint16(row_start))[ends] == row_start
    ended = started - ~is_boundary
    last_start = np.maximum(starts[started - 1], ends - counts)
    leftovers = np.where(is_boundary, 0, ends - last_start)
    pairs = np.stack([np.diff(ended, prepend=0), leftovers], axis=1)
    return pairs.astype("<u8").reshape(-1).view(np.uint8)


def _compress_levels(levels: Levels | None, counts: Counts, version: FileVersion) -> CompressedChunks | None:
    if levels is None:
        return None
    block = FixedWidthBlock(levels.view(np.uint8), _LEVEL_BITS, levels.size)
    return strategy.compress_levels(block, counts, version)


def _assemble(
    chunks: CompressedChunks, levels: list[CompressedChunks | None], counts: Counts, *, large_chunks: bool
) -> tuple[Bytes, Bytes]:
    """Return the chunk table and the chunks.

    Raises
    ------
    TooLargeForMiniBlockError
    """
    size_width = 4 if large_chunks else 2
    present = [level for level in levels if level is not None]
    header_bytes = 2 + 2 * len(present) + size_width * len(chunks.buffers)
    parts = [*(level.buffers[0] for level in present), *chunks.buffers]
    num_chunks = len(chunks.num_values)
    sizes = np.concatenate([*(level.sizes[0] for level in present), *chunks.sizes]).reshape(len(parts), num_chunks)
    words = empty(num_chunks, np.int64)
    positions = np.empty((len(parts) + 1, num_chunks), np.int64)
    most_bytes = ALIGNMENT << (8 * size_width - LOG_BITS)
    total = kernels.plan_chunks(sizes, chunks.num_values, header_bytes, most_bytes, positions, words)
    if total == kernels.TOO_LARGE:
        raise TooLargeForMiniBlockError
    data: Bytes = empty(total, np.uint8)
    kernels.write_headers(counts, sizes, len(present), size_width, positions, data)
    for index, part in enumerate(parts):
        kernels.scatter(part, sizes[index], positions[index + 1], data)
    return words.astype(f"<u{size_width}").view(np.uint8), data
