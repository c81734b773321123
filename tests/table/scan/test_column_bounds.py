"""Minimum, maximum and nulls of columns, as far as statistics say them exactly."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lance_format
from lance_format import InvalidInputError

NAN = float("nan")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "t"


def test_are_those_of_all_fragments(path: Path) -> None:
    rows = pa.table(
        {
            "id": pa.array(range(-30_000, 0)),
            "text": [f"text {row}" if row % 3 else None for row in range(30_000)],
            "none": pa.nulls(30_000, pa.int32()),
            "day": pa.array([datetime.date(1969, 12, 31)] * 30_000),
            "half": pa.array([row + 0.5 for row in range(30_000)]),
        }
    )
    dataset = lance_format.write_dataset(rows, path, max_rows_per_file=10_000)
    found = dataset.column_bounds(rows.column_names)
    assert set(found) == set(rows.column_names)
    for name, bounds in found.items():
        assert {"min": bounds.minimum.as_py(), "max": bounds.maximum.as_py()} == pc.min_max(rows[name]).as_py()
        assert (bounds.num_rows, bounds.num_nulls) == (30_000, rows[name].null_count)
    dataset.delete("id = -1")
    assert dataset.column_bounds(["id"]) == {}


@pytest.mark.parametrize(
    "values",
    [
        [1.0, NAN],
        [0.0, -0.0],
        [-0.0, 2.0],
        ["x" * 9000, "x" * 9001],
        [b"\xff" * 9000],
        [True] * 3,
        [2**63 - 1, -(2**63)],
    ],
    ids=["NaN", "zeros", "a zero", "long", "bytes", "flags", "limits"],
)
def test_are_exact_or_unknown(path: Path, values: list[Any]) -> None:
    found = lance_format.write_dataset(pa.table({"v": values * 5000}), path).column_bounds(["v"]).get("v")
    if found is not None:
        assert (found.num_rows, found.num_nulls) == (5000 * len(values), 0)
        assert found.minimum is None or str(found.minimum.as_py()) == str(min(values))
        assert found.maximum is None or str(found.maximum.as_py()) == str(max(values))
        assert found.minimum is not None or isinstance(values[0], float | str | bytes)


def test_of_columns_that_some_fragments_lack(path: Path) -> None:
    dataset = lance_format.write_dataset({"id": [1, 2]}, path)
    dataset.add_columns(pa.schema([pa.field("later", pa.int64())]))
    dataset.insert(pa.table({"id": range(10_000), "later": range(7, 10_007)}))
    (found,) = dataset.column_bounds(["later"]).values()
    assert (found.num_rows, found.num_nulls, found.minimum.as_py(), found.maximum.as_py()) == (10_002, 2, 7, 10_006)


def test_of_other_columns_are_refused_or_unknown(path: Path) -> None:
    dataset = lance_format.write_dataset({"s": [{"x": 1}], "v": [[1]]}, path)
    assert set(dataset.column_bounds(["s", "v"])) <= {"s", "v"}
    with pytest.raises(InvalidInputError, match="there is no column 'x'"):
        dataset.column_bounds(["x"])
    empty = lance_format.write_dataset(pa.table({"v": pa.array([], pa.int64())}), f"{path}.empty")
    (found,) = empty.column_bounds(["v"]).values()
    assert (found.num_rows, found.minimum.as_py()) == (0, None)


def test_bounds_of_some_fragments(path: Path) -> None:
    rows = pa.table({"id": range(30_000)})
    dataset = lance_format.write_dataset(rows, path, max_rows_per_file=10_000)
    dataset.delete("id = 25000")
    assert dataset.column_bounds(["id"]) == {}
    (found,) = dataset.column_bounds(["id"], [1]).values()
    assert (found.num_rows, found.minimum.as_py(), found.maximum.as_py()) == (10_000, 10_000, 19_999)
    (found,) = dataset.column_bounds(["id"], [1, 0]).values()
    assert (found.num_rows, found.minimum.as_py(), found.maximum.as_py()) == (20_000, 0, 19_999)
    assert dataset.column_bounds(["id"], [2]) == {}
    with pytest.raises(InvalidInputError, match="lacks a fragment"):
        dataset.column_bounds(["id"], [0, 7])
