"""The full-zip layout: pages of large values, each stored next to its levels and read separately.

Encoding strategy document, "Full zip page layout". Buffer 0 has an entry for each level:

    │ control word? │ length? │ value? │        control word = repetition level << bits of definition │ definition level

The control word has 0, 1, 2 or 4 bytes, as few as the bits of both levels need. With a fixed width, every visible entry
has a value, null or not. A value of a variable width follows its length of 32 or 64 bits; nulls have neither. Values
are compressed one by one.

If entries differ in size, or there are lists, buffer 1 holds the start of each row, and the end of the last:

    │ offset of row 0 │ offset of row 1 │ … │ size of buffer 0 │        all of 1, 2, 4 or 8 bytes
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from lance_format.byte_io import ByteRange
from lance_format.compression.choice import strategy
from lance_format.compression.options import CompressionOptions
from lance_format.compression.registry import parse_per_value_decompressor
from lance_format.data_block import (
    MAX_INT32,
    Bytes,
    Counts,
    DataBlock,
    FixedWidthBlock,
    ValueBlock,
    VariableWidthBlock,
    aligned,
    starts_of,
)
from lance_format.errors import CorruptFileError, NotSupportedError
from lance_format.kernels.jit import read_only
from lance_format.kernels.pages import full_zip as kernels
from lance_format.kernels.pages.mini_block import copy_slices
from lance_format.memory import empty
from lance_format.proto import encodings_pb2
from lance_format.structural.layers import LayerStack
from lance_format.structural.page import (
    SEEK_BYTES,
    DecodedRows,
    EncodedPage,
    PageDescription,
    PlacedPage,
    Plan,
    RowSelection,
    merge_extents,
    rows_within_answer,
)
from lance_format.structural.rep_def import LevelPair, check_levels, visible, visible_definition

_MAX_BITS = 16
_OFFSET_WIDTHS = (1, 2, 4, 8)

_Offsets: TypeAlias = npt.NDArray[np.uint64]
_Extents: TypeAlias = tuple[Counts, Counts]
_Lookup: TypeAlias = Generator[Sequence[ByteRange], Sequence[Bytes], _Extents]
_IndexReading: TypeAlias = Generator[Sequence[ByteRange], Sequence[Bytes], tuple[_Offsets, _Offsets]]


class FullZipPage:
    """A page of zipped entries.

    Parameters
    ----------
    layout : FullZipLayout
    page : PageDescription

    Raises
    ------
    CorruptFileError
        If the layout contradicts itself or the page.
    NotSupportedError
        If the layout uses unsupported features.
    """

    def __init__(self, layout: encodings_pb2.FullZipLayout, page: PageDescription) -> None:
        self._page = page
        self._stack = LayerStack.parse(layout.layers)
        self._values = parse_per_value_decompressor(layout.value_compression)
        self._definition_bits = layout.bits_def
        self._num_items = layout.num_items
        bits = layout.bits_def + layout.bits_rep
        if max(layout.bits_def, layout.bits_rep) > _MAX_BITS:
            raise CorruptFileError(f"levels of {layout.bits_rep} and {layout.bits_def} bits; at most 16 are possible")
        self._control_bytes = control_bytes(bits)
        details = layout.WhichOneof("details")
        if details is None:
            raise CorruptFileError("a full-zip page says neither the bits of its values nor those of its lengths")
        self._is_variable = details == "bits_per_offset"
        width = layout.bits_per_offset if self._is_variable else layout.bits_per_value
        if width % 8 or (self._is_variable and width not in (32, 64)):
            raise CorruptFileError(f"a full-zip page has values or lengths of {width} bits")
        self._length_bytes = width // 8 if self._is_variable else 0
        self._value_bytes = 0 if self._is_variable else width // 8
        self._indexed = self._is_variable or bool(self._stack.lists)
        if len(page.buffers) < 1 + self._indexed:
            raise CorruptFileError(f"a full-zip page has {len(page.buffers)} buffers; expected {1 + self._indexed}")
        if not self._indexed:
            needed = page.num_rows * (self._control_bytes + self._value_bytes)
            if page.buffers[0].size < needed:
                raise CorruptFileError(f"{page.num_rows} rows need {needed} bytes; there are {page.buffers[0].size}")
        else:
            self._offset_width = self._find_offset_width()

    def _find_offset_width(self) -> int:
        size, count = self._page.buffers[1].size, self._page.num_rows + 1
        width = size // count
        if width not in _OFFSET_WIDTHS or width * count != size:
            raise CorruptFileError(f"the repetition index has {size} bytes for {count} offsets")
        return width

    @property
    def rows_at_once(self) -> int:
        """See `Page`."""
        return rows_within_answer(self._page.buffers[0].size / max(self._page.num_rows, 1))

    def plan(self, rows: RowSelection) -> Plan:
        """Plan the reading of some rows; see `Page`. The whole page is read without its repetition index."""
        if isinstance(rows, range) and len(rows) == self._page.num_rows and self._indexed:
            (data,) = yield [self._page.buffers[0]]
        else:
            begins, ends = (yield from self._look_up(rows)) if self._indexed else self._extents_of(rows)
            extents = merge_extents(self._page.buffers[0].offset, begins, ends)
            data = extents.join((yield extents.ranges))
            if begins.size > 1:
                data = _gather(data, extents.positions, ends - begins)
        decoded = self._unzip(data, self._num_items * _most_repeats(rows))
        self._check_rows(decoded, len(rows))
        return decoded

    def _extents_of(self, rows: RowSelection) -> _Extents:
        """Return the extents of rows of one size; consecutive rows share one."""
        size = self._control_bytes + self._value_bytes
        if isinstance(rows, range):
            return np.array([rows.start * size], np.int64), np.array([rows.stop * size], np.int64)
        return rows * size, (rows + 1) * size

    def _look_up(self, rows: RowSelection) -> _Lookup:
        """Look up the extents of rows in the repetition index; consecutive rows share one."""
        begins, ends = yield from self._read_index(rows)
        if (begins > ends).any() or int(ends.max()) > self._page.buffers[0].size:
            raise CorruptFileError(
                f"the repetition index places rows outside of the {self._page.buffers[0].size} bytes of the page"
            )
        if not isinstance(rows, range) and ((begins[1:] < ends[:-1]) & (np.diff(rows) > 0)).any():
            raise CorruptFileError("the repetition index lets rows overlap")
        return begins.astype(np.int64), ends.astype(np.int64)

    def _read_index(self, rows: RowSelection) -> _IndexReading:
        """Return the offsets of the begin and end of the wanted rows, or of the range of rows.

        The whole index is read and cached if that costs no more than seeking each part.
        """
        index, width = self._page.buffers[1], self._offset_width
        firsts = np.array([rows.start], np.int64) if isinstance(rows, range) else rows
        lasts = np.array([rows.stop], np.int64) if isinstance(rows, range) else rows + 1
        offsets = self._page.cache.get()
        if not isinstance(offsets, np.ndarray):
            if index.size > firsts.size * SEEK_BYTES:
                return (yield from self._read_bounds(firsts, lasts))
            (buffer,) = yield [index]
            offsets = buffer.view(f"<u{width}").copy()
            self._page.cache.put(offsets, offsets.nbytes)
        return offsets[firsts].astype(np.uint64), offsets[lasts].astype(np.uint64)

    def _read_bounds(self, firsts: Counts, lasts: Counts) -> _IndexReading:
        """Return parts of the repetition index."""
        index, width = self._page.buffers[1].offset, self._offset_width
        if firsts.size == 1:
            numbers = (int(firsts[0]), int(lasts[0]))
            pieces = yield [ByteRange(index + number * width, width) for number in numbers]
            first, last = (piece.view(f"<u{width}").astype(np.uint64) for piece in pieces)
            return first, last
        extents = merge_extents(index, firsts * width, (lasts + 1) * width)
        words = aligned(extents.join((yield extents.ranges))).view(f"<u{width}")
        entries = extents.positions // width
        return words[entries].astype(np.uint64), words[entries + lasts - firsts].astype(np.uint64)

    def decode_together(self, pages: Sequence[PlacedPage], data: Bytes) -> DecodedRows:
        """Decode whole pages that share the layout of this one, except its number of values; see `together`."""
        is_fixed = not self._is_variable and self._value_bytes > 0
        if self._stack.lists or not (is_fixed or (self._is_variable and not self._control_bytes)):
            raise NotSupportedError("these pages cannot be decoded at once")
        counts = np.array([page.num_rows for page in pages], np.int64)
        sizes = np.array([page.buffers[0].size for page in pages], np.int64)
        if is_fixed:
            sizes, stored = counts * (self._control_bytes + self._value_bytes), sizes
            if (sizes > stored).any():
                raise CorruptFileError("a full-zip page has fewer bytes than its rows need")
        starts = np.array([page.base + page.buffers[0].offset for page in pages], np.int64)
        decoded = self._unzip(_gather(data, starts, sizes), int(counts.sum()), (starts_of(counts), starts_of(sizes)))
        self._check_rows(decoded, int(counts.sum()))
        return decoded

    def _unzip(self, data: Bytes, most_items: int, pages: tuple[Counts, Counts] | None = None) -> DecodedRows:
        """Take entries apart.

        Parameters
        ----------
        data : uint8[…]
        most_items : int
            Maximum number of entries.
        pages : (int64[num_pages], int64[num_pages]), optional
            The first entry of each page, and its offset, if the entries are those of several pages.
        """
        smallest = max(self._control_bytes + (0 if self._is_variable or self._stack.lists else self._value_bytes), 1)
        if not self._control_bytes and not self._is_variable:
            count = data.size // self._value_bytes if self._value_bytes else self._page.num_rows
            block: DataBlock = FixedWidthBlock(data, self._value_bytes * 8, count)
            return DecodedRows(self._values.decompress_values(block), LevelPair(None, None, count), self._stack)
        if self._is_variable and not self._control_bytes:
            smallest = self._length_bytes
        room = min(most_items, data.size // smallest)
        repetition, definition = empty(room, np.uint16), empty(room, np.uint16)
        starts, sizes = empty(room, np.int64), empty(room, np.int64)
        entries, values = kernels.unzip(
            data,
            self._control_bytes,
            self._definition_bits,
            self._stack.max_visible,
            self._value_bytes,
            self._length_bytes,
            repetition,
            definition,
            starts,
            sizes,
        )
        if entries < 0:
            raise CorruptFileError("the entries of a full-zip page do not end where its rows do")
        if pages is not None and self._is_variable:
            firsts, begins = pages
            if firsts[-1] >= values or (starts[firsts] != begins + self._length_bytes).any():
                raise CorruptFileError("the entries of a full-zip page do not end where its rows do")
        block = self._values_of(data, starts[:values], sizes[:values])
        levels = LevelPair(
            repetition[:entries] if self._stack.lists else None,
            definition[:entries] if self._stack.max_definition else None,
            entries,
        )
        check_levels(levels, self._stack)
        return DecodedRows(self._values.decompress_values(block), levels, self._stack)

    def _values_of(self, data: Bytes, starts: Counts, sizes: Counts) -> DataBlock:
        out = _gather(data, starts, sizes)
        if not self._is_variable:
            return FixedWidthBlock(out, self._value_bytes * 8, len(starts))
        wide = self._length_bytes == 8 or out.size > MAX_INT32
        offsets = np.zeros(len(starts) + 1, np.int64)
        np.cumsum(sizes, out=offsets[1:])
        return VariableWidthBlock(out, offsets if wide else offsets.astype(np.int32))

    def _check_rows(self, decoded: DecodedRows, expected: int) -> None:
        repetition = decoded.levels.repetition
        found = decoded.levels.num_levels
        if repetition is not None:
            found = int(np.count_nonzero(repetition == self._stack.max_repetition))
        if found != expected:
            raise CorruptFileError(f"a full-zip page holds {found} rows where {expected} are expected")


def _gather(data: Bytes, starts: Counts, sizes: Counts) -> Bytes:
    """Return slices of a buffer, one after the other."""
    out = empty(int(sizes.sum()), np.uint8)
    copy_slices(data, starts, sizes, out)
    return out


def _most_repeats(rows: RowSelection) -> int:
    """Return the highest number of repetitions of a row."""
    if isinstance(rows, range) or (rows[1:] > rows[:-1]).all():
        return 1
    return int(np.unique(rows, return_counts=True)[1].max())


def control_bytes(bits: int) -> int:
    """Return the size of a control word in bytes, given the bits of its levels."""
    return next(size for size in (0, 1, 2, 4) if bits <= 8 * size)


def encode(
    values: ValueBlock, levels: LevelPair, stack: LayerStack, num_rows: int, options: CompressionOptions
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
    """
    page = strategy.compress_per_value(values, visible_definition(levels, stack), options)
    definition_bits = stack.max_definition.bit_length()
    repetition_bits = stack.max_repetition.bit_length()
    size = control_bytes(definition_bits + repetition_bits)
    data, positions = _zip(page.values, levels, stack, size, definition_bits)
    buffers = [data]
    variable = isinstance(page.values, VariableWidthBlock)
    if variable or stack.lists:
        rows: Counts | slice = slice(None)
        if levels.repetition is not None:
            rows = np.flatnonzero(levels.repetition == stack.max_repetition)
        offsets = np.append(positions[rows], data.size)
        width = next(width for width in _OFFSET_WIDTHS if data.size < 1 << (8 * width))
        buffers.append(offsets.astype(f"<u{width}").view(np.uint8))
    layout = encodings_pb2.FullZipLayout(
        bits_rep=repetition_bits,
        bits_def=definition_bits,
        num_items=levels.num_levels,
        num_visible_items=values.num_values,
        value_compression=page.encoding,
        layers=stack.layers,  # type: ignore[arg-type]
    )
    if isinstance(page.values, VariableWidthBlock):
        layout.bits_per_offset = page.values.bits_per_offset
    else:
        layout.bits_per_value = page.values.bits_per_value
    return EncodedPage(tuple(buffers), encodings_pb2.PageLayout(full_zip_layout=layout), num_rows)


def _zip(
    values: DataBlock, levels: LevelPair, stack: LayerStack, size: int, definition_bits: int
) -> tuple[Bytes, Counts]:
    """Return the entries, and the start of each."""
    if isinstance(values, FixedWidthBlock):
        if values.bits_per_value % 8:
            raise NotSupportedError("single bits cannot be stored in full-zip pages")
        width = values.bytes_per_value
        offsets = np.arange(values.num_values + 1, dtype=np.int64) * width
        length_bytes = 0
    else:
        offsets = values.offsets.astype(np.int64)
        length_bytes = values.bits_per_offset // 8
    words = np.zeros(levels.num_levels, np.int64)
    valid = np.ones(levels.num_levels, np.bool_)
    seen = np.ones(levels.num_levels, np.bool_)
    if levels.definition is not None:
        words |= levels.definition
        valid = levels.definition == 0
        found = visible(levels.definition, stack)
        seen = seen if found is None else found
    if levels.repetition is not None:
        words |= levels.repetition.astype(np.int64) << definition_bits
    room = levels.num_levels * (size + length_bytes) + int(offsets[-1] - offsets[0])
    out = empty(room, np.uint8)
    positions = empty(levels.num_levels, np.int64)
    data = read_only(values.data)
    written = kernels.zip_entries(words, seen, valid, size, data, offsets, length_bytes, out, positions)
    return out[:written], positions
