"""Kinds of the files below the directory of a table, by their names."""

from __future__ import annotations

import enum

from lance_format.lazy_dataclasses import dataclass
from lance_format.table.format.layout import (
    DATA_DIRECTORY,
    DELETIONS_DIRECTORY,
    INDICES_DIRECTORY,
    REFS_DIRECTORY,
    TRANSACTIONS_DIRECTORY,
    VERSIONS_DIRECTORY,
)

_DATA_SUFFIX = ".lance"
_SUFFIXES = {
    DATA_DIRECTORY: (_DATA_SUFFIX,),
    DELETIONS_DIRECTORY: (".arrow", ".bin"),
    TRANSACTIONS_DIRECTORY: (".txn",),
}
_SIDECAR_SUFFIX = ".blob"
_TEMPORARY = ".tmp"


class FileKind(enum.Enum):
    """Kind of a file of a table."""

    DATA = "data"
    DELETION = "deletion"
    TRANSACTION = "transaction"
    INDEX = "index"
    TEMPORARY = "temporary"


_KINDS = {
    DATA_DIRECTORY: FileKind.DATA,
    DELETIONS_DIRECTORY: FileKind.DELETION,
    TRANSACTIONS_DIRECTORY: FileKind.TRANSACTION,
}
_DIRECTORIES = frozenset({*_KINDS, INDICES_DIRECTORY, VERSIONS_DIRECTORY, REFS_DIRECTORY})


@dataclass(frozen=True, slots=True)
class OwnFile:
    """A file that the table layer made, other than manifests and references.

    Parameters
    ----------
    kind : FileKind
    path : str
        Relative to the table, or its branch.
    owner : str
        The path that versions have for the file: the file itself, its data file, or the directory of its index; also
        relative.
    """

    kind: FileKind
    path: str
    owner: str


def classify(path: str) -> OwnFile | None:
    """Return the kind of a file by its path relative to the table; None if a cleanup must never delete it."""
    directory, *rest = path.split("/")
    if not rest or directory not in _DIRECTORIES:
        return None
    name = rest[-1]
    if directory == INDICES_DIRECTORY:
        return OwnFile(FileKind.INDEX, path, f"{directory}/{rest[0]}") if len(rest) > 1 else None
    if name.startswith(_TEMPORARY):
        return OwnFile(FileKind.TEMPORARY, path, path)
    if directory == DATA_DIRECTORY and len(rest) == 2 and name.endswith(_SIDECAR_SUFFIX):
        return OwnFile(FileKind.DATA, path, f"{directory}/{rest[0]}{_DATA_SUFFIX}")
    if len(rest) == 1 and name.endswith(_SUFFIXES.get(directory, ())):
        return OwnFile(_KINDS[directory], path, path)
    return None
