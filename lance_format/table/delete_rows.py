"""Deleting rows: those that match a predicate are marked in deletion files; nothing is rewritten."""

from __future__ import annotations

import dataclasses
import itertools
import uuid
from collections.abc import Iterable

import numpy as np

from lance_format.table.deletion_vector import write_deleted_rows
from lance_format.table.fragment import FragmentMetadata
from lance_format.table.operations import Delete
from lance_format.table.projection import Filter
from lance_format.table.row_columns import LiveRows
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
    with Draft(table, str(uuid.uuid4())) as draft:
        marked = mark_deleted(draft, scanner.matching_rows())
        operation = Delete(marked.updated, marked.emptied, scanner.filter_text)
        return table.commit(operation, uuid=draft.uuid), marked.num_rows


@dataclasses.dataclass(frozen=True, slots=True)
class MarkedRows:
    """What marking rows as deleted makes of their fragments.

    Parameters
    ----------
    updated : tuple of FragmentMetadata
        With another deletion file than before.
    emptied : frozenset of int
        The ids of fragments of which no row is left.
    num_rows : int
        How many rows were marked.
    """

    updated: tuple[FragmentMetadata, ...]
    emptied: frozenset[int]
    num_rows: int


def mark_deleted(draft: Draft, rows: Iterable[LiveRows]) -> MarkedRows:
    """Write deletion files for rows.

    Parameters
    ----------
    draft : Draft
        It is told the files.
    rows : iterable of LiveRows
        Grouped by fragment.
    """
    table = draft.table
    updated, emptied, num_rows = [], set(), 0
    for fragment, some in itertools.groupby(rows, key=lambda found: found.scan.fragment):
        scan = table.scan(fragment, table.manifest.schema.select([]))
        marked = np.unique(np.concatenate([found.offsets for found in some]))
        num_rows += marked.size
        deleted = np.union1d(scan.deleted_rows(), marked)
        if deleted.size == scan.physical_rows():
            emptied.add(fragment.id)
            continue
        file = write_deleted_rows(table.store, table.root, fragment, deleted, read_version=table.manifest.version)
        draft.paths.append(f"{table.root}/{file.path(fragment.id)}")
        updated.append(dataclasses.replace(fragment, deletion_file=file, physical_rows=scan.physical_rows()))
    return MarkedRows(tuple(updated), frozenset(emptied), num_rows)
