"""Passing rows of several fragments, whose other columns are read at once."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import lance_format
from lance_format import LanceDataset

_ROW_COLUMNS = ["_rowid", "_rowaddr", "_rowoffset"]


def _make(path: Path, seed: int) -> LanceDataset:
    """Return a table of fragments of very different sizes, with deleted rows and a column that some files lack."""
    rng = np.random.default_rng(seed)
    for _ in range(int(rng.integers(8, 30))):
        size = int(rng.choice([1, 20, 900, 1100, 3000]))
        rows = {
            "id": rng.integers(0, 10_000, size),
            "x": rng.random(size),
            "s": [f"text {number}" * int(number % 4) for number in rng.integers(0, 100, size)],
            "v": pa.FixedSizeListArray.from_arrays(rng.random(size * 32).astype(np.float32), 32),
        }
        lance_format.write_dataset(rows, path, mode="append", enable_stable_row_ids=bool(seed % 2))
    dataset = lance_format.dataset(path)
    dataset.delete("id % 13 = 5")
    dataset.add_columns({"twice": "id * 2"})
    return lance_format.dataset(path)


@pytest.mark.parametrize("seed", range(3))
def test_filters_of_every_selectivity(seed: int, tmp_path: Path) -> None:
    table = _make(tmp_path / "t", seed)
    whole = table.to_table(columns=[*table.schema.names, *_ROW_COLUMNS])
    x, ids = whole["x"].to_numpy(), whole["id"].to_numpy()
    rng = np.random.default_rng(seed)
    for share, with_index in itertools.product((0.0, 0.001, 0.1), (False, True)):
        if with_index and share == 0.0:
            table.create_scalar_index("id", "BTREE")
            table = lance_format.dataset(table.uri)
        some = rng.choice(ids, 40)
        for predicate, mask in (
            (f"x < {share}", x < share),
            (f"x < {share} OR id IN ({','.join(map(str, some))})", (x < share) | np.isin(ids, some)),
            (f"id IN ({','.join(map(str, some))})", np.isin(ids, some)),
            (f"x >= {share} AND id = {some[0]}", (x >= share) & (ids == some[0])),
        ):
            expected = whole.filter(pa.array(mask))
            batch_size = int(rng.choice([50, 1000, 8192]))
            options = {"filter": predicate, "batch_size": batch_size, "columns": whole.column_names}
            assert table.to_table(**options).equals(expected)
            assert max((batch.num_rows for batch in table.to_batches(**options)), default=0) <= batch_size
            offset, limit = int(rng.integers(0, 20)), int(rng.integers(1, 50))
            assert table.to_table(**options, offset=offset, limit=limit).equals(expected.slice(offset, limit))
            assert table.count_rows(filter=predicate) == expected.num_rows


def test_the_first_rows_do_not_wait_for_the_last(tmp_path: Path) -> None:
    rows = pa.table({"id": range(200_000), "s": [f"{number}" for number in range(200_000)]})
    lance_format.write_dataset(rows, tmp_path / "t", max_rows_per_file=10_000)
    counts: list[int] = []
    scanner = lance_format.dataset(tmp_path / "t").scanner(
        filter="id % 10000 = 7", scan_stats_callback=lambda metrics: counts.append(metrics.fragments_scanned)
    )
    batches = scanner.to_batches()
    assert next(batches)["id"].to_pylist() == [*range(7, 60_000, 10_000)]
    batches.close()  # type: ignore[attr-defined]
    assert counts == [6]
    assert scanner.to_table()["id"].to_pylist() == [*range(7, 200_000, 10_000)]


def test_few_files_are_open_while_rows_wait(tmp_path: Path) -> None:
    rows = pa.table({"id": range(300_000), "s": ["x"] * 300_000})
    lance_format.write_dataset(rows, tmp_path / "t", max_rows_per_file=2000)
    most = 0

    def count(_: object) -> int:
        nonlocal most
        open_now = sum("/data/" in str(Path("/proc/self/fd", name).readlink()) for name in _descriptors())
        most = max(most, open_now)
        return open_now

    table = lance_format.dataset(tmp_path / "t")
    for batch in table.to_batches(filter="id % 100000 = 7"):
        count(batch)
    assert most <= 64
    assert count(None) == 0


def _descriptors() -> list[str]:
    found = []
    for path in Path("/proc/self/fd").iterdir():
        try:
            path.readlink()
        except OSError:
            continue
        found.append(path.name)
    return found
