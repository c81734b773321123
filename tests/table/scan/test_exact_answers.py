"""Filters all of whose terms indices answer exactly: their columns are not read, and what is deleted is left out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lance_format import InvalidInputError, LanceDataset, write_dataset

_NUM_ROWS = 30_000
_EXACT = [
    "a = 17",
    "a IN (3, 29999, 5)",
    "a < 40",
    "a + 0 = 17",
    "b = 3",
    "b IS NULL AND a BETWEEN 100 AND 900",
    "b = 3 AND a < 700",
    "array_has(l, 'label 3')",
    "array_has_any(l, ['label 3', 'label 55', 'none'])",
    "array_has_all(l, ['label 3', 'label 13']) AND a < 9000",
    "array_has(l, 'label 3') OR array_has(l, 'label 4') AND array_has(l, 'label 14')",
]
_BOUNDED = ["a < 40 AND c > 12", "s LIKE '%text 29%' AND a < 2000", "a = 17 OR b = 3 AND a < 700"]
_BOUNDED += ["array_has(l, 'label 3') AND array_length(l) = 1", "array_has(f, 0.0)", "array_has(f, 3.0) AND a < 2000"]


def _rows(first: int, num_rows: int) -> pa.Table:
    numbers = np.random.default_rng(first).permutation(num_rows) + first
    few = pa.array(numbers % 50, mask=numbers % 7 == 0)
    labels = [[f"label {number % each}" for each in (60, 37)][number % 3 :] or None for number in numbers.tolist()]
    floats = [[number % 60 or -0.0, 0.5] for number in numbers.tolist()]
    lists = {"l": pa.array(labels, pa.list_(pa.string())), "f": pa.array(floats, pa.list_(pa.float64()))}
    texts = [f"text {number}" for number in numbers]
    return pa.table({"a": numbers, "b": few, "c": numbers % 100, "s": texts, **lists})


@pytest.fixture(params=[False, True], ids=["addresses", "stable_ids"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> LanceDataset:
    dataset = write_dataset(
        _rows(0, _NUM_ROWS), tmp_path / "t", max_rows_per_file=1500, enable_stable_row_ids=request.param
    )
    dataset.create_scalar_index("a", "BTREE")
    dataset.create_scalar_index("b", "BITMAP")
    dataset.create_scalar_index("s", "NGRAM")
    for column in ("l", "f"):
        dataset.create_scalar_index(column, "LABEL_LIST")
    return dataset


def _counted(dataset: LanceDataset, predicate: str) -> tuple[int, int]:
    """Return the number of matching rows, and of bytes of data files that were read."""
    scanner = dataset.scanner(columns=[], filter=predicate)
    num_rows = scanner.count_rows()
    assert scanner.metrics is not None
    return num_rows, scanner.metrics.bytes_read


@pytest.mark.parametrize("predicate", [*_EXACT, *_BOUNDED])
def test_same_rows_as_without_indices(table: LanceDataset, predicate: str) -> None:
    table.delete("a % 5 = 2")
    dataset = write_dataset(_rows(_NUM_ROWS, 4000), table.uri, mode="append")
    dataset.update({"b": "3"}, where="a % 1000 = 4")
    for columns in (None, ["s"], ["a", "_rowid"], ["_rowaddr"]):
        for window in ({}, {"limit": 5}, {"limit": 9, "offset": 4}):
            found = dataset.to_table(columns=columns, filter=predicate, **window)
            assert found == dataset.to_table(columns=columns, filter=predicate, use_scalar_index=False, **window)
    assert dataset.count_rows(predicate) == dataset.to_table(filter=predicate, use_scalar_index=False).num_rows


@pytest.mark.parametrize("predicate", _EXACT)
def test_counts_read_no_data_file(table: LanceDataset, predicate: str) -> None:
    expected = table.to_table(filter=predicate, use_scalar_index=False).num_rows
    assert _counted(table, predicate) == (expected, 0)


@pytest.mark.parametrize("predicate", _BOUNDED)
def test_other_terms_are_tested(table: LanceDataset, predicate: str) -> None:
    num_rows, num_bytes = _counted(table, predicate)
    assert num_rows == table.to_table(filter=predicate, use_scalar_index=False).num_rows
    assert num_bytes > 0


def test_deleted_rows_do_not_count(table: LanceDataset) -> None:
    table.delete("a < 10")
    assert _counted(table, "a < 40")[0] == 30


def test_changed_values_are_found_where_they_are(table: LanceDataset) -> None:
    table.update({"a": "a + 100000"}, where="a < 10")
    assert _counted(table, "a < 40")[0] == 30
    found = table.to_table(filter="a >= 100000 AND a < 100005")
    assert sorted(found["s"].to_pylist()) == [f"text {number}" for number in range(5)]
    table.optimize.compact_files()
    assert _counted(table, "a < 40")[0] == 30
    assert table.count_rows("a >= 100000 AND a < 100005") == 5


def test_only_the_columns_of_the_result_are_read(table: LanceDataset) -> None:
    whole, alone = (table.scanner(columns=columns, filter="a < 40") for columns in (["c", "a"], ["c"]))
    assert pc.all(pc.less(whole.to_table()["a"], 40)).as_py()
    assert alone.to_table().num_rows == 40
    assert whole.metrics is not None
    assert alone.metrics is not None
    assert alone.metrics.bytes_read < whole.metrics.bytes_read
    assert alone.metrics.rows_scanned == 40


@pytest.mark.parametrize("predicate", ["10 / b = 10", "b = 5 AND 10 / b = 2", "CAST(s AS int) = 7"])
@pytest.mark.parametrize("kind", ["BTREE", "BITMAP"])
def test_values_of_deleted_rows_are_not_computed_with(tmp_path: Path, kind: str, predicate: str) -> None:
    numbers = np.arange(40) % 8
    rows = pa.table({"b": numbers, "s": [str(number) if number else "none" for number in numbers.tolist()]})
    table = write_dataset(rows, tmp_path, max_rows_per_file=20)
    for column in ("b", "s"):
        table.create_scalar_index(column, kind)
    with pytest.raises(InvalidInputError, match="has no value for some row"):
        table.count_rows(predicate)
    table.delete("b = 0")
    assert table.count_rows(predicate) == table.to_table(filter=predicate, use_scalar_index=False).num_rows == 5
