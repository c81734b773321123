"""The errors of the library: one root, one class a cause.

Every message says what happened, to what, and what to do about it. Classes that callers may want to catch
without knowing this library also derive from the fitting builtin.
"""

from __future__ import annotations


class LanceError(Exception):
    """Root of every error that this library raises on purpose."""


class InvalidInputError(LanceError, ValueError):
    """An argument, an option or a path that makes no sense, whatever the table holds."""


class SchemaMismatchError(LanceError, ValueError, OSError):
    """Data whose schema does not fit the table or file that it is written to; an OSError in pylance."""


class DatasetNotFoundError(LanceError, FileNotFoundError, ValueError):
    """There is no table at the given location, or a file that the table names is gone; a ValueError in pylance."""


class DatasetExistsError(LanceError, FileExistsError):
    """A table is to be created where there is one."""


class VersionNotFoundError(LanceError, ValueError):
    """The table has no such version."""


class IndexNotFoundError(InvalidInputError, KeyError):
    """The table has no index of that name; a KeyError in pylance."""

    __str__ = Exception.__str__  # That of KeyError puts the message into quotes.


class CorruptFileError(LanceError, ValueError):
    """The bytes of a file contradict the format.

    Parameters
    ----------
    what : str
        What was found and what was expected.
    path : str, optional
        The file.
    offset : int, optional
        Where in the file, in bytes from its start.
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
        return _rebuild_corrupt_file_error, (self.what, self.path, self.offset)


def _rebuild_corrupt_file_error(what: str, path: str | None, offset: int | None) -> CorruptFileError:
    return CorruptFileError(what, path=path, offset=offset)


class NotSupportedError(LanceError, NotImplementedError):
    """Valid, but not implemented here; the message names it."""


class StorageError(LanceError, OSError):
    """The storage refused or failed: permissions, a full disk, a broken connection."""


class CommitError(LanceError, RuntimeError):
    """A commit failed; the table is unchanged unless a subclass says otherwise."""


class CommitConflictError(CommitError, OSError):
    """Another writer committed a change that this one cannot follow; an OSError in pylance."""


class RetryableCommitConflictError(CommitConflictError):
    """Another writer came first; the same operation succeeds when it is run again on the latest version."""


class CommitStateUnknownError(CommitError):
    """The storage failed in such a way that the commit may or may not have landed. Nothing was deleted."""
