"""`NULL AND x` and `NULL OR x` within queries and changes of rows, over which Spark fails to ask a source."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark.conftest import append, load

_ROWS = "SELECT id, if(id % 3 = 0, NULL, id) AS a, if(id % 4 = 0, NULL, id - 5) AS c FROM range(20)"
_CONDITIONS = [
    "coalesce(c BETWEEN NULL AND 5, true)",
    "(c BETWEEN NULL AND 5) IS NULL",
    "(a > 3 OR NULL) IS NOT NULL AND coalesce(c > 3 AND NULL, a > 2)",
    "NOT (NULL AND c > 1) OR a > 10",
]
_QUERIES = [
    *(f"SELECT id FROM {{0}} WHERE {condition}" for condition in _CONDITIONS),
    "SELECT DISTINCT (a > 1 OR c > CAST(NULL AS int)) FROM {0}",
    "SELECT max(NULL AND c > 1), max(NULL OR c > 1), min(c > 1 AND NULL), count(a > 2 OR NULL) FROM {0}",
    "SELECT c > 1 AND NULL AS known, count(*) FROM {0} GROUP BY 1",
    "SELECT count(*) FROM {0} x JOIN {0} y ON x.id = y.id AND coalesce(x.a > 3 AND NULL, y.c > 3)",
    "SELECT id FROM {0} WHERE id IN (SELECT a FROM {0} WHERE coalesce(NULL OR c > 5, a > 12))",
]


@pytest.fixture
def names(planner: SparkSession, path: str, tmp_path: Path) -> tuple[str, str]:
    """Return views of the same rows in a table and in Parquet."""
    append(planner.sql(_ROWS), path)
    planner.sql(_ROWS).write.parquet(str(tmp_path / "parquet"))
    load(planner, path).createOrReplaceTempView("nulls_lance")
    planner.read.parquet(str(tmp_path / "parquet")).createOrReplaceTempView("nulls_parquet")
    return "nulls_lance", "nulls_parquet"


@pytest.mark.parametrize("query", _QUERIES)
def test_queries(planner: SparkSession, names: tuple[str, str], query: str) -> None:
    found, expected = (sorted(map(repr, planner.sql(query.format(name)).collect())) for name in names)
    assert found == expected
    assert expected


def test_other_terms_of_a_filter_are_pushed(planner: SparkSession, names: tuple[str, str]) -> None:
    query = planner.sql(f"SELECT id FROM {names[0]} WHERE id > 7 AND (c BETWEEN NULL AND 5) IS NULL")
    assert "id > 7" in query._jdf.queryExecution().executedPlan().toString()


@pytest.mark.parametrize("condition", _CONDITIONS)
def test_changes_of_rows(planner: SparkSession, names: tuple[str, str], path: str, condition: str) -> None:
    matching = {row.id for row in planner.sql(f"SELECT id FROM {names[1]} WHERE {condition}").collect()}
    planner.sql(f"UPDATE lance.`{path}` SET id = id + 100 WHERE {condition}")
    assert {row.id - 100 for row in load(planner, path).where("id >= 100").collect()} == matching
    planner.sql(f"DELETE FROM lance.`{path}` WHERE {condition}")
    assert {row.id for row in load(planner, path).collect()} == set(range(20)) - matching
