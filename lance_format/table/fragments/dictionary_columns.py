"""Columns of strings that are read as dictionaries, because all of their pages in a fragment have dictionaries.

Keys take a few bits per row to read, and two bytes to hold; filters and keys of groups are computed for the items.
"""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
import pyarrow as pa

from lance_format.blob_fields import format_of
from lance_format.datatypes import Field, Schema
from lance_format.expressions import KEY_TYPE, looked_up
from lance_format.identity import Itself
from lance_format.logical_types import logical_type_of
from lance_format.table.fragments.open_files import FragmentFiles

_MOST_ITEMS = int(np.iinfo(KEY_TYPE.to_pandas_dtype()).max)
_TYPES = ("string", "large_string", "binary", "large_binary")


def as_dictionaries(schema: Schema, files: FragmentFiles) -> Schema:
    """Return columns of a fragment with the types of dictionaries for those whose pages have them.

    For the same schema object and columns the result is the same object.

    Parameters
    ----------
    schema : Schema
    files : FragmentFiles
        The open files of the fragment.
    """
    same = Itself(schema)
    wanted = _candidates(same)
    if not wanted:
        return schema
    found = [
        part.field.id
        for file, parts in files.parts(schema).items()
        for part in parts
        if part.field.id in wanted and files.reader(file).has_dictionaries(part, _MOST_ITEMS)
    ]
    return _replaced(same, frozenset(found)) if found else schema


def without_dictionaries(batch: pa.RecordBatch, schema: Schema) -> pa.RecordBatch:
    """Return a batch of some columns with the strings that their dictionaries stand for.

    Parameters
    ----------
    batch : pa.RecordBatch
    schema : Schema
        The columns of the batch, by their names.
    """
    if not any(map(pa.types.is_dictionary, batch.schema.types)):
        return batch
    fields = [schema.field(name).to_storage() for name in batch.schema.names]
    columns = [
        column if column.type == field.type else looked_up(column)
        for column, field in zip(batch.columns, fields, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))


@functools.lru_cache(maxsize=64)
def _candidates(same: Itself[Schema]) -> frozenset[int]:
    return frozenset(field.id for field in same.value.fields if _is_candidate(field))


def _is_candidate(field: Field) -> bool:
    return field.logical_type in _TYPES and not field.children and not field.extension_name and format_of(field) is None


@functools.lru_cache(maxsize=64)
def _replaced(same: Itself[Schema], ids: frozenset[int]) -> Schema:
    fields = [
        dataclasses.replace(field, logical_type=_dictionary_of(field)) if field.id in ids else field
        for field in same.value.fields
    ]
    return dataclasses.replace(same.value, fields=tuple(fields))


def _dictionary_of(field: Field) -> str:
    return logical_type_of(pa.dictionary(KEY_TYPE, field.to_storage().type), field.name)
