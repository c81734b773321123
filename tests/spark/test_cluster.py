"""A cluster whose executors are lost, and whose tasks fail and run again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pytest

import lance_format
from tests.spark.programs import FORKED_PREPARED, run
from tests.table.leftovers import leftovers

pytestmark = pytest.mark.system

_ROWS = 60_000

_PROGRAM = f"""
import time
from pathlib import Path

import pyspark_lance
from pyspark.sql.functions import udf

ROWS = {_ROWS}
UNLUCKY = ROWS // 2 - 100  # in a batch of a task that has handed batches on to its writer before
path, markers = sys.argv[1], Path(sys.argv[2])

def settings():
    yield "spark.executorEnv.PYTHONPATH", os.environ["PYTHONPATH"]
    yield "spark.ui.enabled", "false"
    yield "spark.ui.showConsoleProgress", "false"
    yield "spark.log.level", "OFF"
    yield "spark.sql.shuffle.partitions", "2"
    yield "spark.sql.adaptive.enabled", "false"
    yield "spark.python.daemon.module", "connector.daemon"

builder = SparkSession.builder.master("local-cluster[2,1,1024]")
for name, value in settings():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
pyspark_lance.register(spark)

def parent(pid):
    return int(Path(f"/proc/{{pid}}/stat").read_text().rpartition(")")[2].split()[1])

def executor():
    pid = os.getpid()
    while "java" not in Path(f"/proc/{{pid}}/comm").read_text():
        pid = parent(pid)
    return pid

def workers(executor):
    # Those that write, and then the one that this is.
    found = [int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid()]
    for pid in found:
        try:
            if parent(parent(pid)) == executor:
                yield pid
        except (OSError, ValueError):
            pass
    yield os.getpid()

def unlucky(disaster, marker):
    # A function that strikes once, at one row.
    def apply(value):
        if value == UNLUCKY:
            try:
                os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                return value
            if disaster == "failure":
                raise RuntimeError("struck")
            if disaster == "crash":
                for pid in workers(executor()):
                    os.kill(pid, 9)
            os.kill(executor(), 9)
            time.sleep(600)
        return value
    return udf(apply, "bigint")

def strike(name, disaster):
    function = unlucky(disaster, str(markers / name))
    spark.udf.register(name, function)
    return function

rows = spark.range(0, ROWS, 1, 2).withColumn("v", strike("appended", "crash")("id"))
rows.write.format("lance").option("enable_stable_row_ids", "true").option("max_row_per_file", 2000).save(path)
table = f"lance.`{{path}}`"
strike("updated", "loss")
spark.sql(f"UPDATE {{table}} SET v = updated(id) + 1 WHERE id % 2 = 1 OR id = {{UNLUCKY}}").collect()
strike("removed", "failure")
spark.sql(f"DELETE FROM {{table}} WHERE removed(id) < 0").collect()
strike("merged", "crash")
spark.range(ROWS // 2 - 1000, ROWS + 10).createOrReplaceTempView("source")
spark.sql(
    f"MERGE INTO {{table}} t USING source s ON t.id = s.id"
    " WHEN MATCHED AND s.id % 10 = 0 THEN UPDATE SET v = merged(s.id) + 2"
    " WHEN MATCHED AND s.id % 10 = 3 THEN DELETE WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, s.id)"
).collect()
df = spark.read.format("lance").load(path).groupBy(f.expr("id % 10")).agg(f.sum("v"), f.count("*"))
plan = df._jdf.queryExecution().executedPlan().toString()
print(json.dumps({{"groups": sorted(map(list, df.collect())), "columnar": "ColumnarToRow" in plan}}))
"""


def _expected() -> list[list[int]]:
    unlucky = _ROWS // 2 - 100
    groups = {digit: [digit, 0, 0] for digit in range(10)}
    for number in range(_ROWS + 10):
        value = number
        if number < _ROWS:
            value += number % 2 == 1 or number == unlucky
            if number >= _ROWS // 2 - 1000:
                if number % 10 == 3:
                    continue
                value = number + 2 if number % 10 == 0 else value
        groups[number % 10][1] += value
        groups[number % 10][2] += 1
    return list(groups.values())


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the output of the program, and the path of its table."""
    directory = tmp_path_factory.mktemp("cluster")
    markers = directory / "markers"
    markers.mkdir()
    path = str(directory / "table.lance")
    program = "import pyspark.sql.functions as f\n" + _PROGRAM
    found: dict[str, Any] = run(program, directory, path, str(markers), PYTHONPATH=FORKED_PREPARED)
    assert {marker.name for marker in markers.iterdir()} == {"appended", "updated", "removed", "merged"}
    return {**found, "path": path}


def test_nothing_is_lost_or_doubled(outcome: dict[str, Any]) -> None:
    assert outcome["groups"] == _expected()
    dataset = lance_format.dataset(outcome["path"])
    assert dataset.version == 3
    dataset.validate()
    lance.dataset(outcome["path"]).validate()


def test_no_file_of_a_lost_attempt_is_left(outcome: dict[str, Any]) -> None:
    assert not leftovers(Path(outcome["path"]))


def test_executors_are_given_what_reads_batches(outcome: dict[str, Any]) -> None:
    assert outcome["columnar"]
