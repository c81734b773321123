"""Fields by their paths: named fields are read, others are neither read nor returned."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest

from lance_format.byte_io import ByteRange
from lance_format.datatypes import Schema
from lance_format.errors import InvalidInputError
from lance_format.file import ColumnProjection, LanceFileReader, LanceFileWriter, column_indices, project, prune
from tests.file.counting import CountedFile

_ROWS = 3000
_NUMBERS = [row * 7919**4 % 2**61 for row in range(_ROWS)]  # so that no page is small enough to be read along
_TABLE = pa.table(
    {
        "id": _NUMBERS,
        "a": [
            {"b": {"c": row, "d": f"text {row}"} if row % 5 else None, "e": row / 7} if row % 11 else None
            for row in _NUMBERS
        ],
        "list": [[{"x": row, "y": f"y{row}"}] * (row % 4) if row % 7 else None for row in _NUMBERS],
        "quoted": [{"plain": row / 3, "with.dot": row, "with`tick": f"{row}"} for row in _NUMBERS],
        "top.level": [f"t{row}" for row in _NUMBERS],
    }
)
_SCHEMA = Schema.from_arrow(_TABLE.schema)
_LEAVES = ["id", "a.b.c", "a.b.d", "a.e", "list.item.x", "list.item.y", "plain", "with.dot", "with`tick", "top.level"]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("projection") / "a.lance"
    with LanceFileWriter(path, _TABLE.schema) as writer:
        writer.write_batch(_TABLE)
    return path


def _type(text: str) -> str:
    return re.sub(r"\s+", "", text)


@pytest.mark.parametrize(
    ("columns", "types", "leaves"),
    [
        (["a.b.c"], ["a: struct<b: struct<c: int64>>"], ["a.b.c"]),
        (["a.b"], ["a: struct<b: struct<c: int64, d: string>>"], ["a.b.c", "a.b.d"]),
        (["a.e", "id", "a.b.d"], ["a: struct<e: double, b: struct<d: string>>", "id: int64"], ["a.e", "id", "a.b.d"]),
        (["a.e", "a"], ["a: struct<e: double, b: struct<c: int64, d: string>>"], ["a.e", "a.b.c", "a.b.d"]),
        (["list.item.y"], ["list: list<item: struct<y: string>>"], ["list.item.y"]),
        (["list.item"], ["list: list<item: struct<x: int64, y: string>>"], ["list.item.x", "list.item.y"]),
        (["quoted.`with.dot`"], ["quoted: struct<with.dot: int64>"], ["with.dot"]),
        (["`quoted`.`with``tick`"], ["quoted: struct<with`tick: string>"], ["with`tick"]),
        (["top.level"], ["top.level: string"], ["top.level"]),
        (["`top.level`", "id", "id"], ["top.level: string", "id: int64"], ["top.level", "id"]),
        ([], [], []),
    ],
    ids=str,
)
def test_only_the_pages_of_named_leaves_are_read(
    path: Path, columns: list[str], types: list[str], leaves: list[str]
) -> None:
    file = CountedFile(path)
    schema = project(file.reader.schema, columns)
    found = schema.to_arrow()
    assert [_type(f"{field.name}: {field.type}") for field in found] == [_type(text) for text in types]
    projection = [
        ColumnProjection(field, column_indices(file.reader.schema, file.reader.version)) for field in schema.fields
    ]
    expected = LanceFileReader(path).read_all().to_table()
    for rows in (range(_ROWS), range(1000, 1003)):
        batches = file.reader.read(projection, rows.start, rows.stop, batch_size=_ROWS)
        (batch,) = batches
        _check(batch, expected.slice(rows.start, len(rows)))
        assert _touched(file) <= set(leaves)
        if len(rows) == _ROWS:
            assert _touched(file) == set(leaves)
        file.source.requests.clear()
    _check(file.reader.take(projection, [7, 2999]), expected.take([7, 2999]))
    assert _touched(file) <= set(leaves)


def _check(found: pa.RecordBatch, whole: pa.Table) -> None:
    """All values that were returned are those of the whole column, nulls and lengths included."""
    for name in found.schema.names:
        for value, expected in zip(found[name].to_pylist(), whole[name].to_pylist(), strict=True):
            assert _within(value, expected), (value, expected)


def _within(value: object, expected: object) -> bool:
    if isinstance(value, dict) and isinstance(expected, dict):
        return all(_within(item, expected[key]) for key, item in value.items())
    if isinstance(value, list) and isinstance(expected, list):
        return len(value) == len(expected) and all(map(_within, value, expected))
    return value == expected


def _touched(file: CountedFile) -> set[str]:
    """Return the leaves with pages that were read."""
    return {
        leaf
        for number, leaf in enumerate(_LEAVES)
        for page in file.reader.pages(number)
        if any(_overlap(read, buffer) for read in file.source.requests for buffer in page.buffers)
    }


def _overlap(one: ByteRange, other: ByteRange) -> bool:
    return one.offset < other.end and other.offset < one.end


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("a.b.x", r"there is no column 'a\.b\.x'; did you mean 'a\.b"),
        ("a.f", r"there is no column 'a\.f'; did you mean"),
        ("quoted.with.dot", "did you mean .*'quoted.`with.dot`'"),
        ("id.x", "there is no column 'id.x'"),
        ("list.x", "there is no column 'list.x'; did you mean .*'list.item.x'"),
        ("unheard of", "the columns are id, a, list, quoted, top.level"),
        ("A.b", "there is no column 'A.b'; did you mean 'a.b"),
        ("", "is no path"),
        ("a.", "is no path"),
        (".a", "is no path"),
        ("a..b", "is no path"),
        ("`a.b", "is no path"),
        ("a.`b`c", "is no path"),
        ("a.b`c`", "is no path"),
        ("``", "there is no column"),
    ],
)
def test_paths_that_lead_nowhere(name: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        project(_SCHEMA, ["id", name])


@pytest.mark.parametrize("columns", ["id", [1], [None], [("a", "b")]])
def test_columns_that_are_no_names(columns: object, path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"column names is needed|columns is .*; .* text is needed"):
        LanceFileReader(path, columns=columns)


def test_pruning_keeps_the_order_of_the_schema() -> None:
    pruned = prune(_SCHEMA, {("list", "item", "y"), ("a", "e"), ("a", "b", "c"), ("no", "such"), ("id",)})
    assert _type(str(pruned.to_arrow().field("a").type)) == _type("struct<b: struct<c: int64>, e: double>")
    assert pruned.names == ["id", "a", "list"]
    assert prune(_SCHEMA, {("a",), ("a", "b", "c")}).fields == (_SCHEMA.field("a"),)
    assert prune(_SCHEMA, set()).fields == ()


def test_maps_and_packed_structs_are_read_whole(tmp_path: Path) -> None:
    value = pa.struct([("u", pa.int64()), ("v", pa.int64())])
    table = pa.table(
        {
            "map": pa.array([[("k", {"u": 1, "v": 2})], None], pa.map_(pa.string(), value)),
            "packed": pa.array([{"u": 1, "v": 2}, {"u": 3, "v": 4}], value),
        }
    )
    table = table.cast(table.schema.set(1, table.schema.field(1).with_metadata({"lance-encoding:packed": "true"})))
    with LanceFileWriter(tmp_path / "a.lance", table.schema) as writer:
        writer.write_batch(table)
    found = LanceFileReader(tmp_path / "a.lance", columns=["packed.u", "map.entries.value.u"]).read_all().to_table()
    assert found.equals(table.select(["packed", "map"]))
