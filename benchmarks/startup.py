"""The cost of the library at the start of a process, and of the first decode.

    python benchmarks/startup.py

Processes are started one after the other; medians in milliseconds are printed. Importing the library is to add under 50
ms to importing pyarrow and numpy, and the first decode in a process, its kernels compiled by an earlier one, under 300
ms. The exit status says whether they do.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

_IMPORT = """
import time
import numpy, pyarrow
start = time.perf_counter()
import {module}
print((time.perf_counter() - start) * 1e3)
"""
_DECODE = """
import sys, time
from lance_format.file import LanceFileReader
start = time.perf_counter()
LanceFileReader(sys.argv[1]).read_all().to_table()
print((time.perf_counter() - start) * 1e3)
"""
_AGAIN = """
import sys, time
from lance_format.file import LanceFileReader
LanceFileReader(sys.argv[1]).read_all().to_table()
start = time.perf_counter()
LanceFileReader(sys.argv[1]).read_all().to_table()
print((time.perf_counter() - start) * 1e3)
"""
_WRITE = """
import sys
import numpy as np, pyarrow as pa
from lance_format.file import LanceFileWriter
rows = np.arange(10_000)
texts = [f"https://example.org/{row}" for row in rows]
table = pa.table({"n": rows, "x": rows / 7, "s": texts, "l": [[1, 2]] * 10_000})
with LanceFileWriter(sys.argv[1]) as writer:
    writer.write_batch(table)
"""
_LIMITS = {"import lance_format": 50.0, "first decode": 300.0}


def _run(program: str, path: Path) -> str:
    return subprocess.run([sys.executable, "-c", program, str(path)], check=True, capture_output=True, text=True).stdout


def _median(program: str, path: Path, runs: int) -> float:
    _run(program, path)  # warms the disk, and the cache of compiled kernels
    return statistics.median(float(_run(program, path)) for _ in range(runs))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "file.lance"
        _run(_WRITE, path)
        found = {
            "import lance_format": _median(_IMPORT.format(module="lance_format"), path, options.runs),
            "import lance": _median(_IMPORT.format(module="lance"), path, options.runs),
            "first decode": _median(_DECODE, path, options.runs),
            "second decode": _median(_AGAIN, path, options.runs),
        }
    for name, milliseconds in found.items():
        limit = f"   at most {_LIMITS[name]:.0f}" if name in _LIMITS else ""
        print(f"{name:24}{milliseconds:8.1f} ms{limit}")
    sys.exit(any(found[name] > limit for name, limit in _LIMITS.items()))


if __name__ == "__main__":
    main()
