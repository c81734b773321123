"""Writing the pages of a column in file format 2.0: each field is a column, structs and lists included."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from lance_format.array_encodings import lists
from lance_format.array_encodings.array import ArrayShape, pack_validity
from lance_format.array_encodings.nullable import all_nulls
from lance_format.array_encodings.page_builder import EncodedArray
from lance_format.array_encodings.strategy import encode_header, encode_page
from lance_format.arrow_rows import take_rows
from lance_format.compression.defaults import EncodingDefaults
from lance_format.compression.options import CompressionOptions
from lance_format.data_block import ValueShape
from lance_format.datatypes import Field
from lance_format.errors import NotSupportedError, SchemaMismatchError
from lance_format.file.columns.array_values import NULL_STRUCTS, array_shape, take_apart
from lance_format.file.columns.leaf_columns import Kind, Leaf, kind_of
from lance_format.file.columns.leaves import BLOB_SHAPE, is_empty_struct, validity_of
from lance_format.file.writing.columns import WriteBuffer, WrittenColumn
from lance_format.file.writing.encoding_requests import options_of
from lance_format.lazy_dataclasses import dataclass
from lance_format.list_items import offsets_of
from lance_format.structural.row_index import expand_ranges
from lance_format.version import FileVersion

_NOTHING = ArrayShape(ValueShape())


@dataclass(frozen=True, slots=True)
class _Node:
    """A field: its column, and the fields below it."""

    path: tuple[Field, ...]
    column: WrittenColumn
    children: tuple[_Node, ...]

    @property
    def field(self) -> Field:
        return self.path[-1]

    @property
    def name(self) -> str:
        return ".".join(field.name for field in self.path)


@dataclass(frozen=True, slots=True)
class _LeafForm:
    """Written form of the values of a leaf."""

    leaf: Leaf
    shape: ArrayShape
    options: CompressionOptions
    max_key: int

    @classmethod
    def of(cls, leaf: Leaf, defaults: EncodingDefaults) -> _LeafForm:
        is_dictionary = pa.types.is_dictionary(leaf.arrow_type)
        max_key = int(np.iinfo(leaf.arrow_type.index_type.to_pandas_dtype()).max) if is_dictionary else 0
        shape = _NOTHING if is_empty_struct(leaf.arrow_type) else array_shape(leaf)
        return cls(leaf, shape, options_of(leaf, defaults), max_key)


def _is_struct(field: Field) -> bool:
    """Return whether a field has the column of a struct, which holds nothing."""
    return kind_of(field) is Kind.STRUCT or is_empty_struct(field.to_arrow_type())


class ArrayWriting:
    """Writer of the columns of a field; see `ColumnWriting`.

    Parameters
    ----------
    top : Field
        The field with descriptions in place of blobs.
    leaves : sequence of Leaf
        Its leaves.
    defaults : EncodingDefaults
    version : FileVersion
        Ignored: only one version has array encodings.
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
        del version
        self._forms = {leaf.field.id: _LeafForm.of(leaf, defaults) for leaf in leaves}
        self._write_buffer = write_buffer
        self._columns: list[WrittenColumn] = []
        self._top = self._grow((top,))

    def _grow(self, path: tuple[Field, ...]) -> _Node:
        """Return the node of a field, whose column comes before those of the fields below it."""
        form = self._forms.get(path[-1].id)
        column = WrittenColumn(path[-1].id, is_blob=form is not None and form.leaf.shape is BLOB_SHAPE)
        self._columns.append(column)
        children = () if form is not None else tuple(self._grow((*path, child)) for child in path[-1].children)
        node = _Node(path, column, children)
        if _is_struct(path[-1]):
            self._count(node, 0)
        return node

    @property
    def columns(self) -> Sequence[WrittenColumn]:
        """See `ColumnWriting`."""
        return self._columns

    def write(self, array: pa.Array) -> None:
        """See `ColumnWriting`."""
        self._write(self._top, array)

    def _write(self, node: _Node, array: pa.Array) -> None:
        """Write rows of a field and of the fields below it.

        Lists may have no items at all; pylance expects pages for them nevertheless.
        """
        if not node.field.nullable and array.null_count:
            raise SchemaMismatchError(f"field {node.field.name!r} of column {node.name!r} must not be null, but is")
        if _is_struct(node.field):
            self._write_structs(node, array)
        elif kind_of(node.field) is Kind.LIST:
            self._write_lists(node, array)
        else:
            self._add(node, self._encode(self._forms[node.field.id], array))

    def _encode(self, form: _LeafForm, array: pa.Array) -> EncodedArray:
        found = take_apart(array, form.leaf)
        if not len(array):
            return EncodedArray((), all_nulls(), 0)
        try:
            return encode_page(
                found,
                form.shape,
                form.options,
                is_text=form.leaf.arrow_type == pa.string(),
                is_blob=form.leaf.shape is BLOB_SHAPE,
                max_key=form.max_key,
            )
        except NotSupportedError as error:
            raise NotSupportedError(f"column {form.leaf.name!r}: {error}") from error

    def _write_structs(self, node: _Node, array: pa.Array) -> None:
        if array.null_count:
            raise NotSupportedError(f"column {node.name!r} has {array.null_count} {NULL_STRUCTS}")
        self._count(node, len(array))
        for index, child in enumerate(node.children):
            self._write(child, array.field(index))

    def _write_lists(self, node: _Node, array: pa.Array) -> None:
        """Write the ends of lists, and their items without those of lists that are null."""
        bounds = offsets_of(array).astype(np.int64)
        sizes = np.diff(bounds)
        valid = validity_of(array)
        kept = sizes if valid is None else np.where(valid, sizes, 0)
        offsets = np.zeros(kept.size + 1, np.int64)
        np.cumsum(kept, out=offsets[1:])
        self._add(node, lists.encode(offsets, None if valid is None else pack_validity(valid)))
        if (kept == sizes).all():
            items = array.values.slice(int(bounds[0]), int(bounds[-1] - bounds[0]))
        else:
            items = take_rows(array.values, pa.array(expand_ranges(bounds[:-1], bounds[:-1] + kept)))
        self._write(node.children[0], items)

    def _count(self, node: _Node, num_rows: int) -> None:
        """Let the column of structs have some rows more, in its only page: pylance reads no others."""
        before = sum(page.num_rows for page in node.column.pages)
        node.column.pages.clear()
        node.column.priorities.clear()
        self._add(node, encode_header(before + num_rows))

    def _add(self, node: _Node, page: EncodedArray) -> None:
        buffers = tuple(self._write_buffer(buffer.data) for buffer in page.buffers)
        node.column.add(buffers, page.encoding, page.num_rows, priority=0)
