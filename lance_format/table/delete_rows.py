"""Deleting rows: those that match a predicate are marked in deletion files; nothing is rewritten."""

from __future__ import annotations

import uuid

from lance_format.table.operations import Delete
from lance_format.table.projection import Filter
from lance_format.table.row_set import gather, mark_deleted
from lance_format.table.scanner import LanceScanner
from lance_format.table.table_version import Draft, TableVersion


def delete_rows(table: TableVersion, predicate: Filter) -> tuple[TableVersion, int]:
    """Delete the rows for which a predicate is true, and commit that.

    Parameters
    ----------
    table : TableVersion
    predicate : str, pyarrow.compute.Expression or Expression

    Returns
    -------
    TableVersion
        The version that it made.
    int
        How many rows were deleted.

    Raises
    ------
    RetryableCommitConflictError
        If another writer changed the same rows meanwhile.
    InvalidInputError
        If the predicate does not fit the table.
    """
    scanner = LanceScanner(table, columns=[], filter=predicate)
    rows = gather(scanner.matching_rows())
    with Draft(table, str(uuid.uuid4())) as draft:
        marked = mark_deleted(draft, rows)
        operation = Delete(marked.updated, marked.emptied, scanner.filter_text)
        return table.commit(operation, uuid=draft.uuid), len(rows)
