"""Interface of array encodings: requests for rows, and results.

Like page layouts (`structural/page.py`), encodings do no I/O: each returns a plan for rows. The plan is a generator: it
yields the byte ranges that it needs next, is sent their bytes, and returns the rows. An encoding that consists of
others runs their plans side by side, so their ranges are fetched together.
"""

from __future__ import annotations

import itertools
from collections.abc import Generator, Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from lance_format.array_encodings.row_ranges import RowRanges
from lance_format.byte_io import ByteRange, ByteRanges
from lance_format.data_block import Bytes, FixedWidthBlock, ValueBlock, ValueShape, aligned
from lance_format.errors import CorruptFileError
from lance_format.lazy_dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ItemsBlock:
    """Fixed-size lists, given by their items.

    Parameters
    ----------
    items : DecodedArray
        The items of all lists; the type states their number per list.
    """

    items: DecodedArray


@dataclass(frozen=True, slots=True)
class DecodedArray:
    """Rows of an array.

    Parameters
    ----------
    values : ValueBlock or ItemsBlock or None
        One per row, arbitrary for nulls. None if all rows are null.
    validity : FixedWidthBlock or None
        A bit per row, 1 if it is valid; None if all rows are valid, or all are null.
    num_rows : int
    """

    values: ValueBlock | ItemsBlock | None
    validity: FixedWidthBlock | None
    num_rows: int


T = TypeVar("T")
Planned: TypeAlias = Generator[Sequence[ByteRange], Sequence[Bytes], T]
"""A generator that yields ranges, is sent their bytes (8-byte aligned, in order), and returns their content."""


class ArrayReader(Protocol):
    """An encoded array whose rows can be read."""

    def plan(self, ranges: RowRanges) -> Planned[DecodedArray]:
        """Plan the reading of some rows, which lie within the array; at least one."""


@dataclass(frozen=True, slots=True)
class ArrayShape:
    """Shape of the values of a column, which decides the parts of its pages that are read.

    Parameters
    ----------
    values : ValueShape
        Of a value, or of the items of a dictionary. Has neither bits nor offsets if any word will do.
    items : ArrayShape or None
        Shape of the items of fixed-size lists.
    dimension : int
        Number of items per fixed-size list.
    is_dictionary : bool
        Whether readers return keys and items.
    fields : tuple of ArrayShape or None
        Shapes of the fields of a packed struct.
    """

    values: ValueShape
    items: ArrayShape | None = None
    dimension: int = 0
    is_dictionary: bool = False
    fields: tuple[ArrayShape, ...] | None = None

    @property
    def is_plain(self) -> bool:
        """True if values have a fixed width and no parts."""
        is_nested = self.items is not None or self.fields is not None or self.is_dictionary
        return not is_nested and self.values.bits_per_offset is None

    @property
    def bits(self) -> int:
        """The bits of a value; 0 if they vary."""
        return (self.values.bits_per_value or 0) if self.items is None else self.dimension * self.items.bits


_MAX_OFFSET = 2**63 - 1

WORDS = ArrayShape(ValueShape())
"""The shape of ends and keys: unsigned words of 8, 16, 32 or 64 bits."""
BITS = ArrayShape(ValueShape(bits_per_value=1))
BYTES = ArrayShape(ValueShape(bits_per_value=8))


def side_by_side(plans: Iterable[Planned[T]]) -> Planned[list[T]]:
    """Run plans in step, so that their next ranges are fetched together, and return their results."""
    results: dict[int, T] = {}
    running: list[tuple[int, Planned[T], Sequence[ByteRange]]] = []
    count = 0
    for index, plan in enumerate(plans):
        count += 1
        try:
            running.append((index, plan, next(plan)))
        except StopIteration as stop:
            results[index] = stop.value
    while running:
        wanted = [ranges for _, _, ranges in running]
        data = yield _united(wanted)
        waiting = []
        for (index, plan, _), pieces in zip(running, _divided(data, wanted), strict=True):
            try:
                waiting.append((index, plan, plan.send(pieces)))
            except StopIteration as stop:
                results[index] = stop.value
        running = waiting
    return [results[index] for index in range(count)]


def _united(parts: Sequence[Sequence[ByteRange]]) -> Sequence[ByteRange]:
    """Return the ranges of all parts."""
    if len(parts) == 1:
        return parts[0]
    united = [wanted for ranges in parts if not isinstance(ranges, ByteRanges) for wanted in ranges]
    if len(united) == sum(map(len, parts)) or any(wanted.end > _MAX_OFFSET for wanted in united):
        return [wanted for ranges in parts for wanted in ranges]
    arrays = [ByteRanges.of(ranges) for ranges in parts]
    return ByteRanges(
        np.concatenate([ranges.offsets for ranges in arrays]), np.concatenate([ranges.sizes for ranges in arrays])
    )


def _divided(data: Sequence[Bytes], parts: Sequence[Sequence[ByteRange]]) -> Iterator[Sequence[Bytes]]:
    """Yield the bytes of each part. They may have been read as one; then those of many ranges of a part stay so."""
    position = 0
    is_joined = len(data) < sum(map(len, parts))
    if not is_joined or len(parts) == 1:
        for ranges in parts:
            yield data[position : position + len(ranges)]
            position += len(ranges)
        return
    for ranges in parts:
        sizes = [ranges.num_bytes] if isinstance(ranges, ByteRanges) else [wanted.size for wanted in ranges]
        ends = list(itertools.accumulate(sizes, initial=position))
        yield [aligned(data[0][start:end]) for start, end in itertools.pairwise(ends)]
        position = ends[-1]


def both_valid(one: FixedWidthBlock | None, other: FixedWidthBlock | None) -> FixedWidthBlock | None:
    """Unite two validities: a row is valid if it is valid in both."""
    if one is None or other is None:
        return other if one is None else one
    size = one.size_bytes
    return FixedWidthBlock(one.data[:size] & other.data[:size], 1, one.num_values)


def pack_validity(valid: npt.NDArray[np.bool_]) -> FixedWidthBlock | None:
    """Return validity as bits; None if all rows are valid."""
    if valid.all():
        return None
    return FixedWidthBlock(np.packbits(valid, bitorder="little"), 1, valid.size)


def unpack_validity(validity: FixedWidthBlock) -> npt.NDArray[np.bool_]:
    """Return validity as one boolean for each row."""
    return np.unpackbits(validity.data, count=validity.num_values, bitorder="little").view(np.bool_)


def words_of(decoded: DecodedArray, what: str) -> npt.NDArray[Any]:
    """Return values that are words of 8, 16, 32 or 64 bits.

    Raises
    ------
    CorruptFileError
        If they are other values.
    """
    block = decoded.values
    if not isinstance(block, FixedWidthBlock) or block.bits_per_value not in (8, 16, 32, 64):
        raise CorruptFileError(f"the {what} of a page are not words of 8, 16, 32 or 64 bits")
    return block.words
