"""Streams whose offsets and tasks the driver's own Python process finds, as the planner bridge asks for them.

Spark starts a Python process per query otherwise. It costs two seconds of CPU time: it loads Spark's modules from an
archive without compiled code, and then ours. A reader is kept from the call `open` to `stop`. Offsets are JSON texts.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from connector.read.pickling import pickle_reader, pickled

_readers: dict[str, Any] = {}
"""Readers of the streams that run, by their ids."""


def answer_stream(source: DataSource, question: Mapping[str, Any], schema: StructType) -> dict[str, Any]:
    """Answer a question about a stream.

    Parameters
    ----------
    source : DataSource
        Made from the options of the stream.
    question : mapping of str to object
        The `id` of the stream, the `call`, which is a key of `_CALLS` or `open`, and its arguments.
    schema : StructType
        The columns of the stream.

    Raises
    ------
    LanceError
        If the stream cannot be read.
    """
    if question["call"] == "open":
        reader = source.streamReader(schema)
        function, _ = pickle_reader(reader, schema)
        _readers[question["id"]] = reader
        return {"function": function, "limit": _default_limit(reader)}
    if question["call"] == "stop":
        _readers.pop(question["id"], None)
        return {}
    return _CALLS[question["call"]](_readers[question["id"]], question)


def needed_version(uri: str) -> int | None:
    """Return the first version of a table that a stream of this process still needs; None if there is no such stream.

    Parameters
    ----------
    uri : str
        The location of the table, or of its branch.
    """
    found = [reader.needed_version for reader in list(_readers.values()) if reader.uri == uri]
    return min((version for version in found if version is not None), default=None)


def _default_limit(reader: Any) -> dict[str, int | None] | None:
    """Return the limits of a batch; None if this version of Spark lets no source limit batches."""
    if not hasattr(reader, "getDefaultReadLimit"):
        return None
    limit = dataclasses.asdict(reader.getDefaultReadLimit())
    return {"files": limit.get("max_files"), "bytes": limit.get("max_bytes")}


def _initial(reader: Any, _: Mapping[str, Any]) -> dict[str, Any]:
    return {"offset": json.dumps(reader.initialOffset())}


def _latest(reader: Any, question: Mapping[str, Any]) -> dict[str, Any]:
    if "start" not in question:
        return {"offset": json.dumps(reader.latestOffset())}
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes, ReadMaxFiles

    limit: Any = ReadAllAvailable()
    if "files" in question:
        limit = ReadMaxFiles(question["files"])
    elif "bytes" in question:
        limit = ReadMaxBytes(question["bytes"])
    return {"offset": json.dumps(reader.latestOffset(json.loads(question["start"]), limit))}


def _report(reader: Any, _: Mapping[str, Any]) -> dict[str, Any]:
    return {"offset": json.dumps(reader.reportLatestOffset())}


def _plan(reader: Any, question: Mapping[str, Any]) -> dict[str, Any]:
    partitions = reader.partitions(json.loads(question["start"]), json.loads(question["end"]))
    return {"partitions": [pickled(partition) for partition in partitions]}


def _commit(reader: Any, question: Mapping[str, Any]) -> dict[str, Any]:
    reader.commit(json.loads(question["end"]))
    return {}


def _prepare(reader: Any, _: Mapping[str, Any]) -> dict[str, Any]:
    reader.prepareForTriggerAvailableNow()
    return {}


_CALLS: dict[str, Callable[[Any, Mapping[str, Any]], dict[str, Any]]] = {
    "initial": _initial,
    "latest": _latest,
    "report": _report,
    "plan": _plan,
    "commit": _commit,
    "prepare": _prepare,
}
