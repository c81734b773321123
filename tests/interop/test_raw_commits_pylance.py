"""Operations that are prepared fragment by fragment and committed in one go, on tables of either library."""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lance_format
from lance_format import (
    CommitError,
    DatasetNotFoundError,
    InvalidInputError,
    LanceDataset,
    LanceFragment,
    LanceOperation,
    RetryableCommitConflictError,
    write_fragments,
)
from lance_format.file import LanceFileWriter
from lance_format.table.format.file_entries import DataFile
from tests.interop.test_scans_pylance import people
from tests.interop.test_table_pylance import assert_same

SCHEMA = people(20).schema


def some(num_rows: int) -> pa.Table:
    return people(50).slice(0, num_rows)


def test_create_append_and_overwrite(tmp_path: Path) -> None:
    path = tmp_path / "t"
    fragments = write_fragments(some(50), path, max_rows_per_file=20)
    assert [fragment.physical_rows for fragment in fragments] == [20, 20, 10]
    made = LanceDataset.commit(path, LanceOperation.Overwrite(SCHEMA, fragments), enable_stable_row_ids=True)
    assert made.version == 1
    assert made.has_stable_row_ids
    more = LanceFragment.create(path, some(7))
    made = LanceDataset.commit(path, LanceOperation.Append([more]), read_version=1, commit_message="seven more")
    assert made.count_rows() == 57
    assert lance.dataset(str(path)).read_transaction(2).transaction_properties == {
        "__lance_commit_message": "seven more"
    }
    assert_same(path)
    made = LanceDataset.commit(made, LanceOperation.Overwrite(SCHEMA, [LanceFragment.create(path, some(3))]))
    assert assert_same(path).to_table() == some(3)


@pytest.mark.parametrize("stable", [False, True])
def test_fragments_travel_as_json_between_the_libraries(tmp_path: Path, stable: bool) -> None:
    table = lance.write_dataset(some(50), str(tmp_path), max_rows_per_file=30, enable_stable_row_ids=stable)
    table.delete("id < 10")
    for fragment in table.get_fragments():
        theirs = fragment.metadata
        ours = lance_format.FragmentMetadata.from_json(json.dumps(theirs.to_json()))
        assert ours == lance_format.dataset(tmp_path).get_fragment(fragment.fragment_id).metadata
        assert theirs.to_json() == ours.to_json() | {"overlays": []}
        assert lance.FragmentMetadata.from_json(json.dumps(ours.to_json())) == theirs
        assert [(file.path, file.file_size_bytes) for file in ours.files] == [
            (file.path, file.file_size_bytes) for file in theirs.files
        ]
        assert ours.num_deletions == theirs.num_deletions


def test_fragments_of_the_other_library_are_committed(tmp_path: Path) -> None:
    texts = [json.dumps(fragment.to_json()) for fragment in lance.fragment.write_fragments(some(5), tmp_path)]
    fragments = [lance_format.FragmentMetadata.from_json(text) for text in texts]
    LanceDataset.commit(tmp_path, LanceOperation.Overwrite(SCHEMA, fragments))
    assert assert_same(tmp_path).to_table() == some(5)
    (mine,) = write_fragments(some(7), tmp_path)
    append = lance.LanceOperation.Append([lance.FragmentMetadata.from_json(json.dumps(mine.to_json()))])
    lance.LanceDataset.commit(tmp_path, append, read_version=1)
    assert assert_same(tmp_path).count_rows() == 12


@pytest.mark.parametrize("stable", [False, True])
def test_delete_and_merge(tmp_path: Path, stable: bool) -> None:
    lance.write_dataset(some(50), str(tmp_path), max_rows_per_file=20, enable_stable_row_ids=stable)
    table = lance_format.dataset(tmp_path)
    fragments = [fragment.delete("id % 3 = 0 or id >= 40") for fragment in table.get_fragments()]
    updated = [fragment for fragment in fragments if fragment is not None]
    assert fragments[2] is None
    made = LanceDataset.commit(table, LanceOperation.Delete(updated, [2], "id % 3 = 0"), table.version)
    assert assert_same(tmp_path).to_table(["id"])["id"].to_pylist() == [n for n in range(40) if n % 3]
    merged = [fragment.merge_columns({"twice": "id * 2"}) for fragment in made.get_fragments()]
    schema = merged[0][1]
    made = LanceDataset.commit(made, LanceOperation.Merge([fragment for fragment, _ in merged], schema), made.version)
    assert assert_same(tmp_path).to_table(["twice"])["twice"].to_pylist() == [2 * n for n in range(40) if n % 3]
    projected = made.lance_schema.select(["twice", "id"])
    made = LanceDataset.commit(made, LanceOperation.Project(projected), made.version)
    assert made.schema.names == ["twice", "id"]
    assert_same(tmp_path)
    made = LanceDataset.commit(made, LanceOperation.Restore(1), made.version)
    assert assert_same(tmp_path).to_table() == some(50)
    made = LanceDataset.commit(made, LanceOperation.ReserveFragments(5), made.version)
    lance_format.write_dataset(some(1), tmp_path, mode="append")
    assert max(fragment.fragment_id for fragment in assert_same(tmp_path).get_fragments()) == 8


def test_what_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t"
    (fragment,) = write_fragments(some(5), path)
    with pytest.raises(DatasetNotFoundError):
        LanceDataset.commit(path, LanceOperation.Append([fragment]))
    with pytest.raises(InvalidInputError, match="named twice"):
        LanceDataset.commit(path, LanceOperation.Overwrite(SCHEMA, [fragment, fragment]))
    with pytest.raises(InvalidInputError, match="LanceOperation"):
        LanceDataset.commit(path, "append")
    table = LanceDataset.commit(path, LanceOperation.Overwrite(SCHEMA, [fragment]))
    with pytest.raises(InvalidInputError, match="read_version"):
        LanceDataset.commit(path, LanceOperation.ReserveFragments(1))
    with pytest.raises(InvalidInputError, match="ids of fields"):
        LanceOperation.Merge([], SCHEMA)
    (lost,) = write_fragments(some(5), path)
    next(file for file in (path / "data").iterdir() if file.name == lost.files[0].path).unlink()
    with pytest.raises(CommitError, match="missing"):
        LanceDataset.commit(path, LanceOperation.Append([lost]), 1)
    deletion = table.get_fragments()[0].delete("id = 1")
    table.delete("id = 1")
    with pytest.raises(RetryableCommitConflictError):
        LanceDataset.commit(path, LanceOperation.Delete([deletion], [], "id = 1"), 1)
    assert assert_same(path).count_rows() == 4


def test_a_table_is_copied_from_another(tmp_path: Path) -> None:
    first = lance_format.write_dataset(some(30), tmp_path / "a", max_rows_per_file=10)
    lance_format.write_dataset(first, tmp_path / "b")
    lance_format.write_dataset(first.scanner(["id"], "id > 5").to_reader(), tmp_path / "c")
    assert assert_same(tmp_path / "b").to_table() == some(30)
    assert assert_same(tmp_path / "c").count_rows() == 24


def test_data_files_that_are_made_by_hand(tmp_path: Path) -> None:
    """Pylance's arguments: sequences of any kind, and an optional size."""
    path = tmp_path / "t"
    table = lance_format.write_dataset({"a": [1, 2]}, path)
    table.add_columns({"b": "'x'"})
    with LanceFileWriter(path / "data" / "new.lance") as writer:
        writer.write_batch(pa.table({"b": ["p", "q"]}))
    file = DataFile(
        "new.lance", [1], column_indices=[0], file_major_version=2, file_minor_version=2, file_size_bytes=None
    )
    assert file == DataFile("new.lance", (1,), (0,), 2, 2)
    replacement = LanceOperation.DataReplacement([LanceOperation.DataReplacementGroup(0, file)])
    made = LanceDataset.commit(table, replacement, table.version)
    assert (
        made.to_table().to_pydict() == {"a": [1, 2], "b": ["p", "q"]} == lance.dataset(str(path)).to_table().to_pydict()
    )
    assert isinstance(lance.dataset(str(path)).read_transaction(3).operation, lance.LanceOperation.DataReplacement)
    assert isinstance(made.read_transaction(3).operation, LanceOperation.DataReplacement)


@pytest.mark.parametrize("index_is_first", [True, False])
def test_an_index_of_lists_and_a_replacement_of_their_items(index_is_first: bool, tmp_path: Path) -> None:
    """The file names the items, and the index the list."""
    path = tmp_path / "t"
    table = lance_format.write_dataset({"a": [1, 2]}, path)
    table.add_columns(pa.table({"l": [["old"], ["old"]]}).to_reader())
    with LanceFileWriter(path / "data" / "new.lance") as writer:
        writer.write_batch(pa.table({"l": [["new"], ["new"]]}))
    fields = table.get_fragment(0).metadata.files[1].fields
    file = DataFile("new.lance", fields, column_indices=[0], file_major_version=2, file_minor_version=2)
    replacement = LanceOperation.DataReplacement([LanceOperation.DataReplacementGroup(0, file)])
    planned_on = table.version
    if index_is_first:
        table.create_scalar_index("l", "LABEL_LIST")
        LanceDataset.commit(path, replacement, planned_on)
    else:
        plan = table.plan_scalar_index("l", "LABEL_LIST")
        results = [task.execute(table) for task in plan.tasks]
        LanceDataset.commit(path, replacement, planned_on)
        with pytest.raises(RetryableCommitConflictError, match=f"fragment 0 of .* in version {planned_on + 1}"):
            plan.commit(table, results)
        table.create_scalar_index("l", "LABEL_LIST")
    for library in (lance_format, lance):
        found = [library.dataset(str(path)).count_rows(f"array_has(l, '{word}')") for word in ("old", "new")]
        assert found == [0, 2]


EXAMPLES: dict[str, Callable[[], Any]] = {
    "Append": lambda: LanceOperation.Append([]),
    "Overwrite": lambda: LanceOperation.Overwrite(pa.schema({"a": pa.int8()}), []),
    "Delete": lambda: LanceOperation.Delete([], [1], "true"),
    "Update": lambda: LanceOperation.Update(removed_fragment_ids=[1]),
    "Merge": lambda: LanceOperation.Merge([], lance_format.LanceSchema.from_pyarrow(pa.schema([]))),
    "Project": lambda: LanceOperation.Project(lance_format.LanceSchema.from_pyarrow(pa.schema([]))),
    "Restore": lambda: LanceOperation.Restore(1),
    "Rewrite": lambda: LanceOperation.Rewrite([]),
    "DataReplacement": lambda: LanceOperation.DataReplacement([]),
    "UpdateConfig": lambda: LanceOperation.UpdateConfig(),
    "ReserveFragments": lambda: LanceOperation.ReserveFragments(1),
}


def test_operations_are_told_apart() -> None:
    made = {name: example() for name, example in EXAMPLES.items()}
    for name in made:
        kind = getattr(LanceOperation, name)
        assert [other for other, operation in made.items() if isinstance(operation, kind)] == [name]
        assert kind.__doc__


def test_a_fragment_without_files_is_not_committed(tmp_path: Path) -> None:
    """Neither library reads a table that has one."""
    table = lance_format.write_dataset(pa.table({"a": range(5)}), tmp_path)
    (fragment,) = (dataclasses.replace(fragment.metadata, files=()) for fragment in table.get_fragments())
    operations = lance_format.LanceOperation
    for operation in (
        operations.Append([fragment]),
        operations.Overwrite(table.schema, [fragment]),
        operations.Update(updated_fragments=[fragment]),
        operations.Delete([fragment], [], "a = 1"),
    ):
        with pytest.raises(InvalidInputError, match="would have no data file"):
            lance_format.LanceDataset.commit(tmp_path, operation, read_version=1)
    assert lance.dataset(str(tmp_path)).version == lance_format.dataset(tmp_path).version == 1
