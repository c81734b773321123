"""Values of zero bytes and lists of zero items: what pylance reads of them, and no more."""

from __future__ import annotations

from pathlib import Path

import lance
import lance.file
import pyarrow as pa
import pytest

import lance_format
from lance_format import InvalidInputError, NotSupportedError
from lance_format.file import LanceFileReader, LanceFileWriter

_NOTHING = pa.binary(0)
_ARRAYS = {
    "some": pa.array([b"", None, b""] * 1000, _NOTHING),
    "valid": pa.array([b""] * 5000, _NOTHING),
    "null": pa.array([None] * 4, _NOTHING),
    "no rows": pa.array([], _NOTHING),
    "one": pa.array([b""], _NOTHING),
    "lists": pa.array([[b"", None], [], None, [b""]] * 200, pa.list_(_NOTHING)),
    "structs": pa.array(
        [{"a": b"", "b": 1}, None, {"a": None, "b": 2}], pa.struct([("a", _NOTHING), ("b", pa.int8())])
    ),
}


@pytest.mark.parametrize("name", _ARRAYS)
def test_binary_of_size_zero(name: str, tmp_path: Path) -> None:
    array = _ARRAYS[name]
    data = pa.table([array, pa.array(range(len(array)))], ["c", "n"])
    rows = sorted({0, len(array) // 2, len(array) - 1}) if len(array) else []
    for writer_class in (LanceFileWriter, lance.file.LanceFileWriter):
        path = tmp_path / "f.lance"
        with writer_class(str(path), data.schema, version="2.2") as writer:
            writer.write_batch(data)
        for reader in (LanceFileReader(path), lance.file.LanceFileReader(str(path))):
            assert reader.read_all(batch_size=700).to_table().equals(data)
            if rows:
                assert reader.take_rows(rows).to_table().equals(data.take(rows))


def test_tables_with_binary_of_size_zero(tmp_path: Path) -> None:
    data = pa.table([_ARRAYS["some"], pa.array(range(3000))], ["c", "n"])
    path = str(tmp_path / "t")
    lance.write_dataset(data, path)
    ours = lance_format.dataset(path)
    ours.insert(data)
    ours.delete("n = 5")
    ours.update({"n": "0"}, where="n = 7")
    ours.optimize.compact_files()
    assert ours.count_rows("c is null") == lance.dataset(path).count_rows("c is null") == 2000
    assert lance.dataset(path).to_table().equals(lance_format.dataset(path).to_table())


def test_file_format_2_1_has_no_such_values(tmp_path: Path) -> None:
    data = pa.table([_ARRAYS["some"]], ["c"])
    with pytest.raises(InvalidInputError, match=r"'c' is a fixed_size_binary\[0\], whose values have no bytes"):
        lance_format.write_dataset(data, tmp_path / "ours", data_storage_version="2.1")
    lance.write_dataset(data, str(tmp_path / "theirs"), data_storage_version="2.1")
    with pytest.raises(ValueError, match="positive bit width"):
        lance.dataset(str(tmp_path / "theirs")).to_table()
    with pytest.raises(NotSupportedError, match="values without a bit"):
        lance_format.dataset(tmp_path / "theirs").to_table()


@pytest.mark.parametrize("item", [pa.int32(), pa.struct([("a", pa.int8())]), pa.list_(pa.int8(), 2), _NOTHING], ids=str)
def test_lists_of_size_zero_are_refused_by_both(item: pa.DataType, tmp_path: Path) -> None:
    for arrow_type in (pa.list_(item, 0), pa.list_(pa.list_(item, 0)), pa.struct([("l", pa.list_(item, 0))])):
        data = pa.table([pa.array([None, None], arrow_type)], ["c"])
        with pytest.raises(OSError, match="dimension 0"):
            lance.write_dataset(data, str(tmp_path / "theirs"))
        with pytest.raises(InvalidInputError, match="lists without items, which Lance cannot store"):
            lance_format.write_dataset(data, tmp_path / "ours")
    assert not (tmp_path / "ours").exists()


def test_vectors_of_nothing_are_refused(tmp_path: Path) -> None:
    data = pa.table([pa.array([[b"", b""]], pa.list_(_NOTHING, 2))], ["c"])
    with pytest.raises(NotSupportedError, match="cannot store"):
        lance_format.write_dataset(data, tmp_path / "ours")
