"""Writing the pages of a column from file format 2.1 on: each leaf is a column, whose levels encode all layers."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import pyarrow as pa

from lance_format.compression.choice.strategy import chunks_shrink
from lance_format.compression.defaults import EncodingDefaults
from lance_format.compression.options import CompressionOptions, StructuralEncoding
from lance_format.data_block import FixedSizeListBlock, FixedWidthBlock, ValueBlock
from lance_format.datatypes import Field
from lance_format.errors import NotSupportedError, SchemaMismatchError
from lance_format.file.columns.leaf_columns import Leaf
from lance_format.file.columns.shredding import shred
from lance_format.file.writing.columns import WriteBuffer, WrittenColumn
from lance_format.file.writing.encoding_requests import asks_for_general, options_of
from lance_format.lazy_dataclasses import dataclass
from lance_format.structural.layers import LayerStack
from lance_format.structural.mini_block_writer import TooManyLevelsError
from lance_format.structural.page import EncodedPage
from lance_format.structural.rep_def import LevelPair
from lance_format.structural.strategy import encode_page
from lance_format.version import FileVersion


@dataclass(slots=True)
class _LeafWriter:
    """A leaf, and the rows that it has so far."""

    leaf: Leaf
    options: CompressionOptions
    column: WrittenColumn
    warns_of_plain: bool = False
    num_rows: int = 0


class StructuralWriting:
    """Writer of the leaves of a column; see `ColumnWriting`.

    Parameters
    ----------
    top : Field
        Ignored: leaves alone are columns.
    leaves : sequence of Leaf
        Of the field with descriptions in place of blobs.
    defaults : EncodingDefaults
    version : FileVersion
    write_buffer : callable
    """

    def __init__(
        self,
        top: Field,
        leaves: Sequence[Leaf],
        defaults: EncodingDefaults,
        version: FileVersion,
        write_buffer: WriteBuffer,
    ) -> None:
        del top
        self._leaves = [
            _LeafWriter(
                leaf, options_of(leaf, defaults), WrittenColumn(leaf.field.id), asks_for_general(leaf, defaults)
            )
            for leaf in leaves
        ]
        self._version = version
        self._write_buffer = write_buffer

    @property
    def columns(self) -> Sequence[WrittenColumn]:
        """See `ColumnWriting`."""
        return [leaf.column for leaf in self._leaves]

    def write(self, array: pa.Array) -> None:
        """See `ColumnWriting`."""
        for leaf in self._leaves:
            self._write_page(leaf, array)

    def _write_page(self, leaf: _LeafWriter, array: pa.Array) -> None:
        values, levels, stack = shred(array, leaf.leaf)
        _check_nullability(leaf.leaf, levels, stack)
        num_items = len(array) * leaf.leaf.items_per_row
        try:
            page = encode_page(values, levels, stack, num_items, self._version, leaf.options)
        except TooManyLevelsError as error:
            if len(array) == 1:
                raise NotSupportedError(f"a row of column {leaf.leaf.name!r} has too many empty lists") from error
            self._write_page(leaf, array.slice(0, len(array) // 2))
            self._write_page(leaf, array.slice(len(array) // 2))
            return
        _warn_of_plain(leaf, values, page, self._version)
        buffers = tuple(self._write_buffer(buffer.data) for buffer in page.buffers)
        leaf.column.add(buffers, page.layout, page.num_rows, priority=leaf.num_rows)
        leaf.num_rows += len(array)


def _warn_of_plain(leaf: _LeafWriter, values: ValueBlock | None, page: EncodedPage, version: FileVersion) -> None:
    """Warn once if the format lets a page only store values as they are, though zstd or LZ4 is requested.

    General compression covers one buffer of a chunk; vectors with null items have several. Full-zip pages, which values
    need that are too large for chunks, store values of a fixed width as they are.
    """
    if leaf.options.structural_encoding is StructuralEncoding.FULL_ZIP:
        return
    if not leaf.warns_of_plain or not isinstance(values, FixedWidthBlock | FixedSizeListBlock):
        return
    if isinstance(values, FixedSizeListBlock) and len(values.shape.parts) > 1:
        why = "vectors with null items"
    elif page.layout.WhichOneof("layout") == "full_zip_layout" and chunks_shrink(values, leaf.options):
        why = f"values too large for a chunk of file format {version}"
    else:
        return
    leaf.warns_of_plain = False
    warnings.warn(
        f"column {leaf.leaf.name!r}: {why} cannot be compressed by zstd or lz4; they are stored as they are",
        stacklevel=2,
    )


def _check_nullability(leaf: Leaf, levels: LevelPair, stack: LayerStack) -> None:
    if levels.definition is None:
        return
    for index, part in enumerate(reversed(leaf.path)):
        null = stack.null_level(index)
        if not part.nullable and null and (levels.definition == null).any():
            raise SchemaMismatchError(f"field {part.name!r} of column {leaf.name!r} must not be null, but is")
