"""The encodings that pages get are those that pylance chooses."""

from __future__ import annotations

from pathlib import Path

import lance.file
import pyarrow as pa
import pytest

from lance_format.errors import NotSupportedError
from lance_format.file import LanceFileReader, LanceFileWriter

_COLUMNS = {
    "numbers": pa.array(range(300)),
    "nulls": pa.array([None if row % 3 else row for row in range(300)]),
    "nothing": pa.nulls(300, pa.float32()),
    "99 strings": pa.array([f"{row % 99}" for row in range(300)]),
    "99 strings and nulls": pa.array([None if row % 7 == 0 else f"{row % 99}" for row in range(900)]),
    "100 strings": pa.array([f"{row % 100}" for row in range(300)]),
    "large strings": pa.array([f"{row % 9}" for row in range(300)], pa.large_string()),
    "binary": pa.array([b"%d" % (row % 9) for row in range(300)]),
    "99 rows": pa.array(["same"] * 99),
    "lists": pa.array([[row] * (row % 3) for row in range(300)]),
    "vectors": pa.array([[row, 1] for row in range(300)], pa.list_(pa.int64(), 2)),
    "keys": pa.array([None if row % 7 == 0 else f"{row % 9}" for row in range(300)]).dictionary_encode(),
    "structs": pa.array(
        [{"x": row % 99, "y": None} for row in range(300)], pa.struct({"x": pa.int8(), "y": pa.string()})
    ),
}


@pytest.mark.parametrize("name", _COLUMNS)
def test_as_pylance(name: str, tmp_path: Path) -> None:
    table = pa.table({"c": _COLUMNS[name]})
    found = []
    for writer_class in (LanceFileWriter, lance.file.LanceFileWriter):
        with writer_class(str(tmp_path / "f.lance"), table.schema, version="2.0") as writer:
            writer.write_batch(table)
        columns = LanceFileReader(tmp_path / "f.lance").metadata().columns
        found.append([[page.encoding for page in column.pages] for column in columns])
    assert found[0] == found[1]


@pytest.mark.parametrize("scheme", ["zstd", "lz4", "fsst"])
def test_strings_are_compressed_if_asked(scheme: str, tmp_path: Path) -> None:
    field = pa.field("c", pa.string(), metadata={"lance-encoding:compression": scheme})
    table = pa.table([pa.array([f"https://example.org/{row}" for row in range(5000)])], schema=pa.schema([field]))
    with LanceFileWriter(tmp_path / "f.lance", table.schema, version="2.0") as writer:
        writer.write_batch(table)
    (page,) = LanceFileReader(tmp_path / "f.lance").metadata().columns[0].pages
    assert scheme in page.encoding
    assert sum(buffer.size for buffer in page.buffers) < 0.7 * table.nbytes + 5000 * 4
    assert lance.file.LanceFileReader(str(tmp_path / "f.lance")).read_all().to_table().equals(table)


def test_what_the_format_cannot_hold_is_refused_by_name(tmp_path: Path) -> None:
    point = pa.struct([("x", pa.int32())])
    keys = pa.array([*range(128), None], pa.int8())
    for array, message in (
        (pa.array([{"x": 1}, None], point), "column 'c' has 1 null structs"),
        (pa.array([[{"x": 1}], [None]], pa.list_(point)), r"column 'c\.item' has 1 null structs"),
        (pa.DictionaryArray.from_arrays(keys, pa.array([str(n) for n in range(128)])), "column 'c': keys up to 127"),
    ):
        writer = LanceFileWriter(tmp_path / "f.lance", pa.schema([("c", array.type)]), version="2.0")
        writer.write_batch(pa.record_batch([array], ["c"]))
        with pytest.raises(NotSupportedError, match=message):
            writer.close()
        assert not list(tmp_path.iterdir())
    for arrow_type in (pa.map_(pa.string(), pa.int32()), pa.list_(point, 2)):
        with pytest.raises(NotSupportedError, match="cannot hold"):
            LanceFileWriter(tmp_path / "f.lance", pa.schema([("c", arrow_type)]), version="2.0")


@pytest.mark.slow
def test_what_lies_beneath_nulls_is_not_stored(tmp_path: Path) -> None:
    hidden = pa.ListArray.from_arrays(
        pa.array([0, 1, 3, 4], pa.int32()),
        pa.array(["x", "SECRET", "SECRET", "y"]),
        mask=pa.array([False, True, False]),
    )
    strings = pa.Array.from_buffers(
        pa.string(), 2, [pa.py_buffer(b"\1"), pa.py_buffer(b"\0\0\0\0\1\0\0\0\7\0\0\0"), pa.py_buffer(b"xSECRET")]
    )
    for array in (hidden, strings):
        with LanceFileWriter(tmp_path / "f.lance", pa.schema([("c", array.type)]), version="2.0") as writer:
            writer.write_batch(pa.record_batch([array], ["c"]))
        assert b"SECRET" not in (tmp_path / "f.lance").read_bytes()
        assert LanceFileReader(tmp_path / "f.lance").read_all().to_table()["c"].to_pylist() == array.to_pylist()
