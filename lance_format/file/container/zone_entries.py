"""Entries in the schema metadata of a file that locate its zones and checksums. They hold for that file alone."""

from __future__ import annotations

import re
from collections.abc import Mapping

from lance_format.errors import CorruptFileError, InvalidInputError, NotSupportedError
from lance_format.lazy_dataclasses import dataclass
from lance_format.version import FileVersion

STATISTICS_KEY = b"lance.statistics"
"""The key of the entry that names the embedded file; see `zone_file`."""

SEED_PREFIX = b"lance.seed."
"""Prefix of the keys of seeds; the name of a column follows. See `zone_seeds`."""

CHECKSUMS_KEY = b"lance.checksums"
"""The key of the entry that names the global buffer of checksums: `<global buffer>:<bytes per block>`; see `seal`."""

IN_COLUMNS = "column"
"""Option of a writer to store zones in the encodings of columns too; these have no key. See `zone_index`."""

UNPORTABLE_IN_COLUMNS = "unportable_column"
"""The same, in files of format 2.0 too, which pylance cannot read then."""

_MOST_ROWS_PER_INDEXED_ZONE = 2**32 - 1
_PLACE = re.compile(rb"(\d{1,9}):(\d{1,15})")


@dataclass(frozen=True, slots=True)
class ZonesEntry:
    """Entry that says where zones are stored.

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
    def parse(cls, value: bytes) -> ZonesEntry:
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
    """Return whether a key of a schema's metadata locates the zones or the checksums of a particular file."""
    return key in (STATISTICS_KEY, CHECKSUMS_KEY) or key.startswith(SEED_PREFIX)


def without_zones(metadata: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
    """Return the metadata of a schema without the locations of zones and checksums of a file."""
    return {key: value for key, value in metadata.items() if not names_zones(key)}


def check_zone_index(zone_index: str | None, version: FileVersion | None = None, rows_per_zone: int | None = 1) -> None:
    """Check the options of a writer for zones.

    Parameters
    ----------
    zone_index : str, optional
    version : FileVersion, optional
        Version of the file, if already known.
    rows_per_zone : int, optional
        None for no statistics.

    Raises
    ------
    InvalidInputError
        If the value is unknown, or there are no zones, or zones of too many rows.
    NotSupportedError
        If pylance could not read the file.
    """
    if zone_index is None:
        return
    if zone_index not in (IN_COLUMNS, UNPORTABLE_IN_COLUMNS):
        raise InvalidInputError(
            f"zone_index is {zone_index!r}; it may be {IN_COLUMNS!r}, {UNPORTABLE_IN_COLUMNS!r} or None"
        )
    if zone_index == IN_COLUMNS and version is not None and version.has_array_encodings:
        raise NotSupportedError(
            f"zone_index={zone_index!r} makes files of format {version} that pylance cannot read: write 2.1 or a newer"
            f" one, or give zone_index={UNPORTABLE_IN_COLUMNS!r} if no reader is pylance"
        )
    if rows_per_zone is None or rows_per_zone > _MOST_ROWS_PER_INDEXED_ZONE:
        raise InvalidInputError(
            f"zone_index={zone_index!r} needs rows_per_zone from 1 to {_MOST_ROWS_PER_INDEXED_ZONE};"
            f" it is {rows_per_zone}"
        )
