"""Batch markers: for each application that numbers its batches, the last one that a table has.

An application that may send a batch again, such as a stream after a crash, needs to know whether the table has it. The
version that a batch makes therefore says so in its configuration, which is a part of the manifest:

```
lance.txn.<application> = <number of the batch> <time of the commit, ISO 8601 in UTC>
```

The latest version alone answers the question, however many versions other writers have made since. They copy the
entries, other libraries too; a restore takes them back together with the rows. The transaction has the marker among its
properties, so that a version is a function of the one before it and its transaction.

Each commit with a marker removes the entries of applications that sent nothing for the time that the entry
`lance.txn_retention` of the configuration says: 90 days by default, `never` keeps them all.
"""

from __future__ import annotations

import dataclasses
import datetime
import re
from collections.abc import Mapping
from dataclasses import field
from typing import ClassVar, Self

from lance_format.arguments import checked
from lance_format.errors import CommitConflictError, InvalidInputError
from lance_format.lazy_dataclasses import dataclass
from lance_format.table.format.duration import parse_duration
from lance_format.table.format.manifest import Manifest

MARKER_PREFIX = "lance.txn."
RETENTION_KEY = "lance.txn_retention"
_RETENTION = "90days"
_APPLICATION = "lance.txn.app_id"
_BATCH = "lance.txn.version"
_PREVIOUS = "lance.txn.previous"
_TIME = "lance.txn.time"
_LONGEST_NAME = 512
_LARGEST = 2**63 - 1
_ENTRY = re.compile(r"([0-9]{1,19})(?: (\S+))?")


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC).replace(microsecond=0)


@dataclass(frozen=True, slots=True)
class BatchMarker:
    """A batch of an application, to be committed once. Made by `plan`.

    Parameters
    ----------
    application : str
        Identifies who numbers the batches.
    batch : int
        Number of the batch. Later batches have higher numbers.
    previous : int, optional
        The batch that the table had last when this one was planned.
    time : datetime.datetime
        When it was planned.

    Raises
    ------
    InvalidInputError
        If the application has no name or one of more than 512 characters, or the number is out of range.
    """

    prefix: ClassVar[str] = MARKER_PREFIX
    """Prefix of the names of the entries of all applications."""
    application: str
    batch: int
    previous: int | None = None
    time: datetime.datetime = field(default_factory=_now)

    def __post_init__(self) -> None:
        if not 0 < len(self.application) <= _LONGEST_NAME:
            raise InvalidInputError(
                f"an application that numbers its batches needs a name of 1 to {_LONGEST_NAME} characters, not"
                f" {self.application[:100]!r}"
            )
        if not 0 <= self.batch <= _LARGEST:
            raise InvalidInputError(f"the number of a batch is {self.batch}; a whole number from 0 to 2**63 - 1 is due")

    @classmethod
    def plan(cls, config: Mapping[str, str], application: str, batch: int) -> Self:
        """Plan to commit a batch.

        Parameters
        ----------
        config : mapping of str to str
            The configuration of the version that the batch is planned on; empty if there is no table.
        application : str
        batch : int
        """
        return cls(application, batch, last_batches(config).get(application))

    @property
    def is_committed(self) -> bool:
        """True if the table had this batch, or a later one, when it was planned."""
        return self.previous is not None and self.previous >= self.batch

    @property
    def properties(self) -> dict[str, str]:
        """The properties of the transaction that commits the batch."""
        found = {_APPLICATION: self.application, _BATCH: str(self.batch), _TIME: self.time.isoformat()}
        return found if self.previous is None else {**found, _PREVIOUS: str(self.previous)}

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> Self | None:
        """Return the marker of a transaction with some properties; None if it has none.

        Raises
        ------
        InvalidInputError
            If the properties are malformed.
        """
        if _APPLICATION not in properties:
            return None
        try:
            previous = properties.get(_PREVIOUS)
            return cls(
                properties[_APPLICATION],
                int(properties[_BATCH]),
                None if previous is None else int(previous),
                datetime.datetime.fromisoformat(properties[_TIME]),
            )
        except (KeyError, ValueError) as error:
            raise InvalidInputError(
                f"the properties {_APPLICATION}, {_BATCH} and {_TIME} of a transaction do not mark a batch: {error}"
            ) from error

    def check(self, current: Manifest) -> None:
        """Check that no one has committed this or a later batch since it was planned.

        Parameters
        ----------
        current : Manifest
            The version that the commit would follow.

        Raises
        ------
        CommitConflictError
            If someone has.
        """
        found = last_batches(current.config).get(self.application)
        if found is not None and (self.previous is None or found > self.previous):
            raise CommitConflictError(
                f"another writer committed batch {found} of {self.application!r} while this one wrote batch"
                f" {self.batch}; nothing was changed: only one writer may send the batches of an application at a time."
                " Stop the other one, or start this one again, which skips what the table has"
            )

    def mark(self, made: Manifest) -> Manifest:
        """Return a version that has this batch as the last one of its application."""
        kept = {key: value for key, value in made.config.items() if not self._is_expired(key, value, made.config)}
        entry = f"{self.batch} {self.time.isoformat()}"
        return dataclasses.replace(made, config={**kept, MARKER_PREFIX + self.application: entry})

    def _is_expired(self, key: str, value: str, config: Mapping[str, str]) -> bool:
        entry = _ENTRY.fullmatch(value) if key.startswith(MARKER_PREFIX) else None
        if entry is None or entry[2] is None:
            return False
        try:
            return self.time - datetime.datetime.fromisoformat(entry[2]) > _retention(config)
        except (ValueError, TypeError, InvalidInputError):
            return False


def _retention(config: Mapping[str, str]) -> datetime.timedelta:
    given = config.get(RETENTION_KEY, _RETENTION)
    return datetime.timedelta.max if given == "never" else parse_duration(given)


@checked
def last_batches(config: Mapping[str, str]) -> dict[str, int]:
    """Return the last batch of each application.

    Parameters
    ----------
    config : mapping of str to str
        The configuration of a version.

    Raises
    ------
    InvalidInputError
        If an entry is malformed.
    """
    found = {}
    for key, value in config.items():
        if key.startswith(MARKER_PREFIX):
            entry = _ENTRY.fullmatch(value)
            if entry is None:
                raise InvalidInputError(
                    f"the entry {key!r} of the table's configuration is {value!r}; it starts with the number of the"
                    " last batch of an application. Correct it, or remove it if no writer sends these batches again"
                )
            found[key.removeprefix(MARKER_PREFIX)] = int(entry[1])
    return found
