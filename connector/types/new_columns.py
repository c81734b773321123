"""Columns that a statement adds to a table, as JSON: a list of mappings with the path of a column and its schema.

```
[{"name": ["home", "floor"], "value": "{\"type\": \"struct\", \"fields\": [{\"name\": \"floor\", …}]}"}]
```
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.types import StructField, StructType

from connector.types.schemas import to_stored_schema


def read_new_columns(changes: Sequence[Mapping[str, Any]]) -> pa.Schema:
    """Return new columns, and for new fields the structs around them with no other field.

    Parameters
    ----------
    changes : sequence of mappings
        See above.
    """
    united: dict[str, pa.Field] = {}
    for change in changes:
        field = read_column(change["value"])
        for parent in reversed(change["name"][:-1]):
            field = pa.field(parent, pa.struct([field]))
        known = united.get(field.name)
        united[field.name] = field if known is None else _united(known, field)
    return pa.schema(list(united.values()))


def write_new_columns(fields: Iterable[StructField]) -> list[dict[str, Any]]:
    """Return columns in the form that `read_new_columns` reads."""
    return [{"name": [field.name], "value": StructType([field]).json()} for field in fields]


def read_column(text: str) -> pa.Field:
    """Return the stored form of the only column of a schema, which is JSON."""
    return to_stored_schema(StructType.fromJson(json.loads(text))).field(0)


def _united(one: pa.Field, other: pa.Field) -> pa.Field:
    """Return a struct that has the fields of two."""
    fields = {field.name: field for field in one.type}
    for field in other.type:
        fields[field.name] = _united(fields[field.name], field) if field.name in fields else field
    return one.with_type(pa.struct(list(fields.values())))
