"""Lance tables in Spark: the data source `lance`. `pyspark_lance` is the package to import; this one is behind it.

Tasks that read import `connector.read` alone, so the names of this module are imported on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from connector.sessions import follow_sessions, register
    from connector.source.data_source import LanceDataSource

__all__ = ["LanceDataSource", "follow_sessions", "register"]

_MODULES = {
    "LanceDataSource": "connector.source.data_source",
    "follow_sessions": "connector.sessions",
    "register": "connector.sessions",
}


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(module), name)
    return value
