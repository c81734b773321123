"""Calls that wait for a storage, side by side."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from lance_format.object_store.store import ObjectStore

_T = TypeVar("_T")
_Item = TypeVar("_Item")


def run_together(store: ObjectStore, calls: Sequence[Callable[[], _T]]) -> list[_T]:
    """Run calls that each wait for a storage, and return their results in order.

    The threads end with the last call, so that the process may be forked afterwards.

    Parameters
    ----------
    store : ObjectStore
        The storage, which says how many calls at once gain time.
    calls : sequence of callable

    Raises
    ------
    BaseException
        The error of the first call that failed, once all calls have ended. Calls that had not begun are left out.
    """
    threads = min(store.parallel_requests, len(calls))
    if threads <= 1:
        return [call() for call in calls]
    with ThreadPoolExecutor(threads, "lance-io") as pool:
        running = [pool.submit(call) for call in calls]
        try:
            return [call.result() for call in running]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def map_together(
    store: ObjectStore, function: Callable[[_Item], _T], items: Iterable[_Item]
) -> Generator[_T, None, None]:
    """Yield the results of a function in order. Where a request takes long, the next calls run meanwhile.

    The threads end with the last call, or with this generator.

    Parameters
    ----------
    store : ObjectStore
        The storage that the calls read.
    function : callable
    items : iterable
        Taken a few at a time.

    Raises
    ------
    BaseException
        The error of a call, when it is its turn. Calls that had not begun are left out.
    """
    if not store.is_remote or store.parallel_requests <= 1:
        yield from map(function, items)
        return
    running: deque[Future[_T]] = deque()
    with ThreadPoolExecutor(store.parallel_requests, "lance-io") as pool:
        try:
            for item in items:
                running.append(pool.submit(function, item))
                if len(running) >= store.parallel_requests:
                    yield running.popleft().result()
            while running:
                yield running.popleft().result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
