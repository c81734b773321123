"""Reading of the next rows of columns while the preceding ones are used."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass
from threading import Thread

import pyarrow as pa

from lance_format.byte_io import RangeReader
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
        self._source = source
        self._planned: list[Window] = []
        self._results: Future[list[list[pa.Array]]] | None = None

    def start(self, planned: list[Window]) -> None:
        """Start to read windows; no others are being read ahead."""
        if planned:
            self._planned = planned
            self._results = Future()
            Thread(target=self._run, args=(planned, self._results), name="lance-ahead", daemon=True).start()

    def finish(self) -> tuple[list[Window], list[list[pa.Array]]]:
        """Wait for the started windows, and return them with their results; raise their error."""
        planned, results = self._planned, self._results
        self._planned, self._results = [], None
        return planned, [] if results is None else results.result()

    def _run(self, planned: list[Window], results: Future[list[list[pa.Array]]]) -> None:
        try:
            results.set_result(run_plans(self._source, [window.plan for window in planned], cpu_threads))
        except BaseException as error:
            results.set_exception(error)
