"""Metadata columns, which no file holds, with their types in Spark.

Names and types are those of lance-spark. Tables store unsigned numbers, and Spark has no such type, so a number from
2**63 on (2**31 for fragments) is an error that names the column.
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
"""By their names. A column of the table with such a name is read instead."""
