"""Rows are those of Python's values, also of slices that Arrow selects wrongly from."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lance_format import arrow_rows
from lance_format.arrow_rows import _without_slices, keep_rows, take_rows

_NUM_ROWS = 60


def _vectors(*sizes: int) -> pa.Array:
    array = pa.array(np.arange(_NUM_ROWS * int(np.prod(sizes)), dtype=np.int16))
    for size in sizes:
        array = pa.FixedSizeListArray.from_arrays(array, size)
    return array


def _slices() -> list[pa.Array | pa.ChunkedArray]:
    nested = _vectors(2, 3)
    nulls = pa.FixedSizeListArray.from_arrays(
        nested.values, 3, mask=pa.array([row % 4 == 0 for row in range(_NUM_ROWS)])
    )
    offsets = pa.array(range(0, _NUM_ROWS - 15), pa.int32())
    arrays = [
        _vectors(2),
        nested,
        nulls,
        _vectors(2, 2, 2),
        pa.StructArray.from_arrays([nested, nulls], ["x", "y"]),
        pa.ListArray.from_arrays(offsets, nested.slice(16)),
        pa.MapArray.from_arrays(offsets, pa.array(range(_NUM_ROWS - 16)), nested.slice(16)),
        pa.ExtensionArray.from_storage(pa.opaque(nested.type, "vectors", "tests"), nested),
    ]
    return [
        *(array.slice(7, 30) for array in arrays),
        *(pa.chunked_array([array.slice(7, 13), array.slice(20, 17)]) for array in arrays),
    ]


@pytest.mark.parametrize("number", range(16))
def test_rows(number: int) -> None:
    array = _slices()[number]
    values = array.to_pylist()
    places = [3, None, 0, 29, 3]
    kept = [row % 3 != 1 for row in range(30)]
    whole = pa.table({"n": range(30), "a": array})
    taken = [None if place is None else values[place] for place in places]
    left = [value for value, is_kept in zip(values, kept, strict=True) if is_kept]
    for rows in (array, whole, whole.combine_chunks().to_batches()[0]):
        for found, expected in ((take_rows(rows, pa.array(places)), taken), (keep_rows(rows, pa.array(kept)), left)):
            found.validate(full=True)
            column = found if rows is array else found["a"]
            assert column.to_pylist() == expected
            assert column.type == array.type


def test_slices_within_arrays() -> None:
    pairs = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(400)).slice(10), 2)
    for inner in (pairs, pairs.slice(5)):
        whole = pa.FixedSizeListArray.from_arrays(inner.slice(0, 180), 3)
        parts = [whole, pa.StructArray.from_arrays([whole], ["x"]), pa.FixedSizeListArray.from_arrays(whole, 2)]
        for array in parts:
            kept = [row % 3 != 1 for row in range(len(array))]
            values = array.to_pylist()
            assert keep_rows(array, pa.array(kept)).to_pylist() == [
                value for value, is_kept in zip(values, kept, strict=True) if is_kept
            ]
            assert take_rows(array, pa.array([7, 2])).to_pylist() == [values[7], values[2]]


def test_arrays_that_are_no_slices_are_not_copied() -> None:
    matrices = _vectors(2, 3)
    entries = pa.array(range(_NUM_ROWS))
    offsets = pa.array(range(_NUM_ROWS + 1), pa.int32())
    for array in (
        matrices,
        pa.StructArray.from_arrays([matrices], ["x"]),
        pa.ListArray.from_arrays(offsets, matrices),
        pa.MapArray.from_arrays(offsets, entries, matrices),
        pa.ExtensionArray.from_storage(pa.opaque(matrices.type, "vectors", "tests"), matrices),
    ):
        before = pa.total_allocated_bytes()
        found = _without_slices(pa.table({"a": array}))
        assert pa.total_allocated_bytes() == before
        assert found["a"].to_pylist() == array.to_pylist()
        assert _without_slices(array.slice(1)).offset == 0


@pytest.mark.parametrize("joined_bytes", [0, 1 << 30])
def test_rows_of_chunks(monkeypatch: pytest.MonkeyPatch, joined_bytes: int) -> None:
    monkeypatch.setattr(arrow_rows, "_JOINED_BYTES", joined_bytes)
    chunks = pa.chunked_array([["a", "b"], [], ["c", None, "d"]])
    for places in ([], [4, 0], [0, 1, 2, 3, 4], [None, 3, None], [2, 2, 1]):
        expected = [None if place is None else chunks[place].as_py() for place in places]
        for whole in (chunks, chunks.cast(pa.dictionary(pa.int32(), pa.string()))):
            assert take_rows(whole, pa.array(places, pa.int64())).to_pylist() == expected
            taken = take_rows(pa.table({"a": whole, "b": whole}), pa.array(places, pa.uint64()))
            assert taken.to_pylist() == [{"a": value, "b": value} for value in expected]
    with pytest.raises(IndexError):
        take_rows(chunks, pa.array([5]))


def _large_texts() -> pa.ChunkedArray:
    """Return texts of 3 GiB, of which each third is the same memory, which nobody has touched."""
    offsets = np.array([0, 1, 3, 1 << 30], np.int32)
    chunk = pa.Array.from_buffers(pa.binary(), 3, [None, pa.py_buffer(offsets), pa.allocate_buffer(1 << 30)])
    return pa.chunked_array([chunk] * 3)


def test_rows_of_more_bytes_than_an_array_holds() -> None:
    texts = _large_texts()
    table = pa.table({"text": texts, "n": range(9)})
    with pytest.raises(pa.ArrowInvalid):
        table.take(pa.array([7, 0]))
    taken = take_rows(table, pa.array([7, 0]))
    assert taken["n"].to_pylist() == [7, 0]
    assert [len(text.as_buffer()) for text in taken["text"]] == [2, 1]


@pytest.mark.slow
def test_results_of_more_bytes_than_an_array_holds() -> None:
    taken = take_rows(_large_texts(), pa.array([2, 5, 2, 0]))
    assert [len(text.as_buffer()) for text in taken] == [(1 << 30) - 3] * 3 + [1]
