"""Every compression that pylance writes is read, and pylance reads every one that is written."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import lance.file
import numpy as np
import pyarrow as pa
import pyarrow.compute
import pytest
from google.protobuf import any_pb2
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_format.compression import fixed_size_list, registry, variable_packed_struct
from lance_format.compression.codec import Context
from lance_format.compression.variable_packed_struct import VariablePackedStructDecompressor
from lance_format.data_block import (
    BufferSlices,
    FixedSizeListBlock,
    FixedWidthBlock,
    PackedStructBlock,
    ValueBlock,
    VariableWidthBlock,
)
from lance_format.file import LanceFileReader, LanceFileWriter
from lance_format.proto import encodings_pb2, file_pb2
from tests.compression import blocks

_VERSIONS = ("2.1", "2.2")
_ROWS = 20_000
_NO_DICTIONARY = {"dict-divisor": "1000000000", "dict-size-ratio": "0.0001"}


def _field(arrow_type: pa.DataType, options: dict[str, str]) -> pa.Field:
    return pa.field("c", arrow_type, metadata={f"lance-encoding:{name}": text for name, text in options.items()})


def _table(array: pa.Array, options: dict[str, str]) -> pa.Table:
    return pa.table([array], schema=pa.schema([_field(array.type, options)]))


def _layouts(path: Path) -> Iterator[tuple[encodings_pb2.PageLayout, list[bytes]]]:
    """Yield the layout of every page and its buffers."""
    data = path.read_bytes()
    column_table, num_columns = struct.unpack("<8xQ12xI4x", data[-40:-4])
    for column in range(num_columns):
        offset, size = struct.unpack_from("<QQ", data, column_table + 16 * column)
        metadata = file_pb2.ColumnMetadata.FromString(data[offset : offset + size])
        for page in metadata.pages:
            anything = any_pb2.Any.FromString(page.encoding.direct.encoding)
            places = zip(page.buffer_offsets, page.buffer_sizes, strict=True)
            yield encodings_pb2.PageLayout.FromString(anything.value), [data[at : at + length] for at, length in places]


def _chain(encoding: encodings_pb2.CompressiveEncoding) -> str:
    name = encoding.WhichOneof("compression")
    if name in ("general", "fsst"):
        return f"{name}({_chain(getattr(encoding, name).values)})"
    return str(name)


def _rng() -> np.random.Generator:
    return np.random.default_rng(0)


def _runs(dtype: str) -> pa.Array:
    return pa.array(np.repeat(_rng().integers(0, 120, _ROWS // 100), 100).astype(dtype))


def _strings(character: str, arrow_type: pa.DataType) -> pa.Array:
    values = blocks.values_of(blocks.byte_strings(_ROWS, character, 3))
    return pa.array([value.decode("latin1") for value in values]).cast(arrow_type)


_MINI_BLOCK_CASES: dict[str, tuple[Callable[[], pa.Array], dict[str, str], str]] = {
    **{f"runs of {dtype}": (lambda dtype=dtype: _runs(dtype), {}, "rle") for dtype in ("i1", "i2", "i4")},
    "runs of i8": (lambda: _runs("i8"), _NO_DICTIONARY, "rle"),
    "runs of floats": (lambda: _runs("f4"), {}, "rle"),
    "runs under lz4": (
        lambda: pa.array(np.repeat(np.arange(_ROWS // 4) % 50, 4).astype("i2") * 600),
        {"compression": "lz4"},
        "general(rle)",
    ),
    "bytes split, zstd": (
        lambda: pa.array(_rng().integers(0, 9999, _ROWS) / 100),
        {"compression": "zstd", "bss": "on", **_NO_DICTIONARY},
        "general(byte_stream_split)",
    ),
    "bytes split, lz4": (
        lambda: pa.array((_rng().integers(0, 99, _ROWS) / 4).astype("f4")),
        {"compression": "lz4", "bss": "on"},
        "general(byte_stream_split)",
    ),
    "bytes split, nothing else": (
        lambda: pa.array(_rng().random(_ROWS, np.float32)),
        {"compression": "fsst", "bss": "on"},
        "byte_stream_split",
    ),
    "packed, zstd": (
        lambda: pa.array(np.arange(_ROWS)),
        {"compression": "zstd", "bss": "off"},
        "general(inline_bitpacking)",
    ),
    "flat, zstd": (
        lambda: pa.array([bytes([number % 7] * 3) for number in range(_ROWS)], pa.binary(3)),
        {"compression": "zstd", "compression-level": "9"},
        "general(flat)",
    ),
    **{
        f"symbols of {kind}": (lambda kind=kind: _strings("small", kind), _NO_DICTIONARY, "fsst(variable)")
        for kind in (pa.string(), pa.large_string())
    },
    "symbols of binary": (
        lambda: _strings("small", pa.string()).cast(pa.binary()),
        {"compression": "fsst", **_NO_DICTIONARY},
        "fsst(variable)",
    ),
    **{
        f"strings, {scheme}": (
            lambda: _strings("small", pa.string()),
            {"compression": scheme, **_NO_DICTIONARY},
            "general(variable)",
        )
        for scheme in ("zstd", "lz4")
    },
}


def _with_nulls(array: pa.Array) -> pa.Array:
    mask = pa.array(_rng().random(len(array)) < 0.2)
    return pa.compute.if_else(mask, pa.scalar(None, array.type), array)


@pytest.mark.slow
@pytest.mark.parametrize("nulls", [False, True], ids=["there", "nulls"])
@pytest.mark.parametrize("version", _VERSIONS)
@pytest.mark.parametrize("name", _MINI_BLOCK_CASES)
def test_what_pylance_writes_is_read(name: str, version: str, nulls: bool, tmp_path: Path) -> None:
    make, options, chain = _MINI_BLOCK_CASES[name]
    array = _with_nulls(make()) if nulls else make()
    table = _table(array, options)
    path = tmp_path / "theirs.lance"
    with lance.file.LanceFileWriter(str(path), table.schema, version=version) as writer:
        writer.write_batch(table)
    chains = {_chain(layout.mini_block_layout.value_compression) for layout, _ in _layouts(path)}
    if not nulls:
        assert chains == {chain}
    reader = LanceFileReader(path)
    assert reader.read_all(batch_size=4096).to_table().equals(table)
    assert reader.read_range(777, 9000).to_table().equals(table.slice(777, 9000))
    rows = sorted(set(_rng().integers(0, len(array), 50).tolist()))
    assert reader.take_rows(rows).to_table().equals(table.take(rows))


@pytest.mark.parametrize("version", _VERSIONS)
@pytest.mark.parametrize(
    "arrow_type",
    [pa.string(), pa.large_string(), pa.binary(), pa.decimal128(22, 2), pa.binary(16), pa.int64()],
    ids=str,
)
@pytest.mark.parametrize("num_items", [30, 2500])
def test_dictionaries_of_pylance_are_read(
    arrow_type: pa.DataType, version: str, num_items: int, tmp_path: Path
) -> None:
    numbers = _rng().integers(0, num_items, 30_000)
    if pa.types.is_fixed_size_binary(arrow_type) and not pa.types.is_decimal(arrow_type):
        array = pa.array([int(number).to_bytes(16, "big") for number in numbers], arrow_type)
    elif pa.types.is_decimal(arrow_type) or pa.types.is_integer(arrow_type):
        array = pa.array(numbers * 10**12).cast(arrow_type)
    else:
        array = pa.array([f"item number {number}" for number in numbers]).cast(arrow_type)
    table = _table(array, {"dict-divisor": "2", "dict-size-ratio": "1.0"})
    path = tmp_path / "theirs.lance"
    with lance.file.LanceFileWriter(str(path), table.schema, version=version) as writer:
        writer.write_batch(table)
    ((layout, buffers),) = _layouts(path)
    page = layout.mini_block_layout
    if not page.HasField("dictionary"):
        assert (version, arrow_type) == ("2.1", pa.int64())
        return
    decompressor = registry.parse_decompressor(page.dictionary, Context.BLOCK)
    data = np.frombuffer(buffers[2], np.uint8)
    items = decompressor.decompress([BufferSlices.whole(data)], np.array([page.num_dictionary_items]))
    assert LanceFileReader(path).read_all(batch_size=4096).to_table().equals(table)
    expected = set(array.unique().to_pylist())
    found = blocks.values_of(items)
    assert len(found) == len(expected) == page.num_dictionary_items
    if pa.types.is_binary(arrow_type):
        assert set(found) == expected
    elif pa.types.is_string(arrow_type) or pa.types.is_large_string(arrow_type):
        assert {value.decode() for value in found} == expected


def _levels(path: Path) -> set[str]:
    return {
        str(getattr(layout.mini_block_layout, f"{kind}_compression").WhichOneof("compression"))
        for layout, _ in _layouts(path)
        for kind in ("rep", "def")
    }


@pytest.mark.parametrize("version", _VERSIONS)
@pytest.mark.parametrize("kind", ["nulls", "lists", "nulls in lists", "constant"])
def test_levels_in_runs_in_both_directions(kind: str, version: str, tmp_path: Path) -> None:
    items = pa.array([None if number // 900 % 7 == 3 else number * 7 % 10_007 for number in range(_ROWS)], pa.int32())
    array = items
    if kind in ("lists", "nulls in lists"):
        values = items.fill_null(5) if kind == "lists" else items
        array = pa.ListArray.from_arrays(pa.array([0, 0, *range(40, _ROWS + 1, 40)], pa.int32()), values)
    elif kind == "constant":
        array = pa.array([None if number < 9000 else [] for number in range(_ROWS)], pa.list_(pa.int32()))
    table = _table(array, {})
    ours, theirs = tmp_path / "ours.lance", tmp_path / "theirs.lance"
    for writer, path in ((LanceFileWriter, ours), (lance.file.LanceFileWriter, theirs)):
        with writer(str(path), table.schema, version=version) as target:
            target.write_batch(table)
        assert lance.file.LanceFileReader(str(path)).read_all().to_table().equals(table)
        assert LanceFileReader(path).read_all().to_table().equals(table)
        rows = list(range(0, len(array), 97))
        assert lance.file.LanceFileReader(str(path)).take_rows(rows).to_table().equals(table.take(rows))
    if kind != "constant":
        assert ("rle" in _levels(ours)) == ("rle" in _levels(theirs)) == (version == "2.2")
    with LanceFileWriter(ours, table.schema, version=version, checksums=False) as target:
        target.write_batch(table)
    assert ours.stat().st_size <= theirs.stat().st_size * 1.01


@pytest.mark.slow
@pytest.mark.parametrize("version", _VERSIONS)
@pytest.mark.parametrize("size", ["1000", "1024", "16384", "32768", "65536"])
def test_chunks_of_byte_strings_are_as_large_as_those_of_pylance(size: str, version: str, tmp_path: Path) -> None:
    table = _table(_strings("random", pa.string()).slice(0, 5000), {"minichunk-size": size, "compression": "none"})
    found = []
    for writer, name in ((LanceFileWriter, "ours.lance"), (lance.file.LanceFileWriter, "theirs.lance")):
        path = tmp_path / name
        with writer(str(path), table.schema, version=version) as target:
            target.write_batch(table)
        assert lance.file.LanceFileReader(str(path)).read_all().to_table().equals(table)
        assert LanceFileReader(path).read_all().to_table().equals(table)
        ((_, buffers),) = _layouts(path)
        found.append(len(buffers[0]))
    assert found[0] == found[1]


@pytest.mark.parametrize("version", _VERSIONS)
@pytest.mark.parametrize("arrow_type", [pa.string(), pa.binary(3000), pa.list_(pa.float64(), 500)], ids=str)
@pytest.mark.parametrize("count", [1, 2, 3, 10])
def test_large_values_in_chunks_are_read_by_pylance(
    arrow_type: pa.DataType, count: int, version: str, tmp_path: Path
) -> None:
    values = [[row / 3] * 500 if pa.types.is_fixed_size_list(arrow_type) else f"{row:03000}" for row in range(count)]
    options = {"minichunk-size": "1"} if pa.types.is_string(arrow_type) else {}
    table = _table(pa.array(values, arrow_type), {"structural-encoding": "miniblock", **options})
    path = tmp_path / "ours.lance"
    with LanceFileWriter(path, table.schema, version=version) as writer:
        writer.write_batch(table)
    assert lance.file.LanceFileReader(str(path)).read_all().to_table().equals(table)
    assert LanceFileReader(path).read_all().to_table().equals(table)


@settings(max_examples=25)
@given(values=st.lists(st.binary(max_size=30), min_size=1, max_size=60), seed=blocks.seeds)
def test_symbol_tables_of_pylance(values: list[bytes], seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("fsst") / "theirs.lance"
    picks = np.random.default_rng(seed).integers(0, len(values), 4000)
    table = _table(pa.array([values[pick] for pick in picks], pa.binary()), {"compression": "fsst", **_NO_DICTIONARY})
    with lance.file.LanceFileWriter(str(path), table.schema, version="2.2") as writer:
        writer.write_batch(table)
    assert LanceFileReader(path).read_all().to_table().equals(table)


_OURS: dict[str, Callable[[], pa.Array]] = {
    "runs": lambda: _runs("i4"),
    "runs of wide values": lambda: pa.array(np.repeat(_rng().integers(0, 2**60, _ROWS // 20), 20)),
    "few negative": lambda: pa.array((_rng().integers(-5, 5, _ROWS) * 10**8).astype("i4")),
    "small of both signs": lambda: pa.array(_rng().integers(-(10**6), 10**6, _ROWS)),
    "timestamps": lambda: pa.array(1_700_000_000_000_000 + np.cumsum(_rng().integers(0, 10**6, _ROWS))),
    "small halves": lambda: pa.array((np.arange(_ROWS) / 2).astype("f4")),
    "runs of small integers": lambda: pa.array(np.repeat(_rng().integers(0, 10**6, _ROWS // 50), 50)),
    "few floats": lambda: pa.array(_rng().integers(0, 300, _ROWS) / 7),
    "random floats": lambda: pa.array(_rng().random(_ROWS)),
    "few decimals": lambda: pa.array(_rng().integers(0, 30, _ROWS)).cast(pa.decimal256(60, 2)),
    "few strings": lambda: _strings("few", pa.string()),
    "runs of strings": lambda: _strings("runs", pa.large_string()),
    "text": lambda: _strings("small", pa.string()),
    "large text": lambda: _strings("small", pa.large_string()),
    "noise": lambda: _strings("random", pa.string()),
}


@pytest.mark.slow
@pytest.mark.parametrize("nulls", [False, True], ids=["there", "nulls"])
@pytest.mark.parametrize("version", ["2.0", *_VERSIONS])
@pytest.mark.parametrize("scheme", [None, "none", "zstd", "lz4", "fsst"])
@pytest.mark.parametrize("name", _OURS)
def test_what_is_written_is_read_by_pylance(
    name: str, scheme: str | None, version: str, nulls: bool, tmp_path: Path
) -> None:
    array = _with_nulls(_OURS[name]()) if nulls else _OURS[name]()
    table = _table(array, {} if scheme is None else {"compression": scheme})
    path = tmp_path / "ours.lance"
    with LanceFileWriter(path, table.schema, version=version) as writer:
        writer.write_batch(table)
    reader = lance.file.LanceFileReader(str(path))
    assert reader.read_all(batch_size=4096).to_table().equals(table)
    rows = sorted(set(_rng().integers(0, len(array), 50).tolist()))
    assert reader.take_rows(rows).to_table().equals(table.take(rows))
    assert LanceFileReader(path).read_all().to_table().equals(table)


def _full_zip_values(layout: encodings_pb2.FullZipLayout, data: bytes) -> VariableWidthBlock | FixedWidthBlock:
    """Return the compressed values of a page without lists or nulls, whose control words are therefore empty."""
    assert (layout.bits_rep, layout.bits_def) == (0, 0)
    if layout.WhichOneof("details") == "bits_per_value":
        return FixedWidthBlock(np.frombuffer(data, np.uint8), layout.bits_per_value, layout.num_items)
    width = layout.bits_per_offset // 8
    values = []
    position = 0
    while position < len(data):
        size = int.from_bytes(data[position : position + width], "little")
        values.append(data[position + width : position + width + size])
        position += width + size
    return blocks.block_of(values, layout.bits_per_offset)


def _read_full_zip(table: pa.Table, path: Path) -> tuple[encodings_pb2.CompressiveEncoding, ValueBlock]:
    with lance.file.LanceFileWriter(str(path), table.schema, version="2.2") as writer:
        writer.write_batch(table)
    ((layout, buffers),) = _layouts(path)
    page = layout.full_zip_layout
    decompressor = registry.parse_per_value_decompressor(page.value_compression)
    return page.value_compression, decompressor.decompress_values(_full_zip_values(page, buffers[0]))


@pytest.mark.slow
@pytest.mark.parametrize("arrow_type", [pa.string(), pa.large_string(), pa.binary()], ids=str)
@pytest.mark.parametrize(
    ("size", "options", "chain"),
    [
        (400, {}, "fsst(variable)"),
        (400, {"compression": "none"}, "variable"),
        (400, {"compression": "zstd"}, "general(variable)"),
        (40_000, {}, "general(variable)"),
    ],
)
def test_full_zip_values_of_pylance(
    arrow_type: pa.DataType, size: int, options: dict[str, str], chain: str, tmp_path: Path
) -> None:
    texts = [" ".join(f"word{number}" for number in _rng().integers(0, 99, size // 6)) + str(row) for row in range(300)]
    table = _table(pa.array(texts).cast(arrow_type), {**_NO_DICTIONARY, "compression": "fsst", **options})
    if not options and size > 400:
        table = _table(table.column(0).combine_chunks(), _NO_DICTIONARY)
    encoding, found = _read_full_zip(table, tmp_path / "theirs.lance")
    assert _chain(encoding) == chain
    assert blocks.values_of(found) == [text.encode() for text in texts]


def test_packed_structs_of_any_length_of_pylance(tmp_path: Path) -> None:
    rows = [{"x": row, "s": "text" * (row % 5), "y": row / 3, "t": str(row)} for row in range(500)]
    fields = [("x", pa.int16()), ("s", pa.string()), ("y", pa.float64()), ("t", pa.large_string())]
    array = pa.array(rows, pa.struct([pa.field(name, kind, nullable=False) for name, kind in fields]))
    field = pa.field("c", array.type, nullable=False, metadata={"lance-encoding:packed": "true"})
    table = pa.table([array], schema=pa.schema([field]))
    encoding, found = _read_full_zip(table, tmp_path / "theirs.lance")
    decompressor = registry.parse_per_value_decompressor(encoding)
    assert isinstance(decompressor, VariablePackedStructDecompressor)
    assert isinstance(found, PackedStructBlock)
    x, s, y, t = found.codec.split_rows(found.rows)
    assert isinstance(x, FixedWidthBlock)
    assert isinstance(y, FixedWidthBlock)
    assert x.data.view("<i2").tolist() == list(range(500))
    assert y.data.view("<f8").tolist() == [row["y"] for row in rows]
    assert [value.decode() for value in blocks.values_of(s)] == [row["s"] for row in rows]
    assert [value.decode() for value in blocks.values_of(t)] == [row["t"] for row in rows]
    again = variable_packed_struct.join_rows([x, s, y, t])
    assert blocks.values_of(again) == blocks.values_of(found.rows)


def test_fixed_size_lists_of_pylance(tmp_path: Path) -> None:
    lists = [[[None if (row + at) % 7 == 0 else at / 3 for at in range(40)], None, [1.0] * 40] for row in range(50)]
    array = pa.array(lists, pa.list_(pa.list_(pa.float32(), 40), 3))
    encoding, found = _read_full_zip(_table(array, {}), tmp_path / "theirs.lance")
    shape = fixed_size_list.parse_shape(encoding)
    assert isinstance(found, FixedSizeListBlock)
    validities, items = fixed_size_list.split_rows(found.rows, shape)
    outer, inner = (np.unpackbits(part, bitorder="little") for part in validities)
    assert outer[:150].tolist() == [1, 0, 1] * 50
    flat = [item for row in lists for inner_list in row for item in (inner_list or [None] * 40)]
    there = inner[: len(flat)].astype(bool) & np.repeat(outer[:150], 40).astype(bool)
    assert there.tolist() == [item is not None for item in flat]
    values = items.data.view("<f4")
    assert values[there].tolist() == [np.float32(item) for item in flat if item is not None]
    rows = fixed_size_list.join_rows(validities, items, shape)
    # the bits that fill a validity's last byte are arbitrary
    differing = np.flatnonzero(rows.data != found.rows.data) % rows.bytes_per_value
    assert set(differing.tolist()) <= {0}
