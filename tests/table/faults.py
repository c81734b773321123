"""A store that fails on demand."""

import os
import threading
from collections.abc import Callable
from typing import Any

from lance_format import StorageError
from lance_format.object_store import ObjectStore


class Crash(BaseException):
    """The process dies here: nothing that handles errors may see it."""


class FaultyStore:
    """Passes everything on, until a chosen call of a method that touches the storage.

    Parameters
    ----------
    inner : ObjectStore
    fail : callable
        Called with the number of the call, the method's name and the path, before and after the call proper;
        what it raises is what the caller sees.
    """

    _METHODS = (
        "read",
        "put",
        "put_if_absent",
        "list_names",
        "list_first",
        "list_objects",
        "size",
        "delete",
        "open_reader",
    )

    def __init__(self, inner: ObjectStore, fail: Callable[[int, str, str, str], None]) -> None:
        self._inner = inner
        self._fail = fail
        self._lock = threading.Lock()
        self.calls = 0

    def __getattr__(self, name: str) -> Any:
        target = getattr(self._inner, name)
        if name not in self._METHODS:
            return target

        def call(path: str, *arguments: Any, **options: Any) -> Any:
            with self._lock:
                number = self.calls
                self.calls += 1
            self._fail(number, "before", name, path)
            try:
                return target(path, *arguments, **options)
            finally:
                self._fail(number, "after", name, path)

        return call


def crash_at(wanted: int, moment: str) -> Callable[[int, str, str, str], None]:
    def fail(number: int, when: str, _name: str, _path: str) -> None:
        if number == wanted and when == moment:
            raise Crash

    return fail


def error_at(
    wanted: int, moment: str, error: type[StorageError] = StorageError
) -> Callable[[int, str, str, str], None]:
    def fail(number: int, when: str, name: str, path: str) -> None:
        if number == wanted and when == moment:
            raise error(f"injected {when} {name} {path}")

    return fail


WRITING = frozenset({"makedirs", "write", "fsync", "link", "replace", "open"})
_WATCHED = WRITING | {"pread", "scandir", "stat", "fstat", "unlink", "rename"}


class FaultyDisk:
    """Stands for the module `os` as the local store sees it, and fails where it is told to.

    Parameters
    ----------
    first : int
        The number of the first call that fails, among those that touch the disk; or, with `kinds`, among these.
    code : int
        What it fails with, as in `errno`.
    is_late : bool
        Whether the call does its work before it fails.
    keeps_failing : bool
        Whether all calls of these kinds fail from then on.
    kinds : set of str
        Names of calls.

    Attributes
    ----------
    num_calls : int
        Number of calls until now.
    refused : set of str
        Names of the calls that have failed.
    """

    def __init__(
        self,
        first: int,
        code: int,
        *,
        is_late: bool = False,
        keeps_failing: bool = False,
        kinds: frozenset[str] = _WATCHED,
    ) -> None:
        self.num_calls = 0
        self.refused: set[str] = set()
        self._first, self._code, self._is_late, self._keeps_failing = first, code, is_late, keeps_failing
        self._kinds = kinds
        self._lock = threading.Lock()

    def __getattr__(self, name: str) -> Any:
        proper = getattr(os, name)
        if name not in self._kinds:
            return proper

        def call(*arguments: Any, **options: Any) -> Any:
            if name == "open" and self._kinds is WRITING and not arguments[1] & os.O_CREAT:
                return proper(*arguments, **options)
            with self._lock:
                number = self.num_calls
                self.num_calls += 1
            fails = number == self._first or (self._keeps_failing and number > self._first)
            if fails:
                self.refused.add(name)
            if fails and not self._is_late:
                raise OSError(self._code, os.strerror(self._code))
            result = proper(*arguments, **options)
            if fails:
                if name == "open":
                    os.close(result)
                raise OSError(self._code, os.strerror(self._code))
            return result

        return call
