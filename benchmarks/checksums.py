"""The cost of checksums: scans and takes that compare them against those that do not, on one table in one process.

    python benchmarks/checksums.py [--rows N] [--rounds N]

Both work in turn; the least processor time and the least elapsed time of each are compared (with / without), and the
share of checksums in the bytes of the files is printed.
"""

from __future__ import annotations

import argparse
import math
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

import lance_format
from lance_format import LanceDataset
from lance_format.file import LanceFileReader

Run = Callable[[LanceDataset], object]


def _table(num_rows: int) -> pa.Table:
    rng = np.random.default_rng(0)
    return pa.table(
        {
            "double": rng.random(num_rows),
            "id": np.arange(num_rows),
            "number": rng.integers(0, 2**60, num_rows),
            "text": [f"some text {row * 7919}" for row in range(num_rows)],
            "small": rng.integers(0, 100, num_rows),
        }
    )


def _cases(names: list[str], num_rows: int) -> Iterator[tuple[str, Run]]:
    for columns in [[name] for name in names] + [names]:
        for size in (None, 100_000):
            large = "" if size is None else f", batches of {size:,}"
            yield (
                f"scan {', '.join(columns)}{large}",
                lambda dataset, columns=columns, size=size: _scan(dataset, columns, size),
            )
    rng = np.random.default_rng(1)
    for count in (1, 10, 100):
        rows = np.sort(rng.choice(num_rows, count, replace=False)).tolist()
        yield f"take {count}", lambda dataset, rows=rows: dataset.take(rows)


def _scan(dataset: LanceDataset, columns: list[str], batch_size: int | None) -> None:
    for _ in dataset.to_batches(columns, batch_size=batch_size):
        pass


def _checksum_bytes(path: Path) -> tuple[int, int]:
    """Return the bytes of checksums, and of the files."""
    sums = size = 0
    for file in (path / "data").iterdir():
        seal = LanceFileReader(file)._reader.seal
        assert seal is not None
        sums += 4 * seal.num_data_blocks + len(seal.end) - 40
        size += file.stat().st_size
    return sums, size


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition(":")[0])
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=25)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "table"
        table = _table(arguments.rows)
        lance_format.write_dataset(table, path)
        sums, size = _checksum_bytes(path)
        print(f"{'':52} {'processor':>9} {'elapsed':>9}")
        print(f"{'bytes':52} {sums / size:9.5f}")
        opened = [lance_format.dataset(path, verify_checksums=verify) for verify in (True, False)]
        for name, run in _cases(table.column_names, arguments.rows):
            for dataset in opened:  # Compiles kernels, and fills caches.
                run(dataset)
            rounds = arguments.rounds if name.startswith("scan") else 10 * arguments.rounds
            processor, elapsed = ([math.inf, math.inf] for _ in range(2))
            for number in range(2 * rounds):
                which = number % 2
                begun, start = time.process_time(), time.perf_counter()
                run(opened[which])
                elapsed[which] = min(elapsed[which], time.perf_counter() - start)
                processor[which] = min(processor[which], time.process_time() - begun)
            print(f"{name:52} {processor[0] / processor[1]:9.3f} {elapsed[0] / elapsed[1]:9.3f}", flush=True)


if __name__ == "__main__":
    main()
