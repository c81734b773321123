"""Tables as sinks of streams: each batch is one version, once, whatever happens between Spark and the table."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lance
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from pyspark.errors import PySparkException, UnsupportedOperationException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming import StreamingQuery

import lance_format
from connector.protocol import SINK
from connector.source.data_source import LanceDataSource
from lance_format import BatchMarker, last_batches
from tests.spark.conftest import Catalog, append, data_files, files, load, overwrite
from tests.spark.programs import CONNECT, run
from tests.table.leftovers import leftovers

SCHEMA = "a long, s string"


class Arrivals:
    """Files that arrive, and a query that writes each of them as a batch."""

    def __init__(self, spark: SparkSession, directory: Path) -> None:
        self.spark = spark
        self.directory = directory
        self.path = str(directory / "table.lance")
        self._number = 0

    def add(self, *numbers: int, text: str = "row") -> None:
        """Let a file arrive."""
        rows = pa.table({"a": pa.array(numbers, pa.int64()), "s": [f"{text} {number}" for number in numbers]})
        (self.directory / "source").mkdir(exist_ok=True)
        with pa.OSFile(str(self.directory / f"source/.{self._number}"), "wb") as sink:
            pa.parquet.write_table(rows, sink)
        (self.directory / f"source/.{self._number}").rename(self.directory / f"source/{self._number:03}.parquet")
        self._number += 1

    def run(
        self,
        change: Callable[[DataFrame], DataFrame] = lambda rows: rows,
        mode: str = "append",
        checkpoint: str = "checkpoint",
        table: str | None = None,
        **options: object,
    ) -> StreamingQuery:
        """Write all that has arrived, one file per batch."""
        rows = self.spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
        writer = change(rows.parquet(str(self.directory / "source"))).writeStream.format("lance").outputMode(mode)
        options = {"checkpointLocation": self.directory / checkpoint, **options}
        for name, value in options.items():
            writer = writer.option(name, str(value))
        writer = writer.trigger(availableNow=True)
        query = writer.start(self.path) if table is None else writer.toTable(table)
        try:
            query.awaitTermination()
        finally:
            query.stop()
        return query

    def forget(self, batch: int) -> None:
        """Remove from the checkpoint that a batch was committed, as if the driver had died right before."""
        for path in (self.directory / "checkpoint/commits").glob(f"*{batch}*"):
            path.unlink()

    def rows(self) -> list[Any]:
        """Return the rows of the table, as both libraries read them."""
        ours, reference = lance_format.dataset(self.path).to_table(), lance.dataset(self.path).to_table()
        assert Counter(map(repr, ours.to_pylist())) == Counter(map(repr, reference.to_pylist()))
        return sorted(tuple(row.values()) for row in ours.to_pylist())

    def numbers(self) -> list[int]:
        return [row[0] for row in self.rows()]

    def last(self) -> list[int]:
        return sorted(last_batches(lance_format.dataset(self.path).config()).values())


@pytest.fixture
def arrivals(spark: SparkSession, tmp_path: Path) -> Arrivals:
    return Arrivals(spark, tmp_path)


@pytest.mark.slow
def test_a_batch_that_is_run_again_changes_nothing(arrivals: Arrivals, way: str) -> None:
    arrivals.add(1, 2)
    arrivals.add(3)
    query = arrivals.run(max_row_per_file=1)
    assert arrivals.numbers() == [1, 2, 3]
    table = lance_format.dataset(arrivals.path)
    assert table.version == 2
    assert len(table.get_fragments()) == 3
    properties = table.read_transaction(2).transaction_properties
    assert properties["lance.txn.app_id"] == query.id
    assert properties["lance.txn.version"] == "1"
    for number in range(10, 14):
        lance.write_dataset(pa.table({"a": [number], "s": ["foreign"]}), arrivals.path, mode="append")
    lance.dataset(arrivals.path).optimize.compact_files()
    lance_format.dataset(arrivals.path).cleanup_old_versions(retain_versions=1)
    before = (lance_format.dataset(arrivals.path).version, files(arrivals.path))
    arrivals.forget(1)
    arrivals.run()
    assert (lance_format.dataset(arrivals.path).version, files(arrivals.path)) == before
    arrivals.add(4)
    arrivals.run()
    assert arrivals.numbers() == [1, 2, 3, 4, 10, 11, 12, 13]
    assert arrivals.last() == [2]


@pytest.mark.slow
def test_a_batch_that_is_not_in_a_restored_table_is_added_again(arrivals: Arrivals) -> None:
    arrivals.add(1)
    arrivals.add(2)
    arrivals.run()
    lance.dataset(arrivals.path, version=1).restore()
    arrivals.forget(1)
    arrivals.run()
    assert arrivals.numbers() == [1, 2]


@pytest.mark.slow
def test_complete_batches_replace_all_rows(arrivals: Arrivals, way: str) -> None:
    def count(rows: DataFrame) -> DataFrame:
        return rows.groupBy("s").agg(f.count("*").alias("n"))

    arrivals.add(1, 1, 2)
    arrivals.add(2, 3)
    arrivals.run(count, mode="complete")
    assert arrivals.rows() == [("row 1", 2), ("row 2", 2), ("row 3", 1)]
    assert lance_format.dataset(arrivals.path).version == 2
    arrivals.forget(1)
    arrivals.run(count, mode="complete")
    assert lance_format.dataset(arrivals.path).version == 2
    lance.dataset(arrivals.path).delete("n = 1")
    arrivals.add(3)
    arrivals.run(count, mode="complete")
    assert arrivals.rows() == [("row 1", 2), ("row 2", 2), ("row 3", 2)]


@pytest.mark.slow
@pytest.mark.parametrize("stable", [False, True])
def test_updates_replace_rows_by_their_key(arrivals: Arrivals, planner: SparkSession, stable: bool) -> None:
    def count(rows: DataFrame) -> DataFrame:
        return rows.groupBy("a", "s").agg(f.count("*").alias("n"))

    empty = pa.table({"a": pa.array([], pa.int64()), "s": pa.array([], pa.string()), "n": pa.array([], pa.int64())})
    lance.write_dataset(empty, arrivals.path, enable_stable_row_ids=stable)
    arrivals.add(1, 1, 2)
    arrivals.add(2, 3)
    arrivals.run(count, mode="update", mergeKey="A,s")
    lance.write_dataset(pa.table({"a": [90], "s": ["foreign"], "n": [5]}), arrivals.path, mode="append")
    assert arrivals.rows() == [(1, "row 1", 2), (2, "row 2", 2), (3, "row 3", 1), (90, "foreign", 5)]
    version = lance_format.dataset(arrivals.path).version
    assert version == 4
    arrivals.forget(1)
    arrivals.run(count, mode="update", mergeKey="a,s")
    assert lance_format.dataset(arrivals.path).version == version
    arrivals.add(1, 4)
    arrivals.run(count, mode="update", mergeKey="a,s")
    assert arrivals.rows() == [(1, "row 1", 3), (2, "row 2", 2), (3, "row 3", 1), (4, "row 4", 1), (90, "foreign", 5)]
    properties = lance_format.dataset(arrivals.path).read_transaction(5).transaction_properties
    assert (properties["num_updated_rows"], properties["num_inserted_rows"]) == ("1", "1")


def test_updates_that_another_writer_overtakes_are_made_again(arrivals: Arrivals, planner: SparkSession) -> None:
    lance.write_dataset(pa.table({"a": [1, 7], "s": ["x", "y"]}), arrivals.path)
    arrivals.add(1, 2, 3)
    path = arrivals.path

    def race(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        yield from frames
        lance.dataset(path).update({"s": "'foreign'"}, where="a IN (1, 7)")
        lance.write_dataset(pa.table({"a": [2, 8], "s": ["foreign", "foreign"]}), path, mode="append")

    arrivals.run(lambda rows: rows.mapInPandas(race, SCHEMA), mode="update", mergeKey="a")
    assert arrivals.rows() == [(1, "row 1"), (2, "row 2"), (3, "row 3"), (7, "foreign"), (8, "foreign")]
    assert lance_format.dataset(path).version == 4
    assert not leftovers(Path(path))
    arrivals.forget(0)
    arrivals.run(mode="update", mergeKey="a")
    assert lance_format.dataset(path).version == 4


@pytest.mark.slow
def test_keys_that_do_not_name_one_row_are_refused(arrivals: Arrivals, planner: SparkSession) -> None:
    lance.write_dataset(pa.table({"a": [1, 7, 7], "s": ["x", "y", "z"]}), arrivals.path)
    arrivals.add(5, 5)
    before = files(arrivals.path)
    for change, message in (
        (lambda rows: rows, "several rows .*a = 5|several rows have the key"),
        (lambda rows: rows.selectExpr("7L AS a", "s").limit(1), "several rows of .* have a key"),
        (lambda rows: rows.selectExpr("IF(a > 0, NULL, a) AS a", "s"), "a key must not be null"),
    ):
        with pytest.raises(PySparkException, match=f"(?s){message}"):
            arrivals.run(change, checkpoint=f"c{message}", mergeKey="a")
        assert files(arrivals.path) == before
    assert arrivals.rows() == [(1, "x"), (7, "y"), (7, "z")]


@pytest.mark.slow
@pytest.mark.parametrize("key", ["STRING COLLATE UTF8_LCASE", "STRUCT<c: STRING COLLATE UTF8_LCASE>"])
def test_keys_with_a_collation_are_refused(arrivals: Arrivals, catalog: Catalog, key: str) -> None:
    """Spark finds 'Owl' and 'OWL' equal, and their bytes differ."""
    catalog.sql(f"CREATE TABLE @.t (a {key}, s STRING)")
    arrivals.add(1)
    value = "named_struct('c', s)" if "STRUCT" in key else "s"
    with pytest.raises(PySparkException, match="'string collate UTF8_LCASE', of which equal values may differ"):
        arrivals.run(
            lambda rows: rows.selectExpr(f"CAST({value} AS {key}) AS a", "s"),
            mode="update",
            table=f"{catalog.name}.db.t",
            mergeKey="a",
        )
    assert catalog.sql("SELECT * FROM @.t") == []


@pytest.mark.slow
def test_tables_of_catalogs(arrivals: Arrivals, catalog: Catalog) -> None:
    arrivals.add(1, 2)
    name = f"{catalog.name}.db.t"
    arrivals.run(table=name)
    arrivals.add(3)
    arrivals.run(table=name)
    assert catalog.sql("SELECT a FROM @.t ORDER BY a") == [(1,), (2,), (3,)]
    cached = catalog.spark.table(name).cache()
    assert cached.count() == 3
    arrivals.add(4)
    arrivals.run(table=name)
    assert catalog.spark.table(name).count() == 4
    cached.unpersist()
    properties = catalog.sql("SHOW TBLPROPERTIES @.t")
    (marker,) = [entry for entry in properties if entry[0].startswith(BatchMarker.prefix)]
    catalog.sql(f"CREATE TABLE @.u (a BIGINT) TBLPROPERTIES ('{marker[0]}' = '{marker[1]}')")
    assert last_batches(lance_format.dataset(catalog.path("u")).config()) == {}
    catalog.spark.sql(f"CREATE TABLE sink_of_stream (a BIGINT, s STRING) USING lance LOCATION '{arrivals.path}'")
    try:
        arrivals.run(table="sink_of_stream", checkpoint="other")
        assert arrivals.numbers() == [1, 2, 3, 4]
    finally:
        catalog.spark.sql("DROP TABLE sink_of_stream")


@pytest.mark.slow
def test_queries_that_cannot_write_are_refused(arrivals: Arrivals, way: str) -> None:
    arrivals.add(1)
    arrivals.run(checkpoint="first")
    before = files(arrivals.path)
    at_start = [
        ({"versoin": 3}, "unknown option 'versoin': did you mean 'version'"),
        ({"version": 1}, "option 'version' is for reading"),
        ({"txnAppId": "x", "txnVersion": 1}, "a stream has the id of its query for 'txnAppId'"),
        ({"txnAppId": "x"}, "'txnAppId' and 'txnVersion' belong together"),
        ({"compactEvery": 0}, "'compactEvery' must be a whole number from 1"),
    ]
    for options, message in at_start:
        with pytest.raises(PySparkException, match=f"(?s){message}"):
            arrivals.run(checkpoint=message, **options)
    count: Callable[[DataFrame], DataFrame] = lambda rows: rows.groupBy("s").agg(f.max("a").alias("a"))  # noqa: E731
    other: Callable[[DataFrame], DataFrame] = lambda rows: rows.selectExpr("a AS wrong")  # noqa: E731
    cases: list[tuple[Any, str, dict[str, object], str]] = [
        (other, "append", {}, "column 'wrong' .* is not in the table"),
        (
            count,
            "update",
            {},
            "output mode 'update' needs the option 'mergeKey'" if way == "planner" else "does not support Update mode",
        ),
        (count, "complete", {"mergeKey": "s"}, "a complete batch replaces all rows"),
        (
            None,
            "append",
            {"mergeKey": "nobody"},
            "'mergeKey' names 'nobody'" if way == "planner" else "takes the planner",
        ),
    ]
    for number, (change, mode, options, message) in enumerate(cases):
        with pytest.raises(PySparkException, match=f"(?s){message}"):
            arrivals.run(change or (lambda rows: rows), mode, f"c{number}", **options)
    with pytest.raises(PySparkException, match="checkpointLocation must be specified"):
        arrivals.spark.readStream.schema(SCHEMA).parquet(str(arrivals.directory / "source")).writeStream.format(
            "lance"
        ).start(arrivals.path)
    with pytest.raises(PySparkException, match="option 'mergeKey' is for streams"):
        append(arrivals.spark.range(1), arrivals.path, mergeKey="a")
    assert files(arrivals.path) == before


def test_a_continuous_trigger_is_refused(arrivals: Arrivals, planner: SparkSession) -> None:
    rows = planner.readStream.format("rate").load().selectExpr("value AS a", "'s' AS s")
    writer = rows.writeStream.format("lance").option("checkpointLocation", str(arrivals.directory / "c"))
    with pytest.raises(UnsupportedOperationException, match="has no continuous trigger"):
        writer.trigger(continuous="1 second").start(arrivals.path)
    assert not Path(arrivals.path).exists()


@pytest.mark.slow
def test_compaction_between_batches(arrivals: Arrivals) -> None:
    for number in range(4):
        arrivals.add(number)
    arrivals.run(compactEvery=2)
    assert arrivals.numbers() == [0, 1, 2, 3]
    assert len(lance_format.dataset(arrivals.path).get_fragments()) == 1
    assert arrivals.last() == [3]
    arrivals.forget(3)
    arrivals.run(compactEvery=2)
    assert arrivals.numbers() == [0, 1, 2, 3]


@pytest.mark.slow
def test_a_failed_batch_leaves_nothing(arrivals: Arrivals, way: str) -> None:
    arrivals.add(1)
    arrivals.run()
    before = files(arrivals.path)
    arrivals.add(2, 3)

    def fail(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for frame in frames:
            yield frame
            raise ValueError("half of it is written")

    with pytest.raises(PySparkException, match="half of it is written"):
        arrivals.run(lambda rows: rows.repartition(2).mapInPandas(fail, SCHEMA))
    assert files(arrivals.path) == before
    arrivals.run()
    assert arrivals.numbers() == [1, 2, 3]


@pytest.mark.slow
def test_columns_that_change_during_a_batch_fail_it(arrivals: Arrivals, way: str) -> None:
    """The sink that commits is made when the rows no longer fit the table. It commits or aborts all the same."""
    arrivals.add(1)
    arrivals.run()
    arrivals.add(2)
    path = arrivals.path

    def race(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        yield from frames
        lance.dataset(path).alter_columns({"path": "a", "data_type": pa.int32()})

    with pytest.raises(PySparkException, match="append, planned on version 1, meets version 2"):
        arrivals.run(lambda rows: rows.mapInPandas(race, SCHEMA))
    assert not leftovers(Path(path))
    with pytest.raises(PySparkException, match="column 'a' is bigint where the table has int"):
        arrivals.run()
    assert not leftovers(Path(path))
    lance.dataset(path).alter_columns({"path": "a", "data_type": pa.int64()})
    arrivals.run()
    assert arrivals.numbers() == [1, 2]


@pytest.mark.slow
def test_a_table_that_is_made_again_during_a_batch_is_another(arrivals: Arrivals, way: str) -> None:
    arrivals.add(1)
    arrivals.run()
    arrivals.add(2)
    path = arrivals.path

    def race(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        yield from frames
        shutil.rmtree(path)
        lance.write_dataset(pa.table({"other": pa.array([7], pa.int64())}), path)

    with pytest.raises(PySparkException, match="is not the table that this change was planned on"):
        arrivals.run(lambda rows: rows.mapInPandas(race, SCHEMA), mergeSchema=True)
    assert lance_format.dataset(path).to_table().to_pydict() == {"other": [7]}
    assert not leftovers(Path(path))


def test_a_batch_of_updates_is_given_up_after_its_table_was_dropped(spark: SparkSession, path: str) -> None:
    rows = pa.table({"a": pa.array([1], pa.int64()), "s": ["x"]})
    for _ in range(3):
        lance_format.write_dataset(rows, path, mode="append")
    options = {
        "path": path,
        "mergeKey": "a",
        SINK: '{"mode": "update", "uuid": "1b4e28ba-2fa1-41d2-883f-0016d3cca427"}',
    }
    schema = spark.createDataFrame([], SCHEMA).schema
    sink = LanceDataSource(options).streamWriter(schema, overwrite=False)
    sink.check()
    shutil.rmtree(path)
    sink.abort([], 0)
    lance_format.write_dataset(rows, path)
    sink.abort([], 0)
    assert lance_format.dataset(path).to_table() == rows


@pytest.mark.slow
def test_the_second_of_two_instances_of_a_query_fails(arrivals: Arrivals, way: str) -> None:
    """It finds out at the commit, although other writers commit before and after the first instance does."""
    arrivals.add(1)
    query = arrivals.run()
    arrivals.add(2)
    path, application = arrivals.path, query.id

    def race(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        yield from frames
        lance.write_dataset(pa.table({"a": [50], "s": ["foreign"]}), path, mode="append")
        rows = pa.table({"a": [2], "s": ["row 2"]})
        write = lance_format.plan_write(path, rows.schema, mode="append")
        marker = BatchMarker.plan(lance_format.dataset(path).config(), application, 1)
        write.commit(write.write_fragments(rows.to_batches()), marker)
        lance.write_dataset(pa.table({"a": [51], "s": ["foreign"]}), path, mode="append")

    with pytest.raises(PySparkException, match=f"another writer committed batch 1 of '{application}'"):
        arrivals.run(lambda rows: rows.mapInPandas(race, SCHEMA))
    assert arrivals.numbers() == [1, 2, 50, 51]
    assert len(data_files(path)) == 4
    arrivals.run()
    arrivals.add(3)
    shutil.copytree(arrivals.directory / "checkpoint", arrivals.directory / "copy")
    arrivals.run()
    arrivals.run(checkpoint="copy")  # The same query again: the batch is in the table.
    assert arrivals.numbers() == [1, 2, 3, 50, 51]


@pytest.mark.slow
def test_batch_writes_that_number_themselves_are_done_once(spark: SparkSession, path: str, way: str) -> None:
    append(spark.range(3), path, txnAppId="nightly", txnVersion=1)
    append(spark.range(9), path, txnAppId="nightly", txnVersion=1)
    append(spark.range(9), path, txnAppId="nightly", txnVersion=0)
    append(spark.range(3, 4), path, txnAppId="other", txnVersion=0)
    assert load(spark, path).count() == 4
    before = files(path)
    overwrite(spark.range(9), path, txnAppId="nightly", txnVersion=1)
    assert files(path) == before
    overwrite(spark.range(2), path, txnAppId="nightly", txnVersion=2)
    assert load(spark, path).count() == 2
    assert last_batches(lance.dataset(path).config()) == {"nightly": 2, "other": 0}
    for options, message in (
        ({"txnAppId": "x"}, "belong together"),
        ({"txnAppId": "x", "txnVersion": -1}, "whole number from 0"),
    ):
        with pytest.raises(PySparkException, match=message):
            append(spark.range(1), path, **options)


_CONNECTED = """
def run():
    rows = spark.readStream.schema("a long").parquet(f"{path}/source")
    writer = rows.writeStream.format("lance").option("checkpointLocation", f"{path}/c").trigger(availableNow=True)
    query = writer.start(f"{path}/t.lance")
    query.awaitTermination()

for number in range(2):
    spark.range(number, number + 1).selectExpr("id AS a").write.mode("append").parquet(f"{path}/source")
    run()
for name in os.listdir(f"{path}/c/commits"):
    if "1" in name:
        os.remove(f"{path}/c/commits/{name}")
run()
copied = spark.readStream.format("lance").load(f"{path}/t.lance").writeStream.format("lance")
copied.option("checkpointLocation", f"{path}/d").trigger(availableNow=True).start(f"{path}/u.lance").awaitTermination()
print(json.dumps([row.a for row in spark.read.format("lance").load(f"{path}/t.lance").orderBy("a").collect()]))
"""


@pytest.mark.system
def test_streams_through_spark_connect(tmp_path: Path) -> None:
    assert run(CONNECT + _CONNECTED, tmp_path, str(tmp_path)) == [0, 1]
    assert lance_format.dataset(tmp_path / "t.lance").version == 2
    copied = lance_format.dataset(tmp_path / "u.lance").to_table()
    assert sorted(copied["a"].to_pylist()) == [0, 1]
