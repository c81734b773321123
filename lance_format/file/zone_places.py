"""Places of zones, as a file states them: entries of the metadata of its schema, which hold for that file alone."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from lance_format.errors import CorruptFileError

STATISTICS_KEY = b"lance.statistics"
"""The key of the entry that names the embedded file; see `zone_file`."""

SEED_PREFIX = b"lance.seed."
"""What the keys of entries begin with that name seeds; the name of a column follows. See `zone_seeds`."""

_PLACE = re.compile(rb"(\d{1,9}):(\d{1,15})")


@dataclass(frozen=True, slots=True)
class ZonesPlace:
    """Place where zones are stored.

    Parameters
    ----------
    buffer : int
        A global buffer.
    rows_per_zone : int
        The rows of each zone but the last.
    """

    buffer: int
    rows_per_zone: int

    @classmethod
    def parse(cls, value: bytes) -> ZonesPlace:
        """Parse an entry of the metadata.

        Raises
        ------
        CorruptFileError
            If it is malformed.
        """
        match = _PLACE.fullmatch(value)
        if match is None or int(match[2]) == 0:
            raise CorruptFileError(f"{value[:100]!r} is not the number of a global buffer, a colon, and rows per zone")
        return cls(int(match[1]), int(match[2]))

    def serialize(self) -> bytes:
        """Return the entry of the metadata."""
        return b"%d:%d" % (self.buffer, self.rows_per_zone)


def names_zones(key: bytes) -> bool:
    """Return whether a key of a schema's metadata locates the zones of a particular file."""
    return key == STATISTICS_KEY or key.startswith(SEED_PREFIX)


def without_zones(metadata: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
    """Return the metadata of a schema without the locations of zones of a file."""
    return {key: value for key, value in metadata.items() if not names_zones(key)}
