"""Errors as users see them: Spark shows the traceback above the message, and most of it is ours."""

from __future__ import annotations

import functools
import inspect
import logging
from collections.abc import Callable, Iterator
from typing import Any, ParamSpec, TypeVar

from lance_format import LanceError

P = ParamSpec("P")
T = TypeVar("T")

_log = logging.getLogger(__name__)


def told_briefly(work: Callable[P, T]) -> Callable[P, T]:
    """Let errors of the library leave a function, or a generator, without their traceback, which is logged.

    Spark shows it with errors of tasks, and without the planner with those of the processes that plan and commit. Other
    errors are no answers to users, and keep it.
    """
    if inspect.isgeneratorfunction(work):

        @functools.wraps(work)
        def generate(*args: P.args, **kwargs: P.kwargs) -> Iterator[Any]:
            try:
                yield from work(*args, **kwargs)
            except LanceError as error:
                raise _brief(error) from None

        return generate  # type: ignore[return-value]

    @functools.wraps(work)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return work(*args, **kwargs)
        except LanceError as error:
            raise _brief(error) from None

    return call


def _brief(error: LanceError) -> LanceError:
    _log.debug("work for Spark fails", exc_info=error)
    return error.with_traceback(None)
