"""Opening of the next fragments of a scan while the rows of one are read, where a request takes long."""

from __future__ import annotations

import contextlib
import functools
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait

from lance_format.datatypes import Schema
from lance_format.errors import LanceError
from lance_format.object_store import ReadCounter
from lance_format.table.fragments.reader import FragmentReader
from lance_format.table.scan.row_ranges import RowRanges

_MOST_AHEAD = 8
_READ_PER_AHEAD = 4
"""The more fragments a limited scan has read in vain, the more are opened ahead: one per so many."""

_Opening = tuple[FragmentReader, RowRanges, "list[Future[None]]"]


def opened_ahead(
    fragments: Iterable[tuple[FragmentReader, RowRanges]], schema: Schema, reads: ReadCounter, *, is_limited: bool
) -> Iterator[tuple[FragmentReader, RowRanges]]:
    """Yield fragments in order. On object stores the files of the next ones are opened at the same time.

    An error of a fragment is raised by those who read it, and never for a fragment that is not needed.

    Parameters
    ----------
    fragments : iterable of (FragmentReader, RowRanges)
    schema : Schema
        The columns to be read first.
    reads : ReadCounter
        Counts what is read.
    is_limited : bool
        Whether the first fragments may suffice, so that few are opened at first.
    """
    left = iter(fragments)
    first = next(left, None)
    if first is None:
        return
    if not first[0].directory.store.is_remote:
        yield first
        yield from left
        return
    pool = ThreadPoolExecutor(2 * _MOST_AHEAD, "lance-open")

    def begin(scan: FragmentReader) -> list[Future[None]]:
        calls: list[Callable[[], object]] = [functools.partial(scan.open_ahead, schema, reads)]
        if scan.fragment.deletion_file is not None:
            calls.append(scan.deleted_rows)
        return [pool.submit(_attempt, call) for call in calls]

    num_read = 0
    waiting: deque[_Opening] = deque([(*first, begin(first[0]))])
    try:
        while waiting:
            scan, ranges, begun = waiting.popleft()
            depth = min(num_read // _READ_PER_AHEAD, _MOST_AHEAD) if is_limited else _MOST_AHEAD
            while len(waiting) < depth and (following := next(left, None)) is not None:
                waiting.append((*following, begin(following[0])))
            wait(begun)
            yield scan, ranges
            num_read += 1
            if not waiting and (following := next(left, None)) is not None:
                waiting.append((*following, begin(following[0])))
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _attempt(call: Callable[[], object]) -> None:
    with contextlib.suppress(LanceError):
        call()
