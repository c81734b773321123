"""Many small files that are read at once have the rows that each has for itself."""

from __future__ import annotations

import itertools
import tracemalloc
from collections.abc import Sequence
from pathlib import Path
from unittest.mock import Mock

import lance.file
import numpy as np
import pyarrow as pa
import pytest

from lance_format.file import (
    ColumnProjection,
    FileReader,
    LanceFileWriter,
    SmallFile,
    Verification,
    can_read_together,
    column_indices,
    read_small_files,
)
from lance_format.object_store.local import LocalStore
from lance_format.structural import mini_block
from tests.arrays import NULLS, flat_tables, same_values

_VERSIONS = ("2.1", "2.2")
_SIZES = (1, 3, 1, 2, 40, 1)


def _write(path: Path, table: pa.Table, version: str) -> SmallFile:
    with LanceFileWriter(path, table.schema, version=version) as writer:
        writer.write_batch(table)
    return SmallFile(str(path), path.read_bytes(), table.num_rows, Verification())


def _projections(file: SmallFile) -> list[ColumnProjection]:
    reader = FileReader(LocalStore().open_reader(file.path))
    columns = [ColumnProjection(field, column_indices(reader.schema, reader.version)) for field in reader.schema.fields]
    reader.close()
    return columns


def _check(tables: list[pa.Table], path: Path, version: str) -> None:
    files = [_write(path / f"{number}.lance", table, version) for number, table in enumerate(tables)]
    columns = _projections(files[0])
    assert can_read_together(columns)
    is_read, rows = read_small_files(files, columns)
    assert all(is_read)
    assert rows is not None
    rows.validate(full=True)
    assert same_values(pa.Table.from_batches([rows]), pa.concat_tables(tables).cast(rows.schema))


@pytest.mark.parametrize("version", _VERSIONS)
@pytest.mark.parametrize("nulls", NULLS)
def test_flat_columns(nulls: str, version: str, tmp_path: Path) -> None:
    _check(flat_tables(_SIZES, nulls), tmp_path, version)


@pytest.mark.parametrize("version", _VERSIONS)
@pytest.mark.parametrize("key_type", [pa.int8(), pa.uint64()])
@pytest.mark.parametrize(
    "values",
    [
        pa.array(["a", "", "c", "d"]),
        pa.array([b"a", b"", b"c", b"d"], pa.large_binary()),
        pa.array([0.0, -0.0, float("nan"), 2.0], pa.float16()),
        pa.array([0.0, -0.0, float("nan"), 2.0]),
        pa.array([1, 2, 3, 4]),
    ],
    ids=lambda values: str(values.type),
)
def test_dictionaries_that_differ(values: pa.Array, key_type: pa.DataType, version: str, tmp_path: Path) -> None:
    """Items are there once, as pandas needs it of categories."""
    keys, items = [[0, 1, None, 0], [1, 0], [0, 1, 1], [None, 0]], [[0, 1], [1, 2], [2, 0], [3]]
    arrays = [
        pa.DictionaryArray.from_arrays(pa.array(key, key_type), values.take(pa.array(item)))
        for key, item in zip(keys, items, strict=True)
    ]
    files = [
        _write(tmp_path / f"{number}.lance", pa.table({"a": array}), version) for number, array in enumerate(arrays)
    ]
    is_read, rows = read_small_files(files, _projections(files[0]))
    assert all(is_read)
    assert rows is not None
    found = rows["a"]
    assert found.type == arrays[0].type
    assert len(found.dictionary) == len(values)
    expected = pa.concat_arrays([array.dictionary.take(array.indices) for array in arrays])
    assert found.is_valid().equals(expected.is_valid())
    assert np.array_equal(_bits(found.dictionary.take(found.indices)), _bits(expected))


def _bits(array: pa.Array) -> np.ndarray:
    """Return what is not null, as numbers or objects that are equal only if they have the same bits."""
    values = array.drop_null().to_numpy(zero_copy_only=False)
    return values.view(f"u{values.itemsize}") if pa.types.is_floating(array.type) else values


def _nested(size: int, seed: int) -> pa.Table:
    numbers = np.random.default_rng(seed).integers(0, 100, size).tolist()
    vectors = pa.array(np.random.default_rng(seed).random(size * 64), pa.float32())
    pair = pa.struct({"a": pa.int64(), "b": pa.string()})
    return pa.table(
        {
            "list": pa.array([[n] * (n % 4) if n % 5 else None for n in numbers], pa.list_(pa.int64())),
            "texts": pa.array([[f"t{n}", None, ""][: n % 4] for n in numbers], pa.list_(pa.string())),
            "struct": pa.array([{"a": n, "b": f"b{n}"} if n % 3 else None for n in numbers], pair),
            "structs": pa.array([[{"a": n, "b": None}] * (n % 3) for n in numbers], pa.list_(pair)),
            "map": pa.array([[(f"k{n}", n)] if n % 3 else [] for n in numbers], pa.map_(pa.string(), pa.int64())),
            "vector": pa.FixedSizeListArray.from_arrays(vectors, 64),
            "large": [f"{n}" * 500 if n % 4 else "" for n in numbers],
            "all": [f"{n}" * 500 for n in numbers],
        }
    )


@pytest.mark.parametrize("version", _VERSIONS)
@pytest.mark.parametrize("name", _nested(1, 0).column_names)
def test_nested_and_large_columns(name: str, version: str, tmp_path: Path) -> None:
    if name == "map" and version == "2.1":
        pytest.skip("files of format 2.1 have no maps")
    _check([_nested(size, seed).select([name]) for seed, size in enumerate(_SIZES)], tmp_path, version)


def test_a_damaged_file_is_left_to_others(tmp_path: Path) -> None:
    tables = [pa.table({"a": [number], "b": [f"text {number}"]}) for number in range(4)]
    files = [_write(tmp_path / f"{number}.lance", table, "2.1") for number, table in enumerate(tables)]
    columns = _projections(files[0])
    whole = files[2].data
    for position in range(0, len(whole), 3):
        data = bytearray(whole)
        data[position] ^= 1 << position % 8
        files[2] = SmallFile(files[2].path, bytes(data), 1, Verification(name="2.lance"))
        is_read, rows = read_small_files(files, columns)
        assert not is_read[2]
        if rows is not None:
            assert is_read == [True, True, False, True]
            assert rows.to_pylist() == [tables[number].to_pylist()[0] for number in (0, 1, 3)]


def test_rows_that_a_damage_adds_or_takes_away(tmp_path: Path) -> None:
    """Files of pylance have no checksums: the levels of a page may tell of more rows than it has, or of fewer."""
    files = []
    for number, size in enumerate([60, 120, 60]):
        rows = pa.table({"l": [[row] * (row % 3) for row in range(size)]})
        path = tmp_path / f"{number}.lance"
        with lance.file.LanceFileWriter(str(path), rows.schema, version="2.2") as writer:
            writer.write_batch(rows)
        files.append(SmallFile(str(path), path.read_bytes(), size, Verification()))
    columns = _projections(files[0])
    assert read_small_files(files, columns)[0] == [True, True, True]
    for number, position in itertools.product(range(3), range(400)):
        data = bytearray(files[number].data)
        data[position] ^= 1
        damaged = SmallFile(files[number].path, bytes(data), files[number].num_rows, Verification())
        is_read, found = read_small_files([*files[:number], damaged, *files[number + 1 :]], columns)
        assert not all(is_read) or (found is not None and found.num_rows == 240)


def test_files_that_are_not_what_the_manifest_says(tmp_path: Path) -> None:
    files = [_write(tmp_path / f"{number}.lance", pa.table({"a": [number]}), "2.1") for number in range(3)]
    columns = _projections(files[0])
    files[0] = SmallFile("0.lance", files[0].data, 2, Verification())
    files[1] = SmallFile("1.lance", files[1].data, 1, Verification(name="2.lance"))
    is_read, rows = read_small_files(files, columns)
    assert is_read == [False, False, True]
    assert rows is not None
    assert rows.to_pylist() == [{"a": 2}]


def test_files_of_different_versions(tmp_path: Path) -> None:
    files = [_write(tmp_path / f"{version}.lance", pa.table({"a": [1, 2]}), version) for version in ("2.0", *_VERSIONS)]
    is_read, rows = read_small_files(files, _projections(files[1]))
    assert is_read == [False, True, True]
    assert rows is not None
    assert rows.to_pydict() == {"a": [1, 2, 1, 2]}
    assert read_small_files(files[:1], _projections(files[1])) == ([False], None)


@pytest.mark.parametrize("type_", [pa.int8(), pa.uint16(), pa.int64(), pa.float32(), pa.bool_(), pa.decimal128(38, 0)])
def test_files_that_differ_in_their_only_value(type_: pa.DataType, tmp_path: Path) -> None:
    values = [0, 1, 2, 5, 10, 18, 26, 34, 42, 50, 66, 98, 100, 127]  # Many are tags and lengths in the metadata, too.
    if type_ == pa.bool_():
        values = [value % 3 == 0 for value in values]
    columns = [[value, None, value, values[-1]] for value in values]
    tables = [
        pa.table({name: pa.array([value] * rows, type_) for name, value in zip("abcd", column, strict=True)})
        for rows in (1, 3)
        for column in columns
    ]
    _check(tables, tmp_path, "2.2")


@pytest.mark.parametrize("version", _VERSIONS)
def test_files_with_dictionaries(version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    tables = []
    for rows, items in ((2000, 60), (1500, 50), (1000, 40)):
        words = [f"{number} of {items} words" for number in rng.permutation(items)]
        numbers = rng.integers(0, 2**62, items)
        chosen = rng.integers(0, items, rows)
        columns = {
            "words": pa.array([words[place] for place in chosen], mask=rng.random(rows) < 0.2),
            "numbers": pa.array(numbers[chosen]),
            "lists": pa.array([[words[place]] * (place % 30) for place in chosen.tolist()], pa.list_(pa.string())),
        }
        tables.append(pa.table(columns))
    counted = Mock(wraps=mini_block.index_into_several)
    monkeypatch.setattr(mini_block, "index_into_several", counted)
    _check(tables, tmp_path, version)
    assert 3 in [len(call.args[0]) for call in counted.call_args_list]


def test_a_value_that_the_rest_of_the_metadata_has_too(tmp_path: Path) -> None:
    files = [
        _write(tmp_path / f"{number}.lance", pa.table({"a": pa.array([value] * 300, pa.binary(4))}), "2.2")
        for number, value in enumerate([b"lanc", b"e.en", b"21.P", b"abcd"])
    ]
    is_read, rows = read_small_files(files, _projections(files[0]))
    assert all(is_read)
    assert rows is not None
    assert rows.column(0).to_pylist() == [value for value in [b"lanc", b"e.en", b"21.P", b"abcd"] for _ in range(300)]


_WORDS = tuple(letter * 4000 for letter in "abc")


@pytest.mark.parametrize(
    ("values", "options"),
    [
        pytest.param(["x" * 60_000, "y" * 60_000] * 100, {}, id="lz4"),
        pytest.param(["x" * 60_000, "y" * 60_000] * 100, {"lance-encoding:compression": "zstd"}, id="zstd"),
        pytest.param(_WORDS[:1] * 1000, {}, id="constant"),
        pytest.param(["x" * 20_000, "y" * 20_000] * 100, {}, id="dictionary"),
    ],
)
def test_texts_that_become_large(values: Sequence[str], options: dict[str, str], tmp_path: Path) -> None:
    field = pa.field("text", pa.string(), metadata=options)
    table = pa.table([pa.array(values, pa.string())], pa.schema([field]))
    files = [_write(tmp_path / "one.lance", table, "2.2")] * 64
    assert len(files[0].data) < 16 * 1024 < table.nbytes
    columns = _projections(files[0])
    tracemalloc.start()
    is_read, rows = read_small_files(files, columns)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert rows is None
    assert not any(is_read)
    assert peak < 160 << 20


def test_columns_that_become_large_together(tmp_path: Path) -> None:
    table = pa.table({f"c{number}": _WORDS[:1] * 100 for number in range(10)})
    files = [_write(tmp_path / "one.lance", table, "2.2")] * 64
    columns = _projections(files[0])
    assert all(read_small_files(files, columns[:1])[0])
    assert not any(read_small_files(files, columns)[0])
