"""Default values of columns, which rows get that are written without one.

Spark keeps their SQL in the metadata of columns, and the table keeps that: see `connector.types.field_metadata`. Spark
itself puts them into the rows of statements. Streams, writes to a path and those of Python need not have all columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from connector.active_session import active_session
from connector.types.batches import to_stored
from connector.types.column_names import quoted
from connector.types.field_metadata import CURRENT_DEFAULT, FIRST_DEFAULT
from lance_format import InvalidInputError, NotSupportedError
from lance_format.arrow_rows import take_rows
from lance_format.lazy_dataclasses import dataclass

_NULL = "NULL"


def default_entries(schema: pa.Schema, names: Sequence[str], text: str) -> dict[str, str | None]:
    """Return the changes of the metadata of a column that set its default value.

    Parameters
    ----------
    schema : pyarrow.Schema
        Of the table.
    names : sequence of str
        The path of the column.
    text : str
        SQL; empty to have no default value.

    Raises
    ------
    InvalidInputError
        If there is no such column.
    """
    if names[0] not in schema.names:
        raise InvalidInputError(f"there is no column {names[0]!r}; nothing was changed")
    if not text:
        return {CURRENT_DEFAULT: None, FIRST_DEFAULT: None}
    return {CURRENT_DEFAULT: text, FIRST_DEFAULT: _entry(schema.field(names[0]), FIRST_DEFAULT) or _NULL}


@dataclass(frozen=True, slots=True)
class DefaultValues:
    """The default values of some columns.

    Parameters
    ----------
    columns : pyarrow.Schema
        As the table has them.
    row : pyarrow.RecordBatch
        Their values, in Spark's types.
    """

    columns: pa.Schema
    row: pa.RecordBatch

    @classmethod
    def current(cls, columns: Iterable[pa.Field]) -> DefaultValues | None:
        """Return those of columns that are written without values; None if no column has one."""
        return cls._of([field for field in columns if _entry(field, CURRENT_DEFAULT)], CURRENT_DEFAULT)

    @classmethod
    def first(cls, columns: Iterable[pa.Field]) -> DefaultValues | None:
        """Return those of new columns in the rows that the table has; None if all are null."""
        found = list(columns)
        return cls._of(found, FIRST_DEFAULT) if any(_entry(field, FIRST_DEFAULT) for field in found) else None

    @classmethod
    def _of(cls, columns: Sequence[pa.Field], key: str) -> DefaultValues | None:
        """Have Spark evaluate the values.

        Raises
        ------
        NotSupportedError
            If there is no session.
        """
        if not columns:
            return None
        spark = active_session()
        if spark is None:
            raise NotSupportedError(
                f"column {columns[0].name!r} has a default value, which needs a session with the planner; nothing was"
                " written: give the rows a value for it"
            )
        values = [f"{_entry(field, key) or _NULL} AS {quoted(field.name)}" for field in columns]
        (row,) = spark.sql(f"SELECT {', '.join(values)}").toArrow().combine_chunks().to_batches()
        return cls(pa.schema(columns), row)

    def rows(self, num_rows: int) -> pa.RecordBatch:
        """Return the values of some rows, in Spark's types."""
        return take_rows(self.row, pa.repeat(pa.scalar(0, pa.int64()), num_rows))

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return as many rows as a batch has, in the types of the table; see `LanceDataset.add_columns`."""
        return to_stored(self.rows(batch.num_rows), self.columns)

    def beside(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return a batch with these columns, too."""
        rows = self.rows(batch.num_rows)
        names = [*batch.schema.names, *rows.schema.names]
        return pa.RecordBatch.from_arrays([*batch.columns, *rows.columns], names=names)


def _entry(field: pa.Field, key: str) -> str:
    found: bytes = (field.metadata or {}).get(key.encode(), b"")
    return found.decode()
