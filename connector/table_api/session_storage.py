"""Options of the storage that a session has: in the configurations of Hadoop and of catalogs, and for its own tables.

Where the planner reads a table it adds them itself. `LanceTable` opens tables in this process, and adds them here.
Through Spark Connect there are those of catalogs only.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from connector.active_session import is_remote
from connector.options.hadoop import SETTINGS, translate
from connector.options.storage import STORAGE_PREFIX, is_storage_option, read_storage, write_storage
from connector.types.column_names import quoted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_S3 = re.compile(r"s3[an]?://([^/]+)", re.IGNORECASE)
_HADOOP_PREFIX = "fs.s3a."
_CATALOGS = "spark.sql.catalog."
_SECRET_ENDS = (".key", ".token")
_DEFAULTS = "-default.xml"
_SESSION_CATALOG = "spark_catalog"


def with_hadoop(spark: SparkSession, path: str, options: Mapping[str, str]) -> dict[str, str]:
    """Return options of a table, with those that the session's Hadoop configuration has for its bucket.

    Parameters
    ----------
    spark : SparkSession
    path : str
    options : mapping of str to str
        Of reads and writes. They come first.
    """
    bucket = _S3.match(path)
    if bucket is None or is_remote(spark):
        return dict(options)
    settings = _read_settings(spark, bucket[1])
    if not settings:
        return dict(options)
    others = {name: value for name, value in options.items() if not is_storage_option(name)}
    return {**others, **write_storage(translate(settings, read_storage(options)))}


def options_of_name(spark: SparkSession, parts: Sequence[str]) -> dict[str, str]:
    """Return the options of the storage that a table has by its name.

    Parameters
    ----------
    spark : SparkSession
    parts : sequence of str
        The parts of the name, the catalog first if there is one.
    """
    catalog = catalog_of(spark, parts)
    if catalog == _SESSION_CATALOG:
        return {} if is_remote(spark) else _of_session_table(spark, parts)
    return {name: value for name, value in settings_of(spark, catalog).items() if name.startswith(STORAGE_PREFIX)}


def settings_of(spark: SparkSession, catalog: str) -> dict[str, str]:
    """Return the settings of a catalog, by their names after its own."""
    start = f"{_CATALOGS}{catalog}."
    return {name.removeprefix(start): value for name, value in spark.conf.getAll.items() if name.startswith(start)}


def catalog_of(spark: SparkSession, parts: Sequence[str]) -> str:
    """Return the catalog of a name."""
    return parts[0] if spark.conf.get(f"{_CATALOGS}{parts[0]}", "") else spark.catalog.currentCatalog()


def _of_session_table(spark: SparkSession, parts: Sequence[str]) -> dict[str, str]:
    session: Any = spark._jsparkSession
    state = session.sessionState()
    table = state.sqlParser().parseTableIdentifier(quoted(*parts[parts[0] == _SESSION_CATALOG :]))
    if not state.catalog().tableExists(table):
        return {}
    found = state.catalog().getTableMetadata(table).storage().properties()
    converters: Any = spark.sparkContext._jvm
    properties = dict(converters.scala.jdk.javaapi.CollectionConverters.asJava(found))
    return {name: value for name, value in properties.items() if is_storage_option(name)}


def _read_settings(spark: SparkSession, bucket: str) -> dict[str, str]:
    session: Any = spark._jsparkSession
    hadoop = session.sessionState().newHadoopConf()
    found = {}
    for name in SETTINGS:
        value = _setting(hadoop, f"{_HADOOP_PREFIX}bucket.{bucket}.{name}")
        if value is None:
            value = _setting(hadoop, _HADOOP_PREFIX + name)
        if value is not None:
            found[name] = value
    return found


def _setting(hadoop: Any, name: str) -> str | None:
    """Return a setting, or an entry of Hadoop's credential stores; None for what nobody has set."""
    sources = hadoop.getPropertySources(name)
    if sources and not sources[-1].endswith(_DEFAULTS):
        value: str | None = hadoop.getTrimmed(name)  # Sources of what was unset stay.
        return value
    if not name.endswith(_SECRET_ENDS):
        return None
    secret = hadoop.getPassword(name)
    return None if secret is None else "".join(secret)
