"""Calls that wait for a storage, side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from lance_format.object_store.store import ObjectStore

_T = TypeVar("_T")


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
