"""Choice of the encodings of a written page, the same as pylance's.

Values are flat, and nullable if some are null. Byte strings are binary, compressed if requested; strings of few
distinct values become a dictionary. Dictionary columns keep their dictionaries.
"""

from __future__ import annotations

import numpy as np

from lance_format.array_encodings import (
    binary,
    blob,
    dictionary,
    fixed_size_list,
    flat,
    fsst,
    nullable,
    packed_struct,
)
from lance_format.array_encodings.array import ArrayShape, DecodedArray, ItemsBlock, unpack_validity
from lance_format.array_encodings.page_builder import EncodedArray, PageBuilder
from lance_format.compression import dictionary as distinct
from lance_format.compression import fsst as symbols
from lance_format.compression.options import CompressionOptions, Scheme
from lance_format.data_block import (
    DataBlock,
    DictionaryBlock,
    FixedWidthBlock,
    PackedStructBlock,
    ValueShape,
    VariableWidthBlock,
)
from lance_format.errors import NotSupportedError
from lance_format.proto import array_encodings_pb2 as pb

_FEWEST_VALUES = 100
_MOST_ITEMS = 99
_SAMPLED_VALUES = 1000
_DEFAULTS = CompressionOptions()


def encode_page(
    array: DecodedArray,
    shape: ArrayShape,
    options: CompressionOptions,
    *,
    is_text: bool = False,
    is_blob: bool = False,
    max_key: int = 0,
) -> EncodedArray:
    """Encode the rows of a column.

    Parameters
    ----------
    array : DecodedArray
        At least one row.
    shape : ArrayShape
    options : CompressionOptions
    is_text : bool
        Whether values are strings with offsets of 32 bits, the only ones that readers expect in a dictionary.
    is_blob : bool
        Whether they are descriptions of blobs.
    max_key : int
        Of a dictionary, the highest key that its type has.

    Raises
    ------
    NotSupportedError
        If the keys of a dictionary cannot number its items and null besides.
    """
    page = PageBuilder()
    values = array.values
    if is_blob and isinstance(values, PackedStructBlock):
        encoding = packed_struct.encode(blob.encode(values, array.validity), blob.FIELDS, page)
    elif isinstance(values, DictionaryBlock):
        encoding = _encode_dictionary(values, array.validity, max_key, page)
    elif isinstance(values, VariableWidthBlock):
        encoding = _encode_strings(values, array.validity, options, page, may_have_dictionary=is_text)
    else:
        encoding = _encode_nullable(array, shape, page)
    return page.finish(encoding, array.num_rows)


def encode_header(num_rows: int) -> EncodedArray:
    """Return the page of a column of structs, which holds nothing."""
    return EncodedArray((), pb.ArrayEncoding(struct=pb.SimpleStruct()), num_rows)


def _encode_nullable(array: DecodedArray, shape: ArrayShape, page: PageBuilder) -> pb.ArrayEncoding:
    """Encode values of a fixed width, or fixed-size lists of such."""
    if array.values is None or (array.validity is not None and not array.validity.data.any()):
        return nullable.all_nulls()
    if isinstance(array.values, PackedStructBlock):
        assert isinstance(array.values.rows, FixedWidthBlock)
        return packed_struct.encode(array.values.rows, shape.fields or (), page)
    validity = None if array.validity is None else flat.encode(array.validity, page)
    if isinstance(array.values, ItemsBlock):
        assert shape.items is not None
        values = fixed_size_list.encode(_encode_nullable(array.values.items, shape.items, page), shape.dimension)
    else:
        assert isinstance(array.values, FixedWidthBlock)
        values = flat.encode(array.values, page)
    return nullable.no_nulls(values) if validity is None else nullable.some_nulls(validity, values)


def _encode_strings(
    block: VariableWidthBlock,
    validity: FixedWidthBlock | None,
    options: CompressionOptions,
    page: PageBuilder,
    *,
    may_have_dictionary: bool,
) -> pb.ArrayEncoding:
    if may_have_dictionary and (found := _few_distinct(block, validity)) is not None:
        keys, items = _keys_of(found, validity)
        return dictionary.encode(keys, items.num_values, lambda page: _encode_items(items, None, page), page)
    if options.scheme is Scheme.FSST and block.bits_per_offset == 32 and block.size_bytes:
        compressed = symbols.compress(block)
        if compressed is not None and compressed[0].bits_per_offset == 32:
            return fsst.encode(binary.encode(compressed[0], validity, _DEFAULTS, page), compressed[1])
    return binary.encode(block, validity, options, page)


def _few_distinct(block: VariableWidthBlock, validity: FixedWidthBlock | None) -> distinct.IndexedPage | None:
    """Return the distinct values of a block if they are few. One may be the empty string, which stands for nulls."""
    if block.num_values < _FEWEST_VALUES:
        return None
    most = _MOST_ITEMS + (validity is not None)
    sample = block.slice(0, min(_SAMPLED_VALUES, block.num_values))
    return None if distinct.split(sample, most) is None else distinct.split(block, most)


def _keys_of(found: distinct.IndexedPage, validity: FixedWidthBlock | None) -> tuple[FixedWidthBlock, DataBlock]:
    """Return keys (0 for null, else the number of the item plus one) and the items."""
    numbers, items = found.indices.data[: found.indices.num_values], found.items
    valid = np.ones(numbers.size, np.bool_) if validity is None else unpack_validity(validity)
    used = np.zeros(items.num_values, np.bool_)
    used[numbers[valid]] = True
    positions = np.where(used, np.cumsum(used), 0).astype(np.uint8)
    keys = np.where(valid, positions[numbers], np.uint8(0))
    kept = items if used.all() or not used.any() else items.take(np.flatnonzero(used))
    return FixedWidthBlock(keys, 8, keys.size), kept


def _encode_dictionary(
    block: DictionaryBlock, validity: FixedWidthBlock | None, max_key: int, page: PageBuilder
) -> pb.ArrayEncoding:
    """Encode a dictionary column: nulls have the key of a null item, the last one."""
    items, keys = block.items, block.indices
    num_items = items.num_values
    item_validity = None
    if validity is not None:
        if num_items > max_key:
            raise NotSupportedError(
                f"keys up to {max_key} cannot number {num_items} items and null besides, as file format 2.0 stores it;"
                " give the column wider keys, or write 2.1"
            )
        words = block.words.copy()
        words[~unpack_validity(validity)] = num_items
        keys = FixedWidthBlock(words.view(np.uint8), keys.bits_per_value, keys.num_values)
        items, item_validity = _with_null(items)
    return dictionary.encode(keys, items.num_values, lambda page: _encode_items(items, item_validity, page), page)


def _with_null(items: DataBlock) -> tuple[DataBlock, FixedWidthBlock]:
    """Return items with one more, which is null, and their validity."""
    count = items.num_values
    there = np.packbits(np.arange(count + 1) < count, bitorder="little")
    validity = FixedWidthBlock(there, 1, count + 1)
    if isinstance(items, VariableWidthBlock):
        return VariableWidthBlock(items.data, np.append(items.offsets, items.offsets[-1:])), validity
    data = np.concatenate([items.data[: items.size_bytes], np.zeros(-(-items.bits_per_value // 8), np.uint8)])
    return FixedWidthBlock(data, items.bits_per_value, count + 1), validity


def _encode_items(items: DataBlock, validity: FixedWidthBlock | None, page: PageBuilder) -> pb.ArrayEncoding:
    if isinstance(items, VariableWidthBlock):
        return binary.encode(items, validity, _DEFAULTS, page)
    shape = ArrayShape(ValueShape(bits_per_value=items.bits_per_value))
    return _encode_nullable(DecodedArray(items, validity, items.num_values), shape, page)
