"""Streams on a cluster whose executors are killed in the tasks of batches: each row is in a table once."""

from __future__ import annotations

import datetime
import os
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lance_format
from tests.spark.conftest import PREPARED, ROOT
from tests.spark.programs import run
from tests.table.leftovers import leftovers

MODES = ("append", "complete", "update")
_ROWS = 4000
"""Number of rows that arrive per batch; two tasks read them in 20 batches each."""

_PROGRAM = f"""
import pyspark.sql.functions as f
import pyspark_lance
import lance_format
from pathlib import Path

ROWS = {_ROWS}
root = sys.argv[1]
settings = {{
    "spark.executorEnv.PYTHONPATH": os.environ["PYTHONPATH"],
    "spark.executorEnv.LANCE_STRIKES": f"{{root}}/strikes",
    "spark.python.daemon.module": "deadly_daemon",
    "spark.deploy.maxExecutorRetries": "-1",
    "spark.task.maxFailures": "8",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100",
}}
builder = SparkSession.builder.master("local-cluster[2,1,1024]")
for name, value in settings.items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
pyspark_lance.register(spark)

def arrive(mode, batch):
    ids = range(batch * ROWS // 2, batch * ROWS // 2 + ROWS)
    rows = {{"id": ids, "batch": [batch] * ROWS, "v": [f"row {{batch}} {{number}}" for number in ids]}}
    lance_format.write_dataset(rows, f"{{root}}/source.{{mode}}", mode="append", max_rows_per_file=ROWS // 4)

def drain(mode):
    stream = spark.readStream.format("lance").option("batch_size", 100).load(f"{{root}}/source.{{mode}}")
    if mode == "complete":
        stream = stream.groupBy("id").agg(f.max("batch").alias("batch"), f.max("v").alias("v"))
    writer = stream.writeStream.format("lance").outputMode(mode).option("max_row_per_file", 200)
    writer = writer.option("mergeKey", "id") if mode == "update" else writer
    writer = writer.option("checkpointLocation", f"{{root}}/checkpoint.{{mode}}").trigger(availableNow=True)
    writer.start(f"{{root}}/{{mode}}").awaitTermination()

for mode in sys.argv[2:]:
    for batch, point in enumerate(["reading", "begun", "midway", "written", None]):
        arrive(mode, batch)
        if batch == 0 and mode == "update":
            empty = lance_format.dataset(f"{{root}}/source.update").to_table().slice(0, 0)
            lance_format.write_dataset(empty, f"{{root}}/update")
        if point is not None:
            name = "" if point == "reading" else mode
            Path(f"{{root}}/strikes/{{name}} {{batch}} {{point}}").touch()
        drain(mode)
print(json.dumps(None))
"""


def expected(mode: str) -> pa.Table:
    """Return the rows of a table: all that arrived, or the last of each key."""
    rows = [(number, batch) for batch in range(5) for number in range(batch * _ROWS // 2, batch * _ROWS // 2 + _ROWS)]
    rows = rows if mode == "append" else list(dict(rows).items())
    ids, batches = zip(*rows, strict=True)
    texts = [f"row {batch} {number}" for number, batch in rows]
    table = pa.table({"id": pa.array(ids, pa.int64()), "batch": pa.array(batches, pa.int64()), "v": texts})
    return table.sort_by([("id", "ascending"), ("batch", "ascending")])


@pytest.mark.nightly
@pytest.mark.parametrize("mode", MODES)
def test_executors_are_killed_in_the_tasks_of_batches(tmp_path: Path, mode: str) -> None:
    """While rows are read, before one is written, after some files were written, and after all of a task were."""
    (tmp_path / "strikes").mkdir()
    path = os.pathsep.join([str(Path(__file__).parent / "deadly"), str(PREPARED), str(ROOT)])
    run(_PROGRAM, tmp_path, str(tmp_path), mode, PYTHONPATH=path)
    done = {strike.name for strike in (tmp_path / "strikes").iterdir()}
    assert done == {
        "done  0 reading",
        *(f"done {mode} {n} {p}" for n, p in enumerate(["begun", "midway", "written"], 1)),
    }
    table = lance_format.dataset(tmp_path / mode)
    found = table.to_table().sort_by([("id", "ascending"), ("batch", "ascending")])
    assert found.equals(expected(mode))
    reference: Any = lance.dataset(str(tmp_path / mode))
    reference.validate()
    assert reference.to_table().sort_by([("id", "ascending"), ("batch", "ascending")]) == found
    if mode != "append":  # Spark does not tell Python that a stage ran again because files of a shuffle were lost
        table.cleanup_old_versions(datetime.timedelta(0), delete_unverified=True)
    assert not leftovers(tmp_path / mode)
