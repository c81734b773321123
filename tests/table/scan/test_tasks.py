"""Tasks of a scan: together they are the scan, and they are of about the same size."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_format
from lance_format import ColumnOrdering, InvalidInputError, LanceScanner, ScanTask
from tests.table.counting import counted

_RNG = np.random.default_rng(9)
_MB = 1024 * 1024


def _rows(num_rows: int, first: int = 0) -> pa.Table:
    values = pa.array(_RNG.random(num_rows * 32, np.float32))
    return pa.table(
        {
            "id": range(first, first + num_rows),
            "number": _RNG.integers(0, 2**62, num_rows),
            "vector": pa.FixedSizeListArray.from_arrays(values, 32),
        }
    )


def _read(scanner: LanceScanner, tasks: list[ScanTask]) -> pa.Table:
    batches = [batch for task in pickle.loads(pickle.dumps(tasks)) for batch in scanner.read_task(task)]
    return pa.Table.from_batches(batches, scanner.projected_schema)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A large fragment of many pages, small ones, and deleted rows."""
    path = tmp_path_factory.mktemp("tasks") / "t"
    lance_format.write_dataset(_rows(60_000), path)
    for first in range(60_000, 60_600, 100):
        lance_format.write_dataset(_rows(100, first), path, mode="append")
    lance_format.dataset(path).delete("id % 50 = 7 OR id BETWEEN 60100 AND 60199")
    return path


@pytest.mark.slow
@pytest.mark.parametrize("split_size_bytes", [50_000, _MB, 3 * _MB, 1024 * _MB])
@pytest.mark.parametrize("min_tasks", [1, 3, 100])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"columns": ["id"]},
        {"columns": ["vector", "_rowoffset"]},
        {"columns": ["id", "_rowid"], "filter": "number % 3 = 0"},
        {"columns": ["id"], "limit": 30_100, "offset": 17},
        {"columns": ["id"], "limit": 10, "offset": 58_790},
        {"columns": [], "with_row_id": True},
    ],
    ids=str,
)
def test_tasks_are_the_scan(path: Path, options: dict[str, Any], split_size_bytes: int, min_tasks: int) -> None:
    scanner = lance_format.dataset(path).scanner(**options)
    tasks = scanner.plan_tasks(split_size_bytes, min_tasks=min_tasks)
    assert all(task.ranges for task in tasks)
    assert _read(scanner, tasks).equals(scanner.to_table())


def test_with_a_filter_each_task_stops_at_the_limit(path: Path) -> None:
    dataset = lance_format.dataset(path)
    scanner = dataset.scanner(["id"], "id >= 0", limit=5)
    tasks = scanner.plan_tasks(200_000)
    found = [sum(batch.num_rows for batch in scanner.read_task(task)) for task in tasks]
    assert len(tasks) > 3
    assert found == [5] * len(tasks)
    with pytest.raises(InvalidInputError, match="leave the offset out"):
        dataset.scanner(["id"], "id >= 0", offset=5).plan_tasks()


def test_tasks_are_balanced_and_end_where_pages_do(tmp_path: Path) -> None:
    lance.write_dataset(_rows(400_000), str(tmp_path / "t"), max_rows_per_file=130_000)
    dataset = lance_format.dataset(tmp_path / "t")
    tasks = dataset.scanner(["vector"]).plan_tasks(8 * _MB)
    rows = [sum(stop - start for _, start, stop in task.ranges) for task in tasks]
    assert len(tasks) == 7
    assert max(rows) < 2.1 * 8 * _MB / 128
    assert [found[0] for task in tasks for found in task.ranges] == sorted(
        found[0] for task in tasks for found in task.ranges
    )
    everything = dataset.scanner(["vector"]).plan_tasks(1024 * _MB)
    assert len(everything) == 1
    assert everything[0].ranges == ((0, 0, 130_000), (1, 0, 130_000), (2, 0, 130_000), (3, 0, 10_000))
    narrow = dataset.scanner(["id"]).plan_tasks(8 * _MB)
    assert len(narrow) == 1, "the bytes of columns that are not read count"


def test_no_page_is_read_by_two_tasks(tmp_path: Path) -> None:
    lance.write_dataset(_rows(300_000), str(tmp_path / "t"))
    dataset, store = counted(tmp_path / "t")
    scanner = dataset.scanner(["vector"])
    scanner.to_table()
    whole = store.drain()
    tasks = scanner.plan_tasks(10 * _MB)
    assert len(tasks) == 4
    _read(scanner, tasks)
    assert store.drain() < whole * 1.01


def test_many_small_fragments(tmp_path: Path) -> None:
    """They are few tasks, and none is opened to plan them."""
    lance.write_dataset(_rows(2000), str(tmp_path / "t"), max_rows_per_file=1)
    dataset, store = counted(tmp_path / "t")
    scanner = dataset.scanner(["id"])
    tasks = scanner.plan_tasks(min_tasks=4)
    assert not store.opened
    assert len(tasks) == 4
    sizes = [len(task.ranges) for task in tasks]
    assert max(sizes) - min(sizes) <= 2
    assert sum(sizes) == 2000


def test_a_large_fragment_is_opened_once_to_plan_it(tmp_path: Path) -> None:
    lance.write_dataset(_rows(100_000), str(tmp_path / "t"), max_rows_per_file=25_000)
    dataset, store = counted(tmp_path / "t")
    assert len(dataset.scanner(["vector"]).plan_tasks(20 * _MB)) == 1
    assert len(store.opened) == 0, "less than one task is not looked at"
    assert len(dataset.scanner(["vector"]).plan_tasks(4 * _MB)) == 4
    assert len(store.opened) == 1, "one fragment tells what a column takes in the others"


def test_tasks_of_other_scans_are_refused(path: Path) -> None:
    scanner = lance_format.dataset(path).scanner(["id"])
    for ranges in ([(99, 0, 1)], [(0, 0, 10**9)], [(0, 5, 10), (0, 7, 12)], [(0, -1, 3)]):
        with pytest.raises(InvalidInputError, match="the task is one of another scan"):
            list(scanner.read_task(ScanTask(tuple(ranges))))
    for arguments in ({"split_size_bytes": 0}, {"min_tasks": 0}, {"split_size_bytes": True}):
        with pytest.raises(InvalidInputError, match="a whole number"):
            scanner.plan_tasks(**arguments)


def test_of_sorted_scans_yield_the_first_rows_of_each(tmp_path: Path) -> None:
    rows = pa.table({"id": range(5000), "key": [row * 7919 % 5000 for row in range(5000)]})
    dataset = lance_format.write_dataset(rows, tmp_path / "t", max_rows_per_file=1000)
    dataset.delete("key < 3")
    for given in (None, "id % 2 = 0"):
        scanner = dataset.scanner(["id"], given, limit=20, order_by=[ColumnOrdering("key", ascending=False)])
        tasks = scanner.plan_tasks(500)
        found = [pa.Table.from_batches(scanner.read_task(task)) for task in tasks]
        assert len(tasks) > 1
        assert all(part.num_rows <= 20 for part in found)
        keys = rows.take(pa.concat_tables(found)["id"]).sort_by([("key", "descending")]).slice(0, 20)
        assert keys["id"].to_pylist() == scanner.to_table()["id"].to_pylist()
    with pytest.raises(InvalidInputError, match="leave the offset out"):
        dataset.scanner(order_by=["key"], offset=1).plan_tasks()


def test_fragments_of_several_layouts_are_estimated_apart(tmp_path: Path) -> None:
    """Whether they were parsed for their rows, as with terms on addresses, or only listed, tasks are the same."""
    path = tmp_path / "t"
    for first in range(0, 4_000, 1_000):
        lance_format.write_dataset(_rows(1_000, first), path, mode="append")
    dataset = lance_format.dataset(path)
    dataset.add_columns({"twice": "id * 2"})
    for first in range(4_000, 100_000, 12_000):
        rows = _rows(12_000, first)
        dataset.insert(rows.append_column("twice", pa.array(range(12_000), pa.int64())), mode="append")
    dataset.delete("id % 9 = 4 OR id BETWEEN 2000 AND 2999")
    for columns in (["id"], ["twice"], ["vector"], ["id", "twice"], ["number", "vector", "twice"]):
        for split_size_bytes in (50_000, 700_000, 100 * _MB):
            listed = dataset.scanner(columns).plan_tasks(split_size_bytes, min_tasks=2)
            parsed = dataset.scanner(columns, "_rowaddr >= 0").plan_tasks(split_size_bytes, min_tasks=2)
            assert listed == parsed
            assert _read(dataset.scanner(columns), listed).equals(dataset.to_table(columns))


def test_fragments_are_not_parsed_to_plan_them(tmp_path: Path) -> None:
    lance_format.write_dataset(pa.table({"id": range(300)}), tmp_path / "t", max_rows_per_file=1)
    fragments = lance_format.dataset(tmp_path / "t")._table.manifest.fragments
    dataset = lance_format.dataset(tmp_path / "t")
    for given in (None, "id > 5"):
        assert dataset.scanner(["id"], given).plan_tasks()
    parsed = [entry for entry in dataset._table.manifest.fragments._entries if not isinstance(entry, bytes)]
    assert len(fragments) == 300
    assert len(parsed) <= 2
