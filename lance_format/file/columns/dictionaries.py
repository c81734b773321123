"""Arrow's dictionary arrays <-> dictionary blocks, and arrays of several dictionaries put together.

Lance stores nulls among the definition levels only, so items that are null, and keys that number them, become null keys
first. Items without a key are dropped: only values of the column are stored.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lance_format.data_block import DataBlock, DictionaryBlock, FixedWidthBlock
from lance_format.errors import CorruptFileError, InvalidInputError, NotSupportedError
from lance_format.extension_types import map_leaf_types, retype
from lance_format.masks import is_text
from lance_format.structural.rep_def import Validity

_FEW_BYTES = 8 * 1024 * 1024
"""So many bytes that rows have at most are not counted."""


def without_null_items(array: pa.DictionaryArray) -> pa.DictionaryArray:
    """Return the same values with items that are all there."""
    items = array.dictionary
    if not items.null_count:
        return array
    there = items.is_valid().to_numpy(zero_copy_only=False)
    positions = (np.cumsum(there) - 1).astype(array.type.index_type.to_pandas_dtype())
    keys = pa.array(positions, mask=~there).take(array.indices)
    return pa.DictionaryArray.from_arrays(keys, items.drop_null())


def block_of(keys: FixedWidthBlock, items: DataBlock, valid: Validity | None) -> DictionaryBlock:
    """Return the block of keys and items, without items that are not used.

    Parameters
    ----------
    keys : FixedWidthBlock
        0 where they are not valid.
    items : DataBlock
        At least one, if any key is valid.
    valid : bool[num_values] or None

    Raises
    ------
    InvalidInputError
        If a key has no item.
    """
    block = DictionaryBlock(items, keys)
    words = block.words
    if (valid is None or valid.any()) and words.size and int(words.max()) >= items.num_values:
        raise InvalidInputError(f"a dictionary array has key {int(words.max())}, but {items.num_values} items")
    used = np.zeros(max(items.num_values, 1), np.bool_)
    used[words if valid is None else words[valid]] = True
    if used.all():
        return block
    positions = np.maximum(np.cumsum(used) - 1, 0).astype(words.dtype)
    packed = FixedWidthBlock(positions[words].view(np.uint8), keys.bits_per_value, keys.num_values)
    return DictionaryBlock(items.take(np.flatnonzero(used)), packed)


def build(
    words: npt.NDArray[np.unsignedinteger], validity: pa.Buffer | None, items: pa.Array, arrow_type: pa.DictionaryType
) -> pa.DictionaryArray:
    """Return the array of keys into items.

    Parameters
    ----------
    words : unsigned integer[num_values]
        The keys, arbitrary for nulls.
    validity : pa.Buffer or None
        Bitmap of valid keys; None if all are valid.
    items : pa.Array
    arrow_type : pa.DictionaryType

    Raises
    ------
    CorruptFileError
        If a key is higher than the type allows.
    """
    dtype = np.dtype(arrow_type.index_type.to_pandas_dtype())
    highest = int(words.max(initial=0))
    if highest > np.iinfo(dtype).max:
        raise CorruptFileError(f"a dictionary key is {highest}, more than its type {arrow_type.index_type} holds")
    keys = pa.py_buffer(np.require(words, dtype, "A"))
    indices = pa.Array.from_buffers(arrow_type.index_type, words.size, [validity, keys])
    return pa.DictionaryArray.from_arrays(indices, items, safe=False)


def distinct(
    words: npt.NDArray[np.unsignedinteger], items: pa.Array
) -> tuple[npt.NDArray[np.unsignedinteger], pa.Array]:
    """Return keys and items of the same values of which each item is there once; consumers rely on that.

    Parameters
    ----------
    words : unsigned integer[num_values]
    items : pa.Array

    Raises
    ------
    NotSupportedError
        If Arrow cannot compare the items.
    """
    try:
        found = (items.view(pa.uint16()) if pa.types.is_float16(items.type) else items).dictionary_encode()
    except pa.ArrowNotImplementedError as error:
        raise NotSupportedError(f"dictionaries of {items.type} cannot be joined: {error}") from error
    if len(found.dictionary) == len(items):
        return words, items
    return found.indices.to_numpy().astype(np.uint32)[words], found.dictionary.view(items.type)


def concat(arrays: Sequence[pa.Array]) -> pa.Array:
    """Return arrays of one type as one; those of dictionaries, also inside, get a common dictionary.

    Raises
    ------
    NotSupportedError
        If one array cannot hold them: the keys cannot number all items, or 32-bit offsets not all bytes.
    """
    if len(arrays) == 1:
        return arrays[0]
    arrow_type = arrays[0].type
    # Arrow unifies dictionaries of halffloat into dictionaries of uint16.
    stand_in = map_leaf_types(arrow_type, _stand_in)
    if stand_in != arrow_type:
        return retype(concat([retype(array, stand_in) for array in arrays]), arrow_type)
    try:
        return pa.concat_arrays(arrays)
    except pa.ArrowInvalid as error:
        rows = sum(map(len, arrays))
        raise NotSupportedError(f"{rows} rows of {arrow_type} are too many for one array: {error}") from error


def _stand_in(leaf: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(leaf) and pa.types.is_float16(leaf.value_type):
        return pa.dictionary(leaf.index_type, pa.uint16())
    return leaf


def size_bytes(array: pa.Array) -> int:
    """Return the size of an array; dictionaries count at most with the items that the rows can use."""
    size = int(array.nbytes)
    for part in _dictionary_arrays(array):
        items = part.dictionary
        if len(part) < len(items):
            size -= int(items.nbytes) * (len(items) - len(part)) // len(items)
    return size


def expanded_bytes(array: pa.Array) -> int:
    """Return the size of an array with the items of dictionaries in the places of their keys, about as it would be."""
    size = size_bytes(array)
    for part in _dictionary_arrays(array):
        if is_text(part.dictionary.type):
            size += _bytes_of_rows(part)
    return size


def _bytes_of_rows(array: pa.DictionaryArray) -> int:
    sizes = pc.fill_null(pc.binary_length(array.dictionary), 0).to_numpy()
    most = len(array) * int(sizes.max(initial=0))
    if most <= _FEW_BYTES:
        return most
    return int(sizes[array.indices.drop_null().to_numpy()].sum(dtype=np.int64))


def _dictionary_arrays(array: pa.Array) -> list[pa.DictionaryArray]:
    """Return the dictionary arrays inside of an array."""
    if isinstance(array, pa.DictionaryArray):
        return [array]
    if not array.type.num_fields:
        return []
    if pa.types.is_struct(array.type):
        children = [array.field(index) for index in range(array.type.num_fields)]
    elif pa.types.is_map(array.type):
        children = [array.keys, array.items]
    elif pa.types.is_list(array.type) or pa.types.is_large_list(array.type) or pa.types.is_fixed_size_list(array.type):
        children = [array.flatten()]
    else:
        return []
    return [part for child in children for part in _dictionary_arrays(child)]
