"""Sessions that know an object store, and all that Spark writes down of their queries."""

from __future__ import annotations

import contextlib
import datetime
import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from tests.servers import ObjectServer

SECRET = "s3cr3t-of-the-tests"
REDACTED = "*********(redacted)"
_NUMBERS = itertools.count(1)


def short_lived_keys() -> dict[str, object]:
    """Return keys whose token names the process and the call; each request asks for new ones."""
    end = datetime.datetime.now(datetime.UTC)
    token = f"{os.getpid()}-{next(_NUMBERS)}"
    return {"access_key_id": "AKID", "secret_access_key": SECRET, "token": token, "expires_at": end}


@contextlib.contextmanager
def hadoop_settings(spark: SparkSession, server: ObjectServer) -> Iterator[None]:
    """Let the Hadoop configuration of a session know a server of S3."""
    settings = {
        "fs.s3a.access.key": "AKIDHADOOP",
        "fs.s3a.secret.key": SECRET,
        "fs.s3a.endpoint.region": "us-east-1",
        "fs.s3a.bucket.tables.endpoint": server.endpoint,
        "fs.s3a.path.style.access": "true",
    }
    configuration = spark.sparkContext._jsc.hadoopConfiguration()  # type: ignore[attr-defined]
    for name, value in settings.items():
        configuration.set(name, value)
    try:
        yield
    finally:
        for name in settings:
            configuration.unset(name)


@contextlib.contextmanager
def event_log(spark: SparkSession, directory: Path, **settings: str) -> Iterator[Callable[[], str]]:
    """Log events as Spark does, with settings that the session was built with; yields what reads the log."""
    context: Any = spark.sparkContext._jsc.sc()  # type: ignore[attr-defined]
    jvm: Any = spark.sparkContext._jvm
    configuration = context.getConf().set("spark.eventLog.compress", "false")
    for name, value in settings.items():
        configuration.set(name, value)
    listener = jvm.org.apache.spark.scheduler.EventLoggingListener(
        directory.name, jvm.scala.Option.empty(), jvm.java.net.URI(directory.as_uri()), configuration
    )
    listener.start()
    context.addSparkListener(listener)

    def read() -> str:
        context.listenerBus().waitUntilEmpty()
        return "\n".join(file.read_text() for file in sorted(directory.rglob("*")) if file.is_file())

    try:
        yield read
    finally:
        context.removeSparkListener(listener)
        listener.stop()
