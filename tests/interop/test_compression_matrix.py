"""General compression of everything that it can be asked for, beside runs of nulls that are longer than a chunk.

A file has one column per kind of values: pages of a column are encoded without a look at other columns.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import lance.file
import numpy as np
import pyarrow as pa
import pytest
from google.protobuf import any_pb2

from lance_format import InvalidInputError
from lance_format.file import LanceFileReader, LanceFileWriter
from lance_format.proto import encodings_pb2, file_pb2

_ROWS = 3000
_POINT = pa.struct([("x", pa.int32()), ("y", pa.float64())])
_NAMED = pa.struct([("x", pa.int32()), ("name", pa.string())])
_PACKED = {"lance-encoding:packed": "true"}


def _numbers() -> list[int]:
    return np.random.default_rng(0).integers(0, 90, _ROWS).tolist()


_VALUES: dict[str, tuple[pa.DataType, Callable[[int], object], dict[str, str]]] = {
    "bool": (pa.bool_(), lambda n: n % 3 == 0, {}),
    "int64": (pa.int64(), lambda n: n * 10**9, {}),
    "float": (pa.float32(), lambda n: n / 7, {}),
    "decimal": (pa.decimal128(38, 2), lambda n: n, {}),
    "short strings": (pa.string(), lambda n: f"bird {n}" * 3, {}),
    "equal strings": (pa.string(), lambda _: "abc " * 100, {}),
    "long strings": (pa.string(), lambda n: f"bird {n} " * 60, {}),
    "long large strings": (pa.large_string(), lambda n: f"bird {n} " * 60, {}),
    "empty and long": (pa.binary(), lambda n: b"" if n % 3 else b"%d" % n * 300, {}),
    "wide": (pa.binary(300), lambda n: b"%03d" % n * 100, {}),
    "vectors": (pa.list_(pa.float32(), 8), lambda n: [float(n)] * 8, {}),
    "long vectors": (pa.list_(pa.float64(), 100), lambda n: [float(n), 0.0] * 50, {}),
    "bits": (pa.list_(pa.bool_(), 8), lambda n: [n % 3 == 0] * 8, {}),
    "nested vectors": (pa.list_(pa.list_(pa.int16(), 4), 4), lambda n: [[n] * 4] * 4, {}),
    "packed": (_POINT, lambda n: {"x": n, "y": n / 2}, _PACKED),
    "packed strings": (_NAMED, lambda n: {"x": n, "name": f"bird {n} " * 5}, _PACKED),
    "lists": (pa.list_(pa.string()), lambda n: [f"bird {n} " * 40, None, ""], {}),
    "keys": (pa.dictionary(pa.int32(), pa.string()), lambda n: f"bird {n % 40}" * 3, {}),
}
_NULLS: dict[str, Callable[[list[object]], list[object]]] = {
    "none": lambda values: values,
    "one": lambda values: [*values, None],
    "before": lambda values: [None] * 20_000 + values,
    "between": lambda values: values[:700] + [None] * 20_000 + values[700:],
    "behind": lambda values: values + [None] * 20_000,
    "every other": lambda values: [item for value in values for item in (value, None)],
}


@functools.cache
def _array(name: str, nulls: str) -> pa.Array:
    arrow_type, make, _ = _VALUES[name]
    return pa.array(_NULLS[nulls]([make(number) for number in _numbers()]), arrow_type)


def _data(names: Iterable[str], nulls: str, options: dict[str, str]) -> pa.Table:
    asked = {f"lance-encoding:{key}": value for key, value in options.items()}
    arrays = {name: _array(name, nulls) for name in names}
    fields = [pa.field(name, array.type, metadata=_VALUES[name][2] | asked) for name, array in arrays.items()]
    return pa.table(list(arrays.values()), pa.schema(fields))


def _looked_up(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the column without dictionaries, because readers choose the order of their items."""
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def _check(data: pa.Table, version: str, path: Path) -> None:
    with LanceFileWriter(path, data.schema, version=version) as writer:
        writer.write_batch(data)
    rows = sorted({0, 699, 700, 701, data.num_rows // 2, data.num_rows - 1})
    for reader in (LanceFileReader(path), lance.file.LanceFileReader(str(path))):
        for found, expected in (
            (reader.read_all(batch_size=1000), data),
            (reader.take_rows(rows), data.take(rows)),
        ):
            table = found.to_table()
            assert table.schema == expected.schema
            for name in data.column_names:
                assert _looked_up(table[name]) == _looked_up(expected[name]), name


@pytest.mark.slow
@pytest.mark.parametrize("nulls", _NULLS)
@pytest.mark.parametrize("version", ["2.1", "2.2"])
@pytest.mark.parametrize("scheme", ["none", "lz4", "zstd", "fsst"])
def test_what_is_asked_for_is_read_by_pylance(scheme: str, version: str, nulls: str, tmp_path: Path) -> None:
    names = set(_VALUES)
    if version == "2.1" or scheme != "none":
        names.remove("packed strings")  # The version has no such type, or they are stored as they are.
    _check(_data(sorted(names), nulls, {"compression": scheme}), version, tmp_path / "f.lance")


@pytest.mark.parametrize("nulls", _NULLS)
@pytest.mark.parametrize("scheme", ["lz4", "zstd"])
def test_packed_structs_with_strings_are_stored_as_they_are(scheme: str, nulls: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="no effect on packed structs with strings"):
        _check(_data(["packed strings"], nulls, {"compression": scheme}), "2.2", tmp_path / "f.lance")


@pytest.mark.parametrize("name", [name for name in _VALUES if name != "packed strings"])
def test_what_2_0_is_asked_for_is_read_by_pylance(name: str, tmp_path: Path) -> None:
    for scheme in ("none", "lz4", "zstd", "fsst"):
        for nulls in ("none", "between") if name != "packed" else ("none",):  # Structs of 2.0 are never null.
            _check(_data([name], nulls, {"compression": scheme}), "2.0", tmp_path / "f.lance")


@pytest.mark.slow
@pytest.mark.parametrize("nulls", _NULLS)
@pytest.mark.parametrize("version", ["2.1", "2.2"])
@pytest.mark.parametrize("scheme", ["lz4", "zstd"])
def test_full_zip_pages(scheme: str, version: str, nulls: str, tmp_path: Path) -> None:
    options = {"compression": scheme, "structural-encoding": "fullzip", "dict-divisor": "1000000"}
    names = ["short strings", "long strings", "lists", "empty and long"]
    _check(_data(names, nulls, options), version, tmp_path / "f.lance")


def _value_encodings(path: Path) -> Iterator[encodings_pb2.CompressiveEncoding]:
    data = path.read_bytes()
    (column_table,) = struct.unpack("<8xQ24x", data[-40:])
    offset, size = struct.unpack_from("<QQ", data, column_table)
    for page in file_pb2.ColumnMetadata.FromString(data[offset : offset + size]).pages:
        anything = any_pb2.Any.FromString(page.encoding.direct.encoding)
        yield encodings_pb2.PageLayout.FromString(anything.value).mini_block_layout.value_compression


@pytest.mark.slow
@pytest.mark.parametrize("nulls", ["none", "between"])
@pytest.mark.parametrize("version", ["2.1", "2.2"])
@pytest.mark.parametrize("scheme", ["lz4", "zstd"])
@pytest.mark.parametrize(
    ("name", "inner"),
    [
        ("vectors", "fixed_size_list"),
        ("long vectors", "fixed_size_list"),
        ("nested vectors", "fixed_size_list"),
        ("packed", "packed_struct"),
        ("wide", "flat"),
    ],
)
def test_values_of_a_fixed_width_are_compressed(
    name: str, inner: str, scheme: str, version: str, nulls: str, tmp_path: Path
) -> None:
    sizes = []
    options = {"dict-divisor": "1000000"} if inner == "flat" else {}
    for asked in ("none", scheme):
        path = tmp_path / f"{asked}.lance"
        _check(_data([name], nulls, {"compression": asked, **options}), version, path)
        sizes.append(path.stat().st_size)
    for encoding in _value_encodings(path):
        assert encoding.general.values.WhichOneof("compression") == inner
    assert sizes[1] < sizes[0] * 0.6
