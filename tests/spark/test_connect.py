"""Spark Connect: queries are planned by a server that knows nothing of the client's process."""

from __future__ import annotations

from typing import Any

import pytest

from tests.spark.programs import CONNECT, run

_PROGRAM = """
import logging
import lance_format

table = f"{path}/birds.lance"
rows = [(1, "owl", [0.5, 1.0]), (2, "emu", None), (3, None, [])]
birds = spark.createDataFrame(rows, "id long, name string, at array<float>")

def load(**options):
    return spark.read.format("lance").options(**options).load(table)

def ids(df):
    return sorted(row.id for row in df.collect())

found = {"class": type(spark).__module__}
birds.write.format("lance").mode("overwrite").save(table)
birds.selectExpr("id + 10 AS id", "name").write.format("lance").mode("append").save(table)
found["rows"] = sorted([row.id, row.name, row.at] for row in load().where("id < 10").collect())
found["schema"] = load().schema.simpleString()
found["filtered"] = ids(load().where("name LIKE 'e%' OR id = 13"))
found["counted"] = load().count()
found["option"] = ids(load(filter="id > 10 AND name = 'owl'", columns="id"))
found["old"] = ids(load(version=1))
found["metadata"] = load(metadata_columns="_fragid").where("id IN (1, 11)").select("_fragid").distinct().count()
for mode in ("error", "ignore"):
    found[mode] = error_of(lambda: birds.write.format("lance").mode(mode).save(f"{path}/other.lance"))
found["named"] = error_of(lambda: birds.write.format("lance").mode("append").saveAsTable("birds_table"))
found["option error"] = error_of(lambda: load(versoin=1).collect())
found["missing"] = error_of(lambda: spark.read.format("lance").load(f"{path}/nothing.lance").collect())

spark.sql(f"CREATE TEMPORARY VIEW birds USING lance OPTIONS (path '{table}')")
spark.sql("INSERT INTO birds VALUES (20, 'auk', NULL)").collect()
found["inserted"] = ids(load())
lance_format.dataset(table).delete("id > 2 AND id < 13")
found["deleted"] = ids(load())
spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW birds USING lance OPTIONS (path '{table}')")
found["joined"] = spark.sql(
    "SELECT count(*) AS n FROM birds a JOIN birds b ON a.id = b.id WHERE a.name IS NOT NULL"
).first().n

import pyspark_lance
lines = []
class Lines(logging.Handler):
    def emit(self, record):
        lines.append(record.getMessage())
logging.getLogger("connector").addHandler(Lines())
pyspark_lance.register(spark)
found["registered"] = lines
found["read after"] = ids(load().where("id > 2"))
birds.write.format("lance").mode("overwrite").save(table)
found["written after"] = ids(load())
spark.stop()
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return the findings of a program that runs Spark Connect from its first session on."""
    directory = tmp_path_factory.mktemp("connect")
    return run(CONNECT + _PROGRAM, directory, str(directory))


def test_the_session_is_remote(found: Any) -> None:
    assert found["class"] == "pyspark.sql.connect.session"


def test_reads_return_what_writes_brought(found: Any) -> None:
    assert found["rows"] == [[1, "owl", [0.5, 1.0]], [2, "emu", None], [3, None, []]]
    assert found["schema"] == "struct<id:bigint,name:string,at:array<float>>"
    assert found["counted"] == 6


def test_filters(found: Any) -> None:
    assert found["filtered"] == [2, 12, 13]


def test_options(found: Any) -> None:
    assert found["option"] == [11]
    assert found["old"] == [1, 2, 3]
    assert found["metadata"] == 2
    assert "unknown option 'versoin': did you mean 'version'" in found["option error"]
    assert "there is no Lance table at" in found["missing"]


def test_save_modes_that_need_the_planner_are_refused(found: Any) -> None:
    for mode in ("error", "ignore"):
        assert "UNSUPPORTED_DATA_SOURCE_SAVE_MODE" in found[mode]
    assert "not there through Spark Connect" in found["named"]


def test_views_and_changes_of_tables(found: Any) -> None:
    assert found["inserted"] == [1, 2, 3, 11, 12, 13, 20]
    assert found["deleted"] == [1, 2, 13, 20]
    assert found["joined"] == 3


def test_registering_says_what_is_not_pushed(found: Any) -> None:
    assert found["registered"] == [
        "Spark Connect plans Lance tables without pushdown: the driver is not in this process"
    ]
    assert found["read after"] == [13, 20]
    assert found["written after"] == [1, 2, 3]
