"""Dropping tables: all of a table is removed, and nothing else."""

from collections.abc import Iterator
from pathlib import Path

import lance
import pyarrow as pa
import pytest

import lance_format
from lance_format import (
    CorruptFileError,
    DatasetNotFoundError,
    InvalidInputError,
    LanceDataset,
    StorageError,
    VersionNotFoundError,
)
from lance_format.object_store.local import LocalStore
from lance_format.table.format.table_directory import TableDirectory
from lance_format.table.maintenance.drop_table import drop_table
from tests.table.builders import column, rows


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A table with all that one can have, and a directory beside it to which a link in it leads."""
    path = tmp_path / "t"
    (tmp_path / "other").mkdir()
    (tmp_path / "other/kept").touch()
    lance_format.write_dataset(rows(0, 9), path, max_rows_per_file=4)
    table = lance_format.write_dataset(rows(9, 12), path, mode="append")
    lance.dataset(path).create_scalar_index("a", "BTREE")
    table.delete("a = 3")
    table.tags.create("x", 1)
    table.create_branch("b/c", 2).delete("a = 5")
    (path / "notes").mkdir()
    (path / "notes/of mine").touch()
    (path / "tree/empty").mkdir()
    (path / "link").symlink_to(tmp_path / "other")
    return path


def test_all_of_it_goes(path: Path) -> None:
    (path / "tree/empty").rmdir()
    LanceDataset.drop(path)
    assert [entry.name for entry in path.parent.iterdir()] == ["other"]
    assert (path.parent / "other/kept").exists()
    with pytest.raises(DatasetNotFoundError, match="no Lance table at"):
        LanceDataset.drop(path)
    LanceDataset.drop(path, ignore_not_found=True)
    lance_format.write_dataset(rows(5, 6), path)
    assert column(path) == [5]


def test_a_drop_during_a_write_is_told(tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = lance_format.write_dataset(rows(0, 9), path)

    def dropping() -> Iterator[pa.RecordBatch]:
        yield from rows(0, 9).to_batches()
        LanceDataset.drop(path)
        yield from rows(0, 9).to_batches()

    with pytest.raises(StorageError, match="removed concurrently, as by a drop of its table") as caught:
        table.insert(pa.RecordBatchReader.from_batches(rows(0, 9).schema, dropping()))
    assert not isinstance(caught.value, FileNotFoundError)
    with pytest.raises(DatasetNotFoundError, match="no Lance table at"):
        table.tags.create("x", 1)


def test_what_has_been_interrupted_is_completed(path: Path) -> None:
    class Tired(LocalStore):
        left = 0

        def delete(self, path: str) -> None:
            if not self.left:
                raise StorageError("tired")
            self.left -= 1
            super().delete(path)

    for num_files in range(3, 100):
        store = Tired()
        store.left = num_files
        try:
            drop_table(TableDirectory(store, str(path)))
        except StorageError:
            assert lance_format.dataset(path).version == 4
        else:
            break
    assert not [entry for entry in path.rglob("*") if not entry.is_dir()]


def test_what_is_no_table_stays(path: Path) -> None:
    for wrong in (path / "data", path.parent / "other", path.parent):
        before = sorted(wrong.rglob("*"))
        for ignore_not_found in (False, True):
            with pytest.raises(DatasetNotFoundError, match="nothing was deleted"):
                LanceDataset.drop(wrong, ignore_not_found=ignore_not_found)
        assert sorted(wrong.rglob("*")) == before


def test_branches_stay(path: Path) -> None:
    branch = lance_format.dataset(path, ("b/c", None))
    with pytest.raises(InvalidInputError, match=r"branch 'b/c' of a table; delete it by branches\.delete"):
        LanceDataset.drop(branch.uri)
    assert 5 not in column(branch.uri)
    with pytest.raises(VersionNotFoundError):
        lance_format.dataset(path, 9)


def test_what_may_be_no_table_stays(path: Path) -> None:
    (path / "_versions" / f"{2**64 - 1 - 5}.manifest").write_bytes(b"garbage")
    before = sorted(path.rglob("*"))
    with pytest.raises(CorruptFileError):
        LanceDataset.drop(path)
    assert sorted(path.rglob("*")) == before
