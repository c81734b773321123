"""Opening of the next fragments while the rows of one are read, where a request takes long.

Columns of few bytes are read at the same time, so that many small fragments take about as long as a large one.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Generic, TypeAlias, TypeVar

from lance_format.datatypes import Schema
from lance_format.errors import LanceError
from lance_format.lazy_dataclasses import dataclass
from lance_format.object_store import ReadCounter
from lance_format.table.fragments.open_files import FragmentFiles
from lance_format.table.fragments.reader import FragmentReader

_MOST_AHEAD = 32
_READ_PER_AHEAD = 4
"""The more fragments a limited scan has read in vain, the more are opened ahead: one per so many."""
_MOST_AHEAD_IF_LIMITED = 8
_HELD_BYTES = 16 * 1024 * 1024
"""Maximum size of the columns of a fragment that are read before it is its turn."""
_MOST_HELD_BYTES = 32 * 1024 * 1024
"""While the columns of the next fragments have fewer bytes, further ones are opened."""

Rows = TypeVar("Rows")
Wanted: TypeAlias = tuple[FragmentReader, Rows]
"""A fragment, and which of its rows will be read."""


@dataclass(frozen=True, slots=True)
class _Opening(Generic[Rows]):
    """A fragment that is being opened."""

    wanted: Wanted[Rows]
    begun: list[Future[None]]
    size_bytes: float
    """Approximate size of what is read before it is its turn."""


def opened_ahead(
    fragments: Iterable[Wanted[Rows]],
    schema: Schema,
    reads: ReadCounter,
    num_wanted: Callable[[FragmentFiles, FragmentReader, Rows], int],
    *,
    is_limited: bool = False,
) -> Generator[Wanted[Rows], None, None]:
    """Yield fragments in order. On object stores the files of the next ones are opened at the same time.

    An error of a fragment is raised by those who read it, and never for a fragment that is not needed. The threads end
    with this generator: who keeps it in a variable closes it, as the traceback of an error keeps all variables.

    Parameters
    ----------
    fragments : iterable of (FragmentReader, Rows)
        The rows are known to the caller only.
    schema : Schema
        The columns to be read first.
    reads : ReadCounter
        Counts what is read.
    num_wanted : callable
        Returns how many rows of an open fragment will be read. If they are most, they are read ahead.
    is_limited : bool
        Whether the first fragments may suffice, so that few are opened at first, and no rows are read ahead.
    """
    left = iter(fragments)
    first = next(left, None)
    if first is None:
        return
    if not first[0].directory.store.is_remote:
        yield first
        yield from left
        return
    pool = ThreadPoolExecutor(_MOST_AHEAD, "lance-open")
    is_over = threading.Event()
    columns = {node.id for field in schema.fields for node in field.walk()}

    def open_one(scan: FragmentReader, rows: Rows) -> None:
        files = scan.open_ahead(schema, reads)
        if not is_limited and 2 * num_wanted(files, scan, rows) > scan.physical_rows():
            files.hold(schema, _HELD_BYTES)
        if is_over.is_set():
            scan.forget_ahead()

    def begin(wanted: Wanted[Rows]) -> _Opening[Rows]:
        scan, rows = wanted
        calls: list[Callable[[], object]] = [functools.partial(open_one, scan, rows)]
        if scan.fragment.deletion_file is not None:
            calls.append(scan.deleted_rows)
        return _Opening(wanted, [pool.submit(_attempt, call) for call in calls], _estimate(scan, columns))

    num_read = 0
    waiting = deque([begin(first)])
    try:
        while waiting:
            current = waiting.popleft()
            depth = min(num_read // _READ_PER_AHEAD, _MOST_AHEAD_IF_LIMITED) if is_limited else _MOST_AHEAD
            while _has_room(waiting, depth) and (following := next(left, None)) is not None:
                waiting.append(begin(following))
            wait(current.begun)
            yield current.wanted
            num_read += 1
            if not waiting and (following := next(left, None)) is not None:
                waiting.append(begin(following))
    finally:
        is_over.set()
        pool.shutdown(wait=False, cancel_futures=True)
        for opening in waiting:
            opening.wanted[0].forget_ahead()


def _has_room(waiting: deque[_Opening[Rows]], depth: int) -> bool:
    return len(waiting) < depth and sum(opening.size_bytes for opening in waiting) < _MOST_HELD_BYTES


def _estimate(scan: FragmentReader, columns: set[int]) -> float:
    """Estimate the bytes of some columns of a fragment that are held, as if all columns had the same size."""
    size_bytes = 0.0
    for file in scan.fragment.files:
        share = len(columns.intersection(file.fields)) / max(len(file.fields), 1)
        size_bytes += share * (file.file_size_bytes or _HELD_BYTES)
    return min(size_bytes, _HELD_BYTES)


def _attempt(call: Callable[[], object]) -> None:
    with contextlib.suppress(LanceError):
        call()
