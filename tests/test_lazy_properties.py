"""Properties that are computed once, also while other threads compute theirs."""

from __future__ import annotations

import threading

from lance_format.lazy_properties import cached_property


class _Waiting:
    """Computes a property when it may."""

    def __init__(self) -> None:
        self.begun, self.may_end, self.num_calls = threading.Event(), threading.Event(), 0

    @cached_property
    def value(self) -> int:
        """The number of times it was computed."""
        self.num_calls += 1
        self.begun.set()
        self.may_end.wait(60)
        return self.num_calls


def test_it_is_computed_once() -> None:
    one = _Waiting()
    one.may_end.set()
    assert (one.value, one.value, one.num_calls) == (1, 1, 1)
    assert isinstance(_Waiting.value, cached_property)


def test_no_instance_waits_for_another() -> None:
    """A process that is forked while a thread computes a property lacks that thread."""
    busy, free = _Waiting(), _Waiting()
    thread = threading.Thread(target=lambda: busy.value)
    thread.start()
    assert busy.begun.wait(60)
    free.may_end.set()
    found: list[int] = []
    other = threading.Thread(target=lambda: found.append(free.value), daemon=True)
    other.start()
    other.join(5)
    busy.may_end.set()
    thread.join()
    assert found == [1]
