"""The first rows of a sorted scan are those of all rows sorted, and most others are not read."""

from __future__ import annotations

import decimal
import functools
import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lance_format
from lance_format import ColumnOrdering
from lance_format.table.scan.ordered import ordered_scan

_ROWS = 20_000
_FLOATS = [math.nan, -math.nan, 0.0, -0.0, math.inf, -math.inf, None, 1.5]


def _rows(seed: int) -> pa.Table:
    """Rows in order of `time` from one seed to the next; other columns are random, and have few values or nulls."""
    rng = np.random.default_rng(seed)
    numbers = rng.integers(0, 300, _ROWS)
    missing = rng.random(_ROWS) < 0.1
    times = np.sort(rng.integers(seed * 50_000, (seed + 1) * 50_000, _ROWS))
    return pa.table(
        {
            "n": rng.permutation(_ROWS) + seed * _ROWS,
            "time": pa.array(times).cast(pa.timestamp("us", "UTC")),
            "some": pa.array(times, mask=missing),
            "none_first": pa.array(np.arange(_ROWS), mask=np.arange(_ROWS) < 9000),
            "few": numbers.astype(np.int8),
            "unsigned": pa.array(rng.integers(0, 2**64, _ROWS, np.uint64), mask=missing),
            "float": pa.array([_FLOATS[number % 8] if number < 200 else float(number) for number in numbers]),
            "half": pa.array(numbers.astype(np.float16)),
            "text": pa.array([None if number % 9 == 0 else "é" * (number % 4) + str(number) for number in numbers]),
            "bytes": pa.array([bytes([number % 256, number % 3]) for number in numbers]),
            "date": pa.array(numbers.astype(np.int32)).cast(pa.date32()),
            "decimal": pa.array([decimal.Decimal(int(number)) / 100 for number in numbers], pa.decimal128(12, 2)),
            "flag": pa.array(numbers % 2 == 0, mask=missing),
            "name": pa.array([f"name {number % 20}" for number in numbers]).dictionary_encode(),
            "pair": [{"x": int(number)} for number in numbers],
        }
    )


_NAMES = [name for name in _rows(0).schema.names if name != "pair"] + ["pair.x"]
_FILTERS = [None, "text <> ''", "few = 7", "few % 2 = 0 AND text LIKE '%1%'", "time < timestamp '1970-01-01 00:00:00'"]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Fragments with deleted rows, the last one small, and a column that some lack."""
    path = tmp_path_factory.mktemp("ordered") / "t"
    for seed in (1, 0, 2):
        dataset = lance_format.write_dataset(_rows(seed), path, mode="create" if seed == 1 else "append")
    dataset.delete("few = 3 OR (n > 4000 AND n < 4100)")
    dataset.add_columns(pa.schema([pa.field("later", pa.int64())]))
    dataset.insert(_rows(3).slice(0, 500).append_column("later", pa.array(range(500))))
    return path


@functools.cache
def _values(path: Path, name: str) -> list[Any]:
    return lance_format.dataset(path).to_table([name])[0].to_pylist()


@functools.cache
def _passing(path: Path, text: str | None) -> list[int]:
    return lance_format.dataset(path).to_table(["_rowoffset"], filter=text)["_rowoffset"].to_pylist()


def _sorted(path: Path, rows: list[int], order: list[ColumnOrdering]) -> list[int]:
    """Sort by one column after another, the least significant first."""
    for ordering in reversed(order):
        values = _values(path, ordering.column_name)
        is_nan = [isinstance(value, float) and math.isnan(value) for value in values]
        valid = [row for row in rows if values[row] is not None]
        # Reversed twice, since equal rows keep their order in descending order, too.
        valid = valid if ordering.ascending else valid[::-1]
        valid.sort(key=lambda row: (is_nan[row], 0 if is_nan[row] else values[row]))
        valid = valid if ordering.ascending else valid[::-1]
        nulls = [row for row in rows if values[row] is None]
        rows = nulls + valid if ordering.nulls_first else valid + nulls
    return rows


_ORDERS = st.lists(
    st.builds(ColumnOrdering, st.sampled_from([*_NAMES, "later"]), st.booleans(), st.booleans()),
    min_size=1,
    max_size=3,
    unique_by=lambda ordering: ordering.column_name,
)


@settings(max_examples=60, deadline=None)
@given(
    order=_ORDERS,
    text=st.sampled_from(_FILTERS),
    limit=st.sampled_from([0, 1, 10, 700, 30_000, 2**63]),
    offset=st.sampled_from([0, 0, 3, 1000]),
    pending=st.sampled_from([50, 9000, 32 * 1024]),
)
def test_first_rows(
    path: Path, order: list[ColumnOrdering], text: str | None, limit: int, offset: int, pending: int
) -> None:
    expected = _sorted(path, _passing(path, text), order)
    dataset = lance_format.dataset(path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ordered_scan, "_PENDING_ROWS", pending)
        found = dataset.to_table(["_rowoffset"], filter=text, limit=limit, offset=offset, order_by=order)
        scanner = dataset.scanner(["_rowoffset"], text, limit=limit, order_by=order)
        tasks = scanner.plan_tasks(300_000, min_tasks=2)
        random.Random(limit).shuffle(tasks)
        parts = [batch["_rowoffset"].to_pylist() for task in tasks for batch in scanner.read_task(task)]
    assert found["_rowoffset"].to_pylist() == expected[offset : offset + limit]
    assert _sorted(path, sorted(row for part in parts for row in part), order)[:limit] == expected[:limit]


@pytest.mark.parametrize(
    ("order", "text", "most"),
    [
        (["time", "text"], None, 8192 * 2),
        ([ColumnOrdering("time", False), "n"], None, 8192 * 2),
        ([ColumnOrdering("some", False)], "few > 0", 8192 * 2),
        (["time", "n"], "text LIKE '%1%'", 8192 * 2),
    ],
    ids=str,
)
def test_zones_that_cannot_hold_a_first_row_are_not_read(
    path: Path, monkeypatch: pytest.MonkeyPatch, order: list[Any], text: str | None, most: int
) -> None:
    monkeypatch.setattr(ordered_scan, "_PENDING_ROWS", 1000)
    scanner = lance_format.dataset(path).scanner(["n", "text"], text, limit=10, order_by=order)
    assert len(scanner.to_table()) == 10
    assert scanner.metrics is not None
    assert scanner.metrics.rows_scanned <= most
    assert scanner.metrics.fragments_scanned <= 2


def test_scan_is_reported_once(path: Path) -> None:
    reports: list[Any] = []
    dataset = lance_format.dataset(path)
    dataset.scanner(limit=3, order_by=["unsigned"], scan_stats_callback=reports.append).to_table()
    assert [report.fragments for report in reports] == [4]
    assert reports[0].rows_scanned <= reports[0].rows


def test_batches_of_large_rows_are_small(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    texts = [rng.bytes(2000).hex() for _ in range(3000)]
    sizes = [4000 if number % 2 else 40 for number in range(3000)]
    values = pa.array([text[:size] for text, size in zip(texts, sizes, strict=True)])
    table = lance_format.write_dataset(pa.table({"n": rng.permutation(3000), "size": sizes, "v": values}), tmp_path)
    for orderings in (["n"], [ColumnOrdering("size", ascending=False)]):
        found = list(table.scanner(["v", "n"], order_by=orderings, batch_size_bytes=500_000).to_batches())
        assert max(batch.nbytes for batch in found) < 2_000_000
        whole = table.scanner(["v", "n"], order_by=orderings, batch_size=3000).to_table()
        assert pa.Table.from_batches(found).combine_chunks() == whole.combine_chunks()
        assert len(found) < 100
