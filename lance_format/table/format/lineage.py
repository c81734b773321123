"""Memory of a version: the transactions that made the versions before it.

A cleanup frees the name of a manifest. A delayed writer may then create a manifest of that name, as if no other writer
had been faster: a stray, which no later version follows. The memory of later versions distinguishes a stray from the
version of its number in the history. Each version of this library names up to 128 ancestors by digests of the uuids of
their transactions, the latest first:

    version - 1: 8 bytes | version - 2: 8 bytes | …

Eight zeros stand for a version without a known transaction. Other libraries ignore the field, and leave it out of
the versions that they make: the memory begins again after them.
"""

from __future__ import annotations

import hashlib
from typing import Protocol

from lance_format.table.format.layout import parse_transaction_name

_MAX_ANCESTORS = 128
_DIGEST_BYTES = 8
_UNKNOWN = bytes(_DIGEST_BYTES)


class Version(Protocol):
    """A version as far as its ancestors go; see `Manifest`."""

    @property
    def version(self) -> int:
        """Its number."""

    @property
    def transaction_file(self) -> str:
        """The name of the transaction that made it."""

    @property
    def ancestors(self) -> bytes:
        """Digests of the transactions that made the versions before it."""


def identify(uuid: str) -> bytes:
    """Return the digest of a uuid, which versions keep to remember its transaction."""
    return hashlib.blake2b(uuid.encode(), digest_size=_DIGEST_BYTES).digest()


def remember(previous: Version) -> bytes:
    """Return the memory of the version after a version."""
    uuid = parse_transaction_name(previous.transaction_file)
    maker = _UNKNOWN if uuid is None else identify(uuid)
    known = maker + previous.ancestors
    return known[: _DIGEST_BYTES * _MAX_ANCESTORS] if known != _UNKNOWN else b""


def recall(later: Version, version: int) -> bytes | None:
    """Return which transaction made a version, as a later one remembers it, or None if that does not know."""
    position = (later.version - 1 - version) * _DIGEST_BYTES
    digest = later.ancestors[position : position + _DIGEST_BYTES] if position >= 0 else b""
    return digest if len(digest) == _DIGEST_BYTES and digest != _UNKNOWN else None


def is_ancestor(later: Version, version: int, uuid: str) -> bool | None:
    """Return whether the transaction of a uuid made an ancestor of a version, or None if that is not remembered.

    Parameters
    ----------
    later : Version
        The version that remembers.
    version : int
        The version number of the ancestor.
    uuid : str
        The uuid of the transaction.
    """
    digest = recall(later, version)
    return None if digest is None else digest == identify(uuid)


def maker_of(made: Version) -> str:
    """Return the uuid of the transaction that made a version; empty if it is unknown."""
    return parse_transaction_name(made.transaction_file) or ""
