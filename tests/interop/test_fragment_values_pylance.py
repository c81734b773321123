"""Fragments, their files and transactions as values: ours have the names and forms of pylance's."""

import json
import pickle
from pathlib import Path
from typing import Any

import lance
import lance.file
import pyarrow as pa
import pytest

import lance_format
import lance_format.file
from lance_format import (
    CorruptFileError,
    DatasetNotFoundError,
    FragmentMetadata,
    InvalidInputError,
    LanceOperation,
    SchemaMismatchError,
    Transaction,
)
from lance_format.table.format.file_entries import DataFile, DeletionFile
from tests.interop.test_table_pylance import assert_same


@pytest.fixture
def path(tmp_path: Path) -> Path:
    data = pa.table({"a": range(10), "S": [f"{n}" for n in range(10)], "p": [{"x": n} for n in range(10)]})
    lance.write_dataset(data, tmp_path / "t", max_rows_per_file=6)
    lance.dataset(tmp_path / "t").delete("a < 3")
    return tmp_path / "t"


def test_deletion_files(path: Path) -> None:
    theirs = lance.dataset(path).get_fragment(0).metadata.deletion_file
    ours = lance_format.dataset(path).get_fragment(0).metadata.deletion_file
    assert ours is not None
    assert ours.asdict() == theirs.asdict()
    assert json.loads(ours.json()) == json.loads(theirs.json())
    assert DeletionFile.from_json(theirs.json()) == ours
    assert lance.fragment.DeletionFile.from_json(ours.json()).asdict() == theirs.asdict()
    assert ours.path(0) == theirs.path(0)
    assert ours.path(7, "base/") == theirs.path(7, "base")
    made = DeletionFile(1, 123, "array", 10, base_id=456)  # type: ignore[arg-type]
    assert made.asdict() == lance.fragment.DeletionFile(1, 123, "array", 10, base_id=456).asdict()
    assert pickle.loads(pickle.dumps(made)) == made
    fragment = FragmentMetadata(1, (DataFile("a.lance", (0,), (0,)),), 1000, made)
    assert FragmentMetadata.from_json(json.dumps(fragment.to_json())) == fragment
    assert fragment.overlays == lance.dataset(path).get_fragment(0).metadata.overlays == []


@pytest.mark.parametrize(
    "text", ["", "[]", '{"id": 1}', '{"read_version":1,"id":-1,"file_type":"array","num_deleted_rows":0}']
)
def test_malformed_deletion_files(text: str) -> None:
    with pytest.raises(InvalidInputError, match="malformed deletion file"):
        DeletionFile.from_json(text)


def test_kinds_of_deletion_files() -> None:
    with pytest.raises(InvalidInputError, match="'list'"):
        DeletionFile(1, 2, "list", 3)  # type: ignore[arg-type]


@pytest.mark.parametrize("columns", [["a"], ["p"], ["S", "a"]], ids=str)
def test_data_files(path: Path, columns: list[str]) -> None:
    table = lance_format.dataset(path)
    values = table.to_table(columns)
    with lance_format.file.LanceFileWriter(str(path / "data" / "new.lance"), values.schema) as writer:
        writer.write_batch(values)
    made, theirs = DataFile.create(table, "new.lance"), lance.fragment.DataFile.create(lance.dataset(path), "new.lance")
    assert [*made.fields] == made.field_ids() == theirs.fields
    for name in ("path", "file_major_version", "file_minor_version", "base_id"):
        assert getattr(made, name) == getattr(theirs, name)
    assert [*made.column_indices] == theirs.column_indices
    assert made.file_size_bytes == (path / "data" / "new.lance").stat().st_size


def test_a_replaced_column(path: Path) -> None:
    table = lance_format.dataset(path)
    table.add_columns({"b": "a + 1"})
    groups = []
    for fragment in table.get_fragments():
        name = f"other{fragment.fragment_id}.lance"
        values = pa.table({"b": pa.array(range(100, 100 + fragment.physical_rows), pa.int64())})
        with lance.file.LanceFileWriter(str(path / "data" / name), values.schema, version="2.2") as writer:
            writer.write_batch(values)
        groups.append(LanceOperation.DataReplacementGroup(fragment.fragment_id, DataFile.create(table, name)))
    table = lance_format.LanceDataset.commit(path, LanceOperation.DataReplacement(groups), table.version)
    assert table.to_table(["b"])["b"].to_pylist() == [103, 104, 105, 100, 101, 102, 103]
    assert_same(path)


def test_files_that_are_none_of_the_table(path: Path) -> None:
    table = lance_format.dataset(path)
    with pytest.raises(DatasetNotFoundError, match="no data file"):
        DataFile.create(table, "nothing.lance")
    with pytest.raises(InvalidInputError, match="base_id"):
        DataFile.create(table, "nothing.lance", base_id=3)
    with pytest.raises(CorruptFileError):
        DataFile.create(table, "../x.lance")
    with lance_format.file.LanceFileWriter(str(path / "data" / "z.lance"), pa.schema({"z": pa.int64()})) as writer:
        writer.write_batch(pa.table({"z": [1]}))
    with pytest.raises(SchemaMismatchError, match="'z'"):
        DataFile.create(table, "z.lance")


def test_transactions_have_properties(path: Path) -> None:
    for library, operations, transaction in (
        (lance, lance.LanceOperation, lance.Transaction),
        (lance_format, LanceOperation, Transaction),
    ):
        table: Any = library.dataset(path)
        fragments = library.fragment.write_fragments if library is lance else lance_format.write_fragments
        made = fragments(table.to_table().slice(0, 1), table)
        planned = transaction(table.version, operations.Append(made), transaction_properties={"by": library.__name__})
        assert planned.transaction_properties == {"by": library.__name__}
        library.LanceDataset.commit(path, planned)
    found = lance_format.dataset(path).get_transactions(2)
    assert [each.transaction_properties for each in found] == [{"by": "lance_format"}, {"by": "lance"}]
    assert [each.transaction_properties for each in lance.dataset(path).get_transactions(2)] == [
        {"by": "lance_format"},
        {"by": "lance"},
    ]


@pytest.mark.parametrize("promises", [False, True])
@pytest.mark.parametrize("library", [lance, lance_format])
def test_what_a_merge_promises_lets_appends_land(path: Path, library: Any, promises: bool) -> None:
    operations = library.LanceOperation
    table = library.dataset(path)
    write_fragments = (lance_format if library is lance_format else lance.fragment).write_fragments
    append = operations.Append(write_fragments(table.to_table().slice(0, 1), table))
    merged = [fragment.merge_columns({"b": "a * 2"}) for fragment in table.get_fragments()]
    merge = operations.Merge([fragment for fragment, _ in merged], merged[0][1], preserves_nullability=promises)
    library.LanceDataset.commit(path, merge, read_version=table.version)
    assert lance.dataset(path).read_transaction(3).operation.preserves_nullability is promises
    if promises:
        library.LanceDataset.commit(path, append, read_version=table.version, max_retries=0)
        assert assert_same(path).to_table(["b"])["b"].to_pylist()[-1] is None
    else:
        with pytest.raises(OSError):
            library.LanceDataset.commit(path, append, read_version=table.version, max_retries=0)


def test_fields_in_any_case(path: Path) -> None:
    ours, theirs = lance_format.dataset(path), lance.dataset(path)
    for name in ("a", "A", "s", "S", "q"):
        mine, other = (x.lance_schema.field_case_insensitive(name) for x in (ours, theirs))
        assert (None if mine is None else mine.id()) == (None if other is None else other.id())
    assert list(ours.fragment_ids()) == list(theirs.fragment_ids())
    assert ours.max_field_id == theirs.max_field_id
    ours.drop_columns(["p"])
    theirs.checkout_latest()
    assert ours.max_field_id == theirs.max_field_id


def test_a_fragment_is_validated_alone(path: Path) -> None:
    table = lance_format.dataset(path)
    first, second = table.get_fragments()
    (path / "data" / second.data_files()[0].path).unlink()
    first.validate()
    with pytest.raises(DatasetNotFoundError):
        second.validate()
    with pytest.raises(DatasetNotFoundError):
        table.validate()


def test_metadata_is_replaced(path: Path) -> None:
    table = lance_format.dataset(path)
    table.update_schema_metadata({"k": "v"})
    table.replace_schema_metadata({"other": "w"})
    table.replace_field_metadata("a", {"unit": "m"})
    reference = lance.dataset(path)
    assert reference.schema.metadata == {b"other": b"w"}
    assert reference.schema.field("a").metadata == {b"unit": b"m"}
