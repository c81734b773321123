"""Scans that return deleted rows among the others: ours and pylance's return the same."""

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lance_format
from lance_format import InvalidInputError, NotSupportedError


@pytest.fixture(params=[False, True], ids=["addresses", "stable ids"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Three fragments: one with deleted rows, one without, and one that is gone."""
    data = pa.table({"a": range(12), "s": [None if n % 5 == 2 else f"{n}" for n in range(12)]})
    lance.write_dataset(data, tmp_path / "t", max_rows_per_file=4, enable_stable_row_ids=request.param)
    lance.dataset(tmp_path / "t").delete("a in (1, 2) or a >= 8")
    lance_format.write_dataset(data.slice(0, 2), tmp_path / "t", mode="append")
    lance_format.dataset(tmp_path / "t").update({"s": "'new'"}, "a = 5")
    return tmp_path / "t"


SCANS: dict[str, dict[str, Any]] = {
    "all": {"with_row_id": True},
    "addresses": {"columns": ["a"], "with_row_id": True, "with_row_address": True},
    "named": {"columns": ["_rowid", "s"]},
    "ids alone": {"columns": [], "with_row_id": True},
    "versions": {"columns": ["a", "_rowid", "_row_last_updated_at_version", "_row_created_at_version"]},
    "window": {"with_row_id": True, "limit": 5, "offset": 1},
    "small batches": {"with_row_id": True, "batch_size": 3},
    # Pylance filters deleted rows only where it reads all columns together.
    "filter": {"with_row_id": True, "filter": "s is not null and a < 7", "late_materialization": False},
    "filter of another column": {"columns": ["s", "_rowid"], "filter": "a in (1, 5, 6)", "late_materialization": False},
    "filter and window": {"with_row_id": True, "filter": "a > 0", "limit": 4, "late_materialization": False},
}


@pytest.mark.parametrize("name", SCANS)
def test_deleted_rows_are_among_the_others(path: Path, name: str) -> None:
    scans = [
        library.dataset(path).scanner(include_deleted_rows=True, **SCANS[name]) for library in (lance_format, lance)
    ]
    ours, theirs = (scan.to_table() for scan in scans)
    assert ours.to_pydict() == theirs.to_pydict()
    assert scans[0].count_rows() == ours.num_rows
    assert ours["_rowid"].null_count == (2 if "filter" in SCANS[name] else 3)
    tasks = scans[0].plan_tasks(1)
    found = pa.Table.from_batches([batch for task in tasks for batch in scans[0].read_task(task)])
    assert found.slice(0, SCANS[name].get("limit")) == ours
    (fragment, *_), (other, *_) = (library.dataset(path).get_fragments() for library in (lance_format, lance))
    if "window" not in name:
        assert (
            fragment.scanner(include_deleted_rows=True, **SCANS[name]).to_table().to_pydict()
            == other.scanner(include_deleted_rows=True, **SCANS[name]).to_table().to_pydict()
        )


def test_indices_have_forgotten_deleted_rows(path: Path) -> None:
    table = lance_format.dataset(path)
    for kind in ("BTREE", "ZONEMAP", "BITMAP"):
        table.create_scalar_index("a", kind)  # after the deletion
        found = table.scanner(filter="a in (1, 4)", with_row_id=True, include_deleted_rows=True).to_table()
        assert found["a"].to_pylist() == [1, 4, 1]


def test_computed_columns_see_null(path: Path) -> None:
    scan = lance_format.dataset(path).scanner({"b": "a * 2", "gone": "_rowid is null"}, include_deleted_rows=True)
    found = scan.to_table().to_pydict()
    assert [b for b, gone in zip(found["b"], found["gone"], strict=True) if gone] == [2, 4, 10]


def test_what_cannot_be_asked_for(path: Path) -> None:
    table = lance_format.dataset(path)
    for arguments, message in (
        ({}, "with_row_id"),
        ({"columns": ["a", "_rowaddr"]}, "with_row_id"),
        ({"with_row_id": True, "filter": "a > 1 and _rowid is null"}, "no _rowid to filter by"),
        ({"with_row_id": True, "filter": "_rowaddr < 7"}, "no _rowaddr to filter by"),
        ({"columns": ["_rowid", "_rowoffset"]}, "_rowoffset"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            table.scanner(include_deleted_rows=True, **arguments)
    with pytest.raises(NotSupportedError, match="order_by"):
        table.scanner(include_deleted_rows=True, with_row_id=True, order_by=["a"])
    assert table.scanner(include_deleted_rows=False, filter="a > 1").count_rows() == table.count_rows("a > 1")
