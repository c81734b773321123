"""Bytes that queries read of the data files of a table, including footers, as shares of those of a full scan.

    python benchmarks/bytes_read.py [--fragments N] [--rows N] [--keep DIRECTORY]

The table has 50 columns of 8 bytes, `id` in order and the others random, in fragments of so many rows; by default it is
4 GiB. Every query opens the table again, with an empty cache.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import lance_format

_NUM_COLUMNS = 50


def _make(path: Path, num_fragments: int, num_rows: int) -> None:
    rng = np.random.default_rng(0)
    for fragment in range(num_fragments):
        columns = {"id": np.arange(fragment * num_rows, (fragment + 1) * num_rows)}
        columns |= {f"value{index}": rng.random(num_rows) for index in range(1, _NUM_COLUMNS - 1)}
        columns["key"] = rng.integers(0, 2**62, num_rows)
        lance_format.write_dataset(pa.table(columns), path, mode="append" if fragment else "create")


def _queries(num_fragments: int, num_rows: int) -> dict[str, dict[str, Any]]:
    middle = num_fragments * num_rows // 2
    address = (num_fragments // 2 << 32) + num_rows // 3
    return {
        "all columns of all rows": {},
        "1 of 50 columns": {"columns": ["value7"]},
        "a row by a clustered key": {"filter": f"id = {middle}"},
        "0.1 % of the rows by a clustered key": {"filter": f"id BETWEEN {middle} AND {middle + middle // 500}"},
        "a row by a random key, which is read": {"filter": f"key = {2**61}"},
        "a row by its id": {"filter": f"_rowid = {address}"},
        "a column of a row by its id": {"columns": ["value7"], "filter": f"_rowid = {address}"},
    }


def main() -> None:
    """Run the queries."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fragments", type=int, default=100)
    parser.add_argument("--rows", type=int, default=107_375, help="of each fragment")
    parser.add_argument("--keep", type=Path, help="where the table is, or is to stay")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        path = asked.keep or Path(scratch) / "table"
        if not path.exists():
            _make(path, asked.fragments, asked.rows)
        whole = 0
        for name, options in _queries(asked.fragments, asked.rows).items():
            scanner = lance_format.dataset(path).scanner(**options)
            num_rows = sum(batch.num_rows for batch in scanner.to_batches())
            found = scanner.metrics
            if found is None:
                raise AssertionError("a scan that has ended has metrics")
            whole = whole or found.bytes_read
            share = found.bytes_read / whole
            print(f"{name:38}{num_rows:12,} rows{found.bytes_read:15,} bytes {share:9.3%}", flush=True)


if __name__ == "__main__":
    main()
