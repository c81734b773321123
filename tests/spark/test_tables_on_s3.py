"""What Spark does with tables, on S3: pylance reads every result, and no secret is written anywhere."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lance
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import lance_format
from connector.source.data_source import LanceDataSource
from lance_format import DatasetNotFoundError
from lance_format.object_store import resolve
from pyspark_lance import LanceTable
from tests.object_store.test_expiring_credentials import EXPIRED
from tests.proxies import Fault, Proxy, Request
from tests.servers import ObjectServer
from tests.spark.conftest import PLANNER, planning
from tests.spark.remote import REDACTED, SECRET, event_log, hadoop_settings

pytestmark = pytest.mark.system

LIFETIME = 8
CATALOG = "spark.sql.catalog.bare"


@pytest.fixture
def root(s3_server: ObjectServer) -> Iterator[str]:
    """Return an empty place of the server; what is there in the end has no secret."""
    root = s3_server.new_root()
    yield root
    store, prefix = resolve(root, s3_server.options)
    objects = [info.path for info in store.list_tree(prefix)]
    assert objects
    assert not [path for path in objects if SECRET.encode() in store.read(path, 1 << 24)]


@pytest.fixture
def logged(spark: SparkSession, tmp_path: Path) -> Iterator[None]:
    """Log the events of a test; its end finds no secret among them."""
    with event_log(spark, tmp_path) as read:
        yield
        text = read()
    assert "SparkListenerSQLExecutionEnd" in text
    assert "s3://tables" in text
    assert SECRET not in text


@pytest.fixture
def options(s3_server: ObjectServer) -> dict[str, str]:
    return {f"storage.{name}": value for name, value in s3_server.options.items()}


@pytest.fixture
def pylance(s3_server: ObjectServer) -> Callable[..., lance.LanceDataset]:
    """Return what opens a table with pylance, and validates it."""

    def read(path: str, **version: Any) -> lance.LanceDataset:
        found = lance.dataset(path, storage_options=s3_server.options, **version)
        found.validate()
        return found

    return read


@pytest.fixture
def hadoop(planner: SparkSession, s3_server: ObjectServer) -> Iterator[SparkSession]:
    """Return a session whose Hadoop configuration knows the server, and a catalog `bare` without any option."""
    planner.conf.set(CATALOG, "lance.Catalog")
    with hadoop_settings(planner, s3_server):
        yield planner
    planner.conf.unset(CATALOG)


def birds(spark: SparkSession) -> DataFrame:
    return spark.range(0, 400, 1, 4).selectExpr("id", "id % 7 AS g", "concat('bird ', id) AS name")


def rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in frame.collect())


def test_dataframes_and_lance_tables(
    spark: SparkSession, way: str, root: str, logged: None, options: dict[str, str], pylance: Callable[..., Any]
) -> None:
    path = f"{root}/birds.lance"

    def load(**more: object) -> DataFrame:
        return spark.read.format("lance").options(**options).options(**more).load(path)

    def save(frame: DataFrame, mode: str, **more: object) -> None:
        frame.write.format("lance").options(**options).options(**more).mode(mode).save(path)

    save(birds(spark), "append", enable_stable_row_ids="true")
    assert rows(load().where("id < 5 AND g > 1").select("name")) == [("bird 2",), ("bird 3",), ("bird 4",)]
    if way == "planner":
        with pytest.raises(PySparkException, match="already exists"):
            save(birds(spark), "errorifexists")
        save(birds(spark), "ignore")
        assert "id < 5" in load().where("id < 5")._jdf.queryExecution().toString()
    table = LanceTable.forPath(spark, path, options)
    table.delete("id >= 390")
    table.update("id = 4", {"name": "'four'"})
    changes = spark.range(389, 392).selectExpr("id", "id AS g", "'new' AS name")
    merge = table.alias("t").merge(changes.alias("s"), "s.id = t.id")
    merged = merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    assert (merged.num_updated_rows, merged.num_inserted_rows) == (1, 2)
    assert pylance(path).count_rows(filter="name = 'new'") == 3
    if way == "no planner":
        save(load().where("id < 10"), "overwrite")
        assert table.restoreToVersion(1).restored_version == 1
        assert pylance(path).count_rows() == load().count() == 400
        return
    doubled = load(metadata_columns="_rowid").selectExpr("_rowid", "id * 2 AS doubled")
    table.addColumnsFrom(doubled, "_rowid")
    table.optimize().executeZOrderBy("id", "g")
    table.createIndex("id")
    table.createTag("ordered")
    table.createBranch("wild")
    wild = LanceTable.forPath(spark, path, {**options, "branch": "wild"})
    wild.delete("g = 3")
    assert pylance(path).to_table(columns=["doubled"], filter="id = 391")["doubled"].to_pylist() == [782]
    assert load(branch="wild").where("g = 3").count() == 0
    assert load(tag="ordered").count() == load().count() == 392
    changed = [row[0] for row in rows(table.readChanges(3, 4).select("_change_type"))]
    assert changed == ["insert"] * 2 + ["update_postimage"] * 2 + ["update_preimage"] * 2
    for name in ("history", "files", "fragments", "indices", "tags", "branches", "refs", "transactions"):
        assert load(metadata_table=name).count() > 0
    save(load().where("id < 10").drop("doubled"), "overwrite")
    assert table.restoreToVersion(1).restored_version == 1
    table.deleteBranch("wild")
    table.deleteTag("ordered")
    assert table.vacuum(0).old_versions > 5
    assert rows(load()) == rows(birds(spark))
    assert pylance(path).to_table().num_rows == 400
    assert [
        f for f in (repr(table), str(table.detail().collect()), str(table.history().collect())) if SECRET in f
    ] == []


def test_sql(
    hadoop: SparkSession, root: str, logged: None, pylance: Callable[..., lance.LanceDataset], s3_server: ObjectServer
) -> None:
    path = f"{root}/birds.lance"
    table = f"bare.`{path}`"

    def sql(text: str) -> list[tuple[Any, ...]]:
        found = [tuple(row) for row in hadoop.sql(text.replace("@", table)).collect()]
        assert SECRET not in str(found)
        return found

    def call(text: str) -> list[tuple[Any, ...]]:
        return sql(f"CALL bare.system.{text.replace('(', f'(`{table}`', 1)}".replace(f"`{table}`", f"'`{path}`'"))

    birds(hadoop).createOrReplaceTempView("source_of_s3")
    sql("CREATE TABLE @ TBLPROPERTIES ('enable_stable_row_ids' = 'true') AS SELECT id FROM source_of_s3")
    sql("CREATE OR REPLACE TABLE @ AS SELECT * FROM source_of_s3")
    sql("DELETE FROM @ WHERE id IN (SELECT id FROM source_of_s3 WHERE id >= 390)")
    sql("UPDATE @ SET name = 'four' WHERE id = 4")
    sql(
        "MERGE INTO @ t USING (SELECT id, g, 'new' AS name FROM range(389, 392) JOIN (SELECT 1L AS g)) s ON t.id = s.id"
        " WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    assert pylance(path).count_rows(filter="name = 'new'") == 3
    assert call("optimize(, zorder_by => array('id', 'g'))")[0][1] == 1
    sql("INSERT INTO @ VALUES (400, 1, 'last')")
    assert call("optimize()")[0][:2] == (2, 1)
    call("create_index(, 'id')")
    call("refresh_index()")
    assert pylance(path).describe_indices()[0].name == "id_idx"
    sql("CREATE OR REPLACE TEMPORARY VIEW doubles_of_s3 AS SELECT _rowid, id * 2 AS doubled FROM @")
    call("add_columns(, 'doubles_of_s3')")
    call("drop_index(, 'id_idx')")
    call("create_tag(, 'first', 1)")
    call("update_tag(, 'first', 2)")
    call("create_branch(, 'wild')")
    sql(f"DELETE FROM bare.`{path}`.branch_wild WHERE g = 3")
    assert sql(f"SELECT count(*) FROM bare.`{path}`.branch_wild WHERE g = 3") == [(0,)]
    assert (
        sql("SELECT count(*) FROM @ VERSION AS OF 'first'") == sql("SELECT count(*) FROM @ VERSION AS OF 2") == [(400,)]
    )
    assert sql("SELECT count(*), max(doubled) FROM @") == [(393, 800)]
    assert pylance(path, version="first").count_rows() == 400
    for name in ("history", "files", "fragments", "indices", "tags", "branches", "refs", "transactions"):
        assert sql(f"SELECT count(*) > 0 FROM @.{name}") == [(name != "indices",)]
    assert len(call("history()")) == pylance(path).version
    call("delete_branch(, 'wild')")
    call("delete_tag(, 'first')")
    call("restore(, version => 2)")
    sql("ALTER TABLE @ SET TBLPROPERTIES ('kept' = 'yes')")
    assert call("vacuum(, retain_versions => 1, dry_run => true)")
    assert call("vacuum(, older_than => INTERVAL 0 SECONDS)")[0][1] > 5
    assert ("kept", "yes") in sql("SHOW TBLPROPERTIES @")
    assert sorted(pylance(path).to_table().to_pylist(), key=lambda row: row["id"]) == [
        row.asDict() for row in birds(hadoop).collect()
    ]
    named = LanceTable.forName(hadoop, table)
    assert named.delete("id > 10").num_deleted_rows == 389
    sql("DROP TABLE @ PURGE")
    assert not LanceTable.isLanceTable(hadoop, path)
    LanceTable.create(hadoop).location(path).addColumn("id", "BIGINT").execute()
    assert pylance(path).schema.names == ["id"]


def test_tables_of_the_session_catalog(
    hadoop: SparkSession, root: str, logged: None, options: dict[str, str], pylance: Callable[..., lance.LanceDataset]
) -> None:
    path = f"{root}/a%2541-ü.lance"
    sql, name = hadoop.sql, "birds_at_a_location"
    created = f"TABLE {name} USING lance LOCATION '{path}' AS SELECT"
    try:
        with pytest.raises((PySparkException, Py4JJavaError)) as failed:
            sql(f"CREATE {created} id, IF(id = 90, raise_error('no'), 'x') AS name FROM range(0, 100, 1, 2)")
        assert SECRET not in str(failed.value)
        assert not hadoop.catalog.tableExists(name)
        sql(f"CREATE {created} id, 'old' AS name FROM range(50)")
        sql(f"CREATE OR REPLACE {created} id, id % 3 AS g FROM range(70)")
        sql(f"CREATE OR REPLACE {created.replace('s3:', 's3a:')} id, id % 3 AS g, 'x' AS name FROM range(80)")
        sql(f"UPDATE {name} SET g = 7 WHERE id = 79")
        sql(f"DELETE FROM {name} WHERE id < 40")
        sql(f"MERGE INTO {name} t USING (SELECT 79L AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET name = 'y'")
        sql(f"INSERT OVERWRITE {name} SELECT * FROM {name} WHERE id < 50 OR name = 'y'")
        assert pylance(path).to_table(filter="g = 7").to_pylist() == [{"id": 79, "g": 7, "name": "y"}]
        assert hadoop.sql(f"SELECT * FROM lance.`{path}`").count() == hadoop.table(name).count() == 11
        sql(f"INSERT INTO lance.`{path}` SELECT 99, 1, 'z'")
        assert LanceTable.forName(hadoop, name).update("id = 99", {"name": "'zz'"}).num_updated_rows == 1
        hadoop.conf.set("spark.sql.catalog.spark_catalog", "lance.SessionCatalog")
        other = hadoop.newSession()
        other.conf.set(PLANNER, "true")
        other.conf.set("spark.sql.catalog.spark_catalog", "lance.SessionCatalog")
        other.sql(f"ALTER TABLE {name} ADD COLUMNS (weight DOUBLE)")
        assert other.sql(f"SELECT * FROM {name} VERSION AS OF 1").count() == 50
        assert rows(hadoop.read.format("lance").load(path).where("id = 99")) == [(99, 1, "zz", None)]
    finally:
        hadoop.conf.unset("spark.sql.catalog.spark_catalog")
        sql(f"DROP TABLE IF EXISTS {name}")
    assert pylance(path).count_rows() == 12


def test_declared_options(
    planner: SparkSession, root: str, logged: None, options: dict[str, str], pylance: Callable[..., lance.LanceDataset]
) -> None:
    """Tables and views with options of their own, by name."""
    path = f"{root}/sp ace%2541.lance"
    spelled = ", ".join(f"'{name}' '{value}'" for name, value in options.items())
    try:
        planner.sql(
            f"CREATE TABLE declared (id BIGINT, picture BINARY) USING lance OPTIONS ({spelled}) LOCATION '{path}'"
        )
        planner.sql("INSERT INTO declared VALUES (1, X'00'), (2, NULL)")
        with pytest.raises(PySparkException, match="CREATE TABLE without columns takes those of the table"):
            planner.sql(f"CREATE TABLE misfit (x STRING) USING lance OPTIONS ({spelled}) LOCATION '{path}'")
        planner.sql("UPDATE declared SET picture = X'0102' WHERE id = 2")
        assert LanceTable.forName(planner, "declared").delete("id = 1").num_deleted_rows == 1
        assert LanceTable.forName(planner, "spark_catalog.default.declared").toDF().count() == 1
        planner.sql(f"CREATE TEMPORARY VIEW seen USING lance OPTIONS ({spelled}, path '{path}')")
        assert rows(planner.sql("SELECT id, length(picture) FROM seen")) == [(2, 2)]
        told = [planner.sql(f"{show} declared").collect() for show in ("DESCRIBE EXTENDED", "SHOW CREATE TABLE")]
        assert SECRET not in str(told)
    finally:
        planner.sql("DROP TABLE IF EXISTS declared")
        planner.catalog.dropTempView("seen")
    assert pylance(path).to_table().to_pylist() == [{"id": 2, "picture": b"\1\2"}]


def test_options_of_a_catalog(
    planner: SparkSession,
    root: str,
    tmp_path: Path,
    options: dict[str, str],
    pylance: Callable[..., lance.LanceDataset],
) -> None:
    """Spark hides them in the log of events if the session was built with them."""
    settings = {f"spark.sql.catalog.configured.{name}": value for name, value in options.items()}
    planner.conf.set("spark.sql.catalog.configured", "lance.Catalog")
    for name, value in settings.items():
        planner.conf.set(name, value)
    table = f"configured.`{root}/birds.lance`"
    try:
        with event_log(planner, tmp_path, **settings) as read:
            planner.sql(f"CREATE TABLE {table} AS SELECT id FROM range(10)")
            assert LanceTable.forName(planner, table).delete("id > 3").num_deleted_rows == 6
            planner.sql(f"UPDATE {table} SET id = 30 WHERE id = 3")
            text = read()
        assert "storage.aws_secret_access_key" in text
        assert REDACTED in text
        assert SECRET not in text
    finally:
        for name in settings:
            planner.conf.unset(name)
        planner.conf.unset("spark.sql.catalog.configured")
    assert sorted(pylance(f"{root}/birds.lance").to_table()["id"].to_pylist()) == [0, 1, 2, 30]


def test_blobs(spark: SparkSession, root: str, options: dict[str, str], pylance: Callable[..., Any]) -> None:
    path = f"{root}/pictures.lance"
    pictures = [(number, bytearray(b"x" * number * 1000)) for number in range(100)]
    frame = spark.createDataFrame(pictures, "id long, picture binary").coalesce(2)
    frame.write.format("lance").options(**options).option("picture.lance.encoding", "blob").mode("append").save(path)
    with planning(spark):
        table = spark.read.format("lance").options(**options).load(path)
        assert rows(table.where("id > 97").selectExpr("length(picture)")) == [(98_000,), (99_000,)]
    assert len(pylance(path).take_blobs("picture", indices=[50])[0].read()) == 50_000


def test_streams(
    planner: SparkSession, root: str, options: dict[str, str], tmp_path: Path, pylance: Callable[..., Any]
) -> None:
    """A table is the source of a query, and another one its sink. The checkpoint has no secret."""
    table = lance_format.write_dataset({"id": range(10)}, f"{root}/source", storage_options=_plain(options))
    stream = planner.readStream.format("lance").options(**options).load(f"{root}/source")
    for number in range(2):
        writer = stream.writeStream.format("lance").options(**options).trigger(availableNow=True)
        query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start(f"{root}/target")
        query.awaitTermination()
        assert sorted(pylance(f"{root}/target").to_table()["id"].to_pylist()) == list(range(10 + number))
        table.insert({"id": [10 + number]})
    kept = [path.read_bytes() for path in (tmp_path / "checkpoint").rglob("*") if path.is_file()]
    assert kept
    assert not [content for content in kept if SECRET.encode() in content]


def _plain(options: dict[str, str]) -> dict[str, str]:
    """Return the options of the storage as they are outside of Spark."""
    return {name.removeprefix("storage."): value for name, value in options.items()}


def test_credentials_that_expire_during_a_job(spark: SparkSession, root: str, s3_server: ObjectServer) -> None:
    """The store refuses each token after some requests; the processes of the tasks live longer."""
    kept = {name: value for name, value in s3_server.options.items() if "key" not in name}
    proxy, path = Proxy(s3_server.endpoint), f"{root}/birds.lance"
    newest: dict[str, int] = {}

    def expire(request: Request) -> Fault | None:
        process, _, number = request.headers["x-amz-security-token"].partition("-")
        newest[process] = max(newest.get(process, 0), int(number))
        return EXPIRED if int(number) + LIFETIME < newest[process] else None

    with proxy.running(), proxy.failing(expire):
        given = {**kept, "aws_endpoint": proxy.endpoint, "credential_provider": "tests.spark.remote:short_lived_keys"}
        options = {f"storage.{name}": value for name, value in given.items()}
        birds(spark).write.format("lance").options(**options).mode("append").save(path)
        for _ in range(100):
            assert spark.read.format("lance").options(**options).load(path).agg({"id": "sum"}).first()[0] == 79_800
            if max(newest.values()) > 2 * LIFETIME:
                break
        else:
            pytest.fail(f"no process has used many tokens: {newest}")
        with planning(spark):
            spark.read.format("lance").options(**options).load(path).write.format("lance").options(**options).mode(
                "overwrite"
            ).save(path)
    of_tasks = [number for process, number in newest.items() if process != str(os.getpid())]
    assert max(of_tasks) > 2 * LIFETIME
    assert lance_format.dataset(path, storage_options=s3_server.options).count_rows() == 400


def test_what_tasks_are_sent(root: str, options: dict[str, str], s3_server: ObjectServer) -> None:
    """The reader or writer, a part of the function of a job, has the options; partitions have none."""
    path = f"{root}/birds.lance"
    lance_format.write_dataset({"a": range(10)}, path, storage_options=s3_server.options)
    source = LanceDataSource({"path": path, **options})
    schema = source.schema()
    reader = source.reader(schema)
    partitions = reader.partitions()
    assert SECRET.encode() in pickle.dumps(reader)
    assert SECRET.encode() not in pickle.dumps(partitions)
    (partition,) = partitions
    batches = list(pickle.loads(pickle.dumps(reader)).read(partition))
    assert sum(batch.num_rows for batch in batches) == 10
    writer = source.writer(schema, overwrite=False)
    assert SECRET.encode() in pickle.dumps(writer)
    for shown in (source, reader, writer, partition):
        assert SECRET not in repr(shown)
    with pytest.raises(DatasetNotFoundError) as missing:
        LanceDataSource({"path": f"{root}/none", **options}).schema()
    assert SECRET not in str(missing.value)


def test_a_store_that_fails_after_a_commit(planner: SparkSession, s3_server: ObjectServer, root: str) -> None:
    """What is done is no error, and what may be done says so, also if the cleanup fails."""
    proxy = Proxy(s3_server.endpoint)
    denied = Fault(403, "<Error><Code>AccessDenied</Code></Error>")

    def fail_later(num_listings: int) -> None:
        passed: list[Request] = []

        def rule(request: Request) -> Fault | None:
            if passed or (request.method == "PUT" and request.key.endswith(".manifest")):
                passed.append(request)
            return denied if len(passed) > 1 + num_listings else None

        proxy.rule = rule

    options = {**s3_server.options, "aws_endpoint": proxy.endpoint, "client_max_retries": "0"}
    settings = {"": "lance.Catalog", **{f".storage.{name}": value for name, value in options.items()}}
    table = f"failing.`{root}/t.lance`"
    for name, value in settings.items():
        planner.conf.set(f"spark.sql.catalog.failing{name}", value)
    try:
        with proxy.running():
            for statement in (f"CREATE TABLE {table} (id BIGINT)", f"ALTER TABLE {table} ADD COLUMN g BIGINT"):
                fail_later(1)
                planner.sql(statement)
            proxy.rule = None
            planner.sql(f"INSERT INTO {table} VALUES (1, 2), (3, 4)")
            for statement in (f"UPDATE {table} SET g = 5 WHERE id = 1", f"UPDATE {table} SET g = 6 WHERE id = 1"):
                fail_later(0)
                with pytest.raises(PySparkException, match=r"^\[\w+\] Failed to commit .* CommitStateUnknownError: "):
                    planner.sql(statement)
                proxy.rule = None
    finally:
        for name in settings:
            planner.conf.unset(f"spark.sql.catalog.failing{name}")
    found = lance_format.dataset(f"{root}/t.lance", storage_options=s3_server.options)
    assert (found.version, sorted(found.to_table()["g"].to_pylist())) == (5, [4, 6])
