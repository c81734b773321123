"""Answers of Python to the planner bridge: about a table as a whole, and about one scan.

The same answers reach it in two ways. In the driver's own Python process `Answers` is called back through py4j, which
takes a millisecond. If that process is out of reach, Spark forks a worker, as it does to infer the schema of any Python
data source. `LanceDataSource.schema` then returns the answer as metadata of the schema's only field.
"""

from __future__ import annotations

import base64
import json
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructField, StructType

from connector.jobs.sizes import DEFAULT_BYTES
from connector.options.snapshot import commit_of
from connector.planner.known_answers import KnownAnswers
from connector.read.driver_rows import read_rows
from connector.read.pickling import pickle_reader
from connector.read.predicates import filterable_columns
from connector.types.arrays import convert
from connector.types.schemas import to_exchange_schema
from connector.write.pickling import pickle_writer
from lance_format import ColumnBounds, LanceDataset, LanceError, LanceField

Source = Callable[[dict[str, str]], Any]
"""Makes a data source from its options."""

COMMIT = "commit"
"""Key of answers that stay true: what tells the version that they are about from all others."""
_TEXT_BYTES = 20
"""Minimum assumed size of values of variable length; Spark assumes the same of strings."""
_MANY_FRAGMENTS = 256
"""Number of files from which tasks read a column faster than the driver opens all files."""
_BOUNDED = (
    pa.types.is_boolean,
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_decimal128,
    pa.types.is_string,
    pa.types.is_date32,
    pa.types.is_timestamp,
)
"""Types whose minimum and maximum the bridge can pass to Spark."""


def describe(dataset: LanceDataset, schema: StructType, *, exact: bool, blob_handling: str) -> dict[str, Any]:
    """Describe a version of a table for the planner.

    Parameters
    ----------
    dataset : LanceDataset
    schema : StructType
        The columns that Spark sees.
    exact : bool
        Whether all rows of the table are read, except for pushed filters and limits.
    blob_handling : str
    """
    visible = dataset.read_schema(blob_handling)
    described = dataset.read_schema("blobs_descriptions")
    plain = [field for field in visible if described.field(field.name).type == field.type]
    fragments = [fragment.metadata for fragment in dataset.get_fragments()]
    num_rows = [fragment.num_rows for fragment in fragments]
    rows = sum(count or 0 for count in num_rows)
    data_bytes = sum(fragment.known_bytes for fragment in fragments)
    return {
        "schema": schema.json(),
        "snapshot": json.dumps([dataset.uri, dataset.version]),
        "uri": dataset.uri,
        "version": dataset.version,
        "trace": dataset.trace().hex(),
        "field_ids": field_ids(schema, dataset.lance_schema.fields()),
        "name": f"{dataset.uri} version {dataset.version}",
        "rows": rows,
        "fragments": len(fragments),
        "job_bytes": DEFAULT_BYTES,
        "exact": exact and None not in num_rows,
        "sizes": _column_bytes(visible, rows, data_bytes),
        "filterable": filterable_columns(pa.schema(plain), schema),
        "aggregated": True,
        COMMIT: commit_of(dataset),
    }


def field_ids(columns: StructType, fields: Sequence[LanceField]) -> list[int | None]:
    """Return the ids of columns and of the fields of structs below them, in depth-first pre-order.

    Parameters
    ----------
    columns : StructType
        Columns as Spark sees them.
    fields : sequence of LanceField
        Those of the table, in any order.

    Returns
    -------
    list of int
        None for those that the table lacks.
    """
    by_name = {field.name(): field for field in fields}
    found: list[int | None] = []
    for column in columns:
        field = by_name.get(column.name)
        found.append(None if field is None else field.id())
        found += _ids_below(column.dataType, [] if field is None else field.children())
    return found


def _ids_below(spark_type: DataType, children: Sequence[LanceField]) -> list[int | None]:
    """Return the ids of fields of structs in a type; Lance keeps maps as lists of structs."""
    if isinstance(spark_type, StructType):
        return field_ids(spark_type, children)
    if isinstance(spark_type, ArrayType):
        return _ids_below(spark_type.elementType, _below(children, 0))
    if isinstance(spark_type, MapType):
        entries = _below(children, 0)
        parts = (spark_type.keyType, spark_type.valueType)
        return [found for place, part in enumerate(parts) for found in _ids_below(part, _below(entries, place))]
    return []


def _below(fields: Sequence[LanceField], place: int) -> Sequence[LanceField]:
    return fields[place].children() if place < len(fields) else []


def _column_bytes(schema: pa.Schema, rows: int, data_bytes: int) -> dict[str, int]:
    """Return the approximate size of each column in bytes: exact for fixed widths, the others share the rest."""
    widths = {field.name: _width(field.type) for field in schema}
    sizes = {name: rows * width for name, width in widths.items() if width is not None}
    others = [name for name, width in widths.items() if width is None]
    rest = max(data_bytes - sum(sizes.values()), 0)
    return {**sizes, **{name: max(rest // len(others), rows * _TEXT_BYTES) for name in others}}


def _width(arrow_type: pa.DataType) -> int | None:
    """Return the size of a value in bytes; None if it varies."""
    if isinstance(arrow_type, pa.BaseExtensionType):
        return _width(arrow_type.storage_type)
    if pa.types.is_fixed_size_list(arrow_type):
        item = _width(arrow_type.value_type)
        return None if item is None else item * arrow_type.list_size
    if pa.types.is_struct(arrow_type):
        widths = [_width(field.type) for field in arrow_type]
        return sum(width or 0 for width in widths) if None not in widths else None
    try:
        return (int(arrow_type.bit_width) + 7) // 8
    except ValueError:
        return None


def bounds(dataset: LanceDataset, schema: StructType) -> dict[str, Any]:
    """Return minimum, maximum and number of values of columns, if the statistics of the table are exact.

    Parameters
    ----------
    dataset : LanceDataset
    schema : StructType
        The columns, as Spark sees them.
    """
    if len(dataset.get_fragments()) > _MANY_FRAGMENTS:
        return {}
    exchanged = to_exchange_schema(schema)
    found = dataset.column_bounds(schema.names)
    return {name: _in_spark(known, exchanged.field(name)) for name, known in found.items()}


def _in_spark(known: ColumnBounds, field: pa.Field) -> dict[str, Any]:
    """Return bounds in Spark's form of values; numbers are text, also days of dates and microseconds of timestamps."""
    answer: dict[str, Any] = {"count": known.num_rows - known.num_nulls}
    if known.minimum is not None and known.maximum is not None and any(is_kind(field.type) for is_kind in _BOUNDED):
        both = pa.concat_arrays([pa.repeat(known.minimum, 1), pa.repeat(known.maximum, 1)])
        values = convert(both, field.type, field.name)
        if pa.types.is_temporal(field.type):
            values = values.view(pa.int32() if pa.types.is_date32(field.type) else pa.int64())
        answer["min"], answer["max"] = map(_as_json, values.to_pylist())
    return answer


def _as_json(value: Any) -> Any:
    if value is None or isinstance(value, bool | str):
        return value
    return str(value).replace("inf", "Infinity") if isinstance(value, float) else str(value)


def in_schema(answer: Mapping[str, Any]) -> StructType:
    """Return an answer in the form of a schema, because a forked worker can return nothing else."""
    return StructType([StructField("answer", StringType(), metadata={"answer": json.dumps(answer)})])


def answer(source: Source, question: str, options: Mapping[str, str], schema: str | None) -> dict[str, Any]:
    """Answer one question about the table that some options name.

    An error is an answer, too, which the bridge raises. It is told in a line if it is meant for users.

    Parameters
    ----------
    source : callable
        Makes the data source from options: the class `LanceDataSource`.
    question : str
        A key of `_ANSWERS`.
    options : mapping of str to str
    schema : str, optional
        The columns of the question, as JSON.
    """
    try:
        return _ANSWERS[question](source(_in_lower_case(options)), schema)
    except (LanceError, PySparkException, KeyboardInterrupt) as error:
        return {"error": f"{type(error).__name__}: {error}"}
    except BaseException:  # Also of an exit, after which py4j would close its connection.
        return {"error": traceback.format_exc()}


class Answers:
    """Server of the planner's questions in the driver's Python: a `java.util.function.Function` of JSON to JSON.

    Parameters
    ----------
    source : callable
        See `answer`.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._known = KnownAnswers()

    def apply(self, question: str) -> str:
        """Answer one question."""
        asked = json.loads(question)
        made: list[Any] = []

        def source(options: dict[str, str]) -> Any:
            if not made:
                made.append(self._source(options))
            return made[0]

        known = self._known.find(question, lambda: _find_commit(source, asked["options"]))
        if known is not None:
            return known
        found = answer(source, asked["ask"], asked["options"], asked["schema"])
        commit = found.pop(COMMIT, None)
        reply = json.dumps(found)
        if commit is not None:
            self._known.keep(question, commit, reply)
        return reply

    class Java:
        """Interface that py4j offers to Java."""

        implements = ["java.util.function.Function"]


def _find_commit(source: Source, options: Mapping[str, str]) -> str | None:
    """Return what tells the version that a question is about from all others; None if it cannot be looked up."""
    try:
        found: str | None = source(_in_lower_case(options)).commit()
    except Exception:  # The answer to the question will tell it.
        return None
    return found


def _in_lower_case(options: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in options.items()}


def _describe(source: Any, schema: str | None) -> dict[str, Any]:
    found: dict[str, Any] = source.describe(None if schema is None else _parse_schema(schema))
    return found


def _exists(source: Any, _: str | None) -> dict[str, Any]:
    return {"exists": source.exists()}


def _misfit(source: Any, schema: str) -> dict[str, Any]:
    return {"misfit": source.misfit(_parse_schema(schema))}


def _act(source: Any, schema: str | None) -> dict[str, Any]:
    found: dict[str, Any] = source.act(None if schema is None else _parse_schema(schema))
    return found


def _bounds(source: Any, schema: str) -> dict[str, Any]:
    found: dict[str, Any] = source.bounds(_parse_schema(schema))
    return found


def _check_change(source: Any, schema: str) -> dict[str, Any]:
    source.check_change(_parse_schema(schema))
    return {}


def _check_sink(source: Any, schema: str) -> dict[str, Any]:
    return {"key": source.check_sink(_parse_schema(schema))}


def _check_stream(source: Any, schema: str) -> dict[str, Any]:
    source.check_stream(_parse_schema(schema))
    return {}


def _delete(source: Any, schema: str) -> dict[str, Any]:
    return {"rows": source.delete(_parse_schema(schema))}


def _search(source: Any, _: str | None) -> dict[str, Any]:
    return {"message": base64.b64encode(source.find_replaced_rows()).decode()}


def _plan(source: Any, schema: str) -> dict[str, Any]:
    """Plan a read as Spark's worker does."""
    columns = _parse_schema(schema)
    reader = source.reader(columns)
    function, partitions = pickle_reader(reader, columns)
    tasks = reader.tasks
    return {
        "function": function,
        "partitions": partitions,
        "rows": sum(task.num_rows for task in tasks),
        "fragments": len({fragment_id for task in tasks for fragment_id in task.fragment_ids}),
        COMMIT: reader.commit,
    }


def _rows(source: Any, schema: str) -> dict[str, Any]:
    """Read the rows of a small read; there are none if they are too large for an answer."""
    columns = _parse_schema(schema)
    reader = source.reader(columns)
    rows = read_rows(reader, columns)
    encoded = None if rows is None else [base64.b64encode(of_task).decode() for of_task in rows]
    return {"rows": encoded, COMMIT: reader.commit}


def _share(source: Any, schema: str) -> dict[str, Any]:
    reader = source.reader(_parse_schema(schema))
    sampled, passed = reader.sample()
    return {"sampled": sampled, "passed": passed, COMMIT: reader.commit}


def _stream(source: Any, schema: str) -> dict[str, Any]:
    found: dict[str, Any] = source.answer_stream(_parse_schema(schema))
    return found


def _write(source: Any, schema: str) -> dict[str, Any]:
    function, writer = pickle_writer(source.plan_write(_parse_schema(schema)))
    return {"function": function, "writer": writer}


def _commit(source: Any, _: str | None) -> dict[str, Any]:
    source.end_write(aborts=False)
    return {}


def _abort(source: Any, _: str | None) -> dict[str, Any]:
    source.end_write(aborts=True)
    return {}


_ANSWERS: dict[str, Callable[[Any, Any], dict[str, Any]]] = {
    "describe": _describe,
    "exists": _exists,
    "misfit": _misfit,
    "bounds": _bounds,
    "plan": _plan,
    "rows": _rows,
    "share": _share,
    "act": _act,
    "check_change": _check_change,
    "check_sink": _check_sink,
    "check_stream": _check_stream,
    "delete": _delete,
    "search": _search,
    "stream": _stream,
    "write": _write,
    "commit": _commit,
    "abort": _abort,
}


def _parse_schema(text: str) -> StructType:
    return StructType.fromJson(json.loads(text))
