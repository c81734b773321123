"""Reading of the next rows of columns while the preceding ones are used, several parts at once."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Sequence
from concurrent.futures import Future
from dataclasses import field
from threading import Event, Thread

import pyarrow as pa

from lance_format.byte_io import Buffer, ByteRange, RangeReader, stream_ranges
from lance_format.errors import CorruptFileError, NotSupportedError
from lance_format.file.reading.column_groups import Window, run_windows
from lance_format.lazy_dataclasses import dataclass

_MAX_PARTS = 16
"""Number of threads of a scan that read; each decodes, too."""


@dataclass(frozen=True, slots=True)
class Part:
    """Windows that are read together, each of one or several columns.

    Parameters
    ----------
    windows : list of Window
        Those of a column follow each other.
    after : sequence of Event
        Events to wait for before the first request.
    """

    windows: list[Window]
    after: Sequence[Event]
    indexed: Event = field(default_factory=Event)
    """Set once the first requests are answered: tables of chunks that they bring are cached."""
    results: Future[list[list[pa.Array]]] = field(default_factory=Future)


class ReadAhead:
    """Reads rows on separate threads while the preceding ones are used.

    Parameters
    ----------
    source : RangeReader
    """

    def __init__(self, source: RangeReader) -> None:
        self.is_wanted = source.request_shape.reads_ahead
        self.has_failed = False
        self._source = source
        self._parts: deque[Part] = deque()
        self._abandoned = Event()

    @property
    def is_idle(self) -> bool:
        """True if nothing is being read, or waits to be finished."""
        return not self._parts

    @property
    def is_full(self) -> bool:
        """True if no further part can be started."""
        return len(self._parts) >= _MAX_PARTS

    @property
    def is_ready(self) -> bool:
        """True if the first part has been read, and no error occurred."""
        results = self._parts[0].results if self._parts else None
        return results is not None and results.done() and results.exception() is None

    def start(self, windows: list[Window], after: Sequence[Event]) -> Event:
        """Start to read windows, which follow those of the parts before; return when their tables of chunks are known.

        Parameters
        ----------
        windows : list of Window
        after : sequence of Event
            See `Part`.
        """
        part = Part(windows, after)
        self._parts.append(part)
        Thread(target=self._run, args=(part,), name="lance-ahead", daemon=True).start()
        return part.indexed

    def finish(self) -> tuple[list[Window], list[list[pa.Array]]]:
        """Wait for the first part, and return it.

        Nothing is returned if a page is malformed: the rows that are needed may lie before it. From then on nothing is
        read ahead, so that the error is raised where the page is needed.

        Raises
        ------
        StorageError
            If the storage fails.
        """
        part = self._parts.popleft()
        try:
            return part.windows, part.results.result()
        except (CorruptFileError, NotSupportedError):
            self.is_wanted, self.has_failed = False, True
            self.abandon()
            return [], []

    def abandon(self) -> None:
        """End what was begun. The threads end when the requests under way do, without a wait for them."""
        self._abandoned.set()
        self._parts.clear()

    def _run(self, part: Part) -> None:
        try:
            for event in part.after:
                event.wait()
            source = _AbandonableSource(self._source, self._abandoned)
            part.results.set_result(run_windows(source, part.windows, part.indexed.set))
        except BaseException as error:
            part.results.set_exception(error)
        finally:
            part.indexed.set()


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
