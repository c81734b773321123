"""Deletion files, well-formed and not."""

import dataclasses
import io
import random
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pyroaring
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lance_format
from lance_format import CorruptFileError, DatasetNotFoundError, LanceDataset, StorageError
from lance_format.object_store.local import LocalStore
from lance_format.table.format.file_entries import DeletionFile, DeletionFileType
from lance_format.table.format.fragment import FragmentMetadata
from lance_format.table.format.table_directory import TableDirectory
from lance_format.table.fragments.deletion_file import read_deleted_rows
from lance_format.table.fragments.reader import to_physical
from tests.table.builders import some_fragment
from tests.table.faults import FaultyStore
from tests.table.leftovers import leftovers

ARROW, BITMAP = DeletionFileType.ARROW_ARRAY, DeletionFileType.BITMAP


def arrow_file(rows: pa.Array) -> bytes:
    sink = io.BytesIO()
    batch = pa.record_batch([rows], names=["row_id"])
    with pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


def content(file_type: DeletionFileType, rows: list[int]) -> bytes:
    return arrow_file(pa.array(rows, pa.uint32())) if file_type is ARROW else pyroaring.BitMap(rows).serialize()


def read(root: Path, file_type: DeletionFileType, data: bytes, announced: int, physical_rows: int = 100) -> list[int]:
    deletion = DeletionFile(3, 99, file_type, announced)
    fragment = FragmentMetadata(7, some_fragment().files, physical_rows, deletion)
    path = root / f"_deletions/7-3-99.{'arrow' if file_type is ARROW else 'bin'}"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    return read_deleted_rows(TableDirectory(LocalStore(), str(root)), fragment, physical_rows).tolist()


@pytest.mark.parametrize("file_type", DeletionFileType)
class TestBothKinds:
    @pytest.mark.parametrize("rows", [[], [0], [99, 3, 50], list(range(100))])
    def test_the_rows_come_sorted(self, tmp_path: Path, file_type: DeletionFileType, rows: list[int]) -> None:
        for announced in (len(rows), 0):
            assert read(tmp_path, file_type, content(file_type, rows), announced) == sorted(rows)

    def test_rows_that_are_not_there(self, tmp_path: Path, file_type: DeletionFileType) -> None:
        with pytest.raises(CorruptFileError, match="100 rows"):
            read(tmp_path, file_type, content(file_type, [1, 100]), 2)

    def test_another_number_than_announced(self, tmp_path: Path, file_type: DeletionFileType) -> None:
        with pytest.raises(CorruptFileError, match="3 deleted rows are announced, 2 found"):
            read(tmp_path, file_type, content(file_type, [1, 2]), 3)

    def test_more_bytes_than_the_rows_can_take(self, tmp_path: Path, file_type: DeletionFileType) -> None:
        with pytest.raises(CorruptFileError, match="at most"):
            read(tmp_path, file_type, bytes(2 << 20), 1)

    def test_cut_at_every_byte(self, tmp_path: Path, file_type: DeletionFileType) -> None:
        data = content(file_type, [1, 2, 70])
        for size in range(len(data)):
            with pytest.raises(CorruptFileError):
                read(tmp_path, file_type, data[:size], 3)

    def test_flipped_bits_are_told_or_harmless(self, tmp_path: Path, file_type: DeletionFileType) -> None:
        data = content(file_type, list(range(0, 100, 3)))
        chosen = random.Random(5)
        for _ in range(500):
            broken = bytearray(data)
            broken[chosen.randrange(len(data))] ^= 1 << chosen.randrange(8)
            try:
                rows = read(tmp_path, file_type, bytes(broken), 34)
            except CorruptFileError:
                continue
            assert len(set(rows)) == 34
            assert set(rows) <= set(range(100))

    def test_a_file_that_is_gone(self, tmp_path: Path, file_type: DeletionFileType) -> None:
        fragment = FragmentMetadata(7, some_fragment().files, 100, DeletionFile(3, 99, file_type, 1))
        with pytest.raises(DatasetNotFoundError, match=r"_deletions/7-3-99.*fragment 7"):
            read_deleted_rows(TableDirectory(LocalStore(), str(tmp_path)), fragment, 100)


def test_arrow_files_with_something_else(tmp_path: Path) -> None:
    for rows in (pa.array([1, 1], pa.uint32()), pa.array([1, None], pa.uint32()), pa.array([1, 2], pa.int64())):
        with pytest.raises(CorruptFileError):
            read(tmp_path, ARROW, arrow_file(rows), 2)


@given(st.sets(st.integers(0, 60)))
def test_live_rows_skip_the_deleted(deleted: set[int]) -> None:
    live = [row for row in range(61) if row not in deleted]
    found = to_physical(np.arange(len(live), dtype=np.int64), np.array(sorted(deleted), dtype=np.int64))
    assert found.tolist() == live


def compressed_file(rows: pa.Array, codec: str | None) -> bytes:
    sink = io.BytesIO()
    batch = pa.record_batch([rows], names=["row_id"])
    with pa.ipc.new_file(sink, batch.schema, options=pa.ipc.IpcWriteOptions(compression=codec)) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


@pytest.mark.parametrize("codec", ["zstd", "lz4"])
def test_compressed_arrow_files(tmp_path: Path, codec: str) -> None:
    rows = list(range(0, 5000, 2))
    data = compressed_file(pa.array(rows, pa.uint32()), codec)
    assert read(tmp_path, ARROW, data, 2500, 5000) == rows
    bomb = compressed_file(pa.array(np.zeros(50_000_000, np.uint32)), codec)
    assert len(bomb) < 1 << 20
    with pytest.raises(CorruptFileError, match=r"7-3-99.arrow: .* expands to more than the \d+ bytes that fit"):
        read(tmp_path, ARROW, bomb, 100)


def test_a_batch_that_is_named_again_and_again(tmp_path: Path) -> None:
    sink = io.BytesIO()
    schema = pa.schema([("row_id", pa.uint32())])
    with pa.ipc.new_file(sink, schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        for _ in range(600):
            writer.write_batch(pa.record_batch([pa.array(np.zeros(1000, np.uint32))], schema=schema))
    with pytest.raises(CorruptFileError, match="expands to more than"):
        read(tmp_path, ARROW, sink.getvalue(), 100)


class TestManyFragments:
    """Deletions in many fragments at once, whose files are written side by side."""

    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        path = tmp_path / "t"
        lance_format.write_dataset({"a": range(120)}, path, max_rows_per_file=3)
        return path

    def test_every_fragment_gets_its_own_rows(self, path: Path) -> None:
        table = lance_format.dataset(path)
        table.delete("a % 3 = 1 OR a < 3")
        left = [number for number in range(3, 120) if number % 3 != 1]
        assert table.to_table()["a"].to_pylist() == left
        assert len(table.get_fragments()) == 39
        assert lance.dataset(str(path)).to_table()["a"].to_pylist() == left
        lance_format.dataset(path, 1).delete("a % 3 = 0 AND a > 100")
        assert lance_format.dataset(path).to_table()["a"].to_pylist() == [
            number for number in left if number % 3 or number <= 100
        ]
        lance_format.dataset(path).validate()
        assert not leftovers(path)

    @pytest.mark.parametrize("moment", ["before", "after"])
    def test_a_file_that_cannot_be_written_leaves_none_of_the_others(self, path: Path, moment: str) -> None:
        table = lance_format.dataset(path)
        deletions: list[str] = []

        def fail(_number: int, when: str, method: str, at: str) -> None:
            if when == moment and method == "put_if_absent" and "_deletions" in at:
                deletions.append(at)
                if len(deletions) == 20:
                    raise StorageError("the disk is full")

        directory = dataclasses.replace(table._table.directory, store=FaultyStore(LocalStore(), fail))
        faulty = LanceDataset(table.uri, dataclasses.replace(table._table, directory=directory))
        with pytest.raises(StorageError, match="the disk is full"):
            faulty.delete("a % 3 = 1")
        assert len(deletions) >= 20
        assert not leftovers(path)
        assert lance_format.dataset(path).version == 1
