"""Packed structs, in both directions between this library and pylance."""

from __future__ import annotations

from pathlib import Path

import lance
import lance.file
import numpy as np
import pyarrow as pa
import pytest

import lance_format
from lance_format.errors import NotSupportedError
from lance_format.file import LanceFileReader, LanceFileWriter

_PACKED = {"lance-encoding:packed": "true"}
_FIXED = pa.struct([("x", pa.int32()), ("y", pa.float64()), ("z", pa.int8())])
_STRINGS = pa.struct([("x", pa.int32()), ("name", pa.string()), ("raw", pa.large_binary())])


def _table(arrow_type: pa.StructType, num_rows: int, metadata: dict[str, str] = _PACKED) -> pa.Table:
    rng = np.random.default_rng(num_rows)
    makers = {
        "x": lambda: rng.integers(-(10**6), 10**6, num_rows).astype(np.int32),
        "y": lambda: rng.random(num_rows),
        "z": lambda: rng.integers(-99, 99, num_rows).astype(np.int8),
        "name": lambda: [f"name {number}" for number in rng.integers(0, 10**6, num_rows).tolist()],
        "raw": lambda: [bytes(number) for number in rng.integers(0, 60, num_rows).tolist()],
    }
    arrays = [pa.array(makers[field.name](), field.type) for field in arrow_type]
    packed = pa.StructArray.from_arrays(arrays, fields=list(arrow_type))
    schema = pa.schema([("a", pa.int64()), pa.field("c", arrow_type, metadata=metadata), ("b", pa.string())])
    return pa.table([pa.array(range(num_rows)), packed, pa.array(["b"] * num_rows)], schema=schema)


def _check(table: pa.Table, version: str, path: Path) -> None:
    rows = sorted({0, table.num_rows // 3, table.num_rows - 1})
    for writer_class in (LanceFileWriter, lance.file.LanceFileWriter):
        with writer_class(str(path), table.schema, version=version) as writer:
            for batch in table.to_batches():
                writer.write_batch(batch)
        assert len(LanceFileReader(path).metadata().columns) == 3
        for reader in (LanceFileReader(path), lance.file.LanceFileReader(str(path))):
            found = reader.read_all(batch_size=1000).to_table()
            found.validate(full=True)
            assert found.equals(table)
            assert reader.take_rows(rows).to_table().equals(table.take(rows))


@pytest.mark.parametrize("num_rows", [1, 10, 5000])
@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_fields_of_a_fixed_width(num_rows: int, version: str, tmp_path: Path) -> None:
    _check(_table(_FIXED, num_rows), version, tmp_path / "p.lance")


@pytest.mark.parametrize("num_rows", [1, 10, 5000])
def test_fields_of_any_length(num_rows: int, tmp_path: Path) -> None:
    _check(_table(_STRINGS, num_rows), "2.2", tmp_path / "p.lance")


@pytest.mark.parametrize("arrow_type", [_FIXED, _STRINGS], ids=["fixed", "strings"])
def test_tables(arrow_type: pa.StructType, tmp_path: Path) -> None:
    path = str(tmp_path / "t.lance")
    table = _table(arrow_type, 300)
    lance_format.write_dataset(table, path)
    lance.write_dataset(table, path, mode="append")
    lance_format.write_dataset(table, path, mode="append")
    theirs = lance.dataset(path)
    theirs.validate()
    assert theirs.to_table().equals(pa.concat_tables([table] * 3))
    assert lance_format.dataset(path).to_table().equals(pa.concat_tables([table] * 3))


def test_what_cannot_be_packed_is_refused(tmp_path: Path) -> None:
    for arrow_type, version in (
        (_STRINGS, "2.1"),
        (pa.struct([("flag", pa.bool_())]), "2.2"),
        (pa.struct([("l", pa.list_(pa.int32()))]), "2.2"),
        (pa.struct([("nothing", pa.null())]), "2.2"),
    ):
        schema = pa.schema([pa.field("c", arrow_type, metadata=_PACKED)])
        with pytest.raises(NotSupportedError, match="'c'"):
            LanceFileWriter(tmp_path / "p.lance", schema, version=version)
    schema = pa.schema([pa.field("c", _FIXED, metadata=_PACKED)])
    writer = LanceFileWriter(tmp_path / "p.lance", schema)
    writer.write_batch(pa.table([pa.array([{"x": 1, "y": None, "z": 2}], _FIXED)], schema=schema))
    with pytest.raises(NotSupportedError, match="'y' of a packed struct is null"):
        writer.close()
    assert not list(tmp_path.iterdir())
