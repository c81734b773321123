"""Deleting rows: those that match a predicate are marked in deletion files; nothing is rewritten."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from lance_format.errors import InvalidInputError
from lance_format.table.changes.rows.replaced_rows import RowSet, gather, mark_deleted
from lance_format.table.format.fragment import FragmentMetadata
from lance_format.table.scan.projection import Filter
from lance_format.table.scan.scanner import LanceScanner
from lance_format.table.transaction.operations import Delete
from lance_format.table.versions.table_version import Draft, TableVersion


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
    rows, text = find_rows(table, predicate)
    with Draft(table, str(uuid.uuid4())) as draft:
        marked = mark_deleted(draft, rows)
        operation = Delete(marked.updated, marked.emptied, text)
        return table.commit(operation, uuid=draft.uuid), len(rows)


def find_rows(
    table: TableVersion, predicate: Filter, fragments: Sequence[FragmentMetadata] | None = None
) -> tuple[RowSet, str]:
    """Find the rows that a predicate deletes.

    Parameters
    ----------
    table : TableVersion
    predicate : str, pyarrow.compute.Expression or Expression
    fragments : sequence of FragmentMetadata, optional
        All if not given.

    Returns
    -------
    RowSet
    str
        The predicate as SQL.

    Raises
    ------
    InvalidInputError
        If it is no predicate, or does not fit the table. A missing one never stands for all rows.
    """
    if predicate is None:
        raise InvalidInputError(
            "the predicate is None; SQL text or an expression of pyarrow is needed, or truncate_table() for all rows"
        )
    scanner = LanceScanner(table, columns=[], filter=predicate, fragments=fragments)
    return gather(scanner.matching_rows()), scanner.filter_text
