"""Options of streams and of the change feed, in Delta's names."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, MutableMapping
from dataclasses import fields
from typing import Any

from connector.options.timestamps import parse_timestamp
from connector.options.values import MAX_INT64, parse_count, parse_flag, take_given
from lance_format import InvalidInputError
from lance_format.lazy_dataclasses import dataclass

LATEST = "latest"
_MOST_FILES = 2**31 - 1
"""What Spark's limit holds."""
_SIZE = re.compile(r"([0-9]{1,18})\s*([kmgt]?)b?")
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


@dataclass(frozen=True, slots=True)
class ChangeOptions:
    """Options about the versions that a stream or the change feed reads.

    Parameters
    ----------
    read_change_feed : bool
        Whether to read changes of rows instead of rows.
    starting_version : int or str, optional
        The first version whose changes are read, or `latest` for those after the latest version.
    starting_timestamp : datetime, optional
        Starts with the first version of this time or later.
    ending_version : int, optional
        The last version of a batch.
    ending_timestamp : datetime, optional
        Ends a batch with the last version of this time or earlier.
    max_files : int, optional
        Number of fragments from which on a batch of a stream ends.
    max_bytes : int, optional
        Size of data files from which on a batch of a stream ends.
    ignore_deletes, ignore_changes, skip_change_commits : bool
        What a stream of rows does with versions that change rows; see `docs/streaming.md`.
    fail_on_data_loss : bool
        Whether a stream ends with an error if versions are missing that it has not read.
    """

    read_change_feed: bool = False
    starting_version: int | str | None = None
    starting_timestamp: datetime.datetime | None = None
    ending_version: int | None = None
    ending_timestamp: datetime.datetime | None = None
    max_files: int | None = None
    max_bytes: int | None = None
    ignore_deletes: bool = False
    ignore_changes: bool = False
    skip_change_commits: bool = False
    fail_on_data_loss: bool = True

    @classmethod
    def take(cls, parsed: MutableMapping[str, Any]) -> ChangeOptions:
        """Take these options out of others.

        Parameters
        ----------
        parsed : mutable mapping of str to object
            Parsed options, by their names.

        Raises
        ------
        InvalidInputError
            If two of them contradict each other.
        """
        for one, other in _CONTRADICTIONS:
            if parsed.get(one) and parsed.get(other):
                raise InvalidInputError(f"the options {one!r} and {other!r} contradict each other; keep one")
        return cls(**take_given(parsed, _ATTRIBUTES))

    def given(self) -> list[str]:
        """Return the names of the options that differ from their defaults."""
        default = ChangeOptions()
        return [name for name, own in _ATTRIBUTES.items() if getattr(self, own) != getattr(default, own)]


def _parse_starting_version(name: str, value: str) -> int | str:
    return LATEST if value.strip().lower() == LATEST else parse_count(MAX_INT64)(name, value)


def _parse_size(name: str, value: str) -> int:
    found = _SIZE.fullmatch(value.strip().lower())
    size = int(found[1]) * _UNITS[found[2]] if found else 0
    if not 1 <= size <= MAX_INT64:
        raise InvalidInputError(f"option {name!r} must be a number of bytes, as 1000000 or 64m, not {value!r}")
    return size


CHANGE_PARSERS: dict[str, Callable[[str, str], Any]] = {
    "readChangeFeed": parse_flag,
    "startingVersion": _parse_starting_version,
    "startingTimestamp": parse_timestamp,
    "endingVersion": parse_count(MAX_INT64),
    "endingTimestamp": parse_timestamp,
    "maxFilesPerTrigger": parse_count(_MOST_FILES),
    "maxBytesPerTrigger": _parse_size,
    "ignoreDeletes": parse_flag,
    "ignoreChanges": parse_flag,
    "skipChangeCommits": parse_flag,
    "failOnDataLoss": parse_flag,
}
_ATTRIBUTES = dict(zip(CHANGE_PARSERS, (field.name for field in fields(ChangeOptions)), strict=True))
_CONTRADICTIONS = (
    ("startingVersion", "startingTimestamp"),
    ("endingVersion", "endingTimestamp"),
    ("ignoreChanges", "skipChangeCommits"),
    ("readChangeFeed", "ignoreDeletes"),
    ("readChangeFeed", "ignoreChanges"),
    ("readChangeFeed", "skipChangeCommits"),
    ("readChangeFeed", "metadata_table"),
)
