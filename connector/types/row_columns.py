"""Columns that no file holds, as Spark sees them: what a table knows of every row besides its values.

Types are those of lance-spark, whose metadata columns these are: the table counts without a sign, and Spark has no such
type, so that a number from 2**63 on (2**31, of a fragment) is an error that names the column.
"""

from __future__ import annotations

from pyspark.sql.types import IntegerType, LongType, StructField

ROW_FIELDS = {
    field.name: field
    for field in (
        StructField("_rowid", LongType(), nullable=False),
        StructField("_rowaddr", LongType(), nullable=False),
        StructField("_fragid", IntegerType(), nullable=False),
        StructField("_row_created_at_version", LongType()),
        StructField("_row_last_updated_at_version", LongType()),
        StructField("_rowoffset", LongType(), nullable=False),
    )
}
"""By their names. A table's own column of such a name is read instead."""
