"""The columns of a stream or feed in versions whose columns differ: renamed, missing, or of another type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
from pyspark.sql.types import StructType

from connector.types.batches import to_spark
from connector.types.row_columns import ROW_FIELDS
from connector.types.schemas import to_exchange_schema
from lance_format import ChangeLog, LanceDataset
from lance_format.lazy_dataclasses import dataclass


@dataclass(frozen=True)
class ReadColumns:
    """Columns to read from any version of a table.

    A version has a column under the name of the field with the same id, else under the same name, unless that is
    the field of another column. Before an overwrite that replaced the columns, ids are those of other columns, and only
    names count. Where a version has neither, the column is null.

    Parameters
    ----------
    schema : StructType
        The columns that Spark expects.
    field_ids : mapping of str to int
        The field ids of all columns of the version that the names are of.
    version : int
        That version.
    """

    schema: StructType
    field_ids: Mapping[str, int]
    version: int

    @classmethod
    def of(cls, dataset: LanceDataset, schema: StructType) -> ReadColumns:
        """Return columns by their names in a version."""
        ids = {field.name(): field.id() for field in dataset.lance_schema.fields()}
        return cls(schema, ids, dataset.version)

    def goes_by_name(self, dataset: LanceDataset, log: ChangeLog) -> bool:
        """Return whether only the names of columns count in a version. Most often, its columns alone tell.

        Parameters
        ----------
        dataset : LanceDataset
            Shows the version.
        log : ChangeLog
        """
        names = list(self.field_ids)
        if self._find(names, dataset, by_name=True) == self._find(names, dataset, by_name=False):
            return False
        first, last = sorted((dataset.version, self.version))
        return not log.keeps_field_ids(first, last)

    def dropped(self, version: int, log: ChangeLog) -> dict[str, str]:
        """Return the columns that a version lacks, by their names in the version before it.

        Parameters
        ----------
        version : int
        log : ChangeLog

        Raises
        ------
        VersionNotFoundError
            If a version is not there that is needed to tell.
        """
        if not log.may_drop_columns(version):
            return {}
        before, after, names = log.open(version - 1), log.open(version), list(self.field_ids)
        had = self._find(names, before, by_name=self.goes_by_name(before, log))
        has = self._find(names, after, by_name=self.goes_by_name(after, log))
        return {own: name for name, own in had.items() if name not in has}

    def stored(self, dataset: LanceDataset, *, by_name: bool) -> dict[str, str]:
        """Return the name of each column in a version, without columns that the version lacks.

        Parameters
        ----------
        dataset : LanceDataset
            Shows the version.
        by_name : bool
            See `goes_by_name`.
        """
        return self._find(self.schema.names, dataset, by_name=by_name)

    def _find(self, wanted: Sequence[str], dataset: LanceDataset, *, by_name: bool) -> dict[str, str]:
        fields = {field.name(): field.id() for field in dataset.lance_schema.fields()}
        names = {} if by_name else {number: name for name, number in fields.items()}
        taken = names.keys() & self.field_ids.values()
        found = {}
        for name in wanted:
            if name not in self.field_ids:
                if name in ROW_FIELDS:
                    found[name] = name
            elif self.field_ids[name] in names:
                found[name] = names[self.field_ids[name]]
            elif name in fields and fields[name] not in taken:
                found[name] = name
        return found

    def requested(self, stored: Mapping[str, str]) -> pa.Schema:
        """Return the columns to ask a scanner of a version for.

        Parameters
        ----------
        stored : mapping of str to str
            See `stored`.
        """
        exchanged = to_exchange_schema(self.schema)
        return pa.schema([exchanged.field(name).with_name(own) for name, own in stored.items()])

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
