"""Workers that start with their imports."""

from __future__ import annotations

import gc
import io
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from connector import workers
from connector.daemon import ending_quietly

ROOT = Path(__file__).parents[2]


def _loaded(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    modules = [name in sys.modules for name in ("connector.read.reader", "connector.write.writer", "numba")]
    is_frozen = gc.get_freeze_count() > 50_000
    yield from (
        pa.RecordBatch.from_pydict({"loaded": [all(modules) and is_frozen] * batch.num_rows}) for batch in batches
    )


def test_workers_begin_with_the_imports_and_the_compiler(spark: SparkSession) -> None:
    assert workers.fork_prepared(spark)
    rows = spark.range(4).mapInArrow(_loaded, "loaded boolean").collect()
    assert [row.loaded for row in rows] == [True] * 4


@pytest.mark.slow
def test_reads_and_writes_go_on_after_workers_were_ended_early(planner: SparkSession, path: str) -> None:
    planner.range(100_000).write.format("lance").mode("append").save(path)
    rows = planner.read.format("lance").load(path)
    for start in range(3):
        assert [row.id for row in rows.where(f"id >= {start} and id % 2 = 0").limit(2).collect()] != []
    rows.write.format("lance").mode("append").save(path)
    assert planner.read.format("lance").load(path).count() == 200_000


_ENDED = """
import os, sys
from connector.daemon import ending_quietly

reading, writing = os.pipe()
def main(infile, outfile):
    outfile.write(b"rows")
    {}
os.close(reading)
ending_quietly(main)(None, os.fdopen(writing, "wb"))
"""


@pytest.mark.parametrize("end", ["pass", "outfile.flush()", "sys.exit(-1)"])
def test_a_worker_whose_output_nobody_reads_ends_without_a_word(end: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _ENDED.format(end)], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert (done.returncode, done.stderr) == (1, "")


def test_a_worker_that_fails_tells_the_daemon() -> None:
    def main(infile: IO[bytes], outfile: IO[bytes]) -> None:
        raise SystemExit(-1)

    with pytest.raises(SystemExit):
        ending_quietly(main)(io.BytesIO(), io.BytesIO())


def test_a_daemon_of_the_user_stays(spark: SparkSession) -> None:
    settings = spark.sparkContext._jsc.sc().conf()
    settings.set(workers.SETTING, "pyspark.daemon")
    try:
        assert not workers.fork_prepared(spark)
        assert settings.get(workers.SETTING) == "pyspark.daemon"
    finally:
        settings.set(workers.SETTING, workers.MODULE)


def test_settings_that_are_not_there_are_made(spark: SparkSession) -> None:
    settings = spark.sparkContext._jsc.sc().conf()
    settings.remove(workers.SETTING)
    assert workers.fork_prepared(spark)
    assert settings.get(workers.SETTING) == workers.MODULE


@pytest.mark.parametrize(
    ("master", "local"),
    [("local", True), ("local[*]", True), ("local[2,4]", True), ("local-cluster[2,1,1024]", False), ("yarn", False)],
)
def test_only_where_tasks_run_in_the_driver_process(master: str, local: bool) -> None:
    assert workers._is_local(master) is local


def test_only_with_a_python_that_finds_the_package(tmp_path: Path) -> None:
    assert workers._find_problem(sys.executable, str(tmp_path), str(ROOT)) is None
    for python in (str(tmp_path / "python3"), "/bin/cat"):
        problem = workers._find_problem(python, str(tmp_path), str(ROOT))
        assert problem is not None
        assert problem.startswith(f"Spark's workers run {python!r}, which is no Python that works")


def test_a_package_that_is_shipped_counts(spark: SparkSession, tmp_path: Path) -> None:
    """Modules of `addPyFile` hide installed ones in workers."""
    assert workers.find_problem(spark) is None
    module = tmp_path / "lance_format.py"
    module.write_text("")
    problem = workers._find_problem(sys.executable, "/", os.pathsep.join([str(tmp_path), str(ROOT)]))
    assert problem is not None
    assert f"take {module} for the package 'lance_format' of pyspark-lance in {ROOT}" in problem


def test_packages_that_are_installed_where_workers_start_are_no_problem(tmp_path: Path) -> None:
    (tmp_path / "xxhash").mkdir()
    module = tmp_path / "xxhash" / "__init__.py"
    module.touch()
    problem = workers._find_problem(sys.executable, str(tmp_path), str(ROOT))
    assert problem is not None
    assert f"take {module} for the package 'xxhash'; rename it" in problem
    (tmp_path / "xxhash-3.5.0.dist-info").mkdir()
    assert workers._find_problem(sys.executable, str(tmp_path), str(ROOT)) is None
