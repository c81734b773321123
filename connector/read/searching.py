"""Searches of vectors and of texts: tasks find their best rows, which Spark sorts and limits once more.

A search of texts, also together with one of vectors, and one of vectors by an index is one task. Without an index,
every task searches a part of the vectors.
"""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
from pyspark.sql.types import FloatType, StructField, StructType

from connector.options.options import LanceOptions
from connector.read.reader import LanceReader
from lance_format import InvalidInputError, LanceDataset, LanceScanner

_QUERY_INDEX = "query_index"
_ROW_BYTES = 100
"""Assumed size of a value; Spark plans joins by it."""


def with_rank(columns: StructType, options: LanceOptions) -> StructType:
    """Return the columns of a search: those of the table, and the one that ranks the rows.

    Raises
    ------
    InvalidInputError
        If the table has a column of that name.
    """
    rank = options.search_rank
    if rank in columns.names:
        raise InvalidInputError(f"the table has a column {rank!r}, which a search adds; rename the column")
    return StructType([*columns, StructField(rank, FloatType())])


def describe_search(options: LanceOptions, dataset: LanceDataset, schema: StructType) -> dict[str, Any]:
    """Describe a search for the planner bridge; see `connector.planner.answers.describe`. Nothing is pushed."""
    scanner = _search(dataset, options, columns=[])  # Raises the errors of the search here.
    rows = min(int(options.search.get("limit") or options.search["nearest"]["k"]), dataset.count_rows())
    return {
        "schema": schema.json(),
        "snapshot": json.dumps([dataset.uri, dataset.version]),
        "uri": dataset.uri,
        "version": dataset.version,
        "name": f"{dataset.uri} version {dataset.version}, {_title(scanner)}",
        "rows": rows,
        "fragments": len(dataset.get_fragments()),
        "exact": False,
        "sizes": dict.fromkeys(schema.names, rows * _ROW_BYTES),
        "filterable": [],
        "misfit": None,
    }


class SearchReader(LanceReader):
    """Reader of the rows that a search finds; see `LanceReader` for the parameters."""

    def _readable(self, dataset: LanceDataset) -> pa.Schema:
        return super()._readable(dataset).append(pa.field(self._options.search_rank, pa.float32()))

    def _scanner(self, dataset: LanceDataset) -> LanceScanner:
        return _search(dataset, self._options, columns=self._columns, batch_size=self._batch_rows)


def _search(dataset: LanceDataset, options: LanceOptions, **arguments: Any) -> LanceScanner:
    scanner = dataset.scanner(
        filter=options.filter,
        prefilter=True,
        blob_handling=options.blob_handling,
        use_scalar_index=options.use_scalar_index,
        disable_scoring_autoprojection=True,
        **options.search,
        **arguments,
    )
    if _QUERY_INDEX in scanner.projected_schema.names:
        raise InvalidInputError("a search in Spark is for one vector; union the results of several")
    return scanner


def _title(scanner: LanceScanner) -> str:
    """Return what the first lines of a plan say of the search: of vectors one, of a text two, of both all of these."""
    lines = scanner.explain_plan().splitlines()
    if lines[0].startswith("HybridScan"):
        near = next(line for line in lines if line.lstrip().startswith("LanceNearest"))
        text = next(line for line in lines if line.lstrip().startswith("text search"))
        return f"{lines[0].partition(': ')[2]}, {near.partition(': ')[2]}, {text.strip()}"
    return lines[0].partition(": ")[2] if lines[0].startswith("LanceNearest") else lines[1].strip()
