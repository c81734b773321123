import functools
import os

import pytest

from tests.processes import at_once, run


def _number(value: int) -> tuple[int, int]:
    return value, os.getpid()


def _fail() -> None:
    raise ValueError("wrong")


def test_each_is_a_process() -> None:
    found = at_once(*(functools.partial(_number, value) for value in range(3)))
    assert [value for value, _ in found] == [0, 1, 2]
    assert len({pid for _, pid in found} | {os.getpid()}) == 4


def test_errors_come_back() -> None:
    with pytest.raises(AssertionError, match="ValueError: wrong"):
        at_once(functools.partial(_number, 1), _fail)


def test_a_process_that_dies_is_an_error() -> None:
    with pytest.raises(AssertionError, match="a process died"):
        run(functools.partial(os._exit, 1))
