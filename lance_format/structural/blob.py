"""The blob layout: pages that hold the locations of large values in the file.

File formats 2.1 and 2.2. Payloads lie between the pages, each at a multiple of 64 bytes. The page has the buffers of an
inner layout, whose values are packed structs without levels, the *descriptions*, one per row:

    │ u64 position │ u64 size │        of the payload, in bytes from the start of the file

An empty payload has neither: both numbers are 0. A null has size 0 too, and its levels in place of a position:

    position = definition level << 16 │ repetition level

Repetition levels would be those of lists. Writers produce such pages, but no reader can find rows in them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from lance_format.compression import packed_struct
from lance_format.compression.options import CompressionOptions
from lance_format.compression.packed_struct import PackedStructDecompressor
from lance_format.data_block import FixedWidthBlock, PackedStructBlock
from lance_format.errors import CorruptFileError, NotSupportedError
from lance_format.lazy_dataclasses import dataclass
from lance_format.proto import encodings_pb2
from lance_format.structural import mini_block_writer
from lance_format.structural.layers import LayerStack, item_layer
from lance_format.structural.page import DecodedRows, EncodedPage, Page, Plan, RowSelection
from lance_format.structural.rep_def import LevelPair, check_levels
from lance_format.version import FileVersion

_BITS = 64
_LEVEL_BITS = 16
_INNER_STACK = LayerStack((item_layer(nullable=False),))

ByteCounts = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class DescriptionCodec(PackedStructDecompressor):
    """Codec of descriptions; values with it are written in the blob layout."""

    bits_per_field: tuple[int, ...] = (_BITS, _BITS)


class BlobPage:
    """A page of descriptions.

    Parameters
    ----------
    layout : BlobLayout
    inner : callable
        Builds the page of the inner layout.

    Raises
    ------
    CorruptFileError
        If the layout contradicts itself or the page.
    NotSupportedError
        If the layout uses unsupported features.
    """

    def __init__(self, layout: encodings_pb2.BlobLayout, inner: Callable[[encodings_pb2.PageLayout], Page]) -> None:
        self._stack = LayerStack.parse(layout.layers)
        if self._stack.lists:
            raise NotSupportedError("blobs in lists cannot be read from pages of the blob layout")
        if layout.inner_layout.WhichOneof("layout") == "blob_layout":
            raise CorruptFileError("the descriptions of a blob page are themselves blobs")
        self._inner = inner(layout.inner_layout)

    @property
    def rows_at_once(self) -> int:
        """See `Page`."""
        return self._inner.rows_at_once

    def plan(self, rows: RowSelection) -> Plan:
        """Plan the reading of some rows; see `Page`. The values are packed structs of position and size."""
        decoded = yield from self._inner.plan(rows)
        positions, sizes = _split(decoded)
        is_empty = sizes == 0
        codes = np.where(is_empty, positions, np.uint64(0))
        definition = (codes >> np.uint64(_LEVEL_BITS)).astype(np.uint16)
        if (codes != definition.astype(np.uint64) << np.uint64(_LEVEL_BITS)).any():
            raise CorruptFileError("a description of no bytes has a position that is no definition level")
        levels = LevelPair(None, definition if self._stack.max_definition else None, len(positions))
        if levels.definition is None and definition.any():
            raise CorruptFileError("a blob is null in a page whose layers allow no nulls")
        check_levels(levels, self._stack)
        return DecodedRows(join(np.where(is_empty, np.uint64(0), positions), sizes), levels, self._stack)


def _split(decoded: DecodedRows) -> tuple[ByteCounts, ByteCounts]:
    """Return the positions and sizes in an inner page."""
    values = decoded.values
    if not isinstance(values, PackedStructBlock) or decoded.levels.definition is not None:
        raise CorruptFileError("the descriptions of a blob page are not packed structs without levels")
    fields = values.codec.split_rows(values.rows)
    numbers = [
        field.data[: field.size_bytes].view("<u8")
        for field in fields
        if isinstance(field, FixedWidthBlock) and field.bits_per_value == _BITS
    ]
    if len(fields) != 2 or len(numbers) != 2:
        raise CorruptFileError("the descriptions of a blob page are not a position and a size of 64 bits each")
    return numbers[0], numbers[1]


def join(positions: ByteCounts, sizes: ByteCounts) -> PackedStructBlock:
    """Build the descriptions, the values of a page.

    Parameters
    ----------
    positions, sizes : uint64[num_values]
    """
    columns = [
        FixedWidthBlock(column.astype("<u8").view(np.uint8), _BITS, len(column)) for column in (positions, sizes)
    ]
    return PackedStructBlock(packed_struct.join_rows(columns), DescriptionCodec())


def encode(
    descriptions: PackedStructBlock, levels: LevelPair, stack: LayerStack, num_rows: int, version: FileVersion
) -> EncodedPage:
    """Lay out a page.

    Parameters
    ----------
    descriptions : PackedStructBlock
        The results of `join`, one per row; zeros for nulls.
    levels : LevelPair
    stack : LayerStack
    num_rows : int
    version : FileVersion

    Raises
    ------
    NotSupportedError
        If there are lists.
    """
    if stack.lists:
        raise NotSupportedError("blobs in lists cannot be stored in pages of the blob layout")
    if levels.definition is not None:
        positions, sizes = _split(DecodedRows(descriptions, LevelPair(None, None, num_rows), _INNER_STACK))
        is_null = levels.definition > 0
        codes = levels.definition.astype(np.uint64) << np.uint64(_LEVEL_BITS)
        descriptions = join(np.where(is_null, codes, positions), np.where(is_null, np.uint64(0), sizes))
    inner = mini_block_writer.encode(
        descriptions,
        LevelPair(None, None, num_rows),
        _INNER_STACK,
        num_rows,
        options=CompressionOptions(),
        version=version,
    )
    layout = encodings_pb2.BlobLayout(inner_layout=inner.layout, layers=stack.layers)  # type: ignore[arg-type]
    return EncodedPage(inner.buffers, encodings_pb2.PageLayout(blob_layout=layout), num_rows)
