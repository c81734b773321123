"""Values that are not of their type are refused before anyone would have to read them."""

from __future__ import annotations

import decimal
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_format
from lance_format import InvalidInputError
from lance_format.file import LanceFileReader, LanceFileWriter


def _mistyped(values: list[bytes | None], arrow_type: pa.DataType) -> pa.Array:
    """Return an array of texts of arbitrary bytes."""
    is_large = arrow_type == pa.large_string()
    binary = pa.array(values, pa.large_binary() if is_large else pa.binary())
    return pa.Array.from_buffers(arrow_type, len(binary), binary.buffers(), binary.null_count)


def _write(array: pa.Array, path: Path) -> None:
    with LanceFileWriter(path, pa.schema([pa.field("c", array.type)])) as writer:
        writer.write_batch(pa.record_batch([array], ["c"]))


_BAD = [b"bird", b"\xffbird", None, b"\xed\xa0\x80"]
_TEXT = _mistyped(_BAD, pa.string())


@pytest.mark.parametrize(
    "array",
    [
        _TEXT,
        _mistyped(_BAD, pa.large_string()),
        _mistyped([b"x" * 400 + b"\xc3"] * 9, pa.string()),
        _mistyped([b"\xc3", b"\xa9"], pa.string()),
        pa.ListArray.from_arrays(pa.array([0, 1, 4]), _TEXT),
        pa.StructArray.from_arrays([pa.array(range(4)), _TEXT], ["n", "s"]),
        pa.DictionaryArray.from_arrays(pa.array([0, 1, 1, 0]), _mistyped(_BAD[:2], pa.string())),
        pa.MapArray.from_arrays([0, 1], _mistyped([b"\x80"], pa.string()), pa.array([1])),
    ],
    ids=["string", "large", "long", "halves of a character", "list", "struct", "dictionary", "map"],
)
def test_texts_that_are_no_utf8(array: pa.Array, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"column 'c.*': a value is not of type .*string.*store it as binary"):
        _write(array, tmp_path / "f.lance")
    assert not list(tmp_path.iterdir())


def test_a_table_is_left_as_it_was(tmp_path: Path) -> None:
    good = pa.table({"c": ["brambling", "cirl bunting", "köhlmeise"]})
    table = lance_format.write_dataset(good, tmp_path / "t")
    bad = pa.table([_TEXT], ["c"])
    for change in (lambda: table.insert(bad), lambda: lance_format.write_dataset(bad, tmp_path / "new")):
        with pytest.raises(InvalidInputError, match="UTF8"):
            change()
    assert lance_format.dataset(tmp_path / "t").to_table().equals(good)
    assert lance.dataset(str(tmp_path / "t")).to_table().equals(good)
    assert not (tmp_path / "new").exists()


def test_what_nobody_sees_may_be_anything(tmp_path: Path) -> None:
    texts = _mistyped([b"\xff", b"bird", "åkerrikse".encode(), b"\xff"], pa.string())
    middle = texts.slice(1, 2)
    hidden = pa.StructArray.from_arrays([texts], ["s"], mask=pa.array([True, False, False, True]))
    beneath_nulls = pa.Array.from_buffers(
        pa.string(), 4, [pa.array([False, True, True, False]).buffers()[1], *texts.buffers()[1:]]
    )
    for number, array in enumerate((middle, hidden, beneath_nulls)):
        path = tmp_path / str(number)
        _write(array, path)
        for reader in (LanceFileReader(path), lance.file.LanceFileReader(str(path))):
            found = reader.read_all().to_table().column("c").to_pylist()
            assert [row["s"] if isinstance(row, dict) else row for row in found if row] == ["bird", "åkerrikse"]


@pytest.mark.parametrize("bits", [128, 256])
def test_decimals_of_too_many_digits(bits: int, tmp_path: Path) -> None:
    wide, narrow = (getattr(pa, f"decimal{bits}")(digits, 2) for digits in (20, 5))
    numbers = pa.array([decimal.Decimal("12345678.90"), None, decimal.Decimal("1.25")], wide)
    mistyped = pa.Array.from_buffers(narrow, 3, numbers.buffers())
    for array in (mistyped, pa.FixedSizeListArray.from_arrays(mistyped, 3)):
        with pytest.raises(InvalidInputError, match=r"column 'c': a value is not of type decimal.*of more digits"):
            _write(array, tmp_path / "f.lance")
    _write(mistyped.slice(1), tmp_path / "f.lance")
    assert LanceFileReader(tmp_path / "f.lance").read_all().to_table().column("c").to_pylist() == [
        None,
        decimal.Decimal("1.25"),
    ]


def test_texts_of_any_characters_are_stored(tmp_path: Path) -> None:
    texts = pa.array([chr(point) for point in [*range(1, 0xD800, 97), *range(0xE000, 0x110000, 997)]] * 5)
    _write(texts, tmp_path / "f.lance")
    assert LanceFileReader(tmp_path / "f.lance").read_all().to_table().column("c").combine_chunks().equals(texts)
    assert np.array_equal(texts.is_valid().to_numpy(zero_copy_only=False), np.ones(len(texts), bool))
