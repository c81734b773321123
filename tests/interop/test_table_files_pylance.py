"""Previews of cleanups, lists of files, and copies of tables: both libraries give the same."""

import datetime
import shutil
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lance_format
from lance_format import (
    DatasetExistsError,
    DatasetNotFoundError,
    InvalidInputError,
    NotSupportedError,
    VersionNotFoundError,
)
from lance_format.proto import table_pb2
from tests.interop.test_table_pylance import assert_same
from tests.table.builders import changed_manifest

AT_ONCE = datetime.timedelta(0)
ROW = ["a", "_rowid", "_row_created_at_version", "_row_last_updated_at_version"]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of all kinds of files, with a branch and a tag; versions 1 to 8."""
    path = tmp_path_factory.mktemp("files") / "t"
    schema = pa.schema([pa.field("a", pa.int64()), lance.blob_field("b")])
    data = pa.table([pa.array([1, 2, 3]), lance.blob_array([b"x", b"y" * 100_000, b"z" * 5_000_000])], schema=schema)
    table = lance.write_dataset(data, path, data_storage_version="2.2", enable_stable_row_ids=True)
    table.delete("a = 1")
    table.create_branch("side", 2)
    table.create_scalar_index("a", "ZONEMAP")
    table.update({"a": "a + 10"}, where="a = 3")
    table.tags.create("named", 3)
    lance.write_dataset(data, path, mode="overwrite")
    lance.dataset(path).update_config({"k": "v"})
    lance.dataset(path).create_scalar_index("a", "ZONEMAP")
    lance.dataset(path).checkout_version(("side", None)).delete("a = 2")
    lance.fragment.write_fragments(data.slice(0, 1), lance.dataset(path))  # Never committed.
    return path


def files(path: Path) -> set[str]:
    return {str(file.relative_to(path)) for file in path.rglob("*") if file.is_file()}


EXPLANATIONS: dict[str, dict[str, Any]] = {
    "all": {"older_than": AT_ONCE},
    "young": {},
    "by count": {"retain_versions": 3},
    "some": {"versions": [1, 4, 99]},
    "unverified": {"older_than": AT_ONCE, "delete_unverified": True},
    "few files": {"older_than": AT_ONCE, "max_files": 3},
}


@pytest.mark.parametrize("name", EXPLANATIONS)
def test_what_a_cleanup_would_remove(original: Path, tmp_path: Path, name: str) -> None:
    options = {"include_files": True, "error_if_tagged_old_versions": False, **EXPLANATIONS[name]}
    before = files(original)
    theirs = lance.dataset(original).explain_cleanup_old_versions(**options)
    ours = lance_format.dataset(original).explain_cleanup_old_versions(**options)
    assert files(original) == before
    kept = "_transactions/1-"  # pylance takes the transaction of the version that a branch starts from.
    extra = [file.size_bytes for file in theirs.candidate_files if kept in file.path]
    counts = {key: getattr(theirs.stats, key) for key in dir(theirs.stats) if key[0] != "_"}
    if name != "few files":
        counts["transaction_files_removed"] -= len(extra)
        counts["bytes_removed"] -= sum(extra)
        assert counts == {key: getattr(ours.stats, key) for key in counts}
        described = [
            {(Path(file.path).name, file.kind, file.size_bytes) for file in found if kept not in file.path}
            for found in (ours.candidate_files, theirs.candidate_files)
        ]
        assert described[0] == described[1]
    for key in ("read_version", "candidate_files_truncated", "candidate_file_limit", "warnings"):
        assert getattr(ours, key) == getattr(theirs, key)
    assert len(ours.candidate_files) == len(theirs.candidate_files) - (len(extra) if name != "few files" else 0)
    branches = [
        [(x.name, x.referenced_version, x.cleanup_candidate) for x in explained.referenced_branches]
        for explained in (ours, theirs)
    ]
    assert branches[0] == branches[1] == ([] if name in ("young", "some") else [("side", 2, False)])
    shutil.copytree(original, tmp_path / "t")
    if not EXPLANATIONS[name].get("max_files"):  # A branch of a table that was copied is not where it says.
        shutil.rmtree(tmp_path / "t" / "tree")
        shutil.rmtree(tmp_path / "t" / "_refs" / "branches")
        arguments = {"error_if_tagged_old_versions": False, **EXPLANATIONS[name]}
        table = lance_format.dataset(tmp_path / "t")
        explained = table.explain_cleanup_old_versions(**arguments, include_files=True)
        before = files(tmp_path / "t")
        assert table.cleanup_old_versions(**arguments, delete_concurrency=4) == explained.stats
        gone = {str(Path(file.path).relative_to(tmp_path / "t")) for file in explained.candidate_files}
        assert before - files(tmp_path / "t") == gone


def test_an_explanation_needs_what_a_cleanup_needs(original: Path) -> None:
    table = lance_format.dataset(original)
    with pytest.raises(InvalidInputError, match="'named'"):
        table.explain_cleanup_old_versions(AT_ONCE)
    with pytest.raises(InvalidInputError, match="max_files"):
        table.explain_cleanup_old_versions(max_files=0)
    assert table.explain_cleanup_old_versions(AT_ONCE, error_if_tagged_old_versions=False).candidate_files == []
    assert table.explain_cleanup_old_versions(AT_ONCE, versions=[]).stats.bytes_removed == 0


@pytest.mark.parametrize("branch", [None, "side"])
def test_files_are_listed_alike(original: Path, branch: str | None) -> None:
    ours, theirs = (library.dataset(original).checkout_version((branch, None)) for library in (lance_format, lance))
    for name, options in (("all_files", {}), ("tracked_files", {}), ("tracked_files", {"min_version": 5})):
        lists = [getattr(table, name)(**options).read_all() for table in (ours, theirs)]
        assert lists[0].schema == lists[1].schema
        if name == "all_files":
            times = [found.sort_by("path")["last_modified"].cast(pa.int64()).to_numpy() for found in lists]
            assert abs(times[0] - times[1]).max() <= 1
            lists = [found.drop_columns(["last_modified"]) for found in lists]
        rows = [sorted(map(str, found.to_pylist())) for found in lists]
        assert rows[0] == rows[1]
    if branch is None:
        assert set(ours.all_files().read_all()["path"].to_pylist()) == files(original)
    calls: list[tuple[int, int | None]] = []
    ours.tracked_files(progress=lambda *counts: calls.append(counts)).read_all()
    total = len(ours.versions())
    assert calls == [(count, total) for count in range(1, total + 1)]


@pytest.mark.parametrize("reference", ["named", 2, 7, ("side", None), (None, None), ("side", 2)], ids=str)
def test_clones(original: Path, tmp_path: Path, reference: Any) -> None:
    ours = lance_format.dataset(original).deep_clone(tmp_path / "ours", reference)
    theirs = lance.dataset(original).deep_clone(tmp_path / "theirs", reference)
    source = lance_format.dataset(original).checkout_version(reference)
    assert ours.version == theirs.version == source.version
    assert [version["version"] for version in ours.versions()] == [source.version]
    assert ours.to_table(ROW) == theirs.to_table(columns=ROW) == source.to_table(ROW)
    assert ours.to_table(blob_handling="all_binary") == source.to_table(blob_handling="all_binary")
    kept = ("data/", "_deletions/")
    copied = [{file for file in files(tmp_path / name) if file.startswith(kept)} for name in ("ours", "theirs")]
    assert copied[0] == copied[1]
    assert ours.config() == source.config()
    assert [index["uuid"] for index in ours.list_indices()] == [index["uuid"] for index in source.list_indices()]
    ours.validate()
    assert ours.count_rows("a >= 2") == source.count_rows("a >= 2")
    made, expected = (lance.dataset(tmp_path / name).read_transaction(ours.version) for name in ("ours", "theirs"))
    assert type(made.operation) is type(expected.operation)
    assert made.read_version == expected.read_version
    ours.insert(source.to_table(blob_handling="all_binary").select(["a"]))
    lance.dataset(tmp_path / "ours").delete("a = 2")
    assert_same(tmp_path / "ours")
    assert lance_format.dataset(original).checkout_version(reference).to_table(ROW) == source.to_table(ROW)


def test_clones_are_not_made_over_tables(original: Path, tmp_path: Path) -> None:
    table = lance_format.dataset(original)
    table.deep_clone(tmp_path / "t", 2)
    before = files(tmp_path / "t")
    with pytest.raises(DatasetExistsError):
        table.deep_clone(tmp_path / "t", 2)
    with pytest.raises(VersionNotFoundError):
        table.deep_clone(tmp_path / "u", "nothing")
    assert files(tmp_path / "t") == before
    assert not (tmp_path / "u").exists()


def test_a_clone_goes_on_where_it_was_interrupted(original: Path, tmp_path: Path) -> None:
    source = tmp_path / "source"
    lance_format.dataset(original).deep_clone(source, 7)
    lost = next((source / "data").rglob("*.lance"))
    lost.rename(tmp_path / "lost")
    with pytest.raises(DatasetNotFoundError, match="is missing"):
        lance_format.dataset(source).deep_clone(tmp_path / "t", 7)
    with pytest.raises(DatasetNotFoundError):
        lance_format.dataset(tmp_path / "t")
    (tmp_path / "lost").rename(lost)
    table = lance_format.dataset(source).deep_clone(tmp_path / "t", 7, default_scan_options={"columns": ["a"]})
    assert table.to_table() == lance_format.dataset(source).to_table(["a"])


def test_a_clone_may_lie_in_another_store(original: Path) -> None:
    copy = lance_format.dataset(original).deep_clone("memory://test_table_files/copy", ("side", None))
    assert copy.to_table(["a"])["a"].to_pylist() == [3]
    lance_format.LanceDataset.drop("memory://test_table_files/copy")


def test_a_table_with_external_row_ids_is_not_cloned(tmp_path: Path) -> None:
    lance_format.write_dataset(pa.table({"a": [1, 2]}), tmp_path / "t", enable_stable_row_ids=True)
    (manifest,) = (tmp_path / "t" / "_versions").glob("*.manifest")

    def move(message: table_pb2.Manifest) -> None:
        message.fragments[0].external_row_ids.MergeFrom(table_pb2.ExternalFile(path="abc.rowids", offset=0, size=9))

    manifest.write_bytes(changed_manifest(manifest.read_bytes(), move))
    with pytest.raises(NotSupportedError, match="row ids in a separate file"):
        lance_format.dataset(tmp_path / "t").deep_clone(tmp_path / "copy", 1)
    assert not (tmp_path / "copy").exists()
