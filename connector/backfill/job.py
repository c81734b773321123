"""The Spark job that adds columns from a DataFrame."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql.types import LongType, StructType

from connector.backfill.source import BackfillRequest, ColumnBackfillSource
from connector.jobs.requests import write_rows
from connector.options.storage import write_storage
from connector.types.column_names import quoted
from lance_format import InvalidInputError, LanceDataset

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ADDRESS, ROW_ID = "_rowaddr", "_rowid"
_FRAGMENT_ID = "_fragid"
_FRAGMENT_BITS = 32


def add_columns_from(
    spark: SparkSession,
    dataset: LanceDataset,
    source: DataFrame,
    *,
    key: str | None = None,
    columns: Sequence[str] | None = None,
) -> tuple[str, ...]:
    """Add columns of a DataFrame to a table, and move the dataset to that version.

    Only files with the new columns are written. Rows that the DataFrame lacks get null.

    Parameters
    ----------
    spark : SparkSession
    dataset : LanceDataset
        The version that gets the columns.
    source : DataFrame
        Each row names a row of the table by the key, and no two name the same.
    key : {"_rowaddr", "_rowid"}, optional
        The column that names a row, by default the first of these that the DataFrame has.
    columns : sequence of str, optional
        The columns to add, by default all except `_rowaddr`, `_rowid` and `_fragid`.

    Returns
    -------
    tuple of str
        The columns.

    Raises
    ------
    InvalidInputError
        If the DataFrame lacks the key or a column, a column exists already, or a key is unknown or there twice.
    RetryableCommitConflictError
        If another writer changed the table in a way that the columns do not fit.
    """
    from pyspark.sql import functions as f

    key = _choose_key(source, key)
    chosen = _choose_columns(source, columns)
    schema = StructType([source.schema[name] for name in chosen])
    request = BackfillRequest(
        uri=dataset.absolute_uri,
        version=dataset.version,
        storage=dataset.storage_options,
        columns=schema.json(),
    )
    request.plan(dataset)  # Raises the errors of the columns.
    values = [f.col(quoted(name)).alias(f"c{place}") for place, name in enumerate(chosen)]
    rows = source.select(f.col(quoted(key)).cast(LongType()).alias("key"), *values)
    if key == ROW_ID and dataset.has_stable_row_ids:
        rows = _addresses(spark, dataset).join(rows, "key", "right")
    else:
        rows = rows.withColumn("address", f.col("key"))
    rows = rows.select("address", *(f"c{place}" for place in range(len(chosen))))
    rows = rows.repartition(f.shiftright("address", _FRAGMENT_BITS)).sortWithinPartitions("address")
    write_rows(spark, rows, request, ColumnBackfillSource, f"add columns {', '.join(chosen)}")
    dataset.checkout_latest()
    return chosen


def _addresses(spark: SparkSession, dataset: LanceDataset) -> DataFrame:
    """Return the address of each row by its id."""
    storage = write_storage(dataset.storage_options)
    read = spark.read.format("lance").options(**storage).option("version", dataset.version)
    read = read.option("columns", json.dumps(dataset.schema.names[:1])).option(
        "metadata_columns", f"{ROW_ID},{ADDRESS}"
    )
    return read.load(dataset.absolute_uri).selectExpr(f"{ROW_ID} AS key", f"{ADDRESS} AS address")


def _choose_key(source: DataFrame, key: str | None) -> str:
    known = [ADDRESS, ROW_ID] if key is None else [key]
    if key is not None and key not in (ADDRESS, ROW_ID):
        raise InvalidInputError(f"key is {key!r}; rows are named by {ADDRESS!r} or {ROW_ID!r}")
    for name in known:
        if name in source.columns:
            return name
    raise InvalidInputError(
        f"the source has no column {' or '.join(map(repr, known))} to name rows of the table: select it from the table,"
        " as in SELECT _rowaddr, … FROM t"
    )


def _choose_columns(source: DataFrame, columns: Sequence[str] | None) -> tuple[str, ...]:
    others = tuple(name for name in source.columns if name not in (ADDRESS, ROW_ID, _FRAGMENT_ID))
    chosen = others if columns is None else tuple(columns)
    unknown = [name for name in chosen if name not in others]
    if unknown or not chosen:
        what = f"the source has no column {unknown[0]!r} to add" if unknown else "the source has no column to add"
        raise InvalidInputError(f"{what}; it has {', '.join(source.columns)}")
    return chosen
