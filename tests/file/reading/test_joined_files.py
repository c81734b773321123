"""Single rows of several files that are read at once are those that each file has for itself."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import lance_format
from lance_format import ChecksumError, LanceError, StorageError
from lance_format.file import ColumnProjection, FileReader, LanceFileWriter, column_indices, take_joined
from lance_format.object_store.local import LocalStore
from tests.arrays import NULLS, flat_tables, same_values
from tests.blobs import payloads
from tests.blobs import table as blob_table
from tests.nested_arrays import RandomValues, random_type

_VERSIONS = ("2.1", "2.2")
_SIZES = (300, 1, 5000, 40)


def _open(path: Path, tables: Sequence[pa.Table], version: str) -> list[FileReader]:
    readers = []
    for number, table in enumerate(tables):
        name = path / f"{number}.lance"
        with LanceFileWriter(name, table.schema, version=version, max_page_bytes=4096 if number == 2 else None) as made:
            made.write_batch(table)
        readers.append(FileReader(LocalStore().open_reader(str(name))))
    return readers


def _columns(reader: FileReader) -> list[ColumnProjection]:
    return [ColumnProjection(field, column_indices(reader.schema, reader.version)) for field in reader.schema.fields]


def _chosen(table: pa.Table, rows: np.ndarray) -> pa.Table:
    """Return rows of a table; Arrow itself takes, and casts, some of nested columns wrongly."""
    if not _is_nested(table):
        return table.take(rows)
    columns = []
    for column in table.columns:
        values = column.to_pylist()
        columns.append(pa.array([values[row] for row in rows], column.type))
    return pa.table(columns, table.column_names)


def _is_nested(table: pa.Table) -> bool:
    return any(pa.types.is_nested(kind) for kind in table.schema.types)


def _check(path: Path, tables: Sequence[pa.Table], version: str, seed: int) -> None:
    readers = _open(path, tables, version)
    rng = np.random.default_rng(seed)
    for share in (1, 8, 200, 3000):
        rows = [np.sort(rng.integers(0, table.num_rows, min(share, 2 * table.num_rows))) for table in tables]
        found = take_joined(readers, _columns(readers[0]), rows)
        assert found is not None
        found.validate(full=True)
        wanted = pa.concat_tables([_chosen(table, own) for table, own in zip(tables, rows, strict=True)])
        assert same_values(pa.Table.from_batches([found]), wanted if _is_nested(wanted) else wanted.cast(found.schema))
    for reader in readers:
        reader.close()


@pytest.mark.parametrize("version", _VERSIONS)
@pytest.mark.parametrize("nulls", NULLS)
def test_flat_columns(nulls: str, version: str, tmp_path: Path) -> None:
    _check(tmp_path, flat_tables(_SIZES, nulls), version, 1)


@pytest.mark.parametrize("version", _VERSIONS)
@pytest.mark.parametrize("seed", range(6))
def test_nested_columns(seed: int, version: str, tmp_path: Path) -> None:
    rng = random.Random(seed)
    kinds = [random_type(rng, 3, maps=version == "2.2") for _ in range(3)]
    tables = []
    for size in (40, 1, 300):
        values = RandomValues(rng, rng.choice([0, 0.3]), 0.2, 5)
        tables.append(pa.table({f"c{number}": values.array(kind, size) for number, kind in enumerate(kinds)}))
    _check(tmp_path, tables, version, seed)


@pytest.mark.parametrize("version", _VERSIONS)
def test_large_and_dictionary_columns(version: str, tmp_path: Path) -> None:
    def table(size: int) -> pa.Table:
        texts = [f"{size} {number % 7}" for number in range(size)]
        vectors = pa.array(np.random.default_rng(size).random(size * 64), pa.float32())
        return pa.table(
            {
                "dictionary": pa.array(texts).dictionary_encode(),
                "few": texts,
                "vector": pa.FixedSizeListArray.from_arrays(vectors, 64),
                "large": pa.array(
                    [text * 300 if number % 3 else None for number, text in enumerate(texts)], pa.string()
                ),
                "unlike": [f"{number}-{size}" * (number % 5) for number in range(size)],
                "constant": [size] * size,
            }
        )

    _check(tmp_path, [table(size) for size in _SIZES], version, 1)


def test_files_that_are_read_for_themselves(tmp_path: Path) -> None:
    table = pa.table({"a": [1, 2]})
    rows = [np.array([1]), np.array([0])]
    for version in ("2.0", "2.1"):
        readers = _open(tmp_path, [table, table], version)
        found = take_joined(readers, _columns(readers[0]), rows)
        assert (found is None) == (version == "2.0")
    path = tmp_path / "mixed.lance"
    lance_format.write_dataset(table, path, data_storage_version="2.1")
    assert take_joined(readers, _columns(readers[0]), [rows[0][:0], rows[0][:0]]) is None
    wide = pa.table({"s": [random.Random(number).randbytes(1_500_000).hex() for number in range(12)]})
    readers = _open(tmp_path, [wide] * 4, "2.1")
    assert take_joined(readers, _columns(readers[0]), [np.arange(12)] * 4) is None


class TestTables:
    @pytest.mark.parametrize("versions", [("2.1", "2.1", "2.1"), ("2.0", "2.1", "2.2"), ("2.2", "2.0", "2.0")])
    @pytest.mark.parametrize("seed", range(3))
    def test_random_tables(self, versions: tuple[str, ...], seed: int, tmp_path: Path) -> None:
        rng = np.random.default_rng(seed)
        path = tmp_path / "t"
        for number, version in enumerate(versions):
            size = int(rng.integers(1, 400))
            texts = [f"{number} {value}" for value in rng.integers(0, 50, size)]
            rows = {"id": rng.integers(0, 1000, size), "s": texts}
            lance_format.write_dataset(
                rows,
                path,
                mode="append",
                data_storage_version=version,
                max_rows_per_file=int(rng.integers(20, 400)),
                enable_stable_row_ids=bool(seed % 2),
            )
        table = lance_format.dataset(path)
        table.delete("id % 7 = 3")
        table.add_columns({"twice": "id * 2"})
        lance_format.write_dataset(
            {"id": [1, 2], "s": ["x", None], "twice": [None, 4]}, path, mode="append", data_storage_version="2.1"
        )
        table = lance_format.dataset(path)
        table.add_columns([pa.field("nothing", pa.string())])
        row_columns = ["_rowid", "_rowaddr", "_rowoffset", "_fragid"]
        whole = table.to_table(columns=[*table.schema.names, *row_columns])
        for share in (3, 50, 1000):
            chosen = rng.integers(0, whole.num_rows, share)
            assert table.take(chosen, columns=whole.column_names).equals(whole.take(chosen))
            assert table.take(chosen, columns={"x": "id + 1", "s": "s"}).equals(
                pa.table({"x": pa.compute.add(whole["id"], 1), "s": whole["s"]}).take(chosen)
            )

    def test_blobs(self, tmp_path: Path) -> None:
        rows = blob_table(payloads(30))
        lance_format.write_dataset(rows, tmp_path / "t", max_rows_per_file=7, data_storage_version="2.1")
        table = lance_format.dataset(tmp_path / "t")
        whole = table.to_table(blob_handling="all_binary")
        chosen = [29, 3, 8, 8, 15]
        assert table.take(chosen, blob_handling="all_binary").equals(whole.take(chosen))

    def test_damage_is_told_by_the_file_that_has_it(self, tmp_path: Path) -> None:
        lance_format.write_dataset(
            {"id": np.random.default_rng(0).integers(0, 2**60, 4000)}, tmp_path / "t", max_rows_per_file=1000
        )
        table = lance_format.dataset(tmp_path / "t")
        chosen = np.arange(0, 4000, 10)
        expected = table.take(chosen)
        third = tmp_path / "t" / "data" / table.get_fragments()[2].data_files()[0].path
        whole = third.read_bytes()
        third.write_bytes(whole[:3000] + bytes([whole[3000] ^ 1]) + whole[3001:])
        with pytest.raises(ChecksumError, match=third.name):
            lance_format.dataset(tmp_path / "t").take(chosen)
        assert lance_format.dataset(tmp_path / "t").take(chosen[:200]).equals(expected.slice(0, 200))
        third.write_bytes(whole[:100])
        with pytest.raises(LanceError, match=third.name):
            lance_format.dataset(tmp_path / "t").take(chosen)
        third.unlink()
        with pytest.raises(LanceError, match=rf"{third.name} of fragment 2 is missing"):
            lance_format.dataset(tmp_path / "t").take(chosen)
        third.write_bytes(whole)
        assert lance_format.dataset(tmp_path / "t").take(chosen).equals(expected)

    def test_a_storage_that_fails(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        lance_format.write_dataset({"id": range(400)}, tmp_path / "t", max_rows_per_file=100)
        table = lance_format.dataset(tmp_path / "t", verify_checksums=False)
        read = LocalStore.open_reader

        def fail(self: LocalStore, path: str, size_bytes: int | None = None) -> object:
            if "data" in path:
                raise StorageError("the disk is gone")
            return read(self, path, size_bytes)

        monkeypatch.setattr(LocalStore, "open_reader", fail)
        with pytest.raises(StorageError, match="the disk is gone"):
            table.take([1, 101, 201])
