"""JSONB becomes the text that pylance makes of it."""

from __future__ import annotations

import json
import random
import re
import struct
from collections.abc import Iterator
from pathlib import Path

import lance
import lance.file
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lance_format
from lance_format import CorruptFileError, NotSupportedError
from lance_format.file import LanceFileReader
from lance_format.jsonb import to_text

_NUMBERS = [0, 255, 256, 65_535, 65_536, 2**32 - 1, 2**32, 2**64 - 1, 2**64, -1, -128, -129, -(2**15) - 1, -(2**31) - 1]
_NUMBERS += [
    -(2**63),
    10**40,
    0.1,
    -0.0,
    1e-4,
    1e-5,
    -1.25e-5,
    9.9e-6,
    1e15,
    1e16,
    1e22,
    5e-324,
    1.7976931348623157e308,
]
_values = st.recursive(
    st.none()
    | st.booleans()
    | st.sampled_from(_NUMBERS)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=5), inner, max_size=5),
)


def _json(texts: list[str | None]) -> pa.ExtensionArray:
    return pa.ExtensionArray.from_storage(pa.json_(), pa.array(texts, pa.string()))


def _stored(directory: Path) -> list[bytes | None]:
    (path,) = directory.glob("data/*.lance")
    column = LanceFileReader(path).read_all().to_table().column(0)
    assert column.type == pa.large_binary()
    assert column.equals(lance.file.LanceFileReader(str(path)).read_all().to_table().column(0))
    return list(column.to_pylist())


@pytest.mark.slow
@given(st.lists(_values, min_size=1, max_size=20), st.booleans())
def test_text_is_that_of_pylance(tmp_path_factory: pytest.TempPathFactory, values: list[object], escaped: bool) -> None:
    path = tmp_path_factory.mktemp("json")
    texts = [json.dumps(value, ensure_ascii=escaped) for value in values]
    theirs = lance.write_dataset(pa.table({"c": _json([*texts, None])}), str(path)).to_table()
    ours = lance_format.dataset(path).to_table()
    assert ours.equals(theirs)
    assert [text if text is None else to_text(text) for text in _stored(path)] == theirs.column(0).to_pylist()


def test_special_numbers_and_large_documents(tmp_path: Path) -> None:
    texts = ["1e999", "[-1e999, NaN]", json.dumps(list(range(100_000))), "[" * 300 + "]" * 300, "{}", "[]", '""']
    theirs = lance.write_dataset(pa.table({"c": _json(texts)}), str(tmp_path / "t")).to_table()
    assert lance_format.dataset(tmp_path / "t").to_table().equals(theirs)


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_json_inside_of_other_types(version: str, tmp_path: Path) -> None:
    inner = _json(["1", None, '[2, {"a": null}]', '"x"'])
    uuids = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"0123456789abcdef"] * 4, pa.binary(16)))
    mask = pa.array([False, False, version != "2.0", False])
    columns = {
        "plain": inner,
        "struct": pa.StructArray.from_arrays([inner, uuids, pa.array([1, 2, 3, 4])], ["j", "u", "n"], mask=mask),
        "list": pa.ListArray.from_arrays(pa.array([0, 1, None, 3, 4], pa.int32()), inner),
    }
    if version == "2.2":
        columns["map"] = pa.MapArray.from_arrays(pa.array([0, 1, 1, 3, 4], pa.int32()), pa.array([1, 2, 3, 4]), inner)
    theirs = lance.write_dataset(pa.table(columns), str(tmp_path / "t"), data_storage_version=version)
    ours = lance_format.dataset(tmp_path / "t")
    assert ours.schema.equals(theirs.schema, check_metadata=True)
    found = ours.to_table()
    found.validate(full=True)
    assert found.equals(theirs.to_table())
    assert ours.take([2, 0]).equals(theirs.take([2, 0]))
    assert pa.Table.from_batches(ours.to_batches(["list"], batch_size=2)).equals(theirs.to_table(["list"]))


def _scalar(kind: int, payload: bytes) -> bytes:
    return struct.pack(">II", 0x2000_0000, kind << 28 | len(payload)) + payload


def _decimals() -> Iterator[tuple[bytes, str]]:
    for size in (8, 16, 32):
        for value, scale, text in (
            (12345, 2, "123.45"),
            (-5, 3, "-0.005"),
            (7, 0, "7"),
            (-(2**63), 1, f"-{2**63 // 10}.8"),
        ):
            encoded = b"\x70" + value.to_bytes(size, signed=True)
            yield _scalar(2, encoded + bytes([scale])), text
            if size > 8:
                yield _scalar(2, encoded + bytes([38, scale])), text


@pytest.mark.parametrize(("data", "text"), list(_decimals()))
def test_decimals(data: bytes, text: str) -> None:
    assert to_text(data) == text


_DAMAGED = {
    "nothing": b"",
    "an unknown container": b"\0\0\0\0",
    "too many entries": struct.pack(">I", 0x8000_0000 | 0x1FFF_FFFF),
    "a value beyond the end": struct.pack(">II", 0x2000_0000, 0x1000_0005) + b"abc",
    "bytes left over": _scalar(0, b"") + b"x",
    "an unknown value": _scalar(7, b""),
    "a string that is not UTF-8": _scalar(1, b"\xff"),
    "an empty number": _scalar(2, b""),
    "an integer of three bytes": _scalar(2, b"\x40abc"),
    "an unknown number": _scalar(2, b"\x80"),
    "a decimal of scale 77": _scalar(2, b"\x70" + bytes(16) + b"\x4d"),
    "a key that is no string": struct.pack(">III", 0x4000_0001, 0, 0),
    "an array without values": struct.pack(">II", 0x8000_0001, 0x5000_0000),
}


@pytest.mark.parametrize("name", _DAMAGED)
def test_damaged_documents(name: str) -> None:
    with pytest.raises(CorruptFileError, match="JSON has"):
        to_text(_DAMAGED[name])


def test_values_that_are_no_json() -> None:
    with pytest.raises(NotSupportedError, match="bytes, dates or intervals"):
        to_text(_scalar(6, b"\x10\0\0\0\1"))


def test_any_bytes_end_in_text_or_one_error(tmp_path: Path) -> None:
    document = json.dumps([{"a": [1, 2.5, "x", None]}, [True, {"b": {}}], 10**20])
    lance.write_dataset(pa.table({"c": _json([document])}), str(tmp_path / "t"))
    (data,) = _stored(tmp_path / "t")
    assert data is not None
    rng = random.Random(0)
    for _ in range(3000):
        damaged = bytearray(data[: rng.randint(0, len(data)) if rng.random() < 0.3 else len(data)])
        for _ in range(rng.randint(1, 3)):
            if damaged:
                damaged[rng.randrange(len(damaged))] = rng.choice([0, 0xFF, rng.randrange(256)])
        try:
            to_text(bytes(damaged))
        except (CorruptFileError, NotSupportedError):
            continue


@pytest.mark.parametrize("nested", [False, True])
def test_damage_names_the_file_and_the_column(tmp_path: Path, nested: bool) -> None:
    def rows(text: str) -> pa.Table:
        column = _json([text])
        return pa.table({"n": [1], "c": pa.StructArray.from_arrays([column], ["j"]) if nested else column})

    for text in ('"whole"', '"unmistakable"', '"whole"'):
        lance.write_dataset(rows(text), str(tmp_path / "t"), mode="append", data_storage_version="2.1")
    table = lance_format.dataset(tmp_path / "t")
    path = tmp_path / "t" / "data" / table.get_fragments()[1].metadata.files[0].path
    path.write_bytes(path.read_bytes().replace(b"\x10\0\0\x0cunmis", b"\x70\0\0\x0cunmis"))
    message = f"{re.escape(str(path))}: column 'c': JSON has a value of the unknown kind 7"
    for read in (table.to_table, lambda: table.take([0, 1, 2]), lambda: table.to_table(filter="n = 1")):
        with pytest.raises(CorruptFileError, match=message):
            read()


def test_other_columns_of_tables_with_json_can_be_updated_and_filtered(tmp_path: Path) -> None:
    rows = pa.table({"n": [1, 2, 3], "s": [{"j": text} for text in ("[1]", None, "{}")]})
    inner = pa.StructArray.from_arrays([_json(["[1]", None, "{}"])], ["j"])
    lance.write_dataset(rows.set_column(1, "s", inner), str(tmp_path / "t"))
    table = lance_format.dataset(tmp_path / "t")
    assert table.to_table(["s.j"], filter="n > 1").column(0).to_pylist() == [None, "{}"]
    table.update({"n": "n + 10"}, where="n < 3")
    expected = lance.dataset(str(tmp_path / "t")).to_table()
    assert sorted(expected.column("n").to_pylist()) == [3, 11, 12]
    assert lance_format.dataset(tmp_path / "t").to_table().to_pylist() == expected.to_pylist()
