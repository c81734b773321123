"""Clauses of a merge by key."""

from __future__ import annotations

import enum

from lance_format.lazy_dataclasses import dataclass
from lance_format.table.scan.projection import Filter
from lance_format.version import FileVersion


class WhenMatched(enum.Enum):
    """Effect on a target row if the source has its key."""

    KEEP = "keep"
    UPDATE = "update"
    DELETE = "delete"
    FAIL = "fail"


class WriteMode(enum.StrEnum):
    """Way to write updated rows: into new fragments, or in place as new files of columns."""

    AUTO = "auto"
    REWRITE_ROWS = "rewrite_rows"
    REWRITE_COLUMNS = "rewrite_columns"


@dataclass(frozen=True, slots=True)
class Merging:
    """Description of a merge.

    Parameters
    ----------
    on : tuple of str
        The columns of the key.
    matched : WhenMatched
    condition : str, optional
        SQL over `source.<column>` and `target.<column>`: only rows for which it is true are updated.
    inserts : bool
        Whether rows of the source whose key the target lacks are added.
    deletes_others : bool
        Whether rows of the target whose key the source lacks are deleted.
    others : str, pyarrow.compute.Expression or Expression, optional
        Condition over the columns of the target on the rows to delete; by default all are.
    write_mode : WriteMode
        `AUTO` writes rows.
    file_version : FileVersion, optional
        Of the files that are written; that of the table if not given.
    uses_index : bool
        Whether indices of the key exclude rows.
    """

    on: tuple[str, ...]
    matched: WhenMatched = WhenMatched.KEEP
    condition: str | None = None
    inserts: bool = False
    deletes_others: bool = False
    others: Filter | None = None
    write_mode: WriteMode = WriteMode.AUTO
    file_version: FileVersion | None = None
    uses_index: bool = True

    @property
    def does_nothing(self) -> bool:
        """True if no row can change, and the merge cannot fail."""
        return self.matched is WhenMatched.KEEP and not self.inserts and not self.deletes_others

    @property
    def takes_values(self) -> bool:
        """True if rows of the source come into the table; otherwise only their keys matter."""
        return self.inserts or self.matched is WhenMatched.UPDATE
