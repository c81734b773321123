"""Processes of a stream's driver that die, or stop for a while, at each call that touches the disk.

Spark is not needed for that: a batch is what Spark does with the sink, by copies of it, in a process that is killed. A
file per batch stands for the checkpoint.
"""

from __future__ import annotations

import datetime
import functools
import json
import os
import pickle
import random
import signal
import traceback
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import lance
import pyarrow as pa
import pytest
from pyspark.sql.types import StructType

import lance_format
from connector.source.data_source import LanceDataSource
from connector.stream import sink as sinks
from connector.write import writer as writers
from lance_format.object_store import local, local_files
from tests.processes import run
from tests.table.faults import FaultyDisk
from tests.table.leftovers import leftovers

MODES = ("append", "complete", "update")
NUM_BATCHES = 3
PARTS = 6
"""Numbers of tests among which all calls are divided: a process may take ten minutes."""
_SCHEMA = StructType().add("a", "long").add("s", "string")
_EMPTY = pa.table({"a": pa.array([], pa.int64()), "s": pa.array([], pa.string())})


class DeadlyDisk(FaultyDisk):
    """Sends this process a signal before or after a call that touches the disk; see `FaultyDisk`.

    Parameters
    ----------
    number : int
        The number of the call.
    is_late : bool
        Whether the call does its work first.
    number_of_signal : int
    """

    def __init__(self, number: int, *, is_late: bool, number_of_signal: int) -> None:
        super().__init__(-1, 0)
        self._number, self._comes_after, self._signal = number, is_late, number_of_signal

    def __getattr__(self, name: str) -> Any:
        proper = super().__getattr__(name)
        if name not in self._kinds:
            return proper

        def call(*arguments: Any, **options: Any) -> Any:
            is_chosen = self.num_calls == self._number
            if is_chosen and not self._comes_after:
                os.kill(os.getpid(), self._signal)
            try:
                return proper(*arguments, **options)
            finally:
                if is_chosen and self._comes_after:
                    os.kill(os.getpid(), self._signal)

        return call


def rows_of(mode: str, batch: int) -> list[list[tuple[int, str]]]:
    """Return the rows of the two tasks of a batch; those of an update replace some of the batch before."""
    first = batch * (10 if mode == "append" else 5)
    rows = [(number, f"{batch} {number}") for number in range(first, first + 10)]
    return [rows[:4], rows[4:]]


def model(mode: str) -> dict[int, str]:
    """Return the rows of the table after all batches."""
    batches = range(NUM_BATCHES - 1, NUM_BATCHES) if mode == "complete" else range(NUM_BATCHES)
    return dict(row for batch in batches for rows in rows_of(mode, batch) for row in rows)


def run_batch(directory: Path, mode: str, batch: int) -> None:
    """Do what Spark does for a batch: plan it, run two tasks, and commit by another copy of the writer."""
    form = {"mode": mode.capitalize(), "uuid": str(uuid.uuid4())}
    options = {"path": str(directory / "t"), "__lance.sink": json.dumps(form), "max_row_per_file": "3"}
    if mode == "update":
        options["mergeKey"] = "a"
    planned = pickle.dumps(LanceDataSource(options).streamWriter(_SCHEMA, overwrite=mode == "complete"))
    messages = []
    for number, rows in enumerate(rows_of(mode, batch)):
        properties = {"sql.streaming.queryId": "query", "streaming.sql.batchId": str(batch)}
        task = SimpleNamespace(
            getLocalProperty=properties.get, partitionId=functools.partial(int, number), attemptNumber=int
        )
        for module in (sinks, writers):
            vars(module)["TaskContext"] = SimpleNamespace(get=functools.partial(_same, task))
        given = pa.record_batch({"a": pa.array([a for a, _ in rows], pa.int64()), "s": [s for _, s in rows]})
        messages.append(pickle.loads(pickle.dumps(pickle.loads(planned).write(iter([given])))))
    pickle.loads(planned).commit(messages, batch)


def _same(value: Any) -> Any:
    return value


def drive(directory: Path, mode: str, number: int = -1, is_late: bool = False, signal_number: int = 0) -> None:
    """Run the batches that the checkpoint lacks. A process that was stopped ends with its batch: its driver is gone."""
    disk = DeadlyDisk(number, is_late=is_late, number_of_signal=signal_number)
    for module in (local, local_files):
        vars(module)["os"] = disk
    for batch in range(NUM_BATCHES):
        mark = directory / f"committed {batch}"
        if not mark.exists():
            run_batch(directory, mode, batch)
            if signal_number == signal.SIGSTOP and disk.num_calls > number:
                return
            mark.touch()
    (directory / "calls").write_text(str(disk.num_calls))


def start(work: Callable[[], None]) -> int:
    """Fork a process, and return its id."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        work()
        code = 0
    except BaseException:
        traceback.print_exc()
    os._exit(code)


def finish(work: Callable[[], None]) -> int:
    """Run a process, and return its exit code."""
    return os.waitstatus_to_exitcode(os.waitpid(start(work), 0)[1])


def prepare(directory: Path, mode: str) -> Path:
    directory.mkdir()
    if mode == "update":
        lance_format.write_dataset(_EMPTY, str(directory / "t"), enable_stable_row_ids=True)
    return directory


def disturb(directory: Path, mode: str) -> None:
    """Append as another writer does, compact, and clean up, unless a batch replaces all rows."""
    path = directory / "t"
    if mode == "complete" or not list(path.glob("_versions/*.manifest")):
        return
    lance.write_dataset(pa.table({"a": [1000], "s": ["foreign"]}), str(path), mode="append")
    table = lance_format.dataset(path)
    table.optimize.compact_files()
    table.cleanup_old_versions(datetime.timedelta(0))
    (directory / "disturbed").touch()


def check(directory: Path, mode: str) -> None:
    """Check that each batch is in the table once, and that a cleanup leaves only files of the table."""
    path = directory / "t"
    table = lance_format.dataset(path)
    expected = {**model(mode), **({1000: "foreign"} if (directory / "disturbed").exists() else {})}
    found = sorted((row["a"], row["s"]) for row in table.to_table().to_pylist())
    assert found == sorted(expected.items())
    reference: Any = lance.dataset(str(path))
    reference.validate()
    assert reference.count_rows() == len(found)
    table.cleanup_old_versions(datetime.timedelta(0), delete_unverified=True)
    assert not leftovers(path)
    assert len(lance_format.dataset(path).to_table()) == len(found)


def choose(directory: Path, mode: str, count: int | None, part: int) -> Sequence[int]:
    """Return the numbers of some calls of a query that nothing disturbs, or of those of one of `PARTS` parts."""
    assert finish(lambda: drive(prepare(directory / "counted", mode), mode)) == 0
    assert finish(lambda: check(directory / "counted", mode)) == 0
    num_calls = int((directory / "counted/calls").read_text())
    return range(part, num_calls, PARTS) if count is None else random.Random(mode).sample(range(num_calls), count)


def check_kills(directory: Path, mode: str, count: int | None, part: int = 0) -> None:
    """Kill a driver at calls, each in a table of its own; restart it, and compare the table with the model."""
    for number in choose(directory, mode, count, part):
        for is_late in (False, True):
            place = prepare(directory / f"{number} {is_late}", mode)
            assert finish(lambda: drive(place, mode, number, is_late, signal.SIGKILL)) == -signal.SIGKILL  # noqa: B023
            if number % 2:
                assert finish(lambda: disturb(place, mode)) == 0  # noqa: B023
            assert finish(lambda: drive(place, mode)) == 0  # noqa: B023
            assert finish(lambda: check(place, mode)) == 0, f"call {number} of {mode}, {is_late=}"  # noqa: B023


def check_stops(directory: Path, mode: str, count: int | None, part: int = 0) -> None:
    """Stop a driver at calls, let another one run the query to its end, and let the first one go on."""
    for number in choose(directory, mode, count, part):
        place = prepare(directory / str(number), mode)
        pid = start(lambda: drive(place, mode, number, False, signal.SIGSTOP))  # noqa: B023
        assert os.WIFSTOPPED(os.waitpid(pid, os.WUNTRACED)[1])
        assert finish(lambda: drive(place, mode)) == 0  # noqa: B023
        os.kill(pid, signal.SIGCONT)
        os.waitpid(pid, 0)
        assert finish(lambda: check(place, mode)) == 0, f"call {number} of {mode}"  # noqa: B023


@pytest.mark.parametrize("mode", MODES)
def test_a_driver_that_is_killed_at_a_call_adds_each_batch_once(tmp_path: Path, mode: str) -> None:
    run(functools.partial(check_kills, tmp_path, mode, 6))


@pytest.mark.parametrize("mode", MODES)
def test_a_driver_that_goes_on_after_another_has_taken_its_place_changes_nothing(tmp_path: Path, mode: str) -> None:
    run(functools.partial(check_stops, tmp_path, mode, 4))


@pytest.mark.nightly
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", [check_kills, check_stops])
def test_each_call_of_a_driver(tmp_path: Path, mode: str, kind: Callable[..., None], part: int) -> None:
    run(functools.partial(kind, tmp_path, mode, None, part))
