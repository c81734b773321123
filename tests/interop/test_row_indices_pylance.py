"""Indices that name rows, of both libraries: filters find the same rows by them as without, and read less."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import re
import shutil
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_format
from lance_format import CorruptFileError, DatasetNotFoundError
from lance_format.file import LanceFileWriter
from tests.table.counting import counted

KINDS = ("BTREE", "BITMAP")
COLUMNS = ("i", "f", "s", "b", "d", "t", "x", "bin", "g.y")


def _rows(rng: np.random.Generator, count: int) -> pa.Table:
    def mask() -> np.ndarray[Any, np.dtype[np.bool_]]:
        return rng.random(count) < rng.choice([0, 0.05, 0.9])

    values = int(rng.choice([3, 50, 10**6]))
    floats = rng.choice([0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 2.25, 7.5], count)
    cents = [decimal.Decimal(int(value)) / 100 for value in rng.integers(-5000, 5000, count)]
    columns: dict[str, Any] = {
        "i": pa.array(rng.integers(-values, values, count), mask=mask()),
        "f": pa.array(np.where(rng.random(count) < 0.5, floats, rng.integers(0, 50, count) / 4), mask=mask()),
        "s": pa.array([f"k{value}" for value in rng.integers(0, values, count)], mask=mask()),
        "b": pa.array(rng.random(count) < 0.01, mask=mask()),
        "d": pa.array(rng.integers(0, 3000, count), pa.int32()).cast(pa.date32()),
        "t": pa.array(rng.integers(0, 10**12, count), pa.timestamp("us")),
        "x": pa.array(cents, pa.decimal128(10, 2)),
        "bin": pa.array([bytes([value]) * 3 for value in rng.integers(0, 255, count).tolist()]),
        "g": pa.StructArray.from_arrays([pa.array(rng.integers(0, 100, count))], ["y"]),
        "id": np.arange(count),
    }
    return pa.table(columns)


def _spelled(value: Any) -> str:
    if isinstance(value, str):
        return f"'{value}'"
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if isinstance(value, datetime.datetime):
        return f"timestamp '{value}'"
    return f"date '{value}'" if isinstance(value, datetime.date) else str(value)


def _filters(rng: np.random.Generator, rows: pa.Table) -> list[str]:
    found = []
    for name in COLUMNS:
        column = rows["g"].combine_chunks().field("y") if name == "g.y" else rows[name]
        some = column.take(pa.array(rng.integers(0, rows.num_rows, 8))).to_pylist()
        finite = [value for value in some if value is not None and not (isinstance(value, float) and value - value)]
        finite = [value for value in finite if value == value]
        if finite:
            one, other = _spelled(finite[0]), _spelled(finite[-1])
            asked = [
                f"{name} = {one}",
                f"{name} IN ({', '.join(map(_spelled, finite))})",
                f"{name} > {one} AND {name} < {other}",
                f"{name} >= {one} AND id % 3 = 0",
                f"{name} = {one} OR {name} IS NULL",
                f"NOT ({name} = {one})",
                f"{name} IS NULL",
            ]
            found += [str(given) for given in rng.choice(asked, 2, replace=False)]
    return found


def _change(rng: np.random.Generator, path: str, count: int) -> None:
    """Change the table, by either library."""
    theirs, ours = lance.dataset(path), lance_format.dataset(path)
    some = f"id % {rng.integers(3, 30)} = 2"
    match rng.integers(0, 10):
        case 0:
            theirs.delete(some)
        case 1:
            theirs.insert(_rows(rng, count // 4 + 1))
        case 2:
            theirs.update({"i": "i + 1", "s": "'k7'"}, where=some)
        case 3:
            theirs.optimize.optimize_indices(index_names=[f"{name}_idx" for name in COLUMNS if "." not in name])
        case 4:
            theirs.optimize.compact_files(target_rows_per_fragment=2 * count)
        case 5:
            ours.delete(some)
        case 6:
            ours.update({"i": "i - 2"}, where=some)
        case 7 | 8:
            merged = rng.choice([None, 0, 1, 2])
            ours.optimize.optimize_indices(num_indices_to_merge=merged, retrain=bool(rng.random() < 0.2))
        case _:
            ours.optimize.compact_files(target_rows_per_fragment=2 * count)


@pytest.mark.parametrize("seed", [*range(3), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(3, 8))])
def test_filters_find_the_same_rows(tmp_path: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    path, count = str(tmp_path / "t"), int(rng.choice([50, 3000, 20_000]))
    rows = _rows(rng, count)
    size = max(count // int(rng.integers(1, 6)), 1)
    table = lance.write_dataset(rows, path, max_rows_per_file=size, enable_stable_row_ids=bool(seed % 2))
    for column in COLUMNS:
        maker = lance_format.dataset(path) if rng.random() < 0.6 else table
        maker.create_scalar_index(column, str(rng.choice(KINDS)))
        table.checkout_latest()
    num_used = 0
    for step in range(4):
        if step:
            _change(rng, path, count)
        _check_pylance(path, _filters(rng, rows))
        dataset = lance_format.dataset(path)
        assert dataset.verify().problems == ()
        for given in _filters(rng, rows):
            scanner = dataset.scanner(["id"], given)
            found = scanner.to_table()
            num_used += 0 if scanner.metrics is None else scanner.metrics.indices_loaded
            assert found.equals(dataset.scanner(["id"], given, use_scalar_index=False).to_table()), given
            tasks = scanner.plan_tasks(200_000, min_tasks=2)
            batches = [batch for task in tasks for batch in scanner.read_task(task)]
            assert pa.Table.from_batches(batches, scanner.projected_schema).equals(found), given
    assert num_used > 5


def _check_pylance(path: str, filters: list[str]) -> None:
    theirs = lance.dataset(path)
    for given in filters:
        if re.match(r"(NOT \()?(x|bin) ", given):
            continue  # pylance cannot parse these values
        found = theirs.scanner(["id"], filter=given, with_row_id=True).to_table()
        expected = theirs.scanner(["id"], filter=given, with_row_id=True, use_scalar_index=False).to_table()
        assert found.sort_by("_rowid").equals(expected.sort_by("_rowid")), given


def test_btree_of_pylance_names_addresses_where_ids_are_stable(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    rows = pa.table({"id": range(1000), "key": range(1000)})
    theirs = lance.write_dataset(rows, path, max_rows_per_file=100, enable_stable_row_ids=True)
    theirs.update({"key": "key + 5000"}, where="id % 100 < 5")
    theirs.create_scalar_index("key", "BTREE")
    theirs.update({"key": "key + 5000"}, where="id % 100 = 7")
    theirs.delete("id = 8")
    for change in (lambda: None, theirs.optimize.compact_files, lambda: lance.dataset(path).delete("id = 9")):
        change()
        table = lance_format.dataset(path)
        (index,) = table._table.manifest.indices
        assert index.message.index_version == 1
        for key, expected in [(3, []), (5003, [3]), (7, []), (5007, [7]), (8, []), (77, [77]), (5903, [903])]:
            scanner = table.scanner(["id"], f"key = {key}")
            assert scanner.to_table()["id"].to_pylist() == expected
            assert scanner.metrics is not None
            assert scanner.metrics.indices_loaded == 1
        version = table.version
        table.optimize.optimize_indices()
        assert table.version == version


@pytest.mark.parametrize("is_apart", [False, True], ids=["one file", "a file of its own"])
@pytest.mark.parametrize("position", [0, 2], ids=["first", "last"])
@pytest.mark.parametrize("kind", KINDS)
def test_rows_changed_in_place_are_not_found_by_former_values(
    tmp_path: Path, kind: str, position: int, *, is_apart: bool
) -> None:
    path = str(tmp_path / "t")
    rows = pa.table({"id": range(300), "name": ["owl"] * 300, "key": range(300)})
    table = lance_format.write_dataset(rows.drop(["key"]) if is_apart else rows, path, max_rows_per_file=100)
    if is_apart:
        table.add_columns(rows.select(["key"]).to_reader())
    table.create_scalar_index("key", kind)
    changed = pa.table({"id": [100 * position + 7], "key": [5007]})
    table.merge_insert("id").when_matched_update_all().write_mode("rewrite_columns").execute(changed)
    table.optimize.optimize_indices(num_indices_to_merge=0)
    assert len(table.list_indices()) == 1
    for library in (table, lance.dataset(path)):
        assert library.to_table(filter=f"key = {100 * position + 7}").num_rows == 0
        assert library.to_table(filter="key = 5007")["id"].to_pylist() == changed["id"].to_pylist()
    table.insert(pa.table({"id": [1001], "key": [1001], "name": ["emu"]}))
    table.optimize.optimize_indices(num_indices_to_merge=0)
    assert len(table.list_indices()) == 2


@pytest.mark.parametrize("is_cleaned", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("position", [0, 2], ids=["first", "last"])
def test_rows_that_pylance_moved_are_not_found_by_former_values(
    tmp_path: Path, kind: str, position: int, *, is_cleaned: bool
) -> None:
    path = str(tmp_path / "t")
    rows = pa.table({"id": range(40), "name": ["owl"] * 40, "key": range(40)})
    table = lance_format.write_dataset(rows, path, max_rows_per_file=10)
    table.create_scalar_index("key", kind)
    changed = pa.table({"id": range(10 * position, 10 * position + 20), "key": range(500, 520)})
    table.merge_insert("id").when_matched_update_all().write_mode("rewrite_columns").execute(changed)
    table.delete("id % 5 = 1")
    lance.dataset(path).optimize.compact_files(target_rows_per_fragment=20)
    table.checkout_latest()
    table.insert(pa.table({"id": [100], "name": ["emu"], "key": [100]}))
    if is_cleaned:
        table.cleanup_old_versions(older_than=datetime.timedelta(0))
    table.optimize.optimize_indices(num_indices_to_merge=0)
    for library in (table, lance.dataset(path)):
        assert library.to_table(filter=f"key = {10 * position + 7}").num_rows == 0
        assert library.to_table(filter="key = 507")["id"].to_pylist() == [10 * position + 7]
        assert library.to_table(filter="key = 100")["id"].to_pylist() == [100]
    table.insert(pa.table({"id": [101], "name": ["emu"], "key": [101]}))
    num_parts = len(table.list_indices())
    table.optimize.optimize_indices(num_indices_to_merge=0)
    assert len(table.list_indices()) == num_parts + 1


@pytest.mark.parametrize("maker", [lance, lance_format])
@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("position", [0, 2], ids=["first", "last"])
def test_rows_changed_in_place_are_not_taken_for_null(
    tmp_path: Path, position: int, maker: Any, *, stable: bool
) -> None:
    path = str(tmp_path / "t")
    rows = pa.table({"id": range(30), "name": ["owl"] * 30, "key": [None, 1] * 15})
    table = lance_format.write_dataset(rows, path, max_rows_per_file=10, enable_stable_row_ids=stable)
    maker.dataset(path).create_scalar_index("key", "ZONEMAP")
    table.checkout_latest()
    changed = pa.table({"id": range(10 * position, 10 * position + 10), "key": [1, None] * 5})
    table.merge_insert("id").when_matched_update_all().write_mode("rewrite_columns").execute(changed)
    table.optimize.optimize_indices(num_indices_to_merge=0)
    assert len(table.list_indices()) == 1
    expected = [number for number in range(30) if (number // 10 == position) == (number % 2 == 1)]
    for library in (table, lance.dataset(path)):
        assert library.to_table(["id"], filter="key IS NULL")["id"].to_pylist() == expected
        assert library.count_rows("key IS NOT NULL") == 15
    table.insert(pa.table({"id": [30], "name": ["emu"], "key": [7]}))
    table.optimize.optimize_indices(num_indices_to_merge=0)
    assert len(table.list_indices()) == 2


@pytest.mark.parametrize("is_cleaned", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_replaced_files_are_not_found_by_former_values(tmp_path: Path, kind: str, *, is_cleaned: bool) -> None:
    """The file of all columns of the last fragment: nothing in the manifest tells that there was another."""
    path = tmp_path / "t"
    table = lance_format.write_dataset(pa.table({"key": range(300)}), path, max_rows_per_file=100)
    table.create_scalar_index("key", kind)
    with LanceFileWriter(path / "data" / "new.lance") as writer:
        writer.write_batch(pa.table({"key": range(1000, 1100)}))
    file = dataclasses.replace(table.get_fragment(2).metadata.files[0], path="new.lance", file_size_bytes=None)
    replacement = lance_format.LanceOperation.DataReplacement([(2, file)])
    table = lance_format.LanceDataset.commit(table, replacement, table.version)
    table.insert(pa.table({"key": range(400, 410)}))
    if is_cleaned:
        table.cleanup_old_versions(older_than=datetime.timedelta(0))
    table.optimize.optimize_indices(num_indices_to_merge=0)
    library = lance.dataset(str(path))
    assert library.count_rows("key = 1000") == library.count_rows("key = 405") == 1
    assert library.count_rows("key = 200") == 0
    assert table.count_rows("key = 200") == 0


@pytest.mark.parametrize("change", ["update", "merge", "column", "compaction"])
@pytest.mark.parametrize("kind", KINDS)
def test_rows_with_stable_ids_are_not_found_by_former_values(tmp_path: Path, kind: str, change: str) -> None:
    path = str(tmp_path / "t")
    rows = pa.table({"id": range(1000), "key": pa.array(range(1000)).cast(pa.int64())})
    table = lance_format.write_dataset(rows, path, max_rows_per_file=100, enable_stable_row_ids=True)
    table.create_scalar_index("key", kind)
    table.insert(pa.table({"id": [1000], "key": [1000]}))
    table.optimize.optimize_indices()
    num_parts = len(table.list_indices())
    assert num_parts == 2
    theirs = lance.dataset(path)
    match change:
        case "update":
            theirs.update({"key": "key + 5000"}, where="id < 50")
        case "merge":
            table.merge_insert("id").when_matched_update_all().execute(pa.table({"id": [7], "key": [5007]}))
        case "column":
            source = pa.table({"id": [7], "key": [5007]})
            fragment, fields = theirs.get_fragments()[0].update_columns(source, left_on="id", right_on="id")
            operation = lance.LanceOperation.Update(updated_fragments=[fragment], fields_modified=fields)
            lance.LanceDataset.commit(path, operation, read_version=theirs.version)
        case _:
            table.update({"key": "key + 5000"}, where="id < 50")
            table.optimize.compact_files(target_rows_per_fragment=100)
    table.checkout_latest()
    table.optimize.optimize_indices(num_indices_to_merge=0)
    assert len(table.list_indices()) < num_parts + 1
    for library in (table, lance.dataset(path)):
        for key, expected in [(7, []), (5007, [7]), (77, [77]), (1000, [1000])]:
            assert library.to_table(filter=f"key = {key}")["id"].to_pylist() == expected
    table.insert(pa.table({"id": [1001], "key": [1001]}))
    num_parts = len(table.list_indices())
    table.optimize.optimize_indices(num_indices_to_merge=0)
    assert len(table.list_indices()) == num_parts + 1


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("indexed") / "t"
    rng = np.random.default_rng(0)
    rows = pa.table({"key": rng.permutation(200_000), "few": np.arange(200_000) // 40 % 1000, "x": rng.random(200_000)})
    table = lance.write_dataset(rows, str(path), max_rows_per_file=20_000)
    table.create_scalar_index("key", "BTREE")
    table.create_scalar_index("few", "BITMAP")
    return path


@pytest.mark.parametrize(("given", "rows"), [("key = 77", 1), ("key IN (5, 199999)", 2), ("few = 3 AND key > -1", 200)])
def test_only_rows_of_the_answer_are_planned(indexed: Path, given: str, rows: int) -> None:
    dataset, store = counted(indexed)
    scanner = dataset.scanner(["x"], given)
    assert sum(task.num_rows for task in scanner.plan_tasks()) == rows
    assert "indices: " in scanner.explain_plan()
    store.drain()
    assert scanner.to_table().num_rows == rows
    read = store.drain()
    assert dataset.scanner(["x"], given, use_scalar_index=False).to_table().num_rows == rows
    assert read < store.drain() / 2


def test_segments_that_pylance_makes_by_fragment_are_used_and_merged(indexed: Path, tmp_path: Path) -> None:
    path = shutil.copytree(indexed, tmp_path / "t")
    theirs = lance.dataset(str(path))
    made = [
        theirs.create_index_uncommitted("key", "BTREE", name="keys", fragment_ids=[fragment.fragment_id])
        for fragment in theirs.get_fragments()
    ]
    lance_format.dataset(path).drop_index("key_idx")
    theirs.checkout_latest()
    theirs.commit_existing_index_segments("keys", "key", made)
    dataset = lance_format.dataset(path)
    scanner = dataset.scanner(["x"], "key = 77")
    assert scanner.to_table().num_rows == sum(task.num_rows for task in scanner.plan_tasks()) == 1
    assert scanner.metrics is not None
    assert scanner.metrics.parts_loaded == len(made) == 10
    dataset.optimize.optimize_indices(index_names=["keys"], num_indices_to_merge=10)
    assert sum(index["name"] == "keys" for index in dataset.list_indices()) == 1
    assert lance.dataset(str(path)).to_table(filter="key = 77").num_rows == 1


def test_many_rows_are_scanned(indexed: Path) -> None:
    scanner = lance_format.dataset(indexed).scanner(["x"], "key > 1000")
    assert sum(task.num_rows for task in scanner.plan_tasks()) == 200_000
    assert scanner.to_table().num_rows == 198_999


def test_uncovered_fragments_are_read(indexed: Path, tmp_path: Path) -> None:
    path = shutil.copytree(indexed, tmp_path / "t")
    lance.dataset(str(path)).insert(pa.table({"key": [77, 78], "few": [1, 2], "x": [0.5, 0.25]}))
    scanner = lance_format.dataset(path).scanner(["key"], "key = 77")
    assert scanner.to_table()["key"].to_pylist() == [77, 77]
    assert len(scanner.plan_tasks()[0].ranges) == 2


@pytest.mark.parametrize("name", ["page_lookup.lance", "page_data.lance", "bitmap_page_lookup.lance"])
def test_damaged_and_missing_files_are_named(indexed: Path, tmp_path: Path, name: str) -> None:
    path = shutil.copytree(indexed, tmp_path / "t")
    given = "few = 3" if name.startswith("bitmap") else "key = 77"
    (file,) = path.glob(f"_indices/*/{name}")
    content = file.read_bytes()
    rng = np.random.default_rng(1)
    errors = []
    for _ in range(40):
        damaged = bytearray(content)
        damaged[int(rng.integers(0, len(damaged)))] ^= 1 << int(rng.integers(0, 8))
        file.write_bytes(damaged)
        try:
            lance_format.dataset(path).to_table(filter=given)
        except CorruptFileError as error:
            errors.append(str(error))
    assert all("index" in error for error in errors)
    file.write_bytes(content[:-7])
    with pytest.raises(CorruptFileError, match=f"{name}: index"):
        lance_format.dataset(path).to_table(filter=given)
    file.unlink()
    with pytest.raises(DatasetNotFoundError, match="missing; if a cleanup"):
        lance_format.dataset(path).to_table(filter=given)
    assert lance_format.dataset(path).scanner(filter=given, use_scalar_index=False).to_table().num_rows > 0
