"""The errors of the library: one root, one class per cause.

Every message says what happened, to what, and what to do about it. Classes that callers may catch without knowing this
library also derive from the fitting builtin.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Self


class LanceError(Exception):
    """Root of every error that this library raises on purpose."""


class InvalidInputError(LanceError, ValueError):
    """An invalid argument, option or path, independent of the table's content."""


class RepeatedRowError(InvalidInputError):
    """A row that one change deletes or replaces more than once."""


class SchemaMismatchError(LanceError, ValueError, OSError):
    """Data whose schema does not fit the table or file that it is written to; an OSError in pylance."""


class DatasetNotFoundError(LanceError, FileNotFoundError, ValueError):
    """A missing table, or a missing file of a table; a ValueError in pylance."""


class DatasetExistsError(LanceError, FileExistsError):
    """An existing table at the place of one to be created."""


class VersionNotFoundError(LanceError, ValueError):
    """A missing version, tag or branch of a table."""


class IndexNotFoundError(InvalidInputError, KeyError):
    """A missing index of a table; a KeyError in pylance."""

    __str__ = Exception.__str__  # KeyError's own puts the message into quotes.


class CorruptFileError(LanceError, ValueError):
    """Bytes of a file that contradict the format.

    Parameters
    ----------
    what : str
        Found and expected content.
    path : str, optional
        The file.
    offset : int, optional
        Byte offset in the file.
    """

    def __init__(self, what: str, *, path: str | None = None, offset: int | None = None) -> None:
        self.what = what
        self.path = path
        self.offset = offset
        super().__init__(what, path, offset)

    def __str__(self) -> str:
        where = "" if self.path is None else f"{self.path}: "
        at = "" if self.offset is None else f" (at byte {self.offset})"
        return f"{where}{self.what}{at}"

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild_corrupt_file_error, (type(self), self.what, self.path, self.offset)

    def retold(self, what: str, *, path: str | None = None) -> Self:
        """Return an error of the same kind, about the same file and byte, in other words.

        Parameters
        ----------
        what : str
        path : str, optional
            The file, if the error does not name it.
        """
        return type(self)(what, path=path or self.path, offset=self.offset)


def _rebuild_corrupt_file_error(
    kind: type[CorruptFileError], what: str, path: str | None, offset: int | None
) -> CorruptFileError:
    return kind(what, path=path, offset=offset)


class ChecksumError(CorruptFileError):
    """Bytes of a file that are not those that were written."""


class NotSupportedError(LanceError, NotImplementedError):
    """A valid feature that is not implemented; the message names it."""


class StorageError(LanceError, OSError):
    """A failure of the storage: permissions, a full disk, a broken connection."""


class CommitError(LanceError, RuntimeError):
    """A failed commit. The table is unchanged unless a subclass says otherwise."""


class CommitConflictError(CommitError, OSError):
    """A conflicting commit by another writer; an OSError in pylance."""


class RetryableCommitConflictError(CommitConflictError):
    """A conflicting commit by another writer, after which the same operation succeeds on the latest version."""


class CommitStateUnknownError(CommitError):
    """A failure of the storage that leaves open whether the commit landed. Nothing was deleted."""


@contextlib.contextmanager
def local_file_errors(action: str, path: object) -> Iterator[None]:
    """Convert errors of a local file of the user.

    Raises
    ------
    StorageError
        If the system refuses to read or write it.
    """
    try:
        yield
    except LanceError:
        raise
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise StorageError(
            f"cannot {action} the local file {str(path)!r}: {reason}; check its directory, or choose another path"
        ) from error
