"""Changes a table in an object store, in children that others kill: `python -m tests.table.versions.s3_kill_worker`.

Each line of the input is `[operation, uri, storage options]` as JSON, and each line of the output the id of the child,
then its exit status. This process never uses an object store, so that its children can.
"""

import json
import os
import sys
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow as pa

import lance_format
from lance_format.object_store import cloud_store

SMALLEST_PART = 5 * 1024 * 1024


def large_rows() -> pa.Table:
    """Return two rows whose file takes three parts to upload."""
    values = [np.random.default_rng(seed).bytes(SMALLEST_PART + 100) for seed in (0, 1)]
    return pa.table({"a": [100, 101], "s": pa.array(values, pa.binary())})


OPERATIONS: dict[str, Callable[[str, dict[str, str]], object]] = {
    "append": lambda uri, options: lance_format.write_dataset(
        large_rows(), uri, mode="append", storage_options=options
    ),
    "delete": lambda uri, options: lance_format.dataset(uri, storage_options=options).delete("a % 3 = 0"),
    "compaction": lambda uri, options: lance_format.dataset(uri, storage_options=options).optimize.compact_files(),
    "cleanup": lambda uri, options: lance_format.dataset(uri, storage_options=options).cleanup_old_versions(
        timedelta(0), delete_unverified=True
    ),
}


def create(uri: str, options: dict[str, str] | None = None) -> None:
    """Create a table of three versions, whose files an append, a deletion and a compaction change."""
    rows = {"a": list(range(20)), "s": pa.array([b"x"] * 20)}
    lance_format.write_dataset(rows, uri, max_rows_per_file=10, storage_options=options)
    lance_format.write_dataset({"a": [20], "s": [b"y"]}, uri, mode="append", storage_options=options)
    lance_format.dataset(uri, storage_options=options).delete("a = 13")


def main() -> None:
    cloud_store._PART_BYTES = SMALLEST_PART
    for name, operation in OPERATIONS.items():  # Children inherit the compiled kernels.
        create(f"memory://{name}")
        operation(f"memory://{name}", {})
    for line in sys.stdin:
        name, uri, options = json.loads(line)
        child = os.fork()
        if child == 0:
            run(name, uri, options)
        print(child, flush=True)
        print(os.waitpid(child, 0)[1], flush=True)


def run(name: str, uri: str, options: dict[str, Any]) -> None:
    status = 1
    try:
        OPERATIONS[name](uri, options)
        status = 0
    except BaseException as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
    finally:
        os._exit(status)


if __name__ == "__main__":
    main()
