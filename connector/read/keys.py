"""Keys of small tables that the driver reads while it plans a scan, which skips the rows without one of them.

The planner bridge follows a join to the scans of its keys, and describes those that filter a scan by a JSON list of

    {"column": …, "key": …, "table": …, "trace": …, "options": {…}, "schema": …}

`column` is the filtered column, `key` the column of the other scan that has the keys. The options and the schema are
those by which the data source reads that column; the options may have keys of further scans. The trace tells a table
from another that was made in its place. A scan may skip fewer rows than it could: the join drops the others.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql.types import StructType

from connector.lru_cache import LruCache
from connector.options.snapshot import known_commit
from connector.read.partition import ScanPartition
from connector.types.schemas import to_exchange_schema
from lance_format import LanceError
from lance_format.expressions import Expression, nodes

OpenReader = Callable[[dict[str, str], StructType], Any]
"""Plans a read: takes the options of a data source and the columns, and returns its reader."""

_MAX_KEYS = 1 << 19
"""More keys are not used: as `RuntimeFilters.MAX_KEYS`."""
_KNOWN: LruCache[str, pa.Array | None] = LruCache(32 * 1024 * 1024)
"""The keys that were read last: a query filters several scans by the same keys."""


def parse_keys(text: str, open_reader: OpenReader) -> Iterator[Expression]:
    """Read keys, and yield for each column the predicate that its value is one of them.

    Parameters
    ----------
    text : str
        See above.
    open_reader : callable
    """
    for asked in json.loads(text):
        keys = _find(asked, open_reader)
        if keys is not None:
            yield nodes.In(nodes.Column((asked["column"],)), keys)


def _find(asked: dict[str, Any], open_reader: OpenReader) -> pa.Array | None:
    """Return keys, or None if they are too many, or cannot be read: the query will say why."""
    name = json.dumps([asked[part] for part in ("trace", "options", "schema")])
    known = _KNOWN.get(name)
    if known is not None:
        return known[0]
    try:
        keys = _read(asked, open_reader)
    except LanceError:
        return None
    if known_commit(asked["trace"] or "") is not None:
        _KNOWN.put(name, keys, len(name) + (0 if keys is None else keys.nbytes))
    return keys


def _read(asked: dict[str, Any], open_reader: OpenReader) -> pa.Array | None:
    """Return the distinct values of a column; None if they are too many."""
    schema = StructType.fromJson(json.loads(asked["schema"]))
    reader = open_reader({name.lower(): value for name, value in asked["options"].items()}, schema)
    parts = [batch.column(0) for task in reader.tasks for batch in reader.read(ScanPartition(task))]
    distinct = pa.chunked_array(parts, to_exchange_schema(schema).field(0).type).unique().drop_null()
    return distinct if len(distinct) <= _MAX_KEYS else None
