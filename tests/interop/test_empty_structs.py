"""Structs without fields, in both directions between this library and pylance."""

from __future__ import annotations

from pathlib import Path

import lance
import lance.file
import pyarrow as pa
import pytest

import lance_format
from lance_format import NotSupportedError
from lance_format.file import LanceFileReader, LanceFileWriter
from tests.arrays import same_values

_EMPTY = pa.struct([])
_NUMBERS = pa.array(range(3000))


def _array(arrow_type: pa.DataType, value: object) -> pa.Array:
    return pa.array([value] * 3000, arrow_type)


_COLUMNS = {
    "alone": {"c": _array(_EMPTY, {})},
    "last": {"n": _NUMBERS, "c": _array(_EMPTY, {})},
    "in a struct": {"n": _NUMBERS, "c": _array(pa.struct([("e", _EMPTY)]), {"e": {}})},
    "last in a struct": {"c": _array(pa.struct([("x", pa.int32()), ("e", _EMPTY)]), {"x": None, "e": {}})},
    "twice": {"c": _array(pa.struct([("e", _EMPTY), ("f", pa.struct([("g", _EMPTY)]))]), {"e": {}, "f": {"g": {}}})},
}


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("name", _COLUMNS)
def test_both_directions(name: str, version: str, tmp_path: Path) -> None:
    table = pa.table(_COLUMNS[name])
    for write in (LanceFileWriter, lance.file.LanceFileWriter):
        with write(str(tmp_path / "f.lance"), table.schema, version=version) as writer:
            writer.write_batch(table.to_batches()[0])
        for read in (LanceFileReader, lance.file.LanceFileReader):
            found = read(str(tmp_path / "f.lance")).read_all().to_table()
            found.validate(full=True)
            assert found.schema == table.schema
            assert same_values(found, table)
            taken = read(str(tmp_path / "f.lance")).take_rows([1, 2999]).to_table()
            assert same_values(taken, table.take([1, 2999]))
    lance_format.write_dataset(table, tmp_path / "ours", data_storage_version=version)
    lance.write_dataset(table, str(tmp_path / "theirs"), data_storage_version=version)
    for path in (tmp_path / "ours", tmp_path / "theirs"):
        assert same_values(lance.dataset(str(path)).to_table(), table)
        assert same_values(lance_format.dataset(path).to_table(), table)


def test_columns_after_them_are_read_though_pylance_loses_them(tmp_path: Path) -> None:
    inner = pa.struct([("e", _EMPTY), ("x", pa.int64())])
    table = pa.table({"c": _array(_EMPTY, {}), "n": _NUMBERS, "s": _array(inner, {"e": {}, "x": 7})})
    with lance.file.LanceFileWriter(str(tmp_path / "f.lance"), table.schema) as writer:
        writer.write_batch(table.to_batches()[0])
    assert LanceFileReader(tmp_path / "f.lance").read_all().to_table().to_pylist() == table.to_pylist()


@pytest.mark.parametrize(
    "arrow_type",
    [
        pa.list_(_EMPTY),
        pa.list_(_EMPTY, 2),
        pa.map_(pa.string(), _EMPTY),
        pa.list_(pa.struct([("e", _EMPTY)])),
        pa.struct([("e", _EMPTY), ("x", pa.int64())]),
    ],
    ids=str,
)
def test_what_pylance_cannot_read_is_not_written(arrow_type: pa.DataType, tmp_path: Path) -> None:
    with pytest.raises(NotSupportedError, match=r"column 'c.*a struct without fields"):
        LanceFileWriter(tmp_path / "f.lance", pa.schema([("c", arrow_type)]))
    assert not list(tmp_path.iterdir())


_NULLS = {"own": pa.array([{}, None], _EMPTY), "outer": pa.array([None, {"e": {}}], pa.struct([("e", _EMPTY)]))}


@pytest.mark.parametrize("name", _NULLS)
def test_nulls_are_refused(name: str, tmp_path: Path) -> None:
    array = _NULLS[name]
    writer = LanceFileWriter(tmp_path / "f.lance", pa.schema([("c", array.type)]))
    writer.write_batch(pa.record_batch([array], ["c"]))
    with pytest.raises(NotSupportedError, match=r"column 'c.*' is a struct without fields, and null"):
        writer.close()
    assert not list(tmp_path.iterdir())
