"""Appends and overwrites, file limits, and leftovers of failed tasks, jobs and commits."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

import lance_format
from connector.planner.answers import Answers
from connector.write.writer import LanceWriter
from lance_format import DatasetNotFoundError
from pyspark_lance import LanceTable
from tests.spark.conftest import append, data_files, files, load, overwrite


def test_append_creates_and_then_extends(spark: SparkSession, path: str) -> None:
    append(spark.range(3), path)
    append(spark.range(3, 5), path)
    assert sorted(row.id for row in load(spark, path).collect()) == [0, 1, 2, 3, 4]
    assert lance_format.dataset(path).version == 2


def test_overwrite_creates_and_then_replaces_rows_and_schema(spark: SparkSession, path: str) -> None:
    overwrite(spark.range(3), path)
    overwrite(spark.createDataFrame([("x",)], "name string"), path)
    assert load(spark, path).collect() == [("x",)]
    assert load(spark, path, version=1).count() == 3


def test_appended_columns_are_matched_by_name(spark: SparkSession, path: str) -> None:
    append(spark.createDataFrame([(1, "one")], "id int, name string"), path)
    append(spark.createDataFrame([("two", 2)], "name string, id int"), path)
    assert sorted(load(spark, path).collect()) == [(1, "one"), (2, "two")]


def test_every_partition_becomes_a_fragment(spark: SparkSession, path: str) -> None:
    append(spark.range(0, 70, 1, 7), path)
    fragments = lance_format.dataset(path).get_fragments()
    assert [fragment.count_rows() for fragment in fragments] == [10] * 7
    assert lance_format.dataset(path).to_table()["id"].to_pylist() == list(range(70))
    assert load(spark, path).rdd.getNumPartitions() == 1, "small fragments are read together"


def test_empty_partitions_leave_no_fragment(spark: SparkSession, path: str) -> None:
    append(spark.range(0, 100, 1, 10).where("id >= 90"), path)
    assert [fragment.count_rows() for fragment in lance_format.dataset(path).get_fragments()] == [10]


def test_overwrite_with_nothing_empties_the_table(spark: SparkSession, path: str) -> None:
    append(spark.range(3), path)
    overwrite(spark.range(3).where("id > 5"), path)
    assert load(spark, path).count() == 0
    assert load(spark, path, version=1).count() == 3


def test_files_are_limited_in_rows(spark: SparkSession, path: str) -> None:
    append(spark.range(0, 1000, 1, 2), path, max_row_per_file=200)
    assert [fragment.count_rows() for fragment in lance_format.dataset(path).get_fragments()] == [200, 200, 100] * 2
    assert len(data_files(path)) == 6


@pytest.mark.slow
def test_files_are_limited_in_bytes(spark: SparkSession, path: str) -> None:
    df = spark.range(0, 200_000, 1, 1).select(f.sha2(f.col("id").cast("string"), 256).alias("text"))
    append(df, path, max_bytes_per_file=2_000_000)
    assert len(data_files(path)) > 4
    assert load(spark, path).distinct().count() == 200_000


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2", "stable"])
def test_file_versions(spark: SparkSession, path: str, version: str) -> None:
    append(spark.range(3), path, file_format_version=version)
    assert lance_format.dataset(path).data_storage_version == version.replace("stable", "2.2")
    assert load(spark, path).count() == 3


@pytest.mark.slow
def test_nulls_in_a_column_that_the_table_declares_not_nullable(spark: SparkSession, path: str) -> None:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False)])
    lance_format.write_dataset(pa.table({"id": [1]}, schema=schema), path)
    append(spark.range(2, 4).where("id > 1"), path)
    before = files(path)
    with pytest.raises(Exception, match="SchemaMismatchError: column 'id' holds nulls"):
        append(spark.sql("SELECT cast(NULL AS bigint) AS id"), path)
    assert files(path) == before
    assert load(spark, path).count() == 3


def settled(path: str, expected: set[str]) -> set[str]:
    """List the files once they are the expected ones, or after minutes."""
    deadline = time.monotonic() + 120
    while files(path) != expected and time.monotonic() < deadline:
        time.sleep(0.1)
    return files(path)


FAILURES = {
    "expression": "if(id = 19999, raise_error('broken row'), id) AS id",
    "arithmetic": "id DIV (id - 19999) AS id",
}


@pytest.mark.slow
@pytest.mark.parametrize("save", [append, overwrite])
@pytest.mark.parametrize("failure", FAILURES)
def test_a_query_that_fails_leaves_the_table_as_it_was(
    spark: SparkSession, path: str, failure: str, save: Callable[..., None]
) -> None:
    """Spark kills the writing processes at once; `abort` deletes their files."""
    append(spark.range(5), path)
    before = files(path)
    with pytest.raises(Exception, match=r"broken row|DIVIDE_BY_ZERO"):
        save(spark.range(0, 20_000, 1, 4).selectExpr(FAILURES[failure]), path)
    assert settled(path, before) == before
    assert load(spark, path).count() == 5
    append(spark.range(5), path)
    assert load(spark, path).count() == 10
    assert lance_format.dataset(path).version == 2


@pytest.mark.slow
def test_a_query_that_fails_creates_no_table(spark: SparkSession, path: str) -> None:
    def broken(batches):  # type: ignore[no-untyped-def]
        yield from batches
        raise RuntimeError("broken source")

    with pytest.raises(Exception, match="broken source"):
        append(spark.range(0, 20_000, 1, 2).mapInArrow(broken, "id long"), path)
    assert settled(path, set()) == set()
    with pytest.raises(DatasetNotFoundError):
        lance_format.dataset(path)
    append(spark.range(3), path)
    assert load(spark, path).count() == 3


def test_a_failing_commit_leaves_the_table_as_it_was(spark: SparkSession, path: str) -> None:
    """Another writer replaces the table while the job runs, which an append cannot follow."""
    append(spark.range(5), path)

    def replace_table(batches):  # type: ignore[no-untyped-def]
        lance_format.write_dataset(pa.table({"other": ["x"]}), path, mode="overwrite")
        yield from batches

    with pytest.raises(Exception, match="CommitConflictError"):
        append(spark.range(0, 10, 1, 1).mapInArrow(replace_table, "id long"), path)
    assert load(spark, path).collect() == [("x",)]
    assert lance_format.dataset(path).version == 2
    versions = [lance_format.dataset(path, version) for version in (1, 2)]
    fragments = [fragment for version in versions for fragment in version.get_fragments()]
    assert data_files(path) == {file.relative_path for fragment in fragments for file in fragment.data_files()}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return what the planner asks the driver's Python process, as a list that grows."""
    found: list[str] = []
    answer = Answers.apply

    def listen(answers: Answers, question: str) -> str:
        found.append(json.loads(question)["ask"])
        return answer(answers, question)

    monkeypatch.setattr(Answers, "apply", listen)
    return found


def test_the_driver_plans_and_ends_writes(planner: SparkSession, path: str, asked: list[str]) -> None:
    append(planner.range(5), path)
    assert asked[-2:] == ["write", "commit"]
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        append(planner.range(5).selectExpr("1 DIV (id - 3) AS id"), path)
    assert asked[-2:] == ["write", "abort"]
    planner.sql(f"UPDATE lance.`{path}` SET id = 7 WHERE id = 4")
    assert asked[-2:] == ["write", "commit"]
    table = LanceTable.forPath(planner, path)
    table.addColumnsFrom(load(planner, path, metadata_columns="_rowaddr").selectExpr("_rowaddr", "-id AS less"))
    assert asked[-2:] == ["write", "commit"]
    table.optimize().executeZOrderBy("id")
    assert asked[-2:] == ["write", "commit"]
    assert lance_format.dataset(path).version == 4
    assert load(planner, path).collect() == [(number, -number) for number in (0, 1, 2, 3, 7)]


def test_an_error_of_a_commit_says_what_happened(planner: SparkSession, path: str, asked: list[str]) -> None:
    append(planner.range(5), path)

    def replace_table(batches):  # type: ignore[no-untyped-def]
        lance_format.write_dataset(pa.table({"other": ["x"]}), path, mode="overwrite")
        yield from batches

    with pytest.raises(
        AnalysisException, match="Failed to commit Python data source lance: CommitConflictError"
    ) as error:
        append(planner.range(0, 10, 1, 1).mapInArrow(replace_table, "id long"), path)
    assert "Traceback" not in str(error.value)
    assert asked[-2:] == ["commit", "abort"]
    assert load(planner, path).collect() == [("x",)]


def test_an_interrupt_of_a_commit(planner: SparkSession, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    append(planner.range(5), path)
    before = files(path)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(LanceWriter, "commit", interrupt)
        with pytest.raises(AnalysisException, match="Failed to commit Python data source lance: KeyboardInterrupt"):
            append(planner.range(5), path)
    assert files(path) == before
    append(planner.range(5), path)
    assert load(planner, path).count() == 10
