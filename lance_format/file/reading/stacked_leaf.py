"""The pages of several leaf columns as those of one, whose rows follow each other.

A page costs as many calls as many pages of one form, which are decoded together. So a leaf that files hold alike, or
columns of one type of a file, are read as if they were one.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Hashable, Sequence

import numpy as np
import pyarrow as pa

from lance_format.array_encodings.array import Planned
from lance_format.byte_io import ByteRange, moved
from lance_format.data_block import Bytes, Counts
from lance_format.file.columns.leaf_columns import Leaf
from lance_format.file.reading.structural_leaf import PlacedRows, StructuralLeaf, plan_pages
from lance_format.structural.page import RowSelection


class StackedLeaf:
    """The pages of leaves of one type; see `LeafPages`.

    Parameters
    ----------
    leaves : sequence of StructuralLeaf or StackedLeaf
        At least one; their arrays are built as those of the first.
    bases : sequence of int, optional
        What is added to the offsets of the pages of each, by default 0.
    """

    def __init__(self, leaves: Sequence[StructuralLeaf | StackedLeaf], bases: Sequence[int] | None = None) -> None:
        self.leaf: Leaf = leaves[0].leaf
        self._leaves = leaves
        self._bases = [0] * len(leaves) if bases is None else bases
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
        return None if found is None else moved([found], self._bases[number])[0]

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
        return _plan_moved(self._leaves[number].plan(page, rows), self._bases[number])

    def plan_single_rows(self, indices: Sequence[int], rows: Sequence[Counts]) -> Planned[list[pa.Array]]:
        """See `LeafPages`."""
        return plan_pages(self.leaf, [self.placed(index, own) for index, own in zip(indices, rows, strict=True)])

    def placed(self, index: int, rows: Counts) -> PlacedRows:
        """See `StructuralLeaf`."""
        number, page = self._locate(index)
        found, items, base = self._leaves[number].placed(page, rows)
        return found, items, base + self._bases[number]

    def _locate(self, index: int) -> tuple[int, int]:
        """Return the number of the leaf that has a page, and the page's number in it."""
        number = bisect.bisect_right(self._first_pages, index) - 1
        return number, index - self._first_pages[number]


def _plan_moved(plan: Planned[list[pa.Array]], base: int) -> Planned[list[pa.Array]]:
    """Return a plan with ranges whose offsets are moved."""
    data: Sequence[Bytes] | None = None
    try:
        while True:
            wanted = next(plan) if data is None else plan.send(data)
            data = yield moved(wanted, base)
    except StopIteration as stop:
        arrays: list[pa.Array] = stop.value
        return arrays
