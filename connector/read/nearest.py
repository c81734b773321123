"""Searches for nearest neighbours: tasks find their nearest rows, which Spark sorts and limits once more.

A search by an index is one task. Without an index, every task searches a part of the rows.
"""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
from pyspark.sql.types import FloatType, StructField, StructType

from connector.options.options import LanceOptions
from connector.read.reader import LanceReader
from lance_format import InvalidInputError, LanceDataset, LanceScanner

DISTANCE = "_distance"
_QUERY_INDEX = "query_index"
_ROW_BYTES = 100
"""Assumed size of a value; Spark plans joins by it."""


def with_distance(columns: StructType) -> StructType:
    """Return the columns of a search in a table.

    Raises
    ------
    InvalidInputError
        If the table has a column of the name of the distance.
    """
    if DISTANCE in columns.names:
        raise InvalidInputError(f"the table has a column {DISTANCE!r}, which a search adds; rename the column")
    return StructType([*columns, StructField(DISTANCE, FloatType())])


def describe_search(options: LanceOptions, dataset: LanceDataset, schema: StructType) -> dict[str, Any]:
    """Describe a search for the planner bridge; see `connector.planner.answers.describe`. Nothing is pushed."""
    _search(dataset, options, columns=[])  # Raises the errors of the search here.
    rows = min(int(options.nearest["k"]), dataset.count_rows())
    return {
        "schema": schema.json(),
        "snapshot": json.dumps([dataset.uri, dataset.version]),
        "uri": dataset.uri,
        "version": dataset.version,
        "name": f"{dataset.uri} version {dataset.version}, nearest by {options.nearest['column']}",
        "rows": rows,
        "fragments": len(dataset.get_fragments()),
        "exact": False,
        "sizes": dict.fromkeys(schema.names, rows * _ROW_BYTES),
        "filterable": [],
        "misfit": None,
    }


class NearestReader(LanceReader):
    """Reader of the rows whose vectors are nearest to another one; see `LanceReader` for the parameters."""

    def _readable(self, dataset: LanceDataset) -> pa.Schema:
        return super()._readable(dataset).append(pa.field(DISTANCE, pa.float32()))

    def _scanner(self, dataset: LanceDataset) -> LanceScanner:
        return _search(dataset, self._options, columns=self._columns, batch_size=self._batch_rows)


def _search(dataset: LanceDataset, options: LanceOptions, **arguments: Any) -> LanceScanner:
    scanner = dataset.scanner(
        filter=options.filter,
        prefilter=True,
        nearest=options.nearest,
        blob_handling=options.blob_handling,
        use_scalar_index=options.use_scalar_index,
        disable_scoring_autoprojection=True,
        **arguments,
    )
    if _QUERY_INDEX in scanner.projected_schema.names:
        raise InvalidInputError("a search in Spark is for one vector; union the results of several")
    return scanner
