"""Files, ours against pylance's, on the same data in one process.

    python benchmarks/file_format.py [--rows N] [--scale-factor X] [--versions 2.0 2.1 2.2] [case …]

Both write and read in turn, seven times; the medians in milliseconds and their ratio (ours / pylance's, below 1 is
faster or smaller) are printed. We sync what we write to the disk, pylance does not; that is in our time of writing.

1,000 rows at random are taken by a reader that has read before (warm), by one that opens the file anew (cold), and by
such a one after the system was asked to forget the file (cold disk). TPC-H's table of line items is made by
`tpchgen-cli`, of the optional dependencies `benchmarks`, at any scale factor, 1 by default: six million rows.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import lance.file
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lance_format.file import LanceFileReader, LanceFileWriter

_VERSIONS = ["2.0", "2.1", "2.2"]
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
    "int64 of both signs": lambda rng, rows: pa.table({"c": rng.integers(-(10**6), 10**6, rows)}),
    "timestamps": lambda rng, rows: pa.table(
        {"c": pa.array(1_700_000_000_000_000 + rng.integers(0, 10**6, rows).cumsum(), pa.timestamp("us"))}
    ),
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


_LINE_ITEMS = "TPC-H line items"


def _line_items(scale_factor: float) -> pa.Table:
    """Return TPC-H's largest table; text without Arrow's views, which only one of the two writes."""
    beside = Path(sys.executable).parent / "tpchgen-cli"
    program = str(beside) if beside.exists() else shutil.which("tpchgen-cli")
    if program is None:
        raise SystemExit("tpchgen-cli is missing: pip install 'pyspark-lance[benchmarks]'")
    with tempfile.TemporaryDirectory() as directory:
        command = [program, "parquet", "-s", str(scale_factor), "--tables=lineitem", f"--output-dir={directory}"]
        subprocess.run(command, check=True, capture_output=True)
        table = pq.read_table(Path(directory) / "lineitem.parquet")
    plain = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}
    return table.cast(pa.schema([pa.field(field.name, plain.get(field.type, field.type)) for field in table.schema]))


def _without_null_structs(table: pa.Table) -> pa.Table:
    """Return a table whose structs are all there, as file format 2.0 needs it."""
    columns = {}
    for name, column in zip(table.schema.names, table.columns, strict=True):
        array = column.combine_chunks() if pa.types.is_struct(column.type) else column
        if pa.types.is_struct(column.type) and array.null_count:
            array = pa.StructArray.from_arrays(array.flatten(), fields=list(array.type))
        columns[name] = array
    return pa.table(columns)


_clock = time.perf_counter


def _write(writer: type, path: Path, table: pa.Table, version: str) -> None:
    with writer(str(path), table.schema, version=version) as target:
        for batch in table.to_batches():
            target.write_batch(batch)


def _medians(
    ours: Callable[[], object], theirs: Callable[[], object], before: Callable[[], object] = lambda: None
) -> tuple[float, float]:
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(_ROUNDS):
        for run, spent in zip((ours, theirs), times, strict=True):
            before()
            start = _clock()
            run()
            spent.append(_clock() - start)
    return statistics.median(times[0]) * 1e3, statistics.median(times[1]) * 1e3


def _forget(*paths: Path) -> None:
    """Ask the system to drop files from its page cache."""
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)


def _measure(
    table: pa.Table, directory: Path, rng: np.random.Generator, version: str
) -> dict[str, tuple[float, float]]:
    ours, theirs = directory / "ours.lance", directory / "theirs.lance"
    rows = sorted(rng.choice(table.num_rows, min(_TAKEN, table.num_rows), replace=False).tolist())
    _write(LanceFileWriter, ours, table, version)  # compiles the kernels
    LanceFileReader(ours).take_rows(rows).to_table()
    result = {
        "write": _medians(
            lambda: _write(LanceFileWriter, ours, table, version),
            lambda: _write(lance.file.LanceFileWriter, theirs, table, version),
        ),
        "scan": _medians(
            lambda: LanceFileReader(ours).read_all(batch_size=_BATCH).to_table(),
            lambda: lance.file.LanceFileReader(str(theirs)).read_all(batch_size=_BATCH).to_table(),
        ),
    }
    if table.num_columns > 1:
        one = table.schema.names[:1]
        result["scan, one column"] = _medians(
            lambda: LanceFileReader(ours, columns=one).read_all(batch_size=_BATCH).to_table(),
            lambda: lance.file.LanceFileReader(str(theirs), columns=one).read_all(batch_size=_BATCH).to_table(),
        )
    warm, their_warm = LanceFileReader(ours), lance.file.LanceFileReader(str(theirs))
    result["take, warm"] = _medians(
        lambda: warm.take_rows(rows).to_table(), lambda: their_warm.take_rows(rows).to_table()
    )
    for name, before in (("take, cold", lambda: None), ("take, cold disk", lambda: _forget(ours, theirs))):
        result[name] = _medians(
            lambda: LanceFileReader(ours).take_rows(rows).to_table(),
            lambda: lance.file.LanceFileReader(str(theirs)).take_rows(rows).to_table(),
            before,
        )
    result["size, KB"] = (ours.stat().st_size / 1e3, theirs.stat().st_size / 1e3)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition(":")[0])
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--scale-factor", type=float, default=1.0, help="of TPC-H")
    parser.add_argument("--versions", nargs="+", default=_VERSIONS, choices=_VERSIONS)
    parser.add_argument("cases", nargs="*", metavar="case", help=f"of {', '.join(CASES)}, {_LINE_ITEMS}")
    parser.add_argument("--cpu", action="store_true", help="time of all processors: for machines with other work")
    arguments = parser.parse_args()
    if arguments.cpu:
        global _clock
        _clock = time.process_time
    print(f"{'':24}{'':5}{'':18}{'ours':>10}{'pylance':>10}{'ratio':>8}")
    for name in arguments.cases or [*CASES, _LINE_ITEMS]:
        rng = np.random.default_rng(0)
        table = _line_items(arguments.scale_factor) if name == _LINE_ITEMS else CASES[name](rng, arguments.rows)
        for version in arguments.versions:
            data = _without_null_structs(table) if version == "2.0" else table
            with tempfile.TemporaryDirectory() as directory:
                found = _measure(data, Path(directory), np.random.default_rng(1), version)
            for what, (ours, theirs) in found.items():
                print(f"{name:24}{version:5}{what:18}{ours:10.1f}{theirs:10.1f}{ours / theirs:8.2f}", flush=True)


if __name__ == "__main__":
    main()
