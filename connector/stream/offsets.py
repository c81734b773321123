"""Offsets of the stream source: JSON objects in Spark's checkpoint, which later versions of this code read, too.

============ =======================================================================================
key          value
============ =======================================================================================
`format`     1
`version`    the version that is read next; versions before it were delivered
`index`      the number of fragments of that version that were delivered
`isSnapshot` whether the version is the initial snapshot: all of its rows count, and not only new ones
`after`      the uuid of the transaction before the position, by which another table at the same path is recognised; may
             be empty
============ =======================================================================================

An index counts fragments in the order of the manifest: all of a snapshot, or those that an append added. Versions that
changed rows are delivered whole, so that their index is always 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lance_format import InvalidInputError

_FORMAT = 1


@dataclass(frozen=True, slots=True, order=True)
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
    """

    version: int
    index: int = 0
    is_snapshot: bool = False
    after: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the offset as Spark keeps it. Equal offsets give the same text."""
        return {
            "format": _FORMAT,
            "version": self.version,
            "index": self.index,
            "isSnapshot": self.is_snapshot,
            "after": self.after,
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
        version, index, is_snapshot = stored.get("version"), stored.get("index"), stored.get("isSnapshot")
        after = stored.get("after", "")
        is_whole = isinstance(version, int) and isinstance(index, int) and isinstance(after, str)
        if known != _FORMAT or not is_whole or not isinstance(is_snapshot, bool):
            raise InvalidInputError(
                "the checkpoint is not one of a stream that reads a Lance table: its offset is"
                f" {dict(stored)!r}; choose another checkpoint location"
            )
        return cls(stored["version"], stored["index"], is_snapshot, after)
