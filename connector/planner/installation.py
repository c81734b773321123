"""Getting the planner bridge into the driver."""

from __future__ import annotations

import logging
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTING = "spark.lance.planner.enabled"
_SOURCES = Path(__file__).with_name("java")
_PACKAGE = "lance"
_JAVA_VERSION = 8

_log = logging.getLogger(__name__)


def install(spark: SparkSession) -> bool:
    """Make Spark's planner ask tables for what they can do; once a driver, however often this is called.

    Whatever stands in the way is logged, and reads go the plain way, on which they give the same rows.

    Parameters
    ----------
    spark : SparkSession

    Returns
    -------
    bool
        Whether it is there.
    """
    try:
        if spark.conf.get(SETTING, "true") != "true":
            return False
        return _install(spark)
    except Exception as error:  # of py4j, of Java's reflection, of the compiler: none is a reason not to read
        reason = str(error).strip().partition("\n")[0]
        _log.warning("Spark plans Lance tables without pushdown: %s: %s", type(error).__name__, reason)
        return False


def _install(spark: SparkSession) -> bool:
    context: Any = spark.sparkContext
    gateway, jvm = context._gateway, context._jvm
    loader = jvm.Thread.currentThread().getContextClassLoader()
    if not _is_there(loader):
        _load(jvm, gateway, loader)
    _answer_questions(gateway, loader)
    return True


def _is_there(loader: Any) -> bool:
    from py4j.protocol import Py4JJavaError

    try:
        loader.loadClass(f"{_PACKAGE}.DefaultSource")
    except Py4JJavaError:  # ClassNotFoundException
        return False
    loader.loadClass(f"{_PACKAGE}.Python")  # fails where the class is not ours
    return True


def _load(jvm: Any, gateway: Any, loader: Any) -> None:
    """Compile the classes into a directory, and have all of them loaded before that goes away."""
    directory = Path(tempfile.mkdtemp(prefix="lance-planner-"))
    try:
        sources = sorted(_SOURCES.glob("*.java"))
        files = gateway.new_array(jvm.java.io.File, len(sources))
        for index, source in enumerate(sources):
            files[index] = jvm.java.io.File(str(source))
        compiler = jvm.org.codehaus.janino.Compiler()
        compiler.setIClassLoader(jvm.org.codehaus.janino.ClassLoaderIClassLoader(loader))
        compiler.setSourceVersion(_JAVA_VERSION)
        compiler.setTargetVersion(_JAVA_VERSION)
        compiler.setDestinationDirectory(jvm.java.io.File(str(directory)), False)
        compiler.compile(files)
        loader.addURL(jvm.java.io.File(str(directory)).toURI().toURL())
        for file in directory.rglob("*.class"):
            loader.loadClass(".".join(file.relative_to(directory).with_suffix("").parts))
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _answer_questions(gateway: Any, loader: Any) -> None:
    """Let the driver's Python process answer what the classes ask."""
    from pyspark.java_gateway import ensure_callback_server_started

    from connector.planner.answers import Answers

    ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
    loader.loadClass(f"{_PACKAGE}.Python").getField("callback").set(None, Answers())
