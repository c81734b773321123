"""The targets of the campaign: files of one column, in every layout and compression, and small tables."""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import lance
import lance.file
import numpy as np
import pyarrow as pa

import lance_format
from lance_format.compression.choice import strategy
from lance_format.datatypes import Schema
from lance_format.file import FileWriter, LanceFileReader, LanceFileWriter
from lance_format.object_store.local import LocalStore
from lance_format.version import FileVersion
from tests.arrays import make_array
from tests.compression.constants import with_constants
from tests.file.counting import CountedFile
from tests.fuzz.damage import open_container
from tests.nested_arrays import RandomValues

VERSIONS = ("2.0", "2.1", "2.2")
Column = tuple[pa.Array, dict[str, str]]


def _zstd(array: pa.Array, scheme: str = "zstd") -> Column:
    return array, {"lance-encoding:compression": scheme}


def _columns(num_rows: int, version: str) -> Iterator[tuple[str, Column]]:
    """Yield columns, with the metadata that asks for their encodings."""
    values = RandomValues(random.Random(0), 0.1, 0.2, 4, null_structs=version != "2.0")
    few = max(num_rows // 20, 4)
    yield "bitpacked, null", (make_array(pa.int32(), num_rows, "some nulls", "small"), {})
    yield "flat", (make_array(pa.int64(), num_rows, "no nulls", "random"), {})
    yield "flat, null", (make_array(pa.float64(), num_rows, "some nulls", "random"), {})
    yield "bits, null", (make_array(pa.bool_(), num_rows, "some nulls", "random"), {})
    yield "strings, null", (make_array(pa.string(), num_rows, "some nulls", "small"), {})
    yield "large strings", (make_array(pa.large_string(), num_rows, "no nulls", "random"), {})
    yield "constant string, null", (make_array(pa.string(), num_rows, "some nulls", "constant"), {})
    yield "constant integer", (make_array(pa.int64(), num_rows, "no nulls", "constant"), {})
    yield "nothing but nulls", (pa.nulls(num_rows, pa.float64()), {})
    yield "decimals", (make_array(pa.decimal256(60, 3), num_rows, "some nulls", "small"), {})
    yield "times", (make_array(pa.timestamp("us", "UTC"), num_rows, "no nulls", "small"), {})
    yield "dictionary", (pa.array([f"item {row % 7} of a dictionary" for row in range(num_rows)]), {})
    yield "number dictionary", (pa.array((np.arange(num_rows) * 7919 % 11) * 10**15), {})
    yield "symbols", (pa.array([f"https://example.org/{row}/{row * 7919}" for row in range(max(num_rows, 1200))]), {})
    yield "runs", (pa.array(np.repeat(np.arange(num_rows // 50), 50)), {"lance-encoding:rle-threshold": "0.9"})
    yield "zstd integers", _zstd(make_array(pa.int64(), 2 * num_rows, "some nulls", "small"))
    yield "zstd strings", _zstd(make_array(pa.string(), num_rows, "some nulls", "random"))
    yield "lz4 strings", _zstd(make_array(pa.string(), num_rows, "some nulls", "random"), "lz4")
    yield "split floats", (pa.array(np.arange(num_rows) / 7), {"lance-encoding:bss": "on"})
    yield "large values", (pa.array([None if row % 9 == 0 else f"{row}" * 70 for row in range(few)]), {})
    yield "large values, lz4", _zstd(pa.array([f"{row}" * 170 for row in range(few)]), "lz4")
    yield "large values, zstd", _zstd(pa.array([f"{row}" * 170 for row in range(few)]))
    yield "lists of large values", (pa.array([["x" * 300] * (row % 3) for row in range(few)]), {})
    yield "wide", (pa.array([bytes([row % 256]) * 300 for row in range(few)], pa.binary(300)), {})
    yield "vectors", (values.array(pa.list_(pa.float32(), 3), num_rows), {})
    yield "large vectors", (values.array(pa.list_(pa.float32(), 80), few), {})
    yield "vectors of bits", (values.array(pa.list_(pa.list_(pa.bool_(), 3), 2), num_rows), {})
    yield "lists", (values.array(pa.list_(pa.int32()), num_rows), {})
    yield "empty lists", (pa.array([[] if row % 3 else None for row in range(num_rows)], pa.list_(pa.int8())), {})
    yield "structs", (values.array(pa.struct([("x", pa.int32()), ("y", pa.string())]), num_rows), {})
    nested = pa.list_(pa.struct([("x", pa.int32()), ("names", pa.list_(pa.string()))]))
    yield "nested", (values.array(nested, num_rows), {})
    yield "packed", (pa.array([{"x": row, "y": row / 7} for row in range(num_rows)]), {"lance-encoding:packed": "true"})


def _columns_of_2_0(num_rows: int) -> Iterator[tuple[str, Column]]:
    yield "fsst", _zstd(pa.array([f"https://example.org/{row}/{row * 7919}" for row in range(9 * num_rows)]), "fsst")
    yield "keys", (make_array(pa.string(), num_rows, "some nulls", "small").dictionary_encode(), {})
    yield "binary", (make_array(pa.binary(), num_rows, "some nulls", "random"), {})
    fields = pa.struct([("x", pa.int8()), ("v", pa.list_(pa.int64(), 3))])
    rows = [{"x": row % 99, "v": [row, 2, 3]} for row in range(num_rows)]
    yield "packed vectors", (pa.array(rows, fields), {"lance-encoding:packed": "true"})


def _columns_of_2_2(num_rows: int) -> Iterator[tuple[str, Column]]:
    values = RandomValues(random.Random(1), 0.1, 0.2, 4)
    yield "map", (values.array(pa.map_(pa.string(), pa.int32()), num_rows), {})
    yield "vectors of structs", (values.array(pa.list_(pa.struct([("x", pa.int32())]), 2), num_rows), {})
    rows = [{"x": row, "s": f"text {row}"} for row in range(num_rows)]
    yield "packed strings", (pa.array(rows), {"lance-encoding:packed": "true"})
    yield "constant lists", (pa.array([["the same text again"] * (row % 3) for row in range(num_rows)]), {})


def make_files(num_rows: int) -> dict[str, bytes]:
    """Return files of `num_rows` rows or so, by name: ours, and pylance's where these can differ."""
    files: dict[str, bytes] = {}
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "f.lance"
        for version in VERSIONS:
            columns = dict(_columns(num_rows, version))
            columns |= {"2.0": _columns_of_2_0, "2.1": lambda _: (), "2.2": _columns_of_2_2}[version](num_rows)
            for name, (array, metadata) in columns.items():
                table = pa.table([array], schema=pa.schema([pa.field("c", array.type, metadata=metadata)]))
                for who, writer in (("ours", LanceFileWriter), ("pylance", lance.file.LanceFileWriter)):
                    with writer(str(path), table.schema, version=version) as target:
                        for batch in table.to_batches():
                            target.write_batch(batch)
                    found = LanceFileReader(path).read_all().to_table()
                    assert found.to_pylist() == table.to_pylist(), f"{name} of {who} in {version}"
                    files[f"{name}; {who}, {version}"] = path.read_bytes()
                    path.unlink()
            files[f"statistics; ours, {version}"] = _with_statistics(path, num_rows, version)
            files[f"zone indices; ours, {version}"] = _with_zone_indices(path, num_rows, version)
            if version != "2.0":
                files[f"constant levels; ours, {version}"] = _with_constant_levels(path, num_rows, version)
        for name, (array, _) in _columns(num_rows, "0.1"):
            files[f"legacy {name}"] = _legacy(Path(directory) / "legacy", array)
    return files


def _legacy(path: Path, array: pa.Array) -> bytes:
    """Return a file of format 0.1, which pylance alone writes, and only in tables."""
    shutil.rmtree(path, ignore_errors=True)
    lance.write_dataset(pa.table({"c": array}), str(path), data_storage_version="legacy", max_rows_per_group=100)
    (data,) = (path / "data").iterdir()
    return data.read_bytes()


def _with_statistics(path: Path, num_rows: int, version: str) -> bytes:
    """Return a file with statistics of many zones, which are most of it."""
    columns = {
        str(arrow_type): make_array(arrow_type, num_rows, "some nulls", "small")
        for arrow_type in (pa.int32(), pa.float64(), pa.string(), pa.bool_(), pa.decimal128(20, 3), pa.timestamp("us"))
    }
    table = pa.table(columns | {"st": pa.array([{"x": row, "y": f"{row}" * 20} for row in range(num_rows)])})
    sink = LocalStore().open_writer(str(path))
    writer = FileWriter(sink, Schema.from_arrow(table.schema), version=FileVersion.parse(version), rows_per_zone=20)
    writer.write_batch(table.combine_chunks().to_batches()[0])
    writer.finish()
    file = CountedFile(path)
    assert len(file.reader.zone_statistics(file.columns())) == len(columns) + 2
    data = path.read_bytes()
    path.unlink()
    return data


def _with_zone_indices(path: Path, num_rows: int, version: str) -> bytes:
    """Return a file whose statistics are in the encodings of its columns alone."""
    table = pa.table({"i": range(num_rows), "s": [f"{row:05}" for row in range(num_rows)], "l": [[1]] * num_rows})
    sink = LocalStore().open_writer(str(path))
    schema = Schema.from_arrow(table.schema)
    zone_index = "unportable_column" if version == "2.0" else "column"
    writer = FileWriter(sink, schema, version=FileVersion.parse(version), rows_per_zone=20, zone_index=zone_index)
    writer.write_batch(table.to_batches()[0])
    writer.finish()
    container = open_container(path.read_bytes())
    container.descriptor.schema.metadata.clear()
    path.write_bytes(container.build())
    file = CountedFile(path)
    assert len(file.reader.zone_statistics(file.columns())) == 2
    data = path.read_bytes()
    path.unlink()
    return data


def _with_constant_levels(path: Path, num_rows: int, version: str) -> bytes:
    """Return a file with constants in blocks, which no writer writes."""
    compress = strategy.compress_levels
    table = pa.table({"c": pa.array([[row] for row in range(num_rows)]), "n": pa.array([[None]] * num_rows)})
    try:
        strategy.compress_levels = with_constants(compress)
        with LanceFileWriter(path, table.schema, version=version) as writer:
            writer.write_batch(table)
    finally:
        strategy.compress_levels = compress
    assert "constant { value:" in LanceFileReader(path).metadata().columns[0].pages[0].encoding
    data = path.read_bytes()
    path.unlink()
    return data


def make_table(path: Path) -> None:
    """Write a table with stable row ids, updated rows and deletion files of both kinds in its last version."""
    shutil.rmtree(path, ignore_errors=True)
    numbers = pa.table({"a": np.arange(60), "b": [f"row {row}" for row in range(60)]})
    lance_format.write_dataset(numbers.slice(0, 40), path, max_rows_per_file=20, enable_stable_row_ids=True)
    lance_format.write_dataset(numbers.slice(40), path, mode="append")
    lance_format.dataset(path).update({"b": "'changed'"}, where="a < 2 or a = 30")
    lance.dataset(str(path)).delete("a in (3, 7) or (a > 40 and a < 57)")
