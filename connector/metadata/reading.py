"""Reading a metadata table: one task lists its rows."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from connector.metadata.tables import TABLES, MetadataTable
from connector.options.options import LanceOptions
from connector.options.snapshot import open_at, open_snapshot
from connector.read.task_errors import told_briefly
from connector.types.schemas import to_exchange_schema
from lance_format import InvalidInputError, LanceDataset, NotSupportedError

_BATCH_ROWS = 4096
_ROW_BYTES = 100
"""Assumed size of a row; Spark plans joins by it."""
_REFUSED = ("columns", "filter", "metadata_columns")


def open_described(options: LanceOptions) -> LanceDataset:
    """Open the version that a metadata table describes.

    Raises
    ------
    InvalidInputError
        If options do not apply to the metadata table.
    """
    table = _table(options)
    for name in _REFUSED:
        if getattr(options, name):
            raise InvalidInputError(f"the option {name!r} does not apply to metadata tables: select from the result")
    if not table.has_versions and (options.version or options.tag or options.timestamp):
        raise InvalidInputError(
            f"the metadata table {options.metadata_table!r} shows the present and has no versions: leave the version"
            " out"
        )
    return open_snapshot(options)


def schema_of(options: LanceOptions) -> StructType:
    """Return the columns of the metadata table that options name."""
    return _table(options).schema


def describe_metadata(options: LanceOptions, dataset: LanceDataset) -> dict[str, Any]:
    """Describe a metadata table for the planner bridge; see `connector.planner.answers.describe`. Nothing is pushed."""
    schema = schema_of(options)
    rows = max(len(dataset.get_fragments()), dataset.version)
    return {
        "schema": schema.json(),
        "snapshot": json.dumps([dataset.uri, dataset.version]),
        "uri": dataset.uri,
        "version": dataset.version,
        "name": f"{options.metadata_table} of {dataset.uri} version {dataset.version}",
        "rows": rows,
        "fragments": 1,
        "exact": False,
        "sizes": dict.fromkeys(schema.names, rows * _ROW_BYTES),
        "filterable": [],
        "misfit": None,
    }


class MetadataReader(DataSourceReader):
    """Reader of some columns of a metadata table.

    Parameters
    ----------
    options : LanceOptions
        `path` and `version` name the described version.
    schema : StructType
        The columns that Spark wants.
    """

    commit: str | None = None
    """Nothing says that its rows stay the same."""

    def __init__(self, options: LanceOptions, schema: StructType) -> None:
        known = schema_of(options)
        unknown = [name for name in schema.names if name not in known.names]
        if unknown:
            raise InvalidInputError(
                f"the metadata table {options.metadata_table!r} has no column {unknown[0]!r}; its columns are"
                f" {', '.join(known.names)}"
            )
        self._options = options
        self._schema = schema

    @property
    def tasks(self) -> list[Any]:
        """The tasks of the scan, for the planner bridge, which counts their rows."""
        return []

    @told_briefly
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:  # noqa: ARG002
        """Yield the rows in batches."""
        table = _table(self._options)
        places = [table.schema.names.index(name) for name in self._schema.names]
        schema = to_exchange_schema(self._schema)
        rows = table.rows(open_at(self._options, self._options.path, self._options.version))
        while chosen := list(itertools.islice(rows, _BATCH_ROWS)):
            columns = [
                pa.array(_storable(row[place] for row in chosen), field.type)
                for place, field in zip(places, schema, strict=True)
            ]
            made = pa.StructArray.from_arrays(columns, fields=list(schema)) if columns else None
            empty = pa.RecordBatch.from_struct_array(pa.array([{}] * len(chosen), pa.struct([])))
            yield empty if made is None else pa.RecordBatch.from_struct_array(made)


def refuse_writing(options: LanceOptions) -> None:
    """Refuse to write a metadata table.

    Raises
    ------
    NotSupportedError
    """
    if options.metadata_table is not None:
        raise NotSupportedError(
            f"{options.metadata_table!r} is a metadata table of {options.path} and cannot be written: write the table"
        )


def _storable(values: Iterator[Any]) -> list[Any]:
    """Return values in the form from which Arrow makes arrays: a map as pairs."""
    return [list(value.items()) if isinstance(value, dict) else value for value in values]


def _table(options: LanceOptions) -> MetadataTable:
    return TABLES[options.metadata_table or ""]
