"""Blobs in both directions between this library and pylance: in files, and in tables of both formats of blobs."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import lance
import lance.blob
import lance.file
import pyarrow as pa
import pytest

import lance_format
from lance_format.errors import CorruptFileError, NotSupportedError
from lance_format.file import LanceFileReader, LanceFileWriter
from tests.blobs import FIELD, MARK, payloads, table

_HANDLINGS = [None, "all_binary", "blobs_descriptions", "all_descriptions"]


def _nested(num_rows: int, *, nulls: bool = True) -> pa.Table:
    """Return blobs in structs, some of which may be null with blobs beneath."""
    inner = pa.struct([FIELD, pa.field("x", pa.int32())])
    blobs = pa.array(payloads(num_rows), pa.large_binary())
    children = [blobs, pa.array(range(num_rows), pa.int32())]
    mask = pa.array([nulls and row % 5 == 3 for row in range(num_rows)])
    array = pa.StructArray.from_arrays(children, fields=list(inner), mask=mask)
    return pa.table([array], schema=pa.schema([pa.field("s", inner)]))


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize(
    "data",
    [
        table(payloads(1000)),
        table(payloads(3000, nulls=0)),
        table([None] * 7),
        table([b""] * 7),
        table([b"one"]),
        table(payloads(20, most=300_000)),
        table(payloads(500)).slice(123, 77),
        table([b"never"], FIELD.with_nullable(False)),
        _nested(700),
    ],
    ids=["some", "valid", "nulls", "empty", "one", "large", "slice", "required", "nested"],
)
def test_files(data: pa.Table, version: str, tmp_path: Path) -> None:
    if version == "2.0" and "s" in data.column_names:
        data = _nested(700, nulls=False)
    rows = sorted({0, data.num_rows // 3, data.num_rows - 1})
    path = tmp_path / "f.lance"
    for writer_class in (LanceFileWriter, lance.file.LanceFileWriter):
        with writer_class(str(path), data.schema, version=version) as writer:
            for batch in data.combine_chunks().to_batches(max_chunksize=400):
                writer.write_batch(batch)
        for reader in (LanceFileReader(str(path)), lance.file.LanceFileReader(str(path))):
            assert reader.read_all(batch_size=128).to_table().to_pylist() == data.to_pylist()
            assert reader.take_rows(rows).to_table().to_pylist() == data.take(rows).to_pylist()
    assert LanceFileReader(path).read_all().to_table().equals(data)


def test_our_files_are_no_larger_than_theirs(tmp_path: Path) -> None:
    sizes = []
    for writer_class in (LanceFileWriter, lance.file.LanceFileWriter):
        path = tmp_path / f"{len(sizes)}.lance"
        with writer_class(str(path), table([]).schema, version="2.1") as writer:
            for batch in table(payloads(100)).to_batches():
                writer.write_batch(batch)
        sizes.append(path.stat().st_size)
    assert 0.9 * sizes[1] < sizes[0] <= sizes[1]  # Descriptions take less: their bytes are split into planes.


def _with_nulls(found: pa.Table) -> list[dict[str, Any]]:
    """Return rows in which blobs that are null are so: in 2.0 pylance shows them as it stores them."""
    return [{**row, "b": None if row["b"] == {"position": 1, "size": 0} else row["b"]} for row in found.to_pylist()]


def _check_tables(path: str, expected: list[bytes | None]) -> None:
    ours, theirs = lance_format.dataset(path), lance.dataset(path)
    for handling in _HANDLINGS:
        found = ours.to_table(batch_size=97, blob_handling=handling)
        found.validate(full=True)
        wanted = theirs.scanner(blob_handling=handling).to_table()
        assert found.schema.equals(wanted.schema)
        assert found.to_pylist() == _with_nulls(wanted)
    assert ours.to_table(["b"], blob_handling="all_binary")["b"].to_pylist() == expected
    rows = random.Random(1).choices(range(len(expected)), k=40)
    assert ours.take(rows).to_pylist() == _with_nulls(theirs.take(rows))
    assert ours.take(rows, ["b"], blob_handling="all_binary")["b"].to_pylist() == [expected[row] for row in rows]
    selections: list[dict[str, Any]] = [{"indices": rows}, {"addresses": [2, (1 << 32) + 1, 2]}, {"ids": [1, 0]}]
    for selection in selections:
        found_blobs = ours.take_blobs("b", **selection)
        wanted_blobs = theirs.take_blobs("b", **selection)
        for found_blob, wanted_blob in zip(found_blobs, wanted_blobs, strict=True):
            assert (found_blob is None) == (wanted_blob is None)
            if found_blob is not None:
                assert found_blob.size() == wanted_blob.size()
                assert found_blob.read(5) == wanted_blob.read(5)
                assert found_blob.read() == wanted_blob.read()
                found_blob.close()


@pytest.mark.slow
@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("first", ["ours", "theirs"])
def test_tables_that_both_write(first: str, version: str, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    values = payloads(500)
    writers = [lance_format.write_dataset, lance.write_dataset]
    if first == "theirs":
        writers.reverse()
    writers[0](table(values), path, data_storage_version=version, max_rows_per_file=200)
    _check_tables(path, values)
    writers[1](table(values[:100]), path, mode="append")
    writers[0](table(values[100:150]), path, mode="append")
    _check_tables(path, values + values[:150])
    lance.dataset(path).delete("n % 7 = 3 OR n = 201")
    rows = [*enumerate(values), *enumerate(values[:100]), *enumerate(values[100:150])]
    kept = [value for row, value in rows if row % 7 != 3 and row != 201]
    assert lance_format.dataset(path).to_table(blob_handling="all_binary")["b"].to_pylist() == kept
    blobs = lance_format.dataset(path).take_blobs("b", indices=range(len(kept)))
    assert [None if blob is None else blob.read() for blob in blobs] == kept
    lance.dataset(path).optimize.compact_files()
    assert lance_format.dataset(path).to_table(blob_handling="all_binary")["b"].to_pylist() == kept


def test_payloads_beside_the_data_file(tmp_path: Path) -> None:
    values = [
        *payloads(30, seed=3),
        b"p" * 70_000,
        None,
        b"q" * 90_000,
        b"d" * 4_500_000,
        b"",
        b"e" * 5_000_000,
    ]
    random.Random(4).shuffle(values)
    column = lance.blob.blob_array(values)
    data = pa.table(
        [pa.array(range(len(values))), column],
        schema=pa.schema([pa.field("n", pa.int64()), lance.blob.blob_field("b")]),
    )
    path = str(tmp_path / "t")
    lance.write_dataset(data, path, data_storage_version="2.2", max_rows_per_file=20)
    kinds = {row["b"]["kind"] for row in lance_format.dataset(path).to_table().to_pylist() if row["b"]}
    assert kinds == {0, 1, 2}
    _check_tables(path, values)
    lance_format.write_dataset(data, path, mode="append")
    _check_tables(path, values * 2)


def test_sidecars_that_are_gone_or_short(tmp_path: Path) -> None:
    path = tmp_path / "t"
    field = lance.blob.blob_field("b")
    data = pa.table([lance.blob.blob_array([b"x" * 70_000, b"y" * 70_000])], schema=pa.schema([field]))
    lance.write_dataset(data, str(path), data_storage_version="2.2")
    (sidecar,) = path.glob("data/*/*.blob")
    kept = sidecar.read_bytes()
    ours = lance_format.dataset(path)
    blobs = ours.take_blobs("b", indices=[0, 1])
    sidecar.write_bytes(kept[:-1])
    assert blobs[0] is not None
    assert blobs[0].read() == b"x" * 70_000
    assert blobs[1] is not None
    with pytest.raises(CorruptFileError, match="ends at byte 140000, after the file, which has 139999"):
        blobs[1].read()
    with pytest.raises(CorruptFileError, match="ends after the file, which has 139999"):
        ours.to_table(blob_handling="all_binary")
    sidecar.unlink()
    with pytest.raises(CorruptFileError, match="does not exist"):
        ours.to_table(blob_handling="all_binary")
    assert ours.to_table().num_rows == 2


def test_uris_are_not_followed(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(b"0123456789")
    path = str(tmp_path / "t")
    field = lance.blob.blob_field("b")
    data = pa.table([lance.blob.blob_array([b"inline", secret.as_uri()])], schema=pa.schema([field]))
    lance.write_dataset(data, path, data_storage_version="2.2", allow_external_blob_outside_bases=True)
    ours = lance_format.dataset(path)
    assert ours.to_table().to_pylist() == lance.dataset(path).to_table().to_pylist()
    for read in (lambda: ours.to_table(blob_handling="all_binary"), lambda: ours.take_blobs("b", indices=[1])):
        with pytest.raises(NotSupportedError, match="not followed"):
            read()
    assert ours.take([0], blob_handling="all_binary")["b"].to_pylist() == [b"inline"]
    with pytest.raises(NotSupportedError, match="by its URI"):
        lance_format.write_dataset(data, tmp_path / "o")


@pytest.mark.parametrize("outer", ["struct", "list"])
def test_extension_within(outer: str, tmp_path: Path) -> None:
    """Blobs in structs and lists, as bytes; pylance's descriptions of them have the same values."""
    values = payloads(60)
    if outer == "struct":
        data = _nested(60)
    else:
        item = FIELD.with_name("item")
        lists = [None, [], *([[value, b"x"] for value in values])]
        data = pa.table([pa.array(lists, pa.list_(item))], schema=pa.schema([pa.field("l", pa.list_(item))]))
    for writer in (lance_format.write_dataset, lance.write_dataset):
        path = str(tmp_path / writer.__module__)
        writer(data, path, data_storage_version="2.2")
        ours, theirs = lance_format.dataset(path), lance.dataset(path)
        assert ours.to_table().to_pylist() == theirs.to_table().to_pylist()
        wanted = theirs.scanner(blob_handling="all_binary").to_table().to_pylist()
        assert ours.to_table(blob_handling="all_binary").to_pylist() == wanted == data.to_pylist()


def test_copies_are_blobs_again(tmp_path: Path) -> None:
    values = payloads(50)
    for version in ("2.0", "2.1", "2.2"):
        path, copy = str(tmp_path / version), str(tmp_path / f"copy of {version}")
        lance_format.write_dataset(table(values), path, data_storage_version=version)
        read = lance_format.dataset(path).to_table(blob_handling="all_binary")
        lance_format.write_dataset(read, copy, data_storage_version=version)
        theirs = lance.dataset(copy)
        assert theirs.scanner(blob_handling="all_binary").to_table()["b"].to_pylist() == values
        blobs = theirs.take_blobs("b", indices=range(50))
        assert [None if blob is None else blob.read() for blob in blobs] == values


def test_narrow_binary_is_widened(tmp_path: Path) -> None:
    field = pa.field("b", pa.binary(), metadata=MARK)
    values = payloads(50)
    for version in ("2.0", "2.1", "2.2"):
        path = str(tmp_path / version)
        lance_format.write_dataset(table(values, field), path, data_storage_version=version)
        assert lance.dataset(path).scanner(blob_handling="all_binary").to_table()["b"].to_pylist() == values
    with pytest.raises(NotSupportedError, match="cast it to large_binary"):
        LanceFileWriter(tmp_path / "f.lance", pa.schema([field]))


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_filters_updates_and_stable_row_ids(version: str, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    values = payloads(60)
    lance_format.write_dataset(
        table(values), path, data_storage_version=version, max_rows_per_file=25, enable_stable_row_ids=True
    )
    ours = lance_format.dataset(path)
    large = [value for value in values if value is not None and len(value) > 64]
    assert ours.to_table(["b"], "b.size > 64", blob_handling="blobs_descriptions").num_rows == len(large)
    there = [value for value in values if value is not None]
    assert ours.to_table(["b"], "b IS NOT NULL", blob_handling="all_binary")["b"].to_pylist() == there
    ours.update({"n": "n + 1000"}, "n % 3 = 1")
    ours.delete("n = 7 OR n = 30")
    row_ids = [row for row in range(60) if row not in (30,)]
    for reader in (ours, lance.dataset(path)):
        blobs = reader.take_blobs("b", ids=row_ids)
        assert [None if blob is None else blob.read() for blob in blobs] == [values[row] for row in row_ids]
    theirs = lance.dataset(path).scanner(blob_handling="all_binary").to_table()
    assert theirs.to_pylist() == ours.to_table(blob_handling="all_binary").to_pylist()
    ours.update({"b": "X'6e6577'"}, "n = 5")
    assert ours.to_table(["b"], "n = 5", blob_handling="all_binary")["b"].to_pylist() == [b"new"]


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_columns_that_are_added_and_dropped(version: str, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    values = payloads(30)
    lance_format.write_dataset(table(values), path, data_storage_version=version, max_rows_per_file=20)
    ours = lance_format.dataset(path)
    made = pa.schema([FIELD.with_name("c")])
    ours.add_columns(
        lambda batch: pa.record_batch(
            [pa.array([b"%d" % n for n in batch["n"].to_pylist()], made[0].type)], schema=made
        ),
    )
    ours.add_columns(FIELD.with_name("d"))
    ours.alter_columns({"path": "b", "name": "e"})
    theirs = lance.dataset(path)
    for reader in (ours, theirs):
        found = reader.scanner(blob_handling="all_binary").to_table().to_pydict()
        assert found == {"n": list(range(30)), "e": values, "c": [b"%d" % n for n in range(30)], "d": [None] * 30}
    ours.drop_columns(["e"])
    blob = lance.dataset(path).take_blobs("c", indices=[17])[0]
    assert blob is not None
    assert blob.read() == b"17"
    assert lance_format.dataset(path).take_blobs("d", indices=[17]) == [None]


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_compaction(version: str, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    values = [*payloads(40), b"beside the data file" * 10_000]
    lance.write_dataset(table(values), path, data_storage_version=version, max_rows_per_file=10)
    ours = lance_format.dataset(path)
    ours.delete("n = 3")
    ours.optimize.compact_files()
    assert len(lance.dataset(path).get_fragments()) == 1
    _check_payloads(path, [value for row, value in enumerate(values) if row != 3])


def _check_payloads(path: str, expected: list[bytes | None]) -> None:
    ours, theirs = lance_format.dataset(path), lance.dataset(path)
    assert ours.to_table(blob_handling="all_binary")["b"].to_pylist() == expected
    for reader in (ours, theirs):
        blobs = reader.take_blobs("b", indices=range(len(expected)))
        assert [None if blob is None else blob.read() for blob in blobs] == expected


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_columns_of_blobs_by_their_names(version: str, tmp_path: Path) -> None:
    values = [b"small", None, b"", bytearray(b"x" * 100_000), memoryview(b"view")]
    schema = pa.schema([pa.field("n", pa.int64()), lance_format.blob_field("b")])
    data = pa.table([range(5), lance_format.blob_array(values)], schema=schema)
    table = lance_format.write_dataset(data, tmp_path / "t", data_storage_version=version)
    table.insert({"n": [5], "b": [b"plain bytes"]})
    expected = [None if value is None else bytes(value) for value in [*values, b"plain bytes"]]
    for library in (lance_format, lance):
        found = library.dataset(str(tmp_path / "t")).take_blobs("b", indices=range(6))
        assert [None if file is None else file.read() for file in found] == expected
    assert table.to_table(blob_handling="all_binary")["b"].to_pylist() == expected
    reference = lance.write_dataset(data, str(tmp_path / "r"), data_storage_version=version)
    assert [field.metadata for field in reference.schema] == [field.metadata for field in table.schema]
    assert not lance_format.blob_field("b", nullable=False).nullable
    with pytest.raises(lance_format.NotSupportedError, match="URIs"):
        lance_format.blob_array([b"a", "file:///etc/hostname"])
    with pytest.raises(lance_format.InvalidInputError, match="bytes or None"):
        lance_format.blob_array([1])  # type: ignore[list-item]
