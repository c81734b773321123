"""Calls that wait for a storage, side by side."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial

import pytest

from lance_format.object_store import ObjectStore, run_together
from lance_format.object_store.local import LocalStore
from lance_format.object_store.memory import MemoryStore

STORES = pytest.mark.parametrize("store", [LocalStore(), MemoryStore()], ids=["local", "memory"])


@STORES
@pytest.mark.parametrize("number", [0, 1, 2, 50])
def test_results_come_in_order_and_no_thread_is_left(store: ObjectStore, number: int) -> None:
    before = threading.active_count()
    assert run_together(store, [partial(str, index) for index in range(number)]) == list(map(str, range(number)))
    assert threading.active_count() == before


def test_calls_run_at_the_same_time() -> None:
    meeting = threading.Barrier(4, timeout=60)
    run_together(LocalStore(), [meeting.wait] * 4)


@STORES
def test_the_first_error_is_raised_when_all_calls_have_ended(store: ObjectStore) -> None:
    ended: list[int] = []
    before = threading.active_count()

    def call(number: int) -> None:
        ended.append(number)
        if number in (3, 5):
            raise ValueError(str(number))

    calls: list[Callable[[], None]] = [partial(call, number) for number in range(200)]
    with pytest.raises(ValueError, match="3"):
        run_together(store, calls)
    seen = list(ended)
    assert set(range(4)) <= set(seen)
    assert len(seen) < 200 or store.parallel_requests > 1
    assert threading.active_count() == before
    assert ended == seen
