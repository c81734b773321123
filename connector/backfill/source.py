"""The data source that writes new columns: rows of `address`, `c0`, `c1` …, sorted by the address."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceWriter
from pyspark.sql.types import StructType

from connector.jobs.requests import Request, RequestWriter
from connector.types.batches import to_stored
from connector.types.schemas import to_stored_schema
from lance_format import BackfilledFragments, ColumnBackfill, InvalidInputError, LanceDataset
from lance_format.lazy_dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class BackfillRequest(Request):
    """New columns of a version of a table.

    Parameters
    ----------
    columns : str
        The schema of the new columns, as JSON of Spark.
    """

    columns: str

    @property
    def schema(self) -> pa.Schema:
        """The new columns as they are stored."""
        return to_stored_schema(StructType.fromJson(json.loads(self.columns)))

    def plan(self, dataset: LanceDataset) -> ColumnBackfill:
        """Return the plan, the same one in each process."""
        return dataset.plan_column_backfill(self.schema, uuid=self.uuid)


class ColumnBackfillSource(DataSource):
    """Data source of one backfill. It can be written only."""

    @classmethod
    def name(cls) -> str:
        """See `connector.source.private_sources`."""
        return "column backfill"

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:  # noqa: ARG002
        """Plan to write the columns."""
        return ColumnBackfillWriter(BackfillRequest.of(self.options))


class ColumnBackfillWriter(RequestWriter):
    """Writer of the new columns; the commit adds them to the table.

    A row of the source that names no row of the table, or one that another row names, is an `InvalidInputError`.

    Parameters
    ----------
    request : BackfillRequest
    """

    def __init__(self, request: BackfillRequest) -> None:
        super().__init__(request, BackfilledFragments)
        self._schema = request.schema

    def _fill(self, writer: Any, dataset: LanceDataset, batches: Iterator[pa.RecordBatch]) -> None:  # noqa: ARG002
        for batch in batches:
            keys = batch.column(0)
            if keys.null_count:
                raise InvalidInputError("a row of the source names no row of the table: its key is null or unknown")
            addresses = keys.to_numpy(zero_copy_only=False).astype(np.uint64)
            values = pa.RecordBatch.from_arrays(batch.columns[1:], names=self._schema.names)
            writer.write(addresses, to_stored(values, self._schema))
