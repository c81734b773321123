"""Zones that statistics exclude are read where that costs less than another range, which changes no result."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from lance_format import InvalidInputError, LanceDataset, write_dataset
from lance_format.file import ROWS_PER_ZONE

_NUM_ZONES = 40
_NUM_ROWS = _NUM_ZONES * ROWS_PER_ZONE


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> LanceDataset:
    """Return a table of one fragment: some zones have values below 10, and all have a row that is unlike the others."""
    rng = np.random.default_rng(0)
    id_ = rng.integers(10, 1000, _NUM_ROWS)
    for zone in (0, 1, 3, 4, 6, 20, 39):
        places = zone * ROWS_PER_ZONE + rng.integers(0, ROWS_PER_ZONE, 5)
        id_[places] = rng.integers(0, 10, 5)
    divisor = np.ones(_NUM_ROWS, np.int64)
    divisor[2 * ROWS_PER_ZONE : 3 * ROWS_PER_ZONE : 100] = 0
    rows = pa.table({"id": id_, "divisor": divisor, "s": [f"text {number}" for number in range(_NUM_ROWS)]})
    return write_dataset(rows, tmp_path_factory.mktemp("bridged") / "t")


def _scanned(table: LanceDataset, predicate: str) -> int:
    """Return the number of rows that a scan read, whose result is checked."""
    scanner = table.scanner(filter=predicate)
    found = scanner.to_table()
    whole = table.to_table()
    ids = whole["id"].to_numpy()
    mask = {"id < 10": ids < 10, "id < 10 AND s > 'text'": (ids < 10) & (whole["s"].to_numpy() > "text")}[predicate]
    assert found == whole.filter(pa.array(mask))
    assert scanner.metrics is not None
    return scanner.metrics.rows_scanned


def test_near_zones_are_read_as_one_range(table: LanceDataset) -> None:
    assert _scanned(table, "id < 10") == (7 + 1) * ROWS_PER_ZONE  # zone 2; zone 5 is between two groups of rows


def test_columns_of_strings_are_read_where_they_must_be(table: LanceDataset) -> None:
    assert _scanned(table, "id < 10 AND s > 'text'") == 7 * ROWS_PER_ZONE


def test_rows_for_which_a_filter_fails_are_left_out(table: LanceDataset) -> None:
    assert table.count_rows("id < 10 AND 10 / divisor > 1") == table.count_rows("id < 10")
    with pytest.raises(InvalidInputError, match="zero"):
        table.count_rows("10 / divisor > 1")


def test_tasks_share_no_row(table: LanceDataset) -> None:
    expected = table.to_table(filter="id < 10", columns=["id", "_rowid"])
    scanner = table.scanner(filter="id < 10", columns=["id", "_rowid"])
    for size in (1 << 12, 1 << 15, 1 << 17, 1 << 20):
        tasks = scanner.plan_tasks(size)
        found = [batch for task in tasks for batch in scanner.read_task(task)]
        assert pa.Table.from_batches(found, expected.schema) == expected
    assert len(scanner.plan_tasks(1 << 12)) > 1


def test_few_batches_of_few_rows(tmp_path: Path) -> None:
    """The rows of a fragment that pass come together, however many batches they were found in."""
    rows = pa.table({"id": np.random.default_rng(1).permutation(400_000), "data": [os.urandom(8)] * 400_000})
    table = write_dataset(rows, tmp_path / "t", max_rows_per_file=100_000)
    batches = list(table.to_batches(filter="id < 100"))
    assert sum(batch.num_rows for batch in batches) == 100
    assert len(batches) <= 4
