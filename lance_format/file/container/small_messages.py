"""Parsing of small messages once for all files that have them: small files of a table often have the very same."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
_Parse = Callable[Concatenate[bytes, P], R]


def parsed_once(num_messages: int, max_bytes: int = 4096) -> Callable[[_Parse[P, R]], _Parse[P, R]]:
    """Return a decorator of a function of a message, which keeps what the last small ones were parsed to.

    Callers share the result, and must not modify it.

    Parameters
    ----------
    num_messages : int
        Number of messages whose parsed form is kept for other files.
    max_bytes : int
        Maximum size of such a message.
    """

    def remember(parse: _Parse[P, R]) -> _Parse[P, R]:
        known: Any = functools.lru_cache(maxsize=num_messages)(parse)

        @functools.wraps(parse)
        def parse_message(data: bytes, /, *args: P.args, **kwargs: P.kwargs) -> R:
            found: R = (known if len(data) <= max_bytes else parse)(data, *args, **kwargs)
            return found

        return parse_message

    return remember
