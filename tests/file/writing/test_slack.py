"""Round trips of arrays with all the slack that Arrow allows: slices, garbage beneath nulls, odd dictionaries."""

from __future__ import annotations

from pathlib import Path

import lance.file
import numpy as np
import pyarrow as pa
import pyarrow.types as t
import pytest

from lance_format.file import LanceFileReader, LanceFileWriter
from tests.arrays import FLAT_TYPES, make_array

_DICTIONARIES = [pa.dictionary(pa.int8(), pa.string()), pa.dictionary(pa.uint64(), pa.float64())]
_VECTORS = [pa.list_(pa.float32(), 3), pa.list_(pa.list_(pa.int16(), 2), 2), pa.list_(pa.bool_(), 5)]
_VIEWS = [pa.string_view(), pa.binary_view()]
_SHAPES = ("plain", "struct", "list", "list of structs", "map")
_NUM_ROWS = 40


def _loose(arrow_type: pa.DataType, num_values: int, seed: int) -> pa.Array:
    """Return a slice of an array, with values beneath its nulls."""
    rng = np.random.default_rng(seed)
    total = num_values + 7
    if t.is_null(arrow_type):
        return pa.nulls(total).slice(3, num_values)
    if t.is_dictionary(arrow_type):
        values = make_array(arrow_type.value_type, 12, "some nulls", "small", seed)
        items = pa.concat_arrays([values, values.slice(2, 5)])
        keys = pa.array(rng.integers(0, len(items), total), mask=rng.random(total) < 0.3).cast(arrow_type.index_type)
        return pa.DictionaryArray.from_arrays(keys, items).slice(3, num_values)
    if t.is_fixed_size_list(arrow_type):
        items = _loose(arrow_type.value_type, total * arrow_type.list_size, seed + 1)
        full = pa.FixedSizeListArray.from_arrays(items, arrow_type.list_size)
        return _with_nulls(full, rng).slice(3, num_values)
    if arrow_type in _VIEWS:
        stored = pa.string() if arrow_type == pa.string_view() else pa.binary()
        return _loose(stored, num_values, seed).cast(arrow_type)
    style = "small" if t.is_temporal(arrow_type) else "random"  # Python has no years beyond 9999
    return _with_nulls(make_array(arrow_type, total, "no nulls", style, seed), rng).slice(3, num_values)


def _with_nulls(array: pa.Array, rng: np.random.Generator) -> pa.Array:
    """Return an array with some of its values behind a validity bitmap."""
    bitmap = pa.py_buffer(np.packbits(rng.random(len(array)) < 0.7, bitorder="little"))
    if t.is_nested(array.type):
        return pa.Array.from_buffers(array.type, len(array), [bitmap], children=[array.values])
    return pa.Array.from_buffers(array.type, len(array), [bitmap, *array.buffers()[1:]], offset=array.offset)


def _nest(shape: str, arrow_type: pa.DataType, seed: int) -> pa.Array:
    """Return rows whose null structs and lists have contents."""
    rng = np.random.default_rng(seed)
    if shape == "plain":
        return _loose(arrow_type, _NUM_ROWS, seed)
    nulls = pa.array(rng.random(_NUM_ROWS + 5) < 0.3)
    if shape == "struct":
        children = [_loose(arrow_type, _NUM_ROWS + 5, seed), pa.array(range(_NUM_ROWS + 5))]
        return pa.StructArray.from_arrays(children, ["x", "n"], mask=nulls).slice(5)
    offsets = np.cumsum([2, *rng.integers(0, 4, _NUM_ROWS + 5)]).astype(np.int32)
    items = _loose(arrow_type, int(offsets[-1]) + 2, seed)
    if shape == "list of structs":
        items = pa.StructArray.from_arrays([items], ["x"], mask=pa.array(rng.random(len(items)) < 0.3))
    if shape == "map":
        keys = pa.array([f"k{number}" for number in range(len(items))])
        return pa.MapArray.from_arrays(pa.array(offsets), keys, items, mask=nulls).slice(5)
    return pa.ListArray.from_arrays(pa.array(offsets), items, mask=nulls).slice(5)


@pytest.mark.slow
@pytest.mark.parametrize("shape", _SHAPES)
@pytest.mark.parametrize("arrow_type", [*FLAT_TYPES, *_DICTIONARIES, *_VECTORS, *_VIEWS], ids=str)
def test_what_comes_back_is_valid(arrow_type: pa.DataType, shape: str, tmp_path: Path) -> None:
    array = _nest(shape, arrow_type, seed=len(str(arrow_type)))
    array.validate(full=True)
    table = pa.table({"c": array})
    with LanceFileWriter(tmp_path / "s.lance", table.schema) as writer:
        writer.write_batch(table)
    reader = LanceFileReader(tmp_path / "s.lance")
    found = reader.read_all(batch_size=17).to_table()
    found.validate(full=True)
    assert found.to_pylist() == table.to_pylist()
    taken = reader.take_rows([1, 2, 30]).to_table()
    taken.validate(full=True)
    assert taken.to_pylist() == [table.to_pylist()[row] for row in (1, 2, 30)]
    theirs = lance.file.LanceFileReader(str(tmp_path / "s.lance")).read_all().to_table()
    assert theirs.to_pylist() == table.to_pylist()
    assert theirs.schema.types == found.schema.types
