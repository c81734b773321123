"""The constant layout: pages where all values are the same or null.

Encoding strategy document, "All-null page layout", extended by file format 2.2. Without a value all values are null; if
no layer can be null or empty otherwise, the page has no buffers. A value of up to 32 bytes is part of the layout
(`inline_value`); a larger one is buffer 0:

    │ u32 number of buffers │ u32 bytes of each │ the Arrow buffers of one value: offsets, data, or data alone │

If levels are needed, two buffers follow: repetition levels and definition levels, either empty if all are 0. They are
plain 16-bit words; those of pages without a value may be compressed from 2.2 on.
"""

from __future__ import annotations

import operator
import struct
from collections.abc import Generator, Sequence

import numpy as np

from lance_format.byte_io import ByteRange
from lance_format.compression.choice import strategy
from lance_format.compression.codec import Context, Decompressor
from lance_format.compression.registry import parse_decompressor
from lance_format.data_block import (
    MAX_INT32,
    BufferSlices,
    Bytes,
    Counts,
    DataBlock,
    FixedWidthBlock,
    ValueShape,
    VariableWidthBlock,
)
from lance_format.errors import CorruptFileError, NotSupportedError
from lance_format.lazy_dataclasses import dataclass
from lance_format.proto import encodings_pb2
from lance_format.structural.layers import LayerStack, Levels
from lance_format.structural.page import (
    DecodedRows,
    EncodedPage,
    PageDescription,
    PlacedPage,
    Plan,
    RowSelection,
    as_levels,
    rows_within_answer,
)
from lance_format.structural.rep_def import LevelPair, check_levels, visible
from lance_format.structural.row_index import select_rows
from lance_format.version import FileVersion

_MAX_INLINE_BYTES = 32
_WORD_BYTES = 4
_LEVEL_BYTES = 2
_MAX_LEVELS_PER_ROW = 2**24
_MAX_BYTES_TOGETHER = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class _Parts:
    """Content of a page, with checked levels."""

    value: Bytes | None
    repetition: Levels | None
    definition: Levels | None

    @property
    def size_bytes(self) -> int:
        """Size in memory."""
        return sum(part.nbytes for part in (self.value, self.repetition, self.definition) if part is not None)


class ConstantPage:
    """A page of one value, or of nulls only.

    Parameters
    ----------
    layout : ConstantLayout
    page : PageDescription
    shape : ValueShape
        A single bit is stored as a byte.
    """

    def __init__(self, layout: encodings_pb2.ConstantLayout, page: PageDescription, shape: ValueShape) -> None:
        self._page = page
        self._stack = LayerStack.parse(layout.layers)
        self._shape = shape
        inline = layout.inline_value if layout.HasField("inline_value") else None
        if inline is not None and shape.bits_per_offset is not None:
            raise CorruptFileError("a page of byte strings has an inline value")
        self._inline = None if inline is None else np.frombuffer(inline, np.uint8)
        has_value_buffer = inline is None and len(page.buffers) % 2 == 1
        level_buffers = page.buffers[int(has_value_buffer) :]
        if len(level_buffers) not in (0, 2):
            raise CorruptFileError(f"a constant page has {len(page.buffers)} buffers")
        self._value_range = page.buffers[0] if has_value_buffer else None
        ranges: list[ByteRange | None] = [
            buffer if buffer.size or getattr(layout, name).HasField("constant") else None
            for buffer, name in zip(level_buffers, ("rep_compression", "def_compression"), strict=False)
        ]
        self._repetition_range, self._definition_range = ranges or [None, None]
        self._repetition = _LevelReader.of(layout, "rep_compression", layout.num_rep_values)
        self._definition = _LevelReader.of(layout, "def_compression", layout.num_def_values)
        if self._stack.lists and self._repetition_range is None:
            raise CorruptFileError("a page of lists has no repetition levels")

    @property
    def rows_at_once(self) -> int:
        """See `Page`."""
        return rows_within_answer(0 if self._value_range is None else self._value_range.size)

    def plan(self, rows: RowSelection) -> Plan:
        """Plan the reading of some rows; see `Page`."""
        parts = self._page.cache.get()
        if not isinstance(parts, _Parts):
            parts = yield from self._load()
            if self._page.buffers:
                self._page.cache.put(parts, parts.size_bytes)
        decoded = self._select(parts.repetition, parts.definition, rows)
        if parts.value is None:
            return decoded
        seen = visible(decoded.levels.definition, self._stack)
        count = decoded.levels.num_levels if seen is None else int(np.count_nonzero(seen))
        values = self._repeat([parts.value.tobytes()], np.array([count], np.int64))
        return DecodedRows(values, decoded.levels, self._stack)

    def _load(self) -> Generator[Sequence[ByteRange], Sequence[Bytes], _Parts]:
        wanted = [self._value_range, self._repetition_range, self._definition_range]
        ranges: list[ByteRange] = [found for found in wanted if found is not None]
        fetched = iter((yield ranges) if ranges else ())
        value = self._inline if self._value_range is None else next(fetched).copy()
        repetition = None if self._repetition_range is None else self._repetition.read(next(fetched)).copy()
        definition = None if self._definition_range is None else self._definition.read(next(fetched)).copy()
        sizes = {levels.size for levels in (repetition, definition) if levels is not None}
        if len(sizes) > 1 or (sizes and not self._stack.lists and sizes != {self._page.num_rows}):
            raise CorruptFileError(f"a constant page of {self._page.num_rows} rows has {sorted(sizes)} levels")
        if sizes:
            check_levels(LevelPair(repetition, definition, sizes.pop()), self._stack)
        return _Parts(value, repetition, definition)

    def _select(self, repetition: Levels | None, definition: Levels | None, rows: RowSelection) -> DecodedRows:
        """Return the levels of the rows."""
        if repetition is not None:
            levels = LevelPair(repetition, definition, repetition.size)
            one = np.zeros(1, np.int64)
            first_rows = np.array([0, self._page.num_rows], np.int64)
            return select_rows(None, levels, self._stack, rows, first_rows, one + levels.num_levels, one)
        if definition is None:
            only_null = self._inline is None and self._value_range is None
            nulls = np.full(len(rows), self._stack.null_level(0), np.uint16) if only_null else None
            return DecodedRows(None, LevelPair(None, nulls, len(rows)), self._stack)
        whole = LevelPair(None, definition, definition.size)
        picked = whole.select(rows.start, rows.stop) if isinstance(rows, range) else whole.take(rows)
        return DecodedRows(None, picked, self._stack)

    def decode_together(self, pages: Sequence[PlacedPage], data: Bytes) -> DecodedRows:
        """Decode whole pages that share the layout of this one, except its value; see `together`."""
        num_buffers = int(self._value_range is not None)
        if self._stack.lists or any(len(page.buffers) != num_buffers for page in pages):
            raise NotSupportedError("these pages cannot be decoded at once")
        counts = np.array([page.num_rows for page in pages], np.int64)
        decoded = self._select(None, None, range(int(counts.sum())))
        if self._inline is None and self._value_range is None:
            return decoded
        if self._inline is not None:
            scalars = [page.inline_value for page in pages]
        else:
            places = [(page.base + page.buffers[0].offset, page.buffers[0].size) for page in pages]
            scalars = [data[start : start + size].tobytes() for start, size in places]
        if sum(map(len, scalars)) * int(counts.max()) > _MAX_BYTES_TOGETHER:
            raise NotSupportedError("these pages cannot be decoded at once")
        return DecodedRows(self._repeat(scalars, counts), decoded.levels, self._stack)

    def _repeat(self, values: Sequence[bytes], counts: Counts) -> DataBlock:
        """Return each of some values as often as `counts` says, `int64[num_values]`."""
        buffers = [[value] if self._inline is not None else _parse_scalar(value) for value in values]
        if self._shape.bits_per_offset is not None:
            strings = [_parse_byte_string(parts, self._shape.bits_per_offset // 8) for parts in buffers]
            sizes = np.array([len(string) for string in strings], np.int64)
            wide = self._shape.bits_per_offset == 64 or int((sizes * counts).sum()) > MAX_INT32
            offsets = np.zeros(int(counts.sum()) + 1, np.int64 if wide else np.int32)
            np.cumsum(np.repeat(sizes, counts), out=offsets[1:])
            repeated = b"".join(map(operator.mul, strings, counts.tolist()))
            return VariableWidthBlock(np.frombuffer(repeated, np.uint8), offsets)
        bits = self._shape.bits_per_value
        for parts in buffers:
            if len(parts) != 1 or (not parts[0] and bits != 0):
                raise CorruptFileError("the value of a constant page is not one fixed-width buffer")
            if bits not in (1, len(parts[0]) * 8):
                raise CorruptFileError(
                    f"the value of a constant page has {len(parts[0])} bytes; its column has values of {bits} bits"
                )
            if bits == 1 and len(parts[0]) != 1:
                raise CorruptFileError(f"a constant boolean has {len(parts[0])} bytes; expected 1")
        size = len(buffers[0][0])
        scalars = np.frombuffer(b"".join(scalar for (scalar,) in buffers), np.uint8).reshape(len(buffers), size)
        is_one = len(scalars) == 1  # Copies of one value are made faster than of several.
        words = np.empty((int(counts.sum()), size), np.uint8)
        words[:] = scalars if is_one else np.repeat(scalars, counts, axis=0)
        if bits == 1:
            return FixedWidthBlock(np.packbits(words & 1, bitorder="little"), 1, len(words))
        return FixedWidthBlock(words.reshape(-1), size * 8, len(words))


@dataclass(frozen=True, slots=True)
class _LevelReader:
    """Reads a level buffer, compressed or plain."""

    decompressor: Decompressor | None = None
    num_levels: int = 0

    @classmethod
    def of(cls, layout: encodings_pb2.ConstantLayout, name: str, num_levels: int) -> _LevelReader:
        """Return a reader of the repetition or definition levels, by name; see `LevelPair`."""
        if not layout.HasField(name):
            return _PLAIN_LEVELS
        return cls(parse_decompressor(getattr(layout, name), Context.BLOCK), num_levels)

    def read(self, data: Bytes) -> Levels:
        """Read the levels of a buffer. Raises `CorruptFileError` if they are malformed."""
        if self.decompressor is None:
            if data.size % _LEVEL_BYTES:
                raise CorruptFileError(f"{data.size} bytes of levels are no whole words of 16 bits")
            return data.view("<u2")
        if self.num_levels > _MAX_LEVELS_PER_ROW * max(data.size, 1):
            raise CorruptFileError(f"{data.size} bytes are said to hold {self.num_levels} levels")
        counts = np.array([self.num_levels], np.int64)
        return as_levels(self.decompressor.decompress([BufferSlices.whole(data)], counts))


_PLAIN_LEVELS = _LevelReader()


def _parse_scalar(value: bytes) -> list[bytes]:
    """Split a value into its Arrow buffers."""
    (count,) = struct.unpack_from("<I", value) if len(value) >= _WORD_BYTES else (0,)
    position = _WORD_BYTES * (1 + count)
    if not 1 <= count <= 2 or len(value) < position:
        raise CorruptFileError(f"the value of a constant page has {count} buffers in {len(value)} bytes")
    sizes = struct.unpack_from(f"<{count}I", value, _WORD_BYTES)
    if position + sum(sizes) != len(value):
        raise CorruptFileError(f"the value of a constant page has {len(value)} bytes; expected {position + sum(sizes)}")
    middle = position + sizes[0]
    return [value[position:middle], value[middle:]][:count]


def _parse_byte_string(buffers: Sequence[bytes], width: int) -> bytes:
    """Return the byte string that two Arrow buffers hold, given the bytes of an offset."""
    if len(buffers) != 2 or len(buffers[0]) != 2 * width:
        raise CorruptFileError("the value of a constant page is not one byte string")
    begin, end = struct.unpack("<ii" if width == 4 else "<qq", buffers[0])
    if not 0 <= begin <= end <= len(buffers[1]):
        raise CorruptFileError(f"the offsets {begin} and {end} of a constant byte string lie outside of it")
    return buffers[1][begin:end]


def encode_nulls(levels: LevelPair, stack: LayerStack, num_rows: int, version: FileVersion) -> EncodedPage:
    """Lay out a page without a value.

    Parameters
    ----------
    levels : LevelPair
    stack : LayerStack
    num_rows : int
    version : FileVersion
    """
    layout = encodings_pb2.ConstantLayout(layers=stack.layers)  # type: ignore[arg-type]
    if len(stack.layers) == 1:
        return EncodedPage((), encodings_pb2.PageLayout(constant_layout=layout), num_rows)
    buffers = []
    for name, found in (("rep", levels.repetition), ("def", levels.definition)):
        if found is None:
            buffers.append(np.empty(0, np.uint8))
        elif not version.has_compressed_null_levels:
            buffers.append(found.astype("<u2").view(np.uint8))
        else:
            block = FixedWidthBlock(found.view(np.uint8), 16, found.size)
            chunks = strategy.compress_levels(block, np.array([found.size], np.int64), version)
            getattr(layout, f"{name}_compression").CopyFrom(chunks.encoding)
            setattr(layout, f"num_{name}_values", found.size)
            buffers.append(chunks.buffers[0])
    return EncodedPage(tuple(buffers), encodings_pb2.PageLayout(constant_layout=layout), num_rows)


def encode_value(value: DataBlock, levels: LevelPair, stack: LayerStack, num_rows: int) -> EncodedPage:
    """Lay out a page of one value.

    Parameters
    ----------
    value : DataBlock
        A block with just this value.
    levels : LevelPair
    stack : LayerStack
    num_rows : int
    """
    layout = encodings_pb2.ConstantLayout(layers=stack.layers)  # type: ignore[arg-type]
    buffers: list[Bytes] = []
    if isinstance(value, FixedWidthBlock) and value.size_bytes <= _MAX_INLINE_BYTES:
        data = value.data[:1] & 1 if value.bits_per_value == 1 else value.data[: value.size_bytes]
        layout.inline_value = data.tobytes()
    else:
        buffers.append(_serialize_scalar(value))
    if levels.repetition is not None or levels.definition is not None:
        buffers += [
            np.empty(0, np.uint8) if found is None else found.astype("<u2").view(np.uint8)
            for found in (levels.repetition, levels.definition)
        ]
    return EncodedPage(tuple(buffers), encodings_pb2.PageLayout(constant_layout=layout), num_rows)


def _serialize_scalar(value: DataBlock) -> Bytes:
    if isinstance(value, VariableWidthBlock):
        begin, end = int(value.offsets[0]), int(value.offsets[1])
        offsets = np.array([0, end - begin], value.offsets.dtype)
        parts = [offsets.view(np.uint8), value.data[begin:end]]
    else:
        parts = [value.data[: value.size_bytes]]
    header = np.array([len(parts), *(part.size for part in parts)], "<u4")
    return np.concatenate([header.view(np.uint8), *parts])
