"""Sessions that change and maintain one table at once: nothing is lost or doubled, every version is explained.

LANCE_SESSION_STEPS sets how many statements each session runs at night.
"""

from __future__ import annotations

import concurrent.futures
import json
import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import lance
import pytest
from pyspark.sql import SparkSession

import lance_format
from tests.spark import race_session
from tests.spark.conftest import ROOT
from tests.spark.race_model import Judge, Told, Version, first_rows
from tests.table.leftovers import leftovers

pytestmark = pytest.mark.system

NIGHTLY_STEPS = int(os.environ.get("LANCE_SESSION_STEPS", "30"))
SEED = int(os.environ.get("LANCE_SESSION_SEED", "1"))
LIMIT_SECONDS = 3600
REFUSALS = ("RetryableCommitConflictError", "CommitConflictError")
"""Errors that leave the table alone, of which a busy table may have some."""


def create(path: str, *, stable: bool, keyed: bool) -> None:
    schema = race_session.SCHEMA
    if keyed:
        key = {"lance-schema:unenforced-primary-key": "true"}
        schema = schema.set(0, schema.field("k").with_metadata(key))
    rows = race_session.table_of(first_rows()).cast(schema)
    lance_format.write_dataset(rows, path, enable_stable_row_ids=stable, max_rows_per_file=5)


class Observer(threading.Thread):
    """Reads each version of a table soon after its commit, before a vacuum is allowed to remove it."""

    def __init__(self, path: str, *, stable: bool) -> None:
        super().__init__(daemon=True)
        self._path, self._stable = path, stable
        self._done = threading.Event()
        self.versions: dict[int, Version] = {}
        self.error: BaseException | None = None
        self._look()
        self.start()

    def run(self) -> None:
        try:
            while not self._done.wait(0.05):
                self._look()
            self._look()
        except BaseException as error:
            self.error = error

    def finish(self) -> dict[int, Version]:
        self._done.set()
        self.join(LIMIT_SECONDS)
        if self.error is not None:
            raise self.error
        return self.versions

    def _look(self) -> None:
        dataset = lance_format.dataset(self._path)
        for number in range(len(self.versions) + 1, dataset.version + 1):
            self.versions[number] = self._read(dataset.checkout_version(number), number)
            race_session.publish(Path(f"{self._path}.seen"), number)

    def _read(self, dataset: lance_format.LanceDataset, number: int) -> Version:
        columns = ["k", "n", "w", *(["_rowid", "_row_created_at_version"] if self._stable else [])]
        found = [column.to_pylist() for column in dataset.to_table(columns).columns]
        rows = list(zip(*found[:3], strict=True))
        by_id = dict(zip(found[3], zip(rows, found[4], strict=True), strict=True)) if self._stable else {}
        transaction = dataset.read_transaction(number)
        return Version(type(transaction.operation).__name__, transaction.read_version, Counter(rows), by_id)


def judge(path: str, versions: dict[int, Version], told: Sequence[Told], *, keyed: bool) -> None:
    """Check every version, what the table is in the end, and what was refused."""
    refused = [each for each in told if each.error is not None]
    assert not [each for each in refused if not any(name in str(each.error) for name in REFUSALS)]
    assert len(refused) * 4 <= len(told), refused
    Judge(SEED, versions, told).explain()
    if keyed:
        for number, version in versions.items():
            keys = Counter(row[0] for row in version.rows.elements())
            assert max(keys.values(), default=1) == 1, number
    dataset = lance_format.dataset(path)
    assert dataset.version == len(versions)
    dataset.validate()
    theirs = lance.dataset(path)
    theirs.validate()
    assert theirs.to_table() == dataset.to_table()
    assert (
        Counter(zip(*(column.to_pylist() for column in dataset.to_table().columns), strict=True))
        == versions[dataset.version].rows
    )
    assert not leftovers(Path(path))


class Process:
    """A session in a process of its own, which waits until it is told to go."""

    def __init__(self, kind: str, path: str, session: int, count: int) -> None:
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.spark.race_session", kind, path, *map(str, (SEED, session, 0, count))],
            cwd=ROOT,
            env={**environment, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_DRIVER_PYTHON": sys.executable},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def ready(self) -> None:
        assert self._process.stdout
        while (line := self._process.stdout.readline()) != "ready\n":
            assert line, self._process.communicate()[1]

    def __call__(self) -> list[Told]:
        output, errors = self._process.communicate("go\n", timeout=LIMIT_SECONDS)
        assert self._process.returncode == 0, errors
        return [Told(**each) for each in json.loads(output.strip().rpartition("\n")[2])]

    def stop(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.communicate()


def race(sessions: Sequence[Callable[[], list[Told]]]) -> list[Told]:
    """Let sessions run at once, and return what they were told."""
    for session in sessions:
        if isinstance(session, Process):
            session.ready()
    with concurrent.futures.ThreadPoolExecutor(len(sessions)) as pool:
        results = [pool.submit(session) for session in sessions]
        return [each for result in results for each in result.result()]


@pytest.fixture
def processes() -> Iterator[list[Process]]:
    started: list[Process] = []
    yield started
    for process in started:
        process.stop()


@pytest.mark.parametrize(("stable", "keyed"), [(False, False), (True, True)], ids=["addresses", "stable ids and key"])
def test_sessions_in_one_driver_and_other_processes(
    planner: SparkSession, path: str, processes: list[Process], stable: bool, keyed: bool
) -> None:
    create(path, stable=stable, keyed=keyed)
    processes += [Process("library", path, number, 10) for number in (2, 3)]

    def session(number: int) -> Any:
        runner = race_session.SparkSession(path, planner)
        return lambda: race_session.run(runner, path, SEED, number, range(5))

    observer = Observer(path, stable=stable)
    told = race([session(0), session(1), *processes])
    judge(path, observer.finish(), told, keyed=keyed)


@pytest.mark.nightly
@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable ids"])
@pytest.mark.parametrize("keyed", [False, True], ids=["no key", "key"])
def test_sessions_in_drivers_of_their_own(path: str, processes: list[Process], stable: bool, keyed: bool) -> None:
    create(path, stable=stable, keyed=keyed)
    processes += [Process("spark", path, number, NIGHTLY_STEPS) for number in range(4)]
    observer = Observer(path, stable=stable)
    told = race(processes)
    judge(path, observer.finish(), told, keyed=keyed)
