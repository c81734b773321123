"""One session for all tests of this directory, and tables in temporary directories."""

from __future__ import annotations

import contextlib
import itertools
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lance
import lance.namespace
import lance_namespace
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t

from connector.planner import install
from connector.source.data_source import LanceDataSource

ROOT = Path(__file__).parents[2]
PREPARED = Path(__file__).parent / "prepared"
PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
PLANNER = "spark.lance.planner.enabled"
_NUMBERS = itertools.count()


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    # Some editable installs keep packages off sys.path, which is where Spark looks for data sources.
    path = [str(PREPARED), str(ROOT), os.environ.get("PYTHONPATH")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, path))
    session = (
        SparkSession.builder.master("local[2]")
        .appName("tests")
        .config("spark.driver.memory", "1g")
        .config("spark.log.level", "OFF")
        .config("spark.sql.session.timeZone", "America/New_York")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.timeType.enabled", "true")
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        .config("spark.lance.planner.enabled", "false")
        .config("spark.python.daemon.module", "connector.daemon")
        .config("spark.python.task.killTimeout", "100ms")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("connector.write.writer._KILL_SECONDS", 0.5)  # what suits the time to kill a task, above
        yield session
    session.stop()


@pytest.fixture(autouse=True)
def _drop_temporary_views() -> Iterator[None]:
    """Drop the temporary views that a test makes: they hide tables of the same name from the tests after it."""
    before = _temporary_views()
    yield
    for view in _temporary_views() - before:
        SparkSession._instantiatedSession.catalog.dropTempView(view.strip("`"))


def _temporary_views() -> set[str]:
    session: Any = SparkSession._instantiatedSession
    if session is None or session.sparkContext._jsc is None:
        return set()
    views = session._jsparkSession.sessionState().catalog().listLocalTempViews("*").mkString("\n")
    return set(views.split("\n")) if views else set()


@pytest.fixture(params=["off", "filters", "planner"], ids=["pushdown off", "pushdown on", "planner"])
def pushdown(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[str]:
    """Each way of Spark to plan reads."""
    if request.param == "planner":
        with planning(spark):
            yield request.param
        return
    spark.conf.set(PUSHDOWN, str(request.param == "filters").lower())
    yield request.param
    spark.conf.unset(PUSHDOWN)


@pytest.fixture(params=["no planner", "planner"])
def way(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[str]:
    """Without and with the planner bridge: for tests that have no predicate, which `pushdown` is for."""
    with planning(spark) if request.param == "planner" else contextlib.nullcontext():
        yield request.param


@pytest.fixture
def planner(spark: SparkSession) -> Iterator[SparkSession]:
    """Return a session with the planner bridge."""
    with planning(spark):
        yield spark


@contextlib.contextmanager
def planning(spark: SparkSession) -> Iterator[None]:
    """Let the planner bridge plan."""
    spark.conf.set(PLANNER, "true")
    assert install(spark, LanceDataSource)
    try:
        yield
    finally:
        spark.conf.set(PLANNER, "false")


@dataclass
class Catalog:
    """A catalog of its own, with a namespace `db`."""

    spark: SparkSession
    name: str
    root: Path

    def sql(self, text: str) -> list[Any]:
        """Run a statement; `@` stands for the namespace."""
        return [tuple(row) for row in self.spark.sql(text.replace("@", f"{self.name}.db")).collect()]

    def refuses(self, text: str, message: str) -> None:
        """Check that a statement is refused, with a message that a pattern matches, and leaves nothing."""
        before = files(str(self.root))
        with pytest.raises(PySparkException, match=f"(?s){message}"):
            self.sql(text)
        assert files(str(self.root)) == before

    def path(self, table: str) -> str:
        return str(self.root / "db" / f"{table}.lance")

    def pylance_tables(self) -> list[str]:
        listing = lance.namespace.DirectoryNamespace(root=str(self.root / "db"), manifest_enabled="false")
        return sorted(listing.list_tables(lance_namespace.ListTablesRequest(id=[])).tables)


@contextlib.contextmanager
def catalog_of(planner: SparkSession, root: Path, options: dict[str, str]) -> Iterator[Catalog]:
    """Yield a catalog of its own with some options, and with a namespace `db`."""
    name = f"catalog{next(_NUMBERS)}"
    settings = {"": "lance.Catalog", **{f".{option}": value for option, value in options.items()}}
    for option, value in settings.items():
        planner.conf.set(f"spark.sql.catalog.{name}{option}", value)
    made = Catalog(planner, name, root)
    try:
        made.sql("CREATE NAMESPACE @")
        yield made
    finally:
        planner.sql("USE spark_catalog.default")
        for option in settings:
            planner.conf.unset(f"spark.sql.catalog.{name}{option}")


@pytest.fixture
def catalog(planner: SparkSession, tmp_path: Path) -> Iterator[Catalog]:
    """Return a catalog of its own, with a namespace `db`."""
    with catalog_of(planner, tmp_path / "root", {"root": str(tmp_path / "root")}) as made:
        yield made


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Return the path of a table that does not exist yet."""
    return str(tmp_path / "table.lance")


def append(df: DataFrame, path: str, **options: object) -> None:
    df.write.format("lance").options(**options).mode("append").save(path)


def overwrite(df: DataFrame, path: str, **options: object) -> None:
    df.write.format("lance").options(**options).mode("overwrite").save(path)


def load(spark: SparkSession, path: str, **options: object) -> DataFrame:
    return spark.read.format("lance").options(**options).load(path)


def files(path: str) -> set[str]:
    """List the files under a directory, relative to it."""
    return {str(file.relative_to(path)) for file in Path(path).rglob("*") if file.is_file()}


def data_files(path: str) -> set[str]:
    return {name for name in files(path) if name.startswith("data/")}


def relaxed(spark_type: t.DataType) -> t.DataType:
    """Return a type with all parts nullable, as in Spark's file sources and new tables."""
    if isinstance(spark_type, t.StructType):
        return t.StructType([t.StructField(f.name, relaxed(f.dataType), True, f.metadata) for f in spark_type])
    if isinstance(spark_type, t.ArrayType):
        return t.ArrayType(relaxed(spark_type.elementType))
    if isinstance(spark_type, t.MapType):
        return t.MapType(relaxed(spark_type.keyType), relaxed(spark_type.valueType))
    return spark_type
