"""The columns of a stream or feed in versions whose columns differ: renamed, missing, or of another type."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from pyspark.sql.types import StructType

from connector.types.batches import to_spark
from connector.types.row_columns import ROW_FIELDS
from connector.types.schemas import to_exchange_schema
from lance_format import LanceDataset
from lance_format.lazy_dataclasses import dataclass


@dataclass(frozen=True)
class ReadColumns:
    """Columns to read from any version of a table.

    A version has a column under the name of the field with the same id, else under the same name. Where it has
    neither, the column is null.

    Parameters
    ----------
    schema : StructType
        The columns that Spark expects.
    field_ids : mapping of str to int
        The field ids of the columns, in the version that the names are of.
    """

    schema: StructType
    field_ids: Mapping[str, int]

    @classmethod
    def of(cls, dataset: LanceDataset, schema: StructType) -> ReadColumns:
        """Return columns by their names in a version."""
        ids = {field.name(): field.id() for field in dataset.lance_schema.fields()}
        return cls(schema, {name: ids[name] for name in schema.names if name in ids})

    def stored(self, dataset: LanceDataset) -> dict[str, str]:
        """Return the name of each column in a version, without columns that the version lacks."""
        names = {field.id(): field.name() for field in dataset.lance_schema.fields()}
        found = {}
        for name in self.schema.names:
            if name not in self.field_ids:
                found[name] = name  # a row column
            elif self.field_ids[name] in names:
                found[name] = names[self.field_ids[name]]
            elif name in names.values():
                found[name] = name
        return {name: own for name, own in found.items() if own in names.values() or own in ROW_FIELDS}

    def requested(self, dataset: LanceDataset) -> pa.Schema:
        """Return the columns to ask a scanner of a version for."""
        exchanged = to_exchange_schema(self.schema)
        return pa.schema([exchanged.field(name).with_name(own) for name, own in self.stored(dataset).items()])

    def fit(self, batch: pa.RecordBatch, stored: Mapping[str, str]) -> pa.RecordBatch:
        """Convert a batch of a version to what Spark expects.

        Parameters
        ----------
        batch : pyarrow.RecordBatch
        stored : mapping of str to str
            See `stored`.

        Raises
        ------
        NotSupportedError
            If a value does not fit the type.
        SchemaMismatchError
            If a column must not be null, and is.
        """
        exchanged = to_exchange_schema(self.schema)
        if not exchanged.names:
            return to_spark(batch, exchanged)
        columns = [
            batch.column(stored[field.name]) if field.name in stored else pa.nulls(batch.num_rows, field.type)
            for field in exchanged
        ]
        return to_spark(pa.RecordBatch.from_arrays(columns, names=exchanged.names), exchanged)
