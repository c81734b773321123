"""Reading of the next rows of columns while the preceding ones are used."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from threading import Event, Thread

import pyarrow as pa

from lance_format.byte_io import Buffer, ByteRange, RangeReader, stream_ranges
from lance_format.errors import CorruptFileError, NotSupportedError
from lance_format.file.container.scheduler import NamedPlan, run_plans
from lance_format.file.reading.column_reader import Cursor
from lance_format.file.reading.cpu_threads import cpu_threads


@dataclass(frozen=True, slots=True)
class Window:
    """Rows of a column that are to be decoded.

    Parameters
    ----------
    cursor : Cursor
    end : int
        The row after them.
    plan : NamedPlan
    """

    cursor: Cursor
    end: int
    plan: NamedPlan[list[pa.Array]]


class ReadAhead:
    """Reads rows on a separate thread while the preceding ones are used.

    Parameters
    ----------
    source : RangeReader
    """

    def __init__(self, source: RangeReader) -> None:
        self.is_wanted = source.request_shape.reads_ahead
        self.has_failed = False
        self._source = source
        self._planned: list[Window] = []
        self._results: Future[list[list[pa.Array]]] | None = None
        self._abandoned = Event()

    @property
    def is_idle(self) -> bool:
        """True if nothing is being read, or waits to be finished."""
        return self._results is None

    @property
    def is_ready(self) -> bool:
        """True if rows have been read, and no error occurred."""
        return self._results is not None and self._results.done() and self._results.exception() is None

    def start(self, planned: list[Window]) -> None:
        """Start to read windows; no others are being read ahead."""
        if planned:
            self._planned = planned
            self._results = Future()
            Thread(target=self._run, args=(planned, self._results), name="lance-ahead", daemon=True).start()

    def finish(self) -> tuple[list[Window], list[list[pa.Array]]]:
        """Wait for what was begun, and return it.

        Nothing is returned if a page is malformed: the rows that are needed may lie before it. From then on nothing is
        read ahead, so that the error is raised where the page is needed.

        Raises
        ------
        StorageError
            If the storage fails.
        """
        planned, results = self._planned, self._results
        self._planned, self._results = [], None
        if results is None:
            return [], []
        try:
            return planned, results.result()
        except (CorruptFileError, NotSupportedError):
            self.is_wanted, self.has_failed = False, True
            return [], []

    def abandon(self) -> None:
        """End what was begun. The thread ends when the requests under way do, without a wait for it."""
        self._abandoned.set()
        self._planned, self._results = [], None

    def _run(self, planned: list[Window], results: Future[list[list[pa.Array]]]) -> None:
        try:
            source = _AbandonableSource(self._source, self._abandoned)
            results.set_result(run_plans(source, [window.plan for window in planned], cpu_threads))
        except BaseException as error:
            results.set_exception(error)


class _AbandonedError(Exception):
    """Nobody waits for the rows anymore."""


class _AbandonableSource:
    """A `RangeReader` that begins no request once its reading is abandoned."""

    def __init__(self, source: RangeReader, abandoned: Event) -> None:
        self._source = source
        self._abandoned = abandoned
        self.path = source.path
        self.size_bytes = source.size_bytes
        self.request_shape = source.request_shape

    def read_ranges(self, ranges: Sequence[ByteRange]) -> list[bytes]:
        return [bytes(found) for found in self.stream_ranges(ranges)]

    def stream_ranges(self, ranges: Sequence[ByteRange]) -> Generator[Buffer, None, None]:
        self._check()
        for found in stream_ranges(self._source, ranges):
            yield found
            self._check()

    def close(self) -> None:
        """Leave the source open."""

    def _check(self) -> None:
        if self._abandoned.is_set():
            raise _AbandonedError
