"""Threads that decode, threads that share a reader, and processes that are forked from either."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pyarrow as pa
import pytest

import lance_format
from lance_format.byte_io import ByteRange
from lance_format.errors import CorruptFileError, InvalidInputError
from lance_format.file import LanceFileReader, LanceFileWriter
from lance_format.file.container import scheduler
from lance_format.file.reading import row_range
from lance_format.file.reading.column_groups import run_windows
from lance_format.file.reading.column_reader import Cursor
from lance_format.file.reading.cpu_threads import cpu_threads
from lance_format.structural import page as page_layouts
from tests.file.counting import CountedFile

_ROWS = 60_000
_RNG = np.random.default_rng(0)
_TABLE = pa.table(
    {
        "number": _RNG.integers(0, 2**62, _ROWS),
        "nullable": pa.array(_RNG.integers(0, 1000, _ROWS), mask=_RNG.random(_ROWS) < 0.2),
        "text": [f"https://example.org/{row * 7919}" for row in range(_ROWS)],
        "item": [f"item number {row % 50}" for row in range(_ROWS)],
        "lists": [list(range(row % 5)) for row in range(_ROWS)],
        "struct": [{"a": row, "b": f"b{row}"} if row % 7 else None for row in range(_ROWS)],
    }
)


@pytest.fixture(autouse=True, scope="module")
def threads_for_few_bytes() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scheduler, "_THREADED_BYTES", 1)
        patch.setattr(scheduler, "_THREADED_RANGE_BYTES", 0)
        yield


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("threads") / "a.lance"
    with LanceFileWriter(path, _TABLE.schema, data_cache_bytes=1_500_000) as writer:
        for start in range(0, _ROWS, 2000):
            writer.write_batch(_TABLE.slice(start, 2000))
    return path


@pytest.mark.parametrize("threads", ["1", "2", "7"])
def test_any_number_of_threads_reads_the_same(path: Path, threads: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANCE_CPU_THREADS", threads)
    before = threading.active_count()
    for batch_size in (1000, 100_000):
        found = LanceFileReader(path).read_all(batch_size=batch_size)
        table = pa.Table.from_batches([next(found.to_batches())])
        assert threading.active_count() == before, "a thread is left between batches"
        table = pa.concat_tables([table, found.to_table()])
        assert table.equals(_TABLE)
    for name in _TABLE.column_names:
        assert (
            LanceFileReader(path, columns=[name])
            .read_range(777, 50_000)
            .to_table()[name]
            .equals(_TABLE[name].slice(777, 50_000))
        )
    assert threading.active_count() == before


@pytest.mark.parametrize(("threads", "pages_read"), [("1", 1), ("3", 3), ("64", 4)])
def test_pages_decoded_ahead_are_few(
    tmp_path: Path, threads: str, pages_read: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory depends on neither the file nor the machine, and no row after the requested ones is read."""
    monkeypatch.setenv("LANCE_CPU_THREADS", threads)
    numbers = _TABLE.select(["number"])
    with LanceFileWriter(tmp_path / "a.lance", numbers.schema, data_cache_bytes=40_000) as writer:
        for start in range(0, _ROWS, 5000):
            writer.write_batch(numbers.slice(start, 5000))
    file = CountedFile(tmp_path / "a.lance")
    pages = file.reader.pages(0)
    assert len(pages) == 12
    for stop, expected in ((_ROWS, pages_read), (6000, min(pages_read, 2))):
        batch = next(file.reader.read(file.columns(), 0, stop, batch_size=1000))
        assert batch.equals(numbers.slice(0, 1000).to_batches()[0])
        touched = [
            page for page in pages if any(page.buffers[1].offset in _bytes(read) for read in file.source.requests)
        ]
        assert len(touched) == expected
        file.source.requests.clear()


def test_columns_are_read_up_to_about_one_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else each of them would be read when its own rows end, alone, and threads would wait for it."""
    monkeypatch.setattr(page_layouts, "_ANSWER_BYTES", 64 * 1024)
    table = pa.table({f"c{width}": pa.array([bytes(width)] * _ROWS, pa.binary(width)) for width in (1, 2, 3, 5, 8, 13)})
    with LanceFileWriter(tmp_path / "a.lance", table.schema) as writer:
        writer.write_batch(table)
    rounds = {}
    for threads in ("1", "2"):
        monkeypatch.setenv("LANCE_CPU_THREADS", threads)
        counted = Mock(wraps=run_windows)
        monkeypatch.setattr(row_range, "run_windows", counted)
        assert LanceFileReader(tmp_path / "a.lance").read_all(batch_size=500).to_table().equals(table)
        rounds[threads] = counted.call_count
    assert rounds["2"] < rounds["1"] / 2


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize(
    ("name", "batch_size", "ends"),
    [
        ("number", 1000, [20_000, 40_000, 60_000]),
        ("nullable", 7000, [21_000, 42_000, 60_000]),
        ("number", 25_000, [25_000, 50_000, 60_000]),
        ("number", _ROWS, [60_000]),
        ("text", 1000, [60_000]),
        ("lists", 1000, [60_000]),
    ],
)
def test_a_flat_column_is_divided_among_threads_batch_by_batch(
    tmp_path: Path, name: str, batch_size: int, ends: list[int], version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANCE_CPU_THREADS", "3")
    monkeypatch.setattr(row_range, "_LEAST_PART_BYTES", 1000)
    column = _TABLE.select([name])
    with LanceFileWriter(tmp_path / "a.lance", column.schema, version=version) as writer:
        writer.write_batch(column)
    pushed: list[int] = []
    push = Cursor.push
    monkeypatch.setattr(Cursor, "push", lambda self, arrays, stop: (pushed.append(stop), push(self, arrays, stop)))
    batches = list(LanceFileReader(tmp_path / "a.lance").read_all(batch_size=batch_size).to_batches())
    assert pushed == ends
    assert pa.Table.from_batches(batches) == column
    assert [len(batch) for batch in batches[:-1]] == [batch_size] * (len(batches) - 1)


def _bytes(read: ByteRange) -> range:
    return range(read.offset, read.end)


@pytest.mark.parametrize("threads", ["1", "4"])
def test_errors_come_out_as_they_are(path: Path, tmp_path: Path, threads: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of several damaged columns it is the first that is named, whichever thread fails first."""
    monkeypatch.setenv("LANCE_CPU_THREADS", threads)
    damaged = bytearray(path.read_bytes())
    for column in LanceFileReader(path).metadata().columns[1:3]:
        chunks = column.pages[-1].buffers[1]
        damaged[chunks.position : chunks.position + 64] = b"\xff" * 64
    (tmp_path / "damaged.lance").write_bytes(damaged)
    before = threading.active_count()
    for _ in range(3):
        with pytest.raises(CorruptFileError, match="column 'nullable'") as caught:
            LanceFileReader(tmp_path / "damaged.lance").read_all(batch_size=_ROWS).to_table()
        assert "damaged.lance" in str(caught.value)
    assert threading.active_count() == before


def test_one_reader_for_many_threads(path: Path) -> None:
    """With a cache that is too small for all, entries come and go all the time."""
    table = lance_format.write_dataset(_TABLE, path.parent / "table", max_rows_per_file=25_000)
    small = lance_format.dataset(table.uri, metadata_cache_size_bytes=150_000)
    readers = [LanceFileReader(path), LanceFileReader(path, metadata_cache_size_bytes=150_000)]

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for turn in range(4):
            reader = readers[turn % 2]
            rows = np.sort(rng.choice(_ROWS, 40))
            assert reader.take_rows(rows).to_table().equals(_TABLE.take(rows))
            start = int(rng.integers(0, _ROWS - 5000))
            assert reader.read_range(start, 5000).to_table().equals(_TABLE.slice(start, 5000))
            shuffled = rng.permutation(rows)
            assert (table, small)[turn % 2].take(shuffled).equals(_TABLE.take(shuffled))

    with ThreadPoolExecutor(6) as pool:
        for done in [pool.submit(work, seed) for seed in range(6)]:
            done.result()


def test_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANCE_CPU_THREADS", "5")
    assert cpu_threads() == 5
    for wrong in ("0", "-1", "many", "1.5"):
        monkeypatch.setenv("LANCE_CPU_THREADS", wrong)
        with pytest.raises(InvalidInputError, match="LANCE_CPU_THREADS"):
            cpu_threads()
    monkeypatch.delenv("LANCE_CPU_THREADS")
    cores = pa.cpu_count()
    try:
        pa.set_cpu_count(1)
        assert cpu_threads() == 1
    finally:
        pa.set_cpu_count(cores)
    limited = subprocess.run(
        [sys.executable, "-c", "from lance_format.file.reading.cpu_threads import cpu_threads; print(cpu_threads())"],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert limited.stdout.strip() == "1"


_FORK = """
import os, sys, threading, warnings
import numpy as np
import lance_format
warnings.simplefilter("ignore", DeprecationWarning)  # of forking with threads, which is the point
table = lance_format.dataset(sys.argv[1])
expected = table.to_table(["number"])
stop = threading.Event()
def work(seed):
    rng = np.random.default_rng(seed)
    while not stop.is_set():
        table.take(rng.integers(0, 60_000, 20), ["number", "item"])
threads = [threading.Thread(target=work, args=(seed,)) for seed in range(3)]
for thread in threads:
    thread.start()
failed = 0
for _ in range(8):
    child = os.fork()
    if child == 0:
        os._exit(0 if table.to_table(["number"]).equals(expected) else 1)
    failed += os.waitpid(child, 0)[1] != 0
stop.set()
for thread in threads:
    thread.join()
sys.exit(failed)
"""


@pytest.mark.slow
def test_a_process_forked_while_others_read(path: Path) -> None:
    table = lance_format.write_dataset(_TABLE, path.parent / "forked", max_rows_per_file=25_000)
    environment = {**os.environ, "LANCE_CPU_THREADS": "2"}
    done = subprocess.run(
        [sys.executable, "-c", _FORK, table.uri],
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_threads_that_share_a_writer(tmp_path: Path) -> None:
    columns = [f"c{index}" for index in range(12)]

    def write(number: int) -> None:
        part = pa.table({name: [number] * 700 for name in columns})
        for start in range(0, 700, 100):
            writer.write_batch(part.slice(start, 100))

    with LanceFileWriter(tmp_path / "shared.lance", data_cache_bytes=40_000) as writer, ThreadPoolExecutor(6) as pool:
        list(pool.map(write, range(24)))
    found = LanceFileReader(tmp_path / "shared.lance").read_all(batch_size=100).to_batches()
    for batch in found:
        assert all(len(set(column.to_pylist())) == 1 and column == batch.column(0) for column in batch.columns)
