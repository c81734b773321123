"""Single rows of files of format 2.0 take the bytes that they need."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from lance_format.file import LanceFileWriter
from tests.file.counting import CountedFile

_ROWS = 200_000
_LISTS = np.arange(0, 5 * _ROWS + 1, 5, dtype=np.int32)
_COLUMNS = {
    "numbers": (pa.array(np.arange(_ROWS)), 8, 1),
    "nullable": (pa.array(np.arange(_ROWS), mask=np.arange(_ROWS) % 3 == 0), 9, 1),
    "strings": (pa.array([f"{row:010}" for row in range(_ROWS)]), 26, 2),
    "lists": (pa.ListArray.from_arrays(pa.array(_LISTS), pa.array(np.arange(5 * _ROWS))), 56, 2),
    "lists of strings": (
        pa.ListArray.from_arrays(pa.array(_LISTS), pa.array([f"{row % 1000:03}" for row in range(5 * _ROWS)])),
        16 + 48 + 15,
        3,
    ),
}


@pytest.mark.parametrize("name", _COLUMNS)
def test_a_row(name: str, tmp_path: Path) -> None:
    array, num_bytes, num_rounds = _COLUMNS[name]
    table = pa.table({"c": array})
    with LanceFileWriter(tmp_path / "f.lance", table.schema, version="2.0") as writer:
        writer.write_batch(table)
    file = CountedFile(tmp_path / "f.lance")
    file.take([1])
    found, requests, read = file.take([123_457])
    assert found.equals(table.slice(123_457, 1))
    assert read == num_bytes
    assert requests <= 2 * num_rounds
