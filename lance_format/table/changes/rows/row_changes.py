"""Tasks that delete or replace rows: the parts of the table that they search, and their results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field

from lance_format.lazy_dataclasses import dataclass
from lance_format.table.changes.rows.replaced_rows import RowSet
from lance_format.table.format.fragment import FragmentMetadata
from lance_format.table.scan.joined_rows import ScannedRows
from lance_format.table.scan.scanner import LanceScanner
from lance_format.table.scan.tasks import ScanTask


@dataclass(frozen=True, slots=True)
class RowChanges:
    """Rows that a task replaced or deleted, and the fragments that it wrote. Can be pickled.

    Parameters
    ----------
    number : int
        Of the task.
    uuid : str
        Of the plan.
    removed : RowSet
        Rows of the version that the change was planned on.
    written : tuple of FragmentMetadata
        New rows, and the new forms of replaced ones.
    """

    number: int
    uuid: str
    removed: RowSet = field(default_factory=RowSet)
    written: tuple[FragmentMetadata, ...] = ()


def unite(results: Sequence[RowChanges]) -> tuple[RowSet, tuple[FragmentMetadata, ...]]:
    """Return the rows that any of several results has removed, and the fragments that any has written."""
    if len(results) == 1:
        return results[0].removed, results[0].written
    removed = RowSet()
    for result in results:
        removed.update(result.removed)
    return removed, tuple(fragment for result in results for fragment in result.written)


def divide(scanner: LanceScanner, split_size_bytes: int | None) -> Sequence[ScanTask | None]:
    """Return the parts of a scan that tasks search; None for the whole scan if the size of tasks is not limited."""
    return [None] if split_size_bytes is None else scanner.plan_tasks(split_size_bytes)


def rows_of(scanner: LanceScanner, part: ScanTask | None) -> Iterator[ScannedRows]:
    """Read the rows of a part that pass the filter of a scan."""
    return scanner.matching() if part is None else scanner.matching_in(part)
