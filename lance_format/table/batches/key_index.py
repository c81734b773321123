"""Joins by key of the rows of a stream with rows in memory.

The rows in memory are numbered by key once. Each key column is looked up separately, in a hash table of its distinct
values, which is kept for integers and byte strings; the numbers of two columns are then joined to a number of the pair,
and so on. All steps process whole columns. A list is looked up as the numbers of its items, which are numbered like
keys.

Values are the same as they are in the reference: by their bits, so that NaN equals NaN, and 0.0 does not equal -0.0.
Nulls are values like others here. The caller decides whether they match: see `null_keys`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lance_format.errors import NotSupportedError
from lance_format.extension_types import is_list
from lance_format.half_floats import if_else, is_nan, nan_of
from lance_format.lazy_dataclasses import dataclass
from lance_format.masks import is_text
from lance_format.table.batches.integer_index import Int64Array, IntegerIndex, is_integral
from lance_format.table.batches.text_index import TextIndex

_ABSENT = -1
_ITEM = "item"


@dataclass(frozen=True, slots=True)
class FlatIndex:
    """The distinct values of a flat column.

    Parameters
    ----------
    values : pa.Array
    """

    values: pa.Array

    def __len__(self) -> int:
        return len(self.values)

    def find(self, column: pa.ChunkedArray) -> Int64Array:
        """Return which of the values other rows have; -1 for none."""
        found = pc.index_in(column, value_set=self.values)
        positions: Int64Array = pc.fill_null(found, _ABSENT).to_numpy().astype(np.int64)
        return positions


@dataclass(frozen=True, slots=True)
class ListIndex:
    """The distinct lists of a column.

    Parameters
    ----------
    items : KeyIndex
        Of all items of all lists.
    lists : TextIndex
        The numbers of the items of each list, as bytes.
    """

    items: KeyIndex
    lists: TextIndex

    def __len__(self) -> int:
        return len(self.lists)

    def find(self, column: pa.ChunkedArray) -> Int64Array:
        """Return which of the lists other rows have; -1 for none."""
        return self.lists.find(_as_numbers(column, self.items.find(_items(column))))


Leaf: TypeAlias = FlatIndex | IntegerIndex | TextIndex | ListIndex


@dataclass(frozen=True, slots=True)
class KeyIndex:
    """The distinct keys of some rows, numbered from 0. `index_keys` makes it.

    Parameters
    ----------
    names : tuple of str
        The columns of a key.
    leaves : tuple of FlatIndex, IntegerIndex, TextIndex or ListIndex
        The distinct values of every leaf of these columns.
    pairs : tuple of IntegerIndex
        For every leaf except the first, the existing pairs of a number of the preceding leaves and a number of the
        leaf.
    """

    names: tuple[str, ...]
    leaves: tuple[Leaf, ...]
    pairs: tuple[IntegerIndex, ...]

    @property
    def num_keys(self) -> int:
        """Number of keys."""
        return len(self.pairs[-1] if self.pairs else self.leaves[0])

    def find(self, rows: pa.Table) -> Int64Array:
        """Return the numbers of the keys of other rows, `int64[num_rows]`; -1 where there is no such key.

        Parameters
        ----------
        rows : pa.Table
            The key columns, of the same types.
        """
        columns = _leaves(rows, self.names)
        numbers = self.leaves[0].find(columns[0])
        for column, leaf, pairs in zip(columns[1:], self.leaves[1:], self.pairs, strict=True):
            numbers = pairs.find_numbers(_join(numbers, leaf.find(column), len(leaf)))
        return numbers


def index_keys(rows: pa.Table, names: Sequence[str]) -> tuple[KeyIndex, Int64Array]:
    """Number the keys of rows.

    Parameters
    ----------
    rows : pa.Table
    names : sequence of str
        The columns of a key, one at least.

    Returns
    -------
    KeyIndex
    int64[num_rows]
        The number of the key of every row.

    Raises
    ------
    NotSupportedError
        If a column has a type that cannot be looked up.
    """
    columns = _leaves(rows, names)
    leaves = tuple(_index_leaf(column) for column in columns)
    pairs = []
    numbers = leaves[0].find(columns[0])
    for column, leaf in zip(columns[1:], leaves[1:], strict=True):
        joined = _join(numbers, leaf.find(column), len(leaf))
        pairs.append(IntegerIndex.of_numbers(joined))
        numbers = pairs[-1].find_numbers(joined)
    return KeyIndex(tuple(names), leaves, tuple(pairs)), numbers


def null_keys(rows: pa.Table, names: Sequence[str]) -> npt.NDArray[np.bool_]:
    """Return for every row whether a column of its key is null; nulls within structs do not count."""
    is_null = np.zeros(rows.num_rows, np.bool_)
    for name in names:
        if rows.column(name).null_count:
            is_null |= rows.column(name).is_null().to_numpy()
    return is_null


@dataclass(frozen=True, slots=True)
class RowsByKey:
    """Rows in memory, to be found by the numbers of their keys. Made by `group_rows`.

    Parameters
    ----------
    order : int64[num_rows]
        The rows that have a key, those of one key beside each other.
    starts : int64[num_keys + 1]
        Where in `order` those of a key begin.
    """

    order: Int64Array
    starts: Int64Array

    @property
    def is_unique(self) -> bool:
        """True if no two rows have the same key."""
        return self.starts.size <= 1 or int(np.diff(self.starts).max()) <= 1

    def only(self, numbers: Int64Array) -> Int64Array:
        """Return the rows with keys that one row each has, `int64[num_places]`."""
        return self.order[self.starts[numbers]]

    def counts(self, numbers: Int64Array) -> Int64Array:
        """Return how many rows have these keys; none where a number is -1."""
        found = np.zeros(numbers.size, np.int64)
        there = numbers >= 0
        found[there] = self.starts[numbers[there] + 1] - self.starts[numbers[there]]
        return found

    def pairs(self, numbers: Int64Array, max_pairs: int) -> Iterator[tuple[Int64Array, Int64Array]]:
        """Yield the pairs of indices into `numbers` and matching rows, ascending by index.

        Parameters
        ----------
        numbers : int64[num_places]
            Numbers of keys; -1 for none.
        max_pairs : int
            Approximate number of pairs to yield at once; all pairs of one index come together.
        """
        counts = self.counts(numbers)
        ends = np.cumsum(counts)
        position = 0
        while position < numbers.size:
            before = int(ends[position - 1]) if position else 0
            stop = max(int(np.searchsorted(ends, before + max_pairs, side="right")), position + 1)
            some = counts[position:stop]
            positions = np.repeat(np.arange(position, stop), some)
            first = np.repeat(self.starts[numbers[position:stop]], some)
            within = np.arange(positions.size) - np.repeat(np.cumsum(some) - some, some)
            yield positions, self.order[first + within]
            position = stop


def group_rows(numbers: Int64Array, num_keys: int) -> RowsByKey:
    """Group rows by key number, `int64[num_rows]`, -1 for rows without a key."""
    order = np.argsort(numbers, kind="stable")
    order = order[int((numbers < 0).sum()) :]
    counts = np.bincount(numbers[order], minlength=num_keys)
    return RowsByKey(order, np.concatenate([[0], np.cumsum(counts)]).astype(np.int64))


def _join(left: Int64Array, right: Int64Array, num_right: int) -> Int64Array:
    """Number pairs of numbers; both are below the number of rows in memory, so that the product fits 64 bits."""
    return np.where((left < 0) | (right < 0), _ABSENT, left * num_right + right)


def _index_leaf(column: pa.ChunkedArray) -> Leaf:
    if is_integral(column.type):
        return IntegerIndex.of(column)
    if is_list(column.type):
        items, numbers = index_keys(_items(column), [_ITEM])
        return ListIndex(items, TextIndex.of(_as_numbers(column, numbers)))
    if is_text(column.type):
        return TextIndex.of(column)
    try:
        return FlatIndex(pc.unique(column))
    except pa.ArrowNotImplementedError as error:
        raise NotSupportedError(f"rows cannot be matched by a column of {column.type}; choose another key") from error


def _items(column: pa.ChunkedArray) -> pa.Table:
    """Return the items of all lists that are not null."""
    return pa.table({_ITEM: pa.chunked_array([chunk.flatten() for chunk in column.chunks], column.type.value_type)})


def _as_numbers(column: pa.ChunkedArray, numbers: Int64Array) -> pa.ChunkedArray:
    """Return lists as the numbers of their items, as bytes; null lists are null."""
    is_valid = column.is_valid().to_numpy()
    lengths = np.where(is_valid, pc.fill_null(pc.list_value_length(column), 0).to_numpy(), 0)
    offsets = np.zeros(len(column) + 1, np.int64)
    np.cumsum(lengths * numbers.itemsize, out=offsets[1:])
    validity = np.packbits(is_valid, bitorder="little")
    buffers = [pa.py_buffer(buffer) for buffer in (validity, offsets, numbers)]
    return pa.chunked_array([pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(column), buffers)])


def _leaves(rows: pa.Table, names: Sequence[str]) -> list[pa.ChunkedArray]:
    """Return the columns of a key as columns of flat values and of lists."""
    return [leaf for name in names for leaf in _flatten(rows.column(name))]


def _flatten(column: pa.ChunkedArray) -> Iterator[pa.ChunkedArray]:
    if isinstance(column.type, pa.BaseExtensionType):
        column = pa.chunked_array([chunk.storage for chunk in column.chunks], column.type.storage_type)
    kind = column.type
    if pa.types.is_struct(kind):
        yield column.is_valid()
        for child in column.flatten():
            yield from _flatten(child)
    elif pa.types.is_dictionary(kind):
        yield from _flatten(column.cast(kind.value_type))
    elif pa.types.is_floating(kind):
        yield _bits(column)
    elif pa.types.is_map(kind):
        yield column.cast(pa.list_(pa.struct([kind.key_field, kind.item_field])))
    else:
        yield column


def _bits(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return floating point numbers as their bits, all NaN with the same ones."""
    bits = {16: pa.uint16(), 32: pa.uint32(), 64: pa.uint64()}[column.type.bit_width]
    nan = nan_of(column.type)
    chunks = []
    for chunk in column.chunks:
        # a chunk without rows may come without buffers, which view does not take
        chunk = if_else(is_nan(chunk), nan, chunk) if len(chunk) else pa.array([], column.type)
        chunks.append(chunk.view(bits))
    return pa.chunked_array(chunks, bits)
