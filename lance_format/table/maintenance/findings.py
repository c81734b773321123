"""What a verification finds."""

from __future__ import annotations

from lance_format.errors import ChecksumError, LanceError
from lance_format.lazy_dataclasses import dataclass

INTACT, UNVERIFIED, DAMAGED, MISSING, INCONSISTENT = "intact", "no checksums", "damaged", "missing", "inconsistent"
ORPHANED = "orphaned"
"""The status of a file that no version needs, and that no write in progress can need."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A file and its state, or one of several damages of a file.

    Parameters
    ----------
    path : str
        Relative to the directory of the table, or of the branch that holds the file.
    type : str
        `manifest`, `transaction file`, `data file`, `deletion file`, `index file`, or `fragment`.
    status : str
        `intact`, `no checksums`, `damaged`, `missing`, `inconsistent` or `orphaned`.
    fragment_id : int, optional
    size_bytes : int
    verified_bytes : int
        Bytes whose checksums were compared.
    offset : int, optional
        Where the damage begins.
    detail : str
        What is wrong, which rows are lost, and what to do.
    """

    path: str
    type: str
    status: str
    fragment_id: int | None = None
    size_bytes: int = 0
    verified_bytes: int = 0
    offset: int | None = None
    detail: str = ""

    @property
    def is_problem(self) -> bool:
        """True if something is damaged, missing or inconsistent."""
        return self.status not in (INTACT, UNVERIFIED, ORPHANED)


def status_of(error: LanceError) -> str:
    """Return the status of a file whose reading raised an error."""
    if isinstance(error, ChecksumError):
        return DAMAGED
    return MISSING if isinstance(error, FileNotFoundError) else INCONSISTENT
