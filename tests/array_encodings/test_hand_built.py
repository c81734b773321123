"""Encodings that pylance reads but does not write, or writes in one form only, from bytes put together by hand."""

from __future__ import annotations

from pathlib import Path

import lance.file
import lz4.block
import numpy as np
import pyarrow as pa
import pytest
import zstandard

from lance_format.array_encodings import registry
from lance_format.errors import CorruptFileError, NotSupportedError
from lance_format.file import LanceFileReader
from lance_format.proto import array_encodings_pb2 as pb
from tests.array_encodings.hand_built import Column, Page, write_file

_FLAT_64 = "nullable {no_nulls {values {flat {bits_per_value: 64 buffer {buffer_index: %d}}}}}"
_BYTES = "flat {bits_per_value: 8 buffer {buffer_index: %d}}"


def _check(path: Path, expected: list[object], *, pylance: bool = True) -> None:
    reader = LanceFileReader(path)
    whole = reader.read_all(batch_size=7).to_table()
    whole.validate(full=True)
    assert whole.column(0).to_pylist() == expected
    rows = [row for row in range(len(expected)) if row % 3 != 1]
    taken = reader.take_rows(rows).to_table()
    taken.validate(full=True)
    assert taken.column(0).to_pylist() == [expected[row] for row in rows]
    last = len(expected) - 1
    assert reader.take_rows([last]).to_table().column(0).to_pylist() == expected[-1:]
    if pylance:
        theirs = lance.file.LanceFileReader(str(path))
        assert theirs.read_all().to_table().column(0).to_pylist() == expected
        assert theirs.take_rows(rows).to_table().column(0).to_pylist() == [expected[row] for row in rows]


def _one_column(tmp_path: Path, arrow_type: pa.DataType, page: Page, shared: tuple[bytes, ...] = ()) -> Path:
    return write_file(tmp_path / "f.lance", pa.schema([("c", arrow_type)]), [Column([page], shared)])


def _pack(values: list[int], bits: int) -> bytes:
    number = sum((value & (2**bits - 1)) << (index * bits) for index, value in enumerate(values))
    return number.to_bytes(-(-len(values) * bits // 8), "little")


@pytest.mark.parametrize(
    ("arrow_type", "bits", "signed"),
    [
        (pa.int32(), 5, True),
        (pa.int8(), 3, True),
        (pa.uint16(), 11, False),
        (pa.int64(), 33, True),
        (pa.uint64(), 7, False),
    ],
)
def test_bitpacked(arrow_type: pa.DataType, bits: int, signed: bool, tmp_path: Path) -> None:
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1)) if signed else (0, 2**bits)
    values = [low, high - 1, *(int(v) for v in np.random.default_rng(0).integers(low, high, 200))]
    encoding = (
        f"bitpacked {{compressed_bits_per_value: {bits} uncompressed_bits_per_value: {arrow_type.bit_width}"
        f" buffer {{}} signed: {str(signed).lower()}}}"
    )
    path = _one_column(tmp_path, arrow_type, Page(encoding, [_pack(values, bits)], len(values)))
    _check(path, values)


@pytest.mark.parametrize(
    ("bits", "arrow_type"), [(3, pa.uint8()), (10, pa.int16()), (17, pa.int32()), (40, pa.uint64())]
)
def test_bitpacked_for_non_negative(bits: int, arrow_type: pa.DataType, tmp_path: Path) -> None:
    values = [int(v) for v in np.random.default_rng(0).integers(0, 2**bits, 2500)]
    width = arrow_type.bit_width
    lanes = 1024 // width
    order = [0, 4, 2, 6, 1, 5, 3, 7]
    packed = b""
    for first in range(0, len(values), 1024):
        block = values[first : first + 1024] + [0] * (first + 1024 - len(values))
        words = [0] * (lanes * bits)
        for lane in range(lanes):
            stream = 0
            for row in range(width):
                stream |= block[order[row // 8] * 16 + (row % 8) * 128 + lane] << (row * bits)
            for word in range(bits):
                words[word * lanes + lane] = (stream >> (word * width)) & (2**width - 1)
        packed += b"".join(word.to_bytes(width // 8, "little") for word in words)
    inner = (
        f"bitpacked_for_non_neg {{compressed_bits_per_value: {bits} uncompressed_bits_per_value: {width}"
        " buffer {buffer_index: %d}}"
    )
    _check(_one_column(tmp_path, arrow_type, Page(inner % 0, [packed], len(values))), values)
    mask = [index % 5 != 2 for index in range(len(values))]
    nullable = "nullable {some_nulls {validity {flat {bits_per_value: 1 buffer {}}} values {" + inner % 1 + "}}}"
    validity = np.packbits(mask, bitorder="little").tobytes()
    expected = [value if there else None for value, there in zip(values, mask, strict=True)]
    _check(_one_column(tmp_path, arrow_type, Page(nullable, [validity, packed], len(values))), expected)


def test_fixed_size_binary(tmp_path: Path) -> None:
    values = [f"{number:04}" for number in range(50)]
    data = "".join(values).encode()
    in_bytes = (
        "fixed_size_binary {bytes {nullable {no_nulls {values {flat {bits_per_value: 8 buffer {}}}}}} byte_width: 4}"
    )
    _check(_one_column(tmp_path, pa.large_string(), Page(in_bytes, [data], 50)), values)
    in_values = in_bytes.replace("bits_per_value: 8", "bits_per_value: 32")
    _check(_one_column(tmp_path, pa.string(), Page(in_values, [data], 50)), values, pylance=False)


def test_buffers_of_the_page_of_the_column_and_of_the_file(tmp_path: Path) -> None:
    ends = np.array([1, 3, 3 + 7, 6], "<u8").tobytes()
    expected = ["a", "bc", None, "def"]
    for kind, pages, column, file in (
        ("page", (ends, b"abcdef"), (), ()),
        ("column", (ends,), (b"?", b"abcdef"), ()),
        ("file", (ends,), (), (b"abcdef",)),
    ):
        encoding = (
            "binary {indices {flat {bits_per_value: 64 buffer {}}}"
            f" bytes {{flat {{bits_per_value: 8 buffer {{buffer_index: 1 buffer_type: {kind}}}}}}} null_adjustment: 7}}"
        )
        page = Page(encoding, pages, 4)
        path = write_file(tmp_path / "f.lance", pa.schema([("c", pa.string())]), [Column([page], column)], file)
        _check(path, expected, pylance=kind != "file")


@pytest.mark.parametrize("scheme", ["zstd", "lz4", "none"])
def test_compressed_buffers_of_any_flat_values(scheme: str, tmp_path: Path) -> None:
    values = list(range(5000))
    data = np.array(values, "<i4").tobytes()
    if scheme == "zstd":
        data = len(data).to_bytes(8, "little") + zstandard.compress(data)
    elif scheme == "lz4":
        data = lz4.block.compress(data)
    encoding = f'flat {{bits_per_value: 32 buffer {{}} compression {{scheme: "{scheme}"}}}}'
    path = _one_column(tmp_path, pa.int32(), Page(encoding, [data], len(values)))
    _check(path, values)


def test_ends_of_any_width(tmp_path: Path) -> None:
    for width in (8, 16, 32, 64):
        ends = np.array([2, 2 + 6, 2, 5], f"<u{width // 8}").tobytes()
        encoding = (
            f"list {{offsets {{flat {{bits_per_value: {width} buffer {{}}}}}} null_offset_adjustment: 6 num_items: 5}}"
        )
        items = Page(_FLAT_64 % 0, [np.arange(5, dtype="<i8").tobytes()], 5)
        schema = pa.schema([("c", pa.list_(pa.int64()))])
        path = write_file(tmp_path / "f.lance", schema, [Column([Page(encoding, [ends], 4)]), Column([items])])
        _check(path, [[0, 1], None, [], [2, 3, 4]], pylance=width == 64)


def _lists(ends: list[int], adjustment: int, num_items: int) -> Page:
    encoding = "list {offsets {" + _FLAT_64 % 0 + f"}} null_offset_adjustment: {adjustment} num_items: {num_items}}}"
    return Page(encoding, [np.array(ends, "<u8").tobytes()], len(ends))


def _numbers(first: int, stop: int) -> Page:
    return Page(_FLAT_64 % 0, [np.arange(first, stop, dtype="<i8").tobytes()], stop - first)


def test_pages_of_lists_and_of_items_that_end_anywhere(tmp_path: Path) -> None:
    schema = pa.schema([("c", pa.list_(pa.int64()))])
    lists = [_lists([2, 2, 5], 6, 5), _lists([1, 1 + 8, 7], 8, 7), _lists([0, 100], 100, 0), _lists([3, 4], 5, 4)]
    items = [_numbers(0, 1), _numbers(1, 8), _numbers(8, 8), _numbers(8, 13), _numbers(13, 16)]
    expected = [[0, 1], [], [2, 3, 4], [5], None, [6, 7, 8, 9, 10, 11], [], None, [12, 13, 14], [15]]
    path = write_file(tmp_path / "f.lance", schema, [Column(lists), Column(items)])
    _check(path, expected)


def test_lists_that_are_null_and_have_items_nevertheless(tmp_path: Path) -> None:
    schema = pa.schema([("c", pa.list_(pa.int64()))])
    columns = [Column([_lists([2, 4 + 10, 5], 10, 5)]), Column([_numbers(0, 5)])]
    _check(write_file(tmp_path / "f.lance", schema, columns), [[0, 1], None, [4]])


def test_an_end_that_equals_the_adjustment_is_null(tmp_path: Path) -> None:
    schema = pa.schema([("c", pa.list_(pa.int64()))])
    columns = [Column([_lists([3, 3], 3, 3)]), Column([_numbers(0, 3)])]
    _check(write_file(tmp_path / "f.lance", schema, columns), [None, None])


def test_dictionaries_of_both_conventions(tmp_path: Path) -> None:
    ends = np.array([1, 3], "<u8").tobytes()
    items = "items {binary {indices {" + _FLAT_64 % 1 + "} bytes {" + _BYTES % 2 + "} null_adjustment: 9}}"
    for bits in (8, 16, 32):
        keys = np.array([0, 1, 2, 1, 0], f"<u{bits // 8}").tobytes()
        encoding = (
            f"dictionary {{indices {{flat {{bits_per_value: {bits} buffer {{}}}}}} {items} num_dictionary_items: 2}}"
        )
        path = _one_column(tmp_path, pa.string(), Page(encoding, [keys, ends, b"abc"], 5))
        _check(path, [None, "a", "bc", "a", None], pylance=bits == 8)
    with_null = np.array([1, 1 + 9, 3], "<u8").tobytes()
    keys = np.array([0, 1, 2, 1, 0], "<i4").tobytes()
    encoding = f"dictionary {{indices {{flat {{bits_per_value: 32 buffer {{}}}}}} {items} num_dictionary_items: 3}}"
    page = Page(encoding, [keys, with_null, b"abc"], 5)
    _check(_one_column(tmp_path, pa.dictionary(pa.int32(), pa.string()), page), ["a", None, "bc", None, "a"])
    nulls = np.array([0 + 9, 0 + 9, 0 + 9], "<u8").tobytes()
    for arrow_type in (pa.string(), pa.dictionary(pa.int32(), pa.string())):
        page = Page(encoding, [keys, nulls, b""], 5)
        _check(_one_column(tmp_path, arrow_type, page), [None] * 5, pylance=False)


def test_constants(tmp_path: Path) -> None:
    for arrow_type, value, expected in (
        (pa.int32(), "\\001\\002\\000\\000", 513),
        (pa.string(), "abc", "abc"),
        (pa.bool_(), "\\001", True),
    ):
        page = Page(f'constant {{value: "{value}"}}', [], 20)
        _check(_one_column(tmp_path, arrow_type, page), [expected] * 20, pylance=False)


def test_flat_values_of_any_number_of_bits(tmp_path: Path) -> None:
    values = list(range(0, 4000, 7))
    page = Page("flat {bits_per_value: 12 buffer {}}", [_pack(values, 12)], len(values))
    _check(_one_column(tmp_path, pa.int32(), page), values, pylance=False)


@pytest.mark.parametrize(
    ("encoding", "message"),
    [
        ("flat {bits_per_value: 32 buffer {buffer_index: 3}}", "buffer 3 of its page"),
        ("flat {bits_per_value: 32 buffer {buffer_type: column}}", "buffer 0 of its column"),
        ("flat {bits_per_value: 0 buffer {}}", "values of 0 bits"),
        ("flat {bits_per_value: 64 buffer {}}", "64 bits; the column has values of 32"),
        ("flat {bits_per_value: 32 buffer {buffer_index: 1}}", "is to hold 10 values"),
        ("binary {}", "byte strings"),
        ("nullable {}", "does not say"),
        ("", "empty or unknown"),
        ("fixed_size_list {dimension: 3 items {flat {bits_per_value: 32 buffer {}}}}", "lists of 3 items"),
        ("packed_struct {buffer {}}", "packed structs"),
        ("bitpacked {compressed_bits_per_value: 40 uncompressed_bits_per_value: 32 buffer {}}", "packed into 40"),
        ("bitpacked {compressed_bits_per_value: 4 uncompressed_bits_per_value: 64 buffer {}}", "of 64 bits"),
        ("bitpacked_for_non_neg {compressed_bits_per_value: 4 uncompressed_bits_per_value: 32 buffer {}}", "blocks"),
        ("dictionary {indices {flat {bits_per_value: 8 buffer {}}} items {nullable {all_nulls {}}}}", "key"),
        ("constant {value: 'a'}", "constant of 1 bytes"),
        ("flat {bits_per_value: 32 buffer {} compression {scheme: 'zstd'}}", "zstd"),
    ],
)
def test_what_contradicts_itself_is_corrupt(encoding: str, message: str, tmp_path: Path) -> None:
    path = _one_column(tmp_path, pa.int32(), Page(encoding, [bytes(range(40)), b""], 10))
    with pytest.raises(CorruptFileError, match=message):
        LanceFileReader(path).read_all().to_table()


@pytest.mark.parametrize(
    ("ends", "adjustment", "num_items", "message"),
    [
        ([3, 2, 5], 6, 5, "decrease"),
        ([3, 4, 9], 20, 5, "end at item 9"),
        ([3, 4, 5], 0, 5, "adjustment of 0"),
        ([3, 4, 5], 6, 50, "column below"),
        ([3, 4, 5], 6, 2**60, "items"),
    ],
)
def test_ends_that_contradict_themselves_are_corrupt(
    ends: list[int], adjustment: int, num_items: int, message: str, tmp_path: Path
) -> None:
    schema = pa.schema([("c", pa.list_(pa.int64()))])
    path = write_file(
        tmp_path / "f.lance", schema, [Column([_lists(ends, adjustment, num_items)]), Column([_numbers(0, 5)])]
    )
    with pytest.raises(CorruptFileError, match=message):
        LanceFileReader(path).read_all().to_table()


@pytest.mark.parametrize("name", ["list", "struct"])
def test_columns_of_other_columns_do_not_stand_among_values(name: str, tmp_path: Path) -> None:
    path = _one_column(tmp_path, pa.int32(), Page(f"{name} {{}}", [], 10))
    with pytest.raises(CorruptFileError, match=name):
        LanceFileReader(path).read_all().to_table()


@pytest.mark.parametrize("name", [member.name for member in pb.ArrayEncoding.DESCRIPTOR.oneofs[0].fields])
def test_every_encoding_is_read_or_refused_by_name(name: str, tmp_path: Path) -> None:
    assert [name in registry.ENCODINGS, name in registry.UNSUPPORTED, name in registry.LAYERS].count(True) == 1
    if name in registry.UNSUPPORTED:
        path = _one_column(tmp_path, pa.int32(), Page(f"{name} {{}}", [], 10))
        with pytest.raises(NotSupportedError, match=name):
            LanceFileReader(path).read_all().to_table()


def test_a_compression_that_is_unknown_is_named(tmp_path: Path) -> None:
    page = Page("flat {bits_per_value: 32 buffer {} compression {scheme: 'brotli'}}", [bytes(40)], 10)
    with pytest.raises(NotSupportedError, match="brotli"):
        LanceFileReader(_one_column(tmp_path, pa.int32(), page)).read_all().to_table()
