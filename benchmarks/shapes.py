"""Values in tables of different shapes, ours against pylance's: more columns, smaller files, and both.

    python benchmarks/shapes.py [--values N] [--rows N]

The first part writes, scans and samples tables of 10 to 1,000 columns of some 20,000,000 values; the second one scans,
filters and changes a table of 200,000 rows of three columns in files of 100 to 20,000 rows; the third one has files of
50 and 500 columns. Both libraries work in turn in one process, five times; the shortest times in milliseconds and their
ratio (ours / pylance's, below 1 is faster) are printed. `TMPDIR` says where the tables are.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa

import lance_format

_ROUNDS = 5
_LIBRARIES: dict[str, Any] = {"ours": lance_format, "pylance": lance}
Run = Callable[[Any, str], object]


def _compare(name: str, run: Run, paths: dict[str, str]) -> None:
    """Print the shortest times of both libraries, which are given their module and the path of their table."""
    best = dict.fromkeys(_LIBRARIES, float("inf"))
    for _ in range(_ROUNDS):
        for library, module in _LIBRARIES.items():
            start = time.perf_counter()
            run(module, paths[library])
            best[library] = min(best[library], time.perf_counter() - start)
    ours, theirs = best["ours"] * 1e3, best["pylance"] * 1e3
    print(f"{name:60} {ours:9.1f} {theirs:9.1f} {ours / theirs:7.2f}", flush=True)


def _write(table: pa.Table, **options: Any) -> Run:
    return lambda module, path: module.write_dataset(table, path, mode="overwrite", **options)


def _kinds(rng: np.random.Generator, num_rows: int) -> dict[str, Callable[[], pa.Array]]:
    return {
        "integers": lambda: pa.array(rng.integers(0, 10**6, num_rows)),
        "nullable floats": lambda: pa.array(rng.random(num_rows), mask=rng.random(num_rows) < 0.2),
        "booleans": lambda: pa.array(rng.random(num_rows) < 0.5),
        "strings of 1,000": lambda: pa.array([f"value {number}" for number in rng.integers(0, 1000, num_rows)]),
    }


def _columns(paths: dict[str, str], num_values: int) -> None:
    rng = np.random.default_rng(0)
    for num_columns in (10, 100, 1000):
        num_rows = num_values // num_columns
        for kind, make in _kinds(rng, num_rows).items():
            table = pa.table({f"c{place}": make() for place in range(num_columns)})
            name = f"{num_columns} columns of {num_rows:,} {kind}"
            _compare(f"{name}, write", _write(table), paths)
            _compare(f"{name}, scan", lambda module, path: module.dataset(path).to_table(), paths)
            rows = np.sort(rng.choice(num_rows, 100, replace=False)).tolist()
            _compare(f"{name}, take 100", lambda module, path, rows=rows: module.dataset(path).take(rows), paths)


def _files(paths: dict[str, str], num_rows: int) -> None:
    rng = np.random.default_rng(0)
    numbers, words = rng.integers(0, 10**6, num_rows), rng.integers(0, 1000, num_rows)
    table = pa.table({"a": numbers, "b": rng.random(num_rows), "s": [f"value {number}" for number in words.tolist()]})
    for file_rows in (100, 1000, 5000, 20_000):
        name = f"files of {file_rows:,} rows"
        write = _write(table, max_rows_per_file=file_rows)
        _compare(f"{name}, write", write, paths)
        _compare(f"{name}, scan", lambda module, path: module.dataset(path).to_table(), paths)
        _compare(f"{name}, filter", lambda module, path: module.dataset(path).to_table(filter="a < 5000"), paths)
        _compare(f"{name}, update", lambda module, path: module.dataset(path).update({"b": "b + 1"}, "a < 5000"), paths)
        for library, module in _LIBRARIES.items():  # Of the same fragments again.
            write(module, paths[library])
        _compare(f"{name}, delete", lambda module, path: module.dataset(path).delete("a % 100 = 1"), paths)


def _wide_files(paths: dict[str, str], num_values: int) -> None:
    rng = np.random.default_rng(0)
    for num_columns, file_rows in ((50, 1000), (50, 10_000), (500, 1000)):
        num_rows = max(num_values // num_columns // file_rows, 1) * file_rows
        kinds = list(_kinds(rng, num_rows).values())
        columns = {f"c{place}": kinds[place % len(kinds)]() for place in range(num_columns)}
        table = pa.table({"a": rng.integers(0, 1000, num_rows), **columns})
        name = f"{num_rows // file_rows} files of {num_columns} columns of {file_rows:,} rows"
        some = ["a", "c1", "c3"]
        _compare(f"{name}, write", _write(table, max_rows_per_file=file_rows), paths)
        _compare(f"{name}, scan", lambda module, path: module.dataset(path).to_table(), paths)
        _compare(f"{name}, 3 columns", lambda module, path, some=some: module.dataset(path).to_table(some), paths)
        _compare(f"{name}, filter", lambda module, path: module.dataset(path).to_table(filter="a < 5"), paths)
        rows = np.sort(rng.choice(num_rows, 100, replace=False)).tolist()
        _compare(f"{name}, take 100", lambda module, path, rows=rows: module.dataset(path).take(rows), paths)


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--values", type=int, default=20_000_000)
    parser.add_argument("--rows", type=int, default=200_000)
    options = parser.parse_args()
    print(f"{'':60} {'ours':>9} {'pylance':>9} {'ratio':>7}")
    directory = Path(tempfile.mkdtemp())
    try:
        paths = {library: str(directory / library) for library in _LIBRARIES}
        for library, module in _LIBRARIES.items():
            module.write_dataset(pa.table({"x": [0]}), paths[library])
        _columns(paths, options.values)
        _files(paths, options.rows)
        _wide_files(paths, options.values // 4)
    finally:
        shutil.rmtree(directory)


if __name__ == "__main__":
    main()
