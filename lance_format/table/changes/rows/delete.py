"""Deletion of rows: matching rows are marked in deletion files; nothing is rewritten."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from lance_format.errors import InvalidInputError
from lance_format.lazy_dataclasses import dataclass
from lance_format.table.changes.rows.replaced_rows import gather, mark_deleted
from lance_format.table.changes.rows.row_changes import RowChanges, divide, rows_of, unite
from lance_format.table.format.fragment import FragmentMetadata
from lance_format.table.scan.options import ScanOptions
from lance_format.table.scan.projection import Filter
from lance_format.table.scan.scanner import LanceScanner
from lance_format.table.scan.tasks import ScanTask
from lance_format.table.transaction.operations import Delete
from lance_format.table.versions.change_result import ChangeResult
from lance_format.table.versions.planned_change import ChangePlan, ChangeTask
from lance_format.table.versions.table_version import Draft, TableVersion


@dataclass(frozen=True, eq=False)
class DeleteResult(ChangeResult):
    """Outcome of a delete.

    Parameters
    ----------
    num_deleted_rows : int
    """

    num_deleted_rows: int


@dataclass(frozen=True, slots=True)
class DeleteTask(ChangeTask[RowChanges]):
    """Task that finds the rows to delete in a part of the table. It writes no file.

    Parameters
    ----------
    read_version : int
    number : int
        Number of the task within the plan.
    uuid : str
        The uuid of the plan.
    predicate : str, pyarrow.compute.Expression or Expression
    part : ScanTask, optional
        The rows to search, by default all.
    """

    read_version: int
    number: int
    uuid: str
    predicate: Filter
    part: ScanTask | None = None

    def run(self, table: TableVersion) -> RowChanges:
        """Find the rows; see `execute`."""
        scanner = scan_deleted(table, self.predicate)
        return RowChanges(self.number, self.uuid, gather(rows for _, rows in rows_of(scanner, self.part)))


@dataclass(frozen=True, slots=True)
class DeletePlan(ChangePlan[RowChanges, DeleteResult]):
    """A planned delete. Made by `plan_delete`.

    Parameters
    ----------
    read_version : int
    uuid : str
    predicate : str
        As SQL, for the transaction.
    tasks : tuple of DeleteTask
    """

    read_version: int
    uuid: str
    predicate: str
    tasks: tuple[DeleteTask, ...]

    def operation(self, draft: Draft, results: Sequence[RowChanges]) -> Delete:
        """Write deletion files."""
        removed, _ = unite(results)
        marked = mark_deleted(draft, removed)
        return Delete(marked.updated, marked.emptied, self.predicate)

    def outcome(self, results: Sequence[RowChanges]) -> DeleteResult:
        """Count the rows."""
        return DeleteResult(sum(len(result.removed) for result in results))


def plan_delete(table: TableVersion, predicate: Filter, split_size_bytes: int | None = None) -> DeletePlan:
    """Plan to delete the rows for which a predicate is true.

    Parameters
    ----------
    table : TableVersion
    predicate : str, pyarrow.compute.Expression or Expression
    split_size_bytes : int, optional
        Approximate number of bytes that a task reads. By default one task reads all.

    Raises
    ------
    InvalidInputError
        If the predicate does not fit the table.
    """
    scanner = scan_deleted(table, predicate)
    parts = divide(scanner, split_size_bytes)
    version, identity = table.manifest.version, str(uuid.uuid4())
    tasks = tuple(DeleteTask(version, number, identity, predicate, part) for number, part in enumerate(parts))
    return DeletePlan(version, identity, scanner.filter_text, tasks)


def scan_deleted(
    table: TableVersion, predicate: Filter, fragments: Sequence[FragmentMetadata] | None = None
) -> LanceScanner:
    """Return a scan of the rows that a predicate deletes.

    Parameters
    ----------
    table : TableVersion
    predicate : str, pyarrow.compute.Expression or Expression
    fragments : sequence of FragmentMetadata, optional
        The fragments to search, by default all.

    Raises
    ------
    InvalidInputError
        If it is not a predicate, or does not fit the table. A missing predicate never means all rows.
    """
    if predicate is None:
        raise InvalidInputError(
            "the predicate is None; SQL text or an expression of pyarrow is needed, or truncate_table() for all rows"
        )
    return LanceScanner(table, ScanOptions(columns=[], filter=predicate, fragments=fragments))
