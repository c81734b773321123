"""Fixed-size lists of primitive items, nested to any depth, in both directions between this library and pylance."""

from __future__ import annotations

import random
from pathlib import Path

import lance
import lance.file
import numpy as np
import pyarrow as pa
import pytest

import lance_format
from lance_format.errors import NotSupportedError
from lance_format.file import LanceFileReader, LanceFileWriter
from tests.arrays import make_array, same_values
from tests.nested_arrays import RandomValues

_ITEMS = [
    pa.float32(),
    pa.float16(),
    pa.int64(),
    pa.uint8(),
    pa.bool_(),
    pa.date32(),
    pa.binary(5),
    pa.decimal128(20, 2),
]


def _type(rng: random.Random) -> pa.DataType:
    arrow_type = rng.choice([pa.float32(), pa.int64(), pa.bool_(), pa.date32()])
    for _ in range(rng.randint(1, 3)):
        arrow_type = pa.list_(arrow_type, rng.choice([1, 2, 3, 8, 17]))
    wrap = rng.choice(["none", "none", "list", "struct"])
    if wrap == "list":
        return pa.list_(arrow_type)
    return pa.struct([("v", arrow_type), ("n", pa.int32())]) if wrap == "struct" else arrow_type


def _num_items(arrow_type: pa.DataType) -> int:
    """Return how many items the lists of a row have, those inside of others counted with them."""
    if pa.types.is_struct(arrow_type):
        return max(_num_items(field.type) for field in arrow_type)
    if pa.types.is_list(arrow_type):
        return _num_items(arrow_type.value_type)
    return arrow_type.list_size * _num_items(arrow_type.value_type) if pa.types.is_fixed_size_list(arrow_type) else 1


def _check_both(table: pa.Table, version: str, path: Path) -> None:
    rows = sorted({0, table.num_rows // 2, table.num_rows - 1})
    for writer_class in (LanceFileWriter, lance.file.LanceFileWriter):
        with writer_class(str(path), table.schema, version=version) as writer:
            for batch in table.combine_chunks().to_batches():
                writer.write_batch(batch)
        ours = LanceFileReader(path)
        found = ours.read_all(batch_size=100).to_table()
        found.validate(full=True)
        assert found.schema == table.schema
        assert same_values(found, table)
        assert same_values(ours.take_rows(rows).to_table(), table.take(rows))
        if writer_class is LanceFileWriter:
            theirs = lance.file.LanceFileReader(str(path))
            assert same_values(theirs.read_all(batch_size=10_000).to_table(), table)
            assert same_values(theirs.take_rows(rows).to_table(), table.take(rows))


@pytest.mark.slow
@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("seed", range(40))
def test_random_lists(seed: int, version: str, tmp_path: Path) -> None:
    rng = random.Random(seed)
    arrow_type = _type(rng)
    values = RandomValues(rng, rng.choice([0, 0.1, 0.5, 1]), 0.2, 3, null_structs=version != "2.0")
    num_rows = min(rng.choice([1, 7, 100, 900]), 1 + 50_000 // _num_items(arrow_type))
    _check_both(pa.table({"c": values.array(arrow_type, num_rows)}), version, tmp_path / "f.lance")


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("dimension", [3, 128, 1536])
def test_vectors(dimension: int, version: str, tmp_path: Path) -> None:
    numbers = np.random.default_rng(0).random((700, dimension), np.float32)
    array = pa.FixedSizeListArray.from_arrays(pa.array(numbers.ravel()), dimension)
    _check_both(pa.table({"v": array}), version, tmp_path / "v.lance")
    _check_both(pa.table({"v": array.slice(13, 400)}), version, tmp_path / "v.lance")
    some = pa.FixedSizeListArray.from_arrays(array.values, dimension, mask=pa.array(np.arange(700) % 5 == 0))
    _check_both(pa.table({"v": some}), version, tmp_path / "v.lance")


@pytest.mark.parametrize("version", ["2.0", "2.2"])
@pytest.mark.parametrize("item", _ITEMS, ids=str)
def test_every_item_type(item: pa.DataType, version: str, tmp_path: Path) -> None:
    items = make_array(item, 60, "some nulls", "small")
    array = pa.FixedSizeListArray.from_arrays(items, 3)
    _check_both(pa.table({"v": array}), version, tmp_path / "v.lance")


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("layout", [None, "fullzip"])
def test_lists_of_booleans_that_end_within_a_byte(layout: str | None, version: str, tmp_path: Path) -> None:
    metadata = None if layout is None else {"lance-encoding:structural-encoding": layout}
    for dimension in (1, 7, 1025, 2050, 20_000):
        for chance in (0, 0.5, 1):
            bits = np.arange(3 * dimension) % 3 == 0
            items = pa.array(bits, mask=np.random.default_rng(0).random(bits.size) < chance)
            array = pa.FixedSizeListArray.from_arrays(items, dimension)
            field = pa.field("v", array.type, metadata=metadata)
            data = pa.table([array], pa.schema([field]))
            with LanceFileWriter(tmp_path / "v.lance", data.schema, version=version) as writer:
                writer.write_batch(data)
            for reader in (
                LanceFileReader(tmp_path / "v.lance"),
                lance.file.LanceFileReader(str(tmp_path / "v.lance")),
            ):
                assert reader.read_all().to_table().equals(data)
                assert reader.take_rows([2]).to_table().equals(data.slice(2))


def test_more_booleans_than_a_chunk_holds_are_refused(tmp_path: Path) -> None:
    array = pa.FixedSizeListArray.from_arrays(pa.nulls(300_000, pa.bool_()), 150_000)
    writer = LanceFileWriter(tmp_path / "v.lance", pa.schema([("v", array.type)]), version="2.1")
    writer.write_batch(pa.table({"v": array}))
    with pytest.raises(NotSupportedError, match="so many booleans"):
        writer.close()


@pytest.mark.slow
@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("item", _ITEMS, ids=str)
def test_lists_of_nulls_alone(item: pa.DataType, version: str, tmp_path: Path) -> None:
    """Pylance stores no items of them."""
    for depth in (1, 2):
        for whole in (False, True):
            inner = pa.list_(item, 3)
            items = pa.nulls(30, inner) if whole else pa.FixedSizeListArray.from_arrays(pa.nulls(90, item), 3)
            array = pa.FixedSizeListArray.from_arrays(items, 3) if depth == 2 else items
            _check_both(
                pa.table({"v": array, "l": [[row] for row in range(len(array))]}), version, tmp_path / "v.lance"
            )


def test_lists_of_strings_are_refused(tmp_path: Path) -> None:
    with pytest.raises(NotSupportedError, match="'v'"):
        LanceFileWriter(tmp_path / "v.lance", pa.schema([("v", pa.list_(pa.string(), 2))]))
    assert not list(tmp_path.iterdir())


def test_structs_that_pylance_writes_in_2_0_are_refused(tmp_path: Path) -> None:
    """They are one column, of which pylance says no id of the fields below it, and which it cannot read either."""
    vectors = pa.array([[{"a": 1}], [{"a": 2}]], pa.list_(pa.struct([("a", pa.int32())]), 1))
    for name, column in {"c": vectors, "s": pa.StructArray.from_arrays([vectors], names=["v"])}.items():
        path = str(tmp_path / name)
        table = pa.table({"id": [1, 2], name: column})
        lance.write_dataset(table, path, data_storage_version="2.0", max_rows_per_file=1)
        dataset = lance_format.dataset(path)
        assert dataset.to_table(columns=["id"]) == table.select(["id"])
        acts = (
            dataset.to_table,
            lambda dataset=dataset: dataset.take([1]),
            lambda dataset=dataset, name=name: dataset.count_rows(f"{name} is null"),
            lambda dataset=dataset: dataset.optimize.compact_files(),
        )
        for act in acts:
            with pytest.raises(NotSupportedError, match=f"column '{name}': .* fixed-size list of structs"):
                act()
        assert lance_format.dataset(path).version == 1


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_rows_of_batches_that_are_slices(version: str, tmp_path: Path) -> None:
    """Arrow selects wrongly from slices of lists in lists; deleted and filtered rows, merges and compactions do so."""
    numbers = pa.array(np.arange(6 * 1200, dtype=np.int16))
    vectors = pa.FixedSizeListArray.from_arrays(pa.FixedSizeListArray.from_arrays(numbers, 2), 3)
    data = pa.table({"id": range(1200), "v": vectors})
    path = str(tmp_path / "t")
    lance_format.write_dataset(data.slice(0, 1000), path, data_storage_version=version)
    table = lance_format.dataset(path)
    table.delete("id IN (501, 970)")
    left = [row for row in data.to_pylist()[:1000] if row["id"] not in (501, 970)]
    for size in (37, 100, 1000):
        assert table.to_table(batch_size=size).to_pylist() == left
        odd = table.to_table(batch_size=size, filter="id % 2 = 1").to_pylist()
        assert odd == [row for row in left if row["id"] % 2]
    assert table.take([990, 3, 990]).to_pylist() == [left[990], left[3], left[990]]
    new = data.slice(900)
    table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(new)
    table.optimize.compact_files()
    left = [row for row in left if row["id"] < 900] + data.to_pylist()[900:]
    for found in (table.to_table(), lance.dataset(path).to_table()):
        assert sorted(found.to_pylist(), key=lambda row: row["id"]) == left
