"""Batches of large rows are small, whatever their values take in the files."""

from __future__ import annotations

import tracemalloc

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_format
from lance_format import InvalidInputError, LanceDataset

_ROWS = 3000
_TEXTS = pa.array([letter * 60_000 for letter in "abc"])
_ONE_MIB = 1 << 20


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> LanceDataset:
    """Return a table of 180 MB whose files have few KB."""
    texts = _TEXTS.take(pa.array(np.arange(_ROWS) % 3))
    path = tmp_path_factory.mktemp("large") / "t"
    table = lance_format.write_dataset(pa.table({"id": range(_ROWS), "text": texts}), path, max_rows_per_file=1600)
    table.delete("id % 100 = 7")
    return table


@pytest.mark.parametrize(
    ("num_bytes", "filter"), [(None, None), (1, "id < 90"), (_ONE_MIB, "text LIKE '%b%'"), (None, "id < 2500")]
)
def test_bytes_limit_rows(num_bytes: int | None, filter: str | None, table: LanceDataset) -> None:
    batches = list(table.to_batches(filter=filter, batch_size_bytes=num_bytes))
    limit = 64 * _ONE_MIB if num_bytes is None else num_bytes
    assert all(batch.nbytes < max(2 * limit, 70_000) for batch in batches)
    expected = lance.dataset(table.uri).to_table(filter=filter)
    assert pa.Table.from_batches(batches).equals(expected)


def test_rows_that_are_asked_for(table: LanceDataset) -> None:
    assert [batch.num_rows for batch in table.to_batches(batch_size=1600)] == [1584, 1386]
    assert max(batch.num_rows for batch in table.to_batches(batch_size=10, batch_size_bytes=_ONE_MIB)) == 10
    with pytest.raises(InvalidInputError, match="strict_batch_size and batch_size_bytes"):
        table.scanner(batch_size_bytes=1, strict_batch_size=True)
    with pytest.raises(InvalidInputError, match="batch_size_bytes is 0"):
        table.scanner(batch_size_bytes=0)


def test_memory(table: LanceDataset) -> None:
    tracemalloc.start()
    num_rows = sum(batch.num_rows for batch in table.to_batches(batch_size_bytes=_ONE_MIB))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert num_rows == _ROWS * 99 // 100
    assert peak < 64 * _ONE_MIB


def test_columns_in_several_files(table: LanceDataset) -> None:
    copy = table.shallow_clone(f"{table.uri}-copy", table.version)
    copy.add_columns({"double": "id * 2"})
    batches = list(copy.to_batches())
    assert len(batches) > 2
    assert pa.Table.from_batches(batches).equals(lance.dataset(copy.uri).to_table())
