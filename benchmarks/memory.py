"""Memory of writing a file from a stream, scanning it in batches, and taking rows from it.

    python benchmarks/memory.py [--gib N] [--directory PATH] [kind …]

For each kind of column a file of about N GiB (4 by default) is written, read and deleted. Every operation runs in a
separate process. The printed figure is its peak of resident memory above that after importing the library: for any size
of file it is to stay under 320 MiB. The exit status says whether it does.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_format.file import LanceFileReader, LanceFileWriter

_LIMIT_MIB = 320
_ROWS_A_BATCH = 8192
_TAKEN = 1000
Kind = Callable[[np.random.Generator, int], pa.Array]


def _strings(rng: np.random.Generator, rows: int) -> pa.Array:
    numbers = pa.array(rng.integers(0, 10**15, rows)).cast(pa.string())
    return pc.binary_join_element_wise("https://example.org/items", numbers, "and what there is to say of it", "/")


def _documents(rng: np.random.Generator, rows: int) -> pa.Array:
    size = rows // 64 * 4096
    noise = pa.py_buffer(rng.integers(32, 127, size, np.uint8))
    offsets = pa.py_buffer(np.arange(0, size + 1, 4096, dtype=np.int32))
    return pa.Array.from_buffers(pa.string(), rows // 64, [None, offsets, noise])


def _lists(rng: np.random.Generator, rows: int) -> pa.Array:
    offsets = np.concatenate([[0], np.cumsum(rng.integers(0, 30, rows))]).astype(np.int32)
    items = pa.array(rng.integers(0, 10**6, int(offsets[-1])).astype(np.int32))
    return pa.ListArray.from_arrays(pa.array(offsets), items)


def _structs(rng: np.random.Generator, rows: int) -> pa.Array:
    mask = pa.array(rng.random(rows) < 0.1)
    return pa.StructArray.from_arrays([pa.array(rng.random(rows)), _strings(rng, rows)], ["x", "s"], mask=mask)


KINDS: dict[str, Kind] = {
    "int64": lambda rng, rows: pa.array(rng.integers(-(2**62), 2**62, rows)),
    "small nullable int64": lambda rng, rows: pa.array(rng.integers(0, 1000, rows), mask=rng.random(rows) < 0.2),
    "strings": _strings,
    "few distinct strings": lambda rng, rows: pa.array(rng.integers(0, 50, rows)).cast(pa.string()),
    "documents of 4 KiB": _documents,
    "list<int32>": _lists,
    "structs": _structs,
    "vectors of 128 floats": lambda rng, rows: pa.FixedSizeListArray.from_arrays(
        pa.array(rng.random(rows // 8 * 128, np.float32)), 128
    ),
}
_MIXED = "all of them at once"


def _copied(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch that shares no memory with another, as those of a stream do not."""
    arrays = [pa.concat_arrays([column, column.slice(0, 0)]) for column in batch.columns]
    return pa.record_batch(arrays, schema=batch.schema)


def _batches(kind: str, size_bytes: int) -> Iterator[pa.RecordBatch]:
    """Yield batches of about 1 MiB until they have so many bytes in memory; the values of the first few repeat."""
    rng = np.random.default_rng(0)
    names = KINDS if kind == _MIXED else [kind]
    made = []
    for _ in range(2):
        arrays = [KINDS[name](rng, _ROWS_A_BATCH) for name in names]
        rows = min(map(len, arrays))
        made.append(_copied(pa.record_batch([array.slice(0, rows) for array in arrays], names=list(names))))
    written = 0
    while written < size_bytes:
        for batch in made:
            yield _copied(batch)
            written += batch.nbytes


def _write(path: Path, kind: str, size_bytes: int) -> None:
    batches = _batches(kind, size_bytes)
    first = next(batches)
    with LanceFileWriter(path, first.schema) as writer:
        writer.write_batch(first)
        for batch in batches:
            writer.write_batch(batch)


def _scan(path: Path, _kind: str, _size_bytes: int) -> None:
    for _ in LanceFileReader(path).read_all().to_batches():
        pass


def _take(path: Path, _kind: str, _size_bytes: int) -> None:
    reader = LanceFileReader(path)
    rows = np.sort(np.random.default_rng(0).choice(reader.num_rows(), _TAKEN))
    reader.take_rows(rows.tolist()).to_table()


OPERATIONS: dict[str, Callable[[Path, str, int], None]] = {"write": _write, "scan": _scan, "take 1,000 rows": _take}


def _memory(field: str) -> float:
    """Return a line of the process's status, in MiB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(field)).split()[1]) / 1024


def _measure(operation: str, path: Path, kind: str, size_bytes: int) -> dict[str, float]:
    """Run an operation in this process; Linux resets the peak on request."""
    Path("/proc/self/clear_refs").write_text("5")
    before = _memory("VmRSS")
    start = time.perf_counter()
    OPERATIONS[operation](path, kind, size_bytes)
    return {"mib": _memory("VmHWM") - before, "seconds": time.perf_counter() - start}


def _in_a_process_of_its_own(operation: str, path: Path, kind: str, size_bytes: int) -> dict[str, float]:
    command = [sys.executable, __file__, "--run", operation, "--directory", str(path), "--bytes", str(size_bytes), kind]
    result: dict[str, float] = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--gib", type=float, default=4)
    parser.add_argument("--directory", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--run", help=argparse.SUPPRESS)
    parser.add_argument("--bytes", type=int, help=argparse.SUPPRESS)
    parser.add_argument("kinds", nargs="*", metavar="kind", help=f"of {', '.join(KINDS)}, {_MIXED}")
    options = parser.parse_args()
    if options.run:
        print(json.dumps(_measure(options.run, options.directory, options.kinds[0], options.bytes)))
        return
    size_bytes = int(options.gib * 2**30)
    print(f"{'MiB above import':24}" + "".join(f"{operation:>18}" for operation in OPERATIONS), flush=True)
    highest = 0.0
    for kind in options.kinds or [*KINDS, _MIXED]:
        with tempfile.TemporaryDirectory(dir=options.directory) as directory:
            path = Path(directory) / "file.lance"
            found = [_in_a_process_of_its_own(name, path, kind, size_bytes) for name in OPERATIONS]
        highest = max(highest, *(one["mib"] for one in found))
        print(f"{kind:24}" + "".join(f"{one['mib']:10.0f} {one['seconds']:6.1f}s" for one in found), flush=True)
    sys.exit(highest > _LIMIT_MIB)


if __name__ == "__main__":
    main()
