"""Getting the planner bridge into the driver."""

from __future__ import annotations

import logging
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from connector.planner.jars import class_names, find_jar, keep_jar, key_of, temporary_jar

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.datasource import DataSource

    from connector.planner.answers import Source

SETTING = "spark.lance.planner.enabled"
_CATALOG = "spark.sql.catalog.lance"
_SOURCES = tuple(Path(__file__).parents[1] / room / "java" for room in ("planner", "catalog"))
_BY_VERSION = (
    (
        "org.apache.spark.sql.connector.catalog.SupportsSchemaEvolution",
        {True: _SOURCES[1] / "since_4_2", False: _SOURCES[1] / "before_4_2"},
    ),
    (
        "org.apache.spark.sql.connector.read.SampleMethod",
        {True: _SOURCES[0] / "sampling_methods", False: _SOURCES[0] / "sampling_rows"},
    ),
)
"""Sources of classes that differ between versions of Spark, by whether it has a class."""
_PACKAGE = "lance"
_EXTENSIONS = ("Statements", "Functions", "TimeTravel")
_JAVA_VERSION = 8

_log = logging.getLogger(__name__)


def install(spark: SparkSession, source: Source) -> bool:
    """Install the bridge in Spark's planner, once per driver; further calls have no effect.

    A failure is logged, and reads run without pushdown, with the same rows.

    Parameters
    ----------
    spark : SparkSession
    source : callable
        Creates the data source from options; see `connector.planner.answers`.

    Returns
    -------
    bool
        Whether the bridge is installed.
    """
    try:
        if spark.conf.get(SETTING, "true") != "true":
            return False
        return _install(spark, source)
    except Exception as error:  # Errors of py4j, Java's reflection or the compiler: reading works without the bridge.
        reason = str(error).strip().partition("\n")[0]
        _log.warning("Spark plans Lance tables without pushdown: %s: %s", type(error).__name__, reason)
        return False


def _install(spark: SparkSession, source: Source) -> bool:
    context: Any = spark.sparkContext
    gateway, jvm = context._gateway, context._jvm
    loader = jvm.Thread.currentThread().getContextClassLoader()
    if not _is_there(loader):
        _load(jvm, gateway, loader)
    _answer_questions(gateway, loader, source)
    _ship(context, loader)
    _name_catalog(spark)
    _extend_sql(gateway, jvm, loader)
    return True


def name_source(spark: SparkSession, source: type[DataSource] | None) -> None:
    """Tell the bridge the data source as workers load it, or that Spark has to look for it.

    Spark looks for all data sources there are, in a process that imports each package that may have some. A failure is
    logged, and Spark looks.

    Parameters
    ----------
    spark : SparkSession
        A session in which the bridge is installed.
    source : type of DataSource, optional
        A class that all workers can import.
    """
    context: Any = spark.sparkContext
    try:
        known = None if source is None else _as_workers_load_it(context._jvm, source)
        _field(context._jvm.Thread.currentThread().getContextClassLoader(), "known").set(None, known)
    except Exception as error:  # Errors of py4j or Java's reflection.
        _log.info("Spark looks for the data source of Lance tables: %s", error)


def _as_workers_load_it(jvm: Any, source: type[DataSource]) -> Any:
    from pyspark.serializers import CPickleSerializer

    serializer: Any = CPickleSerializer()
    utils = getattr(getattr(jvm.org.apache.spark.api.python, "PythonUtils$"), "MODULE$")
    function = utils.createPythonFunction(serializer.dumps(source))
    return jvm.org.apache.spark.sql.execution.datasources.v2.python.UserDefinedPythonDataSource(function)


def _sources(loader: Any) -> list[Path]:
    """Return the sources that this version of Spark can compile."""
    folders = [*_SOURCES, *(choice[_has_class(loader, name)] for name, choice in _BY_VERSION)]
    return sorted(source for folder in folders for source in folder.glob("*.java"))


def _has_class(loader: Any, name: str) -> bool:
    from py4j.protocol import Py4JJavaError

    try:
        loader.loadClass(name)
    except Py4JJavaError:  # ClassNotFoundException
        return False
    return True


def _is_there(loader: Any) -> bool:
    if not _has_class(loader, f"{_PACKAGE}.DefaultSource"):
        return False
    loader.loadClass(f"{_PACKAGE}.Python")  # fails if the class is not this library's
    return True


def _load(jvm: Any, gateway: Any, loader: Any) -> None:
    """Load all classes from the jar that a driver of this machine kept, or from one of classes compiled now."""
    sources = _sources(loader)
    build = getattr(getattr(jvm.org.apache.spark, "package$"), "MODULE$")
    key = key_of(sources, build.SPARK_VERSION(), build.SPARK_REVISION(), jvm.System.getProperty("java.version"))
    jar = find_jar(key) or _compile(jvm, gateway, loader, sources, key)
    loader.addURL(jvm.java.io.File(str(jar)).toURI().toURL())
    for name in class_names(jar):
        loader.loadClass(name)
    _field(loader, "jar").set(None, str(jar))


def _compile(jvm: Any, gateway: Any, loader: Any, sources: list[Path], key: str) -> Path:
    with tempfile.TemporaryDirectory(prefix="lance-planner-") as directory:
        files = gateway.new_array(jvm.java.io.File, len(sources))
        for index, source in enumerate(sources):
            files[index] = jvm.java.io.File(str(source))
        compiler = jvm.org.codehaus.janino.Compiler()
        compiler.setIClassLoader(jvm.org.codehaus.janino.ClassLoaderIClassLoader(loader))
        compiler.setSourceVersion(_JAVA_VERSION)
        compiler.setTargetVersion(_JAVA_VERSION)
        compiler.setDestinationDirectory(jvm.java.io.File(directory), False)
        compiler.compile(files)
        if kept := keep_jar(key, Path(directory)):
            return kept
        jar = temporary_jar(Path(directory))
    jvm.java.io.File(str(jar)).deleteOnExit()
    return jar


def _name_catalog(spark: SparkSession) -> None:
    """Give this session, and later ones of the same driver, a catalog, unless one of its name exists."""
    if spark.conf.get(_CATALOG, None) is None:
        spark.conf.set(_CATALOG, f"{_PACKAGE}.Catalog")
        context: Any = spark.sparkContext
        context._jsc.sc().conf().set(_CATALOG, f"{_PACKAGE}.Catalog")


def _extend_sql(gateway: Any, jvm: Any, loader: Any) -> None:
    """Give the active session the statements and the functions that Spark lacks."""
    for name in _EXTENSIONS:
        method = loader.loadClass(f"{_PACKAGE}.{name}").getDeclaredMethod("install", gateway.new_array(jvm.Class, 0))
        method.setAccessible(True)
        method.invoke(None, gateway.new_array(jvm.Object, 0))


def _ship(context: Any, loader: Any) -> None:
    """Give the classes to the executors of a cluster, so that they can read columns."""
    scala_context, jar = context._jsc.sc(), _field(loader, "jar").get(None)
    if jar is None or scala_context.isLocal() or Path(jar).name in scala_context.listJars().mkString():
        return
    try:
        scala_context.addJar(jar)
    except Exception as error:  # Errors of the cluster's distribution of files: rows are read without the classes.
        _log.warning("executors read Lance tables row by row: %s", str(error).strip().partition("\n")[0])


def _field(loader: Any, name: str) -> Any:
    return loader.loadClass(f"{_PACKAGE}.Python").getField(name)


def _answer_questions(gateway: Any, loader: Any, source: Source) -> None:
    """Let the driver's Python process answer the questions of the classes."""
    from pyspark.java_gateway import ensure_callback_server_started

    from connector.planner.answers import Answers

    ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
    _field(loader, "callback").set(None, Answers(source))
