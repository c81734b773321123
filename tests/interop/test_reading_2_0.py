"""Files and tables of format 2.0 that pylance writes."""

from __future__ import annotations

import random
from pathlib import Path

import lance
import lance.file
import numpy as np
import pyarrow as pa
import pytest

import lance_format
from lance_format import CorruptFileError
from lance_format.file import LanceFileReader
from lance_format.proto import table_pb2
from tests.arrays import NULLS, make_array
from tests.nested_arrays import RandomValues, random_type
from tests.table.builders import changed_manifest

_STRINGS = pa.string()
_POINT = pa.struct([("x", pa.int32()), ("name", pa.string())])


def _check(table: pa.Table, path: Path, rng: random.Random, **options: int) -> LanceFileReader:
    with lance.file.LanceFileWriter(str(path), table.schema, version="2.0", **options) as writer:
        for batch in table.to_batches():  # Slices of structs make pylance panic.
            writer.write_batch(batch)
    expected = lance.file.LanceFileReader(str(path)).read_all().to_table()
    reader = LanceFileReader(path)
    found = reader.read_all(batch_size=rng.choice([7, 1000, 1_000_000])).to_table()
    found.validate(full=True)
    assert found.schema.equals(table.schema, check_metadata=True)
    _assert_same(found, expected)
    rows = sorted(rng.choices(range(table.num_rows), k=9))
    taken = reader.take_rows(rows).to_table()
    taken.validate(full=True)
    _assert_same(taken, expected.take(rows))
    start = rng.randint(0, table.num_rows - 1)
    ranged = reader.read_range(start, table.num_rows - start).to_table()
    _assert_same(ranged, expected.slice(start))
    return reader


def _assert_same(found: pa.Table, expected: pa.Table) -> None:
    """Compare values; keys of dictionaries may differ."""
    assert found.equals(expected) or found.to_pylist() == expected.to_pylist()


@pytest.mark.parametrize("seed", range(30))
def test_random_nesting(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    arrow_type = random_type(rng, rng.randint(1, 4), maps=False)
    longest = rng.choice([1, 3, 20, 200])
    num_rows = rng.choice([1, 3, 40, 300] if longest == 200 else [1, 3, 40, 300, 1500])
    values = RandomValues(
        rng, rng.choice([0, 0, 0.1, 0.5, 1]), rng.choice([0, 0, 0.2, 0.9]), longest, null_structs=False
    )
    _check(pa.table({"c": values.array(arrow_type, num_rows)}), tmp_path / "n.lance", rng)


@pytest.mark.slow
@pytest.mark.parametrize("compression", ["zstd", "lz4", "fsst", "none"])
def test_compressed_strings(compression: str, tmp_path: Path) -> None:
    rng = random.Random(0)
    for arrow_type in (pa.string(), pa.binary()):
        field = pa.field("c", arrow_type, metadata={"lance-encoding:compression": compression})
        # Pylance panics over FSST of nulls alone.
        for nulls in NULLS if compression != "fsst" else NULLS[:2]:
            array = pa.array(
                [None if nulls != "no nulls" and row % 7 == 0 else f"value {row * 7919} of many" for row in range(9000)]
            )
            array = pa.nulls(9000, arrow_type) if nulls == "all nulls" else array.cast(arrow_type)
            _check(pa.table([array], schema=pa.schema([field])), tmp_path / "s.lance", rng)


def test_fixed_size_lists_and_packed_structs(tmp_path: Path) -> None:
    rng = random.Random(0)
    values = RandomValues(rng, 0.2, 0, 1)
    for item in (pa.float32(), pa.bool_(), pa.binary(3), pa.list_(pa.int64(), 2), pa.list_(pa.list_(pa.bool_(), 3), 2)):
        table = pa.table({"c": values.array(pa.list_(item, 5), 700)})
        _check(table, tmp_path / "l.lance", rng)
    for key in ("packed", "lance-encoding:packed"):
        fields = [("a", pa.int8()), ("b", pa.list_(pa.int16(), 3)), ("c", pa.float64()), ("d", pa.binary(5))]
        rows = [{"a": row % 99, "b": [row, 2, 3], "c": row / 3, "d": b"%05d" % row} for row in range(700)]
        field = pa.field("c", pa.struct(fields), metadata={key: "true"})
        _check(pa.table([pa.array(rows, field.type)], schema=pa.schema([field])), tmp_path / "p.lance", rng)


@pytest.mark.slow
@pytest.mark.parametrize("value_type", [pa.string(), pa.int64(), pa.large_string(), pa.binary(), pa.float64()], ids=str)
def test_dictionaries(value_type: pa.DataType, tmp_path: Path) -> None:
    rng = random.Random(0)
    for index_type in (pa.int8(), pa.uint16(), pa.int32()):
        for nulls in NULLS:
            values = make_array(value_type, 3000, nulls, "small").dictionary_encode()
            array = values.cast(pa.dictionary(index_type, value_type))
            _check(pa.table({"c": array}), tmp_path / "d.lance", rng)
            lists = pa.ListArray.from_arrays(pa.array(range(0, 3001, 3), pa.int32()), array)
            _check(pa.table({"c": lists}), tmp_path / "d.lance", rng)


def test_many_pages(tmp_path: Path) -> None:
    rng = random.Random(0)
    item = pa.struct([("a", pa.int64()), ("b", pa.string()), ("l", pa.list_(pa.bool_()))])
    piece = RandomValues(rng, 0.1, 0.2, 6, null_structs=False).array(pa.list_(item), 3000)
    strings = make_array(_STRINGS, 12_000, "some nulls", "random")
    table = pa.concat_tables(
        pa.table({"c": piece, "n": np.arange(3000), "p": strings.slice(first, 3000)})
        for first in range(0, 12_000, 3000)
    )
    reader = _check(table, tmp_path / "m.lance", rng, data_cache_bytes=1 << 16)
    columns = reader.metadata().columns
    assert len({column.pages[-1].num_rows for column in columns}) > 3
    assert min(len(column.pages) for column in columns if column.pages[0].buffers) > 1


def test_blobs(tmp_path: Path) -> None:
    field = pa.field("c", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    values = [None if row % 5 == 0 else bytes([row % 256]) * (row % 7) for row in range(300)]
    blobs = pa.array(values, field.type)
    inner = pa.struct([field, ("n", pa.int64())])
    columns = [
        blobs,
        pa.StructArray.from_arrays([blobs, pa.array(range(300))], fields=list(inner)),
        pa.ListArray.from_arrays(pa.array(range(0, 301, 1), pa.int32()), blobs, pa.list_(field.with_name("item"))),
    ]
    for array in columns:
        top = field if array is blobs else pa.field("c", array.type)
        _check(pa.table([array], schema=pa.schema([top])), tmp_path / "b.lance", random.Random(0))
    lance.write_dataset(
        pa.table([blobs, pa.array(range(300))], schema=pa.schema([field, ("n", pa.int64())])),
        tmp_path / "t",
        data_storage_version="2.0",
    )
    ours, theirs = lance_format.dataset(tmp_path / "t"), lance.dataset(tmp_path / "t")
    assert ours.count_rows("c is null") == 60
    assert ours.to_table(blob_handling="all_binary")["c"].to_pylist() == values
    rows = [1, 7, 203]
    found = [blob.readall() for blob in ours.take_blobs("c", indices=rows)]
    assert found == [blob.readall() for blob in theirs.take_blobs("c", indices=rows)]


def test_tables(tmp_path: Path) -> None:
    data = pa.table(
        {
            "id": np.arange(500),
            "s": make_array(_STRINGS, 500, "some nulls", "small"),
            "l": RandomValues(random.Random(1), 0.2, 0.2, 4, null_structs=False).array(pa.list_(_POINT), 500),
            "st": RandomValues(random.Random(2), 0.2, 0.2, 4, null_structs=False).array(_POINT, 500),
        }
    )
    theirs = lance.write_dataset(data, tmp_path / "t", data_storage_version="2.0", max_rows_per_file=120)
    theirs.delete("id % 7 = 3")
    theirs.add_columns({"twice": "id * 2"})
    ours = lance_format.dataset(tmp_path / "t")
    assert ours.data_storage_version == "2.0"
    assert ours.to_table() == theirs.to_table()
    for columns in (["st.name"], ["l"], ["id", "twice"], ["st.x", "s"]):
        for where in (None, "id > 250", "s is null", "st.x < 0 and id < 400", "twice = 20"):
            assert ours.to_table(columns, filter=where) == theirs.to_table(columns, filter=where)
    rows = [0, 5, 133, 400]
    assert ours.take(rows) == theirs.take(rows)


def test_fixed_size_lists_of_structs_are_refused_by_name(tmp_path: Path) -> None:
    """Pylance writes them, and cannot read them."""
    table = pa.table({"c": pa.array([[{"x": 1, "name": "a"}]], pa.list_(pa.struct([("x", pa.int32())]), 1))})
    with lance.file.LanceFileWriter(str(tmp_path / "f.lance"), table.schema, version="2.0") as writer:
        writer.write_batch(table)
    with pytest.raises(lance_format.NotSupportedError, match=r"column 'c.*fixed-size list of structs"):
        LanceFileReader(tmp_path / "f.lance").read_all().to_table()


def _rows(first: int, stop: int) -> pa.Table:
    rows = range(first, stop)
    lists, structs = [[row] * (row % 3) for row in rows], [{"x": row, "y": str(row)} for row in rows]
    return pa.table({"id": rows, "s": [str(row) for row in rows], "l": lists, "st": structs})


def test_tables_of_several_versions(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    lance_format.write_dataset(_rows(0, 50), path, data_storage_version="2.0")
    lance_format.write_dataset(_rows(50, 80), path, mode="append")
    lance.write_dataset(_rows(80, 90), path, mode="append")
    lance_format.write_dataset(_rows(90, 120), path, mode="append", data_storage_version="2.2")
    ours, theirs = lance_format.dataset(path), lance.dataset(path)
    versions = [file.file_minor_version for part in theirs.get_fragments() for file in part.metadata.files]
    assert versions == [0, 0, 0, 2]
    assert ours.data_storage_version == theirs.data_storage_version == "2.0"
    assert ours.to_table() == theirs.to_table() == _rows(0, 120)
    ours.update({"s": "'changed'"}, "id % 20 = 3")
    ours.add_columns({"twice": "id * 2"})
    ours.delete("id = 5")
    ours.optimize.compact_files()
    theirs = lance.dataset(path)
    theirs.validate()
    assert ours.to_table() == theirs.to_table()
    for where in ("st.x > 100 and twice < 230", "s = 'changed'", "st.y = '7'"):
        assert ours.to_table(filter=where) == theirs.to_table(filter=where)
    assert {file.file_minor_version for part in theirs.get_fragments() for file in part.metadata.files} == {0}


@pytest.mark.parametrize("place", range(7))
def test_fields_without_a_column(place: int, tmp_path: Path) -> None:
    """Leaves are null then, and the headers of structs are not needed; pylance reads the former alone."""
    data = _rows(0, 50)
    path = tmp_path / "t"
    lance.write_dataset(data, str(path), data_storage_version="2.0")
    (manifest,) = path.glob("_versions/*.manifest")

    def change(message: table_pb2.Manifest) -> None:
        message.fragments[0].files[0].column_indices[place] = -1

    manifest.write_bytes(changed_manifest(manifest.read_bytes(), change))
    name = ["id", "s", "l", "l.item", "st", "st.x", "st.y"][place]
    ours = lance_format.dataset(path)
    if name.startswith("l"):
        with pytest.raises(CorruptFileError, match="column 'l': there is no column -1"):
            ours.to_table()
        return
    found = ours.to_table()
    if name == "st":
        assert found == data
        return
    assert found == lance.dataset(str(path)).to_table()
    assert ours.count_rows(f"{name} is null") == 50
    assert ours.take([3, 7]) == lance.dataset(str(path)).take([3, 7])


@pytest.mark.parametrize("version", ["legacy", "2.0", "2.1"])
def test_new_fields_of_structs_alone(version: str, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    lance.write_dataset(_rows(0, 50), path, data_storage_version=version)
    ours = lance_format.dataset(path)
    ours.add_columns(pa.field("st", pa.struct([("new", pa.int64())])))
    assert ours.count_rows("st.new is null") == 50
    assert ours.count_rows("st.new > 3") == 0
    assert ours.to_table(["st.new"]).column(0).combine_chunks().null_count in (0, 50)
    assert ours.to_table(["st"])["st"].to_pylist()[7] == {"x": 7, "y": "7", "new": None}


def test_pylance_harvests_our_statistics(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    lance_format.write_dataset(_rows(0, 50), path, data_storage_version="2.0")
    lance.dataset(path).create_scalar_index("id", "ZONEMAP")
    lance_format.write_dataset(_rows(50, 90), path, mode="append")
    lance.dataset(path).optimize.optimize_indices()
    for table in (lance.dataset(path), lance_format.dataset(path)):
        assert table.count_rows("id = 77") == table.count_rows("id = 7") == 1
