"""`LanceTable` through Spark Connect, whose server knows nothing of the process of its client."""

from __future__ import annotations

from typing import Any

import lance
import pytest

from tests.spark.programs import run

_PROGRAM = """
from pyspark.sql import functions as f
import pyspark_lance
from pyspark_lance import LanceTable
import lance_format

path = sys.argv[1] + "/birds.lance"
spark = SparkSession.builder.remote("local[2]").getOrCreate()
found = {"class": type(spark).__module__}

def rows():
    return sorted([row.id, row.name, row.weight] for row in LanceTable.forPath(spark, path).toDF().collect())

def result(made):
    return [made.version, made.num_updated_rows, made.num_inserted_rows, made.num_deleted_rows]

builder = LanceTable.create(spark).location(path).addColumn("id", "BIGINT", nullable=False).addColumn("name", "STRING")
birds = builder.addColumn("weight", "DOUBLE").property("enable_stable_row_ids", "true").execute()
spark.range(10).selectExpr("id", "concat('bird ', id) AS name", "id * 1.5D AS weight").write.format("lance").mode(
    "append"
).save(path)
found["deleted"] = result(birds.delete("id > 5"))
found["deleted by column"] = result(birds.delete(f.col("id") == 0))
found["updated"] = result(birds.update("id = 1", {"weight": f.lit(7), "name": "upper(name)"}))
source = spark.createDataFrame([(1, "s", 1.0), (2, "s", None), (9, "new", 2.0)], "id long, name string, weight double")
merge = birds.alias("t").merge(source.alias("s"), "t.id = s.id").whenMatchedDelete("s.weight IS NULL")
merge = merge.whenMatchedUpdate(set={"weight": f.col("t.weight") + f.col("s.weight")})
merge = merge.whenNotMatchedInsertAll("id > 8").whenNotMatchedBySourceUpdate("id = 5", {"name": "'other'"})
found["merged"] = result(merge.execute())
found["rows"] = rows()
twice = birds.alias("t").merge(source.union(source).alias("s"), "t.id = s.id").whenMatchedUpdateAll()
found["twice"] = error_of(twice.execute)
found["wrong type"] = error_of(lambda: birds.update(set={"id": "name"}))
found["null"] = error_of(lambda: birds.update(set={"id": "NULL"}))
found["unknown"] = error_of(lambda: birds.delete("nope = 1"))
found["name"] = error_of(lambda: LanceTable.forName(spark, "lance.zoo.birds"))
found["by name"] = LanceTable.forName(spark, f"lance.`{path}`").toDF().count()

class Other:  # another writer, who changes the same row between the plan and the commit
    done = False
def interfere(snapshot, plan=merge._plan):
    delta = plan(snapshot)
    if not Other.done:
        Other.done = True
        lance_format.dataset(path).update({"name": "'theirs'"}, "id = 9")
    return delta
object.__setattr__(merge, "_plan", interfere)
found["again"] = result(merge.execute())
found["changes"] = sorted(
    [row._commit_version, row._change_type, row.id, row.name] for row in birds.readChanges(4, 5).collect()
)
found["history"] = [[row.version, row.operation] for row in birds.history(2).collect()]
found["detail"] = birds.detail().first().numRows
found["restored"] = birds.restoreToVersion(2).version
found["restored rows"] = len(rows())
spark.stop()
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return the findings of a program with a session of Spark Connect."""
    directory = tmp_path_factory.mktemp("connect")
    found = run(_PROGRAM, directory, str(directory))
    found["path"] = str(directory / "birds.lance")
    return found


def test_the_session_is_remote(found: Any) -> None:
    assert found["class"] == "pyspark.sql.connect.session"


def test_changes_of_rows(found: Any) -> None:
    assert found["deleted"] == [3, 0, 0, 4]
    assert found["deleted by column"] == [4, 0, 0, 1]
    assert found["updated"] == [5, 1, 0, 0]
    assert found["merged"] == [6, 2, 1, 1]
    assert found["rows"] == [
        [1, "BIRD 1", 8.0],
        [3, "bird 3", 4.5],
        [4, "bird 4", 6.0],
        [5, "other", 7.5],
        [9, "new", 2.0],
    ]


def test_errors_are_those_of_the_library(found: Any) -> None:
    assert "InvalidInputError: several rows of the source match one row" in found["twice"]
    assert "SchemaMismatchError: column 'id' is bigint" in found["wrong type"]
    assert "SchemaMismatchError: column 'id' holds nulls" in found["null"]
    assert "UNRESOLVED_COLUMN" in found["unknown"]
    assert "LanceTable.forPath works without it" in found["name"]
    assert found["by name"] == 5


def test_a_change_starts_again_after_a_conflict(found: Any) -> None:
    assert found["again"] == [8, 3, 0, 0]


def test_changes_and_versions(found: Any) -> None:
    assert found["changes"] == [
        [4, "delete", 0, "bird 0"],
        [5, "update_postimage", 1, "BIRD 1"],
        [5, "update_preimage", 1, "bird 1"],
    ]
    assert found["history"] == [[8, "update"], [7, "update"]]
    assert found["detail"] == 5
    assert found["restored"] == 9
    assert found["restored rows"] == 10


def test_pylance_reads_what_is_left(found: Any) -> None:
    theirs = lance.dataset(found["path"])
    theirs.validate()
    assert theirs.count_rows() == 10
