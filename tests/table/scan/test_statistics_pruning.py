"""Rows that statistics rule out are not read, and where they settle the filter it is not computed."""

from __future__ import annotations

import functools
import random
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lance_format
from lance_format import expressions
from lance_format.table.scan.pruning import statistics_pruning
from tests.expressions.birds import make_table
from tests.expressions.predicates import predicate
from tests.table.counting import counted


@pytest.fixture(scope="module")
def evolved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two fragments without a column, and one with it."""
    path = tmp_path_factory.mktemp("pruning") / "t"
    rows = pa.table({"id": range(40_000), "text": [f"text {row * 7919}" for row in range(40_000)]})
    dataset = lance_format.write_dataset(rows, path, max_rows_per_file=20_000)
    pair = pa.struct([("a", pa.int64()), ("b", pa.string())])
    dataset.add_columns(pa.schema([pa.field("later", pa.int64()), pa.field("pair", pair)]))
    later = pa.array(range(20_000))
    pairs = pa.array([{"a": row, "b": "x"} for row in range(20_000)], pair)
    dataset.insert(rows.slice(0, 20_000).append_column("later", later).append_column("pair", pairs))
    return path


@pytest.mark.parametrize("predicate", ["later = 5", "pair.a < 10 AND later >= 0", "pair IS NOT NULL", "later > 19000"])
def test_fragments_without_a_column_are_not_read(evolved: Path, predicate: str) -> None:
    dataset, store = counted(evolved)
    scanner = dataset.scanner(["id", "text"], predicate)
    found = scanner.to_table()
    assert found.num_rows
    assert len(store.opened) == 1
    assert scanner.metrics is not None
    assert scanner.metrics.rows_skipped >= 40_000
    assert found.equals(dataset.to_table(["id", "text"], filter=f"({predicate}) OR length(text) < 0"))


@pytest.mark.parametrize(
    "predicate", ["later IS NULL", "pair.b IS NULL OR later < 0", "later IS NULL AND pair IS NULL"]
)
def test_fragments_without_a_column_all_match(evolved: Path, predicate: str) -> None:
    dataset, store = counted(evolved)
    assert dataset.count_rows(predicate) == 40_000
    assert len(store.opened) == 1, "the fragment that has the column"
    assert dataset.to_table(["id"], filter=predicate, limit=10, offset=19_995)["id"].to_pylist() == [
        *range(19_995, 20_005)
    ]


@pytest.fixture(scope="module")
def clustered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three fragments that are clustered by different columns, with deleted rows and a column in a file of its own."""
    path = tmp_path_factory.mktemp("clustered") / "t"
    birds = pa.concat_tables([make_table(seed) for seed in range(5)])
    rng = np.random.default_rng(3)
    for column in ("i32", "s", "ts"):
        rows = birds.take(rng.integers(0, len(birds), 30_000))
        rows = rows.take(pc.sort_indices(rows, [(column, "ascending")]))
        dataset = lance_format.write_dataset(rows, path, mode="append" if column != "i32" else "create")
    dataset.add_columns({"doubled": "cast(f32 as double) * 2"})
    dataset.delete("i16 > 15 OR d = date '1970-01-02'")
    return path


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_no_predicate_loses_a_row(clustered: Path, seed: int) -> None:
    dataset = lance_format.dataset(clustered)
    rng = random.Random(seed)
    for _ in range(4):
        text = predicate(rng, depth=rng.randint(0, 2))
        try:
            found = dataset.scanner(["i64"], text, with_row_address=True).to_table()
        except lance_format.InvalidInputError:  # some row has no value; a zone that is left out hides that
            continue
        expected = []
        for rows in everything(clustered):
            try:
                mask = expressions.filter_mask(expressions.as_expression(text, rows.schema), rows)
            except lance_format.InvalidInputError:
                break
            expected += rows["_rowaddr"].filter(mask).to_pylist()
        else:
            assert found["_rowaddr"].to_pylist() == expected, text
            scanner = dataset.scanner([], text, with_row_address=True)
            batches = [batch for task in scanner.plan_tasks(20_000) for batch in scanner.read_task(task)]
            assert [address for batch in batches for address in batch["_rowaddr"].to_pylist()] == expected, text


@functools.cache
def everything(path: Path) -> list[pa.RecordBatch]:
    """Read a table without a filter."""
    return list(lance_format.dataset(path).scanner(with_row_address=True, batch_size=30_000).to_batches())


@pytest.mark.parametrize(
    ("predicate", "most"),
    [
        ("id = 77777", 8192),
        ("id BETWEEN 50000 AND 60000", 3 * 8192),
        ("pair.a IN (3, 160000)", 2 * 8192),
        ("id < 0", 0),
    ],
)
def test_zones_that_cannot_match_are_not_read(tmp_path: Path, predicate: str, most: int) -> None:
    num_rows = 200_000
    pairs = pa.array([{"a": row} for row in range(num_rows)])
    texts = [f"text {row * 7919 % 1_000_003}" for row in range(num_rows)]
    rows = pa.table({"id": range(num_rows), "pair": pairs, "text": texts})
    lance_format.write_dataset(rows, tmp_path / "t", max_rows_per_file=100_000)
    dataset, store = counted(tmp_path / "t")
    dataset.to_table(["text"])
    whole = store.drain()
    dataset, store = counted(tmp_path / "t")
    scanner = dataset.scanner(["text"], predicate)
    assert scanner.to_table().equals(rows.filter(expressions_mask(predicate, rows)).select(["text"]))
    assert scanner.metrics is not None
    assert scanner.metrics.rows_scanned <= most
    assert scanner.metrics.bytes_read == store.drain() < whole / 2


def expressions_mask(text: str, rows: pa.Table) -> pa.BooleanArray:
    batch = rows.combine_chunks().to_batches()[0]
    return expressions.filter_mask(expressions.as_expression(text, batch.schema), batch)


def test_a_filter_that_zones_settle_is_not_computed(tmp_path: Path) -> None:
    rows = pa.table({"id": range(200_000), "text": [f"text {row}" for row in range(200_000)]})
    lance_format.write_dataset(rows, tmp_path / "t")
    dataset, store = counted(tmp_path / "t")
    assert dataset.count_rows("id >= 100000") == 100_000
    assert store.drain() < 150_000, "one zone of the column, and the end of the file"


class TestPlanning:
    @staticmethod
    def table(path: Path, num_fragments: int) -> Path:
        num_rows = num_fragments * 10_000
        shuffled = np.random.default_rng(5).permutation(num_rows)
        rows = pa.table({"id": range(num_rows), "shuffled": shuffled})
        lance_format.write_dataset(rows, path, max_rows_per_file=10_000)
        return path

    def test_divides_what_is_left(self, tmp_path: Path) -> None:
        dataset, store = counted(self.table(tmp_path / "t", 12))
        scanner = dataset.scanner(["shuffled"], "id BETWEEN 55010 AND 55019")
        (task,) = scanner.plan_tasks(min_tasks=8)
        assert task.ranges == ((5, 0, 8192),)
        assert len(store.opened) >= 12
        assert sum(batch.num_rows for batch in scanner.read_task(task)) == 10

    def test_of_nothing(self, tmp_path: Path) -> None:
        dataset, _ = counted(self.table(tmp_path / "t", 3))
        assert dataset.scanner(["shuffled"], "id < 0").plan_tasks() == []

    @pytest.mark.parametrize(("column", "num_fragments", "opened"), [("shuffled", 13, 4), ("id", 33, 0)])
    def test_does_not_look_where_tasks_do_so_sooner(
        self, tmp_path: Path, column: str, num_fragments: int, opened: int
    ) -> None:
        dataset, store = counted(self.table(tmp_path / "t", num_fragments))
        scanner = dataset.scanner(filter=f"{column} = 64999")
        tasks = scanner.plan_tasks()
        assert sum(task.num_rows for task in tasks) == num_fragments * 10_000
        assert len(store.opened) == opened
        assert sum(batch.num_rows for task in tasks for batch in scanner.read_task(task)) == 1


@pytest.mark.parametrize("order", ["ordered", "shuffled"])
def test_statistics_of_small_fragments_are_read_while_they_help(
    tmp_path: Path, order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = np.arange(400_000)
    if order == "shuffled":
        np.random.default_rng(0).shuffle(numbers)
    table = lance_format.write_dataset(pa.table({"a": numbers}), tmp_path / "t", max_rows_per_file=10_000)
    counts = Mock(wraps=statistics_pruning.prune)
    monkeypatch.setattr(statistics_pruning, "prune", counts)
    scanner = table.scanner(filter="a % 2 = 0 AND a >= 190000 AND a < 210000")
    assert sorted(scanner.to_table()["a"].to_pylist()) == [*range(190_000, 210_000, 2)]
    assert scanner.metrics is not None
    if order == "ordered":
        assert counts.call_count >= 38, "one that is needed as a whole lets the next be passed over"
        assert scanner.metrics.rows_scanned <= 30_000
    else:
        assert counts.call_count <= 10
        assert scanner.metrics.rows_scanned == 400_000


def test_statistics_help_again_after_fragments_in_no_order(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    shuffled = rng.integers(0, 1_000_000, 50_000)
    numbers = np.concatenate([shuffled, np.arange(1_000_000)])
    table = lance_format.write_dataset(pa.table({"a": numbers}), tmp_path / "t", max_rows_per_file=10_000)
    scanner = table.scanner(filter="a >= 800000 AND a < 800100")
    found = scanner.to_table()["a"].to_numpy()
    assert found.size == 100 + np.count_nonzero((shuffled >= 800_000) & (shuffled < 800_100))
    assert scanner.metrics is not None
    assert scanner.metrics.rows_scanned <= 100_000
