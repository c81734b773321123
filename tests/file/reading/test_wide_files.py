"""Files with many columns and few rows have the rows that each column has for itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import lance.file
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_format.errors import ChecksumError, CorruptFileError
from lance_format.file import LanceFileReader, LanceFileWriter
from lance_format.file.reading import reader as file_reader
from lance_format.file.reading import small_files
from tests.arrays import NULLS, make_array, same_values

_PAIR = pa.struct({"a": pa.int64(), "b": pa.struct({"c": pa.string()})})


def _lists(numbers: list[int]) -> pa.Array:
    return pa.array([[n, None][: n % 3] if n % 5 else None for n in numbers], pa.list_(pa.int64()))


_KINDS: dict[str, Callable[[list[int]], pa.Array]] = {
    "list": _lists,
    "struct": lambda numbers: pa.array([{"a": n, "b": {"c": f"b{n}"}} if n % 3 else None for n in numbers], _PAIR),
    "structs": lambda numbers: pa.array([[{"a": n, "b": None}] * (n % 3) for n in numbers], pa.list_(_PAIR)),
    "vector": lambda numbers: pa.array([[n, n + 1] for n in numbers], pa.list_(pa.float32(), 2)),
    "dictionary": lambda numbers: pa.array([f"k{n % 4}" for n in numbers]).dictionary_encode(),
    "constant": lambda numbers: pa.array([7] * len(numbers)),
    "null": lambda numbers: pa.nulls(len(numbers)),
    "boolean": lambda numbers: pa.array([n % 2 == 0 for n in numbers]),
    "text": lambda numbers: pa.array([f"the text of {n}, " * (n % 7) for n in numbers]),
}
_TYPES = [pa.int8(), pa.int64(), pa.float64(), pa.decimal128(20, 2), pa.string(), pa.binary(), pa.timestamp("us")]


@st.composite
def _tables(draw: st.DrawFn) -> pa.Table:
    num_rows = draw(st.integers(1, 3000))
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    kinds = draw(st.lists(st.sampled_from([*_KINDS, *_TYPES]), min_size=1, max_size=6))
    columns = {}
    for number in range(draw(st.integers(8, 40))):
        kind = kinds[number % len(kinds)]
        if isinstance(kind, str):
            columns[f"c{number}"] = _KINDS[kind](rng.integers(0, 10**6, num_rows).tolist())
        else:
            nulls, style = draw(st.sampled_from(NULLS)), draw(st.sampled_from(["random", "runs"]))
            columns[f"c{number}"] = make_array(kind, num_rows, nulls, style, number)
    return pa.table(columns)


@settings(max_examples=40)
@given(table=_tables(), version=st.sampled_from(["2.1", "2.2"]), is_ours=st.booleans(), batch_size=st.integers(1, 4000))
def test_columns_of_one_type_are_read_at_once(
    tmp_path_factory: pytest.TempPathFactory, table: pa.Table, version: str, is_ours: bool, batch_size: int
) -> None:
    path = tmp_path_factory.mktemp("wide") / "a.lance"
    writer = LanceFileWriter if is_ours else lance.file.LanceFileWriter
    with writer(str(path), table.schema, version=version) as target:
        target.write_batch(table)
    found = list(LanceFileReader(path).read_all(batch_size=batch_size).to_batches())
    assert [batch.num_rows for batch in found[:-1]] == [batch_size] * (len(found) - 1)
    for batch in found:
        batch.validate(full=True)
    assert same_values(pa.Table.from_batches(found), table)
    rows = sorted({0, table.num_rows // 3, table.num_rows - 1})
    assert same_values(LanceFileReader(path).take_rows(rows).to_table(), table.take(rows))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(small_files, "MOST_ROWS", 0)
        assert same_values(LanceFileReader(path).read_all().to_table(), table)


def _write(path: Path, table: pa.Table) -> None:
    with LanceFileWriter(path, table.schema) as target:
        target.write_batch(table)


def test_the_way_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({f"c{number}": np.arange(20_000) * number for number in range(30)})
    _write(tmp_path / "a.lance", table)
    counted = Mock(wraps=small_files.read_wide_file)
    monkeypatch.setattr(file_reader, "read_wide_file", counted)
    assert LanceFileReader(tmp_path / "a.lance").read_all().to_table().equals(table)
    assert counted.call_count == 1
    some = LanceFileReader(tmp_path / "a.lance", columns=["c1", "c2"]).read_all().to_table()
    assert some.equals(table.select(["c1", "c2"]))
    assert LanceFileReader(tmp_path / "a.lance").read_range(5, 100).to_table().equals(table.slice(5, 100))
    assert counted.call_count == 1


def test_rows_of_many_bytes_are_read_column_by_column(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(small_files, "_MOST_BYTES", 100_000)
    table = pa.table({f"c{number}": ["one and the same text " * 40] * 1000 for number in range(10)})
    _write(tmp_path / "a.lance", table)
    assert LanceFileReader(tmp_path / "a.lance").read_all().to_table().equals(table)


@pytest.mark.parametrize("has_checksums", [True, False])
def test_what_is_damaged_is_named(tmp_path: Path, has_checksums: bool) -> None:
    error, what = (ChecksumError, r"hold rows 0 to 1999 of") if has_checksums else (CorruptFileError, r"c11")
    table = pa.table({f"c{number}": np.random.default_rng(number).integers(0, 100, 2000) for number in range(20)})
    path = tmp_path / "a.lance"
    writer = LanceFileWriter if has_checksums else lance.file.LanceFileWriter
    with writer(str(path), table.schema, version="2.1") as target:
        target.write_batch(table)
    (chunk_table, _) = LanceFileReader(path).metadata().columns[11].pages[0].buffers
    damaged = bytearray(path.read_bytes())
    damaged[chunk_table.position] ^= 0xFF
    path.write_bytes(damaged)
    with pytest.raises(error, match=what):
        LanceFileReader(path).read_all().to_table()
    left = table.column_names[:8]
    assert LanceFileReader(path, columns=left).read_all().to_table().equals(table.select(left))
