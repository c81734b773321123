"""Standalone files: the contract of the reader and the writer, without pylance."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lance_format.errors import (
    ChecksumError,
    CorruptFileError,
    InvalidInputError,
    LanceError,
    NotSupportedError,
    SchemaMismatchError,
    StorageError,
)
from lance_format.file import LanceFileReader, LanceFileWriter
from tests.arrays import FLAT_TYPES, NULLS, STYLES, make_array

_TABLE = pa.table({"id": pa.array(range(5000), pa.int64()), "name": [f"n{i}" if i % 3 else None for i in range(5000)]})


def _write(path: Path, table: pa.Table, **options: object) -> Path:
    with LanceFileWriter(path, table.schema, **options) as writer:
        writer.write_batch(table)
    return path


def test_reads_what_it_wrote(tmp_path: Path) -> None:
    reader = LanceFileReader(_write(tmp_path / "a.lance", _TABLE))
    assert reader.num_rows() == 5000
    assert reader.read_all().to_table().equals(_TABLE)
    sizes = [batch.num_rows for batch in reader.read_all(batch_size=1999).to_batches()]
    assert sizes == [1999, 1999, 1002]
    assert reader.read_range(1234, 777).to_table().equals(_TABLE.slice(1234, 777))
    rows = [0, 0, 17, 4095, 4096, 4999]
    taken = reader.take_rows(rows, batch_size=4)
    assert taken.to_table().equals(_TABLE.take(rows))
    assert LanceFileReader(tmp_path / "a.lance", columns=["name"]).read_all().to_table().equals(_TABLE.select(["name"]))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_columns_ranges_and_rows(tmp_path: Path, data: st.DataObject) -> None:
    num_rows = data.draw(st.integers(1, 3000))
    types = data.draw(st.lists(st.sampled_from(FLAT_TYPES), min_size=1, max_size=4))
    columns = {
        f"c{index}": make_array(
            arrow_type, num_rows, data.draw(st.sampled_from(NULLS)), data.draw(st.sampled_from(STYLES)), index
        )
        for index, arrow_type in enumerate(types)
    }
    table = pa.table(columns)
    version = data.draw(st.sampled_from(["2.0", "2.1", "2.2"]))
    pages = data.draw(st.sampled_from([1, 500, 10_000, None]))
    path = tmp_path / "any.lance"
    with LanceFileWriter(path, table.schema, version=version, data_cache_bytes=pages) as writer:
        for start in range(0, num_rows, step := data.draw(st.integers(max(1, num_rows // 8), num_rows))):
            writer.write_batch(table.slice(start, step))
    reader = LanceFileReader(path)
    found = reader.read_all(batch_size=data.draw(st.integers(1 + num_rows // 50, num_rows + 5))).to_table()
    found.validate(full=True)
    assert found.equals(table)
    start = data.draw(st.integers(0, num_rows))
    length = data.draw(st.integers(0, num_rows - start))
    assert reader.read_range(start, length).to_table().equals(table.slice(start, length))
    rows = sorted(data.draw(st.lists(st.integers(0, num_rows - 1), max_size=30)))
    assert reader.take_rows(rows).to_table().equals(table.take(pa.array(rows, pa.int64())))


def test_slack_of_arrow_arrays(tmp_path: Path) -> None:
    garbage = pa.Array.from_buffers(
        pa.int32(), 4, [pa.py_buffer(b"\x05"), pa.array([1, -99, 3, -99], pa.int32()).buffers()[1]]
    )
    hidden = pa.Array.from_buffers(
        pa.string(),
        3,
        [pa.py_buffer(b"\x05"), pa.array([0, 2, 9, 11], pa.int32()).buffers()[1], pa.py_buffer(b"abSECRET!cd")],
    )
    sliced = pa.table(
        {"s": pa.array(["x", None, "yy", "zzz", None])[2:4], "b": pa.array([True, None, True, False, True])[2:4]}
    )
    for name, table in {
        "garbage": pa.table({"c": garbage}),
        "hidden": pa.table({"c": hidden}),
        "sliced": sliced,
        "no buffers": pa.table({"c": pa.array([], pa.string())}),
        "views": pa.table({"c": pa.array(["a", None, "long enough not to be inlined"], pa.string_view())}),
    }.items():
        path = _write(tmp_path / f"{name}.lance", table)
        found = LanceFileReader(path).read_all().to_table()
        assert found.to_pydict() == table.to_pydict(), name
        assert b"SECRET" not in path.read_bytes()


def test_metadata_and_global_buffers(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("a", pa.int32(), False, {"comment": "first"})], {"origin": "here"})
    with LanceFileWriter(tmp_path / "m.lance", schema) as writer:
        writer.write_batch(pa.record_batch([pa.array([1, 2], pa.int32())], schema=schema))
        assert writer.add_global_buffer(b"hello") == 1
        writer.add_schema_metadata("added", "later")
    assert writer.size_bytes == (tmp_path / "m.lance").stat().st_size
    reader = LanceFileReader(tmp_path / "m.lance")
    metadata = reader.metadata()
    assert metadata.schema.equals(schema.with_metadata({"origin": "here", "added": "later"}), check_metadata=True)
    assert (metadata.num_rows, metadata.major_version, metadata.minor_version) == (2, 2, 2)
    (column,) = reader.file_statistics().columns
    assert (column.num_pages, column.size_bytes) == (1, metadata.num_data_bytes)
    assert reader.read_global_buffer(1) == b"hello"
    for page in metadata.columns[0].pages:
        assert all(buffer.position % 64 == 0 for buffer in page.buffers)
    with pytest.raises(InvalidInputError, match="global buffer 3"):
        reader.read_global_buffer(3)


def test_versions(tmp_path: Path) -> None:
    numbers = {"2.1": (2, 1), "2.2": (2, 2), "stable": (2, 2), "STABLE": (2, 2), None: (2, 2)}
    numbers |= {"2.0": (0, 3), "0.3": (0, 3)}
    for version, expected in numbers.items():
        metadata = LanceFileReader(_write(tmp_path / "v.lance", _TABLE, version=version)).metadata()
        assert (metadata.major_version, metadata.minor_version) == expected
    for version in ("next", "2.3", "legacy", "0.1"):
        with pytest.raises(NotSupportedError, match="not supported"):
            LanceFileWriter(tmp_path / "new.lance", _TABLE.schema, version=version)
    for version in ("next", "2.3"):
        with pytest.raises(NotSupportedError, match=r"version 2\.3 .* unstable .*'PlanarLayout'.* use one of 2\.0"):
            LanceFileWriter(tmp_path / "new.lance", _TABLE.schema, version=version)
    for version in ("2", "0.2", "2.4", "", "newest"):
        with pytest.raises(InvalidInputError, match="unknown file format version"):
            LanceFileWriter(tmp_path / "new.lance", _TABLE.schema, version=version)
    assert not (tmp_path / "new.lance").exists()


@pytest.mark.parametrize(
    "arrow_type",
    [
        pa.list_(pa.string(), 4),
        pa.list_(pa.list_(pa.int32()), 4),
        pa.list_(pa.dictionary(pa.int8(), pa.string()), 4),
        pa.dictionary(pa.int8(), pa.list_(pa.int32())),
        pa.dictionary(pa.int8(), pa.list_(pa.float32(), 2)),
        pa.dictionary(pa.int8(), pa.string_view()),
        pa.dictionary(pa.int8(), pa.null()),
        pa.list_view(pa.int32()),
        pa.month_day_nano_interval(),
        pa.run_end_encoded(pa.int32(), pa.int32()),
        pa.decimal32(5, 2),
    ],
    ids=str,
)
def test_types_that_cannot_be_written_leave_nothing(tmp_path: Path, arrow_type: pa.DataType) -> None:
    with pytest.raises(NotSupportedError, match="'col'"):
        LanceFileWriter(tmp_path / "t.lance", pa.schema([("col", arrow_type)]))
    assert not list(tmp_path.iterdir())


def test_an_exception_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(KeyError), LanceFileWriter(tmp_path / "t.lance", _TABLE.schema) as writer:  # noqa: PT012
        writer.write_batch(_TABLE)
        raise KeyError("user code")
    assert not list(tmp_path.iterdir())


def test_batches_that_do_not_fit(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("a", pa.int32(), False), ("b", pa.string())])
    writer = LanceFileWriter(tmp_path / "s.lance", schema)
    fine = pa.table({"b": ["x"], "a": pa.array([1], pa.int32())})
    writer.write_batch(fine)
    for table, message in (
        (fine.drop(["a"]), "lacks column 'a'"),
        (fine.append_column("c", pa.array([1])), "has not: c"),
        (fine.set_column(1, "a", pa.array([1])), "column 'a' is int64"),
        (fine.set_column(1, "a", pa.array([None], pa.int32())), "'a' must not be null"),
    ):
        with pytest.raises(SchemaMismatchError, match=message):
            writer.write_batch(table)
    writer.close()
    assert LanceFileReader(tmp_path / "s.lance").num_rows() == 1
    with pytest.raises(InvalidInputError, match="closed"):
        writer.write_batch(fine)


def test_bad_arguments(tmp_path: Path) -> None:
    path = _write(tmp_path / "a.lance", _TABLE)
    reader = LanceFileReader(path)
    with pytest.raises(InvalidInputError, match=r"no column 'nope'; the columns are id, name"):
        LanceFileReader(path, columns=["nope"])
    for start, count in ((0, 5001), (-1, 3), (6000, 1)):
        with pytest.raises(InvalidInputError, match="5000 rows"):
            reader.read_range(start, count)
    for rows in ([5000], [-1], [3, 2]):
        with pytest.raises(InvalidInputError, match="ascend"):
            reader.take_rows(rows)
    with pytest.raises(InvalidInputError, match="batch"):
        reader.read_all(batch_size=0)
    with pytest.raises(InvalidInputError, match="Schema is unknown"):
        LanceFileWriter(tmp_path / "none.lance").close()
    with pytest.raises(InvalidInputError, match="max_page_bytes"):
        LanceFileWriter(tmp_path / "none.lance", _TABLE.schema, max_page_bytes=0)
    assert not (tmp_path / "none.lance").exists()


def test_foreign_and_missing_files(tmp_path: Path) -> None:
    (tmp_path / "text.lance").write_text("no Lance file at all, but long enough to have a footer")
    (tmp_path / "empty.lance").write_bytes(b"")
    for name in ("text.lance", "empty.lance"):
        with pytest.raises(CorruptFileError, match="no Lance file") as caught:
            LanceFileReader(tmp_path / name)
        assert name in str(caught.value)
        assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    with pytest.raises(StorageError, match=r"missing\.lance"):
        LanceFileReader(tmp_path / "missing.lance")
    newer = bytearray(_write(tmp_path / "newer.lance", _TABLE).read_bytes())
    newer[-6:-4] = b"\x09\x00"
    (tmp_path / "newer.lance").write_bytes(newer)
    with pytest.raises(NotSupportedError, match=r"2\.9 is unknown"):
        LanceFileReader(tmp_path / "newer.lance", verify_checksums=False)
    with pytest.raises(ChecksumError, match=r"newer\.lance: the checksums of the file, or its footer, are damaged"):
        LanceFileReader(tmp_path / "newer.lance")


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_values_larger_than_a_chunk(tmp_path: Path, version: str) -> None:
    strings = ["a", "b" * 200_000, None, "c" * 40_000, "d"]
    table = pa.table({"s": strings, "f": pa.array([b"x" * 9000, b"y" * 9000, None] * 2, pa.binary(9000))[:5]})
    path = _write(tmp_path / "l.lance", table, version=version)
    assert LanceFileReader(path).read_all().to_table().equals(table)
    assert LanceFileReader(path).take_rows([1, 4]).to_table().equals(table.take([1, 4]))


_STREAM = """
import resource, sys
import numpy as np, pyarrow as pa
from lance_format.file import LanceFileReader, LanceFileWriter
schema = pa.schema([("id", pa.int64()), ("value", pa.float64()), ("name", pa.string())])
warm = pa.record_batch([pa.array([1]), pa.array([0.5]), pa.array(["x"])], schema=schema)
with LanceFileWriter(sys.argv[1] + ".warm", schema) as writer:
    writer.write_batch(warm)
LanceFileReader(sys.argv[1] + ".warm").read_all().to_table()
rng = np.random.default_rng(0)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
rows = 0
with LanceFileWriter(sys.argv[1], schema) as writer:
    for _ in range(int(sys.argv[2])):
        numbers = rng.integers(0, 2**62, 100_000)
        names = pa.array(numbers).cast(pa.string())
        writer.write_batch(pa.record_batch([pa.array(numbers), pa.array(rng.random(100_000)), names], schema=schema))
for batch in LanceFileReader(sys.argv[1]).read_all(batch_size=8192).to_batches():
    rows += batch.num_rows
assert rows == int(sys.argv[2]) * 100_000
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.slow
def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    """A file of some 400 MB passes through a process that gains far less."""
    path = tmp_path / "stream.lance"
    done = subprocess.run(
        [sys.executable, "-c", _STREAM, str(path), "150"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    gained = int(done.stdout) / 1024
    assert path.stat().st_size > 350 * 2**20
    assert gained < 220, f"the process gained {gained:.0f} MiB"


def test_every_error_is_ours() -> None:
    assert issubclass(CorruptFileError, LanceError)
    assert issubclass(StorageError, OSError)


def test_options_of_a_writer_stand_behind_those_of_fields(tmp_path: Path) -> None:
    numbers = np.random.default_rng(0).integers(0, 2**40, 20_000)
    fields = [
        pa.field("own", pa.int64(), metadata={"lance-encoding:compression": "none"}),
        pa.field("single", pa.int64()),
        pa.field("other", pa.struct([pa.field("x", pa.int64())])),
    ]
    nested = pa.StructArray.from_arrays([pa.array(numbers)], ["x"])
    table = pa.table([numbers, numbers, nested], schema=pa.schema(fields))
    path = tmp_path / "numbers.lance"
    options = {
        "encoding": {"compression": "zstd", "compression-level": 5, "bss": "on"},
        "column_encoding": {"single": {"compression": "lz4"}},
    }
    with LanceFileWriter(path, table.schema, **options) as writer:
        writer.write_batch(table)
    own, single, other = [column.pages[0].encoding for column in LanceFileReader(path).metadata().columns]
    assert "general" not in own
    assert "COMPRESSION_ALGORITHM_LZ4" in single
    assert "COMPRESSION_ALGORITHM_ZSTD" in other
    assert LanceFileReader(path).read_all().to_table().equals(table)


def test_options_of_a_writer_are_checked_before_a_file_appears(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("a", pa.int64())])
    for options, message in (
        ({"encoding": {"compression": "gzip"}}, "column 'a': option 'lance-encoding:compression' is 'gzip'"),
        ({"encoding": {"compression-level": 23}}, "an integer from -131072 to 22"),
        ({"column_encoding": {"b": {"compression": "zstd"}}}, "for column 'b': there is none"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            LanceFileWriter(tmp_path / "none.lance", schema, **options)
    assert list(tmp_path.iterdir()) == []


def test_large_values_taken_more_often_than_there_are_rows(tmp_path: Path) -> None:
    table = pa.table({"large": ["x" * 300, None, "y" * 400]})
    with LanceFileWriter(tmp_path / "f.lance", table.schema) as writer:
        writer.write_batch(table)
    rows = [0, 0, 0, 1, 1, 2, 2, 2, 2]
    assert LanceFileReader(tmp_path / "f.lance").take_rows(rows).to_table().equals(table.take(rows))
