"""Appends with columns that a table of pylance lacks, and pylance reading the results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lance_format
from tests.interop.test_scans_pylance import people
from tests.interop.test_table_pylance import assert_same

AB = pa.struct({"a": pa.int64(), "b": pa.string()})
ACB = pa.struct({"a": pa.int64(), "c": pa.list_(pa.float64()), "b": pa.string()})
OLD = [{"a": 1, "b": "x"}, None, {"a": None, "b": None}]
NEW = [{"a": 2, "b": "y", "c": [1.5]}, None, {"a": 4, "b": None, "c": None}]
GROWN: dict[str, tuple[pa.DataType, list[Any], pa.DataType, list[Any]]] = {
    "struct": (AB, OLD, ACB, NEW),
    "list": (pa.list_(AB), [OLD, None, []], pa.list_(ACB), [NEW, None, [None]]),
    "nested": (
        pa.struct({"x": AB}),
        [None, *({"x": row} for row in OLD)],
        pa.struct({"x": ACB, "n": pa.struct({"z": pa.int8()})}),
        [None, *({"x": row, "n": {"z": 1}} for row in NEW)],
    ),
}
"""A column before and after it gains a field, each with values; the new field is between the known ones."""

LINEAGE = ["_rowid", "_row_created_at_version", "_row_last_updated_at_version"]


def without_null_structs(values: list[Any], arrow_type: pa.DataType) -> list[Any]:
    """Return values with structs of nulls instead of null ones, which 2.0 cannot hold."""
    return [_without_null(value, arrow_type) for value in values]


def _without_null(value: Any, arrow_type: pa.DataType) -> Any:
    if pa.types.is_struct(arrow_type):
        return {field.name: _without_null((value or {}).get(field.name), field.type) for field in arrow_type}
    if pa.types.is_list(arrow_type) and value is not None:
        return [_without_null(item, arrow_type.value_type) for item in value]
    return value


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable ids"])
def test_pylance_goes_on(tmp_path: Path, version: str, stable: bool) -> None:
    path = tmp_path / "t"

    def rows(num_rows: int) -> pa.Table:
        data = people(num_rows)
        home = pa.array(without_null_structs(data["home"].to_pylist(), data["home"].type), data["home"].type)
        return data.set_column(data.schema.get_field_index("home"), "home", home) if version == "2.0" else data

    stale = lance.write_dataset(
        rows(100), str(path), max_rows_per_file=30, enable_stable_row_ids=stable, data_storage_version=version
    )
    stale.delete("id % 10 = 3")
    new = pa.table({"id": [1000, 1001], "tags": [["a"], None], "pair": [{"l": 0, "r": None}, {"l": 1, "r": "x"}]})
    first = lance_format.plan_write(str(path), new.schema, mode="append", merge_schema=True)
    second = lance_format.plan_write(str(path), new.schema, mode="append", merge_schema=True)
    written = [planned.write_fragments(new.to_batches()) for planned in (first, second)]
    lance.dataset(str(path)).add_columns({"y": "x * 2"})
    assert [first.commit(written[0]), second.commit(written[1])] == [4, 5]
    table = assert_same(path)
    assert table.schema.names == ["id", "name", "home", "x", "y", "tags", "pair"]
    assert table.to_table(["id", "tags", "pair"]).slice(90) == pa.concat_tables([new, new])
    assert table.to_table(LINEAGE) == lance.dataset(str(path)).to_table(columns=LINEAGE)
    # A handle that is older than the new columns writes on, and so does a new one.
    stale.insert(rows(3))
    reference = lance.dataset(str(path))
    if version == "2.0":  # The new rows have null structs, which pylance reads, and cannot write again.
        reference.delete("id >= 1000")
        assert assert_same(path).count_rows() == 90 + 3
        return
    reference.update({"tags": "NULL"}, "id = 1000")
    reference.delete("id = 1001")
    reference.optimize.compact_files()
    reference.drop_columns(["pair"])
    assert assert_same(path).count_rows() == 90 + 2 + 3
    assert lance_format.dataset(path).to_table(["_rowid"]) == lance.dataset(str(path)).to_table(columns=["_rowid"])


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("name", GROWN)
def test_pylance_reads_structs_that_have_grown(tmp_path: Path, name: str, version: str) -> None:
    path = tmp_path / "t"
    kind, before, grown, after = GROWN[name]
    if version == "2.0":
        before, after = (without_null_structs(*x) for x in ((before, kind), (after, grown)))
    old, new = (pa.table({"s": pa.array(*x), "i": range(len(x[0]))}) for x in ((before, kind), (after, grown)))
    lance.write_dataset(old, str(path), data_storage_version=version)
    lance_format.write_dataset(new, path, mode="append", merge_schema=True)
    table = assert_same(path)
    merged = table.schema.field("s").type
    expected = [*old["s"].cast(merged).to_pylist(), *after]
    assert table.to_table()["s"].to_pylist() == pa.array(expected, merged).to_pylist()
    reference = lance.dataset(str(path))
    assert reference.take([1, len(before)]) == table.take([1, len(before)])
    if version == "2.0" and name == "nested":
        return  # The old rows have null structs now, which pylance reads, and cannot write again.
    reference.insert(old)
    reference.delete("i = 2")
    reference.optimize.compact_files()
    assert assert_same(path).schema == table.schema


@pytest.mark.parametrize("name", GROWN)
def test_fields_of_structs_are_added_as_pylance_adds_them(tmp_path: Path, name: str) -> None:
    kind, before, grown, _ = GROWN[name]
    paths = [tmp_path / "ours", tmp_path / "pylance"]
    for path in paths:
        lance.write_dataset(pa.table({"s": pa.array(before, kind)}), str(path), data_storage_version="2.2")
    ours, reference = lance_format.dataset(paths[0]), lance.dataset(str(paths[1]))
    added = pa.field("s", _only_new(grown, kind))
    ours.add_columns(added)
    reference.add_columns(added)
    assert ours.schema == reference.schema
    ids = [[(node.name(), node.id()) for node in _walk(table.lance_schema.fields())] for table in (ours, reference)]
    assert ids[0] == ids[1]
    assert assert_same(paths[0]).to_table() == reference.to_table()


def _only_new(grown: pa.DataType, kind: pa.DataType) -> pa.DataType:
    """The parts of a type that another one lacks."""
    if pa.types.is_list(grown):
        return pa.list_(_only_new(grown.value_type, kind.value_type))
    fields = []
    for field in grown:
        if field.name not in kind.names:
            fields.append(field)
        elif pa.types.is_struct(field.type):
            fields.append(field.with_type(_only_new(field.type, kind.field(field.name).type)))
    return pa.struct(fields)


def _walk(fields: list[Any]) -> list[Any]:
    return [node for field in fields for node in (field, *_walk(field.children()))]
