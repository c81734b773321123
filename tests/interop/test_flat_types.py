"""Every type of a column without nesting, in both directions between this library and pylance."""

from __future__ import annotations

from pathlib import Path

import lance.file
import numpy as np
import pyarrow as pa
import pytest

from lance_format.file import LanceFileReader, LanceFileWriter
from tests.arrays import FLAT_TYPES, NULLS, STYLES, make_array
from tests.encoding_options import fitting

_SIZES = (1, 10, 1025, 5000)
_MANY = 1_200_000
# What keeps pylance to the codecs that are read so far.
_PLAIN = {"lance-encoding:compression": "none", "lance-encoding:dict-divisor": "1000000000"}
_WIDTHS = [
    pa.bool_(),
    pa.int8(),
    pa.int16(),
    pa.float32(),
    pa.int64(),
    pa.decimal128(38, 5),
    pa.decimal256(60, 3),
    pa.binary(3),
    pa.string(),
    pa.large_binary(),
]


def _table(*arrays: pa.Array) -> pa.Table:
    """Return a table of columns, which a file stores side by side and encodes each on its own."""
    fields = [
        pa.field(f"c{place}", array.type, metadata=fitting(array.type, _PLAIN)) for place, array in enumerate(arrays)
    ]
    return pa.table(list(arrays), schema=pa.schema(fields))


def _theirs_reads_ours(table: pa.Table, version: str, path: Path) -> None:
    with LanceFileWriter(path, table.schema, version=version) as writer:
        writer.write_batch(table)
    found = lance.file.LanceFileReader(str(path)).read_all(batch_size=4096).to_table()
    _assert_same(found, table)
    rows = _some_rows(table.num_rows)
    _assert_same(lance.file.LanceFileReader(str(path)).take_rows(rows).to_table(), table.take(rows))
    _assert_same(LanceFileReader(path).read_all(batch_size=4096).to_table(), table)


def _ours_reads_theirs(table: pa.Table, version: str, path: Path) -> None:
    with lance.file.LanceFileWriter(str(path), table.schema, version=version) as writer:
        writer.write_batch(table)
    reader = LanceFileReader(path)
    found = reader.read_all(batch_size=4096).to_table()
    found.validate(full=True)
    assert found.schema.equals(table.schema, check_metadata=True)
    _assert_same(found, table)
    rows = _some_rows(table.num_rows)
    _assert_same(reader.take_rows(rows).to_table(), table.take(rows))
    middle = table.num_rows // 3
    _assert_same(reader.read_range(middle, table.num_rows - middle).to_table(), table.slice(middle))


def _assert_same(found: pa.Table, expected: pa.Table) -> None:
    assert found.column_names == expected.column_names
    for name in expected.column_names:
        assert found[name].equals(expected[name]), name


def _some_rows(num_rows: int) -> list[int]:
    return sorted(set(np.random.default_rng(num_rows).integers(0, num_rows, 25).tolist()))


@pytest.mark.slow
@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("arrow_type", FLAT_TYPES, ids=str)
def test_both_directions(arrow_type: pa.DataType, version: str, tmp_path: Path) -> None:
    for num_rows in _SIZES:
        table = _table(*(make_array(arrow_type, num_rows, nulls, style) for nulls in NULLS for style in STYLES))
        _theirs_reads_ours(table, version, tmp_path / "ours.lance")
        _ours_reads_theirs(table, version, tmp_path / "theirs.lance")


@pytest.mark.slow
@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("arrow_type", _WIDTHS, ids=str)
def test_many_rows(arrow_type: pa.DataType, version: str, tmp_path: Path) -> None:
    piece = make_array(arrow_type, 60_000, "some nulls", "random")
    arrays = [pa.concat_arrays([array] * -(-_MANY // len(array))) for array in (piece, piece.drop_null())]
    table = _table(*(array.slice(0, _MANY) for array in arrays))
    _theirs_reads_ours(table, version, tmp_path / "ours.lance")
    _ours_reads_theirs(table, version, tmp_path / "theirs.lance")


@pytest.mark.slow
@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("pattern", ["first half", "every other", "one run", "last only", "sparse"])
@pytest.mark.parametrize("num_rows", [60, 700, 5000, 300_000])
def test_every_form_of_levels(pattern: str, num_rows: int, version: str, tmp_path: Path) -> None:
    rows = np.arange(num_rows)
    mask = {
        "first half": rows < num_rows // 2,
        "every other": rows % 2 == 0,
        "one run": (rows > num_rows // 3) & (rows < num_rows // 3 + 20),
        "last only": rows == num_rows - 1,
        "sparse": np.random.default_rng(0).random(num_rows) < 0.003,
    }[pattern]
    table = _table(pa.array(rows * 977, mask=mask), pa.array(rows % 2 == 0, mask=mask))
    _theirs_reads_ours(table, version, tmp_path / "ours.lance")
    _ours_reads_theirs(table, version, tmp_path / "theirs.lance")


def test_floating_point_values_are_kept_bit_by_bit(tmp_path: Path) -> None:
    values = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 5e-324, 1.7e308], np.float64)
    values = np.concatenate([values, np.frombuffer(b"\1\0\0\0\0\0\xf0\x7f" + b"\xff" * 8, np.float64)])
    table = _table(pa.array(np.tile(values, 200)))
    for version in ("2.0", "2.1", "2.2"):
        with LanceFileWriter(tmp_path / "f.lance", table.schema, version=version) as writer:
            writer.write_batch(table)
        for found in (
            LanceFileReader(tmp_path / "f.lance").read_all().to_table(),
            lance.file.LanceFileReader(str(tmp_path / "f.lance")).read_all().to_table(),
        ):
            assert found.column(0).to_numpy().tobytes() == table.column(0).to_numpy().tobytes()


@pytest.mark.slow
@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("value_type", [pa.string(), pa.int64(), pa.large_string(), pa.binary(), pa.float64()], ids=str)
def test_dictionary_columns_are_read(value_type: pa.DataType, version: str, tmp_path: Path) -> None:
    for index_type in (pa.int8(), pa.uint16(), pa.int32()):
        for num_rows in (1, 10, 5000):
            values = make_array(value_type, num_rows, "some nulls", "small")
            table = pa.table({"c": values.dictionary_encode().cast(pa.dictionary(index_type, value_type))})
            with lance.file.LanceFileWriter(str(tmp_path / "d.lance"), table.schema, version=version) as writer:
                writer.write_batch(table.to_batches()[0])
            found = LanceFileReader(tmp_path / "d.lance").read_all().to_table()
            found.validate(full=True)
            assert found.schema == table.schema
            assert found.to_pylist() == table.to_pylist()
