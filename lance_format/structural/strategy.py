"""Choice of the layout of a page when it is written."""

from __future__ import annotations

import numpy as np

from lance_format.compression.choice.byte_strings import split_large
from lance_format.compression.choice.strategy import chunks_shrink
from lance_format.compression.dictionary import MIN_VALUES
from lance_format.compression.options import CompressionOptions, StructuralEncoding
from lance_format.data_block import (
    DataBlock,
    DictionaryBlock,
    FixedSizeListBlock,
    FixedWidthBlock,
    PackedStructBlock,
    ValueBlock,
    VariableWidthBlock,
)
from lance_format.errors import NotSupportedError
from lance_format.structural import blob, constant, full_zip, mini_block_writer
from lance_format.structural.layers import LayerStack
from lance_format.structural.mini_block_writer import TooLargeForMiniBlockError, TooManyLevelsError
from lance_format.structural.page import EncodedPage
from lance_format.structural.rep_def import LevelPair, Validity, visible_definition
from lance_format.version import FileVersion

_LARGE_VALUE_BYTES = 256


def encode_page(
    values: ValueBlock | None,
    levels: LevelPair,
    stack: LayerStack,
    num_rows: int,
    version: FileVersion,
    options: CompressionOptions,
) -> EncodedPage:
    """Lay out the rows of a leaf column.

    Parameters
    ----------
    values : ValueBlock or None
        One per visible entry, arbitrary for nulls. None if the type has no values.
    levels : LevelPair
    stack : LayerStack
    num_rows : int
        At least 1.
    version : FileVersion
    options : CompressionOptions

    Raises
    ------
    TooManyLevelsError
        If dictionary values have more empty lists between them than a page can hold; fewer rows may fit.
    """
    if isinstance(values, PackedStructBlock) and isinstance(values.codec, blob.DescriptionCodec):
        return blob.encode(values, levels, stack, num_rows, version)
    definition = visible_definition(levels, stack)
    valid = None if definition is None else definition == 0
    if values is None or values.num_values == 0 or (valid is not None and not valid.any()):
        return constant.encode_nulls(levels, stack, num_rows, version)
    first = 0 if valid is None else int(np.argmax(valid))
    if isinstance(values, FixedWidthBlock) and values.bits_per_value == 0:
        return constant.encode_value(values.slice(first, first + 1), levels, stack, num_rows)
    if isinstance(values, DictionaryBlock):
        # Readers find a dictionary in mini-block pages only.
        return mini_block_writer.encode(values, levels, stack, num_rows, options=options, version=version)
    if isinstance(values, PackedStructBlock):
        return _encode_packed(values, levels, stack, num_rows, version, options)
    if isinstance(values, FixedSizeListBlock):
        return _encode_large_or_small(values, levels, stack, num_rows, version, options)
    if version.has_constant_values and _constant_pays(values, levels) and _is_constant(values, valid, first):
        return constant.encode_value(values.slice(first, first + 1), levels, stack, num_rows)
    return _encode_large_or_small(values, levels, stack, num_rows, version, options)


def _encode_packed(
    values: PackedStructBlock,
    levels: LevelPair,
    stack: LayerStack,
    num_rows: int,
    version: FileVersion,
    options: CompressionOptions,
) -> EncodedPage:
    """Lay out packed structs: in chunks if they have a fixed width, else zipped. The format allows no other layout."""
    if isinstance(values.rows, VariableWidthBlock):
        return full_zip.encode(values, levels, stack, num_rows, options)
    try:
        return mini_block_writer.encode(values, levels, stack, num_rows, options=options, version=version)
    except (TooLargeForMiniBlockError, TooManyLevelsError) as error:
        raise NotSupportedError(
            f"packed structs of {values.rows.bytes_per_value} bytes, or so many empty lists of them, do not fit into a"
            " page of this file format version; do not pack them"
        ) from error


def _encode_large_or_small(
    values: DataBlock | FixedSizeListBlock,
    levels: LevelPair,
    stack: LayerStack,
    num_rows: int,
    version: FileVersion,
    options: CompressionOptions,
) -> EncodedPage:
    asked = options.structural_encoding
    large = asked is None and _has_large_values(values) and not chunks_shrink(values, options)
    has_ragged_bits = _has_ragged_bits(values)
    indexed = None
    if large and isinstance(values, VariableWidthBlock):
        indexed = split_large(values, visible_definition(levels, stack), options)
    if (asked is StructuralEncoding.FULL_ZIP or (large and indexed is None)) and not has_ragged_bits:
        return full_zip.encode(_whole_bytes(values), levels, stack, num_rows, options)
    block = values if indexed is None else indexed
    try:
        return mini_block_writer.encode(block, levels, stack, num_rows, options=options, version=version)
    except (TooLargeForMiniBlockError, TooManyLevelsError) as error:
        if has_ragged_bits:
            raise NotSupportedError(
                "fixed-size lists of so many booleans, some of them null or not a multiple of 8, do not fit into a page"
                " that pylance reads; store them as int8, or as lists of any length"
            ) from error
        return full_zip.encode(_whole_bytes(values), levels, stack, num_rows, options)


def _has_large_values(values: DataBlock | FixedSizeListBlock) -> bool:
    """Return whether values are better read one by one than by the chunk."""
    if isinstance(values, FixedSizeListBlock):
        values = values.rows
    if isinstance(values, FixedWidthBlock):
        return values.bytes_per_value >= _LARGE_VALUE_BYTES
    return values.longest >= _LARGE_VALUE_BYTES


def _has_ragged_bits(values: DataBlock | FixedSizeListBlock) -> bool:
    """Return whether values are lists of single bits whose parts end within bytes, which pylance cannot unzip."""
    if not isinstance(values, FixedSizeListBlock) or values.shape.bits_per_item != 1:
        return False
    return len(values.shape.parts) > 1 or values.shape.items_per_value % 8 != 0


def _whole_bytes(values: DataBlock | FixedSizeListBlock) -> DataBlock | FixedSizeListBlock:
    """Return values that full-zip can store: single bits become bytes."""
    if not isinstance(values, FixedWidthBlock) or values.bits_per_value != 1:
        return values
    bits = np.unpackbits(values.data, count=values.num_values, bitorder="little")
    return FixedWidthBlock(bits, 8, values.num_values)


def _constant_pays(values: DataBlock, levels: LevelPair) -> bool:
    """Return whether a constant page is smaller; its levels take two bytes each, but those beside a dictionary bits."""
    if levels.definition is None and levels.repetition is None:
        return True
    if isinstance(values, VariableWidthBlock):
        return values.num_values < MIN_VALUES or values.longest > levels.num_levels
    return values.bits_per_value not in (1, 8, 16, 32, 64)


def _is_constant(values: DataBlock, valid: Validity | None, first: int) -> bool:
    """Return whether all valid values equal the one at `first`."""
    if isinstance(values, VariableWidthBlock):
        return _is_constant_byte_string(values, valid, first)
    if values.bits_per_value == 1:
        return _is_constant_bit(values, valid, first)
    return _is_constant_fixed(values, valid, first)


def _is_constant_bit(values: FixedWidthBlock, valid: Validity | None, first: int) -> bool:
    sample = values.data[first // 8 + 1 : values.num_values // 8]
    if valid is None and sample.size and int(sample[0]) not in (0, 0xFF):
        return False
    bits = np.unpackbits(values.data, count=values.num_values, bitorder="little")
    return bool(((bits if valid is None else bits[valid]) == bits[first]).all())


def _is_constant_byte_string(values: VariableWidthBlock, valid: Validity | None, first: int) -> bool:
    size = int(values.offsets[first + 1] - values.offsets[first])
    last = values.num_values - 1 if valid is None else values.num_values - 1 - int(np.argmax(valid[::-1]))
    if not _same_bytes(values, first, last):
        return False
    sizes = np.diff(values.offsets)
    if ((sizes if valid is None else sizes[valid]) != size).any():
        return False
    if size == 0:
        return True
    begin = int(values.offsets[first])
    if valid is None:
        data = values.data[int(values.offsets[0]) : int(values.offsets[-1])]
    else:
        data = values.take(np.flatnonzero(valid)).data
    return bool((data.reshape(-1, size) == values.data[begin : begin + size]).all())


def _same_bytes(values: VariableWidthBlock, one: int, other: int) -> bool:
    first, second = (values.data[int(values.offsets[index]) : int(values.offsets[index + 1])] for index in (one, other))
    return bool(np.array_equal(first, second))


def _is_constant_fixed(values: FixedWidthBlock, valid: Validity | None, first: int) -> bool:
    width = values.bytes_per_value
    rows = values.data[: values.size_bytes].reshape(-1, width)
    if valid is None and (rows[-1] != rows[first]).any():
        return False
    same = values.words == values.words[first] if width in (1, 2, 4, 8) else (rows == rows[first]).all(axis=1)
    return bool(same.all() if valid is None else same[valid].all())
