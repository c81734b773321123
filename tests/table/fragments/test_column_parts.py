"""Columns of which a fragment holds a part only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_format
from lance_format import LanceDataset, NotSupportedError

_INNER = pa.struct([("d", pa.int32()), ("e", pa.string())])
_ROWS: list[dict[str, Any]] = [
    {"r": {"a": 1, "n": {"d": 1, "e": "x"}}, "l": [{"a": 1}]},
    {"r": None, "l": []},
    {"r": {"a": None, "n": None}, "l": None},
    {"r": {"a": 2, "n": {"d": None, "e": None}}, "l": [{"a": None}, None]},
]


@pytest.fixture(params=["2.1", "2.2"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> LanceDataset:
    """Return a table whose struct `r`, its struct `n` and the items of `l` each have a field that no file holds."""
    items = pa.list_(pa.struct([("a", pa.int32())]))
    schema = pa.schema([("r", pa.struct([("a", pa.int32()), ("n", _INNER)])), ("l", items)])
    lance_format.write_dataset(pa.Table.from_pylist(_ROWS, schema), tmp_path / "t", data_storage_version=request.param)
    dataset = lance_format.dataset(tmp_path / "t")
    later = pa.struct([("c", pa.int64()), ("n", pa.struct([("f", pa.int64())]))])
    dataset.add_columns(pa.schema([("r", later), ("l", pa.list_(pa.struct([("z", pa.int64())])))]))
    return lance_format.dataset(tmp_path / "t")


def _only(kind: pa.DataType, name: str) -> pa.Schema:
    return pa.schema([(name, kind)])


def test_fields_that_no_file_holds_have_the_nulls_of_their_structs(table: LanceDataset) -> None:
    new = pa.struct([("c", pa.int64())])
    assert table.to_table(columns=_only(new, "r"))["r"].to_pylist() == [{"c": None}, None, {"c": None}, {"c": None}]
    inner = pa.struct([("n", pa.struct([("f", pa.int64())]))])
    assert table.to_table(columns=_only(inner, "r"))["r"].to_pylist() == [
        {"n": {"f": None}},
        None,
        {"n": None},
        {"n": {"f": None}},
    ]
    both = pa.struct([("a", pa.int32()), ("n", pa.struct([("f", pa.int64())]))])
    assert table.take([3, 1], columns=_only(both, "r"))["r"].to_pylist() == [{"a": 2, "n": {"f": None}}, None]


@pytest.mark.parametrize(
    ("predicate", "rows"),
    [
        ("r IS NULL", [1]),
        ("r IS NOT NULL", [0, 2, 3]),
        ("r.n IS NULL", [1, 2]),
        ("r.n IS NOT NULL", [0, 3]),
        ("r.c IS NULL", [0, 1, 2, 3]),
        ("r.n.f IS NOT NULL", []),
    ],
)
def test_filters(table: LanceDataset, predicate: str, rows: list[int]) -> None:
    for column in ("r.c", "r.n.f", "r.a"):
        values = table.to_table(columns=[column])[column].to_pylist()
        found = table.to_table(columns=[column], filter=predicate)[column].to_pylist()
        assert found == [values[row] for row in rows]
        assert table.count_rows(filter=predicate) == len(rows)


def test_the_last_field_that_files_hold_is_not_dropped(table: LanceDataset) -> None:
    table.drop_columns(["r.n.d"])
    version = table.version
    for names in (["r.n.e"], ["l.item.a"], ["r.a", "r.n.e"]):
        with pytest.raises(NotSupportedError, match="would be left that has values in fragment 0"):
            table.drop_columns(names)
    assert lance_format.dataset(table.uri).version == version
    table.drop_columns(["r.n"])
    table.drop_columns(["l"])
    assert table.to_table().num_columns == 1
