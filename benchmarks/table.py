"""Tables of many fragments and of many versions, ours against pylance's, on the same table in one process.

    python benchmarks/table.py [--fragments N] [--versions N]

Both work in turn, seven times; the medians in milliseconds and their ratio (ours / pylance's, below 1 is faster) are
printed. We sync what we commit to the disk, pylance does not; that is in our time of committing. What changes all
fragments is done three times, on copies of the table, whose files are links.
"""

from __future__ import annotations

import argparse
import itertools
import os
import shutil
import statistics
import tempfile
import time
import uuid
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import lance
import lance.fragment
import pyarrow as pa

import lance_format
from lance_format.table.transaction.operations import Append

_ROUNDS = 7
_ROUNDS_ON_COPIES = 3
_COMMITS = 20
Run = Callable[[Any], object]


def _row(number: int) -> pa.Table:
    return pa.table({"a": [number], "s": [f"row {number}"]})


def _many_fragments(path: str, count: int) -> None:
    step = max(count // _COMMITS, 1)
    for start in range(0, count, step):
        stop = min(start + step, count)
        table = pa.concat_tables([_row(number) for number in range(start, stop)])
        lance.write_dataset(table, path, mode="append" if start else "create", max_rows_per_file=1)


def _many_versions(path: str, count: int) -> None:
    table = lance.write_dataset(_row(0), path)
    for number in range(count - 1):
        table.update_config({"n": str(number)})


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


def _cases(path: str) -> list[tuple[str, Run]]:
    latest = lance.dataset(path).version
    versions = {library: itertools.count(latest - 1, -1) for library in (lance_format, lance)}
    opened = {library: library.dataset(path) for library in (lance_format, lance)}
    return [
        ("open", lambda library: library.dataset(path, next(versions[library]))),
        ("open again", lambda library: library.dataset(path)),
        ("count rows", lambda library: library.dataset(path).count_rows()),
        ("latest version", lambda library: opened[library].latest_version),
        ("append one row", lambda library: library.write_dataset(_row(-1), path, mode="append")),
        ("append, planned 100 versions ago", lambda library: _STALE_APPENDS[library](path, latest - 100)),
        ("set a configuration", lambda library: library.dataset(path).update_config({"k": str(time.time())})),
        ("first ten rows", lambda library: library.dataset(path).head(10)),
        ("scan", lambda library: library.dataset(path).to_table(columns=["a"])),
        ("delete no row", lambda library: library.dataset(path).delete("s = 'nothing'")),
    ]


def _indexed_cases(path: str) -> list[tuple[str, Run]]:
    lance.dataset(path).create_scalar_index("a", "ZONEMAP")
    opened = {library: library.dataset(path) for library in (lance_format, lance)}
    return [
        ("a row by an index", lambda library: opened[library].to_table(filter="a = 77")),
        ("a row by an index, opened anew", lambda library: library.dataset(path).to_table(filter="a = 77")),
        (
            "a row without the index",
            lambda library: opened[library].scanner(filter="a = 77", use_scalar_index=False).to_table(),
        ),
    ]


def _stale_append(path: str, version: int) -> None:
    table = lance_format.dataset(path, max(version, 1))._table
    identity = str(uuid.uuid4())
    fragments = table.write_fragments(_row(-1).to_batches(), table.manifest.schema, uuid=identity)
    table.commit(Append(tuple(fragments)), uuid=identity)


def _stale_append_of_pylance(path: str, version: int) -> None:
    fragments = lance.fragment.write_fragments(_row(-1), path)
    lance.LanceDataset.commit(path, lance.LanceOperation.Append(fragments), read_version=max(version, 1))


_STALE_APPENDS = {lance_format: _stale_append, lance: _stale_append_of_pylance}


_CHANGES: dict[str, Run] = {
    "compact": lambda table: table.optimize.compact_files(),
    "BTREE index": lambda table: table.create_scalar_index("a", "BTREE"),
    "ZONEMAP index": lambda table: table.create_scalar_index("a", "ZONEMAP"),
    "INVERTED index": lambda table: table.create_scalar_index("s", "INVERTED"),
    "add a column": lambda table: table.add_columns({"b": "a + 1"}),
}


def _medians_of_changes(path: str, change: Run) -> tuple[float, float]:
    times: dict[Any, list[float]] = {lance_format: [], lance: []}
    for _ in range(_ROUNDS_ON_COPIES):
        for library, spent in times.items():
            copy = shutil.copytree(path, f"{path}-copy", copy_function=os.link)
            table = library.dataset(copy)
            start = time.perf_counter()
            change(table)
            spent.append(time.perf_counter() - start)
            shutil.rmtree(copy)
    return statistics.median(times[lance_format]) * 1e3, statistics.median(times[lance]) * 1e3


def _print(title: str, cases: Iterable[tuple[str, tuple[float, float]]]) -> None:
    for name, (ours, theirs) in cases:
        print(f"{title:16}{name:34}{ours:10.1f}{theirs:10.1f}{ours / theirs:8.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition(":")[0])
    parser.add_argument("--fragments", type=int, default=10_000)
    parser.add_argument("--versions", type=int, default=5_000)
    arguments = parser.parse_args()
    print(f"{'':50}{'ours':>10}{'pylance':>10}{'ratio':>8}")
    with tempfile.TemporaryDirectory() as directory:
        path = str(Path(directory) / "t")
        title = f"{arguments.fragments} fragments"
        _many_fragments(path, arguments.fragments)
        _print(title, ((name, _medians_of_changes(path, change)) for name, change in _CHANGES.items()))
        _print(title, ((name, _medians(run)) for name, run in _cases(path)))
        _print(title, ((name, _medians(run)) for name, run in _indexed_cases(path)))
    with tempfile.TemporaryDirectory() as directory:
        path = str(Path(directory) / "t")
        _many_versions(path, arguments.versions)
        _print(f"{arguments.versions} versions", ((name, _medians(run)) for name, run in _cases(path)))


if __name__ == "__main__":
    main()
