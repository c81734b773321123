"""Changes of rows that are refused before anything is read or written."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql.types import StructType

from connector.options.options import LanceOptions
from connector.options.snapshot import open_at
from connector.types.compatibility import check_same_columns
from lance_format import NotSupportedError

_ADDRESS = "_rowaddr"
_OF_CHANGED_ROWS = ("__row_operation", "__lance_operation", "__lance_place")
"""Names of the columns that Spark, and `connector.table_api`, add to rows with new values."""
_OLD = "names a version, and only the latest one can be changed"
_PARTIAL = {
    "version": _OLD,
    "tag": _OLD,
    "timestamp": _OLD,
    "columns": "hides columns, whose values rows that are written again would lose",
    "filter": "hides rows, which a change may not spare",
    "metadata_columns": "shows columns that cannot be written",
    "metadata_table": "shows what is known of the table, and not its rows",
}


def check_options(options: LanceOptions, command: str) -> None:
    """Refuse to change rows of a table if its options show only a part of it.

    Raises
    ------
    NotSupportedError
        Naming the option.
    """
    for name, reason in _PARTIAL.items():
        if getattr(options, name):
            raise NotSupportedError(
                f"{command} cannot run on {options.path} as it is declared: its option {name!r} {reason}; nothing was"
                " changed: run it on the table without that option"
            )


def check_names(stored: pa.Schema, command: str, path: str) -> None:
    """Refuse a table with a column that has the name of one that the rows of a change have themselves.

    Parameters
    ----------
    stored : pyarrow.Schema
        Of the table.
    command : str
    path : str
        Of the table, for the message.

    Raises
    ------
    NotSupportedError
        Naming the column.
    """
    reserved = (_ADDRESS,) if command == "DELETE" else (_ADDRESS, *_OF_CHANGED_ROWS)
    own = [name for name in stored.names if name.lower() in reserved]
    if own:
        raise NotSupportedError(
            f"{command} gives rows a column {own[0].lower()}, but the table {path} has its own column {own[0]!r};"
            " nothing was changed: rename the column"
        )


def check_change(
    options: LanceOptions, command: str, schema: StructType, snapshot: tuple[str, int], *, is_declared: bool
) -> None:
    """Refuse a change of rows that tasks cannot make.

    Parameters
    ----------
    options : LanceOptions
    command : {"DELETE", "UPDATE", "MERGE"}
    schema : StructType
        Of the table, as Spark knows it.
    snapshot : tuple of str and int
        The location of the table, and the version to be changed.
    is_declared : bool
        Whether the schema is that of a catalog, which may differ from that of the table.

    Raises
    ------
    NotSupportedError
        If options show only a part of the table, or it has a column with a reserved name.
    SchemaMismatchError
        If rows are to be written and Spark does not know all columns and fields of the table.
    """
    check_options(options, command)
    stored = open_at(options, *snapshot).read_schema("all_binary")
    check_names(stored, command, options.path)
    if command == "DELETE":
        return
    if options.blob_handling != "all_binary":
        raise NotSupportedError(
            f"{command} writes rows again, but the option 'blob_handling' of {options.path} shows where blobs are, not"
            " their bytes; nothing was changed: run it on the table without that option"
        )
    check_same_columns(stored, schema, options.path, is_declared=is_declared)
