"""`set_unenforced_primary_key`: the declaration of a primary key."""

from __future__ import annotations

from pyspark.sql.types import ArrayType, LongType, StringType

from connector.procedures.declaring import Result, Target
from connector.procedures.declaring import columns as result_columns
from connector.types.field_metadata import declare_primary_key

SCHEMA = result_columns(columns=ArrayType(StringType()), version=LongType())


def set_unenforced_primary_key(target: Target, *, columns: list[str]) -> Result:
    """Declare a primary key; see `declare_primary_key`."""
    dataset = target.open()
    declare_primary_key(dataset, columns)
    return Result(SCHEMA, [(columns, dataset.version)])
