"""The four save modes of `df.write`; without the planner bridge, Spark gives Python data sources two."""

from __future__ import annotations

import doctest
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, UnsupportedOperationException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import Row

import lance_format
import pyspark_lance
from lance_format import DatasetExistsError
from pyspark_lance import LanceTable
from tests.spark.conftest import PLANNER, files, load
from tests.table.leftovers import leftovers

CREATING = [None, "error", "errorifexists", "ignore"]


def _save(spark: SparkSession, path: str, mode: str | None, start: int = 0, **options: object) -> None:
    writer = spark.range(start, start + 10, 1, 2).write.format("lance").options(**options)
    (writer if mode is None else writer.mode(mode)).save(path)


def _ids(path: str) -> list[int]:
    return sorted(lance_format.dataset(path).to_table()["id"].to_pylist())


@pytest.mark.parametrize("mode", CREATING)
def test_a_table_is_created(planner: SparkSession, path: str, mode: str | None) -> None:
    _save(planner, path, mode)
    assert _ids(path) == list(range(10))
    assert lance_format.dataset(path).version == 1


@pytest.mark.parametrize("mode", CREATING[:3])
def test_a_table_that_is_there_is_an_error(planner: SparkSession, path: str, mode: str | None) -> None:
    _save(planner, path, "append")
    before = files(path)
    with pytest.raises(AnalysisException, match="already exists") as caught:
        _save(planner, path, mode, start=50)
    assert caught.value.getCondition() == "PATH_ALREADY_EXISTS"
    assert path in str(caught.value)
    assert files(path) == before


def test_a_table_that_is_there_is_left_alone(planner: SparkSession, path: str) -> None:
    _save(planner, path, "ignore")
    before = files(path)
    _save(planner, path, "ignore", start=50)
    assert files(path) == before


def test_append_and_overwrite(planner: SparkSession, path: str) -> None:
    _save(planner, path, "append")
    _save(planner, path, "append", start=10)
    assert _ids(path) == list(range(20))
    _save(planner, path, "overwrite", start=50)
    assert _ids(path) == list(range(50, 60))
    assert lance_format.dataset(path).version == 3


def test_options_reach_the_writer(planner: SparkSession, path: str) -> None:
    df = planner.createDataFrame([Row(Vector=[1.0, 2.0])], "Vector array<float>")
    df.write.format("lance").option("Vector.arrow.fixed-size-list.size", "2").option("max_row_per_file", "4").save(path)
    assert lance_format.dataset(path).schema.field("Vector").type == pa.list_(pa.float32(), 2)
    with pytest.raises(AnalysisException, match="unknown option 'max_rows_per_fil'"):
        _save(planner, f"{path}2", None, max_rows_per_fil=1)


def test_types_are_those_of_the_writer(planner: SparkSession, path: str) -> None:
    odd = ["INTERVAL '1' DAY i", "parse_json('{}') v", "TIME'12:00:00' t", "array(struct(TIME'01:00:00' AS t)) a"]
    rows = planner.range(1).selectExpr(*odd)
    rows.write.format("lance").save(path)
    seen = ["to_json(v)", "i", "t", "a"]
    assert load(planner, path).selectExpr(*seen).collect() == rows.selectExpr(*seen).collect()


@pytest.mark.parametrize("name", [" birds", "birds ", "bi\nrds", "./bi:rds"])
def test_a_path_in_a_working_directory(
    planner: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for path in (name, str(tmp_path / name)):
        planner.range(3).write.format("lance").mode("overwrite").save(path)
        planner.sql(f"UPDATE lance.`{tmp_path / name}` SET id = 7 WHERE id = 0")
        assert LanceTable.forPath(planner, path).update("id = 1", {"id": "8"}).num_updated_rows == 1
        assert sorted(row.id for row in planner.read.format("lance").load(path).where("id > 0").collect()) == [2, 7, 8]
    assert [found.name for found in tmp_path.iterdir()] == [(tmp_path / name).name]


def test_without_a_path(planner: SparkSession) -> None:
    with pytest.raises(AnalysisException, match="no path is given"):
        planner.range(3).write.format("lance").save()


def test_rows_that_do_not_fit_an_append(planner: SparkSession, path: str) -> None:
    _save(planner, path, None)
    with pytest.raises(AnalysisException, match="other"):
        planner.range(3).withColumnRenamed("id", "other").write.format("lance").mode("append").save(path)
    assert _ids(path) == list(range(10))


@pytest.mark.parametrize("mode", ["append", "overwrite", "errorifexists", "ignore"])
def test_partitions_are_refused(planner: SparkSession, path: str, mode: str) -> None:
    refusal = r"not divided by .*: leave out partitionBy or clusterBy\..*\bid\b"
    for writer in (planner.range(3).write.partitionBy("id"), planner.range(3).write.clusterBy("id")):
        with pytest.raises(UnsupportedOperationException, match=refusal):
            writer.format("lance").mode(mode).save(path)
    assert files(path) == set()


@pytest.mark.slow
def test_a_query_that_fails_creates_nothing(planner: SparkSession, path: str) -> None:
    failing = planner.range(10).selectExpr("assert_true(id < 5) as x", "id")
    with pytest.raises(Exception, match="id < 5"):
        failing.write.format("lance").save(path)
    assert files(path) == set()


def test_of_two_that_create_a_table_one_does(planner: SparkSession, path: str) -> None:
    failures: list[Exception] = []

    def save(start: int) -> None:
        try:
            _save(planner, path, "errorifexists", start=start)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=save, args=(start,)) for start in (0, 100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(failures) == 1
    assert _ids(path) in (list(range(10)), list(range(100, 110)))
    assert any(name in str(failures[0]) for name in (DatasetExistsError.__name__, "PATH_ALREADY_EXISTS"))


_STATEMENTS: dict[str, Callable[[DataFrame, str], object]] = {
    "save": lambda df, path: df.write.format("lance").mode("overwrite").save(path),
    "INSERT OVERWRITE": lambda df, path: df.sparkSession.sql(
        f"INSERT OVERWRITE lance.`{path}` SELECT * FROM {{df}}", df=df
    ),
    "replace": lambda df, path: df.writeTo(f"lance.`{path}`").using("lance").createOrReplace(),
}


@pytest.mark.parametrize("statement", _STATEMENTS.values(), ids=_STATEMENTS.keys())
@pytest.mark.parametrize("is_read", [True, False], ids=["of itself", "of other rows"])
def test_an_overwrite_keeps_changes_of_rows_that_it_has_read(
    planner: SparkSession, path: str, statement: Callable[[DataFrame, str], object], *, is_read: bool
) -> None:
    _save(planner, path, None)

    def racing(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if lance_format.dataset(path).version == 1:
            lance_format.dataset(path).insert(pa.table({"id": [50]}))
        yield from batches

    df = load(planner, path) if is_read else planner.range(10)
    statement(df.coalesce(1).mapInArrow(racing, "id long").selectExpr("id + 100 AS id"), path)
    assert _ids(path) == [*range(100, 110), *([150] if is_read else [])]
    table = lance_format.dataset(path)
    assert table.version == 3
    assert table.read_transaction(3).read_version == (2 if is_read else 1)
    assert not leftovers(Path(path))


def test_workers_look_where_the_driver_does_not(
    planner: SparkSession, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("connector.planner.answers.Answers.apply", lambda *_: 1 / 0)
    _save(planner, path, "ignore")
    _save(planner, path, "ignore", start=50)
    assert _ids(path) == list(range(10))


def test_tables_with_a_name(planner: SparkSession) -> None:
    rows = planner.range(3)
    rows.write.format("lance").saveAsTable("saved")
    try:
        rows.write.format("lance").mode("ignore").saveAsTable("saved")
        rows.write.insertInto("saved")
        assert planner.table("saved").count() == 6
        with pytest.raises(AnalysisException, match="already exists"):
            rows.write.format("lance").saveAsTable("saved")
    finally:
        planner.sql("DROP TABLE saved")


def test_inserts_into_a_view_with_columns(planner: SparkSession, path: str) -> None:
    _save(planner, path, None)
    planner.sql(f"CREATE OR REPLACE TEMPORARY VIEW saved_ids (id BIGINT) USING lance OPTIONS (path '{path}')")
    planner.sql("INSERT INTO saved_ids VALUES (77)")
    assert _ids(path) == [*range(10), 77]


def test_without_the_planner_two_modes_are_left(spark: SparkSession, path: str) -> None:
    assert spark.conf.get(PLANNER) == "false"
    with pytest.raises(AnalysisException) as caught:
        _save(spark, path, None)
    assert caught.value.getCondition() == "UNSUPPORTED_DATA_SOURCE_SAVE_MODE"
    _save(spark, path, "append")
    assert load(spark, path).count() == 10


def test_the_session_in_the_package_runs(planner: SparkSession) -> None:
    assert doctest.testmod(pyspark_lance) == (0, 7)
