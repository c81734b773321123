"""Tables in an object store, in Spark."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator

import lance
import lance.namespace
import lance_namespace
import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import lance_format
from connector.options.hadoop import translate
from connector.options.options import LanceOptions
from connector.protocol import HADOOP
from lance_format import InvalidInputError
from lance_format.object_store import resolve
from pyspark_lance import LanceTable
from tests.servers import ObjectServer, s3_options
from tests.spark.random_sql import setting
from tests.spark.remote import SECRET, hadoop_settings


@pytest.fixture
def options(s3_server: ObjectServer) -> dict[str, str]:
    return {f"storage.{name}": value for name, value in s3_server.options.items()}


@pytest.fixture
def path(s3_server: ObjectServer) -> str:
    return f"{s3_server.new_root()}/birds.lance"


def shown(spark: SparkSession) -> str:
    """Return all that Spark's UI and event log would show of the queries so far."""
    found = spark._jsparkSession.sharedState().statusStore().executionsList()  # type: ignore[attr-defined]
    executions = [found.apply(number) for number in range(found.size())]
    assert any("lance" in execution.physicalPlanDescription() for execution in executions)
    return "\n".join(f"{one.description()} {one.details()} {one.physicalPlanDescription()}" for one in executions)


def check_no_secret(frame: DataFrame) -> None:
    texts = [frame._jdf.queryExecution().toString(), shown(frame.sparkSession), repr(frame)]
    assert not [text for text in texts if SECRET in text]


@pytest.fixture
def remote(planner: SparkSession, options: dict[str, str]) -> Iterator[str]:
    """Return a catalog with the options of the store. Events of later tests have its settings, if they stay."""
    settings = {f"spark.sql.catalog.remote.{name}": value for name, value in options.items()}
    settings["spark.sql.catalog.remote"] = "lance.Catalog"
    for name, value in settings.items():
        planner.conf.set(name, value)
    yield "remote"
    for name in settings:
        planner.conf.unset(name)


@pytest.mark.slow
def test_sql_on_a_table_by_its_uri(planner: SparkSession, s3_server: ObjectServer, remote: str, path: str) -> None:
    table = f"{remote}.`{path}`"
    planner.sql(f"CREATE TABLE {table} (id BIGINT NOT NULL, name STRING, PRIMARY KEY (id))")
    planner.sql(f"INSERT INTO {table} VALUES (1, 'owl'), (2, 'emu'), (3, 'auk')")
    planner.sql(f"ALTER TABLE {table} ADD COLUMN weight DOUBLE")
    planner.sql(f"UPDATE {table} SET weight = 1.5 WHERE id = 1")
    planner.sql(f"DELETE FROM {table} WHERE id = 2")
    planner.sql(f"INSERT INTO {table} REPLACE WHERE id = 3 SELECT 4, 'kea', 2.5D")
    planner.sql(
        f"MERGE INTO {table} t USING (SELECT 5L AS id, 'moa' AS name, 9D AS weight) s ON t.id = s.id"
        " WHEN NOT MATCHED THEN INSERT *"
    )
    wanted = [(1, "owl", 1.5), (4, "kea", 2.5), (5, "moa", 9.0)]
    assert sorted(map(tuple, planner.table(table).collect())) == wanted
    theirs = lance.dataset(path, storage_options=s3_server.options)
    theirs.validate()
    assert sorted(tuple(row.values()) for row in theirs.to_table().to_pylist()) == wanted
    told = [planner.sql(f"{show} {table}").collect() for show in ("DESCRIBE EXTENDED", "SHOW CREATE TABLE")]
    assert SECRET not in str(told)
    planner.sql(f"DROP TABLE {table} PURGE")
    assert not planner.catalog.tableExists(table)


@pytest.fixture
def bucket_root(planner: SparkSession, s3_server: ObjectServer, options: dict[str, str]) -> Iterator[str]:
    """Return the root of the catalog `bucket`."""
    root = s3_server.new_root()
    settings = {"": "lance.Catalog", ".root": f"{root}/", **{f".{name}": value for name, value in options.items()}}
    with contextlib.ExitStack() as stack:
        for name, value in settings.items():
            stack.enter_context(setting(planner, f"spark.sql.catalog.bucket{name}", value))
        yield root


@pytest.mark.slow
def test_a_catalog_whose_root_is_in_a_bucket(planner: SparkSession, s3_server: ObjectServer, bucket_root: str) -> None:
    root = bucket_root

    def sql(text: str) -> list[tuple[object, ...]]:
        return [tuple(row) for row in planner.sql(text).collect()]

    sql("CREATE NAMESPACE bucket.zoo")
    assert sql("SHOW NAMESPACES IN bucket") == [("zoo",)]
    sql("CREATE TABLE bucket.zoo.waders (id BIGINT NOT NULL, name STRING)")
    sql("INSERT INTO bucket.zoo.waders VALUES (1, 'owl'), (2, 'emu')")
    sql("CREATE OR REPLACE TABLE bucket.zoo.copy AS SELECT * FROM bucket.zoo.waders")
    assert sql("SHOW TABLES IN bucket.zoo") == [("zoo", "copy", False), ("zoo", "waders", False)]
    storage = {f"storage.{name}": value for name, value in s3_server.options.items()}
    theirs = lance.namespace.DirectoryNamespace(root=f"{root}/zoo", manifest_enabled="false", **storage)
    assert sorted(theirs.list_tables(lance_namespace.ListTablesRequest(id=[])).tables) == ["copy", "waders"]
    assert lance.dataset(f"{root}/zoo/waders.lance", storage_options=s3_server.options).count_rows() == 2
    sql("USE bucket.zoo")
    try:
        assert sql("SELECT count(*) FROM waders") == [(2,)]
        assert sql("SELECT version FROM waders.history") == [(2,), (1,)]
        described = dict(row[:2] for row in sql("DESCRIBE EXTENDED waders"))
        assert described["Location"] == f"{root}/zoo/waders.lance"
        with pytest.raises(PySparkException, match="an object store cannot move objects at once"):
            sql("ALTER TABLE waders RENAME TO zoo.auks")
        with pytest.raises(PySparkException, match="names there do not contain"):
            sql("CREATE TABLE `a%20b` (id INT)")
        sql("DROP TABLE copy")
        assert sql("SHOW TABLES") == [("zoo", "waders", False)]
        sql(f"DROP TABLE bucket.`{root}/zoo/copy.lance` PURGE")
        with pytest.raises(PySparkException, match=r"not empty|CASCADE"):
            sql("DROP NAMESPACE bucket.zoo")
    finally:
        sql("USE spark_catalog.default")
    sql("DROP NAMESPACE bucket.zoo CASCADE")
    assert sql("SHOW NAMESPACES IN bucket") == []
    store, path = resolve(root, s3_server.options)
    assert not list(store.list_tree(path))


@pytest.mark.slow
def test_a_table_is_written_read_and_changed(
    planner: SparkSession, s3_server: ObjectServer, options: dict[str, str], path: str
) -> None:
    spark = planner
    rows = spark.range(0, 1000, 1, 2).selectExpr("id", "concat('bird ', id) AS name")
    rows.write.format("lance").options(**options).mode("append").save(path)
    rows.where("id < 10").write.format("lance").options(**options).mode("append").save(path.replace("s3:", "s3a:"))
    table = spark.read.format("lance").options(**options).load(path)
    assert table.count() == 1010
    assert sorted(row.id for row in table.where("id >= 998 OR name = 'bird 3'").collect()) == [3, 3, 998, 999]
    assert lance.dataset(path, storage_options=s3_server.options).count_rows() == 1010
    lance.write_dataset(
        pa.table({"id": [5000], "name": ["auk"]}), path, mode="append", storage_options=s3_server.options
    )
    old = spark.read.format("lance").options(**options).option("version", 1).load(path)
    assert old.agg({"id": "max"}).first()[0] == 999
    assert spark.read.format("lance").options(**options).load(path).agg({"id": "max"}).first()[0] == 5000
    rows.where("id < 5").write.format("lance").options(**options).mode("overwrite").save(path)
    again = spark.read.format("lance").options(**options).load(path)
    assert sorted(row.id for row in again.collect()) == [0, 1, 2, 3, 4]
    opened = lance_format.dataset(path, storage_options=s3_server.options)
    opened.delete("id = 4")
    opened.optimize.compact_files()
    assert spark.read.format("lance").options(**options).load(path).count() == 4
    check_no_secret(again)


def test_sessions_without_the_planner_take_the_options(spark: SparkSession, options: dict[str, str], path: str) -> None:
    spark.range(10).write.format("lance").options(**options).mode("append").save(path)
    table = spark.read.format("lance").options(**options).load(path)
    assert table.where("id > 7").count() == 2
    check_no_secret(table)


@pytest.mark.slow
def test_a_failed_write_leaves_nothing(
    planner: SparkSession, s3_server: ObjectServer, options: dict[str, str], path: str
) -> None:
    planner.range(3).write.format("lance").options(**options).save(path)
    before = lance_format.dataset(path, storage_options=s3_server.options)
    broken = planner.range(0, 100, 1, 2).selectExpr("IF(id = 99, raise_error('no'), id) AS id")
    with pytest.raises((PySparkException, Py4JJavaError)) as failed:
        broken.write.format("lance").options(**options).mode("append").save(path)
    assert SECRET not in str(failed.value)
    store, root = resolve(path, s3_server.options)
    assert len(store.list_names(f"{root}/data")) == sum(1 for _ in before.get_fragments())


def test_wrong_options_are_named_without_their_values(planner: SparkSession, path: str) -> None:
    with pytest.raises(
        (PySparkException, Py4JJavaError), match="unknown storage option 'aws_secret_acces_key'"
    ) as wrong:
        planner.read.format("lance").option("storage.aws_secret_acces_key", SECRET).load(path)
    assert SECRET not in str(wrong.value)


def test_a_catalog_that_cannot_be_reached_is_no_missing_table(planner: SparkSession) -> None:
    options = {f"storage.{name}": value for name, value in s3_options("http://127.0.0.1:1").items()}
    settings = {"": "lance.Catalog", ".root": "s3://tables", **{f".{name}": value for name, value in options.items()}}
    for name, value in settings.items():
        planner.conf.set(f"spark.sql.catalog.unreachable{name}", value)
    with pytest.raises(PySparkException, match=r"does not answer at 127\.0\.0\.1:1"):
        LanceTable.forName(planner, "unreachable.zoo.birds")
    for name in settings:
        planner.conf.unset(f"spark.sql.catalog.unreachable{name}")


@pytest.fixture
def hadoop(planner: SparkSession, s3_server: ObjectServer) -> Iterator[SparkSession]:
    """Return a session whose Hadoop configuration knows the server."""
    with hadoop_settings(planner, s3_server):
        yield planner


@pytest.mark.slow
def test_the_configuration_of_hadoop_is_understood(hadoop: SparkSession, path: str) -> None:
    place = path.replace("s3:", "s3a:")
    hadoop.range(100).write.format("lance").save(place)
    hadoop.range(100, 110).write.format("lance").mode("append").save(place)
    table = hadoop.read.format("lance").load(place)
    assert table.where("id > 90").count() == 19
    check_no_secret(table)
    name = "birds_of_s3"
    hadoop.sql(f"CREATE TABLE {name} USING lance LOCATION '{path}'")
    try:
        assert hadoop.table(name).count() == 110
        hadoop.sql(f"INSERT INTO {name} VALUES (7)")
        assert hadoop.table(name).where("id = 7").count() == 2
        check_no_secret(hadoop.table(name))
        check_no_secret(hadoop.sql(f"DESCRIBE TABLE EXTENDED {name}"))
    finally:
        hadoop.sql(f"DROP TABLE {name}")


def test_settings_are_translated() -> None:
    settings = {
        "access.key": "a",
        "secret.key": "b",
        "session.token": "c",
        "endpoint": "minio:9000",
        "connection.ssl.enabled": "false",
        "endpoint.region": "r",
        "path.style.access": "true",
    }
    assert translate(settings, {}) == {
        "aws_access_key_id": "a",
        "aws_secret_access_key": "b",
        "aws_session_token": "c",
        "aws_endpoint": "http://minio:9000",
        "allow_http": "true",
        "aws_region": "r",
        "aws_virtual_hosted_style_request": "false",
    }
    own = {"access_key_id": "x", "secret_access_key": "y", "endpoint_url": "https://z"}
    assert translate(settings, own) == {
        **own,
        "allow_http": "true",
        "aws_region": "r",
        "aws_virtual_hosted_style_request": "false",
    }
    assert translate({"endpoint": "s3.eu-central-1.amazonaws.com"}, {}) == {}
    assert translate({"endpoint": "minio"}, {}) == {"aws_endpoint": "https://minio"}
    anonymous = "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider"
    assert translate({"aws.credentials.provider": anonymous, "access.key": "a"}, {}) == {"aws_skip_signature": "true"}


def test_storage_options_are_hidden() -> None:
    options = LanceOptions.parse(
        {"path": "s3://b/t", "STORAGE.aws_region": "r", HADOOP: json.dumps({"secret.key": SECRET, "access.key": "a"})}
    )
    assert options.storage == {"aws_region": "r", "aws_access_key_id": "a", "aws_secret_access_key": SECRET}
    assert SECRET not in repr(options)
    with pytest.raises(InvalidInputError, match="unknown option 'storag"):
        LanceOptions.parse({"path": "s3://b/t", "storage_aws_region": "r"})
