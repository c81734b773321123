"""Columns by path: the shapes that pylance returns, from its files and ours."""

from __future__ import annotations

from pathlib import Path

import lance
import lance.file
import pyarrow as pa
import pytest

import lance_format
from lance_format.file import LanceFileReader, LanceFileWriter

_INNER = pa.struct([("c", pa.int64()), ("d", pa.string())])
_TABLE = pa.table(
    {
        "a": pa.array(
            [{"b": {"c": 1, "d": "x"}, "e": 2.0}, None, {"b": None, "e": 3.0}] * 50,
            pa.struct([("b", _INNER), ("e", pa.float64())]),
        ),
        "list": pa.array(
            [[{"x": 1, "y": "p"}, None], None, []] * 50,
            pa.list_(pa.struct([("x", pa.int32()), ("y", pa.string())])),
        ),
        "vectors": pa.array(
            [[{"i": 1, "j": 2}] * 2] * 150, pa.list_(pa.struct([("i", pa.int32()), ("j", pa.int32())]), 2)
        ),
        "s": pa.array([{"q.r": 1, "z": 2}] * 150, pa.struct([("q.r", pa.int64()), ("z", pa.int64())])),
        "id": range(150),
    }
)
_IN_FILES = [
    ["a.b"],
    ["a.b.c"],
    ["a.b.d", "a.b.c"],
    ["a.e", "id", "a.b.c"],
    ["a", "a.e"],
    ["a.e", "a"],
    ["list.item.x"],
    ["list.item"],
    ["vectors.item.j"],
    ["s.`q.r`"],
    ["`s`.`q.r`"],
    ["id", "id"],
]
_IN_TABLES = [["a.b"], ["a.b.c"], ["a.e", "id", "a.b.c"], ["a", "a.e"], ["a.e", "a"], ["s.`q.r`", "s.z"]]


@pytest.mark.parametrize("columns", _IN_FILES, ids=str)
def test_files(tmp_path: Path, columns: list[str]) -> None:
    for kind in (LanceFileWriter, lance.file.LanceFileWriter):
        path = tmp_path / f"{kind.__module__}.lance"
        with kind(str(path), _TABLE.schema, version="2.2") as writer:
            writer.write_batch(_TABLE)
        theirs = lance.file.LanceFileReader(str(path), columns=columns)
        ours = LanceFileReader(path, columns=columns)
        assert ours.read_all().to_table().equals(theirs.read_all().to_table())
        assert ours.take_rows([1, 5, 100]).to_table().equals(theirs.take_rows([1, 5, 100]).to_table())


@pytest.mark.parametrize("columns", _IN_TABLES, ids=str)
def test_tables(tmp_path: Path, columns: list[str]) -> None:
    theirs = lance.write_dataset(_TABLE, tmp_path / "table", data_storage_version="2.2")
    ours = lance_format.dataset(tmp_path / "table")
    expected = theirs.to_table(columns=columns)
    assert ours.to_table(columns=columns).equals(expected)
    assert pa.Table.from_batches(ours.to_batches(columns=columns)).equals(expected)
    filtered = ours.to_table(columns=columns, filter="a.b.c = 1 AND id > 20")
    assert filtered.equals(theirs.to_table(columns=columns, filter="a.b.c = 1 AND id > 20"))
