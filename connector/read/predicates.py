"""Predicates that Spark pushes to a scan, in the forms of `connector.read.expressions`.

Only this side evaluates them, so they must mean exactly the same to `lance_format` and to Spark. They do for the
columns that `filterable_columns` returns; the bridge asks for those before it takes a predicate.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pyarrow as pa
from pyspark.sql.types import DataType, StringType, StructType, UserDefinedType, VariantType

from connector.read.expressions import to_expression
from connector.read.text_matches import with_rows
from connector.types.row_columns import ROW_FIELDS
from lance_format import InvalidInputError, LanceDataset, LanceError
from lance_format.expressions import Expression

_EXACT: tuple[Callable[[pa.DataType], bool], ...] = (
    pa.types.is_boolean,
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_decimal,
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_fixed_size_binary,
    pa.types.is_date32,
    pa.types.is_time,
    lambda arrow_type: pa.types.is_timestamp(arrow_type) and arrow_type.unit != "ns",
)
"""Stored types whose values Spark sees unchanged. It sees nanoseconds and milliseconds of dates rounded down."""


def parse_predicate(text: str, open_table: Callable[[], LanceDataset]) -> Expression:
    """Read a predicate from JSON.

    Parameters
    ----------
    text : str
        A form of a predicate.
    open_table : callable
        Returns the version of the table that is read.

    Raises
    ------
    InvalidInputError
        If the text is none of these forms, or nested too deeply.
    LanceError
        If a search fails.
    """
    try:
        return to_expression(with_rows(json.loads(text), open_table))
    except RecursionError:
        raise InvalidInputError("the predicate is nested too deeply; filter in several steps") from None
    except LanceError:
        raise
    except (ValueError, TypeError, KeyError, ArithmeticError, pa.ArrowException) as error:
        raise InvalidInputError(f"the predicate {text[:200]!r} is not one that the planner bridge writes") from error


def filterable_columns(stored: pa.Schema, schema: StructType) -> list[list[str]]:
    """Return the columns, and fields below structs, for which predicates mean the same to Spark and to the library.

    Parameters
    ----------
    stored : pyarrow.Schema
        Of the table, as it is stored.
    schema : StructType
        The columns that Spark sees, and their types.

    Returns
    -------
    list of list of str
        Names that lead to a column.
    """
    names = set(stored.names)
    found = [[name] for name in ROW_FIELDS if name not in names]
    for field in schema:
        if field.name in names:
            found.extend(_filterable(stored.field(field.name).type, field.dataType, [field.name]))
    return found


def _filterable(arrow_type: pa.DataType, spark_type: DataType, path: list[str]) -> Iterator[list[str]]:
    if isinstance(arrow_type, pa.BaseExtensionType) or isinstance(spark_type, UserDefinedType | VariantType):
        return
    if pa.types.is_struct(arrow_type) and isinstance(spark_type, StructType):
        for field in spark_type:
            index = arrow_type.get_field_index(field.name)
            if index >= 0:
                yield from _filterable(arrow_type.field(index).type, field.dataType, [*path, field.name])
        return
    if pa.types.is_dictionary(arrow_type):
        arrow_type = arrow_type.value_type
    if isinstance(spark_type, StringType) and not spark_type.isUTF8BinaryCollation():
        return
    if any(is_exact(arrow_type) for is_exact in _EXACT):
        yield path
