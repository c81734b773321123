"""Workers that start with what they need."""

from __future__ import annotations

import gc
import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from connector import workers

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


def test_reads_and_writes_go_on_after_workers_were_ended_early(planner: SparkSession, path: str) -> None:
    planner.range(100_000).write.format("lance").mode("append").save(path)
    rows = planner.read.format("lance").load(path)
    for start in range(3):
        assert [row.id for row in rows.where(f"id >= {start} and id % 2 = 0").limit(2).collect()] != []
    rows.write.format("lance").mode("append").save(path)
    assert planner.read.format("lance").load(path).count() == 200_000


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


def test_only_with_a_python_that_finds_the_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["", str(ROOT)]))
    assert workers._finds_this(sys.executable)
    other = tmp_path / "python3"
    shutil.copy("/bin/sh", other)
    assert not workers._finds_this(str(other))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(workers, "_DISTRIBUTION", "not-installed-anywhere")
    assert not workers._finds_this(sys.executable)
