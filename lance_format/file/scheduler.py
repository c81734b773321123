"""Running plans: the byte ranges that many pages want next are merged, read, and handed out.

Ranges that lie close together are read as one: a seek costs more than the bytes between them. Plans proceed in rounds,
so that the chunk tables of all columns are one batch of requests, and their chunks the next.
"""

from __future__ import annotations

import bisect
import operator
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lance_format.byte_io import ByteRange, RangeReader
from lance_format.data_block import Bytes, aligned
from lance_format.errors import CorruptFileError, NotSupportedError
from lance_format.structural.page import DecodedRows, Plan

_OFFSET = operator.attrgetter("offset")
_ALIGNMENT = 8
_MAX_GAP_BYTES = 8 * 1024
_MAX_MERGED_BYTES = 64 * 1024 * 1024


def coalesce(ranges: Sequence[ByteRange]) -> list[ByteRange]:
    """Merge ranges that overlap, touch or nearly touch; the result is sorted.

    A merged range grows to at most 64 MiB, but a single one is never cut.
    """
    merged: list[ByteRange] = []
    start, end = -1, -1
    for wanted in sorted(ranges, key=_OFFSET):
        offset, stop = wanted.offset, wanted.offset + wanted.size
        if start >= 0 and offset <= end + _MAX_GAP_BYTES and (stop <= end or stop - start <= _MAX_MERGED_BYTES):
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
    requests = coalesce([wanted for wanted in ranges if wanted.size])
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
class NamedPlan:
    """A plan and the column that it reads, for error messages."""

    column: str
    plan: Plan


def run_plans(source: RangeReader, plans: Sequence[NamedPlan]) -> list[DecodedRows]:
    """Run plans to their end.

    Raises
    ------
    CorruptFileError, NotSupportedError
        What a plan raises, with the file and the column added.
    """
    results: list[DecodedRows | None] = [None] * len(plans)
    waiting: list[tuple[int, Sequence[ByteRange]]] = []

    def advance(index: int, data: Sequence[Bytes] | None) -> None:
        named = plans[index]
        try:
            waiting.append((index, next(named.plan) if data is None else named.plan.send(data)))
        except StopIteration as stop:
            results[index] = stop.value
        except (CorruptFileError, NotSupportedError) as error:
            raise locate(error, source.path, named.column) from error

    for index in range(len(plans)):
        advance(index, None)
    while waiting:
        wanted, waiting = waiting, []
        data = fetch(source, [byte_range for _, ranges in wanted for byte_range in ranges])
        position = 0
        for index, ranges in wanted:
            advance(index, data[position : position + len(ranges)])
            position += len(ranges)
    return [result for result in results if result is not None]


def locate(error: CorruptFileError | NotSupportedError, path: str, column: str | None = None) -> Exception:
    """Return the error with the file and the column that it is about."""
    within = "" if column is None else f"column {column!r}: "
    if isinstance(error, CorruptFileError):
        return error if error.path else CorruptFileError(f"{within}{error.what}", path=path, offset=error.offset)
    return NotSupportedError(f"{path}: {within}{error}")
