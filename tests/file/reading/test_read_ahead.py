"""Rows that are read while those before them are used."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pyarrow as pa
import pytest

from lance_format.byte_io import ByteRange, RequestShape
from lance_format.errors import CorruptFileError
from lance_format.file import ColumnProjection, FileReader, LanceFileWriter, column_indices
from lance_format.object_store import resolve
from lance_format.object_store.memory import MemoryReader


class _Distant(MemoryReader):
    """A file that is read ahead; `threads` are those that read it."""

    request_shape = RequestShape(gap_bytes=0, max_bytes=1 << 20, reads_ahead=True)  # type: ignore[assignment]

    def __init__(self, data: bytes, fails_after: int = 1 << 60) -> None:
        super().__init__("memory://distant", data)
        self.threads: set[str] = set()
        self._left = fails_after

    @property
    def is_gone(self) -> bool:
        return self._left < 0

    def read_ranges(self, ranges: Sequence[ByteRange]) -> list[bytes]:
        self.threads.add(threading.current_thread().name)
        self._left -= 1
        if self.is_gone:
            raise CorruptFileError("the file is gone")
        return super().read_ranges(ranges)


NUM_ROWS = 40_000


@pytest.fixture(scope="module")
def table() -> pa.Table:
    """Return columns whose pages end at different rows."""
    numbers = range(NUM_ROWS)
    names = [f"bird {number}" * (number % 40) for number in numbers]
    return pa.table({"id": numbers, "name": names, "list": [[number] * (number % 3) for number in numbers]})


@pytest.fixture(scope="module")
def data(table: pa.Table) -> bytes:
    with LanceFileWriter("memory://near", data_cache_bytes=300_000) as writer:
        for batch in table.to_batches(max_chunksize=500):
            writer.write_batch(batch)
    return resolve("memory://near")[0].read("memory://near", 1 << 30)


def _open(source: _Distant) -> tuple[FileReader, list[ColumnProjection]]:
    reader = FileReader(source)
    indices = column_indices(reader.schema, reader.version)
    return reader, [ColumnProjection(field, indices) for field in reader.schema.fields]


@pytest.mark.parametrize("batch_size", [1000, 7777, 100_000])
def test_the_rows_are_the_same(table: pa.Table, data: bytes, batch_size: int) -> None:
    source = _Distant(data)
    reader, columns = _open(source)
    found = pa.Table.from_batches(reader.read(columns, 13, 39_990, batch_size=batch_size))
    assert found == table.slice(13, 39_977)
    assert ("lance-ahead" in source.threads) == (batch_size < 39_977)


def test_an_error_ahead_is_raised_where_its_rows_are_asked_for(data: bytes) -> None:
    whole = _Distant(data)
    reader, columns = _open(whole)
    num_rows = 0
    for calls in range(3, 60):
        source = _Distant(data, calls)
        try:
            reader, columns = _open(source)
            for batch in reader.read(columns, 0, NUM_ROWS, batch_size=1000):
                num_rows = max(num_rows, batch.num_rows)
        except CorruptFileError:
            assert source.is_gone
        else:
            break
    else:
        pytest.fail("more reads than expected")
    assert num_rows == 1000


def test_a_scan_that_is_given_up_leaves_nothing_waiting(data: bytes) -> None:
    reader, columns = _open(_Distant(data))
    batches = reader.read(columns, 0, NUM_ROWS, batch_size=1000)
    next(batches)
    batches.close()  # type: ignore[attr-defined]
