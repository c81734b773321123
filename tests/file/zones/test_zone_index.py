"""Zone indices in the encodings of columns: written ones agree with the rows, and pruning loses no row."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Mapping
from pathlib import Path

import lance
import lance.file
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lance_format
from lance_format.datatypes import Schema
from lance_format.errors import CorruptFileError, InvalidInputError, NotSupportedError
from lance_format.expressions.zones import ZoneStatistics
from lance_format.file import FileWriter, LanceFileReader, LanceFileWriter
from lance_format.file.container.column_metadata import ZoneIndexEntry
from lance_format.file.zones.index import zone_index_schema
from lance_format.object_store.local import LocalStore
from lance_format.version import STABLE, FileVersion
from tests.expressions.zone_reference import ORDERED_TYPES, statistics_of
from tests.file.counting import CountedFile
from tests.file.zones.test_zone_statistics import check_pruning, cut, is_mixed, leaf_of, random_table, sizes_of

_GOLDEN = Path(__file__).parents[2] / "data" / "zone_index"
_VERSIONS = [FileVersion.V2_0, FileVersion.V2_1, FileVersion.V2_2]


def write(path: Path, table: pa.Table, rows_per_zone: int = 10, version: FileVersion = STABLE) -> Path:
    sink = LocalStore().open_writer(str(path))
    schema = Schema.from_arrow(table.schema)
    zone_index = "unportable_column" if version is FileVersion.V2_0 else "column"
    writer = FileWriter(
        sink, schema, version=version, rows_per_zone=rows_per_zone, zone_index=zone_index, checksums=False
    )
    for batch in table.to_batches():
        writer.write_batch(batch)
    writer.finish()
    return path


def open_without_other_statistics(path: Path) -> CountedFile:
    file = CountedFile(path)
    object.__setattr__(file.reader.metadata, "zones", {})
    return file


def embedded(path: Path, column: int) -> bytes:
    (buffer,) = LanceFileReader(path).metadata().columns[column].column_buffers
    return path.read_bytes()[buffer.position : buffer.position + buffer.size]


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(st.integers(0, 2**32))
def test_zone_indices_are_what_the_rows_are(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    rng = random.Random(seed)
    version = rng.choice(_VERSIONS)
    table = random_table(rng, null_structs=version is not FileVersion.V2_0)
    rows_per_zone = rng.choice([3, 10])
    path = tmp_path_factory.mktemp("zones") / "a.lance"
    write(path, pa.Table.from_batches(cut(rng, table), table.schema), rows_per_zone, version)
    file = open_without_other_statistics(path)
    found = file.reader.zone_statistics(file.columns())
    batch = table.combine_chunks().to_batches()[0]
    paths = {(name,) for name in table.schema.names if name != "st"} | {("st", "in", "x"), ("st", "in", "y")}
    sizes = sizes_of(table.num_rows, rows_per_zone)
    assert set(found) == {path for path in paths if not is_mixed(leaf_of(batch, path), sizes)}
    for leaf_path, statistics in found.items():
        values = leaf_of(batch, leaf_path)
        expected = statistics_of(values, sizes_of(len(values), rows_per_zone))
        assert statistics.num_rows.tolist() == expected.num_rows.tolist()
        assert statistics.num_nulls.tolist() == expected.num_nulls.tolist()
    for _ in range(10):
        check_pruning(rng, batch, found)


@pytest.mark.parametrize("version", _VERSIONS)
@pytest.mark.parametrize("arrow_type", ORDERED_TYPES, ids=str)
def test_any_reader_opens_the_embedded_file(tmp_path: Path, arrow_type: pa.DataType, version: FileVersion) -> None:
    values = pa.nulls(30, arrow_type)
    path = write(tmp_path / "a.lance", pa.table({"x": values}), 20, version)
    (tmp_path / "b.lance").write_bytes(embedded(path, 0))
    for reader in (LanceFileReader(tmp_path / "b.lance"), lance.file.LanceFileReader(str(tmp_path / "b.lance"))):
        metadata, rows = reader.metadata(), reader.read_all().to_table()
        assert (metadata.major_version, metadata.minor_version) == (0, 3)
        assert rows.schema == zone_index_schema(arrow_type)
        assert rows.to_pylist() == [{"min": None, "max": None, "null_count": count} for count in (20, 10)]


@pytest.mark.slow
def test_pylance_reads_the_rows_from_2_1_on(tmp_path: Path) -> None:
    table = pa.table({"x": range(100), "s": [f"{row:03}" for row in range(100)]})
    for version in _VERSIONS:
        path = write(tmp_path / f"{version}.lance", table, 10, version)
        assert LanceFileReader(path).read_all().to_table() == table
        if version is not FileVersion.V2_0:
            assert lance.file.LanceFileReader(str(path)).read_all().to_table() == table
    with pytest.raises(Exception, match="ZoneIndex"):
        lance.file.LanceFileReader(str(tmp_path / "2.0.lance")).read_all().to_table()


def test_files_that_pylance_could_not_read_are_refused_unless_allowed(tmp_path: Path) -> None:
    table = pa.table({"x": range(100)})
    options = {"data_storage_version": "2.0"}
    with pytest.raises(NotSupportedError, match=r"that pylance cannot read.*unportable_column"):
        lance_format.write_dataset(table, tmp_path / "t", zone_index="column", **options)
    with pytest.raises(NotSupportedError, match="that pylance cannot read"):
        LanceFileWriter(tmp_path / "f.lance", table.schema, version="2.0", zone_index="column")
    assert not list(tmp_path.iterdir())
    ours = lance_format.write_dataset(table, tmp_path / "t", zone_index="unportable_column", **options)
    assert ours.to_table(filter="x > 90") == table.slice(91)


def test_bounds_follow_the_reference(tmp_path: Path) -> None:
    nan = float("nan")
    long = "é" * 40
    columns: dict[str, pa.Array] = {
        "i": pa.array([3, None, 1, None, None, None], pa.int8()),
        "f": pa.array([nan, 1.0, nan, nan, -0.0, 0.0]),
        "s": pa.array([long, "b", None, None, "", "z"]),
    }
    path = write(tmp_path / "a.lance", pa.table(columns), 2)
    rows = {}
    for number, name in enumerate(columns):
        (tmp_path / "b.lance").write_bytes(embedded(path, number))
        rows[name] = [
            tuple(row.values()) for row in LanceFileReader(tmp_path / "b.lance").read_all().to_table().to_pylist()
        ]
    assert rows["i"] == [(3, 3, 1), (1, 1, 1), (None, None, 2)]
    assert str(rows["f"]) == str([(1.0, nan, 0), (nan, nan, 0), (-0.0, 0.0, 0)])
    assert rows["s"] == [("b", "é" * 31 + "ê", 0), (None, None, 2), ("", "z", 0)]


def _without_descriptor(data: bytes) -> bytes:
    """Return a file as the reference's crate embedded it: without a global buffer."""
    columns_at, globals_at, _, num_columns, *rest = struct.unpack("<QQIIHH4s", data[-32:])
    assert len(data) - 40 == globals_at + 16
    return data[:globals_at] + struct.pack(
        "<QQQIIHH4s", *struct.unpack("<Q", data[-40:-32]), columns_at, globals_at, 0, num_columns, *rest
    )


def _with_zone_index(
    path: Path, values: pa.Array, data: bytes, place: ZoneIndexEntry, version: FileVersion = STABLE
) -> CountedFile:
    schema = Schema.from_arrow(pa.schema({"x": values.type}))
    writer = FileWriter(LocalStore().open_writer(str(path)), schema, version=version, rows_per_zone=None)
    writer.write_batch(pa.record_batch({"x": values}))
    writer.add_global_buffer(data)
    (column,) = writer._columns[0].pages.columns
    column.buffers.append(writer._write_aligned(data))
    column.zone_index = place
    writer.finish()
    return CountedFile(path)


def _file_of(path: Path, columns: Mapping[str, pa.Array], version: str = "2.0") -> bytes:
    table = pa.table(dict(columns))
    with LanceFileWriter(path, table.schema, version=version, checksums=False) as writer:
        writer.write_batch(table)
    return path.read_bytes()


_ZONES = {"min": pa.array([0, 50]), "max": pa.array([49, 99]), "null_count": pa.array([0, 0], pa.uint32())}


@pytest.mark.parametrize("version", _VERSIONS)
@pytest.mark.parametrize("strip", [_without_descriptor, bytes])
@pytest.mark.parametrize("place", [ZoneIndexEntry(50, 0), ZoneIndexEntry(50, 1, is_in_file=True)])
def test_zone_indices_of_other_writers_are_read(
    tmp_path: Path, strip: Callable[[bytes], bytes], place: ZoneIndexEntry, version: FileVersion
) -> None:
    data = strip(_file_of(tmp_path / "zones.lance", _ZONES))
    file = _with_zone_index(tmp_path / "a.lance", pa.array(range(100)), data, place, version)
    found = file.reader.zone_statistics(file.columns())["x",]
    assert (found.lower.to_pylist(), found.upper.to_pylist()) == ([0, 50], [49, 99])
    assert (found.num_rows.tolist(), found.num_nulls.tolist()) == ([50, 50], [0, 0])
    assert LanceFileReader(tmp_path / "a.lance").read_all().to_table()["x"].to_pylist() == list(range(100))


def test_nothing_is_known_between_nan_of_both_signs(tmp_path: Path) -> None:
    nan = float("nan")
    zones = {"min": pa.array([-nan, 1.0]), "max": pa.array([2.0, nan]), "null_count": pa.array([0, 0], pa.uint32())}
    data = _file_of(tmp_path / "zones.lance", zones)
    file = _with_zone_index(tmp_path / "a.lance", pa.array(np.arange(100.0)), data, ZoneIndexEntry(50, 0))
    found = file.reader.zone_statistics(file.columns())["x",]
    assert found.lower.to_pylist() == [None, 1.0]
    assert str(found.upper.to_pylist()) == "[nan, nan]"


def test_a_zone_index_of_another_type_says_nothing_of_a_column_that_changed(tmp_path: Path) -> None:
    file = open_without_other_statistics(write(tmp_path / "a.lance", pa.table({"x": range(100)})))
    (column,) = file.columns()
    retyped = Schema.from_arrow(pa.schema({"x": pa.int32()}), first_id=77).fields[0]
    assert file.reader.zone_statistics([type(column)(retyped, {77: 0})]) == {}


@pytest.mark.parametrize(
    ("columns", "place", "message"),
    [
        ({}, ZoneIndexEntry(0, 0), "with 0 rows per zone"),
        ({}, ZoneIndexEntry(50, 9), "buffer 9 of 1"),
        ({}, ZoneIndexEntry(49, 0), "2 zones of 3"),
        ({"min": pa.array([50, 50])}, ZoneIndexEntry(50, 0), "exceeds the upper one"),
        ({"null_count": pa.array([0, 51], pa.uint32())}, ZoneIndexEntry(50, 0), "more nulls than rows"),
        ({"null_count": pa.array([0, None], pa.uint32())}, ZoneIndexEntry(50, 0), "never null"),
        ({"null_count": pa.array([0, 0])}, ZoneIndexEntry(50, 0), "no column 'null_count'"),
        ({"max": pa.array(["a", "b"])}, ZoneIndexEntry(50, 0), "no column 'max'"),
    ],
)
def test_a_damaged_zone_index_is_an_error_that_names_it(
    tmp_path: Path, columns: dict[str, pa.Array], place: ZoneIndexEntry, message: str
) -> None:
    data = _file_of(tmp_path / "zones.lance", _ZONES | columns)
    file = _with_zone_index(tmp_path / "a.lance", pa.array(range(100)), data, place)
    with pytest.raises(CorruptFileError, match="the zone index of column 'x' cannot be read") as caught:
        file.reader.zone_statistics(file.columns())
    assert message in str(caught.value)
    assert "a.lance" in str(caught.value)
    assert LanceFileReader(tmp_path / "a.lance").read_all().to_table()["x"].to_pylist() == list(range(100))


@pytest.mark.slow
@pytest.mark.parametrize("strip", [_without_descriptor, bytes])
def test_no_damage_loses_rows_or_raises_anything_else(tmp_path: Path, strip: Callable[[bytes], bytes]) -> None:
    data = strip(_file_of(tmp_path / "zones.lance", _ZONES))
    rng = random.Random(7)
    for number in range(300):
        damaged = bytearray(data[: rng.randint(0, len(data))] if number % 3 == 0 else data)
        for _ in range(rng.randint(1, 4)):
            if damaged:
                damaged[rng.randrange(len(damaged))] = rng.choice([0, 1, 127, 128, 255])
        file = _with_zone_index(tmp_path / "a.lance", pa.array(range(100)), bytes(damaged), ZoneIndexEntry(50, 0))
        try:
            found = file.reader.zone_statistics(file.columns())
        except CorruptFileError:
            continue
        assert all(statistics.num_rows.tolist() == [50, 50] for statistics in found.values())


def test_what_is_asked_for_is_checked(tmp_path: Path) -> None:
    for options in ({"zone_index": "row"}, {"zone_index": "column", "rows_per_zone": None}):
        with pytest.raises(InvalidInputError, match="zone_index"):
            FileWriter(
                LocalStore().open_writer(str(tmp_path / "a.lance")),
                Schema.from_arrow(pa.schema({"x": pa.int8()})),
                **options,
            )  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="zone_index is 'row'"):
        LanceFileWriter(tmp_path / "a.lance", zone_index="row")
    with LanceFileWriter(tmp_path / "a.lance", zone_index="column") as writer:
        writer.write_batch(pa.table({"x": range(20_000)}))
    assert len(LanceFileReader(tmp_path / "a.lance").metadata().columns[0].column_buffers) == 1


def test_tables_are_written_with_them(tmp_path: Path) -> None:
    table = pa.table({"x": range(20_000)})
    ours = lance_format.write_dataset(table, tmp_path / "t", zone_index="column")
    (path,) = (tmp_path / "t" / "data").iterdir()
    file = open_without_other_statistics(path)
    assert file.reader.zone_statistics(file.columns())["x",].upper.to_pylist() == [8191, 16383, 19999]
    wanted = {"filter": "x > 19000"}
    assert ours.to_table(**wanted) == lance.dataset(tmp_path / "t").to_table(**wanted) == table.slice(19_001)
    with pytest.raises(InvalidInputError, match="zone_index is 'row'"):
        lance_format.write_dataset(table, tmp_path / "u", zone_index="row")
    assert not (tmp_path / "u").exists()


def _golden_table() -> pa.Table:
    return pa.table({"x": pa.array([3, 1, None, None, 7], pa.int32()), "s": ["b", "a", "", None, "x" * 70]})


@pytest.mark.parametrize("version", _VERSIONS)
def test_golden_files(tmp_path: Path, version: FileVersion) -> None:
    golden = _GOLDEN / f"{version}.lance"
    assert write(tmp_path / "a.lance", _golden_table(), 2, version).read_bytes() == golden.read_bytes()
    assert LanceFileReader(golden).read_all().to_table() == _golden_table()
    file = open_without_other_statistics(golden)
    found: dict[tuple[str, ...], ZoneStatistics] = file.reader.zone_statistics(file.columns())
    assert found["x",].lower.to_pylist() == [1, None, 7]
    assert found["x",].num_nulls.tolist() == [0, 2, 0]
    assert found["s",].upper.to_pylist() == ["b", "", "x" * 63 + "y"]
