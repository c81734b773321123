"""Sorted tables have the same rows in another order."""

from __future__ import annotations

import json
from pathlib import Path

import lance
import pyarrow as pa
import pytest

import lance_format
from lance_format import ColumnOrdering, InvalidInputError, Progress

_ROWS = 50
_SCHEMA = pa.schema(
    [
        ("key", pa.int64()),
        ("vector", pa.list_(pa.float32(), 2)),
        pa.field("doc", pa.json_()),
        lance_format.blob_field("blob"),
        ("kind", pa.dictionary(pa.int8(), pa.string())),
        ("nested", pa.list_(pa.struct([("x", pa.int32())]))),
        ("pairs", pa.map_(pa.string(), pa.int32())),
        ("time", pa.timestamp("ns", "UTC")),
    ]
)


def _rows() -> pa.Table:
    numbers = range(_ROWS)
    return pa.table(
        [
            [number * 7 % _ROWS if number % 10 else None for number in numbers],
            pa.array([[number, number] for number in numbers], _SCHEMA.field("vector").type),
            pa.array([json.dumps({"a": number}) for number in numbers], pa.json_()),
            lance_format.blob_array([b"x" * number if number % 5 else None for number in numbers]),
            pa.DictionaryArray.from_arrays(pa.array([number % 3 for number in numbers], pa.int8()), ["a", "b", "c"]),
            pa.array([[{"x": number}] * (number % 3) for number in numbers], _SCHEMA.field("nested").type),
            pa.array([[("a", number)] for number in numbers], _SCHEMA.field("pairs").type),
            pa.array(numbers, _SCHEMA.field("time").type),
        ],
        schema=_SCHEMA,
    )


@pytest.mark.parametrize("stable", [False, True])
def test_values_of_all_types_stay(tmp_path: Path, stable: bool) -> None:
    dataset = lance_format.write_dataset(_rows(), tmp_path / "t", enable_stable_row_ids=stable, max_rows_per_file=20)
    dataset.delete("key = 21")
    options = {"blob_handling": "all_binary", "with_row_id": stable}
    expected = dataset.scanner(order_by=["key", "time"], **options).to_table().to_pylist()
    states = list[Progress]()
    done = dataset.optimize.sort_rows(["key", "time"], progress=states.append)
    assert (done.fragments_removed, done.fragments_added, dataset.version) == (3, 1, 3)
    assert dataset.scanner(**options).to_table().to_pylist() == expected
    assert lance.dataset(str(tmp_path / "t")).to_table(columns=["key"])["key"].to_pylist() == [
        row["key"] for row in expected
    ]
    assert states[-1].rows == states[-1].total_rows == len(expected)
    assert states[-1].size_bytes == states[-1].total_bytes


def test_orders_and_bad_input(tmp_path: Path) -> None:
    dataset = lance_format.write_dataset({"a": [2, None, 3, 1]}, tmp_path / "t")
    dataset.optimize.sort_rows([ColumnOrdering("a", ascending=False)])
    assert [value for value in dataset.to_table()["a"].to_pylist() if value] == [3, 2, 1]
    files = set((tmp_path / "t").rglob("*"))
    for columns in ([], ["b"]):
        with pytest.raises(InvalidInputError):
            dataset.optimize.sort_rows(columns)
    assert set((tmp_path / "t").rglob("*")) == files
    empty = lance_format.write_dataset(pa.table({"a": pa.array([], pa.int64())}), tmp_path / "empty")
    assert empty.optimize.sort_rows(["a"]).fragments_removed == 0
    assert empty.version == 1


def test_a_failure_halfway_leaves_nothing(tmp_path: Path) -> None:
    dataset = lance_format.write_dataset({"a": [2, 3, 1]}, tmp_path / "t")
    files = set((tmp_path / "t").rglob("*"))

    def fail(state: Progress) -> None:
        if state.rows:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        dataset.optimize.sort_rows(["a"], progress=fail)
    assert set((tmp_path / "t").rglob("*")) == files
    assert dataset.latest_version == 1


def test_it_starts_again_after_a_conflict(tmp_path: Path) -> None:
    dataset = lance_format.write_dataset({"a": [2, 3, 1]}, tmp_path / "t")
    conflicts = [lance_format.dataset(tmp_path / "t")]

    def interfere(state: Progress) -> None:
        if state.rows and conflicts:
            conflicts.pop().delete("a = 3")

    dataset.optimize.sort_rows(["a"], progress=interfere)
    assert dataset.to_table()["a"].to_pylist() == [1, 2]
    assert dataset.version == 3
