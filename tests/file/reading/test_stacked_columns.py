"""Few rows of many columns: those of one type and form are decoded as if they were one."""

from __future__ import annotations

from pathlib import Path

import lance
import lance.file
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lance_format
from lance_format.errors import CorruptFileError, NotSupportedError
from lance_format.file import LanceFileReader, LanceFileWriter
from lance_format.file.reading import single_rows
from tests.arrays import FLAT_TYPES, make_array, same_values

_OTHERS = [
    pa.list_(pa.float32(), 3),
    pa.list_(pa.int16()),
    pa.struct({"a": pa.int64(), "b": pa.string()}),
    pa.dictionary(pa.int8(), pa.string()),
]


def _array(arrow_type: pa.DataType, num_rows: int, seed: int) -> pa.Array:
    rng = np.random.default_rng(seed)
    if pa.types.is_dictionary(arrow_type):
        return pa.DictionaryArray.from_arrays(pa.array(rng.integers(0, 3, num_rows).astype("i1")), ["a", "bc", "def"])
    if pa.types.is_struct(arrow_type):
        values = [{"a": int(value), "b": str(value)} for value in rng.integers(0, 99, num_rows)]
        return pa.array([None if number % 7 == seed % 7 else value for number, value in enumerate(values)], arrow_type)
    if arrow_type == pa.list_(pa.int16()):
        return pa.array([[1] * int(size) for size in rng.integers(0, 4, num_rows)], arrow_type)
    if pa.types.is_fixed_size_list(arrow_type):
        return pa.FixedSizeListArray.from_arrays(make_array(pa.float32(), num_rows * 3, "no nulls", "small", seed), 3)
    nulls = ("no nulls", "some nulls", "all null")[rng.integers(0, 10) // 4]
    return make_array(arrow_type, num_rows, nulls, ("small", "any")[seed % 2], seed)


@pytest.mark.parametrize("version", ["2.1", "2.2"])
@pytest.mark.parametrize("write", [LanceFileWriter, lance.file.LanceFileWriter])
@settings(max_examples=40)
@given(
    types=st.lists(st.sampled_from([*FLAT_TYPES, *_OTHERS]), min_size=1, max_size=5, unique_by=str),
    num_rows=st.integers(1, 1100),
    copies=st.integers(3, 8),
    seed=st.integers(0, 2**16),
    data=st.data(),
)
def test_reads(
    version: str,
    write: type,
    types: list[pa.DataType],
    num_rows: int,
    copies: int,
    seed: int,
    data: st.DataObject,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    arrays = [_array(each, num_rows, seed + copy) for copy in range(copies) for each in types]
    table = pa.table(arrays, [f"c{number}" for number in range(len(arrays))])
    path = str(tmp_path_factory.mktemp("stacked") / "f.lance")
    options = {"max_page_bytes": data.draw(st.sampled_from([400, 2**20]))} if write is LanceFileWriter else {}
    with write(path, table.schema, version=version, **options) as writer:
        for batch in table.to_batches(max_chunksize=data.draw(st.integers(100, 1100))):
            writer.write_batch(batch)
    expected = lance.file.LanceFileReader(path).read_all().to_table()
    reader = LanceFileReader(path)
    for size in (7, 1024):
        assert same_values(reader.read_all(batch_size=size).to_table(), expected)
    rows = data.draw(st.lists(st.integers(0, num_rows - 1), min_size=1, max_size=40, unique=True).map(sorted))
    assert same_values(reader.take_rows(rows).to_table(), expected.take(rows))
    start = data.draw(st.integers(0, num_rows - 1))
    part = reader.read_range(start, num_rows - start).to_table()
    assert same_values(part, expected.slice(start))


def test_columns_of_one_type_are_stacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    columns = {f"c{number}": np.arange(100) + number for number in range(50)}
    columns |= {f"s{number}": pa.array([f"{number}"] * 99 + [None]) for number in range(20)}
    table = lance_format.write_dataset(pa.table(columns), str(tmp_path / "t.lance"))
    numbers: list[int] = []
    take_each = single_rows._take_each

    def count(source: object, leaves: list[object], rows: object) -> object:
        numbers.append(len(leaves))
        return take_each(source, leaves, rows)

    monkeypatch.setattr(single_rows, "_take_each", count)
    expected = lance.dataset(str(tmp_path / "t.lance"))
    assert table.to_table().equals(expected.to_table())
    assert table.take([5, 99]).equals(expected.take([5, 99]))
    assert max(numbers) < 25


def test_a_damaged_column_is_named(tmp_path: Path) -> None:
    path = tmp_path / "f.lance"
    table = pa.table({f"c{number}": np.random.default_rng(number).integers(0, 2**60, 500) for number in range(9)})
    with LanceFileWriter(str(path), table.schema, checksums=False) as writer:
        writer.write_batch(table)
    (page,) = LanceFileReader(path).metadata().columns[6].pages
    data = bytearray(path.read_bytes())
    start, size = page.buffers[1].position, page.buffers[1].size
    data[start : start + size] = b"\xff" * size
    path.write_bytes(data)
    for read in (lambda: LanceFileReader(path).read_all(), lambda: LanceFileReader(path).take_rows([3])):
        with pytest.raises(CorruptFileError, match="c6"):
            read().to_table()


def test_a_column_with_a_malformed_page_is_named(tmp_path: Path) -> None:
    path = tmp_path / "f.lance"
    table = pa.table({f"c{number}": np.arange(500) for number in range(9)})
    with LanceFileWriter(str(path), table.schema, checksums=False) as writer:
        writer.write_batch(table)
    place = LanceFileReader(path)._reader.metadata.columns[6]
    data = bytearray(path.read_bytes())
    layout = data.index(b"PageLayout", place.offset) + len("PageLayout") + 2  # after the length of the value
    data[layout] = 0x7A  # a layout that nobody knows
    path.write_bytes(data)
    for read in (lambda: LanceFileReader(path).read_all(), lambda: LanceFileReader(path).take_rows([3])):
        with pytest.raises((CorruptFileError, NotSupportedError), match=r"f\.lance.*c6"):
            read().to_table()
