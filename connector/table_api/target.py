"""Tables to be changed, and their snapshots, on which changes are computed."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, TypeAlias

from pyspark.sql.types import StructField, StructType, TimeType

from connector.dml.refusals import check_names, check_options
from connector.options.options import LanceOptions
from connector.options.snapshot import branch_uri, open_at, open_snapshot
from connector.options.storage import is_storage_option
from connector.types.column_names import quoted
from connector.types.declared_types import has_leaf
from connector.types.schemas import to_spark_schema
from lance_format import LanceDataset, NotSupportedError
from lance_format.lazy_dataclasses import dataclass

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

ADDRESS = "__lance_address"
"""The column of a snapshot that has the addresses of its rows."""
RESERVED = "__lance_"
DEFAULT_ALIAS = "__lance_target"
UNREAD = "__lance_unread"
"""The message of the error that a column of a snapshot raises if it is evaluated though it was not read."""
Reads: TypeAlias = Callable[[StructType], Collection[str]]
"""Returns those of the columns of a table that a change reads."""
_ADDRESS = "_rowaddr"
_NOT_OF_SNAPSHOTS = ("branch", "blob_handling")
"""Options that a snapshot does not take: its location is that of the branch, and changes need the bytes of blobs."""


@dataclass(frozen=True)
class Target:
    """A table, or a branch of it, as a user has named it.

    Parameters
    ----------
    spark : SparkSession
    path : str
    options : mapping of str to str
        Options of reads and writes.
    alias : str, optional
        Qualifies the columns of the table in conditions and expressions.
    """

    spark: SparkSession
    path: str
    options: Mapping[str, str]
    alias: str | None = None

    @property
    def parsed(self) -> LanceOptions:
        """The options, checked."""
        return LanceOptions.parse({**self.options, "path": self.path})

    @property
    def storage(self) -> dict[str, str]:
        """Those of the options that the storage takes."""
        return {name: value for name, value in self.options.items() if is_storage_option(name)}

    @property
    def is_case_sensitive(self) -> bool:
        """True if the session distinguishes columns whose names differ in case only."""
        return self.spark.conf.get("spark.sql.caseSensitive", "false") == "true"

    @property
    def computes_times(self) -> bool:
        """True if the session has expressions of times of a day, which it shows in any case."""
        return self.spark.conf.get("spark.sql.timeType.enabled") == "true"

    def read(self) -> DataFrame:
        """Return the rows of the table, with the alias if there is one."""
        rows = self.spark.read.format("lance").options(**self.options).load(self.path)
        return rows if self.alias is None else rows.alias(self.alias)

    def open(self) -> LanceDataset:
        """Open the version that the options name, by default the latest."""
        return open_snapshot(self.parsed)

    def open_latest(self, command: str) -> LanceDataset:
        """Open the latest version, to change it.

        Parameters
        ----------
        command : str
            The change, for messages.

        Raises
        ------
        NotSupportedError
            If the options name another version, or some columns or rows.
        """
        options = self.parsed
        check_options(options, command)
        return open_at(options, branch_uri(options))

    def snapshot(self, command: str, reads: Reads | None = None) -> Snapshot:
        """Fix the latest version, to compute a change of its rows on it.

        Parameters
        ----------
        command : str
            The change, for messages.
        reads : callable, optional
            Finds the columns that the change reads. Default: all columns. Without the planner Spark would read the
            others too. The snapshot has the others, but raises the error `UNREAD` if their values are needed. Columns
            with times are always read: Spark shows stored ones, but by default refuses to compute any.

        Raises
        ------
        NotSupportedError
            If the options or columns of the table do not allow that.
        """
        dataset = self.open_latest(command)
        stored = dataset.read_schema("all_binary")
        check_names(stored, command, self.path)
        _check_reserved(stored.names, self.path)
        options = {name: value for name, value in self.options.items() if name.lower() not in _NOT_OF_SNAPSHOTS}
        reader = self.spark.read.format("lance").options(**options).option("version", dataset.version)
        fields = to_spark_schema(stored)
        if reads is not None:
            wanted = reads(fields)
            named = [f.name for f in fields if f.name in wanted or has_leaf(f.dataType, TimeType)] or stored.names[:1]
            reader = reader.option("columns", json.dumps(named))
        rows = (
            reader.option("metadata_columns", _ADDRESS).load(dataset.absolute_uri).withColumnRenamed(_ADDRESS, ADDRESS)
        )
        read = {field.name: field for field in rows.schema.fields[:-1]}
        fields = StructType([read.get(field.name, field) for field in fields])
        if len(read) < len(fields):
            rows = rows.select(*(_shown(field, is_read=field.name in read) for field in fields), ADDRESS)
        return Snapshot(self, dataset, rows.alias(self.alias or DEFAULT_ALIAS), fields)


@dataclass(frozen=True)
class Snapshot:
    """One version of a table, whose rows are read with their addresses.

    Parameters
    ----------
    target : Target
    dataset : LanceDataset
        Shows the version.
    rows : DataFrame
        Columns of the table, then `ADDRESS`.
    columns : StructType
        Those that are columns of the table, as Spark reads them.
    """

    target: Target
    dataset: LanceDataset
    rows: DataFrame
    columns: StructType

    def column(self, name: str) -> Column:
        """Return a column of the table, also if a join has others of its name."""
        return self.rows[quoted(name)]


def _shown(field: StructField, *, is_read: bool) -> Column:
    """Return a column of a snapshot. Spark removes those that a query does not use, and evaluates the others."""
    from pyspark.sql import functions as f

    if is_read:
        return f.col(quoted(field.name))
    return f.raise_error(f.lit(UNREAD)).cast(field.dataType).alias(field.name)


def _check_reserved(names: list[str], path: str) -> None:
    reserved = [name for name in names if name.lower().startswith(RESERVED)]
    if reserved:
        raise NotSupportedError(
            f"the table {path} has the column {reserved[0]!r}, but names that start with {RESERVED!r} are those of"
            " columns that a change adds; nothing was changed: rename the column"
        )
