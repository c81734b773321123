"""Running plans: the byte ranges that many pages want next are merged, read, and handed out.

Ranges that lie close together are read as one: a seek costs more than the bytes between them. Plans proceed in rounds,
so that the chunk tables of all columns are one batch of requests, and their chunks the next. Where a round brought much
to decode, the plans proceed side by side, in threads that end with the round.
"""

from __future__ import annotations

import bisect
import operator
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from lance_format.byte_io import FILE_REQUESTS, ByteRange, RangeReader, RequestShape
from lance_format.data_block import Bytes, aligned
from lance_format.errors import CorruptFileError, NotSupportedError
from lance_format.file.container.locating import locate

_OFFSET = operator.attrgetter("offset")
_ALIGNMENT = 8
_THREADED_BYTES = 128 * 1024
"""Less than this is decoded before threads would have started."""

T = TypeVar("T")


def coalesce(ranges: Sequence[ByteRange], shape: RequestShape = FILE_REQUESTS) -> list[ByteRange]:
    """Merge ranges that overlap, touch or nearly touch; the result is sorted.

    A merged range grows to the limit of the shape, but a single one is never cut.
    """
    merged: list[ByteRange] = []
    start, end = -1, -1
    for wanted in sorted(ranges, key=_OFFSET):
        offset, stop = wanted.offset, wanted.offset + wanted.size
        if start >= 0 and offset <= end + shape.gap_bytes and (stop <= end or stop - start <= shape.max_bytes):
            end = max(end, stop)
            continue
        if start >= 0:
            merged.append(ByteRange(start, end - start))
        start, end = offset, stop
    if start >= 0:
        merged.append(ByteRange(start, end - start))
    return merged


def fetch(source: RangeReader, ranges: Sequence[ByteRange]) -> list[Bytes]:
    """Read ranges with as few requests as pay; each result starts at a multiple of 8 bytes in memory."""
    requests = coalesce([wanted for wanted in ranges if wanted.size], source.request_shape)
    data = [aligned(np.frombuffer(piece, np.uint8)) for piece in source.read_ranges(requests)] if requests else []
    starts = [request.offset for request in requests]
    results = []
    for wanted in ranges:
        if not wanted.size:
            results.append(np.empty(0, np.uint8))
            continue
        index = bisect.bisect_right(starts, wanted.offset) - 1
        begin = wanted.offset - starts[index]
        found = data[index][begin : begin + wanted.size]
        results.append(found if begin % _ALIGNMENT == 0 else found.copy())
    return results


@dataclass(frozen=True, slots=True)
class NamedPlan(Generic[T]):
    """A plan and the column that it reads, for error messages.

    Parameters
    ----------
    column : str
    plan : generator
        Yields ranges and is sent their bytes as a page's plan does, but may return something else.
    """

    column: str
    plan: Generator[Sequence[ByteRange], Sequence[Bytes], T]


@dataclass(slots=True)
class _Run(Generic[T]):
    """A running plan: the ranges that it needs next, and finally its result."""

    named: NamedPlan[T]
    wanted: Sequence[ByteRange] = ()
    results: tuple[T, ...] = ()

    def proceed(self, data: Sequence[Bytes] | None) -> None:
        """Send the plan the requested bytes, or start it."""
        plan = self.named.plan
        try:
            self.wanted = next(plan) if data is None else plan.send(data)
        except StopIteration as stop:
            self.results = (stop.value,)


def run_plans(source: RangeReader, plans: Sequence[NamedPlan[T]], threads: Callable[[], int] = lambda: 1) -> list[T]:
    """Run plans to their end.

    Parameters
    ----------
    source : RangeReader
    plans : sequence of NamedPlan
    threads : callable
        Returns the number of plans that may proceed concurrently; called only if there is enough work.

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
        data = iter(fetch(source, [byte_range for run in waiting for byte_range in run.wanted]))
        pieces = [[next(data) for _ in run.wanted] for run in waiting]
        size = sum(piece.size for found in pieces for piece in found)
        _side_by_side(proceed, waiting, pieces, threads() if size >= _THREADED_BYTES else 1)
    return [result for run in runs for result in run.results]


def _side_by_side(
    proceed: Callable[[_Run[T], Sequence[Bytes]], None],
    runs: list[_Run[T]],
    pieces: list[list[Bytes]],
    threads: int,
) -> None:
    if threads == 1 or len(runs) == 1:
        for run, data in zip(runs, pieces, strict=True):
            proceed(run, data)
        return
    with ThreadPoolExecutor(min(threads, len(runs)), "lance-decode") as pool:
        for _ in pool.map(proceed, runs, pieces):
            pass
