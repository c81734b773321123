"""False bytes: truncations and flips give the same rows, other rows or a `LanceError`, and nothing else.

Lance files have no checksums of their pages, so a flip within values may go unnoticed; it must not do more than that.
Most damage is done to files of one column, which are read much faster than one file of all columns. `test_campaign`
damages files by structure, and as many as a night allows.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from lance_format.errors import LanceError
from lance_format.file import LanceFileReader, LanceFileWriter
from tests.arrays import make_array
from tests.nested_arrays import RandomValues

pytestmark = pytest.mark.system

_VALUES = RandomValues(random.Random(0), 0.1, 0.2, 4)
_TYPE = pa.list_(pa.struct([("x", pa.int32()), ("names", pa.list_(pa.string()))]))
_COLUMNS = {
    "packed": make_array(pa.int32(), 1500, "some nulls", "small"),
    "plain": make_array(pa.int64(), 1500, "no nulls", "random"),
    "strings": make_array(pa.string(), 1500, "some nulls", "small"),
    "bits": make_array(pa.bool_(), 1500, "some nulls", "random"),
    "constant": make_array(pa.string(), 1500, "some nulls", "constant"),
    "inline": make_array(pa.int64(), 1500, "no nulls", "constant"),
    "none": pa.nulls(1500, pa.float64()),
    "wide": make_array(pa.decimal256(60, 3), 1500, "no nulls", "random"),
    "nested": _VALUES.array(_TYPE, 1500),
    "vectors": _VALUES.array(pa.list_(pa.float32(), 3), 1500),
    "large": pa.array([None if row % 9 == 0 else f"{row}" * 70 for row in range(1500)]),
    "large lists": pa.array([["x" * 300] * (row % 3) for row in range(1500)]),
    "items": pa.array([f"item {row % 7} of a dictionary" for row in range(1500)]),
    "symbols": pa.array([f"https://example.org/{row}/{row * 7919}" for row in range(1500)]),
    "runs": pa.array(np.repeat(np.arange(15), 100)),
    "zstd": make_array(pa.int64(), 1500, "some nulls", "small"),
    "lz4": make_array(pa.string(), 1500, "some nulls", "random"),
    "side by side": pa.array([{"x": row, "y": row / 7} for row in range(1500)]),
    "blobs": pa.array([None if row % 9 == 0 else b"blob" * (row % 10 == 1) for row in range(1500)], pa.large_binary()),
}
_METADATA = {
    "zstd": {"lance-encoding:compression": "zstd"},
    "lz4": {"lance-encoding:compression": "lz4"},
    "side by side": {"lance-encoding:packed": "true"},
    "blobs": {"lance-encoding:blob": "true"},
}


def _read(path: Path) -> pa.Table | None:
    """Return the rows, or None if the file was refused properly."""
    try:
        reader = LanceFileReader(path)
        table = reader.read_all(batch_size=700).to_table()
        reader.take_rows([0, 7, 1400]).to_table()
    except LanceError:
        return None
    table.validate(full=True)
    return table


@pytest.fixture(scope="module", params=["2.0", "2.1", "2.2"])
def table(request: pytest.FixtureRequest) -> tuple[pa.Table, str]:
    """Return columns of every kind that a version of the format stores, and the version."""
    columns = dict(_COLUMNS)
    if request.param == "2.0":
        values = RandomValues(random.Random(0), 0.1, 0.2, 4, null_structs=False)
        columns["nested"] = values.array(_TYPE, 1500)
    fields = [pa.field(name, array.type, metadata=_METADATA.get(name)) for name, array in columns.items()]
    return pa.table(list(columns.values()), schema=pa.schema(fields)), request.param


def _write(table: pa.Table, version: str, path: Path) -> bytes:
    with LanceFileWriter(path, table.schema, version=version) as writer:
        writer.write_batch(table)
    assert _read(path).equals(table)
    return path.read_bytes()


@pytest.fixture(scope="module")
def original(table: tuple[pa.Table, str], tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Return a file of all columns."""
    return _write(*table, tmp_path_factory.mktemp("original") / "all.lance")


@pytest.fixture(scope="module")
def originals(table: tuple[pa.Table, str], tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Return for each column a file that has no other."""
    path = tmp_path_factory.mktemp("originals") / "one.lance"
    columns, version = table
    return {name: _write(columns.select([name]), version, path) for name in columns.column_names}


def _check_flips(original: bytes, positions: Iterable[int], rng: np.random.Generator, path: Path) -> None:
    for position in positions:
        damaged = bytearray(original)
        damaged[position] ^= 1 << int(rng.integers(0, 8))
        path.write_bytes(damaged)
        _read(path)


def test_truncated_files_are_refused(original: bytes, tmp_path: Path) -> None:
    path = tmp_path / "cut.lance"
    lengths = {*range(0, len(original), 997), *range(len(original) - 400, len(original)), *range(0, 100)}
    for length in sorted(lengths):
        path.write_bytes(original[:length])
        assert _read(path) is None, f"a file cut to {length} bytes was read"


def test_flipped_bits_are_harmless(originals: dict[str, bytes], tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    for original in originals.values():
        metadata = (
            len(original) - 1 - rng.integers(0, min(600, len(original)), 40)
        )  # most flips go where the structure is
        anywhere = rng.integers(0, len(original), 20)
        _check_flips(original, chain(metadata, anywhere), rng, tmp_path / "flipped.lance")


def test_flipped_bits_between_columns_are_harmless(original: bytes, tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    metadata = len(original) - 1 - rng.integers(0, 6000, 60)
    _check_flips(original, metadata, rng, tmp_path / "flipped.lance")


def test_overwritten_words_are_harmless(originals: dict[str, bytes], tmp_path: Path) -> None:
    path = tmp_path / "overwritten.lance"
    rng = np.random.default_rng(2)
    for original in originals.values():
        for position in rng.integers(0, len(original) - 8, 40):
            damaged = bytearray(original)
            width = int(rng.choice([1, 2, 4, 8]))
            damaged[position : position + width] = rng.choice([b"\0", b"\xff", b"\x80", b"\x01"]) * width
            path.write_bytes(damaged)
            _read(path)


def test_random_bytes_before_a_footer_are_refused_or_harmless(original: bytes, tmp_path: Path) -> None:
    path = tmp_path / "random.lance"
    rng = np.random.default_rng(3)
    for _ in range(300):
        noise = rng.integers(0, 256, int(rng.integers(0, 3000)), np.uint8).tobytes()
        path.write_bytes(noise + original[-int(rng.integers(40, 1500)) :])
        _read(path)


def test_flipped_bits_of_the_blob_extension_are_harmless(tmp_path: Path) -> None:
    path = tmp_path / "blobs.lance"
    storage = pa.struct([("data", pa.large_binary()), ("uri", pa.string())])
    field = pa.field("blobs", storage, metadata={"ARROW:extension:name": "lance.blob.v2"})
    values = [None if row % 9 == 0 else {"data": b"blob" * (row % 5), "uri": None} for row in range(1500)]
    with LanceFileWriter(path, pa.schema([field])) as writer:
        writer.write_batch(pa.record_batch([pa.array(values, storage)], schema=pa.schema([field])))
    original = path.read_bytes()
    assert _read(path)["blobs"].to_pylist() == [value and value["data"] for value in values]
    rng = np.random.default_rng(4)
    pages = 1500 * 31  # The bytes after the payloads; only a few payloads are damaged.
    _check_flips(original, len(original) - 1 - rng.integers(0, pages, 700), rng, path)
