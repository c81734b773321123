"""Rows that are read while those before them are used."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Generator, Iterator, Sequence

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_format.byte_io import ByteRange, RequestShape
from lance_format.errors import CorruptFileError
from lance_format.file import ColumnProjection, FileReader, LanceFileWriter, column_indices
from lance_format.file.reading import row_range
from lance_format.object_store import resolve
from lance_format.object_store.memory import MemoryReader
from lance_format.structural import page


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
    with LanceFileWriter("memory://near", data_cache_bytes=300_000, checksums=False) as writer:
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


def test_no_request_begins_after_a_scan_was_given_up(data: bytes) -> None:
    source = _Held(data)
    reader, columns = _open(source)
    batches = reader.read(columns, 0, NUM_ROWS, batch_size=1000)
    source.hold()
    next(batches)
    assert source.arrived.wait(60)  # The thread is within a request.
    batches.close()  # type: ignore[attr-defined]
    ahead = [thread for thread in threading.enumerate() if thread.name == "lance-ahead"]
    assert ahead
    number = len(source.requests)
    source.release()
    for thread in ahead:
        thread.join(60)
        assert not thread.is_alive()
    assert len(source.requests) == number


def test_several_parts_are_read_at_once(data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """As far as memory permits. The table of chunks of a page that is read in pieces is read once."""
    monkeypatch.setattr(page, "_ANSWER_BYTES", 64 * 1024)
    monkeypatch.setattr(row_range, "_HELD_BYTES", 256 * 1024)
    source = _Held(data)
    reader, columns = _open(source)
    source.requests.clear()
    batches = reader.read(columns, 0, NUM_ROWS, batch_size=100)
    source.hold()
    first = next(batches)
    waiting = [thread for thread in threading.enumerate() if thread.name == "lance-ahead"]
    assert 2 <= len(waiting) <= 16
    source.release()
    found = pa.Table.from_batches([first, *batches])
    assert found.num_rows == NUM_ROWS
    for known in itertools.chain.from_iterable(map(reader.pages, range(3))):
        table = min(known.buffers, key=lambda buffer: buffer.size).offset
        assert sum(request.offset <= table < request.end for request in source.requests) == 1


class _Held(_Distant):
    """A file whose ranges wait, once `hold` was called, on the thread that reads ahead."""

    request_shape = RequestShape(gap_bytes=0, max_bytes=1, reads_ahead=True)  # type: ignore[assignment]

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.requests: list[ByteRange] = []
        self.arrived = threading.Event()
        self._free = threading.Event()
        self._free.set()

    def hold(self) -> None:
        self._free.clear()

    def release(self) -> None:
        self._free.set()

    def stream_ranges(self, ranges: Sequence[ByteRange]) -> Generator[bytes, None, None]:
        for wanted in ranges:
            self.requests.append(wanted)
            if threading.current_thread().name == "lance-ahead":
                self.arrived.set()
                assert self._free.wait(60)
            yield super().read_ranges([wanted])[0]


@settings(max_examples=30)
@given(
    start=st.integers(0, NUM_ROWS - 1),
    num_rows=st.integers(1, NUM_ROWS),
    batch_size=st.sampled_from([700, 4096, 30_000]),
    num_batches=st.integers(1, 60),
)
def test_a_scan_of_any_range_may_be_given_up_anywhere(
    table: pa.Table, data: bytes, start: int, num_rows: int, batch_size: int, num_batches: int
) -> None:
    stop = min(start + num_rows, NUM_ROWS)
    reader, columns = _open(_Distant(data))
    batches = reader.read(columns, start, stop, batch_size=batch_size)
    found = list(itertools.islice(batches, num_batches))
    batches.close()  # type: ignore[attr-defined]
    assert pa.Table.from_batches(found) == table.slice(start, min(stop - start, num_batches * batch_size))


@pytest.mark.parametrize("damaged", range(3))
@pytest.mark.parametrize("batch_size", [700, 4096])
@pytest.mark.parametrize("position", [1, -1])
def test_rows_before_a_malformed_page_are_read_and_its_own_are_refused(
    table: pa.Table, data: bytes, damaged: int, batch_size: int, position: int
) -> None:
    pages = _open(_Distant(data))[0].pages(damaged)
    index, content = pages[position].buffers[0], bytearray(data)
    content[index.offset : index.end] = bytes([255]) * index.size
    sound = sum(known.num_rows for known in pages[:position])
    reader, columns = _open(_Distant(bytes(content)))
    found = [table.slice(0, 0)]
    with pytest.raises(CorruptFileError, match=table.column_names[damaged]):
        _gather(reader.read(columns, 0, NUM_ROWS, batch_size=batch_size), found)
    rows = pa.concat_tables(found)
    assert rows == table.slice(0, rows.num_rows)
    assert sound - batch_size < rows.num_rows <= sound


def _gather(batches: Iterator[pa.RecordBatch], found: list[pa.Table]) -> None:
    found.extend(pa.Table.from_batches([batch]) for batch in batches)
