"""Processes that do something at the same time, forked from one that is prepared for it.

A new Python process takes more than a second until it has imported both libraries and loaded the compiled kernels.
The server that these are forked from does so once (`tests.prepared`), and uses no thread of pylance.
"""

from __future__ import annotations

import multiprocessing
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any

context = multiprocessing.get_context("forkserver")
context.set_forkserver_preload(["tests.prepared"])

_SECONDS = 600


def at_once(*works: Callable[[], Any]) -> list[Any]:
    """Run functions at the same time, each in a process of its own, and return what they return.

    Parameters
    ----------
    *works : callable
        Functions of modules, with their arguments by `functools.partial`. All begin when all processes are there.

    Raises
    ------
    AssertionError
        If one raises, with its traceback, or dies.
    """
    with _processes(works) as connections:
        for connection in connections:
            assert _receive(connection) == "ready"
        for connection in connections:
            connection.send("go")
        return [_receive(connection) for connection in connections]


def run(work: Callable[[], Any]) -> Any:
    """Run a function in a process of its own, and return what it returns."""
    return at_once(work)[0]


@contextmanager
def _processes(works: Sequence[Callable[[], Any]]) -> Iterator[list[Connection]]:
    pairs = [context.Pipe() for _ in works]
    processes = [
        context.Process(target=_main, args=(work, theirs)) for work, (_, theirs) in zip(works, pairs, strict=True)
    ]
    try:
        for process, (_, theirs) in zip(processes, pairs, strict=True):
            process.start()
            theirs.close()
        yield [ours for ours, _ in pairs]
    finally:
        for process, (ours, _) in zip(processes, pairs, strict=True):
            ours.close()
            if process.pid is not None:
                process.kill()
                process.join()
                process.close()


def _receive(connection: Connection) -> Any:
    assert connection.poll(_SECONDS), "a process does not end"
    try:
        value, error = connection.recv()
    except EOFError:
        raise AssertionError("a process died") from None
    assert error is None, error
    return value


def _main(work: Callable[[], Any], connection: Connection) -> None:
    connection.send(("ready", None))
    connection.recv()
    try:
        connection.send((work(), None))
    except BaseException:
        connection.send((None, traceback.format_exc()))
