"""Files, ours against pylance's, on the same data in one process.

    python benchmarks/file_format.py [--rows N] [case …]

Both write and read in turn, seven times; the medians in milliseconds and their ratio (ours / pylance's, below 1 is
faster or smaller) are printed. We sync what we write to the disk, pylance does not; that is in our time of writing.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import lance.file
import numpy as np
import pyarrow as pa

from lance_format.file import LanceFileReader, LanceFileWriter

_ROUNDS = 7
_TAKEN = 1000
_BATCH = 65_536
_TEXT = "number %d, " + "and what there is to say about it, " * 12
Case = Callable[[np.random.Generator, int], pa.Table]


def _strings(values: np.ndarray, make: str) -> pa.Array:
    return pa.array([make % value for value in values.tolist()])


def _lists(rng: np.random.Generator, rows: int) -> pa.Table:
    sizes = rng.integers(0, 10, rows)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    items = pa.array(rng.integers(0, 10**6, int(offsets[-1])).astype(np.int32))
    return pa.table({"c": pa.ListArray.from_arrays(pa.array(offsets), items)})


def _structs(rng: np.random.Generator, rows: int) -> pa.Table:
    fields = [
        pa.array(rng.integers(0, 1000, rows)),
        pa.array(rng.random(rows)),
        _strings(rng.integers(0, 99, rows), "n%d"),
    ]
    return pa.table(
        {"c": pa.StructArray.from_arrays(fields, ["id", "value", "name"], mask=pa.array(rng.random(rows) < 0.1))}
    )


def _vectors(rng: np.random.Generator, rows: int) -> pa.Table:
    numbers = pa.array(rng.random(rows // 16 * 128, np.float32))
    return pa.table({"c": pa.FixedSizeListArray.from_arrays(numbers, 128)})


CASES: dict[str, Case] = {
    "sequential int64": lambda _, rows: pa.table({"c": np.arange(rows)}),
    "random int64": lambda rng, rows: pa.table({"c": rng.integers(-(2**62), 2**62, rows)}),
    "few distinct int64": lambda rng, rows: pa.table({"c": rng.choice(rng.integers(0, 2**60, 100), rows)}),
    "nullable int64": lambda rng, rows: pa.table(
        {"c": pa.array(rng.integers(0, 10**6, rows), mask=rng.random(rows) < 0.2)}
    ),
    "random float64": lambda rng, rows: pa.table({"c": rng.random(rows)}),
    "short strings": lambda rng, rows: pa.table({"c": _strings(rng.integers(0, 10**7, rows), "value-%d")}),
    "long strings": lambda rng, rows: pa.table({"c": _strings(rng.integers(0, 10**7, rows // 20), _TEXT)}),
    "few distinct strings": lambda rng, rows: pa.table({"c": _strings(rng.integers(0, 50, rows), "category-%d")}),
    "list<int32>": _lists,
    "struct": _structs,
    "vectors of 128 floats": _vectors,
}


def _write(writer: type, path: Path, table: pa.Table) -> None:
    with writer(str(path), table.schema) as target:
        for batch in table.to_batches():
            target.write_batch(batch)


def _medians(ours: Callable[[], object], theirs: Callable[[], object]) -> tuple[float, float]:
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(_ROUNDS):
        for run, spent in zip((ours, theirs), times, strict=True):
            start = time.perf_counter()
            run()
            spent.append(time.perf_counter() - start)
    return statistics.median(times[0]) * 1e3, statistics.median(times[1]) * 1e3


def _measure(table: pa.Table, directory: Path, rng: np.random.Generator) -> dict[str, tuple[float, float]]:
    ours, theirs = directory / "ours.lance", directory / "theirs.lance"
    rows = sorted(rng.choice(table.num_rows, min(_TAKEN, table.num_rows), replace=False).tolist())
    _write(LanceFileWriter, ours, table)  # compiles the kernels
    LanceFileReader(ours).take_rows(rows).to_table()
    result = {
        "write": _medians(
            lambda: _write(LanceFileWriter, ours, table), lambda: _write(lance.file.LanceFileWriter, theirs, table)
        ),
        "scan": _medians(
            lambda: LanceFileReader(ours).read_all(batch_size=_BATCH).to_table(),
            lambda: lance.file.LanceFileReader(str(theirs)).read_all(batch_size=_BATCH).to_table(),
        ),
    }
    warm, their_warm = LanceFileReader(ours), lance.file.LanceFileReader(str(theirs))
    result["take, warm"] = _medians(
        lambda: warm.take_rows(rows).to_table(), lambda: their_warm.take_rows(rows).to_table()
    )
    result["take, cold"] = _medians(
        lambda: LanceFileReader(ours).take_rows(rows).to_table(),
        lambda: lance.file.LanceFileReader(str(theirs)).take_rows(rows).to_table(),
    )
    result["size, KB"] = (ours.stat().st_size / 1e3, theirs.stat().st_size / 1e3)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition(":")[0])
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("cases", nargs="*", metavar="case", help=f"of {', '.join(CASES)}")
    arguments = parser.parse_args()
    print(f"{'':24}{'':12}{'ours':>10}{'pylance':>10}{'ratio':>8}")
    for name in arguments.cases or CASES:
        rng = np.random.default_rng(0)
        table = CASES[name](rng, arguments.rows)
        with tempfile.TemporaryDirectory() as directory:
            for what, (ours, theirs) in _measure(table, Path(directory), rng).items():
                print(f"{name:24}{what:12}{ours:10.1f}{theirs:10.1f}{ours / theirs:8.2f}", flush=True)


if __name__ == "__main__":
    main()
