"""Findings of a verification: files and their states, and rows that are lost."""

from __future__ import annotations

import dataclasses

from lance_format.errors import ChecksumError, LanceError, StorageError
from lance_format.lazy_dataclasses import dataclass

INTACT, UNVERIFIED, DAMAGED, MISSING, INCONSISTENT = "intact", "no checksums", "damaged", "missing", "inconsistent"
ORPHANED = "orphaned"
"""The status of a file that no version needs, and that no write in progress can need."""

REWRITE_FRAGMENT, REBUILD_INDEX, DROP_INDEX = "rewrite the fragment", "rebuild the index", "drop the index"
WRITE_AGAIN = "write the file again"
"""What a repair does about a problem, without loss."""

VALUES, DELETIONS = "values", "deletions"
"""What of some rows is lost: values of columns, or which of the rows are deleted."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A file and its state, or one of several damages of a file.

    Parameters
    ----------
    path : str
        Relative to the directory of the table, or of the branch that holds the file.
    type : str
        `manifest`, `transaction file`, `data file`, `deletion file`, `index file`, `fragment`, or
        `reference`: a tag or branch, whose path is relative to the table.
    status : str
        `intact`, `no checksums`, `damaged`, `missing`, `inconsistent` or `orphaned`.
    fragment_id : int, optional
    size_bytes : int
    verified_bytes : int
        Bytes whose checksums were compared.
    offset : int, optional
        Where the damage begins.
    detail : str
        What is wrong, where, and what to do.
    repair : str
        What `repair` does about it: `rewrite the fragment`, `rebuild the index`, `drop the index`, or `write the file
        again`. Empty if nothing can be recovered.
    """

    path: str
    type: str
    status: str
    fragment_id: int | None = None
    size_bytes: int = 0
    verified_bytes: int = 0
    offset: int | None = None
    detail: str = ""
    repair: str = ""

    @property
    def is_problem(self) -> bool:
        """True if something is damaged, missing or inconsistent."""
        return self.status not in (INTACT, UNVERIFIED, ORPHANED)


@dataclass(frozen=True, slots=True)
class LostRows:
    """Successive rows of a fragment that have lost something.

    Parameters
    ----------
    type : str
        `values` if the values of some columns cannot be read; `deletions` if it is unknown which rows are deleted.
    fragment_id : int
    columns : tuple of str
        Names of all columns that these rows have lost; empty for `deletions`.
    start, stop : int
        Offsets in the fragment, deleted rows included: `start <= offset < stop`.
    num_rows : int
        Number of live rows among them; for `deletions` the number of deleted rows, 0 if the manifest does not say.
    version : int, optional
        The latest earlier version of the branch that holds the same rows in other files, because a compaction has moved
        them since.
    """

    type: str
    fragment_id: int
    columns: tuple[str, ...]
    start: int
    stop: int
    num_rows: int
    version: int | None = None

    @property
    def condition(self) -> str:
        """A filter that finds the rows by their addresses, in Python and SQL."""
        first = self.fragment_id << 32
        return f"_rowaddr >= {first + self.start} AND _rowaddr < {first + self.stop}"


def check_cause(error: LanceError) -> None:
    """Raise an error again if it says nothing about the content of files, because the storage has failed.

    Raises
    ------
    StorageError
        That error.
    """
    if isinstance(error, StorageError) and not isinstance(error, FileNotFoundError):
        raise error


def status_of(error: LanceError) -> str:
    """Return the status of a file whose reading raised an error.

    Raises
    ------
    StorageError
        See `check_cause`.
    """
    check_cause(error)
    if isinstance(error, ChecksumError):
        return DAMAGED
    return MISSING if isinstance(error, FileNotFoundError) else INCONSISTENT


def with_repair(finding: Finding, repair: str) -> Finding:
    """Return a finding with the repair of what is wrong, if something is."""
    return dataclasses.replace(finding, repair=repair) if finding.is_problem else finding
