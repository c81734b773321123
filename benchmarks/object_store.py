"""Time and requests of operations on a table in S3, of this library and of pylance.

    python -m benchmarks.object_store --latency-ms 30
    python -m benchmarks.object_store --files 100 --latency-ms 30
    python -m benchmarks.object_store --scans-gib 0.1 --latency-ms 30
    python -m benchmarks.object_store --scans-gib 4 --max-rows-per-file 1000000

Both use the same server on this machine, behind a proxy that delays each request. Each operation opens the table again,
and is run several times; the shortest time counts. With `--files` operations on all of many small files are run once,
one after the other on one table. With `--scans-gib` a table of this size is scanned instead, of one file and of fifty,
or of files of some rows. The server is one of files then, which is no slower than its readers. Each
library scans in a separate process, whose first scan loads its code. The shortest of the other times counts, and the
peak of resident memory above that after the import of the library.
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import itertools
import math
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa

import lance_format
from benchmarks.file_server import serving
from tests.proxies import Proxy
from tests.servers import s3, s3_options

NUM_ROWS = 50_000
NUM_COLUMNS = 50
Operation = Callable[[Any, Any, str, dict[str, str]], object]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--latency-ms", type=float, default=30.0)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--files", type=int, help="measure operations on a table of so many files")
    parser.add_argument("--scans-gib", type=float, help="measure scans of so many GiB")
    parser.add_argument("--max-rows-per-file", type=int, help="the size of the files of these scans")
    parser.add_argument("--scan", nargs=3, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.scan:
        scan(*asked.scan, asked.runs)
    elif asked.scans_gib:
        compare_scans(asked)
    elif asked.files:
        rows = pa.table({"id": np.arange(100 * asked.files), "text": [f"text {n}" for n in range(100 * asked.files)]})
        compare(rows, OPERATIONS_ON_ALL, asked.latency_ms, 1, max_rows_per_file=100, enable_stable_row_ids=True)
    else:
        compare(make_data(), OPERATIONS, asked.latency_ms, asked.runs)


def compare(
    data: pa.Table, operations: dict[str, Operation], latency_ms: float, runs: int, **settings: int | bool
) -> None:
    with s3() as server:
        proxy = Proxy(server.endpoint)
        with proxy.running():
            options = s3_options(proxy.endpoint)
            found = []
            for library in (lance_format, lance):
                uri = server.new_root()
                library.write_dataset(data, uri, storage_options=options, **settings)
                proxy.latency_seconds = latency_ms / 1000
                found.append([measure(proxy, library, uri, options, each, runs) for each in operations.values()])
                proxy.latency_seconds = 0
    columns = f"{'ms':>8}{'requests':>10}{'MiB':>8}"
    print(f"{'operation':<22}{columns}   pylance {columns}{'ratio':>8}")
    ratios = []
    for name, ours, theirs in zip(operations, *found, strict=True):
        ratios.append(ours[0] / theirs[0])
        print(f"{name:<22}{shown(ours)}           {shown(theirs)}{ratios[-1]:>8.2f}")
    print(f"geometric mean of the ratios: {math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f}")


def compare_scans(asked: argparse.Namespace) -> None:
    """Print the times and the memory of scans of whole tables."""
    batch_rows = 65_536
    random = np.random.default_rng(0)
    columns = {
        "id": random.integers(-(2**62), 2**62, batch_rows),
        "text": pa.array(random.integers(0, 10**15, batch_rows)).cast(pa.string()),
        "vector": pa.FixedSizeListArray.from_arrays(pa.array(random.random(batch_rows * 32, np.float32)), 32),
    }
    batch = pa.record_batch(columns)
    num_batches = max(1, int(asked.scans_gib * 2**30 / batch.nbytes))
    sizes = (asked.max_rows_per_file,) if asked.max_rows_per_file else (2**31, num_batches * batch_rows // 50)
    with tempfile.TemporaryDirectory(prefix="lance-benchmark-") as directory:
        for size in sizes:
            reader = pa.RecordBatchReader.from_batches(batch.schema, itertools.repeat(batch, num_batches))
            table = lance_format.write_dataset(
                reader, f"{directory}/bucket/{size}", max_rows_per_file=size, max_bytes_per_file=2**40
            )
            print(f"{asked.scans_gib} GiB in {len(table.get_fragments())} files")
            with serving(Path(directory), asked.latency_ms) as endpoint:
                for library in ("lance_format", "lance"):
                    command = [sys.executable, "-m", "benchmarks.object_store", "--runs", str(asked.runs)]
                    command += ["--scan", library, f"s3://bucket/{size}", endpoint]
                    subprocess.run(command, check=True)
            shutil.rmtree(f"{directory}/bucket/{size}")


def scan(library: str, uri: str, endpoint: str, runs: int) -> None:
    """Scan a table in this process."""
    table = importlib.import_module(library).dataset(uri, storage_options=s3_options(endpoint))
    Path("/proc/self/clear_refs").write_text("5")  # Linux forgets the peak.
    before, found = resident_mib("VmRSS"), []
    for _ in range(runs + 1):
        start, begun = time.perf_counter(), time.process_time()
        num_rows = sum(batch.num_rows for batch in table.to_batches())
        found.append((time.perf_counter() - start, time.process_time() - begun))
    seconds, cpu_seconds = min(found[1:])
    peak = resident_mib("VmHWM") - before
    print(
        f"  {library:<13}{num_rows:>12} rows{seconds:>8.2f} s ({cpu_seconds:.2f} s of CPU){peak:>8.0f} MiB", flush=True
    )


def resident_mib(field: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(field)).split()[1]) / 1024


def make_data() -> pa.Table:
    random = np.random.default_rng(0)
    columns = {f"c{number}": random.random(NUM_ROWS) for number in range(NUM_COLUMNS - 1)}
    return pa.table({"id": np.arange(NUM_ROWS), **columns})


def measure(
    proxy: Proxy, library: Any, uri: str, options: dict[str, str], operation: Operation, runs: int
) -> tuple[float, int, int]:
    """Return the shortest time in seconds, and the requests and bytes of that run."""
    found = []
    for _ in range(runs):
        table = library.dataset(uri, storage_options=options)
        proxy.requests.clear()
        start = time.perf_counter()
        operation(library, table, uri, options)
        seconds = time.perf_counter() - start
        size = sum(request.num_sent + request.num_received for request in proxy.requests)
        found.append((seconds, len(proxy.requests), size))
    return min(found)


def shown(measured: tuple[float, int, int]) -> str:
    seconds, requests, size = measured
    return f"{seconds * 1000:>8.0f}{requests:>10}{size / 2**20:>8.2f}"


def _append(library: Any, _table: Any, uri: str, options: dict[str, str]) -> object:
    columns = {"id": [1], **{f"c{number}": [0.5] for number in range(NUM_COLUMNS - 1)}}
    return library.write_dataset(pa.table(columns), uri, mode="append", storage_options=options)


THOUSAND = np.random.default_rng(1).choice(NUM_ROWS, 1000, replace=False).tolist()
OPERATIONS: dict[str, Operation] = {
    "open": lambda library, _, uri, options: library.dataset(uri, storage_options=options),
    "lookup of a row": lambda _library, table, _uri, _options: table.take([12_345]),
    "lookup of 1,000 rows": lambda _library, table, _uri, _options: table.take(THOUSAND, columns=["id", "c1"]),
    "one of 50 columns": lambda _library, table, _uri, _options: table.to_table(columns=["c7"]),
    "all columns": lambda _library, table, _uri, _options: table.to_table(),
    "append": _append,
    "delete": lambda _library, table, _uri, _options: table.delete("id = 77"),
}


def _merge(_library: Any, table: Any, _uri: str, _options: dict[str, str]) -> object:
    merge = table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    return merge.execute(pa.table({"id": [503, 10**8], "text": ["changed", "new"]}))


OPERATIONS_ON_ALL: dict[str, Operation] = {
    "scan": lambda _library, table, _uri, _options: table.to_table(),
    "count": lambda _library, table, _uri, _options: table.count_rows("id > 50"),
    "data_stats": lambda _library, table, _uri, _options: table.stats.data_stats(),
    "validate": lambda _library, table, _uri, _options: table.validate(),
    "deep_clone": lambda _library, table, uri, options: table.deep_clone(
        f"{uri}-copy", table.version, storage_options=options
    ),
    "delete": lambda _library, table, _uri, _options: table.delete("id % 10 = 5"),
    "BTREE": lambda _library, table, _uri, _options: table.create_scalar_index("id", "BTREE"),
    "ZONEMAP": lambda _library, table, _uri, _options: table.create_scalar_index("id", "ZONEMAP", name="zones"),
    "INVERTED": lambda _library, table, _uri, _options: table.create_scalar_index("text", "INVERTED"),
    "a row by the BTREE": lambda _library, table, _uri, _options: table.to_table(filter="id = 77"),
    "take 80 rows": lambda _library, table, _uri, _options: table.take(list(range(0, 8000, 100))),
    "merge": _merge,
    "update": lambda _library, table, _uri, _options: table.update({"text": "'new'"}, where="id % 100 = 9"),
    "add a column": lambda _library, table, _uri, _options: table.add_columns({"more": "id + 1"}),
    "compact": lambda _library, table, _uri, _options: table.optimize.compact_files(),
    "cleanup": lambda _library, table, _uri, _options: table.cleanup_old_versions(datetime.timedelta(0)),
}


if __name__ == "__main__":
    main()
