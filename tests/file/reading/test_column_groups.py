"""Windows of many columns that are decoded as one have the rows of each, and errors name one column."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import Mock

import lance.file
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_format.errors import CorruptFileError
from lance_format.file import ColumnProjection, FileReader, LanceFileReader, LanceFileWriter, column_indices
from lance_format.file.reading import column_groups, row_range, small_files
from lance_format.object_store.cloud_objects import REQUEST_SHAPE
from lance_format.object_store.local_files import LocalReader
from lance_format.structural import page as page_layouts

_TYPES = ["int64", "int32", "nullable", "bool", "flags", "float", "text", "words", "struct", "list", "vector", "date"]


def _column(rng: np.random.Generator, kind: str, rows: int) -> pa.Array:
    numbers = rng.integers(-1000, 1000, rows)
    missing = rng.random(rows) < 0.3
    match kind:
        case "int64":
            return pa.array(numbers)
        case "int32":
            return pa.array(np.abs(numbers).astype(np.int32))
        case "nullable":
            return pa.array(numbers, mask=missing)
        case "bool":
            return pa.array(numbers > 0)
        case "flags":
            return pa.array(numbers > 0, mask=missing)
        case "float":
            return pa.array(rng.random(rows))
        case "text":
            return pa.array([f"{number}" for number in numbers], mask=missing)
        case "words":
            return pa.array([f"word {number % 3}" for number in numbers])
        case "struct":
            fields = [pa.array(numbers), pa.array(rng.random(rows), mask=missing)]
            return pa.StructArray.from_arrays(fields, ["a", "b"], mask=pa.array(rng.random(rows) < 0.2))
        case "list":
            return pa.array([[number] * (number % 4) for number in numbers.tolist()], pa.list_(pa.int64()))
        case "vector":
            return pa.FixedSizeListArray.from_arrays(pa.array(rng.random(rows * 3)), 3)
        case _:
            return pa.array(numbers.astype(np.int32), pa.date32())


def _wide(rng: np.random.Generator, columns: int, rows: int) -> pa.Table:
    kinds = rng.choice(_TYPES, size=columns)
    return pa.table({f"c{place}": _column(rng, str(kind), rows) for place, kind in enumerate(kinds)})


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    version=st.sampled_from(["2.1", "2.2"]),
    library=st.sampled_from([LanceFileWriter, lance.file.LanceFileWriter]),
)
def test_columns_have_their_rows(
    tmp_path_factory: pytest.TempPathFactory, seed: int, version: str, library: type
) -> None:
    rng = np.random.default_rng(seed)
    path = tmp_path_factory.mktemp("wide") / "a.lance"
    table = _wide(rng, int(rng.integers(8, 40)), int(rng.choice([1, 100, 3000, 20_000])))
    with library(
        str(path), table.schema, version=version, data_cache_bytes=int(rng.choice([1 << 16, 1 << 25]))
    ) as file:
        for batch in table.to_batches():
            file.write_batch(batch)
    reader = LanceFileReader(path)
    batch_size = int(rng.choice([100, 777, 8192]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(page_layouts, "_ANSWER_BYTES", int(rng.choice([1 << 18, 1 << 25])))
        patch.setattr(column_groups, "_GROUP_BYTES", int(rng.choice([1 << 12, 1 << 21])))
        assert reader.read_all(batch_size=batch_size).to_table().equals(table)
        start = int(rng.integers(0, table.num_rows))
        num_rows = int(rng.integers(1, table.num_rows - start + 1))
        found = reader.read_range(start, num_rows, batch_size=batch_size).to_table()
    assert found.equals(table.slice(start, num_rows))


class _Remote(LocalReader):
    """Reads ahead as from an object store."""

    request_shape = REQUEST_SHAPE


def _read(path: Path) -> pa.Table:
    reader = FileReader(_Remote(str(path)))
    columns = [ColumnProjection(field, column_indices(reader.schema, reader.version)) for field in reader.schema.fields]
    return pa.Table.from_batches(list(reader.read(columns, 0, reader.num_rows, batch_size=1000)))


@pytest.mark.parametrize("seed", range(5))
def test_columns_read_ahead_have_their_rows(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_layouts, "_ANSWER_BYTES", 1 << 19)
    table = _wide(np.random.default_rng(seed), 30, 20_000)
    with LanceFileWriter(tmp_path / "a.lance", table.schema, data_cache_bytes=1 << 20) as file:
        file.write_batch(table)
    counted = Mock(wraps=column_groups.plan_together)
    monkeypatch.setattr(column_groups, "plan_together", counted)
    assert _read(tmp_path / "a.lance").equals(table)
    assert counted.call_count


def test_a_thousand_columns_are_a_few_plans(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    table = pa.table({f"c{place}": rng.integers(0, 1000, 1000) for place in range(1000)})
    with LanceFileWriter(tmp_path / "a.lance", table.schema) as file:
        file.write_batch(table)
    counted = Mock(wraps=column_groups.run_plans)
    monkeypatch.setattr(column_groups, "run_plans", counted)
    assert LanceFileReader(tmp_path / "a.lance").read_all().to_table().equals(table)
    assert sum(len(call.args[1]) for call in counted.call_args_list) < 10


@pytest.mark.parametrize("threads", [1, 2])
def test_the_rows_of_a_batch_are_decoded_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    monkeypatch.setattr(page_layouts, "_ANSWER_BYTES", 1 << 20)
    monkeypatch.setattr(small_files, "MOST_ROWS", 0)
    monkeypatch.setenv("LANCE_CPU_THREADS", str(threads))
    rng = np.random.default_rng(0)
    table = pa.table({f"c{place}": rng.integers(0, 1000, 10_000) for place in range(100)})
    with LanceFileWriter(tmp_path / "a.lance", table.schema) as file:
        file.write_batch(table)
    counted = Mock(wraps=row_range.run_windows)
    monkeypatch.setattr(row_range, "run_windows", counted)
    assert LanceFileReader(tmp_path / "a.lance").read_all(batch_size=4000).to_table().equals(table)
    windows = [window for call in counted.call_args_list for window in call.args[1]]
    assert {(window.start, window.end) for window in windows} == {(0, 4000), (4000, 8000), (8000, 10_000)}
    assert len(windows) == 3 * table.num_columns


def test_an_error_names_the_column(tmp_path: Path) -> None:
    path = tmp_path / "a.lance"
    table = pa.table({f"c{place}": pa.array(np.arange(5000) * (place + 1)) for place in range(20)})
    with LanceFileWriter(path, table.schema, checksums=False) as file:
        file.write_batch(table)
    (page,) = LanceFileReader(path).metadata().columns[7].pages
    data = bytearray(path.read_bytes())
    data[page.buffers[1].position : page.buffers[1].position + 64] = b"\xff" * 64
    path.write_bytes(data)
    for read in (_read, lambda path: LanceFileReader(path).read_all().to_table()):
        with pytest.raises(CorruptFileError, match=r"a\.lance: column 'c7'"):
            read(path)
    others = [name for name in table.schema.names if name != "c7"]
    assert LanceFileReader(path, columns=others).read_all().to_table().equals(table.select(others))
