"""Tables of very many fragments and versions: what their metadata costs, ours and pylance's.

    python benchmarks/scale.py [--fragments N …] [--columns N] [--versions N]

The fragments are simulated: all name one data file of 1,000 rows, so that a table has a real manifest of any size. Each
line comes from a process that did the same with a small table before: elapsed seconds, seconds of processors, and the
growth of the peak of resident memory. Opening includes counting the rows. Planning divides a scan into partitions of
a Spark job, and pickles them as Spark does.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa

import lance_format
from lance_format.table.transaction.operations import Append

_ROWS = 1000
_PROGRAM = """
import json, pickle, sys, time
import {library} as library
import pyarrow as pa

def peak():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) / 1024

{run}

*small, large = sys.argv[1:]
for path in small:
    run(path)
before, start, used = peak(), time.perf_counter(), time.process_time()
run(large)
print(json.dumps([time.perf_counter() - start, time.process_time() - used, peak() - before]))
"""
_OPEN = """
def run(path):
    library.dataset(path).count_rows()
"""
_TAKE = """
def run(path):
    table = library.dataset(path)
    table.take([table.count_rows() // 2], columns=["c0"])
"""
_APPEND = """
def run(path):
    row = pa.table({name: [1] for name in library.dataset(path, version=1).schema.names})
    library.write_dataset(row, path, mode="append")
"""
_PLAN = """
from connector.options.options import LanceOptions
from connector.read.reader import LanceReader
from connector.types.schemas import to_spark_schema

def run(path):
    schema = to_spark_schema(library.dataset(path, version=1).schema)
    pickle.dumps(LanceReader(LanceOptions.parse({"path": path}), schema).partitions())
"""
_LIST = """
def run(path):
    library.dataset(path).versions()
"""
_OF_FRAGMENTS = {"open": _OPEN, "take a row": _TAKE, "append a row": _APPEND, "plan a Spark job": _PLAN}
_OF_VERSIONS = {"open": _OPEN, "list": _LIST, "append a row": _APPEND}


def _simulate(path: str, fragments: int, columns: int) -> None:
    """Create a table whose fragments all name one file."""
    numbers = pa.array(range(_ROWS))
    lance_format.write_dataset(pa.table({f"c{index}": numbers for index in range(columns)}), path)
    table = lance_format.dataset(path)._table
    (fragment,) = table.manifest.fragments
    table.commit(Append((fragment,) * (fragments - 1)))


def _measure(library: str, run: str, paths: Sequence[str]) -> tuple[float, float, float]:
    program = _PROGRAM.replace("{library}", library).replace("{run}", run)
    done = subprocess.run([sys.executable, "-c", program, *paths], check=True, capture_output=True, text=True)
    seconds, used, mib = json.loads(done.stdout)
    return seconds, used, mib


def _print(paths: Sequence[str], programs: Mapping[str, str]) -> None:
    for name, run in programs.items():
        cells = [f"    {name:36}"]
        for library in ("lance_format", "lance"):
            if run is not _PLAN or library == "lance_format":
                seconds, used, mib = _measure(library, run, paths)
                cells.append(f"{seconds:10.3f} s {used:8.3f} s {mib:6.0f} MiB")
        print("".join(cells), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition(":")[0])
    parser.add_argument("--fragments", type=int, nargs="*", default=[1_000, 10_000, 100_000])
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--versions", type=int, default=10_000)
    arguments = parser.parse_args()
    print(f"{'':40}{'ours: elapsed, processor, memory':>34}{'pylance':>34}")
    with tempfile.TemporaryDirectory() as directory:
        small = str(Path(directory) / "small")
        _simulate(small, 2, arguments.columns)
        for count in arguments.fragments:
            path = str(Path(directory) / f"{count}")
            _simulate(path, count, arguments.columns)
            manifest = max(file.stat().st_size for file in Path(path, "_versions").iterdir())
            print(f"{count} fragments, a manifest of {manifest / 2**20:.1f} MiB, {manifest / count:.0f} bytes for each")
            _print((small, path), _OF_FRAGMENTS)
        path = str(Path(directory) / "versions")
        table = lance_format.write_dataset(pa.table({"c0": [0]}), path)
        for number in range(arguments.versions - 1):
            table.update_config({"n": str(number)})
        print(f"{arguments.versions} versions")
        _print((small, path), _OF_VERSIONS)


if __name__ == "__main__":
    main()
