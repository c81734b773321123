"""The constant layout: pages in which every value that is there is the same, or none is.

Encoding strategy document, "All-null page layout", which file format 2.2 has widened. Without a value all rows are
null, and the page has no buffers. A value of up to 32 bytes stands in the layout (`inline_value`); another is buffer 0:

    │ u32 number of buffers │ u32 bytes of each │ the Arrow buffers of one value: offsets, data, or data alone │

If some rows are null, two buffers follow: repetition levels, here empty, and definition levels, one u16 a row.
"""

from __future__ import annotations

import numpy as np

from lance_format.byte_io import ByteRange
from lance_format.data_block import Bytes, DataBlock, FixedWidthBlock, ValueShape, VariableWidthBlock
from lance_format.errors import CorruptFileError, NotSupportedError
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

_MAX_INLINE_BYTES = 32
_MAX_INT32 = 2**31 - 1
_LEVEL_BYTES = 2


class ConstantPage:
    """A page of one value, or of none.

    Parameters
    ----------
    layout : ConstantLayout
    page : PageDescription
    shape : ValueShape
        Of single bits, the value is stored as a byte.
    """

    def __init__(self, layout: encodings_pb2.ConstantLayout, page: PageDescription, shape: ValueShape) -> None:
        self._page = page
        self._nullable = parse_flat_layers(layout.layers)
        self._shape = shape
        if layout.HasField("rep_compression") or layout.HasField("def_compression"):
            raise NotSupportedError("constant pages with compressed levels cannot be read yet")
        inline = layout.inline_value if layout.HasField("inline_value") else None
        if inline is not None and shape.bits_per_offset is not None:
            raise CorruptFileError("a page of byte strings has an inline value")
        self._inline = None if inline is None else np.frombuffer(inline, np.uint8)
        level_buffers = len(page.buffers) - (1 if inline is None and page.buffers else 0)
        if level_buffers not in (0, 2):
            raise CorruptFileError(f"a constant page has {len(page.buffers)} buffers")
        self._value_range = page.buffers[0] if inline is None and page.buffers else None
        self._level_range = page.buffers[-1] if level_buffers and page.buffers[-1].size else None
        if self._level_range is not None and self._level_range.size != page.num_rows * _LEVEL_BYTES:
            raise CorruptFileError(f"{page.num_rows} rows have {self._level_range.size} bytes of definition levels")

    @property
    def rows_at_once(self) -> int:
        """See `Page`."""
        return rows_within_answer(0 if self._value_range is None else self._value_range.size)

    def plan(self, rows: RowSelection) -> Plan:
        """Plan the reading of some rows; see `Page`."""
        if self._inline is None and self._value_range is None:
            return DecodedRows(None, None, len(rows))
        value, levels = self._inline, None
        wanted: list[ByteRange] = []
        if self._value_range is not None:
            wanted.append(self._value_range)
        if self._level_range is not None:
            wanted.append(self._level_range)
        if wanted:
            fetched = yield wanted
            if self._value_range is not None:
                value = fetched[0]
            if self._level_range is not None:
                levels = check_levels(fetched[-1].view("<u2"), int(self._nullable))
        assert value is not None
        block = self._repeat(value, len(rows))
        return DecodedRows(block, select_levels(levels, rows), len(rows))

    def _repeat(self, value: Bytes, num_rows: int) -> DataBlock:
        buffers = [value] if self._inline is not None else _parse_scalar(value)
        if self._shape.bits_per_offset is not None:
            return _repeat_byte_string(buffers, self._shape.bits_per_offset, num_rows)
        if len(buffers) != 1 or buffers[0].size == 0:
            raise CorruptFileError("the value of a constant page is not one fixed-width buffer")
        (scalar,) = buffers
        if self._shape.bits_per_value == 1:
            if scalar.size != 1:
                raise CorruptFileError(f"a constant boolean has {scalar.size} bytes; expected 1")
            byte = 0xFF if scalar[0] & 1 else 0
            return FixedWidthBlock(np.full((num_rows + 7) // 8, byte, np.uint8), 1, num_rows)
        return FixedWidthBlock(np.tile(scalar, num_rows), scalar.size * 8, num_rows)


def _repeat_byte_string(buffers: list[Bytes], bits_per_offset: int, num_rows: int) -> VariableWidthBlock:
    width = bits_per_offset // 8
    if len(buffers) != 2 or buffers[0].size != 2 * width:
        raise CorruptFileError("the value of a constant page is not one byte string")
    begin, end = (int(offset) for offset in buffers[0].view(f"<i{width}"))
    if not 0 <= begin <= end <= buffers[1].size:
        raise CorruptFileError(f"the offsets {begin} and {end} of a constant byte string lie outside of it")
    size = end - begin
    wide = bits_per_offset == 64 or size * num_rows > _MAX_INT32
    offsets = np.arange(num_rows + 1, dtype=np.int64 if wide else np.int32) * size
    return VariableWidthBlock(np.tile(buffers[1][begin:end], num_rows), offsets)


def _parse_scalar(buffer: Bytes) -> list[Bytes]:
    """Split a value into its Arrow buffers."""
    count = int(buffer[:4].view("<u4")[0]) if buffer.size >= 4 else -1
    if not 1 <= count <= 2 or buffer.size < 4 + 4 * count:
        raise CorruptFileError(f"the value of a constant page has {count} buffers in {buffer.size} bytes")
    sizes = buffer[4 : 4 + 4 * count].view("<u4").astype(np.int64)
    ends = 4 + 4 * count + np.cumsum(sizes)
    if ends[-1] != buffer.size:
        raise CorruptFileError(f"the value of a constant page has {buffer.size} bytes; expected {ends[-1]}")
    return [buffer[end - size : end] for size, end in zip(sizes, ends, strict=True)]


def encode_nulls(num_rows: int) -> EncodedPage:
    """Lay out a page whose rows are all null."""
    layout = encodings_pb2.ConstantLayout(layers=[encodings_pb2.REPDEF_NULLABLE_ITEM])
    return EncodedPage((), encodings_pb2.PageLayout(constant_layout=layout), num_rows)


def encode_value(value: DataBlock, definition: Levels | None, num_rows: int) -> EncodedPage:
    """Lay out a page of one value.

    Parameters
    ----------
    value : DataBlock
        A block of that value alone.
    definition : uint16[num_rows] or None
        0 where the value is there, 1 where it is null; None if none is null.
    num_rows : int
    """
    layer = encodings_pb2.REPDEF_ALL_VALID_ITEM if definition is None else encodings_pb2.REPDEF_NULLABLE_ITEM
    layout = encodings_pb2.ConstantLayout(layers=[layer])
    buffers: list[Bytes] = []
    if isinstance(value, FixedWidthBlock) and value.size_bytes <= _MAX_INLINE_BYTES:
        layout.inline_value = (
            value.data[:1] & 1 if value.bits_per_value == 1 else value.data[: value.size_bytes]
        ).tobytes()
    else:
        buffers.append(_serialize_scalar(value))
    if definition is not None:
        buffers += [np.empty(0, np.uint8), definition.astype("<u2").view(np.uint8)]
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
