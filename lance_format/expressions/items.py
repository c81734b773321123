"""Values that depend on a single column which is a dictionary: computed for its items, and looked up for the rows.

Scans read columns of few distinct strings so; see `lance_format.table.fragments.dictionary_columns`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_format.errors import InvalidInputError
from lance_format.expressions.nodes import Expression, columns_of
from lance_format.kernels.columns.item_bits import look_up_bits
from lance_format.kernels.jit import read_only
from lance_format.masks import filled, is_true
from lance_format.memory import empty, fixed_width

KEY_TYPE = pa.int16()
"""Type of the keys of columns of strings that are read as dictionaries."""


def dependent_nodes(expression: Expression, batch: pa.RecordBatch) -> Iterator[tuple[Expression, pa.DictionaryArray]]:
    """Yield the nodes that depend on one dictionary with fewer items than rows, without those below them.

    Parameters
    ----------
    expression : Expression
    batch : pa.RecordBatch
    """
    found = {}
    for path in columns_of(expression):
        index = batch.schema.get_field_index(path[0])
        column = batch.column(index) if len(path) == 1 and index >= 0 else None
        if isinstance(column, pa.DictionaryArray) and len(column.dictionary) < len(column):
            found[path] = column
    pending = [expression] if found else []
    while pending:
        node = pending.pop()
        columns = columns_of(node)
        if node.children and len(columns) == 1 and columns[0] in found:
            yield node, found[columns[0]]
        elif not found.keys().isdisjoint(columns):
            pending.extend(node.children)


def by_items(
    node: Expression,
    column: pa.DictionaryArray,
    compute: Callable[[Expression, pa.RecordBatch], pa.Array],
) -> pa.DictionaryArray | None:
    """Compute a node for the items of the only column that it reads; see `looked_up`.

    Parameters
    ----------
    node : Expression
    column : pa.DictionaryArray
    compute : function
        Computes a node for every row of a batch.

    Returns
    -------
    pa.DictionaryArray or None
        None if there is no value for some item, which rows may not have.
    """
    items, keys = column.dictionary, column.indices
    if keys.null_count:
        number = len(items)
        items = pa.concat_arrays([items, pa.nulls(1, items.type)])
        keys = filled(keys if number <= _highest(keys) else keys.cast(pa.int64()), number)
    ((name,),) = columns_of(node)
    try:
        values = compute(node, pa.record_batch([items], names=[name]))
    except (pa.ArrowInvalid, InvalidInputError):
        return None
    return pa.DictionaryArray.from_arrays(keys, values, safe=False)


def _highest(keys: pa.Array) -> int:
    return int(np.iinfo(keys.type.to_pandas_dtype()).max)


def looked_up(column: pa.Array) -> pa.Array:
    """Return the value of each row of a dictionary, and any other array as it is."""
    if not isinstance(column, pa.DictionaryArray):
        return column
    items, keys = column.dictionary, column.indices
    is_plain = pa.types.is_boolean(items.type) and not keys.null_count
    return _truths(items, keys) if is_plain and keys.type == KEY_TYPE and len(keys) else items.take(keys)


def _truths(items: pa.BooleanArray, keys: pa.Array) -> pa.BooleanArray:
    words = read_only(fixed_width(keys, "u2"))
    looked_at = [items.is_valid() if items.null_count else None, is_true(items)]
    buffers = [None if flags is None else _bits(flags, words) for flags in looked_at]
    return pa.Array.from_buffers(pa.bool_(), len(keys), buffers)


def _bits(flags: pa.BooleanArray, words: npt.NDArray[np.uint16]) -> pa.Buffer:
    bits = empty(-(-words.size // 8), np.uint8)
    look_up_bits(words, read_only(flags.cast(pa.uint8()).to_numpy()), bits)
    return pa.py_buffer(bits)
