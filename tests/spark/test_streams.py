"""Streams from Lance tables as Spark runs them, and the change feed as a batch."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import lance_format
from connector.stream import driver_streams
from connector.stream.source import LIMITS_BATCHES
from tests.spark.conftest import PLANNER, Catalog, append, load

LIMIT = {"maxFilesPerTrigger": "3"} if LIMITS_BATCHES else {}


def drain(stream: DataFrame, checkpoint: Path) -> list[list[tuple[Any, ...]]]:
    """Run a query until it has read all that there is, and return its batches."""
    batches: list[list[tuple[Any, ...]]] = []
    writer = stream.writeStream.foreachBatch(lambda rows, _: batches.append(sorted(map(tuple, rows.collect()))))
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    query.awaitTermination()
    return [batch for batch in batches if batch]


@pytest.mark.slow
def test_rows_come_once_over_restarts(spark: SparkSession, way: str, path: str, tmp_path: Path) -> None:
    lance_format.write_dataset({"id": range(10), "v": ["a"] * 10}, path, max_rows_per_file=2)
    stream = spark.readStream.format("lance").options(**LIMIT).load(path).selectExpr("v", "id")
    first = drain(stream, tmp_path / "checkpoint")
    assert [len(batch) for batch in first] == ([6, 4] if LIMIT else [10])
    table = lance_format.dataset(path)
    table.insert({"id": [10, 11], "v": ["b", "c"]})
    table.optimize.compact_files()
    assert drain(stream, tmp_path / "checkpoint") == [[("b", 10), ("c", 11)]]
    table.delete("id < 3")
    with pytest.raises(PySparkException, match=r"version 4 of .* deleted rows .*ignoreDeletes=true"):
        drain(stream, tmp_path / "checkpoint")


def test_tables_of_catalogs_are_streamed(catalog: Catalog, tmp_path: Path) -> None:
    catalog.sql("CREATE TABLE @.t (id BIGINT, v STRING)")
    catalog.sql("INSERT INTO @.t VALUES (1, 'a')")
    whole = catalog.spark.readStream.table(f"{catalog.name}.db.t").where("id > 0")
    if LIMITS_BATCHES:
        stream = whole.select("id", "_rowid")
    else:
        with pytest.raises(PySparkException, match="UNRESOLVED_COLUMN"):
            whole.select("id", "_rowid")
        named = catalog.spark.readStream.option("metadata_columns", "_rowid").format("lance")
        stream = named.load(catalog.path("t")).select("id", "_rowid")
    assert drain(stream, tmp_path / "one") == [[(1, 0)]]
    catalog.sql("INSERT INTO @.t VALUES (2, 'b')")
    assert drain(stream, tmp_path / "one") == [[(2, 1 << 32)]]
    catalog.spark.sql(f"CREATE TABLE spark_catalog.default.streamed USING lance LOCATION '{catalog.path('t')}'")
    try:
        stream = catalog.spark.readStream.option("startingVersion", "3").table("spark_catalog.default.streamed")
        assert drain(stream, tmp_path / "two") == [[(2, "b")]]
        query = stream.writeStream.format("console").trigger(continuous="1 second")
        with pytest.raises(PySparkException, match=r"(?i)continuous"):
            query.option("checkpointLocation", str(tmp_path / "three")).start()
    finally:
        catalog.spark.sql("DROP TABLE spark_catalog.default.streamed")


@pytest.mark.slow
def test_the_change_feed_is_a_batch(spark: SparkSession, way: str, path: str) -> None:
    append(spark.range(6).selectExpr("id", "CAST(id AS STRING) AS v"), path, enable_stable_row_ids=True)
    table = lance_format.dataset(path)
    table.delete("id = 1")
    table.update({"v": "'new'"}, "id = 2")
    times = [found["timestamp"] for found in table.versions()]
    feed = load(spark, path, readChangeFeed=True, startingVersion=2)
    assert feed.columns == ["id", "v", "_change_type", "_commit_version", "_commit_timestamp"]
    assert feed.count() == 3
    assert [tuple(row) for row in feed.orderBy("_commit_version", "_change_type").collect()] == [
        (1, "1", "delete", 2, times[1]),
        (2, "new", "update_postimage", 3, times[2]),
        (2, "2", "update_preimage", 3, times[2]),
    ]
    assert Counter(row[0] for row in feed.select("_change_type").collect()) == Counter(
        ["delete", "update_preimage", "update_postimage"]
    )
    assert feed.where("_commit_version = 2 AND v = '1'").select("id").collect() == [(1,)]
    whole = load(spark, path, readChangeFeed=True, startingVersion=1, endingVersion=1, columns="v")
    assert whole.groupBy("_change_type", "_commit_version").count().collect() == [("insert", 1, 6)]
    micros = [str(round(time.timestamp() * 1_000_000)) for time in times]
    since = {"startingTimestamp": micros[2]}
    assert load(spark, path, readChangeFeed=True, **since).count() == 2
    until = {"endingTimestamp": micros[1], "startingVersion": 1}
    assert load(spark, path, readChangeFeed=True, **until).count() == 7


@pytest.mark.slow
@pytest.mark.skipif(not LIMITS_BATCHES, reason="Spark 4.1 has no clause CHANGES")
@pytest.mark.parametrize("stable", ["true", "false"])
def test_sql_has_the_changes_of_tables(catalog: Catalog, tmp_path: Path, stable: str) -> None:
    catalog.sql(f"CREATE TABLE @.t (id BIGINT, v STRING) TBLPROPERTIES ('enable_stable_row_ids' = '{stable}')")
    catalog.sql("INSERT INTO @.t VALUES (1, 'a'), (2, 'b')")
    catalog.sql("UPDATE @.t SET v = 'c' WHERE id = 2")
    catalog.sql("DELETE FROM @.t WHERE id = 1")
    before, after = ("update_preimage", "update_postimage") if stable == "true" else ("delete", "insert")
    update = [(2, "b", before, 3), (2, "c", after, 3)]
    columns, order = "id, v, _change_type, _commit_version", "ORDER BY _commit_version, v"
    found = catalog.sql(f"SELECT {columns} FROM @.t CHANGES FROM VERSION 3 {order}")
    assert found == [*update, (1, "a", "delete", 4)]
    assert catalog.sql(f"SELECT {columns} FROM @.t CHANGES FROM VERSION 3 TO VERSION 3 {order}") == update
    assert catalog.sql("SELECT id FROM @.t CHANGES FROM VERSION 1 TO VERSION 2 WHERE v > 'a'") == [(2,)]
    time = catalog.sql("SELECT CAST(_commit_timestamp AS STRING) FROM @.t CHANGES FROM VERSION 4")[0][0]
    assert catalog.sql(f"SELECT id FROM @.t CHANGES FROM TIMESTAMP '{time}'") == [(1,)]
    catalog.refuses("SELECT * FROM @.t CHANGES FROM VERSION 9", "startingVersion 9 is later than")
    catalog.refuses("SELECT * FROM @.t CHANGES FROM VERSION 'x'", "takes the numbers of versions")
    catalog.refuses(
        "SELECT * FROM @.t CHANGES FROM VERSION 3 WITH (deduplicationMode = 'netChanges')",
        "net changes of .*each version",
    )
    computed = f"SELECT {columns} FROM @.t CHANGES FROM VERSION 3 TO VERSION 3 WITH (computeUpdates = 'true') {order}"
    if stable == "true":
        assert catalog.sql(computed) == update
    else:
        catalog.refuses(computed, "no stable row ids")
    stream = catalog.spark.sql(f"SELECT id FROM STREAM {catalog.name}.db.t CHANGES FROM VERSION 4")
    assert drain(stream, tmp_path / "checkpoint") == [[(1,)]]


_REFUSED = [
    ({"version": "1"}, "'version' names one version"),
    ({"endingVersion": "1"}, "are for batches"),
    ({"startingVersion": "9"}, "startingVersion 9 is later than version 1"),
    ({"startingTimestamp": "2099-01-01 00:00:00+00:00"}, "startingTimestamp is too late"),
    ({"metadata_table": "files"}, "cannot be read as a stream"),
    ({"startingVersion": "1", "startingTimestamp": "2020-01-01 00:00:00+00:00"}, "contradict each other"),
]


def test_streams_are_refused_when_they_are_loaded(planner: SparkSession, path: str) -> None:
    lance_format.write_dataset({"id": [1]}, path)
    for options, message in _REFUSED:
        with pytest.raises(PySparkException, match=message):
            planner.readStream.format("lance").options(**options).load(path)


@pytest.mark.slow
def test_streams_of_catalogs_are_refused_when_they_are_named(catalog: Catalog, tmp_path: Path) -> None:
    catalog.sql("CREATE TABLE @.t AS SELECT 1 AS id")
    catalog.spark.sql(f"CREATE TABLE spark_catalog.default.refused USING lance LOCATION '{catalog.path('t')}'")
    names = [f"{catalog.name}.db.t", "spark_catalog.default.refused"]
    try:
        for session, name in itertools.product([catalog.spark, catalog.spark.newSession()], names):
            for option, value in catalog.spark.conf.getAll.items():
                if option.startswith(("spark.sql.catalog.", PLANNER)):
                    session.conf.set(option, value)
            for options, message in _REFUSED:
                with pytest.raises(PySparkException, match=message):
                    session.readStream.options(**options).table(name)
            assert drain(session.readStream.option("startingVersion", "1").table(name), tmp_path / f"{session} {name}")
        stream = catalog.spark.readStream.option("startingVersion", "1").table(names[0])
        lance_format.LanceDataset.drop(catalog.path("t"))
        writer = stream.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "checkpoint"))
        with pytest.raises(PySparkException, match="there is no Lance table"):
            writer.start()
    finally:
        catalog.spark.sql("DROP TABLE spark_catalog.default.refused")


def test_streams_are_refused_when_they_start(planner: SparkSession, path: str, tmp_path: Path) -> None:
    """The table was dropped and created again in between."""
    table = lance_format.write_dataset({"id": [1]}, path)
    table.insert({"id": [2]})
    stream = planner.readStream.format("lance").option("startingVersion", 2).load(path)
    lance_format.LanceDataset.drop(path)
    writer = stream.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "checkpoint"))
    with pytest.raises(PySparkException, match="there is no Lance table"):
        writer.start()
    lance_format.write_dataset({"id": [1]}, path)
    with pytest.raises(PySparkException, match="startingVersion 2 is later than version 1"):
        writer.start()


@pytest.mark.slow
def test_queries_without_the_planner_end_with_what_is_refused(spark: SparkSession, path: str, tmp_path: Path) -> None:
    lance_format.write_dataset({"id": [1]}, path)
    stream = spark.readStream.format("lance").option("startingVersion", "9").load(path)
    query = stream.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    with pytest.raises(PySparkException, match="startingVersion 9 is later than version 1"):
        query.awaitTermination()
    assert "startingVersion 9 is later than version 1" in str(query.exception())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"startingVersion": 1}, "'startingVersion' is for streams"),
        ({"maxFilesPerTrigger": 1}, "'maxFilesPerTrigger' is for streams"),
        ({"readChangeFeed": True}, "needs a first version"),
        ({"readChangeFeed": True, "startingVersion": 1, "version": 1}, "'version' names one version"),
        ({"readChangeFeed": True, "startingVersion": 2}, "startingVersion 2 is later than version 1"),
        ({"readChangeFeed": True, "startingVersion": "latest"}, "startingVersion 'latest' is for streams"),
        ({"readChangeFeed": True, "startingVersion": 1, "failOnDataLoss": False}, "'failOnDataLoss' is for streams"),
        ({"readChangeFeed": True, "startingVersion": 1, "ignoreDeletes": True}, "contradict each other"),
    ],
)
def test_batches_refuse_what_they_would_ignore(
    spark: SparkSession, way: str, path: str, options: dict[str, Any], message: str
) -> None:
    lance_format.write_dataset({"id": [1]}, path)
    with pytest.raises(PySparkException, match=message):
        load(spark, path, **options).count()


def test_the_driver_keeps_readers_of_streams_that_run(planner: SparkSession, path: str, tmp_path: Path) -> None:
    lance_format.write_dataset({"id": range(10)}, path)
    seen: list[int] = []
    stream = planner.readStream.format("lance").load(path)
    writer = stream.writeStream.foreachBatch(lambda *_: seen.append(len(driver_streams._readers)))
    query = writer.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True).start()
    query.awaitTermination()
    assert seen == [1]
    assert not driver_streams._readers


def test_a_cleanup_warns_of_streams_that_have_not_read_what_it_removes(catalog: Catalog, tmp_path: Path) -> None:
    catalog.sql("CREATE TABLE @.t AS SELECT 1 AS id")
    stream = catalog.spark.readStream.table(f"{catalog.name}.db.t")
    writer = stream.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = writer.trigger(processingTime="1 hour").start()
    try:
        deadline = time.monotonic() + 300
        while not (tmp_path / "checkpoint/commits/0").exists():
            assert query.isActive
            assert time.monotonic() < deadline
            time.sleep(0.1)
        vacuum = f"CALL {catalog.name}.system.vacuum(table => 'db.t', retain_versions => 1)"
        catalog.spark.sql(vacuum)  # warnings are errors
        for number in (2, 3):
            catalog.sql(f"INSERT INTO @.t VALUES ({number})")
        with pytest.warns(UserWarning, match=r"version 1 of .*db/t.lance was removed, which a stream .* has not read"):
            catalog.spark.sql(vacuum)
    finally:
        query.stop()
    catalog.sql("INSERT INTO @.t VALUES (4)")
    catalog.spark.sql(vacuum)
