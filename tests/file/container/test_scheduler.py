"""Merging byte ranges, and distributing the bytes read."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_format.byte_io import FILE_REQUESTS, ByteRange, RequestShape
from lance_format.data_block import Bytes
from lance_format.errors import CorruptFileError, StorageError
from lance_format.file.container import scheduler
from lance_format.file.container.scheduler import NamedPlan, coalesce, fetch, run_plans

_DATA = bytes(index * 37 % 251 for index in range(100_000))


class _Source:
    path = "(memory)"
    size_bytes = len(_DATA)
    request_shape = FILE_REQUESTS

    def __init__(self) -> None:
        self.requests: list[ByteRange] = []

    def read_ranges(self, ranges: Sequence[ByteRange]) -> list[bytes]:
        self.requests += ranges
        return [_DATA[wanted.offset : wanted.end] for wanted in ranges]

    def close(self) -> None:
        pass


_ranges = st.lists(st.builds(ByteRange, st.integers(0, 90_000), st.integers(0, 9_000)), max_size=40)


@given(ranges=_ranges)
def test_everyone_gets_the_bytes_asked_for(ranges: list[ByteRange]) -> None:
    source = _Source()
    found = fetch(source, ranges)
    assert [piece.tobytes() for piece in found] == [_DATA[wanted.offset : wanted.end] for wanted in ranges]
    assert all(piece.ctypes.data % 8 == 0 for piece in found if piece.size)
    assert len(source.requests) <= len(ranges)
    gaps = [after.offset - before.end for before, after in zip(source.requests, source.requests[1:], strict=False)]
    assert all(gap > 8192 for gap in gaps)


def test_a_merged_range_does_not_grow_without_bound() -> None:
    mib = 1 << 20
    pieces = [ByteRange(index * 10 * mib, 10 * mib) for index in range(20)]
    merged = coalesce(pieces)
    assert sum(piece.size for piece in merged) == 200 * mib
    assert max(piece.size for piece in merged) <= 64 * mib
    assert coalesce([ByteRange(0, 100 * mib)]) == [ByteRange(0, 100 * mib)]


class _Streaming(_Source):
    """A source whose bytes arrive one range after another, until it fails."""

    def __init__(self, shape: RequestShape, fails_at: int = 1 << 60) -> None:
        super().__init__()
        self.request_shape = shape
        self.num_arrived = 0
        self._fails_at = fails_at
        self._counting = threading.Lock()

    def stream_ranges(self, ranges: Sequence[ByteRange]) -> Generator[memoryview, None, None]:
        self.requests += ranges
        for wanted in ranges:
            with self._counting:
                if self.num_arrived >= self._fails_at:
                    raise StorageError("the connection was reset")
                self.num_arrived += 1
            yield memoryview(_DATA)[wanted.offset : wanted.end]


_Rounds = Sequence[Sequence[ByteRange]]


def _reads(
    rounds: _Rounds, fails_in: int | None = None
) -> Generator[Sequence[ByteRange], Sequence[Bytes], list[bytes]]:
    """Read some ranges after others, as pages do with an index and chunks."""
    found: list[bytes] = []
    for number, ranges in enumerate(rounds):
        data = yield ranges
        assert all(piece.ctypes.data % 8 == 0 for piece in data if piece.size)
        found += [piece.tobytes() for piece in data]
        if number == fails_in:
            raise CorruptFileError(f"malformed in round {number}")
    return found


def _expected(rounds: _Rounds) -> list[bytes]:
    return [_DATA[wanted.offset : wanted.end] for ranges in rounds for wanted in ranges]


def _hulls(rounds: _Rounds) -> list[ByteRange]:
    """Return the extents of the pages of a plan, if each of its rounds reads another page."""
    found = []
    for ranges in rounds:
        start = min((wanted.offset for wanted in ranges), default=0)
        found.append(ByteRange(start, max((wanted.end for wanted in ranges), default=0) - start))
    return found


_plans = st.lists(st.lists(_ranges.map(lambda ranges: ranges[:4]), max_size=3), max_size=8)
_shapes = st.builds(
    RequestShape, st.sampled_from([0, 100, 8192, 200_000]), st.sampled_from([1, 5000, 1 << 20]), st.booleans()
)


@pytest.fixture(autouse=True, scope="module")
def threads_for_few_bytes() -> Generator[None, None, None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scheduler, "_THREADED_BYTES", 1)
        patch.setattr(scheduler, "_THREADED_RANGE_BYTES", 0)
        yield


@given(plans=_plans, shape=_shapes, threads=st.integers(1, 3), has_extents=st.booleans())
def test_every_plan_gets_its_bytes_however_they_arrive(
    plans: list[list[list[ByteRange]]], shape: RequestShape, threads: int, has_extents: bool
) -> None:
    for source in (_Source(), _Streaming(shape)):
        named = [
            NamedPlan(str(number), _reads(rounds), _hulls(rounds) if has_extents else [])
            for number, rounds in enumerate(plans)
        ]
        assert run_plans(source, named, lambda: threads) == [_expected(rounds) for rounds in plans]


@given(plans=_plans, shape=_shapes, threads=st.integers(1, 3), fails_at=st.integers(0, 6))
def test_a_storage_that_fails_midway_is_one_error(
    plans: list[list[list[ByteRange]]], shape: RequestShape, threads: int, fails_at: int
) -> None:
    source = _Streaming(shape, fails_at)
    named = [NamedPlan(str(number), _reads(rounds)) for number, rounds in enumerate(plans)]
    before = threading.active_count()
    try:
        assert run_plans(source, named, lambda: threads) == [_expected(rounds) for rounds in plans]
    except StorageError:
        assert source.num_arrived == fails_at
    assert threading.active_count() == before


@given(order=st.permutations(range(6)), threads=st.integers(1, 3))
def test_the_error_of_the_first_malformed_plan_is_raised(order: list[int], threads: int) -> None:
    """The bytes of the last plans arrive first if they come first in the file."""
    for reads_ahead in (False, True):
        plans = [
            NamedPlan(f"c{number}", _reads([[ByteRange(1 + place * 10_000, 9)]], 0))
            for number, place in enumerate(order)
        ]
        with pytest.raises(CorruptFileError, match="column 'c0': malformed in round 0"):
            run_plans(_Streaming(RequestShape(0, 1, reads_ahead)), plans, lambda: threads)


def test_each_thread_reads_what_its_plans_want() -> None:
    """Of a local file; requests to others are made at once, by the thread that waits for them all."""
    readers: dict[int, int] = {}

    class Source(_Source):
        def __init__(self, reads_ahead: bool) -> None:
            super().__init__()
            self.request_shape = RequestShape(0, 1 << 20, reads_ahead)

        def read_ranges(self, ranges: Sequence[ByteRange]) -> list[bytes]:
            for wanted in ranges:
                readers[wanted.offset] = threading.get_ident()
                time.sleep(0.01)
            return super().read_ranges(ranges)

    for reads_ahead in (False, True):
        readers.clear()
        rounds = [[[ByteRange(number * 10_000, 5000)]] for number in range(6)]
        plans = [NamedPlan(str(number), _reads(ranges)) for number, ranges in enumerate(rounds)]
        assert run_plans(Source(reads_ahead), plans, lambda: 3) == [_expected(ranges) for ranges in rounds]
        assert len(readers) == 6
        if reads_ahead:
            assert set(readers.values()) == {threading.get_ident()}
        else:
            assert len(set(readers.values())) > 1
            assert threading.get_ident() in readers.values()


def test_no_thread_waits_for_the_rounds_of_others() -> None:
    """The first round of one plan ends after the last round of another."""
    is_read = threading.Event()

    def waits() -> Generator[list[ByteRange], list[Bytes], bool]:
        yield [ByteRange(0, 9)]
        return is_read.wait(60)

    def reads() -> Generator[list[ByteRange], list[Bytes], bool]:
        for offset in (20_000, 40_000, 60_000):
            yield [ByteRange(offset, 9)]
        is_read.set()
        return True

    plans = [NamedPlan("waits", waits()), NamedPlan("reads", reads())]
    assert run_plans(_Source(), plans, lambda: 2) == [True, True]


@pytest.mark.parametrize(
    ("read_bytes", "result_bytes", "is_threaded"), [(9, 9, False), (9, 1 << 20, True), (8000, 9, True)]
)
def test_threads_are_for_much_that_is_read_or_made(
    read_bytes: int, result_bytes: int, is_threaded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduler, "_THREADED_BYTES", 10_000)
    monkeypatch.setattr(scheduler, "_THREADED_RESULT_BYTES", 1 << 21)
    threads: set[int] = set()

    def plan(offset: int) -> Generator[list[ByteRange], list[Bytes], None]:
        yield [ByteRange(offset, read_bytes)]
        threads.add(threading.get_ident())

    run_plans(_Source(), [NamedPlan("c", plan(at), (), result_bytes) for at in (0, 50_000)], lambda: 2)
    assert (threads != {threading.get_ident()}) == is_threaded


def test_a_small_page_is_read_at_once_and_a_large_one_by_its_index() -> None:
    rounds = [[ByteRange(640, 8)], [ByteRange(1000, 50), ByteRange(3000, 50)]]
    whole = ByteRange(640, 3000)
    for shape, extents, expected in (
        (RequestShape(4000, 1 << 20), [whole], [whole]),
        (RequestShape(100, 1 << 20), [whole], [ByteRange(640, 8), ByteRange(1000, 50), ByteRange(3000, 50)]),
        (RequestShape(4000, 1 << 20), [], [ByteRange(640, 8), ByteRange(1000, 2050)]),
    ):
        source = _Streaming(shape)
        assert run_plans(source, [NamedPlan("c", _reads(rounds), extents)]) == [_expected(rounds)]
        assert source.requests == expected
    source = _Streaming(RequestShape(4000, 1 << 20))  # Its index is known: it asks for the chunks alone.
    run_plans(source, [NamedPlan("c", _reads(rounds[1:]), [whole])])
    assert source.requests == [ByteRange(1000, 2050)]


def test_small_pages_of_one_plan_are_read_at_once() -> None:
    pages = [ByteRange(0, 2000), ByteRange(20_000, 3000), ByteRange(40_000, 50_000)]
    rounds = [[ByteRange(page.offset, 8) for page in pages], [ByteRange(page.offset + 500, 100) for page in pages]]
    source = _Streaming(RequestShape(4000, 1 << 20))
    assert run_plans(source, [NamedPlan("c", _reads(rounds), pages)]) == [_expected(rounds)]
    assert source.requests == [*pages[:2], *(found[2] for found in rounds)]
