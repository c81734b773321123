"""What all page layouts share: how a page is described, asked for rows, and what it answers.

A layout does no I/O. It answers with a *plan*: a generator that yields the byte ranges it wants next, is sent their
bytes, and in the end returns the rows. Whoever runs plans may fetch the ranges of many pages at once.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from lance_format.byte_io import ByteRange
from lance_format.data_block import Bytes, Counts, DataBlock
from lance_format.errors import CorruptFileError, NotSupportedError
from lance_format.proto import encodings_pb2

Levels: TypeAlias = npt.NDArray[np.uint16]


@dataclass(frozen=True, slots=True)
class DecodedRows:
    """Rows of a page.

    Parameters
    ----------
    values : DataBlock or None
        None if all rows are null.
    definition : uint16[num_rows] or None
        0 where the value is there, 1 where it is null; None if none is null.
    num_rows : int
    """

    values: DataBlock | None
    definition: Levels | None
    num_rows: int


Plan: TypeAlias = Generator[Sequence[ByteRange], Sequence[Bytes], DecodedRows]
"""Yields the ranges it wants, is sent their bytes (8-byte aligned, in order), returns the rows."""

RowSelection: TypeAlias = range | Counts
"""Rows of a page, ascending: a range of step 1, or an array that may repeat rows."""


@dataclass(frozen=True, slots=True)
class PageDescription:
    """Where a page is and how many rows it has.

    Parameters
    ----------
    buffers : tuple of ByteRange
        All lie within the file.
    num_rows : int
    large_chunks : bool
        Whether the file's version has 32-bit chunk words.
    """

    buffers: tuple[ByteRange, ...]
    num_rows: int
    large_chunks: bool


@dataclass(frozen=True, slots=True)
class EncodedPage:
    """A page ready to be written: its buffers and its layout."""

    buffers: tuple[Bytes, ...]
    layout: encodings_pb2.PageLayout
    num_rows: int


class Page(Protocol):
    """A page that can be asked for rows."""

    @property
    def rows_at_once(self) -> int:
        """How many rows to ask for at most, so that an answer stays within some tens of MiB."""

    def plan(self, rows: RowSelection) -> Plan:
        """Plan the reading of some rows, which lie within the page."""


_ANSWER_BYTES = 32 * 1024 * 1024


def rows_within_answer(bytes_per_row: float) -> int:
    """Return how many rows of a size make up one answer; see `Page.rows_at_once`."""
    return max(1, int(_ANSWER_BYTES / max(bytes_per_row, 1 / 8)))


_FLAT_LAYERS = (encodings_pb2.REPDEF_ALL_VALID_ITEM, encodings_pb2.REPDEF_NULLABLE_ITEM)


def parse_flat_layers(layers: Sequence[int]) -> bool:
    """Return whether the only layer of a flat column may hold nulls.

    Raises
    ------
    CorruptFileError
        If there is no layer, or an unknown one.
    NotSupportedError
        If the page belongs to a nested column.
    """
    if not layers or any(layer not in encodings_pb2.RepDefLayer.values() for layer in layers) or 0 in layers:
        raise CorruptFileError(f"the page has repetition and definition layers {list(layers)}")
    if len(layers) > 1 or layers[0] not in _FLAT_LAYERS:
        names = ", ".join(encodings_pb2.RepDefLayer.Name(layer) for layer in layers)
        raise NotSupportedError(f"pages of nested columns cannot be read yet (layers {names})")
    return layers[0] == encodings_pb2.REPDEF_NULLABLE_ITEM


def check_levels(levels: Levels, highest: int) -> Levels:
    """Return the levels if none is above the highest that the layers allow."""
    if levels.size and int(levels.max()) > highest:
        raise CorruptFileError(f"a definition level is {int(levels.max())}; the layers allow at most {highest}")
    return levels


def select_levels(levels: Levels | None, rows: RowSelection) -> Levels | None:
    """Return the levels of some rows."""
    if levels is None:
        return None
    return levels[rows.start : rows.stop] if isinstance(rows, range) else levels[rows]
