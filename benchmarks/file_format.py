"""Files, ours against pylance's, on the same data in one process.

    python benchmarks/file_format.py [--rows N] [--scale-factor X] [--versions 2.0 2.1 2.2] [case …]

Both write and read in turn, at least seven times and for half a second; the shortest times in milliseconds on the clock
and their ratio (ours / pylance's, below 1 is faster or smaller) are printed, and the ratio of the time of processors.
Ratios of several cases are followed by their geometric means. We sync what we write to the disk, pylance does not; that
is in our time of writing. A second line of writing has pylance's file and directory synced as well.

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
from typing import TypeAlias

import lance.file
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lance_format.file import LanceFileReader, LanceFileWriter

_VERSIONS = ["2.0", "2.1", "2.2"]
_ROUNDS = 7
_LEAST_SECONDS = 0.5
_TAKEN = 1000
_BATCH = 65_536
_TEXT = "number %d, " + "and what there is to say about it, " * 12
Case = Callable[[np.random.Generator, int], pa.Table]


def _strings(values: np.ndarray, make: str) -> pa.Array:
    return pa.array([make % value for value in values.tolist()])


def _decimals(values: np.ndarray) -> pa.Array:
    """Return amounts of money, `decimal(15, 2)`."""
    words = np.stack([values, values >> 63], axis=1)
    return pa.Array.from_buffers(pa.decimal128(15, 2), len(values), [None, pa.py_buffer(words)])


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
    "runs of int64": lambda rng, rows: pa.table({"c": np.repeat(rng.integers(0, 10**6, rows // 50 + 1), 50)[:rows]}),
    "dates": lambda rng, rows: pa.table(
        {"c": pa.array(rng.integers(8000, 11_000, rows).astype(np.int32), pa.date32())}
    ),
    "decimals": lambda rng, rows: pa.table({"c": _decimals(rng.integers(0, 10**7, rows))}),
    "bool": lambda rng, rows: pa.table({"c": rng.random(rows) < 0.5}),
    "random float64": lambda rng, rows: pa.table({"c": rng.random(rows)}),
    "short strings": lambda rng, rows: pa.table({"c": _strings(rng.integers(0, 10**7, rows), "value-%d")}),
    "long strings": lambda rng, rows: pa.table({"c": _strings(rng.integers(0, 10**7, rows // 20), _TEXT)}),
    "few distinct strings": lambda rng, rows: pa.table({"c": _strings(rng.integers(0, 50, rows), "category-%d")}),
    "few long strings": lambda rng, rows: pa.table({"c": _strings(rng.integers(0, 100, rows // 20), _TEXT)}),
    "sorted strings": lambda rng, rows: pa.table({"c": _strings(np.sort(rng.integers(0, 10**5, rows)), "value-%07d")}),
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


def _write(writer: type, path: Path, table: pa.Table, version: str) -> None:
    with writer(str(path), table.schema, version=version) as target:
        for batch in table.to_batches():
            target.write_batch(batch)


Measured: TypeAlias = tuple[float, float, float]
"""Our figure and pylance's, and the ratio of the time of processors."""


def _compare(
    ours: Callable[[], object], theirs: Callable[[], object], before: Callable[[], object] = lambda: None
) -> Measured:
    """Return the shortest times on the clock, and the ratio of those of processors."""
    times: tuple[list[float], list[float]] = ([], [])
    busy: tuple[list[float], list[float]] = ([], [])
    began = time.perf_counter()
    while len(times[0]) < _ROUNDS or time.perf_counter() - began < _LEAST_SECONDS:
        for run, spent, worked in zip((ours, theirs), times, busy, strict=True):
            before()
            start, start_of_work = time.perf_counter(), time.process_time()
            run()
            spent.append(time.perf_counter() - start)
            worked.append(time.process_time() - start_of_work)
    return min(times[0]) * 1e3, min(times[1]) * 1e3, min(busy[0]) / min(busy[1])


def _write_synced(path: Path, table: pa.Table, version: str) -> None:
    """Write by pylance, and sync the file and its directory as ours does."""
    _write(lance.file.LanceFileWriter, path, table, version)
    for written in (path, path.parent):
        descriptor = os.open(written, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _forget(*paths: Path) -> None:
    """Ask the system to drop files from its page cache."""
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)


def _measure(table: pa.Table, directory: Path, rng: np.random.Generator, version: str) -> dict[str, Measured]:
    ours, theirs = directory / "ours.lance", directory / "theirs.lance"
    rows = sorted(rng.choice(table.num_rows, min(_TAKEN, table.num_rows), replace=False).tolist())
    _write(LanceFileWriter, ours, table, version)  # compiles the kernels
    LanceFileReader(ours).take_rows(rows).to_table()
    result = {
        "write": _compare(
            lambda: _write(LanceFileWriter, ours, table, version),
            lambda: _write(lance.file.LanceFileWriter, theirs, table, version),
        ),
        "write, both synced": _compare(
            lambda: _write(LanceFileWriter, ours, table, version), lambda: _write_synced(theirs, table, version)
        ),
        "scan": _compare(
            lambda: LanceFileReader(ours).read_all(batch_size=_BATCH).to_table(),
            lambda: lance.file.LanceFileReader(str(theirs)).read_all(batch_size=_BATCH).to_table(),
        ),
    }
    if table.num_columns > 1:
        one = table.schema.names[:1]
        result["scan, one column"] = _compare(
            lambda: LanceFileReader(ours, columns=one).read_all(batch_size=_BATCH).to_table(),
            lambda: lance.file.LanceFileReader(str(theirs), columns=one).read_all(batch_size=_BATCH).to_table(),
        )
    warm, their_warm = LanceFileReader(ours), lance.file.LanceFileReader(str(theirs))
    result["take, warm"] = _compare(
        lambda: warm.take_rows(rows).to_table(), lambda: their_warm.take_rows(rows).to_table()
    )
    for name, before in (("take, cold", lambda: None), ("take, cold disk", lambda: _forget(ours, theirs))):
        result[name] = _compare(
            lambda: LanceFileReader(ours).take_rows(rows).to_table(),
            lambda: lance.file.LanceFileReader(str(theirs)).take_rows(rows).to_table(),
            before,
        )
    sizes = ours.stat().st_size / 1e3, theirs.stat().st_size / 1e3
    result["size, KB"] = (*sizes, sizes[0] / sizes[1])
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition(":")[0])
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--scale-factor", type=float, default=1.0, help="of TPC-H")
    parser.add_argument("--versions", nargs="+", default=_VERSIONS, choices=_VERSIONS)
    parser.add_argument("cases", nargs="*", metavar="case", help=f"of {', '.join(CASES)}, {_LINE_ITEMS}")
    arguments = parser.parse_args()
    ratios: dict[tuple[str, str], list[float]] = {}
    print(f"{'':24}{'':5}{'':20}{'ours':>10}{'pylance':>10}{'ratio':>8}{'of CPU':>8}")
    for name in arguments.cases or [*CASES, _LINE_ITEMS]:
        rng = np.random.default_rng(0)
        table = _line_items(arguments.scale_factor) if name == _LINE_ITEMS else CASES[name](rng, arguments.rows)
        for version in arguments.versions:
            data = _without_null_structs(table) if version == "2.0" else table
            with tempfile.TemporaryDirectory() as directory:
                found = _measure(data, Path(directory), np.random.default_rng(1), version)
            for what, (ours, theirs, work) in found.items():
                ratio = ours / theirs
                if name != _LINE_ITEMS:
                    ratios.setdefault((version, what), []).append(ratio)
                print(f"{name:24}{version:5}{what:20}{ours:10.2f}{theirs:10.2f}{ratio:8.2f}{work:8.2f}", flush=True)
    for (version, what), found_ratios in ratios.items():
        mean = statistics.geometric_mean(found_ratios)
        print(f"{'geometric mean':24}{version:5}{what:20}{'':20}{mean:8.2f}")


if __name__ == "__main__":
    main()
