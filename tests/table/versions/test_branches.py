"""Branches: tables that share files with their parents, and with nobody else."""

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import MessageToJson

import lance_format
from lance_format import (
    CommitStateUnknownError,
    CorruptFileError,
    DatasetNotFoundError,
    FragmentMetadata,
    InvalidInputError,
    LanceDataset,
    NotSupportedError,
    StorageError,
    VersionNotFoundError,
)
from lance_format.object_store.local import LocalStore
from lance_format.proto import table_pb2
from lance_format.table.changes.rows.delete import plan_delete
from lance_format.table.changes.write.plan import plan_write
from lance_format.table.format.fragment import parse_fragment, serialize_fragment
from lance_format.table.transaction.operations import Delete
from lance_format.table.versions.history import load_history
from lance_format.table.versions.planned_change import run_change
from tests.table.builders import changed_manifest, column, rows
from tests.table.leftovers import leftovers


@pytest.fixture
def table(tmp_path: Path) -> LanceDataset:
    lance_format.write_dataset(rows(0, 10), tmp_path, max_rows_per_file=5)
    lance_format.write_dataset(rows(10, 12), tmp_path, mode="append")
    opened = lance_format.dataset(tmp_path)
    opened.delete("a = 3")
    return opened


def test_a_branch_goes_its_own_way(table: LanceDataset, tmp_path: Path) -> None:
    branch = table.create_branch("side/way", 2)
    assert (branch.version, branch.uri) == (2, f"{tmp_path}/tree/side/way")
    assert branch.count_rows() == 12
    lance_format.write_dataset(rows(50, 51), branch.uri, mode="append")
    branch.delete("a < 10")
    assert column(branch.uri) == [10, 11, 50]
    assert column(tmp_path) == [0, 1, 2, 4, 5, 6, 7, 8, 9, 10, 11]
    lance_format.write_dataset(rows(7, 8), branch.uri, mode="overwrite")
    assert column(branch.uri) == [7]
    again = branch.checkout_version(2)
    assert again.count_rows() == 12
    again.restore()
    assert branch.checkout_version(("side/way", None)).count_rows() == 12
    assert branch.checkout_version((None, None)).version == 3
    assert branch.checkout_version(("main", 1)).uri == str(tmp_path)
    assert pickle.loads(pickle.dumps(again)).count_rows() == 12
    assert lance_format.dataset(branch.uri).branches.list() == table.branches.list()


def test_deletions_of_two_writers_are_united(table: LanceDataset) -> None:
    """One deletion file lies with the parent, the others in the branch. That of the second writer alone is deleted."""
    branch = table.create_branch("b")
    first = lance_format.dataset(branch.uri)._table
    run_change(first, plan_delete(first, "a = 1"))
    run_change(first, plan_delete(first, "a = 2"))
    assert column(branch.uri) == [0, *range(4, 12)]
    assert leftovers(Path(table.uri)) == set()


@pytest.mark.parametrize(
    "name",
    ["", "main", "..", "a/../b", ".a", "a/.b", "/a", "a//b", "data", "a/_versions", "tree", "x.lock", "a b", "ü", 7],
)
def test_names_that_are_refused(table: LanceDataset, tmp_path: Path, name: str) -> None:
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(InvalidInputError):
        table.create_branch(name)
    assert sorted(tmp_path.rglob("*")) == before


def test_what_a_branch_cannot_start_from(table: LanceDataset, tmp_path: Path) -> None:
    before = sorted(tmp_path.rglob("*"))
    for reference in (9, "nope", ("nope", 1), ("main", 9)):
        with pytest.raises(VersionNotFoundError):
            table.create_branch("b", reference)
    assert sorted(tmp_path.rglob("*")) == before


def test_names_that_are_taken(table: LanceDataset, tmp_path: Path) -> None:
    table.create_branch("b")
    with pytest.raises(InvalidInputError, match=r"'b' .* exists"):
        table.create_branch("b", 1)
    (tmp_path / "_refs/branches/b.json").unlink()
    with pytest.raises(InvalidInputError, match="another branch"):
        table.create_branch("b")


def test_a_branch_that_fails_leaves_no_name(
    table: LanceDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put, before = LocalStore.put_if_absent, set(tmp_path.rglob("*"))

    def fail(store: LocalStore, path: str, data: bytes) -> None:
        if path.endswith(".manifest"):
            raise StorageError("the disk is full")
        put(store, path, data)

    monkeypatch.setattr(LocalStore, "put_if_absent", fail)
    with pytest.raises(StorageError):
        table.create_branch("b")
    monkeypatch.undo()
    assert set(tmp_path.rglob("*")) == before
    assert table.branches.list() == {}
    assert table.create_branch("b").count_rows() == 11


def test_a_lost_reply_is_no_failure(table: LanceDataset, monkeypatch: pytest.MonkeyPatch) -> None:
    put = LocalStore.put_if_absent

    def lose_the_reply(store: LocalStore, path: str, data: bytes) -> None:
        put(store, path, data)
        put(store, path, data)

    monkeypatch.setattr(LocalStore, "put_if_absent", lose_the_reply)
    assert table.create_branch("b").count_rows() == 11
    table.tags.create("t")
    assert table.checkout_version("t").count_rows() == 11


@pytest.mark.parametrize("is_reachable", [True, False])
def test_a_name_that_may_have_been_stored(
    table: LanceDataset, monkeypatch: pytest.MonkeyPatch, is_reachable: bool
) -> None:
    put = LocalStore.put_if_absent

    def fail(store: LocalStore, path: str, data: bytes) -> None:
        put(store, path, data)
        if not is_reachable:
            monkeypatch.setattr(LocalStore, "delete_exact", fail_always)
        raise StorageError("the connection was lost")

    def fail_always(*_: object) -> bool:
        raise StorageError("no connection")

    monkeypatch.setattr(LocalStore, "put_if_absent", fail)
    with pytest.raises(StorageError if is_reachable else CommitStateUnknownError, match="connection was lost"):
        table.tags.create("t")
    with pytest.raises(StorageError, match="connection"):
        table.create_branch("b")
    monkeypatch.undo()
    assert (list(table.tags.list()), table.branches.list()) == ([] if is_reachable else ["t"], {})
    assert table.create_branch("b").count_rows() == 11


def rewrite(branch: LanceDataset, change: Callable[[table_pb2.Manifest], Any]) -> None:
    """Change the manifest of a branch."""
    table = branch._table
    path = load_history(table.directory).manifest_path(branch.version)
    Path(path).write_bytes(changed_manifest(Path(path).read_bytes(), change))


@pytest.mark.parametrize(
    "place",
    ["/etc", "{main}/..", "{main}/data", "{main}/tree", "{main}/tree/a/../../..", "{main}x", "s3://bucket/x", "", "."],
)
def test_only_branches_share_files(table: LanceDataset, tmp_path: Path, place: str) -> None:
    branch = table.create_branch("b")
    rewrite(branch, lambda message: setattr(message.base_paths[0], "path", place.format(main=tmp_path)))
    with pytest.raises(NotSupportedError, match="base paths"):
        lance_format.dataset(branch.uri)


def not_a_dataset(message: table_pb2.Manifest) -> None:
    message.base_paths[0].is_dataset_root = False


def test_files_are_in_a_directory_of_data_files_itself(table: LanceDataset) -> None:
    branch = table.create_branch("b")
    rewrite(branch, not_a_dataset)
    with pytest.raises(DatasetNotFoundError, match=r"the data file [^ ]*_0/[^/ ]*\.lance of fragment 0 is missing"):
        lance_format.dataset(branch.uri).to_table()


@pytest.mark.parametrize(
    "change",
    [
        lambda message: setattr(message.base_paths[0], "id", 7),
        lambda message: setattr(message.fragments[0].deletion_file, "base_id", 7),
        lambda message: message.base_paths.append(message.base_paths[0]),
        lambda message: setattr(message, "branch", "../x"),
        lambda message: setattr(message, "branch", "main"),
    ],
)
def test_damaged_manifests(table: LanceDataset, change: Callable[[table_pb2.Manifest], Any]) -> None:
    branch = table.create_branch("b")
    rewrite(branch, change)
    with pytest.raises(CorruptFileError):
        lance_format.dataset(branch.uri)


def test_a_branch_elsewhere_is_refused(table: LanceDataset, tmp_path: Path) -> None:
    branch = table.create_branch("b")
    Path(branch.uri).rename(tmp_path / "elsewhere")
    with pytest.raises(NotSupportedError, match="base paths"):
        lance_format.dataset(tmp_path / "elsewhere")


def test_what_is_written_lies_in_the_table(table: LanceDataset, tmp_path: Path) -> None:
    write = plan_write(str(tmp_path), rows(0, 0).schema, mode="append")
    message = serialize_fragment(write.write_fragments(rows(0, 1).to_batches())[0])
    message.files[0].base_id = 0
    with pytest.raises(InvalidInputError, match="outside"):
        write.commit([FragmentMetadata.from_json(MessageToJson(message))])


def test_no_version_is_made_that_names_an_unknown_place(table: LanceDataset) -> None:
    message = serialize_fragment(table._table.manifest.fragments[0])
    message.files[0].base_id = 0
    with pytest.raises(CorruptFileError, match="base path"):
        table._table.commit(Delete((parse_fragment(message),), frozenset()))
    assert table.latest_version == table.version
