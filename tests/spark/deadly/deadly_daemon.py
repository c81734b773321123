"""The daemon of Spark's workers, whose executors are killed at chosen points of the tasks of streams, once each.

    spark.python.daemon.module deadly_daemon

LANCE_STRIKES names a directory. A file `<table> <batch> <point>` in it asks for a strike: the first task that reaches
the point renames the file, and kills its executor and itself. Points are those of `strike`.
"""

from __future__ import annotations

import os
import runpy
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark import TaskContext

from connector.stream import changes_reading, sink


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def strike(table: str, point: str) -> None:
    """Kill the executor of this task if a file asks for it.

    Parameters
    ----------
    table : str
        The path of the table that is written; empty while a table is read.
    point : {"reading", "begun", "midway", "written"}
        After some rows were read, before a row is written, after some files were written, or after all files of the
        task were, before its message is sent.
    """
    batch = TaskContext.get().getLocalProperty("streaming.sql.batchId")
    asked = Path(os.environ["LANCE_STRIKES"], f"{Path(table).name} {batch} {point}")
    try:
        asked.rename(asked.with_name(f"done {asked.name}"))
    except FileNotFoundError:
        return
    pid = os.getpid()
    while "java" not in Path(f"/proc/{pid}/comm").read_text():
        pid = _parent(pid)
    os.kill(pid, signal.SIGKILL)
    time.sleep(600)  # Spark's daemon dies with its executor, and its workers with it


def _striking(batches: Iterator[Any], table: str) -> Iterator[Any]:
    strike(table, "begun")
    for number, batch in enumerate(batches):
        if number == 3:
            strike(table, "midway")
        yield batch


_write, _read = sink.StreamSink.write, changes_reading.RowReader.read


def write(self: Any, iterator: Iterator[Any]) -> Any:
    message = _write(self, _striking(iterator, self._options.path))
    strike(self._options.path, "written")
    return message


def read(self: Any, partition: Any) -> Iterator[Any]:
    for number, batch in enumerate(_read(self, partition)):
        if number == 3:
            strike("", "reading")
        yield batch


sink.StreamSink.write = write  # type: ignore[method-assign]
changes_reading.RowReader.read = read  # type: ignore[method-assign]

if __name__ == "__main__":
    runpy.run_module("connector.daemon", run_name="__main__", alter_sys=True)
