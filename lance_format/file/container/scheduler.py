"""Running plans: the byte ranges that many pages want next are merged, read, and handed out.

Ranges that lie close together are read as one: a seek costs more than the bytes between them. Plans proceed in rounds,
so that the chunk tables of all columns are one batch of requests, and their chunks the next. A plan proceeds as soon as
its own bytes have arrived, while those of others are on their way. Where a round brings much to decode, the plans
proceed side by side, in threads that end with the round. Of a local file, each thread also reads what its plans want,
up to their end.
"""

from __future__ import annotations

import bisect
import contextlib
import itertools
import operator
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import field
from threading import Thread
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np

from lance_format.byte_io import FILE_REQUESTS, ByteRange, ByteRanges, RangeReader, RequestShape, stream_ranges
from lance_format.data_block import Bytes, aligned
from lance_format.errors import ChecksumError, CorruptFileError, NotSupportedError
from lance_format.file.container.joined_reads import read_joined
from lance_format.file.container.locating import locate
from lance_format.lazy_dataclasses import dataclass

_OFFSET = operator.attrgetter("offset")
_ALIGNMENT = 8
_THREADED_BYTES = 4 * 1024 * 1024
_THREADED_RESULT_BYTES = 6 * 1024 * 1024
"""One thread reads less than the one, and makes less than the other, in less time: two hand the interpreter lock to and
fro for about a millisecond.
"""

_THREADED_RANGE_BYTES = 64 * 1024
"""Smaller ranges, on average, are mostly Python, which one thread runs at a time."""

_BYTES_OF_ANY_RUN = 256 * 1024
"""What any plan takes, in bytes, however few it reads and makes."""

_PARTS_PER_THREAD = 4
"""Number of parts per thread, so that none waits long for the last one of another."""

T = TypeVar("T")


class _Ended(Generic[T]):
    """A call that has ended. A future would cost more than many of these calls."""

    __slots__ = ("_error", "_results")

    def __init__(self, call: Callable[..., T], *arguments: object) -> None:
        self._error: Exception | None = None
        self._results: tuple[T, ...] = ()
        try:
            self._results = (call(*arguments),)
        except Exception as error:
            self._error = error

    def exception(self) -> Exception | None:
        """Return the error of the call, if any."""
        return self._error

    def result(self) -> T:
        """Return what the call did, or raise its error."""
        if self._error is not None:
            raise self._error
        return self._results[0]


_Ending: TypeAlias = Future[Any] | _Ended[Any]

Start: TypeAlias = Callable[..., _Ending]
"""Begins a call, with its arguments, and returns what waits for its end."""


def coalesce(ranges: Sequence[ByteRange], shape: RequestShape = FILE_REQUESTS) -> list[ByteRange]:
    """Merge ranges that overlap, touch or nearly touch; the result is sorted.

    A merged range grows to the limit of the shape, but a single one is never cut. A range that is no larger than a gap
    is merged beyond the limit, too.
    """
    merged: list[ByteRange] = []
    gap_bytes, max_bytes = shape.gap_bytes, shape.max_bytes
    start, end = -1, -1
    single: ByteRange | None = None
    for wanted in sorted(ranges, key=_OFFSET):
        offset, size = wanted
        stop = offset + size
        is_near = start >= 0 and offset <= end + gap_bytes
        if is_near and (stop <= end or stop - start <= max_bytes or min(size, end - start) <= gap_bytes):
            end = max(end, stop)
            single = None
            continue
        if start >= 0:
            merged.append(single or ByteRange(start, end - start))
        start, end, single = offset, stop, wanted
    if start >= 0:
        merged.append(single or ByteRange(start, end - start))
    return merged


class Requests:
    """The requests for some ranges, whose bytes are taken as they arrive.

    Parameters
    ----------
    source : RangeReader
    ranges : sequence of ByteRange
    """

    def __init__(self, source: RangeReader, ranges: Sequence[ByteRange]) -> None:
        self._source = source
        self._requests = coalesce([wanted for wanted in ranges if wanted.size], source.request_shape)
        self._starts = [request.offset for request in self._requests]
        self._stream = stream_ranges(source, self._requests)
        self._arrived: list[Bytes | ChecksumError] = []

    def number(self, wanted: ByteRange) -> int:
        """Return the number of the request that brings a range; for an empty one, of any before it, or -1."""
        return bisect.bisect_right(self._starts, wanted.offset) - 1

    def take(self, wanted: ByteRange) -> Bytes:
        """Wait for the bytes of a range, which start at a multiple of 8 bytes in memory.

        Raises
        ------
        ChecksumError
            If they are damaged.
        """
        offset, size = wanted
        if not size:
            return np.empty(0, np.uint8)
        number = self.number(wanted)
        while len(self._arrived) <= number:
            self._arrived.append(self._receive())
        whole = self._arrived[number]
        if isinstance(whole, ChecksumError):
            if whole.offset is not None and wanted.offset <= whole.offset < wanted.end:
                raise whole
            return aligned(np.frombuffer(self._source.read_ranges([wanted])[0], np.uint8))
        begin = offset - self._starts[number]
        if begin == 0 and whole.size == size:
            return whole
        part = whole[begin : begin + size]
        return part if begin % _ALIGNMENT == 0 else part.copy()

    def _receive(self) -> Bytes | ChecksumError:
        """Return the bytes of the next request, or the error if some are damaged, maybe only between wanted ranges."""
        try:
            found = next(self._stream)
        except ChecksumError as error:
            self._stream = stream_ranges(self._source, self._requests[len(self._arrived) + 1 :])
            return error
        return found if isinstance(found, np.ndarray) else aligned(np.frombuffer(found, np.uint8))

    def close(self) -> None:
        """End the reading of what has not been taken."""
        self._stream.close()


def fetch(source: RangeReader, ranges: Sequence[ByteRange]) -> list[Bytes]:
    """Read ranges with as few requests as pay; each result starts at a multiple of 8 bytes in memory."""
    with contextlib.closing(Requests(source, ranges)) as requests:
        return [requests.take(wanted) for wanted in ranges]


@dataclass(frozen=True, slots=True)
class NamedPlan(Generic[T]):
    """A plan and the column that it reads, for error messages.

    Parameters
    ----------
    column : str
    plan : generator
        Yields ranges and is sent their bytes as a page's plan does, but may return something else.
    extents : sequence of ByteRange
        The pages whose bytes it may want. One with few bytes is read at once, instead of its index first.
    result_bytes : int
        About the size of its result in memory.
    """

    column: str
    plan: Generator[Sequence[ByteRange], Sequence[Bytes], T]
    extents: Sequence[ByteRange] = ()
    result_bytes: int = 0


@dataclass(slots=True)
class _Run(Generic[T]):
    """A running plan: the ranges that it needs next, and finally its result."""

    named: NamedPlan[T]
    wanted: Sequence[ByteRange] = ()
    results: tuple[T, ...] = ()
    held: dict[ByteRange, Bytes | None] = field(default_factory=dict)
    """Small pages that were asked for as a whole, and their bytes once they have arrived."""
    in_order: list[ByteRange] = field(default_factory=list)
    """These pages by their offset, those whose bytes are damaged included."""

    @property
    def work_bytes(self) -> int:
        """About the number of bytes that it reads next or makes of them."""
        return self.named.result_bytes + self.wanted_bytes

    @property
    def wanted_bytes(self) -> int:
        """The number of bytes that it reads next."""
        if isinstance(self.wanted, ByteRanges):
            return self.wanted.num_bytes
        return sum(wanted.size for wanted in self.wanted)

    def asks_for(self, most_bytes: int) -> Sequence[ByteRange]:
        """Return the ranges to read: those of the plan, or instead whole pages that are small and begin with an index.

        Parameters
        ----------
        most_bytes : int
            Reading so many bytes costs less than another request.
        """
        small = [] if self.held else [extent for extent in self.named.extents if extent.size <= most_bytes]
        if small:
            begins = {wanted.offset for wanted in self.wanted}
            self.held = {extent: None for extent in small if extent.offset in begins}
            self.in_order = sorted(self.held, key=_OFFSET)
        if not self.held:
            return self.wanted
        whole = [extent for extent, data in self.held.items() if data is None]
        return [*whole, *(wanted for wanted in self.wanted if self._holding(wanted) is None)]

    def receive(self, take: Callable[[ByteRange], Bytes]) -> list[Bytes]:
        """Return the bytes of the ranges that the plan wants."""
        for extent in [extent for extent, data in self.held.items() if data is None]:
            try:
                self.held[extent] = take(extent)
            except ChecksumError:  # The plan may want none of what is damaged.
                del self.held[extent]
        if not self.held:
            return [take(wanted) for wanted in self.wanted]
        return [self._part(wanted, take) for wanted in self.wanted]

    def _holding(self, wanted: ByteRange) -> ByteRange | None:
        before = bisect.bisect_right(self.in_order, wanted.offset, key=_OFFSET)
        if not before:
            return None
        found = self.in_order[before - 1]
        return found if found in self.held and found.contains(wanted) else None

    def _part(self, wanted: ByteRange, take: Callable[[ByteRange], Bytes]) -> Bytes:
        extent = self._holding(wanted)
        whole = None if extent is None else self.held[extent]
        if extent is None or whole is None:
            return take(wanted)
        return aligned(whole[wanted.offset - extent.offset : wanted.end - extent.offset])

    def proceed(self, data: Sequence[Bytes] | None) -> None:
        """Send the plan the requested bytes, or start it."""
        plan = self.named.plan
        try:
            self.wanted = next(plan) if data is None else plan.send(data)
        except StopIteration as stop:
            self.results = (stop.value,)


def run_plans(
    source: RangeReader,
    plans: Sequence[NamedPlan[T]],
    threads: Callable[[], int] = lambda: 1,
    after_round: Callable[[], None] = lambda: None,
) -> list[T]:
    """Run plans to their end.

    Parameters
    ----------
    source : RangeReader
    plans : sequence of NamedPlan
    threads : callable
        Returns the number of plans that may proceed concurrently; called only if there is enough work.
    after_round : callable
        Called each time that all plans have proceeded.

    Returns
    -------
    list
        The results of the plans, in their order.

    Raises
    ------
    CorruptFileError, NotSupportedError
        The first error of a plan, with the file and the column added.
    """
    runs = [_Run(named) for named in plans]

    def proceed(run: _Run[T], data: Sequence[Bytes] | None) -> None:
        try:
            run.proceed(data)
        except (CorruptFileError, NotSupportedError) as error:
            raise locate(error, source.path, run.named.column) from error

    for run in runs:
        proceed(run, None)
    while waiting := [run for run in runs if not run.results]:
        _run_round(source, waiting, proceed, threads)
        after_round()
    return [result for run in runs for result in run.results]


def _run_round(
    source: RangeReader,
    runs: Sequence[_Run[T]],
    proceed: Callable[[_Run[T], Sequence[Bytes]], None],
    threads: Callable[[], int],
) -> None:
    """Let each plan proceed as soon as its bytes have arrived; of several errors the first is raised, in plan order."""
    num_threads = min(threads(), len(runs)) if len(runs) > 1 and _is_much(runs) else 1
    if num_threads == 1:
        ended = _run_part(source, runs, proceed, _Ended)
    elif source.request_shape.reads_ahead:
        with ThreadPoolExecutor(num_threads, "lance-decode") as pool:
            ended = _run_part(source, runs, proceed, pool.submit)
    else:
        divided = list(_divide(runs, num_threads))
        largest_first = sorted(range(len(divided)), key=lambda part: -_work(divided[part]))
        parts: dict[int, _Ended[list[_Ending]]] = {}

        def run_part(part: int) -> None:
            parts[part] = _Ended(_run_to_end, source, divided[part], proceed)

        _share(largest_first, num_threads, run_part)
        ended = [call for part in range(len(divided)) for call in parts[part].result()]
    for call in ended:
        call.result()


def _share(numbers: Sequence[int], num_threads: int, call: Callable[[int], None]) -> None:
    """Call a function with each number, in this thread and others, which have ended at the end."""
    left = deque(numbers)

    def work() -> None:
        while True:
            try:
                number = left.popleft()
            except IndexError:
                return
            call(number)

    helpers: list[Thread] = []
    try:
        for number in range(1, num_threads):
            helper = Thread(target=work, name=f"lance-decode-{number}")
            helper.start()
            helpers.append(helper)
        work()
    finally:
        left.clear()
        for helper in helpers:
            helper.join()


def _is_much(runs: Sequence[_Run[T]]) -> bool:
    """Return whether several threads have done the work of runs sooner than one."""
    num_bytes, num_ranges = sum(run.wanted_bytes for run in runs), sum(len(run.wanted) for run in runs)
    result_bytes = sum(run.named.result_bytes for run in runs)
    is_much = num_bytes >= _THREADED_BYTES or result_bytes >= _THREADED_RESULT_BYTES
    return is_much and num_bytes + result_bytes >= _THREADED_RANGE_BYTES * num_ranges


def _work(runs: Sequence[_Run[T]]) -> int:
    """Return about how much work runs are, as a number of bytes."""
    return sum(_BYTES_OF_ANY_RUN + run.work_bytes for run in runs)


def _divide(runs: Sequence[_Run[T]], num_threads: int) -> Iterator[Sequence[_Run[T]]]:
    """Divide runs into parts for threads to read and decode.

    Parameters
    ----------
    runs : sequence of _Run
    num_threads : int
    """
    enough = _work(runs) // (num_threads * _PARTS_PER_THREAD)
    first, held = 0, 0
    for position, run in enumerate(runs):
        held += _work([run])
        if held >= enough or position == len(runs) - 1:
            yield runs[first : position + 1]
            first, held = position + 1, 0


def _run_to_end(
    source: RangeReader, runs: Sequence[_Run[T]], proceed: Callable[[_Run[T], Sequence[Bytes]], None]
) -> list[_Ending]:
    """Read what some runs want, round by round, without a wait for others; return how they end."""
    ended: dict[int, _Ending] = {}
    left = list(range(len(runs)))
    while left:
        ended.update(zip(left, _run_part(source, [runs[number] for number in left], proceed, _Ended), strict=True))
        left = [number for number in left if not runs[number].results and ended[number].exception() is None]
    return [ended[number] for number in range(len(runs))]


def _run_part(
    source: RangeReader, runs: Sequence[_Run[T]], proceed: Callable[[_Run[T], Sequence[Bytes]], None], start: Start
) -> list[_Ending]:
    """Read what some runs want together, and start each once its bytes are there; return how they end."""
    ended: dict[int, _Ending] = {}
    asked = [run.asks_for(source.request_shape.gap_bytes) for run in runs]
    for position, (run, ranges) in enumerate(zip(runs, asked, strict=True)):
        joined = read_joined(source, ranges) if isinstance(ranges, ByteRanges) else None
        if joined is not None:
            ended[position] = start(proceed, run, [joined])
            asked[position] = []
    with contextlib.closing(Requests(source, list(itertools.chain(*asked)))) as requests:
        last = [requests.number(max(ranges, key=_OFFSET)) if ranges else -1 for ranges in asked]
        left = [position for position in range(len(runs)) if position not in ended]
        for position in sorted(left, key=last.__getitem__):
            data = runs[position].receive(requests.take)
            ended[position] = start(proceed, runs[position], data)
    return [ended[position] for position in range(len(runs))]
