"""Blocks of values, which structural layouts and compressions exchange, and their buffers.

A block knows nothing of Arrow's types: an `int32`, a `float` and a `date32` column are the same fixed-width block.
Validity is not part of it; definition levels state it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from lance_format.kernels.compression.dictionary import SLACK, gather_bytes, gather_wide, gather_words, measure_bytes
from lance_format.kernels.compression.variable import longest
from lance_format.kernels.jit import read_only
from lance_format.lazy_dataclasses import dataclass
from lance_format.memory import empty
from lance_format.proto import encodings_pb2

Bytes: TypeAlias = npt.NDArray[np.uint8]
Counts: TypeAlias = npt.NDArray[np.int64]
Offsets: TypeAlias = npt.NDArray[Any]
DictionaryIndices: TypeAlias = npt.NDArray[Any]

MAX_INT32 = 2**31 - 1
"""Greatest offset of 32 bits."""


@dataclass(frozen=True, slots=True)
class ValueShape:
    """The kind of block of a column's values.

    Parameters
    ----------
    bits_per_value : int or None
        Of fixed-width values: 1 or a multiple of 8.
    bits_per_offset : int or None
        Of byte strings: 32 or 64. Exactly one of the two is None.
    """

    bits_per_value: int | None = None
    bits_per_offset: int | None = None

    def matches(self, block: ValueBlock) -> bool:
        """Return whether a block is of this kind; offsets may have been widened to hold more bytes."""
        if isinstance(block, FixedSizeListBlock | PackedStructBlock | DictionaryBlock):
            return False
        if isinstance(block, FixedWidthBlock):
            return block.bits_per_value == self.bits_per_value
        return self.bits_per_offset is not None and block.bits_per_offset >= self.bits_per_offset


@dataclass(frozen=True, slots=True)
class FixedWidthBlock:
    """Values of the same width, one after the other.

    Parameters
    ----------
    data : uint8[ceil(num_values * bits_per_value / 8)]
        Little-endian; of single bits the least significant comes first. May be longer.
    bits_per_value : int
        1 or a multiple of 8.
    num_values : int
    """

    data: Bytes
    bits_per_value: int
    num_values: int

    @property
    def bytes_per_value(self) -> int:
        """The bytes of a value, which has whole ones."""
        return self.bits_per_value // 8

    @property
    def size_bytes(self) -> int:
        """The bytes of all values."""
        return (self.num_values * self.bits_per_value + 7) // 8

    @property
    def words(self) -> npt.NDArray[Any]:
        """The values, of 8, 16, 32 or 64 bits, as unsigned integers that cannot be written: of one form for kernels."""
        return read_only(self.data[: self.size_bytes].view(f"<u{self.bytes_per_value}"))

    def take(self, indices: DictionaryIndices) -> FixedWidthBlock:
        """Gather values; `indices` are integers of any width and lie within the block."""
        width = self.bytes_per_value
        data: Bytes
        if self.bits_per_value == 1:
            bits = self.data[indices >> 3] >> (indices & 7).astype(np.uint8) & 1
            data = np.packbits(bits, bitorder="little")
        elif width in (1, 2, 4, 8):
            words = self.words
            out = empty(indices.size, words.dtype)
            gather_words(words, indices, out)
            data = out.view(np.uint8)
        elif width % 8 == 0:
            out = empty(indices.size * (width // 8), np.dtype("<u8"))
            gather_wide(self.data[: self.size_bytes].view("<u8"), width // 8, indices, out)
            data = out.view(np.uint8)
        else:
            data = self.data[: self.size_bytes].view(np.dtype((np.void, width)))[indices].view(np.uint8)
        return FixedWidthBlock(data, self.bits_per_value, indices.size)

    def slice(self, start: int, stop: int) -> FixedWidthBlock:
        """Return values `start <= index < stop`, a view wherever possible."""
        if self.bits_per_value != 1:
            width = self.bytes_per_value
            return FixedWidthBlock(self.data[start * width : stop * width], self.bits_per_value, stop - start)
        if start % 8 == 0:
            return FixedWidthBlock(self.data[start // 8 :], 1, stop - start)
        return self.take(np.arange(start, stop, dtype=np.int64))


@dataclass(frozen=True, slots=True)
class VariableWidthBlock:
    """Byte strings.

    Parameters
    ----------
    data : uint8[…]
    offsets : int32[num_values + 1] or int64[num_values + 1]
        The start of each value in `data`, and the end of the last.
    """

    data: Bytes
    offsets: Offsets

    @property
    def num_values(self) -> int:
        """The number of byte strings."""
        return len(self.offsets) - 1

    @property
    def bits_per_offset(self) -> int:
        """32 or 64."""
        return self.offsets.itemsize * 8

    @property
    def size_bytes(self) -> int:
        """The bytes of all values, offsets excluded."""
        return int(self.offsets[-1] - self.offsets[0])

    @property
    def longest(self) -> int:
        """The bytes of the longest value; 0 if there is none."""
        return longest(self.offsets)

    def take(self, indices: DictionaryIndices) -> VariableWidthBlock:
        """Gather values; `indices` are integers of any width and lie within the block."""
        offsets = empty(indices.size + 1, self.offsets.dtype)
        total = measure_bytes(self.offsets, indices, offsets)
        if total > np.iinfo(offsets.dtype).max:
            offsets = empty(indices.size + 1, np.int64)
            measure_bytes(self.offsets, indices, offsets)
        out = empty(total + SLACK, np.uint8)
        gather_bytes(self.data, self.offsets, indices, out)
        return VariableWidthBlock(out[:total], offsets)

    def slice(self, start: int, stop: int) -> VariableWidthBlock:
        """Return values `start <= index < stop`, a view."""
        return VariableWidthBlock(self.data, self.offsets[start : stop + 1])


DataBlock: TypeAlias = FixedWidthBlock | VariableWidthBlock
"""Blocks that most compressions take and return."""


@dataclass(frozen=True, slots=True)
class ListLevel:
    """One level of lists: the number of items per list, and whether they may be null."""

    dimension: int
    has_validity: bool


@dataclass(frozen=True, slots=True)
class ListShape:
    """Shape of a row: a value, or a list of values.

    Parameters
    ----------
    levels : tuple of ListLevel
        Outermost first.
    bits_per_item : int
        Of the innermost items: 1 or a multiple of 8. 0 if all items are null and have no bytes.
    """

    levels: tuple[ListLevel, ...]
    bits_per_item: int

    @property
    def items_per_value(self) -> int:
        """The innermost items of a row."""
        return self._items(len(self.levels))

    def _items(self, depth: int) -> int:
        items = 1
        for level in self.levels[:depth]:
            items *= level.dimension
        return items

    @property
    def parts(self) -> tuple[int, ...]:
        """The bits of each part of a row: validities, outermost first, then items."""
        validities = [self._items(depth + 1) for depth, level in enumerate(self.levels) if level.has_validity]
        return (*validities, self.items_per_value * self.bits_per_item)

    @property
    def bits_per_value(self) -> int:
        """The bits of a row, a multiple of 8."""
        return sum(whole_bytes(bits) for bits in self.parts) * 8


def whole_bytes(bits: int) -> int:
    """Return bits, rounded up to whole bytes."""
    return (bits + 7) // 8


@dataclass(frozen=True, slots=True)
class _RowBlock:
    """Values that are rows of other blocks."""

    rows: DataBlock

    @property
    def num_values(self) -> int:
        """The number of rows."""
        return self.rows.num_values

    @property
    def size_bytes(self) -> int:
        """The bytes of all rows."""
        return self.rows.size_bytes

    def take(self, indices: DictionaryIndices) -> Self:
        """Gather values; `indices` are integers of any width and lie within the block."""
        return replace(self, rows=self.rows.take(indices))

    def slice(self, start: int, stop: int) -> Self:
        """Return values `start <= index < stop`, a view."""
        return replace(self, rows=self.rows.slice(start, stop))


@dataclass(frozen=True, slots=True)
class FixedSizeListBlock(_RowBlock):
    """Fixed-size lists of primitive items; each is a row of fixed width, with the bytes of
    `compression/fixed_size_list.py`.

    Parameters
    ----------
    rows : FixedWidthBlock
    shape : ListShape
        Shape of a row.
    """

    rows: FixedWidthBlock
    shape: ListShape


class RowCodec(Protocol):
    """Takes the rows of a packed struct apart."""

    @property
    def encoding(self) -> encodings_pb2.CompressiveEncoding:
        """The encoding of the rows."""

    def split_rows(self, rows: DataBlock) -> list[ValueBlock]:
        """Return one block per field.

        Raises
        ------
        CorruptFileError
            If rows do not hold these fields.
        """


@dataclass(frozen=True, slots=True)
class PackedStructBlock(_RowBlock):
    """Structs whose fields are adjacent; each struct is a row.

    Parameters
    ----------
    rows : DataBlock
    codec : RowCodec
    """

    rows: DataBlock
    codec: RowCodec


@dataclass(frozen=True, slots=True)
class DictionaryBlock:
    """Values given by their number among the items of a dictionary.

    Parameters
    ----------
    items : DataBlock
    indices : FixedWidthBlock
        Unsigned words of 8, 16, 32 or 64 bits, each less than the number of items.
    is_joined : bool
        Whether these are the items of several dictionaries, which may have some in common.
    """

    items: DataBlock
    indices: FixedWidthBlock
    is_joined: bool = False

    @property
    def num_values(self) -> int:
        """The number of values."""
        return self.indices.num_values

    @property
    def size_bytes(self) -> int:
        """The bytes of all items and indices."""
        return self.items.size_bytes + self.indices.size_bytes

    @property
    def words(self) -> npt.NDArray[Any]:
        """The indices, as uint8, uint16, uint32 or uint64."""
        return self.indices.words

    def take(self, indices: DictionaryIndices) -> DictionaryBlock:
        """Gather values; `indices` are integers of any width and lie within the block."""
        return DictionaryBlock(self.items, self.indices.take(indices), self.is_joined)

    def slice(self, start: int, stop: int) -> DictionaryBlock:
        """Return values `start <= index < stop`, a view."""
        return DictionaryBlock(self.items, self.indices.slice(start, stop), self.is_joined)

    def look_up(self) -> DataBlock:
        """Return the values themselves."""
        return self.items.take(self.words)


ValueBlock: TypeAlias = DataBlock | FixedSizeListBlock | PackedStructBlock | DictionaryBlock
"""Possible values of a page."""


def detached(block: DataBlock) -> DataBlock:
    """Return a copy of a block that does not keep its source buffer alive."""
    if not isinstance(block, VariableWidthBlock):
        return FixedWidthBlock(block.data[: block.size_bytes].copy(), block.bits_per_value, block.num_values)
    begin, end = int(block.offsets[0]), int(block.offsets[-1])
    data = np.zeros(end - begin + SLACK, np.uint8)
    data[: end - begin] = block.data[begin:end]
    return VariableWidthBlock(data, block.offsets - begin)


def join_byte_strings(blocks: Sequence[VariableWidthBlock]) -> VariableWidthBlock:
    """Return the byte strings of some blocks, one after the other; `SLACK` bytes follow the last."""
    data, offsets, base = [], [], 0
    for block in blocks:
        begin, end = int(block.offsets[0]), int(block.offsets[-1])
        data.append(block.data[begin:end])
        offsets.append(block.offsets[:-1].astype(np.int64) + (base - begin))
        base += end - begin
    wide = base > MAX_INT32 or blocks[0].bits_per_offset == 64
    joined = np.concatenate([*offsets, np.array([base])]).astype(np.int64 if wide else np.int32)
    return VariableWidthBlock(np.concatenate([*data, np.zeros(SLACK, np.uint8)]), joined)


def memory_bytes(block: DataBlock) -> int:
    """Return the bytes of a detached block."""
    return block.size_bytes + (block.offsets.nbytes + SLACK if isinstance(block, VariableWidthBlock) else 0)


@dataclass(frozen=True, slots=True)
class BufferSlices:
    """One buffer of each of several chunks.

    Parameters
    ----------
    data : uint8[…]
        Aligned to 8 bytes, as are the slices of mini-block chunks.
    starts, sizes : int64[num_chunks]
        Bytes; the slices lie within `data`.
    """

    data: Bytes
    starts: Counts
    sizes: Counts

    @classmethod
    def whole(cls, data: Bytes) -> BufferSlices:
        """Return a buffer that is a single chunk."""
        return cls(data, np.zeros(1, np.int64), np.array([data.size], np.int64))


def aligned(data: Bytes, alignment: int = 8) -> Bytes:
    """Return the bytes at an address that is a multiple of `alignment`; copy them if necessary."""
    return data if data.__array_interface__["data"][0] % alignment == 0 else data.copy()


def starts_of(sizes: Counts) -> Counts:
    """Return the starts of consecutive slices of these sizes."""
    starts = np.zeros(len(sizes), np.int64)
    np.cumsum(sizes[:-1], out=starts[1:])
    return starts


def places_of(sizes: Counts, slices: Counts, positions: Counts) -> Counts:
    """Return the places among all items of consecutive slices of items that have positions in some of the slices.

    Parameters
    ----------
    sizes : int64[num_slices]
        Of each slice, in items.
    slices, positions : int64[num_items]
        The slice of each item, and its position therein.

    Returns
    -------
    int64[num_items]
    """
    places: Counts = starts_of(sizes)[slices] + positions
    return places
