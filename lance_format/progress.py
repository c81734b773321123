"""Progress of long operations, for callers who pass `progress=`.

An operation that is watched has a *meter*, which code below it finds in a context variable: no function hands it on.
Code that does a kind of work tells the meter how much is done (`advance`). Code that plans work tells how much there is
(`expect`). A meter counts one kind of work and ignores others, such as the automatic cleanup after a write. Without a
meter both do nothing. Threads that an operation starts have no meter.
"""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any, TypeAlias

from lance_format.errors import NotSupportedError
from lance_format.lazy_dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """State of an operation.

    Parameters
    ----------
    step : str
        Name of the operation, such as `compact`.
    rows : int
        Number of rows done.
    total_rows : int or None
        Number of all rows; None if it is unknown, or the operation is not about rows.
    size_bytes : int
        Number of bytes done: of Arrow data for writes, of files otherwise.
    total_bytes : int or None
        Number of all bytes; None if it is unknown.
    """

    step: str
    rows: int = 0
    total_rows: int | None = None
    size_bytes: int = 0
    total_bytes: int | None = None


Report: TypeAlias = Callable[[Progress], object] | bool | None
"""The argument `progress=`: a function that is called with the state, True for a bar, None for nothing."""


class Work(enum.Enum):
    """Kinds of work."""

    WRITING = enum.auto()
    INDEXING = enum.auto()
    CHECKING = enum.auto()
    DELETING = enum.auto()
    COPYING = enum.auto()


@dataclass(slots=True)
class _Meter:
    work: Work
    state: Progress
    callback: Callable[[Progress], object]
    bytes_follow_rows: bool = False

    def expect(self, rows: int | None, size_bytes: int | None, *, bytes_follow_rows: bool) -> None:
        self.bytes_follow_rows = bytes_follow_rows
        self._tell(Progress(self.state.step, 0, rows, 0, size_bytes))

    def advance(self, rows: int, size_bytes: int) -> None:
        state = self.state
        rows += state.rows
        if self.bytes_follow_rows:
            size_bytes = (state.total_bytes or 0) * rows // state.total_rows if state.total_rows else 0
        else:
            size_bytes += state.size_bytes
        self._tell(Progress(state.step, rows, state.total_rows, size_bytes, state.total_bytes))

    def finish(self) -> None:
        state = self.state
        rows = state.rows if state.total_rows is None else state.total_rows
        size_bytes = state.size_bytes if state.total_bytes is None else state.total_bytes
        self._tell(Progress(state.step, rows, state.total_rows, size_bytes, state.total_bytes))

    def _tell(self, state: Progress) -> None:
        self.state = state
        self.callback(state)


_METER: ContextVar[_Meter | None] = ContextVar("lance_progress", default=None)


@contextlib.contextmanager
def reported(report: Report, step: str, work: Work) -> Iterator[None]:
    """Report the progress of what happens inside. An exception of the caller's function ends it.

    Parameters
    ----------
    report : callable, bool or None
        See `Report`.
    step : str
        See `Progress`.
    work : Work
        The kind of work to count.

    Raises
    ------
    NotSupportedError
        If a bar is requested, and the package `rich` is missing.
    """
    if report is None or report is False:
        yield
        return
    with contextlib.ExitStack() as stack:
        callback = stack.enter_context(_bar()) if report is True else report
        meter = _Meter(work, Progress(step), callback)
        token = _METER.set(meter)
        try:
            yield
        finally:
            _METER.reset(token)
        meter.finish()


def is_reported(work: Work) -> bool:
    """Return whether somebody counts a kind of work, so that it pays to find its extent."""
    meter = _METER.get()
    return meter is not None and meter.work is work


def expect(work: Work, rows: int | None, size_bytes: int | None, *, bytes_follow_rows: bool = False) -> None:
    """Tell how much work there is. An operation that starts again, after a conflict, tells it again.

    Parameters
    ----------
    work : Work
    rows, size_bytes : int, optional
        None if unknown.
    bytes_follow_rows : bool
        Whether the bytes that are done are the share of the rows that are done.
    """
    meter = _METER.get()
    if meter is not None and meter.work is work:
        meter.expect(rows, size_bytes, bytes_follow_rows=bytes_follow_rows)


def advance(work: Work, rows: int, size_bytes: int) -> None:
    """Tell that some more work is done; see `Progress`."""
    meter = _METER.get()
    if meter is not None and meter.work is work:
        meter.advance(rows, size_bytes)


@contextlib.contextmanager
def _bar() -> Iterator[Callable[[Progress], object]]:
    """Show a bar on standard error while it is a terminal, or in a notebook."""
    try:
        from rich import progress as bars  # of the extra `cli`; only bars need it
        from rich.console import Console
    except ModuleNotFoundError as error:
        raise NotSupportedError(
            f"a bar needs the package {error.name}: run  pip install 'pyspark-lance[cli]', or pass a function"
        ) from error
    console = Console(stderr=True)
    if not (console.is_terminal or console.is_jupyter):
        yield lambda _: None
        return
    columns: Any = ("{task.description}", bars.BarColumn(), "{task.percentage:>3.0f}%", "{task.fields[rows]}")
    with bars.Progress(*columns, bars.TimeRemainingColumn(), console=console, transient=True) as bar:
        task = bar.add_task("", total=None, rows="")

        def show(state: Progress) -> None:
            by_bytes = state.total_bytes is not None
            total, done = (state.total_bytes, state.size_bytes) if by_bytes else (state.total_rows, state.rows)
            rows = f"{state.rows:,} rows" if state.rows else ""
            bar.update(task, description=state.step, total=total, completed=done, rows=rows)

        yield show
