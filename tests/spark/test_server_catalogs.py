"""SQL on a catalog whose names and places a server keeps: one of Lance's namespaces, AWS Glue, or a Hive metastore."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import lance
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lance_format import HiveNamespace, RestNamespace
from pyspark_lance import LanceTable
from tests.namespaces.keepers import hive_keeper
from tests.namespaces.servers import NamespaceServer, serving, serving_by_pylance
from tests.servers import ObjectServer
from tests.spark.conftest import Catalog, catalog_of, files

_ACCESS = {"region_name": "us-east-1", "aws_access_key_id": "key", "aws_secret_access_key": "s3cret"}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[NamespaceServer]:
    with serving(NamespaceServer(str(tmp_path / "root"), headers={"X-Api-Key": "s3cret"})) as made:
        yield made


@pytest.fixture
def strict(planner: SparkSession, server: NamespaceServer, tmp_path: Path) -> Iterator[Catalog]:
    """Return a catalog on a server that demands a header."""
    options = {"impl": "rest", "uri": server.uri, "headers.X-Api-Key": "s3cret"}
    with catalog_of(planner, tmp_path / "root", options) as made:
        yield made


@pytest.fixture
def glue(planner: SparkSession, s3_server: ObjectServer, tmp_path: Path) -> Iterator[Catalog]:
    """Return a catalog on moto's Glue, which other tests use."""
    options = {"impl": "glue", "endpoint": s3_server.endpoint, "region": "us-east-1", "root": str(tmp_path / "root")}
    secrets = {"access_key_id": "key", "secret_access_key": "s3cret"}
    with catalog_of(planner, tmp_path / "root", {**options, **secrets}) as made:
        yield made
        made.sql("DROP NAMESPACE IF EXISTS @ CASCADE")


@pytest.fixture
def hive(planner: SparkSession, hive_metastore: str, tmp_path: Path) -> Iterator[Catalog]:
    """Return a catalog on a Hive metastore, which other tests use."""
    options = {"impl": "hive2", "uri": hive_metastore, "root": str(tmp_path / "root"), "client.pool-size": "5"}
    with catalog_of(planner, tmp_path / "root", options) as made:
        yield made
        made.sql("DROP NAMESPACE IF EXISTS @ CASCADE")


@pytest.fixture(params=["pylance", "strict", "glue", "hive"])
def catalog(request: pytest.FixtureRequest, planner: SparkSession, tmp_path: Path) -> Iterator[Catalog]:
    """Return a catalog on each server, with a namespace `db`."""
    if request.param != "pylance":
        yield request.getfixturevalue(request.param)
        return
    with (
        serving_by_pylance(tmp_path / "root") as uri,
        catalog_of(planner, tmp_path / "root", {"impl": "REST", "uri": uri}) as made,
    ):
        yield made


@pytest.mark.parametrize("catalog", ["pylance", "strict"], indirect=True)
def test_namespaces(catalog: Catalog) -> None:
    catalog.sql("CREATE NAMESPACE @.inner COMMENT 'mine' WITH DBPROPERTIES ('team' = 'x')")
    assert catalog.sql("SHOW NAMESPACES IN @") == [("db.inner",)]
    described = dict(catalog.sql("DESCRIBE NAMESPACE EXTENDED @.inner"))
    assert (described["Comment"], described["Properties"]) == ("mine", "((team,x))")
    catalog.refuses("CREATE NAMESPACE @", "already exists")
    catalog.sql("CREATE NAMESPACE IF NOT EXISTS @")
    catalog.refuses("DROP NAMESPACE @", "CASCADE")
    catalog.refuses("DESCRIBE NAMESPACE @.none", "cannot be found")
    catalog.refuses("ALTER NAMESPACE @ SET PROPERTIES ('a' = 'b')", "cannot be altered")
    catalog.refuses("SHOW TABLES IN @.none", "cannot be found")
    catalog.sql("DROP NAMESPACE @.inner")
    assert catalog.sql("SHOW NAMESPACES IN @") == []


def test_tables(catalog: Catalog) -> None:
    catalog.sql("CREATE TABLE @.t (id INT, name STRING) TBLPROPERTIES ('team' = 'x')")
    catalog.refuses("CREATE TABLE @.t (id INT)", "already exists")
    catalog.sql("INSERT INTO @.t VALUES (1, 'a'), (2, 'b')")
    catalog.sql("MERGE INTO @.t USING (SELECT 2 AS id, 'c' AS name) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *")
    catalog.sql("DELETE FROM @.t WHERE id = 1")
    assert catalog.sql("SELECT * FROM @.t") == [(2, "c")]
    assert catalog.sql("SELECT * FROM @.t VERSION AS OF 2 ORDER BY id") == [(1, "a"), (2, "b")]
    assert catalog.sql("SELECT count(*) FROM @.t.history") == [(4,)]
    location = dict(row[:2] for row in catalog.sql("DESCRIBE TABLE EXTENDED @.t"))["Location"]
    assert lance.dataset(location).to_table().to_pylist() == [{"id": 2, "name": "c"}]
    catalog.sql("ALTER TABLE @.t ADD COLUMN more DOUBLE")
    catalog.sql(f"CALL {catalog.name}.system.create_branch('db.t', 'b')")
    catalog.sql("INSERT INTO @.t.branch_b VALUES (3, 'd', 4.0)")
    assert catalog.sql("SELECT id FROM @.t.branch_b ORDER BY id") == [(2,), (3,)]
    assert catalog.sql("SHOW TABLES IN @") == [("db", "t", False)]
    catalog.sql("CREATE OR REPLACE TABLE @.t AS SELECT 5 AS five")
    assert catalog.sql("SELECT * FROM @.t") == [(5,)]
    assert LanceTable.forName(catalog.spark, f"{catalog.name}.db.t").toDF().collect() == [(5,)]


def test_dropped_tables(catalog: Catalog) -> None:
    catalog.sql("CREATE TABLE @.t AS SELECT 1 AS id")
    before = files(str(catalog.root))
    catalog.sql("DROP TABLE @.t")
    assert {name for name in before if "/data/" in name} <= files(str(catalog.root))
    catalog.sql("DROP TABLE IF EXISTS @.t")
    catalog.refuses("SELECT * FROM @.t", "cannot be found")
    assert catalog.sql("SHOW TABLES IN @") == []


def test_a_table_that_cannot_be_created_is_given_up(catalog: Catalog, planner: SparkSession) -> None:
    with pytest.raises(PySparkException, match="no"):
        catalog.sql("CREATE TABLE @.t AS SELECT raise_error('no') AS id")
    assert catalog.sql("SHOW TABLES IN @") == []
    assert not [name for name in files(str(catalog.root)) if name.endswith(".lance") and "__manifest" not in name]
    catalog.sql("CREATE TABLE @.t AS SELECT 1 AS id")
    planner.sql("SELECT 2 AS id").writeTo(f"{catalog.name}.db.u").create()
    planner.table(f"{catalog.name}.db.u").writeTo(f"{catalog.name}.db.t").append()
    assert catalog.sql("SELECT id FROM @.t ORDER BY id") == [(1,), (2,)]
    catalog.refuses(f"CREATE TABLE {catalog.name}.none.t AS SELECT 1 AS id", "cannot be found")


def test_declarations_that_are_given_up(strict: Catalog, server: NamespaceServer) -> None:
    strict.refuses("CREATE TABLE @.t (i INTERVAL YEAR)", "no type for months")
    strict.refuses("CREATE TABLE @.t (id INT) TBLPROPERTIES ('file_format_version' = '9')", "unknown file format")
    assert server.tables == {}
    server.is_managed = True
    strict.refuses("CREATE TABLE @.t (id INT)", "the versions of the table db.t are kept by the server")
    server.is_managed = False
    assert server.tables == {}
    strict.sql("CREATE TABLE @.t (id INT)")
    strict.sql("DROP TABLE @.t")
    RestNamespace(server.uri, headers=server.headers).declare(["db", "t"], str(strict.root / "declared"))
    strict.refuses("CREATE TABLE @.t AS SELECT raise_error('no') AS id", "no")
    assert server.tables == {("db", "t"): str(strict.root / "declared")}  # others have declared it


def test_a_table_that_the_server_does_not_drop(planner: SparkSession, tmp_path: Path) -> None:
    with (
        serving_by_pylance(tmp_path / "root") as uri,
        catalog_of(planner, tmp_path / "root", {"impl": "rest", "uri": uri}) as catalog,
    ):
        catalog.sql(f"CREATE TABLE {catalog.name}.t AS SELECT 1 AS id")
        with pytest.raises(PySparkException, match=r"has it still; delete the files at .*t\.lance"):
            catalog.sql(f"DROP TABLE {catalog.name}.t")
        assert catalog.sql(f"SELECT * FROM {catalog.name}.t") == [(1,)]
        catalog.sql(f"DROP TABLE {catalog.name}.`{tmp_path}/root/t.lance` PURGE")
        assert catalog.sql(f"SHOW TABLES IN {catalog.name}") == []


def test_a_dropped_table_does_not_come_back(strict: Catalog) -> None:
    strict.sql("CREATE TABLE @.t AS SELECT 1 AS id")
    path = dict(row[:2] for row in strict.sql("DESCRIBE TABLE EXTENDED @.t"))["Location"]
    strict.sql("DROP TABLE @.t")
    for statement in ("CREATE TABLE @.t (id INT)", "CREATE OR REPLACE TABLE @.t AS SELECT 2 AS id"):
        strict.refuses(statement, "where another table is, perhaps a dropped one; nothing was changed")
        assert strict.sql("SHOW TABLES IN @") == []
    strict.sql(f"DROP TABLE {strict.name}.`{path}` PURGE")
    strict.sql("CREATE TABLE @.t AS SELECT 3 AS id")
    assert strict.sql("SELECT * FROM @.t") == [(3,)]


def test_statements_ask_once_per_look_of_spark(strict: Catalog, server: NamespaceServer) -> None:
    strict.sql("CREATE TABLE @.t AS SELECT 1 AS id")
    for statement, looks in (
        ("SELECT * FROM @.t", 2),
        ("INSERT INTO @.t VALUES (2)", 1),
        ("DELETE FROM @.t WHERE id = 1", 1),
    ):
        server.requests.clear()
        strict.sql(statement)
        assert server.requests == ["table/describe"] * looks


def test_statements_that_create_tables_list_none(strict: Catalog, server: NamespaceServer, path: str) -> None:
    server.requests.clear()
    strict.sql("CREATE TABLE @.t AS SELECT 1 AS id")
    strict.sql("CREATE OR REPLACE TABLE @.t (id INT)")
    strict.sql(f"CREATE TABLE {strict.name}.`{path}` (id INT)")
    strict.sql(f"CREATE TABLE {strict.name}.u (id INT)")
    assert not [request for request in server.requests if "list" in request]


def test_a_name_that_another_program_gives_up(
    strict: Catalog, server: NamespaceServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def describe(parts: tuple[str, ...], body: dict[str, Any]) -> tuple[int, Any]:
        if Path(server.tables.get(parts, ""), "_versions").exists():
            server.tables.pop(parts)
        return NamespaceServer._table_describe(server, parts, body)

    monkeypatch.setattr(server, "_table_describe", describe)
    for number, statement in enumerate(["CREATE TABLE @.t AS SELECT 1 AS id", "CREATE TABLE @.t (id INT)"]):
        RestNamespace(server.uri, headers=server.headers).declare(["db", "t"], str(strict.root / str(number)))
        with pytest.raises(PySparkException, match=rf"are at .*{number}, but the server no longer has it there"):
            strict.sql(statement)


def test_a_table_that_appears_during_a_statement(
    strict: Catalog, server: NamespaceServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden = 0

    def describe(parts: tuple[str, ...], body: dict[str, Any]) -> tuple[int, Any]:
        nonlocal hidden
        hidden -= 1
        return (404, {"code": 4}) if hidden >= 0 else NamespaceServer._table_describe(server, parts, body)

    monkeypatch.setattr(server, "_table_describe", describe)
    strict.sql("CREATE TABLE @.t AS SELECT 0 AS id")
    for number in range(1, 4):
        hidden = number
        strict.sql(f"CREATE OR REPLACE TABLE @.t AS SELECT {number} AS id")
        assert strict.sql("SELECT * FROM @.t") == [(number,)]
    hidden = 1
    strict.refuses("SELECT * FROM @.t", "cannot be found")
    hidden = 2
    strict.sql("CREATE OR REPLACE TABLE @.t (name STRING)")
    assert strict.sql("SELECT name FROM @.t") == []


def test_namespaces_of_glue(glue: Catalog, tmp_path: Path) -> None:
    glue.sql(
        f"CREATE NAMESPACE {glue.name}.Placed COMMENT 'mine' LOCATION '{tmp_path}/placed' WITH DBPROPERTIES ('a' = 'b')"
    )
    assert {("db",), ("placed",)} <= {*glue.sql(f"SHOW NAMESPACES IN {glue.name}")}
    described = dict(glue.sql(f"DESCRIBE NAMESPACE EXTENDED {glue.name}.placed"))
    assert (described["Comment"], described["Location"]) == ("mine", f"file:{tmp_path}/placed")
    assert described["Properties"] == "((a,b))"
    glue.sql(f"CREATE TABLE {glue.name}.placed.Birds AS SELECT 1 AS id")
    assert glue.sql(f"SELECT * FROM {glue.name}.placed.birds") == [(1,)]
    assert (tmp_path / "placed" / "birds.lance").is_dir()
    glue.refuses("CREATE NAMESPACE @", "already exists")
    glue.refuses("CREATE NAMESPACE @.inner", "names of one part")
    glue.refuses(f"CREATE TABLE {glue.name}.t (id INT)", "names of tables of Glue have two parts")
    glue.refuses(f"DROP NAMESPACE {glue.name}.placed", "CASCADE")
    glue.sql(f"DROP NAMESPACE {glue.name}.placed CASCADE")
    assert (tmp_path / "placed" / "birds.lance").is_dir()


def test_tables_of_glue(glue: Catalog, s3_server: ObjectServer, planner: SparkSession) -> None:
    glue.sql("CREATE TABLE @.t AS SELECT 1 AS id")
    glue.sql("ALTER TABLE @.t RENAME TO db.u")
    assert glue.sql("SELECT * FROM @.u") == [(1,)]
    glue.refuses("SELECT * FROM @.t", "cannot be found")
    glue.sql("DROP TABLE @.u")
    glue.refuses("CREATE OR REPLACE TABLE @.t AS SELECT 2 AS id", "where another table is, perhaps a dropped one")
    glue.sql(f"DROP TABLE {glue.name}.`{glue.path('t')}` PURGE")
    glue.sql("CREATE TABLE @.t AS SELECT 2 AS id")
    glue.sql("DROP TABLE @.t PURGE")
    assert not Path(glue.path("t")).exists()
    boto3.client("glue", **_ACCESS, endpoint_url=s3_server.endpoint).create_table(
        DatabaseName="db", TableInput={"Name": "ice", "Parameters": {"table_type": "ICEBERG"}}
    )
    assert glue.sql("SHOW TABLES IN @") == []
    for statement in ("SELECT * FROM @.ice", "CREATE TABLE @.ice (id INT)", "DROP TABLE IF EXISTS @.ice"):
        glue.refuses(statement, "db.ice is no Lance table: Glue has an entry of this name of type ICEBERG")
    glue.refuses("DROP NAMESPACE @ CASCADE", "entries that are no Lance tables, such as 'ice'")
    boto3.client("glue", **_ACCESS, endpoint_url=s3_server.endpoint).delete_table(DatabaseName="db", Name="ice")


def test_namespaces_of_hive(hive: Catalog, hive_metastore: str, tmp_path: Path) -> None:
    hive.sql(
        f"CREATE NAMESPACE {hive.name}.Placed COMMENT 'mine' LOCATION '{tmp_path}/placed' WITH DBPROPERTIES ('a' = 'b')"
    )
    assert {("db",), ("default",), ("placed",)} <= {*hive.sql(f"SHOW NAMESPACES IN {hive.name}")}
    described = dict(hive.sql(f"DESCRIBE NAMESPACE EXTENDED {hive.name}.placed"))
    assert (described["Comment"], described["Location"]) == ("mine", f"file:{tmp_path}/placed")
    assert described["Properties"] == "((a,b))"
    hive.sql(f"CREATE TABLE {hive.name}.placed.Birds AS SELECT 1 AS id")
    assert HiveNamespace(hive_metastore).find(["placed", "birds"]).uri == f"{tmp_path}/placed/birds.lance"
    assert hive.sql(f"SELECT * FROM {hive.name}.placed.birds") == [(1,)]
    hive.sql(f"ALTER TABLE {hive.name}.placed.birds RENAME TO db.bees")
    assert hive.sql("SELECT * FROM @.bees") == [(1,)]
    hive.refuses("CREATE NAMESPACE @", "already exists")
    hive.refuses("CREATE NAMESPACE @.inner", "names of one part")
    hive.refuses(f"CREATE TABLE {hive.name}.t (id INT)", "names of tables of the Hive metastore have two parts")
    hive.refuses("DROP NAMESPACE @", "CASCADE")
    hive.sql(f"DROP NAMESPACE {hive.name}.placed")
    hive.sql("DROP TABLE @.bees PURGE")
    assert not (tmp_path / "placed" / "birds.lance").exists()


def test_a_table_that_hive_can_read_is_none_of_lance(hive: Catalog, hive_metastore: str, tmp_path: Path) -> None:
    hive.sql("CREATE TABLE @.t AS SELECT 1 AS id")
    keeper = hive_keeper(hive_metastore, str(tmp_path))
    keeper.add("db", "csv", f"{tmp_path}/csv", {"EXTERNAL": "TRUE"})
    assert hive.sql("SHOW TABLES IN @") == [("db", "t", False)]
    for statement in ("SELECT * FROM @.csv", "DROP TABLE @.csv", "CREATE TABLE @.csv (id INT)"):
        hive.refuses(statement, "db.csv is no Lance table: the Hive metastore has an entry of this name")
    hive.refuses("DROP NAMESPACE @ CASCADE", "entries that are no Lance tables, such as 'csv'")
    keeper.drop("db", "csv")


def test_tables_of_glue_on_s3(planner: SparkSession, s3_server: ObjectServer, tmp_path: Path) -> None:
    storage = {f"storage.{name}": value for name, value in s3_server.options.items()}
    own = {"impl": "glue", "endpoint": s3_server.endpoint, "root": s3_server.new_root(), "region": "us-east-1"}
    secrets = {"access_key_id": "key", "secret_access_key": "gl4e"}
    with catalog_of(planner, tmp_path, {**own, **storage, **secrets}) as catalog:
        catalog.sql("CREATE TABLE @.t AS SELECT id, id % 7 AS s FROM range(1000)")
        catalog.sql("UPDATE @.t SET s = 100 WHERE id = 5")
        assert catalog.sql("SELECT sum(s) FROM @.t WHERE id < 10") == [(0 + 1 + 2 + 3 + 4 + 100 + 6 + 0 + 1 + 2,)]
        assert LanceTable.forName(planner, f"{catalog.name}.db.t").toDF().count() == 1000
        plans = str(catalog.sql("EXPLAIN EXTENDED SELECT sum(s) FROM @.t WHERE id < 10"))
        assert "gl4e" not in plans
        catalog.sql("DROP TABLE @.t")
        catalog.refuses(
            "CREATE TABLE @.t (id INT)", "where another table is, perhaps a dropped one; nothing was changed"
        )
        catalog.sql("DROP NAMESPACE @ CASCADE")


def test_streams(catalog: Catalog, planner: SparkSession, tmp_path: Path) -> None:
    catalog.sql("CREATE TABLE @.source AS SELECT 1 AS id")
    query = (
        planner.readStream.table(f"{catalog.name}.db.source")
        .writeStream.format("lance")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .toTable(f"{catalog.name}.db.target")
    )
    query.awaitTermination()
    assert catalog.sql("SELECT * FROM @.target") == [(1,)]


def test_a_table_by_its_path(catalog: Catalog, path: str) -> None:
    catalog.sql(f"CREATE TABLE {catalog.name}.`{path}` AS SELECT 1 AS id")
    assert catalog.sql(f"SELECT * FROM {catalog.name}.`{path}`") == [(1,)]
    catalog.sql(f"DROP TABLE {catalog.name}.`{path}` PURGE")
    assert not Path(path).exists()


def test_a_declared_table_is_written_where_it_is(strict: Catalog, server: NamespaceServer, tmp_path: Path) -> None:
    RestNamespace(server.uri, headers=server.headers).declare(["db", "t"], str(tmp_path / "declared"))
    strict.refuses("SELECT * FROM @.t", "cannot be found")
    strict.refuses(
        f"CREATE TABLE @.t (id INT) LOCATION '{tmp_path}/another'", "the table db.t is at .*declared already"
    )
    strict.refuses("CREATE TABLE @.t AS SELECT raise_error('no') AS id", "no")
    assert server.tables == {("db", "t"): str(tmp_path / "declared")}  # others have declared it
    strict.sql("CREATE TABLE @.t AS SELECT 1 AS id")
    assert lance.dataset(tmp_path / "declared").count_rows() == 1
    strict.sql(f"CREATE TABLE @.u (id INT) LOCATION '{tmp_path}/placed'")
    assert server.tables["db", "u"] == str(tmp_path / "placed")


def test_names_change(strict: Catalog, server: NamespaceServer) -> None:
    strict.sql("CREATE TABLE @.t AS SELECT 1 AS id")
    strict.sql(f"CREATE NAMESPACE {strict.name}.other")
    strict.sql("ALTER TABLE @.t RENAME TO other.u")
    assert strict.sql(f"SELECT * FROM {strict.name}.other.u") == [(1,)]
    strict.refuses("SELECT * FROM @.t", "cannot be found")
    strict.sql(f"DROP NAMESPACE {strict.name}.other CASCADE")
    assert server.tables == {}


def test_a_parent_namespace(planner: SparkSession, server: NamespaceServer, tmp_path: Path) -> None:
    namespace = RestNamespace(server.uri, headers=server.headers)
    for parts in (["x"], ["x", "y"]):
        namespace.create(parts)
    options = {
        "impl": "rest",
        "uri": server.uri,
        "headers.x-api-key": "s3cret",
        "parent": "x/y",
        "parent_delimiter": "/",
    }
    with catalog_of(planner, tmp_path, options) as catalog:
        catalog.sql("CREATE TABLE @.t AS SELECT 1 AS id")
        assert [*server.tables] == [("x", "y", "db", "t")]
        assert catalog.sql(f"SHOW NAMESPACES IN {catalog.name}") == [("db",)]


def test_lent_credentials_reach_the_tasks(
    planner: SparkSession, strict: Catalog, server: NamespaceServer, s3_server: ObjectServer
) -> None:
    server.root = s3_server.new_root()
    server.options = {**s3_server.options, "aws_session_token": "l3nt"}
    server.lent_seconds = 3600
    strict.sql("CREATE TABLE @.t AS SELECT id, id % 7 AS s FROM range(1000)")
    strict.sql("UPDATE @.t SET s = 100 WHERE id = 5")
    assert strict.sql("SELECT sum(s) FROM @.t WHERE id < 10") == [(0 + 1 + 2 + 3 + 4 + 100 + 6 + 0 + 1 + 2,)]
    table = LanceTable.forName(planner, f"{strict.name}.db.t")
    assert "l3nt" not in repr(table)
    assert table.toDF().count() == 1000
    strict.sql(f"CALL {strict.name}.system.create_branch('db.t', 'b')")
    strict.sql(f"USE {strict.name}.db")
    LanceTable.forName(planner, "t.branch_b").delete("id > 4")
    assert planner.table("t.branch_b").count() == 5
    made = LanceTable.create(planner).tableName("u").addColumn("id", "INT").execute()
    assert made.toDF().collect() == []
    plans = str(strict.sql("EXPLAIN EXTENDED SELECT sum(s) FROM @.t WHERE id < 10"))
    assert "l3nt" not in plans
    assert "s3cret" not in plans


def test_wrong_options(planner: SparkSession, server: NamespaceServer, tmp_path: Path) -> None:
    def refused(options: dict[str, str], message: str) -> None:
        with (
            pytest.raises(PySparkException, match=message),
            catalog_of(planner, tmp_path, options),
        ):
            pass

    refused(
        {"impl": "hive3"},
        "impl is hive3; a catalog of Lance tables is one of dir, a directory, or of rest, glue, hive2",
    )
    refused({"impl": "rest"}, "uri is missing: it is the address of the server")
    refused({"impl": "rest", "uri": server.uri, "root": "/x"}, "root is set, but a catalog on a server has uri, delim")
    refused({"impl": "glue", "headers.a": "/x"}, "headers.a is set, but a catalog on AWS Glue has region, endpoint")
    refused({"impl": "hive2"}, "uri is missing: it is the address of the metastore, thrift://host:9083")
    refused({"impl": "hive2", "uri": "host:1"}, "the address of the Hive metastore is 'host:1'")
    refused({"impl": "glue", "max_retries": "many"}, "max_retries is 'many'; a whole number is needed")
    refused({"uri": server.uri}, "uri is set, but a catalog of Lance tables has the option root")
    refused({"impl": "rest", "uri": server.uri}, "answers 401, 'who are you'; give the headers that it asks for")
    refused({"impl": "rest", "uri": "nowhere"}, "its address begins with http")
