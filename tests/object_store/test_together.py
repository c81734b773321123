"""Calls that wait for a storage, side by side."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from lance_format.object_store import ObjectStore, map_together, run_together
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


class _Distant(MemoryStore):
    """Pretends that requests take long."""

    @property
    def is_remote(self) -> bool:
        return True

    @property
    def parallel_requests(self) -> int:
        return 4


@pytest.mark.parametrize("store", [LocalStore(), MemoryStore(), _Distant()], ids=["local", "memory", "distant"])
@pytest.mark.parametrize("number", [0, 1, 3, 4, 5, 50])
def test_items_are_mapped_in_order(store: ObjectStore, number: int) -> None:
    before = threading.active_count()
    assert list(map_together(store, str, iter(range(number)))) == list(map(str, range(number)))
    assert threading.active_count() == before


def test_as_many_items_as_gain_time_are_mapped_at_the_same_time() -> None:
    meeting, taken = threading.Barrier(4, timeout=60), []

    def meet(number: int) -> int:
        meeting.wait()
        return number

    def items() -> Iterator[int]:
        for number in range(8):
            taken.append(number)
            yield number

    found = map_together(_Distant(), meet, items())
    assert next(found) == 0
    assert len(taken) == 4
    assert list(found) == list(range(1, 8))


def test_an_item_that_fails_ends_the_others() -> None:
    before, begun = threading.active_count(), []

    def call(number: int) -> int:
        begun.append(number)
        if number == 3:
            raise ValueError(str(number))
        return number

    found = map_together(_Distant(), call, range(1000))
    assert [next(found) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(ValueError, match="3"):
        next(found)
    assert max(begun) < 12
    assert threading.active_count() == before


def test_a_reader_that_stops_early_leaves_no_thread() -> None:
    before = threading.active_count()
    found = map_together(_Distant(), str, itertools.count())
    assert next(found) == "0"
    found.close()
    assert threading.active_count() == before
