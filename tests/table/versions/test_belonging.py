"""Manifests of other tables in the place of a table's own."""

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

import lance_format
from lance_format import CorruptFileError, DatasetNotFoundError, LanceDataset


def _table(path: Path, num_rows: int, num_versions: int) -> LanceDataset:
    for version in range(num_versions):
        rows = pa.table({"x": pa.array(range(num_rows))})
        lance_format.write_dataset(rows, path, mode="append" if version else "create")
    return lance_format.dataset(path)


def _exchange(path: Path, other: Path, version: int) -> None:
    name = f"_versions/{2**64 - 1 - version}.manifest"
    shutil.copyfile(other / name, path / name)


@pytest.mark.parametrize("num_versions", [1, 3])
def test_the_latest_manifest_of_another_table(tmp_path: Path, num_versions: int) -> None:
    _table(tmp_path / "a", 10, num_versions)
    _table(tmp_path / "b", 20, num_versions)
    _exchange(tmp_path / "a", tmp_path / "b", num_versions)
    dataset = lance_format.dataset(tmp_path / "a")
    message = f"version {num_versions} names files that are not there, as .*/data/.*: .* the manifest of another table"
    for read in (
        dataset.versions,
        dataset.count_rows,
        lambda: list(dataset.version_log()),
        lambda: dataset.scanner(columns=[]).plan_tasks(),
    ):
        with pytest.raises(CorruptFileError, match=message) as raised:
            read()
        assert str(raised.value.path).startswith(str(tmp_path / "a/_versions/"))


def test_an_older_manifest_of_another_table(tmp_path: Path) -> None:
    dataset = _table(tmp_path / "a", 10, 3)
    _table(tmp_path / "b", 20, 3)
    _exchange(tmp_path / "a", tmp_path / "b", 2)
    assert dataset.count_rows() == 30
    with pytest.raises(CorruptFileError, match="version 2 names files that are not there"):
        dataset.versions()
    (description, _), *_ = dataset.version_log(1)
    assert description["version"] == 3


def test_a_version_whose_files_are_removed_first(tmp_path: Path) -> None:
    """As pylance's cleanups do: its manifest is removed after them."""
    _table(tmp_path / "a", 10, 1)
    lance_format.write_dataset({"x": [1]}, tmp_path / "a", mode="overwrite")
    old = lance_format.dataset(tmp_path / "a", version=1)
    for name in ("data", "_transactions"):
        min((tmp_path / "a" / name).iterdir(), key=lambda path: path.stat().st_mtime_ns).unlink()
    for read in (
        old.count_rows,
        old.to_table,
        lambda: list(old.version_log()),
        lambda: old.scanner(columns=[]).plan_tasks(),
    ):
        with pytest.raises(DatasetNotFoundError, match=r"cleanup .* this version of the table, open the latest"):
            read()
    assert lance_format.dataset(tmp_path / "a").count_rows() == 1


def test_a_version_of_a_writer_that_was_too_late_is_listed(tmp_path: Path) -> None:
    dataset = _table(tmp_path / "a", 10, 2)
    late = tmp_path / "late"
    shutil.copytree(tmp_path / "a", late)
    dataset.delete("x = 1")
    dataset.delete("x = 2")
    lance_format.dataset(late).delete("x = 3")
    for name in ("_versions", "_deletions"):
        shutil.copytree(late / name, tmp_path / "a" / name, dirs_exist_ok=True)
    assert [found["version"] for found in dataset.versions()] == [1, 2, 3, 4]


def test_a_lost_data_file_hides_no_version(tmp_path: Path) -> None:
    dataset = _table(tmp_path / "a", 10, 2)
    (tmp_path / "a/data" / dataset.get_fragments()[-1].data_files()[0].path).unlink()
    assert [found["version"] for found in dataset.versions()] == [1, 2]


def test_tables_without_rows(tmp_path: Path) -> None:
    dataset = _table(tmp_path / "a", 10, 1)
    dataset.delete("true")
    assert dataset.count_rows() == 0
    assert [found["version"] for found in dataset.versions()] == [1, 2]
