"""The amount that a scan reads ahead."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from lance_format.byte_io import FILE_REQUESTS, ByteRange
from lance_format.file import ColumnProjection, FileReader, LanceFileWriter, Verification, column_indices
from lance_format.structural import page

_COLUMNS = 16
_ANSWER_BYTES = 64 * 1024


class Counting:
    """A `RangeReader` that counts the bytes read of pages."""

    request_shape = FILE_REQUESTS

    def __init__(self, path: Path) -> None:
        self._data = path.read_bytes()
        self.path = str(path)
        self.size_bytes = len(self._data)
        self.bytes_read = 0

    def read_ranges(self, ranges: Sequence[ByteRange]) -> list[bytes]:
        self.bytes_read += sum(wanted.size for wanted in ranges)
        return [self._data[wanted.offset : wanted.end] for wanted in ranges]

    def close(self) -> None:
        """Do nothing."""


def test_what_is_read_ahead_does_not_grow_with_the_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "_ANSWER_BYTES", _ANSWER_BYTES)
    rng = np.random.default_rng(0)
    table = pa.table({f"c{index}": rng.integers(-(2**62), 2**62, 20_000) for index in range(_COLUMNS)})
    with LanceFileWriter(tmp_path / "f.lance") as writer:
        writer.write_batch(table)
    source = Counting(tmp_path / "f.lance")
    reader = FileReader(source, verification=Verification(is_wanted=False))
    columns = [ColumnProjection(field, column_indices(reader.schema, reader.version)) for field in reader.schema.fields]
    before = source.bytes_read
    batches = reader.read(columns, 0, reader.num_rows, batch_size=100)
    first = next(batches)
    assert source.bytes_read - before < 3 * _ANSWER_BYTES + _COLUMNS * 8 * 1024
    assert pa.Table.from_batches([first, *batches]).equals(table)
