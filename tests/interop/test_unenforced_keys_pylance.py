"""Primary and clustering keys: ours and pylance's read them off the same metadata, and keep them."""

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lance_format
from lance_format import InvalidInputError, SchemaMismatchError

PRIMARY, CLUSTERING = "lance-schema:unenforced-primary-key", "lance-schema:unenforced-clustering-key"
SCHEMA = pa.schema(
    [
        pa.field("a", pa.int64(), False, {f"{PRIMARY}:position": "2"}),
        pa.field("b", pa.int64(), False, {f"{PRIMARY}:position": "1", f"{CLUSTERING}:position": "4"}),
        pa.field("c", pa.int64(), True, {f"{CLUSTERING}:position": "3"}),
        pa.field("p", pa.struct([pa.field("k", pa.int64(), False, {PRIMARY: "yes"})]), False),
        pa.field("d", pa.int64(), True, {"x": "y"}),
    ]
)
DATA = pa.table({"a": [1, 2], "b": [3, 4], "c": [5, None], "p": [{"k": 1}, {"k": 2}], "d": [1, 2]}, SCHEMA)


def keys(table: Any) -> list[Any]:
    """All that a table says of its keys."""
    schema = table.lance_schema
    stack, found = list(schema.fields()), []
    while stack:
        field = stack.pop()
        stack += field.children()
        primary = (field.is_unenforced_primary_key(), field.unenforced_primary_key_position())
        clustering = (field.is_unenforced_clustering_key(), field.unenforced_clustering_key_position())
        found.append((field.name(), field.metadata, *primary, *clustering))
    named = [
        [field.id() for field in found]
        for found in (schema.unenforced_primary_key(), schema.unenforced_clustering_key())
    ]
    return [named, *found]


@pytest.mark.parametrize("writer", [lance, lance_format])
def test_keys_are_kept(tmp_path: Path, writer: Any) -> None:
    writer.write_dataset(DATA, str(tmp_path / "t"))
    table = lance_format.dataset(tmp_path / "t")
    assert keys(table)[0] == [[1, 0, 4], [2, 1]]
    assert keys(table) == keys(lance.dataset(tmp_path / "t"))
    before = keys(table)
    table.insert(DATA)
    table.add_columns({"e": "a + b"})
    table.drop_columns(["d", "e"])
    table.update_field_metadata({"c": {"unit": "m"}})
    table.optimize.compact_files()
    merged = table.merge_insert(["a", "b"]).when_matched_update_all().execute(table.to_table().slice(0, 1))
    assert merged["num_updated_rows"] == 2
    after = keys(lance.dataset(tmp_path / "t"))
    assert keys(table) == after
    assert after[0] == before[0]


@pytest.mark.parametrize("text", ["true", "TRUE", "1", "yes", "Y", "on", "false", "t", "", "0"])
def test_what_makes_a_key(tmp_path: Path, text: str) -> None:
    for number, metadata in enumerate(
        [{PRIMARY: text}, {f"{PRIMARY}:position": text}, {f"{CLUSTERING}:position": text}]
    ):
        data = pa.table([pa.array([1])], pa.schema([pa.field("a", pa.int64(), False, metadata)]))
        tables = [tmp_path / f"{name}{number}" for name in ("ours", "theirs")]
        lance_format.write_dataset(data, tables[0])
        lance.write_dataset(data, tables[1])
        assert keys(lance.dataset(tables[0])) == keys(lance_format.dataset(tables[0])) == keys(lance.dataset(tables[1]))


@pytest.mark.parametrize(
    "field",
    [
        pa.field("a", pa.int64(), True, {PRIMARY: "true"}),
        pa.field("a", pa.struct([pa.field("k", pa.int64(), False)]), False, {PRIMARY: "true"}),
        pa.field("a", pa.struct([pa.field("k", pa.int64(), False, {PRIMARY: "true"})]), True),
    ],
    ids=["null", "struct", "below a null"],
)
def test_what_cannot_be_a_key(tmp_path: Path, field: pa.Field) -> None:
    data = pa.table([pa.array([1] if field.type == pa.int64() else [{"k": 1}], field.type)], pa.schema([field]))
    with pytest.raises(OSError, match="Primary key"):
        lance.write_dataset(data, str(tmp_path / "theirs"))
    with pytest.raises(SchemaMismatchError, match="primary key"):
        lance_format.write_dataset(data, tmp_path / "ours")
    assert not (tmp_path / "ours").exists()


def test_a_key_is_set_once(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("a", pa.int64(), False), pa.field("b", pa.int64(), False), pa.field("n", pa.int64())])
    tables = []
    for library in (lance_format, lance):
        table: Any = library.write_dataset(
            pa.table({"a": [1], "b": [2], "n": [3]}, schema), str(tmp_path / library.__name__)
        )
        with pytest.raises(OSError):
            table.update_field_metadata({"n": {PRIMARY: "true"}})
        table.update_field_metadata({"a": {PRIMARY: "true"}})
        for update in (
            {"a": {PRIMARY: None}},
            {"b": {f"{PRIMARY}:position": "1"}},
            {"a": {f"{PRIMARY}:position": "2"}},
        ):
            with pytest.raises((OSError, InvalidInputError), match="primary key"):
                table.update_field_metadata(update)
        table.update_field_metadata({"b": {f"{CLUSTERING}:position": "4"}})
        with pytest.raises((OSError, InvalidInputError), match="clustering key"):
            table.update_field_metadata({"b": {f"{CLUSTERING}:position": "1"}})
        table.update_field_metadata({"b": {"unit": "m"}, "n": {"x": "y"}})
        tables.append(table)
    assert keys(tables[0]) == keys(tables[1]) == keys(lance.dataset(tmp_path / "lance_format"))
    assert tables[0].version == tables[1].version
    result = tables[0].merge_insert().when_matched_update_all().execute(pa.table({"a": [1], "n": [4]}))
    assert result["num_updated_rows"] == 1
    with pytest.raises(SchemaMismatchError, match="primary key"):
        tables[0].alter_columns({"path": "a", "nullable": True})
