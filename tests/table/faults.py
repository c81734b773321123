"""A store that fails on demand."""

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

    _METHODS = ("read", "put", "put_if_absent", "list_names", "list_objects", "size", "delete", "open_reader")

    def __init__(self, inner: ObjectStore, fail: Callable[[int, str, str, str], None]) -> None:
        self._inner = inner
        self._fail = fail
        self.calls = 0

    def __getattr__(self, name: str) -> Any:
        target = getattr(self._inner, name)
        if name not in self._METHODS:
            return target

        def call(path: str, *arguments: Any, **options: Any) -> Any:
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
