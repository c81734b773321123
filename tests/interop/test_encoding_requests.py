"""Requests of fields for compression: ineffective ones are refused for new columns, and ignored in pylance's."""

from __future__ import annotations

import warnings
from pathlib import Path

import lance
import lance.blob
import lance.file
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lance_format
from lance_format import InvalidInputError
from lance_format.file import LanceFileWriter

_NUMBERS = pa.array(np.arange(4000) % 50)
_TEXTS = pa.array([f"bird {number % 900}" * 4 for number in range(4000)])
_FLAGS = pa.array(np.arange(4000) % 3 == 0)
_SHORTS = pa.array(np.arange(4000, dtype=np.int16))
_POINTS = pa.StructArray.from_arrays([_NUMBERS, pc.divide(_NUMBERS, 7.0)], ["x", "y"])
_VECTORS = pa.array([[float(number % 7)] * 80 for number in range(4000)], pa.list_(pa.float64(), 80))


def _table(array: pa.Array, **options: str) -> pa.Table:
    metadata = {f"lance-encoding:{name.replace('_', '-')}": value for name, value in options.items()}
    return pa.table([array], pa.schema([pa.field("c", array.type, metadata=metadata)]))


_WITHOUT_EFFECT = {
    "an unknown option": (
        _table(_NUMBERS, compresion="zstd"),
        "option 'lance-encoding:compresion' would have no effect; remove it: it is unknown",
    ),
    "general": (
        _table(_NUMBERS, general="zstd"),
        "option 'lance-encoding:general' would have no effect; remove it: it is unknown",
    ),
    "a level of lz4": (_table(_TEXTS, compression="lz4", compression_level="3"), "lz4 has no levels"),
    "no mode": (_table(_NUMBERS, bss="maybe"), "option 'lance-encoding:bss' is 'maybe'"),
    "no number": (_table(_NUMBERS, rle_threshold="half"), "option 'lance-encoding:rle-threshold' is 'half'"),
    "blanks": (_table(_TEXTS, compression="zstd", compression_level=" 3"), "compression-level' is ' 3'"),
    "chunks of numbers": (
        _table(_NUMBERS, minichunk_size="1024"),
        "minichunk-size' would have no effect on values of 32",
    ),
    "a dictionary of flags": (_table(_FLAGS, dict_divisor="5"), "dict-divisor' would have no effect on booleans"),
    "runs of vectors": (
        _table(_VECTORS, rle_threshold="0.1"),
        "rle-threshold' would have no effect on fixed-size lists",
    ),
    "split bytes of 16 bits": (_table(_SHORTS, bss="on"), "bss' would have no effect on values of 16 bits"),
    "a layout of a dictionary": (
        _table(_TEXTS.dictionary_encode(), structural_encoding="fullzip"),
        "structural-encoding' would have no effect on dictionaries",
    ),
    "zstd for nothing": (
        _table(pa.nulls(4000), compression="zstd"),
        "compression' would have no effect on values without",
    ),
    "packed numbers": (
        _table(_NUMBERS, packed="yes"),
        "packed' would have no effect; remove it: only structs are packed",
    ),
    "chunks of a packed struct": (
        _table(_POINTS, packed="true", minichunk_size="1024"),
        "minichunk-size' would have no effect on packed structs",
    ),
    "full-zip": (
        _table(_VECTORS, compression="zstd", structural_encoding="fullzip"),
        "column 'c': full-zip pages store values of a fixed width as they are",
    ),
}


@pytest.mark.parametrize("name", _WITHOUT_EFFECT)
def test_what_has_no_effect(name: str, tmp_path: Path) -> None:
    data, message = _WITHOUT_EFFECT[name]
    for write in (
        lambda: lance_format.write_dataset(data, tmp_path / "t"),
        lambda: LanceFileWriter(tmp_path / "f.lance", data.schema),
    ):
        with pytest.raises(InvalidInputError, match=message):
            write()
    assert not list(tmp_path.iterdir())
    path = str(tmp_path / "t")
    lance.write_dataset(data, path)
    for field in (data.schema.field(0).with_name("d"), pa.field("s", pa.struct([data.schema.field(0)]))):
        with pytest.raises(InvalidInputError, match=message.replace("column 'c'", "column '(d|s.c)'")):
            lance_format.dataset(path).add_columns(field)
    with pytest.warns(UserWarning, match=f"{message}.*the table has it already, and it is left out"):
        lance_format.write_dataset(data, path, mode="append")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        table = lance_format.dataset(path)
        table.add_columns({"n": "1"})
        table.update({"n": "2"}, where="n = 1")
        table.optimize.compact_files()
    assert {str(warning.message).split("; the table")[0] for warning in caught} == {
        str(caught[0].message).split("; the table")[0]
    }
    expected = pa.concat_tables([data, data])
    for found in (lance_format.dataset(path), lance.dataset(path)):
        assert found.to_table(["c"]).equals(expected)
        assert found.schema.field("c").metadata == data.schema.field("c").metadata


_NULL_ITEMS = pa.array([[1.0, None, 2.0, 3.0] * 4] * 4000, pa.list_(pa.float64(), 16))
_LARGE = pa.array([bytes(20_000) + np.random.default_rng(n).bytes(20_000) for n in range(40)], pa.binary(40_000))


@pytest.mark.parametrize(
    ("array", "message"),
    [(_NULL_ITEMS, "vectors with null items cannot be"), (_LARGE, "values too large for a chunk of file format 2.1")],
)
def test_what_the_format_cannot_compress_is_named_once(array: pa.Array, message: str, tmp_path: Path) -> None:
    data = _table(array, compression="zstd")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with LanceFileWriter(tmp_path / "f.lance", data.schema, version="2.1", max_page_bytes=100_000) as writer:
            for batch in data.to_batches(max_chunksize=10):
                writer.write_batch(batch)
    assert [str(warning.message) for warning in caught] == [
        f"column 'c': {message}{'' if 'cannot' in message else ' cannot be'} compressed by zstd or lz4;"
        " they are stored as they are"
    ]
    assert lance.file.LanceFileReader(str(tmp_path / "f.lance")).read_all().to_table() == data
    # It is no request for this column.
    lance_format.write_dataset(pa.table([array], ["c"]), tmp_path / "t", encoding={"compression": "zstd"})


@pytest.mark.parametrize("scheme", ["none", "zstd", "lz4", "fsst", "ZSTD", "Lz4", " zstd", "gzip", ""])
@pytest.mark.parametrize("key", ["compression", "dict_values_compression"])
def test_names_of_schemes_are_those_of_pylance(key: str, scheme: str, tmp_path: Path) -> None:
    """A table keeps what its fields say, so that pylance has to be able to write by it."""
    data = _table(_TEXTS, **{key: scheme})
    try:
        lance.write_dataset(data, str(tmp_path / "theirs"))
    except OSError:
        with pytest.raises(InvalidInputError, match="expected one of"):
            lance_format.write_dataset(data, tmp_path / "ours")
    else:
        lance_format.write_dataset(data, tmp_path / "ours")
        lance.write_dataset(data, str(tmp_path / "ours"), mode="append")


def test_a_caller_may_write_names_in_any_case(tmp_path: Path) -> None:
    plain = pa.table([_TEXTS], ["c"])
    sizes = []
    for number, scheme in enumerate(("none", " ZSTD ")):
        path = tmp_path / str(number)
        lance_format.write_dataset(plain, path, encoding={"compression": scheme})
        lance.write_dataset(plain, str(path), mode="append")
        sizes.append(max(file.stat().st_size for file in path.glob("data/*")))
    assert sizes[1] < sizes[0]


def test_what_is_asked_of_all_columns_holds_where_it_can(tmp_path: Path) -> None:
    blobs = pa.array([b"blob" * 50] * 4000, pa.large_binary())
    schema = pa.schema([("c", _TEXTS.type), pa.field("b", blobs.type, metadata={"lance-encoding:blob": "true"})])
    data = pa.table([_TEXTS, blobs], schema)
    lance_format.write_dataset(data, tmp_path / "t", encoding={"compression": "zstd"})
    for named in ({"encoding": {"general": "zstd"}}, {"column_encoding": {"b": {"compression": "zstd"}}}):
        with pytest.raises(InvalidInputError, match=r"no encoding option 'general'|'b': .* on blobs"):
            lance_format.write_dataset(data, tmp_path / "u", **named)
    marked = schema.set(
        1, schema.field(1).with_metadata({"lance-encoding:blob": "1", "lance-encoding:compression": "lz4"})
    )
    with pytest.raises(InvalidInputError, match=r"'b': option .*compression' would have no effect on blobs; remove it"):
        lance_format.write_dataset(data.cast(marked), tmp_path / "u")


@pytest.mark.parametrize("most", [0, 500, 1_000_000])
def test_the_size_of_dictionaries(most: int, tmp_path: Path) -> None:
    data = _table(_TEXTS, dict_max_size=str(most), dict_values_compression="zstd", dict_values_compression_level="9")
    for number, writer in enumerate((lance_format, lance)):
        path = str(tmp_path / str(number))
        writer.write_dataset(data, path)
        (file,) = (tmp_path / str(number) / "data").iterdir()
        (page,) = lance.file.LanceFileReader(str(file)).metadata().columns[0].pages
        assert ("dictionary: Some" in page.encoding) == (most == 1_000_000)
        assert lance_format.dataset(path).to_table().equals(lance.dataset(path).to_table())


def test_where_blobs_are_to_lie_is_not_followed(tmp_path: Path) -> None:
    schema = pa.schema([lance.blob.blob_field("b", inline_size_threshold=10, dedicated_size_threshold=1000)])
    payloads = [b"x" * 5, b"y" * 500, b"z" * 5000]
    data = pa.table([lance.blob.blob_array(payloads)], schema=schema)
    message = (
        "blob-(inline|dedicated)-size-threshold' would have no effect.*blobs of any size are written into the data"
    )
    with pytest.raises(InvalidInputError, match=message):
        lance_format.write_dataset(data, tmp_path / "ours")
    lance.write_dataset(data, str(tmp_path / "t"), data_storage_version="2.2")
    with pytest.warns(UserWarning, match=message):
        lance_format.write_dataset(data, tmp_path / "t", mode="append")
    for table in (lance_format.dataset(tmp_path / "t"), lance.dataset(str(tmp_path / "t"))):
        found = table.scanner(blob_handling="all_binary").to_table()
        assert found.column("b").to_pylist() == payloads * 2
