"""New columns whose values the caller has by address."""

from __future__ import annotations

import pickle
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_format
from lance_format import BackfilledFragments, ColumnBackfill, InvalidInputError, LanceDataset
from tests.table.leftovers import leftovers

NEW = pa.schema({"size": pa.int64(), "vector": pa.list_(pa.float32(), 2)})


@pytest.fixture(params=[False, True], ids=["addresses", "stable row ids"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> LanceDataset:
    """Return a table of four fragments with deleted rows."""
    path = tmp_path / "table.lance"
    lance_format.write_dataset(
        pa.table({"id": range(400)}), path, max_rows_per_file=100, enable_stable_row_ids=request.param
    )
    table = lance_format.dataset(path)
    table.delete("id IN (0, 250, 399)")
    return table


def values(ids: list[int]) -> pa.RecordBatch:
    vectors = pa.array([[float(number), 0.5] for number in ids], pa.list_(pa.float32(), 2))
    return pa.record_batch({"size": pa.array([number * 3 for number in ids], pa.int64()), "vector": vectors})


def addresses(ids: list[int]) -> np.ndarray:
    return np.array([(number // 100 << 32) + number % 100 for number in ids], np.uint64)


def write(table: LanceDataset, plan: ColumnBackfill, number: int, *parts: list[int]) -> BackfilledFragments:
    with plan.open_writer(table, number) as writer:
        for ids in parts:
            writer.write(addresses(ids), values(ids))
        result = writer.finish()
    return BackfilledFragments.from_bytes(pickle.loads(pickle.dumps(result)).to_bytes())


def test_rows_get_their_values(table: LanceDataset) -> None:
    before = table.to_table(columns=["id", *(["_rowid"] if table.has_stable_row_ids else [])])
    files = {file.path for fragment in table.get_fragments() for file in fragment.data_files()}
    plan = table.plan_column_backfill(NEW)
    results = [
        write(table, plan, 1, [305, 307], [398]),
        write(table, plan, 0, list(range(1, 60)), [*range(60, 100), *range(110, 120)]),
    ]
    assert plan.commit(table, results) == 112
    known = {305, 307, 398, *range(1, 100), *range(110, 120)}
    found = lance.dataset(table.uri)
    found.validate()
    for row in found.to_table().to_pylist():
        number = row["id"]
        assert row["size"] == (number * 3 if number in known else None)
        assert row["vector"] == ([number, 0.5] if number in known else None)
    assert table.to_table() == found.to_table()
    assert table.to_table(columns=before.schema.names) == before
    assert [len(fragment.data_files()) for fragment in table.get_fragments()] == [2, 2, 1, 2]
    assert files <= {file.path for fragment in table.get_fragments() for file in fragment.data_files()}
    assert leftovers(Path(table.uri)) == set()
    version = table.version
    assert plan.commit(table, results) == 112
    assert table.latest_version == version


def test_no_values_at_all(table: LanceDataset) -> None:
    plan = table.plan_column_backfill(NEW)
    assert plan.commit(table, []) == 0
    assert lance.dataset(table.uri).to_table()["size"].null_count == 397


def test_wrong_rows(table: LanceDataset) -> None:
    plan = table.plan_column_backfill(NEW)
    for ids, message in {
        (5, 5): "row 5 of .* has several values, or the rows are not sorted",
        (7, 5): "has several values, or the rows are not sorted",
        (105, 5): "must be ascending",
        (900,): "has no fragment 9",
    }.items():
        with pytest.raises(InvalidInputError, match=message):
            write(table, plan, 0, list(ids))
    with (
        pytest.raises(InvalidInputError, match="there is no row 100 in fragment 0"),
        plan.open_writer(table, 0) as writer,
    ):
        writer.write(np.array([100], np.uint64), values([1]))
    with pytest.raises(InvalidInputError, match="2 addresses of 1 rows"):
        plan.open_writer(table, 0).write(np.zeros(2, np.uint64), values([1]))
    results = [write(table, plan, 0, [5]), write(table, plan, 1, [6])]
    with pytest.raises(InvalidInputError, match="two tasks wrote columns of one fragment"):
        plan.commit(table, results)
    with pytest.raises(InvalidInputError, match="one result of each task from 0 to 0"):
        plan.commit(table, results[1:])
    plan.abort(table)
    assert leftovers(Path(table.uri)) == set()
    assert table.latest_version == 2


def test_wrong_columns_and_bytes(table: LanceDataset) -> None:
    with pytest.raises(InvalidInputError, match="'id' exists already"):
        table.plan_column_backfill(pa.schema({"id": pa.int64()}))
    with pytest.raises(InvalidInputError, match="no column given"):
        table.plan_column_backfill(pa.schema([]))
    for data in (b"", b"\0" * 16, b"\0" * 16 + b"[1]", b"\0" * 16 + b'["a", [{"id": 1}]]', b"\0" * 16 + b"[" * 100_000):
        with pytest.raises(InvalidInputError, match=r"no result of a column backfill|malformed"):
            BackfilledFragments.from_bytes(data)
