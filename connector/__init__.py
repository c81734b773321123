"""Lance tables in Spark: the data source `lance`. `pyspark_lance` is the package to import; this one is behind it."""

from __future__ import annotations

from connector.sessions import follow_sessions, register
from connector.source.data_source import LanceDataSource

__all__ = ["LanceDataSource", "follow_sessions", "register"]
