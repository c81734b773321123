"""Keys of caches that compare objects by identity, where comparing their contents costs as much as computing again."""

from __future__ import annotations

from typing import Generic, TypeVar

_T = TypeVar("_T")


class Itself(Generic[_T]):
    """An object as a key, equal to itself alone; the key keeps it alive.

    Parameters
    ----------
    value : object
    """

    __slots__ = ("value",)

    def __init__(self, value: _T) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Itself) and self.value is other.value
