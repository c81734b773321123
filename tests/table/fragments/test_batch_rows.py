"""Rows that are read at once where no number of them is asked for."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import lance_format
from lance_format.datatypes import Schema
from lance_format.table.fragments.batch_rows import BATCH_ROWS, rows_at_once

_ROWS = 200_000


@pytest.mark.parametrize(
    ("types", "expected"),
    [
        ([pa.int64()], 65_536),
        ([pa.bool_()], 65_536),
        ([pa.int64()] * 16, 32_768),
        ([pa.int64()] * 1000, BATCH_ROWS),
        ([pa.struct({"a": pa.float64(), "b": pa.decimal128(20, 2)})], 65_536),
        ([pa.int64(), pa.string()], BATCH_ROWS),
        ([pa.list_(pa.int64())], BATCH_ROWS),
        ([pa.struct({"a": pa.float64(), "b": pa.binary()})], BATCH_ROWS),
        ([pa.null()], BATCH_ROWS),
        ([], BATCH_ROWS),
    ],
)
def test_rows_at_once(types: list[pa.DataType], expected: int) -> None:
    schema = Schema.from_arrow(pa.schema([(f"c{number}", each) for number, each in enumerate(types)]))
    assert rows_at_once(schema) == expected


def _sizes(table: pa.Table) -> set[int]:
    return {len(chunk) for chunk in table.column(0).chunks}


def test_tables_and_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    table = lance_format.write_dataset({"i": np.arange(_ROWS), "s": ["x"] * _ROWS}, "memory://batch_rows")
    scanner = table.scanner({"twice": "i * 2"})
    assert max(batch.num_rows for batch in scanner.to_batches()) == BATCH_ROWS
    assert max(_sizes(scanner.to_table())) == 65_536
    assert max(batch.num_rows for batch in scanner.to_batches()) == BATCH_ROWS
    assert scanner.to_table().column(0).to_pylist() == list(range(0, 2 * _ROWS, 2))
    assert max(_sizes(table.to_table(["i"], "i % 3 < 2"))) <= 65_536
    assert max(_sizes(table.to_table())) == BATCH_ROWS
    for options in ({"batch_size": 1000}, {"batch_size": 100_000}):
        assert max(_sizes(table.to_table(["i"], **options))) == options["batch_size"]
    assert _sizes(table.to_table(["i"], strict_batch_size=True)) == {BATCH_ROWS, _ROWS % BATCH_ROWS}
    monkeypatch.setenv("LANCE_DEFAULT_BATCH_SIZE", "100")
    assert max(_sizes(table.to_table(["i"]))) == 100
