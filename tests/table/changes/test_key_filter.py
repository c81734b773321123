"""Finding rows by key reads only what statistics and indices leave."""

import datetime
import decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_format
from lance_format.table.changes.rows import key_filter
from lance_format.table.changes.rows.key_lookup import find_rows
from tests.table.builders import rows
from tests.table.counting import CountingStore, counted

KEYS: dict[str, list[Any]] = {
    "int8": [3, -7, None, 120],
    "uint64": [0, 2**64 - 1, None],
    "date32": [datetime.date(2020, 1, 1), datetime.date(1900, 1, 1), None],
    "timestamp": [datetime.datetime(2020, 1, 1, 5), None, datetime.datetime(1800, 1, 1)],
    "decimal": [decimal.Decimal("1.50"), decimal.Decimal("-99.99"), None],
    "string": ["", "owl", None, "Owl", "jay'"],
    "large_string": ["", "owl", "ö"],
    "binary": [b"", b"\0", None],
    "double": [0.0, -0.0, float("nan"), None, 1.5],
    "bool": [True, False, None],
}
TYPES = {
    "int8": pa.int8(),
    "uint64": pa.uint64(),
    "date32": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "decimal": pa.decimal128(10, 2),
    "string": pa.string(),
    "large_string": pa.large_string(),
    "binary": pa.binary(),
    "double": pa.float64(),
    "bool": pa.bool_(),
}


def make(path: Path) -> tuple[lance_format.LanceDataset, CountingStore]:
    lance_format.write_dataset(rows(0, 20_000), path, max_rows_per_file=1000)
    return counted(path)


def upsert(table: lance_format.LanceDataset, numbers: list[int], *, use_index: bool = True) -> tuple[int, int]:
    data = pa.table({"a": numbers, "s": ["new"] * len(numbers)})
    merge = table.merge_insert("a").when_matched_update_all().when_not_matched_insert_all().use_index(use_index)
    result = merge.execute(data)
    return result["num_updated_rows"], result["num_inserted_rows"]


def opened(store: CountingStore, part: str) -> int:
    return len({path for path in store.opened if part in path})


@pytest.mark.parametrize("kind", ["ZONEMAP", "BTREE", "BITMAP"])
def test_merges_read_the_fragments_that_may_have_the_keys(tmp_path: Path, kind: str) -> None:
    make(tmp_path)[0].create_scalar_index("a", kind)
    table, store = counted(tmp_path)
    assert upsert(table, [7, 13_007, 70_000]) == (2, 1)
    assert opened(store, "/data/") == 2
    store.drain()
    assert upsert(table, [8, 14_007], use_index=False) == (2, 0)
    assert opened(store, "/data/") > 15
    found = table.to_table(filter="s = 'new'")["a"].to_pylist()
    assert sorted(found) == [7, 8, 13_007, 14_007, 70_000]
    assert table.count_rows() == 20_001


def test_statistics_exclude_rows_without_an_index(tmp_path: Path) -> None:
    numbers = pa.table({"a": np.arange(400_000), "b": np.random.default_rng(0).random(400_000)})
    table = lance_format.write_dataset(numbers, tmp_path, max_rows_per_file=200_000)
    merge = table.merge_insert("a").when_matched_delete()
    assert "rows=8192 of 400000" in merge.analyze_plan(pa.table({"a": [5, 6]}))
    assert "rows=400000 of 400000" in merge.analyze_plan(pa.table({"a": range(0, 400_000, 1000)}))
    others = merge.when_not_matched_by_source_delete("a < 3")
    assert "rows=400000 of 400000" in others.analyze_plan(pa.table({"a": [5, 6]}))


def test_rows_that_the_source_lacks_are_found(tmp_path: Path) -> None:
    table, _ = make(tmp_path)
    table.create_scalar_index("a", "BTREE")
    merge = table.merge_insert("a").when_matched_update_all().when_not_matched_by_source_delete("a < 15000")
    merge.execute(rows(14_000, 14_010))
    assert table.count_rows() == 5010


def test_no_task_where_no_row_can_match(tmp_path: Path) -> None:
    table, _ = make(tmp_path)
    table.create_scalar_index("a", "BTREE")
    merge = table.merge_insert("a").when_matched_update_all().when_not_matched_insert_all()
    plan = merge.plan(rows(90_000, 90_003), split_size_bytes=1000)
    assert not plan.tasks
    result = plan.commit(table, [])
    assert result["num_inserted_rows"] == 3
    assert table.to_table(filter="a >= 90000") == rows(90_000, 90_003)


@pytest.mark.parametrize("most", [1, 2, 1000])
@pytest.mark.parametrize("index", [None, "BTREE", "BITMAP", "ZONEMAP"])
@pytest.mark.parametrize("name", KEYS)
def test_all_rows_with_the_keys_pass(
    tmp_path: Path, name: str, index: str | None, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_filter, "_MOST_VALUES", most)
    values = pa.array(KEYS[name], TYPES[name])
    table = lance_format.write_dataset(pa.table({"k": values, "n": range(len(values))}), tmp_path, max_rows_per_file=2)
    if index is not None:
        table.create_scalar_index("k", index)
    distinct = values.drop_null().unique()
    data = pa.table({"k": distinct, "n": [-1] * len(distinct)})
    merge = table.merge_insert("k").when_matched_update_all().when_not_matched_insert_all()
    result = merge.execute(data)
    num_valid = len(values) - values.null_count
    assert (result["num_updated_rows"], result["num_inserted_rows"]) == (num_valid, len(distinct) - num_valid)
    left = table.to_table(filter="n >= 0")
    assert left["k"].null_count == left.num_rows == values.null_count


def test_rows_are_found_by_several_columns(tmp_path: Path) -> None:
    numbers = np.arange(1000)
    made = pa.table({"a": numbers % 10, "b": [f"k{number // 10}" for number in numbers], "f": numbers / 2})
    table = lance_format.write_dataset(made, tmp_path, max_rows_per_file=100)
    table.create_scalar_index("b", "BTREE")
    for names in (["a", "b"], ["b", "f"], ["f"]):
        keys = made.select(names).take([17, 993, 5])
        assert find_rows(table._table, keys).tolist() == [(0 << 32) + 17, (9 << 32) + 93, 5]
