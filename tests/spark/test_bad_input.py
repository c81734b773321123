"""Mistakes and broken tables: the user sees the error's class and message, and nothing is left behind."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

import lance_format
from connector.source.data_source import LanceDataSource
from lance_format.proto import table_pb2
from tests.spark.conftest import append, files, load, overwrite
from tests.table.builders import with_checksum


@contextlib.contextmanager
def refused(error: str, *fragments: str) -> Iterator[None]:
    """Expect an exception of Spark that shows an error of ours, with its message."""
    with pytest.raises(PySparkException) as caught:
        yield
    text = str(caught.value)
    assert f"lance_format.errors.{error}: " in text
    for fragment in fragments:
        assert fragment in text
    assert "PicklingError" not in text


@pytest.fixture
def table(spark: SparkSession, path: str) -> str:
    append(spark.range(10).selectExpr("id", "cast(id AS string) AS name"), path)
    return path


class TestReading:
    def test_no_path(self, spark: SparkSession) -> None:
        with refused("InvalidInputError", "no path is given"):
            spark.read.format("lance").load()

    def test_several_paths(self, spark: SparkSession) -> None:
        with refused("InvalidInputError", "one path is expected"):
            spark.read.format("lance").load(["/a", "/b"])

    @pytest.mark.parametrize("kind", ["missing", "directory", "file", "csv"])
    def test_a_path_that_is_no_table(self, spark: SparkSession, path: str, kind: str) -> None:
        if kind == "file":
            Path(path).write_text("no table")
        elif kind != "missing":
            Path(path).mkdir()
        if kind == "csv":
            Path(path, "a.csv").write_text("1,2")
        with refused("StorageError" if kind == "file" else "DatasetNotFoundError", path):
            load(spark, path)

    @pytest.mark.slow
    @pytest.mark.parametrize("text", ["", "  ", "5", "id + 1", "id =", "name", "TRUE; TRUE"])
    def test_a_filter_that_is_no_predicate(self, spark: SparkSession, table: str, text: str) -> None:
        with refused("InvalidInputError"):
            load(spark, table, filter=text).count()

    def test_a_version_that_does_not_exist(self, spark: SparkSession, table: str) -> None:
        with refused("VersionNotFoundError", "7"):
            load(spark, table, version=7)

    @pytest.mark.parametrize(
        ("name", "value", "message"),
        [
            ("version", "latest", "option 'version' must be a whole number"),
            ("batch_size", "0", "option 'batch_size' must be a whole number"),
            ("columns", "id,nmae", "option 'columns' names 'nmae', but the table"),
            ("columns", "id,id", "more than once"),
            ("versoin", "1", "did you mean 'version'?"),
        ],
    )
    def test_bad_options(self, spark: SparkSession, table: str, name: str, value: str, message: str) -> None:
        with refused("InvalidInputError", message):
            load(spark, table, **{name: value})

    def test_a_schema_that_the_table_does_not_have(self, spark: SparkSession, table: str) -> None:
        with refused("SchemaMismatchError", "column 'id' is read as string but is bigint", "column 'x' is not in"):
            spark.read.format("lance").schema("id string, x int").load(table).collect()

    def test_a_type_that_spark_has_not(self, spark: SparkSession, path: str) -> None:
        lance_format.write_dataset(pa.table({"id": [1], "big": pa.array([1], pa.decimal256(50, 0))}), path)
        with refused("NotSupportedError", "column 'big'", "at most 38 digits"):
            load(spark, path)
        assert load(spark, path, columns="id").collect() == [(1,)]

    def test_a_value_that_spark_cannot_hold(self, spark: SparkSession, path: str) -> None:
        lance_format.write_dataset(pa.table({"at": pa.array([2**60], pa.timestamp("s"))}), path)
        with refused("NotSupportedError", "column 'at': timestamp[s] does not fit Spark's type timestamp[us]"):
            load(spark, path).collect()

    @pytest.mark.slow
    @pytest.mark.parametrize("damage", ["truncated", "foreign", "empty", "missing"])
    def test_broken_data_files(self, spark: SparkSession, table: str, damage: str) -> None:
        df = load(spark, table)
        file = max(Path(table, "data").iterdir())
        if damage == "truncated":
            file.write_bytes(file.read_bytes()[:-100])
        elif damage == "foreign":
            file.write_bytes(b"PAR1" + bytes(1000) + b"PAR1")
        elif damage == "empty":
            file.write_bytes(b"")
        else:
            file.unlink()
        error = "DatasetNotFoundError" if damage == "missing" else "CorruptFileError"
        with refused(error, file.name):
            df.collect()

    def test_a_truncated_manifest(self, spark: SparkSession, table: str) -> None:
        manifest = next(Path(table, "_versions").glob("*.manifest"))
        manifest.write_bytes(manifest.read_bytes()[:-5])
        with refused("ChecksumError", manifest.name):
            load(spark, table)

    @pytest.mark.parametrize("flag", ["reader", "writer"])
    def test_an_unknown_feature_flag(self, spark: SparkSession, table: str, flag: str) -> None:
        set_feature_flag(table, flag)
        before = files(table)
        if flag == "reader":
            with refused("NotSupportedError", "flag"):
                load(spark, table)
        else:
            assert load(spark, table).count() == 10
        with refused("NotSupportedError", "flag"):
            append(spark.range(10).selectExpr("id", "cast(id AS string) AS name"), table)
        assert files(table) == before


def set_feature_flag(path: str, flag: str) -> None:
    """Set a bit that no version of the format knows, in the manifest of the only version."""
    [manifest_path] = Path(path, "_versions").glob("*.manifest")
    content = manifest_path.read_bytes()
    start = int.from_bytes(content[-16:-8], "little")
    length = int.from_bytes(content[start : start + 4], "little")
    manifest = table_pb2.Manifest.FromString(content[start + 4 : start + 4 + length])
    setattr(manifest, f"{flag}_feature_flags", 1 << 40)
    encoded = manifest.SerializeToString()
    manifest_path.write_bytes(
        with_checksum(content[:start] + len(encoded).to_bytes(4, "little") + encoded + content[-16:])
    )


class TestWriting:
    def test_no_path(self, spark: SparkSession) -> None:
        with refused("InvalidInputError", "no path is given"):
            spark.range(3).write.format("lance").mode("append").save()

    @pytest.mark.parametrize(
        ("columns", "message"),
        [
            (["cast(id AS int) AS id", "name"], "column 'id' is int where the table has bigint"),
            (["id", "name", "1 AS more"], "column 'more' (int) is not in the table"),
            (["id", "name AS names"], "column 'names' (string) is not in the table"),
            (["id", "cast(NULL AS void) AS name"], "column 'name' is void where the table has string"),
        ],
    )
    def test_an_append_whose_schema_differs(
        self, spark: SparkSession, table: str, columns: list[str], message: str
    ) -> None:
        before = files(table)
        with refused("SchemaMismatchError", message):
            append(load(spark, table).selectExpr(*columns), table)
        assert files(table) == before

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("expression", "spelling"),
        [
            ("interval '1-2' year to month", "interval year to month"),
            ("interval '3' month", "interval month"),
        ],
    )
    @pytest.mark.parametrize("exists", [False, True])
    def test_types_that_cannot_be_stored(
        self, spark: SparkSession, path: str, expression: str, spelling: str, exists: bool
    ) -> None:
        if exists:
            append(spark.range(3), path)
        before = files(path) if exists else set()
        for save in (append, overwrite):
            with refused("NotSupportedError", f"column 'odd' has Spark's type {spelling}: "):
                save(spark.range(3).select("id", f.expr(expression).alias("odd")), path)
        assert Path(path).exists() == exists
        assert not exists or files(path) == before

    @pytest.mark.slow
    @pytest.mark.parametrize("exists", [False, True])
    @pytest.mark.parametrize(
        ("name", "value", "error", "message"),
        [
            ("file_format_version", "9.9", "InvalidInputError", "9.9"),
            ("file_format_version", "next", "NotSupportedError", "2.3"),
            ("file_format_version", "legacy", "NotSupportedError", "0.1"),
            ("max_row_per_file", "0", "InvalidInputError", "option 'max_row_per_file'"),
            ("max_rows_per_file", "10", "InvalidInputError", "did you mean 'max_row_per_file'?"),
            ("max_bytes_per_file", "1GB", "InvalidInputError", "option 'max_bytes_per_file'"),
            ("compression", "zstd", "InvalidInputError", "unknown option 'compression'"),
        ],
    )
    def test_bad_options(
        self, spark: SparkSession, path: str, name: str, value: str, error: str, message: str, exists: bool
    ) -> None:
        if exists:
            append(spark.range(3), path)
        before = files(path) if exists else set()
        with refused(error, message):
            append(spark.range(3), path, **{name: value})
        assert Path(path).exists() == exists
        assert not exists or files(path) == before

    @pytest.mark.parametrize("save", [append, overwrite])
    def test_a_directory_that_cannot_be_written(self, spark: SparkSession, tmp_path: Path, save: object) -> None:
        (tmp_path / "file").write_text("in the way")
        with refused("StorageError", str(tmp_path)):
            save(spark.range(3), str(tmp_path / "file" / "table.lance"))  # type: ignore[operator]
        assert files(str(tmp_path)) == {"file"}

    @pytest.mark.slow
    def test_a_table_that_disappears_while_it_is_written(self, spark: SparkSession, table: str) -> None:
        def remove(batches):  # type: ignore[no-untyped-def]
            shutil.rmtree(table)
            yield from batches

        with pytest.raises(PySparkException, match=r"lance_format\.errors\."):
            append(load(spark, table).coalesce(1).mapInArrow(remove, "id long, name string"), table)


@pytest.mark.parametrize("answers", [True, False], ids=["driver", "worker"])
def test_errors_of_planning_are_a_line(
    planner: SparkSession, path: str, monkeypatch: pytest.MonkeyPatch, answers: bool
) -> None:
    append(planner.range(3), path)
    if not answers:
        monkeypatch.setattr("connector.planner.answers.Answers.apply", lambda *_: 1 / 0)
    for attempt, message in (
        (lambda: load(planner, f"{path}x"), "describe .*: DatasetNotFoundError: there is no Lance table at"),
        (lambda: load(planner, path, version=99), "describe .*: VersionNotFoundError: .* has no version 99"),
        (lambda: load(planner, path, nonsense=1), "describe .*: InvalidInputError: unknown option 'nonsense'"),
    ):
        with pytest.raises(AnalysisException, match=f"^.PYTHON_DATA_SOURCE_ERROR. Failed to {message}") as error:
            attempt()
        assert "Traceback" not in str(error.value)
        assert "\n" not in str(error.value).strip()


def test_errors_of_writes_are_a_line(planner: SparkSession, path: str) -> None:
    append(planner.range(3), path)
    with pytest.raises(AnalysisException, match=r"Failed to write .*: SchemaMismatchError: .* column 'x'") as error:
        append(planner.range(3).withColumnRenamed("id", "x"), path)
    assert "\n" not in str(error.value).strip()


def test_errors_of_tasks_have_no_traceback_of_ours(planner: SparkSession, path: str) -> None:
    append(planner.range(3), path)
    shutil.rmtree(f"{path}/data")
    with pytest.raises(PySparkException, match=r"DatasetNotFoundError: the data file .* is missing") as error:
        load(planner, path).collect()
    assert str(error.value).count("  File ") == 1


def test_errors_that_no_user_is_to_see_have_a_traceback(
    planner: SparkSession, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(planner.range(3), path)
    monkeypatch.setattr(LanceDataSource, "describe", lambda *_: 1 / 0)
    with pytest.raises(AnalysisException, match=r"(?s)Failed to describe .*Traceback.*ZeroDivisionError"):
        load(planner, path)
