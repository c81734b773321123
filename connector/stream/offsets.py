"""Offsets of the stream source: JSON objects in Spark's checkpoint, which later versions of this code read, too.

=================== ================================================================================
key                 value
=================== ================================================================================
`format`            1
`version`           the version that is read next; versions before it were delivered
`index`             the number of fragments of that version that were delivered
`isSnapshot`        whether the version is the initial snapshot: all of its rows count, not only new ones
`after`             the uuid of the transaction before the position, which distinguishes another table at the same
                    path; may be empty
`isInitial`         whether this is where a new query would start
`startVersion`      the version that the query started with; 0 if unknown
`startIsSnapshot`   whether it started with all rows of that version
=================== ================================================================================

Spark does not keep the offset that a query starts with. It asks for it again if the first batch is repeated, and a new
query would start later by then. The end of the batch therefore says where the query started.

An index counts fragments in the order of the manifest: all of a snapshot, or those that an append added. Versions that
changed rows are delivered whole, so that their index is always 0.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from lance_format import InvalidInputError
from lance_format.lazy_dataclasses import dataclass

_FORMAT = 1


@dataclass(frozen=True, slots=True)
class Offset:
    """A position between the rows of a table's history.

    Parameters
    ----------
    version : int
        The version that is read next.
    index : int
        The number of its fragments that were delivered.
    is_snapshot : bool
        Whether all rows of the version are read, and not only those that it added.
    after : str
        The uuid of the transaction of the last version that was read from; empty if there is none.
    is_initial : bool
        Whether this is where a new query would start.
    start_version : int
        The version that the query started with; 0 if unknown.
    start_is_snapshot : bool
        Whether it started with all rows of that version.
    """

    version: int
    index: int = 0
    is_snapshot: bool = False
    after: str = ""
    is_initial: bool = False
    start_version: int = 0
    start_is_snapshot: bool = False

    @classmethod
    def initial(cls, version: int, *, is_snapshot: bool, after: str) -> Offset:
        """Return the offset of a new query.

        Parameters
        ----------
        version : int
            The version that it starts with.
        is_snapshot : bool
            Whether it starts with all rows of that version.
        after : str
            The uuid of the transaction before the position; empty if it is unknown.
        """
        return cls(version, 0, is_snapshot, after, True, version, is_snapshot)

    @property
    def key(self) -> tuple[int, int, bool]:
        """The position, for comparing offsets of one table."""
        return self.version, self.index, not self.is_snapshot

    def moved(self, version: int, after: str = "") -> Offset:
        """Return the offset before the changes of another version."""
        return dataclasses.replace(self, version=version, index=0, is_snapshot=False, after=after, is_initial=False)

    def to_index(self, index: int) -> Offset:
        """Return the offset after some fragments of the same version."""
        return dataclasses.replace(self, index=index, is_initial=False)

    def begin(self, end: Offset) -> Offset:
        """Return where a batch begins whose end is known, and that Spark says begins here."""
        if not self.is_initial or not end.start_version:
            return self
        return Offset(end.start_version, is_snapshot=end.start_is_snapshot)

    def to_json(self) -> dict[str, Any]:
        """Return the offset as Spark keeps it. Equal offsets give the same text."""
        return {
            "format": _FORMAT,
            "version": self.version,
            "index": self.index,
            "isSnapshot": self.is_snapshot,
            "after": self.after,
            "isInitial": self.is_initial,
            "startVersion": self.start_version,
            "startIsSnapshot": self.start_is_snapshot,
        }

    @classmethod
    def parse(cls, stored: Mapping[str, Any]) -> Offset:
        """Build an offset from the checkpoint.

        Raises
        ------
        InvalidInputError
            If it is not an offset of this source, or of a later release.
        """
        known = stored.get("format")
        if isinstance(known, int) and known > _FORMAT:
            raise InvalidInputError(
                f"the checkpoint was written by a later release (offsets of format {known}): use that release"
            )
        kinds = {key: type(value) for key, value in stored.items()}
        if known != _FORMAT or kinds != _KINDS:
            raise InvalidInputError(
                "the checkpoint is not one of a stream that reads a Lance table: its offset is"
                f" {dict(stored)!r}; choose another checkpoint location"
            )
        return cls(*(stored[key] for key in list(_KINDS)[1:]))


_KINDS: dict[str, type] = {key: type(value) for key, value in Offset(1).to_json().items()}
