"""Feature flags: features that readers and writers of a table must support.

A manifest has a set for readers and one for writers. An unknown flag may change the meaning of anything, so the table
is refused, with the name of the flag if it has one.
"""

from __future__ import annotations

import enum

from lance_format.errors import NotSupportedError


class FeatureFlag(enum.IntFlag):
    """The flags in use."""

    DELETION_FILES = 1
    STABLE_ROW_IDS = 2
    V2_FORMAT = 4
    TABLE_CONFIG = 8
    BASE_PATHS = 16
    NO_TRANSACTION_FILE = 32
    MIXED_FILE_VERSIONS = 256  # Without it pylance refuses a file whose version is not the table's.


# As plain integers: the complement of a flag has no bit that is not a flag, but these must find such bits.
_READABLE = int(
    FeatureFlag.DELETION_FILES
    | FeatureFlag.STABLE_ROW_IDS
    | FeatureFlag.V2_FORMAT
    | FeatureFlag.TABLE_CONFIG
    | FeatureFlag.BASE_PATHS
    | FeatureFlag.NO_TRANSACTION_FILE
    | FeatureFlag.MIXED_FILE_VERSIONS
)
_WRITABLE = _READABLE


def check_readable(flags: int, where: str) -> None:
    """Raise `NotSupportedError` unless every reader flag is understood."""
    if flags & ~_READABLE:
        raise NotSupportedError(f"{where} cannot be read: it needs {_describe(flags & ~_READABLE)}")


def check_writable(flags: int, where: str) -> None:
    """Raise `NotSupportedError` unless every writer flag is understood."""
    if flags & ~_WRITABLE:
        raise NotSupportedError(f"{where} cannot be written: it needs {_describe(flags & ~_WRITABLE)}")


def _describe(flags: int) -> str:
    names = {flag.value: flag.name.lower().replace("_", " ") for flag in FeatureFlag if flag.name}
    single = [1 << bit for bit in range(flags.bit_length()) if flags >> bit & 1]
    described = ", ".join(f"{flag} ({names.get(flag, 'unknown')})" for flag in single)
    return f"the feature flag{'s' if len(single) > 1 else ''} {described}, which this library does not support"
