"""The functions that expressions call, by the names that SQL has for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow.compute as pc

from lance_format.errors import InvalidInputError


@dataclass(frozen=True, slots=True)
class Function:
    """A function of the values of its arguments.

    Parameters
    ----------
    apply : callable
        Takes one array or scalar for each argument, and returns one.
    arguments : tuple of str
        What each argument must be; `binding` makes it so or refuses.
    required : int, optional
        How many arguments must be given; all, if left out.
    variadic : bool
        Whether the last kind of argument may be given any number of times.
    unified : bool
        Whether the arguments are first made to have one type.
    """

    apply: Callable[..., Any]
    arguments: tuple[str, ...]
    required: int | None = None
    variadic: bool = False
    unified: bool = False

    def check_count(self, name: str, count: int) -> None:
        """Refuse a call with too few arguments or too many.

        Raises
        ------
        InvalidInputError
            So that.
        """
        least = len(self.arguments) if self.required is None else self.required
        if count < least or (count > len(self.arguments) and not self.variadic):
            most = "or more" if self.variadic else f"to {len(self.arguments)}" if least < len(self.arguments) else ""
            raise InvalidInputError(f"{name} takes {f'{least} {most}'.strip()} arguments, and is given {count}")

    def kinds(self, count: int) -> tuple[str, ...]:
        """Return what each of `count` arguments must be."""
        return (self.arguments + self.arguments[-1:] * count)[:count]


FUNCTIONS: dict[str, Function] = {
    "coalesce": Function(pc.coalesce, ("any",), variadic=True, unified=True),
    "lower": Function(pc.utf8_lower, ("string",)),
    "upper": Function(pc.utf8_upper, ("string",)),
}
