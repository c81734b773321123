"""Processes of a stream's driver that die, or stop for a while, at each call that touches the disk.

Spark is not needed for that: a batch is what Spark does with the sink, by copies of it, in a process that is killed. A
file per batch stands for the checkpoint. The batches before the one that is killed are written once, and copied.
"""

from __future__ import annotations

import datetime
import functools
import gc
import json
import os
import pickle
import random
import shutil
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

pytestmark = pytest.mark.system

MODES = ("append", "complete", "update", "compacted")
"""Output modes, and `append` with a compaction after each batch."""
BATCHES = (2, 0)
"""The batches that are killed: the first, which makes the table unless the mode is `update`, and a later one."""
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
    first = batch * (10 if mode in ("append", "compacted") else 5)
    rows = [(number, f"{batch} {number}") for number in range(first, first + 10)]
    return [rows[:4], rows[4:]]


def model(mode: str, last: int) -> dict[int, str]:
    """Return the rows of the table after a batch."""
    batches = range(last, last + 1) if mode == "complete" else range(last + 1)
    return dict(row for batch in batches for rows in rows_of(mode, batch) for row in rows)


def run_batch(directory: Path, mode: str, batch: int) -> None:
    """Do what Spark does for a batch: plan it, run two tasks, and commit by another copy of the writer."""
    output_mode = "append" if mode == "compacted" else mode
    form = {"mode": output_mode.capitalize(), "uuid": str(uuid.uuid4())}
    options = {"path": str(directory / "t"), "__lance.sink": json.dumps(form), "max_row_per_file": "3"}
    if mode == "update":
        options["mergeKey"] = "a"
    if mode == "compacted":
        options["compactEvery"] = "1"
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


def drive(
    directory: Path, mode: str, last: int, number: int = -1, is_late: bool = False, signal_number: int = 0
) -> None:
    """Run the batches that the checkpoint lacks. A process that was stopped ends with its batch: its driver is gone."""
    disk = DeadlyDisk(number, is_late=is_late, number_of_signal=signal_number)
    for module in (local, local_files):
        vars(module)["os"] = disk
    for batch in range(last + 1):
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


def prepare(directory: Path, mode: str, last: int) -> Path:
    """Make a table and a checkpoint that have all batches before one."""
    directory.mkdir()
    if mode == "update":
        lance_format.write_dataset(_EMPTY, str(directory / "t"), enable_stable_row_ids=True)
    assert finish(lambda: drive(directory, mode, last - 1)) == 0
    return directory


def copy(directory: Path, name: str) -> Path:
    return Path(shutil.copytree(directory / "prepared", directory / name))


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


def check(directory: Path, mode: str, last: int) -> None:
    """Check that each batch is in the table once, and that a cleanup leaves only files of the table."""
    path = directory / "t"
    table = lance_format.dataset(path)
    expected = {**model(mode, last), **({1000: "foreign"} if (directory / "disturbed").exists() else {})}
    found = sorted((row["a"], row["s"]) for row in table.to_table().to_pylist())
    assert found == sorted(expected.items())
    reference: Any = lance.dataset(str(path))
    reference.validate()
    assert reference.count_rows() == len(found)
    table.cleanup_old_versions(datetime.timedelta(0), delete_unverified=True)
    assert not leftovers(path)
    assert len(lance_format.dataset(path).to_table()) == len(found)


def restart(directory: Path, mode: str, last: int) -> None:
    """Run the query to its end, in a process that is not killed, and check the table."""
    drive(directory, mode, last)
    check(directory, mode, last)


def choose(directory: Path, mode: str, last: int, count: int | None) -> Sequence[int]:
    """Return the numbers of some calls of a batch that nothing disturbs, or of all."""
    prepare(directory / "prepared", mode, last)
    place = copy(directory, "counted")
    drive(place, mode, last)  # in this process, whose forks have what it has loaded
    assert finish(lambda: check(place, mode, last)) == 0
    lance_format.dataset(place / "t").to_table()
    gc.collect()
    gc.freeze()
    num_calls = int((place / "calls").read_text())
    return range(num_calls) if count is None else random.Random(mode).sample(range(num_calls), count)


def check_kills(directory: Path, mode: str, last: int, count: int | None) -> int:
    """Kill a driver at calls of a batch, each in an own table; restart it, and compare the table with the model."""
    num_kills = 0
    for number in choose(directory, mode, last, count):
        for is_late in (False, True):
            place = copy(directory, f"{number} {is_late}")
            killed = finish(lambda: drive(place, mode, last, number, is_late, signal.SIGKILL))  # noqa: B023
            assert killed == -signal.SIGKILL
            if number % 2:  # what lies between two calls is met both ways
                assert finish(lambda: disturb(place, mode)) == 0  # noqa: B023
            assert finish(lambda: restart(place, mode, last)) == 0, f"call {number} of {mode}, {is_late=}"  # noqa: B023
            num_kills += 1
            shutil.rmtree(place)
    return num_kills


def check_stops(directory: Path, mode: str, last: int, count: int | None) -> int:
    """Stop a driver at calls of a batch, let another one run the query to its end, and let the first one go on."""
    num_stops = 0
    for number in choose(directory, mode, last, count):
        place = copy(directory, str(number))
        pid = start(lambda: drive(place, mode, last, number, False, signal.SIGSTOP))  # noqa: B023
        assert os.WIFSTOPPED(os.waitpid(pid, os.WUNTRACED)[1])
        assert finish(lambda: drive(place, mode, last)) == 0  # noqa: B023
        os.kill(pid, signal.SIGCONT)
        os.waitpid(pid, 0)
        assert finish(lambda: check(place, mode, last)) == 0, f"call {number} of {mode}"  # noqa: B023
        num_stops += 1
        shutil.rmtree(place)
    return num_stops


@pytest.mark.parametrize("mode", MODES)
def test_a_driver_that_is_killed_at_a_call_adds_each_batch_once(tmp_path: Path, mode: str) -> None:
    run(functools.partial(check_kills, tmp_path, mode, 2, 6))


@pytest.mark.parametrize("mode", MODES)
def test_a_driver_that_goes_on_after_another_has_taken_its_place_changes_nothing(tmp_path: Path, mode: str) -> None:
    run(functools.partial(check_stops, tmp_path, mode, 2, 4))


@pytest.mark.nightly
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", [check_kills, check_stops])
@pytest.mark.parametrize("last", BATCHES)
def test_each_call_of_a_batch(tmp_path: Path, mode: str, kind: Callable[..., int], last: int) -> None:
    """Killed before and after each call, and stopped before each."""
    number = run(functools.partial(kind, tmp_path, mode, last, None))
    print(f"{kind.__name__} {mode} {last}: {number}", flush=True)
    assert number
