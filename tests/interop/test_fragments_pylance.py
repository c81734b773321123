"""`LanceFragment`, `LanceSchema` and transactions in code written for pylance."""

import json
import uuid
from pathlib import Path
from typing import Any

import lance
import lance.progress
import pyarrow as pa
import pytest

import lance_format
from lance_format import (
    DatasetNotFoundError,
    FragmentMetadata,
    FragmentWriteProgress,
    InvalidInputError,
    LanceDataset,
    LanceFragment,
    LanceOperation,
    LanceSchema,
    NotSupportedError,
    SchemaMismatchError,
    Transaction,
    write_fragments,
)
from lance_format.file import LanceFileWriter
from tests.interop.test_table_pylance import assert_same

TABLE = pa.table(
    {
        "id": pa.array(range(10), pa.int64()),
        "s": pa.array([{"x": number, "y": [str(number)]} for number in range(10)]),
        "name": [f"name {number}" for number in range(10)],
    }
)


class Told(FragmentWriteProgress):
    def __init__(self) -> None:
        self.calls: list[tuple[str, FragmentMetadata]] = []

    def begin(self, fragment: FragmentMetadata) -> None:
        self.calls.append(("begin", fragment))

    def complete(self, fragment: FragmentMetadata) -> None:
        self.calls.append(("complete", fragment))


class TestProgress:
    def test_each_fragment_is_told_twice(self, tmp_path: Path) -> None:
        for write in (
            lambda told: lance_format.write_dataset(TABLE, tmp_path / "t", max_rows_per_file=4, progress=told),
            lambda told: write_fragments(TABLE, tmp_path / "t", max_rows_per_file=4, progress=told),
        ):
            told = Told()
            write(told)
            assert [name for name, _ in told.calls] == ["begin", "complete"] * 3
            begun, completed = ([part for call, part in told.calls if call == name] for name in ("begin", "complete"))
            assert [part.files[0].path for part in begun] == [part.files[0].path for part in completed]
            assert [part.physical_rows for part in completed] == [4, 4, 2]
            assert {part.physical_rows for part in begun} == {0}

    def test_what_it_raises_ends_the_write(self, tmp_path: Path) -> None:
        class Stop(Told):
            def complete(self, fragment: FragmentMetadata) -> None:
                raise KeyboardInterrupt(fragment.id)

        with pytest.raises(KeyboardInterrupt):
            lance_format.write_dataset(TABLE, tmp_path / "t", progress=Stop())
        assert list(tmp_path.iterdir()) == []

    def test_that_of_pylance_is_taken(self, tmp_path: Path) -> None:
        progress = lance.progress.FileSystemFragmentWriteProgress(str(tmp_path / "progress"))
        made = LanceFragment.create(tmp_path / "t", TABLE, 7, progress=progress)
        assert made.id == 7
        (file,) = (tmp_path / "progress").iterdir()
        assert file.name == "fragment_7.json"
        assert json.loads(file.read_text())["files"][0]["path"] == made.files[0].path


def put_file(path: Path, table: pa.Table) -> str:
    name = f"{uuid.uuid4()}.lance"
    with LanceFileWriter(path / "data" / name) as writer:
        writer.write_batch(table)
    return name


class TestFilesWrittenByHand:
    def test_they_become_fragments(self, tmp_path: Path) -> None:
        lance.write_dataset(TABLE, tmp_path)
        table = lance_format.dataset(tmp_path)
        parts = [TABLE, TABLE.select(["name", "s", "id"]), TABLE.select(["s"])]
        fragments = [LanceFragment.create_from_file(put_file(tmp_path, part), table, 3) for part in parts]
        assert [(part.id, part.physical_rows) for part in fragments] == [(3, 10)] * 3
        made = LanceDataset.commit(table, LanceOperation.Append(fragments), table.version)
        assert made.to_table()["s"].to_pylist() == TABLE["s"].to_pylist() * 4
        assert made.to_table()["id"].to_pylist() == list(range(10)) * 3 + [None] * 10
        assert_same(tmp_path)

    def test_what_does_not_fit_is_refused(self, tmp_path: Path) -> None:
        swapped = pa.struct([("y", pa.list_(pa.string())), ("x", pa.int64())])
        table = lance_format.write_dataset(TABLE, tmp_path)
        for other, message in (
            (TABLE.append_column("more", TABLE["id"]), "'more', which the table lacks"),
            (pa.table({"id": pa.array([1], pa.int32())}), "'id' .* is int32, and int64 in the table"),
            (pa.table({"s": pa.array([{"y": ["a"], "x": 1}], swapped)}), "'s' .* is struct"),
        ):
            with pytest.raises(SchemaMismatchError, match=message):
                LanceFragment.create_from_file(put_file(tmp_path, other), table)
        with pytest.raises(InvalidInputError, match="0 rows"):
            LanceFragment.create_from_file(put_file(tmp_path, TABLE.slice(0, 0)), table)
        with pytest.raises(DatasetNotFoundError, match="no data file"):
            LanceFragment.create_from_file("nothing.lance", table)


class TestFragment:
    @pytest.fixture
    def table(self, tmp_path: Path) -> LanceDataset:
        return lance_format.write_dataset(TABLE, tmp_path, max_rows_per_file=4)

    def test_by_its_id(self, table: LanceDataset) -> None:
        assert LanceFragment(table, 1).to_table() == TABLE.slice(4, 4)
        with pytest.raises(InvalidInputError, match="no fragment 9"):
            LanceFragment(table, 9)

    def test_a_session_takes_rows(self, table: LanceDataset, tmp_path: Path) -> None:
        theirs = lance.dataset(tmp_path).get_fragment(1)
        for options in (
            {"columns": ["name"]},
            {"with_row_address": True},
            {"columns": ["id"], "with_row_address": True},
        ):
            ours = LanceFragment(table, 1).open_session(**options)
            for rows in ([0, 3], [2]):
                assert ours.take(rows) == theirs.open_session(**options).take(rows)

    def test_rows_are_deleted_by_their_places(self, table: LanceDataset, tmp_path: Path) -> None:
        fragment = LanceFragment(table, 1)
        assert fragment.deletion_file() is None
        once = fragment.delete_rows([0, 3])
        assert once is not None
        table = LanceDataset.commit(table, LanceOperation.Delete([once], [], "by hand"), table.version)
        fragment = LanceFragment(table, 1)
        assert fragment.deletion_file() == lance.dataset(tmp_path).get_fragment(1).deletion_file()
        assert fragment.delete_rows([0, 3]) == fragment.metadata
        twice = fragment.delete_rows([1])
        assert twice is not None
        assert twice.num_deletions == 3
        assert fragment.delete_rows([1, 2]) is None
        with pytest.raises(InvalidInputError, match="no row 4"):
            fragment.delete_rows([4])
        assert assert_same(tmp_path).to_table()["id"].to_pylist() == [0, 1, 2, 3, 5, 6, 8, 9]

    @pytest.mark.parametrize("key", ["_rowid", "_rowaddr", "id"])
    def test_columns_are_merged_by_key(self, table: LanceDataset, tmp_path: Path, key: str) -> None:
        table.delete("id = 5")
        merged, schemas = [], []
        for fragment in table.get_fragments():
            keys = fragment.to_table(["id", "_rowid", "_rowaddr"])
            data = pa.table({"key": keys[key], "twice": pa.array([2 * x for x in keys["id"].to_pylist()])})
            made, schema = fragment.merge(data.slice(1), key, "key")
            merged.append(made)
            schemas.append(schema)
        made = LanceDataset.commit(table, LanceOperation.Merge(merged, schemas[0]), table.version)
        assert made.schema == schemas[0].to_pyarrow()
        assert made.to_table()["twice"].to_pylist() == [None, 2, 4, 6, None, 12, 14, None, 18]
        assert_same(tmp_path)


class TestSchemas:
    def test_they_say_what_those_of_pylance_say(self, tmp_path: Path) -> None:
        lance.write_dataset(TABLE, tmp_path)
        theirs = lance.dataset(tmp_path)
        theirs.alter_columns({"path": "s.x", "name": "z"})
        theirs.update_field_metadata({"id": {"unit": "m"}})

        def described(fields: Any) -> Any:
            return [(field.name(), field.id(), described(field.children())) for field in fields]

        ours = lance_format.dataset(tmp_path).lance_schema
        assert described(ours.fields()) == described(theirs.lance_schema.fields())
        assert ours.to_pyarrow() == theirs.lance_schema.to_pyarrow()
        assert ours.fields()[0].metadata == theirs.lance_schema.fields()[0].metadata == {"unit": "m"}
        assert ours.field("name") == ours.fields()[2]
        assert ours.field("nope") is None
        assert described(LanceSchema.from_pyarrow(TABLE.schema).fields())[1] == (
            "s",
            1,
            [("x", 2, []), ("y", 3, [("item", 4, [])])],
        )

    def test_a_projection_finds_fields_by_their_ids(self, tmp_path: Path) -> None:
        table = lance_format.write_dataset(pa.table({"a": [1], "b": [2]}), tmp_path)
        renamed = LanceSchema.from_pyarrow(pa.schema({"c": pa.int64(), "d": pa.int64()}))
        made = LanceDataset.commit(table, LanceOperation.Project(renamed), read_version=1)
        assert assert_same(tmp_path).to_table() == made.to_table() == pa.table({"c": [1], "d": [2]})


class TestTransactions:
    def test_appends_are_committed_together(self, tmp_path: Path) -> None:
        lance_format.write_dataset(TABLE, tmp_path)
        parts = [
            write_fragments(TABLE.slice(0, rows), lance_format.dataset(tmp_path), return_transaction=True)
            for rows in (1, 2)
        ]
        made = LanceDataset.commit_batch(tmp_path, parts)
        assert made["dataset"].version == 2
        assert made["dataset"].count_rows() == 13
        assert isinstance(made["merged"], Transaction)
        assert lance.dataset(tmp_path).read_transaction(2).uuid == made["merged"].uuid
        assert_same(tmp_path)
        with pytest.raises(InvalidInputError, match="no transaction"):
            LanceDataset.commit_batch(tmp_path, [])
        with pytest.raises(InvalidInputError, match="only appends"):
            LanceDataset.commit_batch(tmp_path, [Transaction(1, LanceOperation.Restore(1))])

    def test_a_transaction_is_committed_once(self, tmp_path: Path) -> None:
        transaction = write_fragments(TABLE, tmp_path, mode="create", return_transaction=True)
        assert LanceDataset.commit(tmp_path, transaction).version == 1
        assert LanceDataset.commit(tmp_path, transaction).version == 1
        with pytest.raises(InvalidInputError, match="those of the transaction"):
            LanceDataset.commit(tmp_path, transaction, read_version=1)
        restored = LanceDataset.commit(tmp_path, LanceOperation.Restore(1), enable_v2_manifest_paths=True, session=None)
        assert restored.version == 2
        with pytest.raises(InvalidInputError, match="'retries'"):
            LanceDataset.commit(tmp_path, LanceOperation.Restore(1), retries=3)

    def test_an_append_names_the_version_it_was_prepared_on(self, tmp_path: Path) -> None:
        table = lance_format.write_dataset(TABLE, tmp_path)
        append = LanceOperation.Append(write_fragments(TABLE, table))
        with pytest.raises(InvalidInputError, match="read_version is needed"):
            LanceDataset.commit(table, append)

    def test_configuration_and_metadata(self, tmp_path: Path) -> None:
        lance_format.write_dataset(TABLE, tmp_path)
        update = LanceOperation.UpdateMap({"a": "1", "b": None})
        operation = LanceOperation.UpdateConfig(update, update, update, {0: LanceOperation.UpdateMap({"c": "2"}, True)})
        made = LanceDataset.commit(tmp_path, Transaction(1, operation))
        theirs = assert_same(tmp_path)
        assert made.config() == theirs.config() == {"a": "1"}
        assert made.metadata == theirs.metadata == {"a": "1"}
        assert made.schema.metadata == {b"a": b"1"}
        assert made.schema.field("id").metadata == {b"c": b"2"}

    def test_indices_are_not_replaced(self) -> None:
        with pytest.raises(NotSupportedError, match="rewritten_indices"):
            LanceOperation.Rewrite([], [object()])
