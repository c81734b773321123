"""Shallow clones: tables of their own that share the files of a version of another one."""

from __future__ import annotations

import datetime
import pickle
from pathlib import Path

import pyarrow as pa
import pytest

import lance_format
from lance_format import (
    DatasetExistsError,
    InvalidInputError,
    LanceDataset,
    NotSupportedError,
    StorageError,
    VersionNotFoundError,
    dataset,
    write_dataset,
)
from lance_format.object_store.local import LocalStore


@pytest.fixture
def source(tmp_path: Path) -> LanceDataset:
    """Return a table of two fragments, of which the first has lost a row, with an index and a branch."""
    path = tmp_path / "source"
    write_dataset(pa.table({"a": range(10)}), path)
    table = write_dataset(pa.table({"a": range(10, 20)}), path, mode="append")
    table.delete("a = 3")
    table.create_scalar_index("a", "ZONEMAP")
    table.create_branch("other")
    return dataset(path)


def _allow(*directories: object) -> dict[str, str]:
    return {"allowed_base_paths": ",".join(map(str, directories))}


def _rows(table: LanceDataset) -> list[int]:
    values: list[int] = table.to_table()["a"].to_pylist()
    return values


def _files(directory: Path) -> set[str]:
    return {str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file()}


def _without(*numbers: int) -> list[int]:
    return [number for number in range(20) if number not in numbers]


def test_a_clone_has_the_rows_and_no_data(source: LanceDataset, tmp_path: Path) -> None:
    clone = source.shallow_clone(tmp_path / "clone", source.version)
    assert clone.version == source.version
    assert _rows(clone) == _rows(source) == _without(3)
    assert not [name for name in _files(tmp_path / "clone") if name.endswith((".lance", ".arrow"))]
    assert clone.to_table(filter="a > 15").num_rows == 4
    assert [index["name"] for index in clone.list_indices()] == ["a_idx"]
    assert clone.validate() is None
    assert _rows(pickle.loads(pickle.dumps(clone))) == _without(3)


def test_changes_of_one_are_not_seen_by_the_other(source: LanceDataset, tmp_path: Path) -> None:
    clone = source.shallow_clone(tmp_path / "clone", source.version)
    before = _files(tmp_path / "source")
    clone.delete("a < 3")
    clone.update({"a": "100"}, where="a = 19")
    clone.insert(pa.table({"a": [7]}))
    clone.optimize.optimize_indices()
    clone.optimize.compact_files(target_rows_per_fragment=1000)
    clone.cleanup_old_versions(datetime.timedelta(0), delete_unverified=True)
    assert _files(tmp_path / "source") == before
    source.delete("a > 10")
    assert _rows(dataset(tmp_path / "source")) == [0, 1, 2, *range(4, 11)]
    again = dataset(tmp_path / "clone", storage_options=_allow(tmp_path / "source"))
    assert sorted(_rows(again)) == sorted([*_without(0, 1, 2, 3, 19), 100, 7])
    assert again.verify().problems == ()


def test_who_opens_a_clone_allows_the_place_of_its_files(source: LanceDataset, tmp_path: Path) -> None:
    source.shallow_clone(tmp_path / "clone", source.version)
    for options in (None, _allow(), _allow(tmp_path / "sour"), _allow(tmp_path / "source" / "data"), _allow("s3://b")):
        with pytest.raises(NotSupportedError, match=f"in '{source.uri}'.* option 'allowed_base_paths'"):
            dataset(tmp_path / "clone", storage_options=options)
    for options in (
        _allow(tmp_path),
        _allow("/"),
        _allow("s3://b", f"{tmp_path}/source/"),
        {"ALLOWED_BASE_PATHS": f" {tmp_path}/source , /elsewhere"},
        _allow((tmp_path / "source").as_uri()),
    ):
        assert dataset(tmp_path / "clone", storage_options=options).count_rows() == 19


def test_any_version_can_be_cloned(source: LanceDataset, tmp_path: Path) -> None:
    source.tags.create("full", 2)
    assert source.shallow_clone(tmp_path / "tagged", "full").count_rows() == 20
    assert source.shallow_clone(tmp_path / "first", 1).count_rows() == 10
    branch = source.checkout_version(("other", None))
    branch.delete("a < 5")
    clone = source.shallow_clone(tmp_path / "of branch", ("other", None))
    assert clone.count_rows() == 15
    assert clone.branches.list() == {}
    of_clone = clone.shallow_clone(tmp_path / "of clone", clone.version)
    assert _rows(of_clone) == _without(0, 1, 2, 3, 4)
    with pytest.raises(VersionNotFoundError):
        source.shallow_clone(tmp_path / "no clone", 99)
    assert not (tmp_path / "no clone").exists()


def test_clones_have_branches_and_copies(source: LanceDataset, tmp_path: Path) -> None:
    clone = source.shallow_clone(tmp_path / "clone", source.version)
    branch = clone.create_branch("try")
    branch.delete("a > 5")
    assert (clone.count_rows(), _rows(branch)) == (19, [0, 1, 2, 4, 5])
    clone.deep_clone(tmp_path / "copy", ("try", None))
    copy = dataset(tmp_path / "copy")  # without permission
    assert _rows(copy) == [0, 1, 2, 4, 5]
    clone.branches.delete("try")
    LanceDataset.drop(tmp_path / "clone", storage_options=_allow(tmp_path / "source"))
    assert source.validate() is None
    assert source.verify().problems == ()


def test_places_that_a_clone_cannot_have(source: LanceDataset, tmp_path: Path) -> None:
    for place in (tmp_path / "source", tmp_path / "source" / "clone", tmp_path):
        with pytest.raises(InvalidInputError, match="lies in the other"):
            source.shallow_clone(place, 1)
    with pytest.raises(InvalidInputError, match=r"in another store than .* deep_clone"):
        source.shallow_clone("memory://clone", 1)
    source.shallow_clone(tmp_path / "clone", 1)
    with pytest.raises(DatasetExistsError):
        source.shallow_clone(tmp_path / "clone", 2)
    write_dataset(pa.table({"a": [1]}), tmp_path / "a,b")
    with pytest.raises(InvalidInputError, match="comma"):
        dataset(tmp_path / "a,b").shallow_clone(tmp_path / "c", 1)


def test_a_lost_file_of_the_source_is_named(source: LanceDataset, tmp_path: Path) -> None:
    clone = source.shallow_clone(tmp_path / "clone", source.version)
    lost = next((tmp_path / "source" / "data").iterdir())
    lost.unlink()
    with pytest.raises(lance_format.LanceError, match=lost.name):
        clone.to_table()


def test_links_to_other_stores_are_refused(source: LanceDataset, tmp_path: Path) -> None:
    clone = source.shallow_clone(tmp_path / "clone", 1)
    assert clone.count_rows() == 10
    (manifest,) = (tmp_path / "clone" / "_versions").glob("*.manifest")
    bucket = "s3://" + "b" * (len(str(tmp_path)) - 5)
    manifest.write_bytes(manifest.read_bytes().replace(str(tmp_path).encode(), bucket.encode()))
    with pytest.raises(NotSupportedError, match="another store"):
        dataset(tmp_path / "clone", storage_options=_allow(bucket), verify_checksums=False)


def test_a_clone_that_fails_leaves_nothing(
    source: LanceDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: LocalStore, path: str, *args: object, **options: object) -> None:
        raise StorageError(f"cannot create {path}: No space left on device")

    monkeypatch.setattr(LocalStore, "put_if_absent", fail)
    with pytest.raises(StorageError, match="No space left"):
        source.shallow_clone(tmp_path / "new" / "clone", source.version)
    assert not (tmp_path / "new").exists()
    monkeypatch.undo()
    assert _rows(source.shallow_clone(tmp_path / "new" / "clone", source.version)) == _without(3)
