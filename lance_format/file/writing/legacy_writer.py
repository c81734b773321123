"""Writing files of format 0.1, for tables that have such files: their rows and columns change, new tables are newer.

`file/container/legacy_metadata.py` has the container, and `lance_format/array_encodings/legacy.py` the pages. A file
has no statistics. The format loses nulls and turns empty strings into nulls, as pylance writes it. Values that it would
lose are refused instead.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import chain, repeat

import numpy as np
import pyarrow as pa

from lance_format.byte_io import RangeWriter
from lance_format.data_block import FixedWidthBlock, VariableWidthBlock
from lance_format.datatypes import Field, Schema, serialize_fields
from lance_format.errors import InvalidInputError, NotSupportedError
from lance_format.file.columns.leaf_columns import Kind, kind_of
from lance_format.file.columns.leaves import innermost, is_empty_struct, validity_of, values_of
from lance_format.file.columns.storable import writable_leaves
from lance_format.file.writing.given_columns import GivenColumns
from lance_format.file.writing.writer import FileSummary
from lance_format.list_items import offsets_of
from lance_format.proto import file_pb2, table_pb2
from lance_format.version import WAY_OUT_OF_0_1, FileVersion

_VERSION = FileVersion.V0_1
_FOOTER = struct.Struct("<QHH4s")
_MAGIC = b"LANC"
_ROWS_PER_BATCH = 1024


class LegacyFileWriter:
    """Writer of a data file of format 0.1.

    Parameters
    ----------
    sink : RangeWriter
        The destination; `finish` closes it, `abort` aborts it.
    schema : Schema
        With field ids.
    batch_rows : sequence of int
        The rows of each batch, since pylance reads the files of a fragment batch by batch. Further batches have 1,024.

    Raises
    ------
    NotSupportedError
        If a type cannot be written.
    """

    def __init__(self, sink: RangeWriter, schema: Schema, batch_rows: Sequence[int] = ()) -> None:
        for top in schema.fields:
            _check_type(top)
        self._sink = sink
        self._schema = schema
        self._given = GivenColumns(schema)
        self._fields = [field for top in schema.fields for field in top.walk()]
        self._sizes = chain(batch_rows, repeat(_ROWS_PER_BATCH))
        self._wanted_rows = next(self._sizes)
        self._buffered: list[pa.RecordBatch] = []
        self._buffered_rows = 0
        self._pages: list[dict[int, tuple[int, int]]] = []
        self._batch_offsets = [0]
        self._finished = False
        self.num_rows = 0

    @property
    def buffered_bytes(self) -> int:
        """The bytes of rows that have not become pages yet."""
        return sum(int(batch.nbytes) for batch in self._buffered)

    def write_batch(self, batch: pa.RecordBatch) -> None:
        """Write rows; columns are found by name.

        Raises
        ------
        SchemaMismatchError
            If the batch's columns are not those of the schema, or a column that must not be null is.
        NotSupportedError
            If the format cannot hold a value. Some are found by a later call or by `finish`.
        """
        if self._finished:
            raise InvalidInputError(f"{self._sink.path} is finished; no more rows can be written")
        arrays = self._given.stored(batch, self.num_rows)
        stored = pa.RecordBatch.from_arrays(arrays, names=self._schema.names)
        self.num_rows += batch.num_rows
        row = 0
        while row < stored.num_rows:
            part = stored.slice(row, self._wanted_rows - self._buffered_rows)
            row += part.num_rows
            self._buffered.append(part)
            self._buffered_rows += part.num_rows
            if self._buffered_rows == self._wanted_rows:
                self._write_pages()

    def _write_pages(self) -> None:
        """Write the buffered rows as a batch of the file."""
        table = pa.Table.from_batches(self._buffered)
        self._buffered, self._buffered_rows = [], 0
        self._pages.append({})
        for field, column in zip(self._schema.fields, table.columns, strict=True):
            for part in _pages_of(field, pa.concat_arrays(column.chunks)):
                self._pages[-1][part[0].id] = self._write_page(*part)
        self._batch_offsets.append(self._batch_offsets[-1] + table.num_rows)
        self._wanted_rows = next(self._sizes)

    def _write_page(self, field: Field, array: pa.Array) -> tuple[int, int]:
        """Write the lists or the values of a field; returns the position and the length of the page."""
        if kind_of(field) is Kind.LIST:
            offsets = offsets_of(array)
            return self._write(offsets - offsets[0]), len(array) + 1
        if pa.types.is_null(array.type):
            return self._sink.position, len(array)
        num_rows, valid = len(array), validity_of(array)
        while pa.types.is_fixed_size_list(array.type):
            array = array.flatten()
        block = values_of(array, valid)
        if isinstance(block, VariableWidthBlock):
            data = self._write(block.data[block.offsets[0] : block.offsets[-1]])
            starts = block.offsets.astype(np.int64) - int(block.offsets[0]) + data
            return self._write(starts), num_rows
        assert isinstance(block, FixedWidthBlock)
        return self._write(block.data[: block.size_bytes]), num_rows

    def _write(self, data: np.ndarray) -> int:
        position = self._sink.position
        self._sink.write(np.ascontiguousarray(data).tobytes())
        return position

    def finish(self) -> FileSummary:
        """Write the remaining rows, the metadata and the footer, and close the sink.

        Raises
        ------
        InvalidInputError
            If the writer is closed already.
        """
        if self._finished:
            raise InvalidInputError(f"{self._sink.path} is finished already")
        self._finished = True
        if self._buffered_rows:
            self._write_pages()
        ids = [field.id for field in self._fields]
        table = np.zeros((max(ids) - min(ids) + 1, len(self._pages), 2), "<i8")
        for batch, pages in enumerate(self._pages):
            for field_id, page in pages.items():
                table[field_id - min(ids), batch] = page
        metadata = file_pb2.LegacyMetadata(batch_offsets=self._batch_offsets, page_table_position=self._write(table))
        manifest = table_pb2.Manifest(fields=serialize_fields(self._schema.fields))
        metadata.manifest_position = self._write_message(manifest)
        position = self._write_message(metadata)
        self._sink.write(_FOOTER.pack(position, *_VERSION.footer_numbers, _MAGIC))
        size = self._sink.position
        self._sink.close()
        return FileSummary(self.num_rows, size, tuple(sorted(ids)), ())  # Pylance takes others for damaged.

    def _write_message(self, message: file_pb2.LegacyMetadata | table_pb2.Manifest) -> int:
        position = self._sink.position
        data = message.SerializeToString()
        self._sink.write(struct.pack("<I", len(data)) + data)
        return position

    def abort(self) -> None:
        """Leave nothing behind."""
        self._finished = True
        self._sink.abort()


def _check_type(top: Field) -> None:
    for leaf in writable_leaves(top, _VERSION):
        kinds = {kind_of(part) for part in leaf.path}
        item_type = innermost(leaf.arrow_type)
        is_known = not pa.types.is_struct(item_type) or is_empty_struct(item_type)
        if pa.types.is_fixed_size_list(leaf.arrow_type) and pa.types.is_boolean(item_type):
            is_known = False  # Pylance reads all rows of such a column, but no single ones.
        if kinds - {Kind.STRUCT, Kind.LIST, Kind.LEAF} or pa.types.is_dictionary(item_type) or not is_known:
            raise NotSupportedError(
                f"column {leaf.name!r} is a {leaf.arrow_type}, which cannot be written in file format {_VERSION};"
                f" {WAY_OUT_OF_0_1}"
            )


def _pages_of(field: Field, array: pa.Array) -> list[tuple[Field, pa.Array]]:
    """Return the fields of a column that have pages, each with its lists or values.

    Raises
    ------
    NotSupportedError
        If the format would lose a value.
    """
    kind = kind_of(field)
    if kind is Kind.LEAF:
        _check_values(field, array)
        return [] if is_empty_struct(array.type) else [(field, array)]
    if array.null_count:
        raise _lost(field, f"{array.null_count} nulls")
    children = array.flatten()
    if kind is Kind.LIST:
        return [(field, array), *_pages_of(field.children[0], children)]
    return [page for child, part in zip(field.children, children, strict=True) for page in _pages_of(child, part)]


def _check_values(field: Field, array: pa.Array) -> None:
    is_text = _has_bytes(array.type)
    if array.null_count and not is_text and not pa.types.is_null(array.type):
        raise _lost(field, f"{array.null_count} nulls")
    if is_text and field.nullable:
        sizes = np.diff(offsets_of(array))
        num_empty = int((sizes == 0).sum()) - _num_empty_nulls(array, sizes)
        if num_empty:
            raise _lost(field, f"{num_empty} values without bytes, which would be null")
    if pa.types.is_fixed_size_list(array.type):
        _check_values(field, array.flatten())


def _has_bytes(arrow_type: pa.DataType) -> bool:
    """Return whether values are byte strings; empty ones are null then."""
    return arrow_type in (pa.string(), pa.binary(), pa.large_string(), pa.large_binary())


def _num_empty_nulls(array: pa.Array, sizes: np.ndarray) -> int:
    valid = validity_of(array)
    return 0 if valid is None else int((~valid & (sizes == 0)).sum())


def _lost(field: Field, what: str) -> NotSupportedError:
    return NotSupportedError(
        f"field {field.name!r} has {what}, which file format {_VERSION} cannot hold; {WAY_OUT_OF_0_1}"
    )
