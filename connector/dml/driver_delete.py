"""DELETE without a Spark job: the library finds the rows in the driver, and starts again after conflicts."""

from __future__ import annotations

from pyspark.sql.types import StructType

from connector.dml.refusals import check_options
from connector.options.options import LanceOptions
from connector.options.snapshot import branch_uri, open_at
from connector.types.compatibility import check_readable
from lance_format.expressions import Expression


def delete_rows(options: LanceOptions, predicate: Expression | None, schema: StructType) -> int:
    """Delete the rows of the latest version for which a predicate is true.

    Parameters
    ----------
    options : LanceOptions
    predicate : Expression, optional
        All rows if not given.
    schema : StructType
        The schema for which Spark translated the predicate.

    Returns
    -------
    int
        Number of deleted rows.

    Raises
    ------
    NotSupportedError
        If options show only a part of the table.
    SchemaMismatchError
        If the columns of the table have changed since.
    RetryableCommitConflictError
        If other writers kept changing the same rows.
    """
    check_options(options, "DELETE")
    dataset = open_at(options, branch_uri(options))
    check_readable(dataset.read_schema(options.blob_handling), schema, options.path)
    return dataset.delete("true" if predicate is None else predicate).num_deleted_rows
