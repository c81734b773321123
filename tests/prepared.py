"""Imports both libraries, and loads the kernels that tables of few rows take: imported by the server of processes."""

import tempfile
import warnings

import lance  # noqa: F401
import pyarrow as pa

import lance_format

# It has not been used yet, so that it has no threads.
warnings.filterwarnings("ignore", "lance is not fork-safe", UserWarning)

lance_format.prepare_compiler()
with tempfile.TemporaryDirectory() as _directory:
    _table = lance_format.write_dataset(
        pa.table({"a": range(100), "s": ["row"] * 100, "n": [0] * 100}), f"{_directory}/t", max_rows_per_file=50
    )
    _table.delete("a % 3 = 0")
    _table.update({"n": "n + 1"}, "a = 1")
    _table.to_table(columns=["a", "s"], filter="a > 1")
    _table.optimize.compact_files()
