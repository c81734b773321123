"""Filtered scans, lookups, limits and many small files: ours against pylance's, on the same table in one process.

    python benchmarks/scans.py [--rows N] [--vectors N] [--files N]

A filter lets a share of the rows pass, spread evenly; the filter's column is a random number, and what is read is one
other column or all of them. Another table has strings of 7, 150 and 20,000 values. Both work in turn, seven times; the
medians in milliseconds and their ratio (ours / pylance's, below 1 is faster) are printed.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa

import lance_format

_ROUNDS = 7
_SHARES = (0.0, 1e-5, 1e-3, 0.1, 0.5, 1.0)
Run = Callable[[Any], object]


def _numbers(num_rows: int) -> pa.Table:
    rng = np.random.default_rng(0)
    return pa.table(
        {
            "key": rng.random(num_rows),
            "id": np.arange(num_rows),
            "number": rng.integers(0, 2**60, num_rows),
            "text": [f"some text {row * 7919}" for row in range(num_rows)],
        }
    )


def _vectors(num_rows: int) -> pa.Table:
    rng = np.random.default_rng(0)
    values = rng.random(num_rows * 768, np.float32)
    return pa.table({"key": rng.random(num_rows), "vector": pa.FixedSizeListArray.from_arrays(values, 768)})


def _texts(num_rows: int) -> pa.Table:
    rng = np.random.default_rng(0)
    columns = {"mode": 7, "kind": 150, "customer": 20_000}
    return pa.table(
        {
            name: pa.array([f"some {name} {item * 7919}" for item in range(size)]).take(
                pa.array(rng.integers(0, size, num_rows))
            )
            for name, size in columns.items()
        }
        | {"number": rng.random(num_rows)}
    )


def _medians(run: Run) -> tuple[float, float]:
    times: tuple[list[float], list[float]] = ([], [])
    for library in (lance_format, lance):  # Compiles the kernels, and fills caches.
        run(library)
    for _ in range(_ROUNDS):
        for library, spent in zip((lance_format, lance), times, strict=True):
            start = time.perf_counter()
            run(library)
            spent.append(time.perf_counter() - start)
    return statistics.median(times[0]) * 1e3, statistics.median(times[1]) * 1e3


def _cases(path: str, columns: list[str]) -> Iterator[tuple[str, Run]]:
    opened = {library: library.dataset(path) for library in (lance_format, lance)}
    for column in [[name] for name in columns] + ([columns] if len(columns) > 1 else []):
        for share in _SHARES:
            options: dict[str, Any] = {"columns": column, "filter": f"key < {share}"}
            yield (
                f"{' and '.join(column)}, {share:g} of the rows",
                lambda library, options=options: opened[library].to_table(**options),
            )
    yield "count, 0.1 of the rows", lambda library: opened[library].count_rows("key < 0.1")
    yield "LIMIT 10, 0.1 of the rows", lambda library: opened[library].to_table(filter="key < 0.1", limit=10)
    ids = "_rowid IN (5, 70000, 90001)"
    yield "three rows by id", lambda library: opened[library].to_table(columns=columns, filter=ids)


def _cases_of_texts(path: str) -> Iterator[tuple[str, Run]]:
    opened = {library: library.dataset(path) for library in (lance_format, lance)}
    for predicate in (
        "mode = 'some mode 7919'",
        "mode <> 'some mode 7919'",
        "kind LIKE '%kind%19'",
        "kind IN ('some kind 7919', 'some kind 15838')",
        "customer = 'some customer 7919'",
    ):
        yield f"count, {predicate}", lambda library, predicate=predicate: opened[library].count_rows(predicate)
        yield (
            f"number, {predicate}",
            lambda library, predicate=predicate: opened[library].to_table(["number"], filter=predicate),
        )


def _small_files(num_files: int) -> Iterator[tuple[str, Run]]:
    """Scan files of one row. The tables are opened anew for each run, as the cache of one would hold all files."""
    rows = pa.table(
        {
            "id": range(num_files),
            "text": [f"some text {row * 7919}" for row in range(num_files)],
            "number": np.random.default_rng(0).random(num_files),
        }
    )
    for version in ("2.1", "2.2"):
        with tempfile.TemporaryDirectory() as directory:
            path = str(Path(directory) / "t")
            lance_format.write_dataset(rows, path, max_rows_per_file=1, data_storage_version=version)
            name = f"{num_files} files of {version}"
            yield f"{name}, all rows", lambda library, path=path: library.dataset(path).to_table()
            yield f"{name}, one row", lambda library, path=path: library.dataset(path).to_table(filter="id = 17")
            yield f"{name}, half", lambda library, path=path: library.dataset(path).to_table(filter="number < 0.5")
            yield f"{name}, count", lambda library, path=path: library.dataset(path).count_rows("id = 17")


def _print(name: str, run: Run) -> None:
    ours, theirs = _medians(run)
    print(f"{name:56}{ours:10.1f}{theirs:10.1f}{ours / theirs:8.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition(":")[0])
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--vectors", type=int, default=100_000)
    parser.add_argument("--files", type=int, default=10_000)
    arguments = parser.parse_args()
    print(f"{'':56}{'ours':>10}{'pylance':>10}{'ratio':>8}")
    for table in (_numbers(arguments.rows), _vectors(arguments.vectors)):
        with tempfile.TemporaryDirectory() as directory:
            path = str(Path(directory) / "t")
            lance_format.write_dataset(table, path)
            for name, run in _cases(path, [name for name in table.column_names if name not in ("key", "id")]):
                _print(name, run)
    with tempfile.TemporaryDirectory() as directory:
        path = str(Path(directory) / "t")
        lance_format.write_dataset(_texts(arguments.rows), path)
        for name, run in _cases_of_texts(path):
            _print(name, run)
    for name, run in _small_files(arguments.files):
        _print(name, run)


if __name__ == "__main__":
    main()
