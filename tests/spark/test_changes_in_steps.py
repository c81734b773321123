"""Tasks of planned changes as jobs of Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import lance_format
from tests.table.changes.test_planned_change import CHANGES, write


@pytest.mark.slow
@pytest.mark.parametrize("name", ["update", "new columns by SQL", "merge", "compaction", "index"])
def test_spark_runs_tasks(spark: SparkSession, name: str, tmp_path: Path) -> None:
    change = CHANGES[name]
    table, other = write(tmp_path / "a", change), write(tmp_path / "b", change)
    uri, plan = table.uri, change.plan(table)

    def run(task: Any) -> Any:
        return task.execute(lance_format.dataset(uri))

    results = spark.sparkContext.parallelize(plan.tasks, len(plan.tasks)).map(run).collect()
    assert plan.commit(table, results) == change.run(other)
    assert table.to_table().sort_by("id") == other.to_table().sort_by("id")
