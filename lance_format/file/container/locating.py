"""Adding to an error the file and the column that it is about."""

from __future__ import annotations

from lance_format.errors import CorruptFileError, NotSupportedError


def locate(error: CorruptFileError | NotSupportedError, path: str, column: str | None = None) -> Exception:
    """Add the path of the file and the column to an error, and return it.

    Parameters
    ----------
    error : CorruptFileError or NotSupportedError
    path : str
    column : str or None
    """
    within = "" if column is None else f"column {column!r}: "
    if isinstance(error, CorruptFileError):
        return error if error.path else error.retold(f"{within}{error.what}", path=path)
    return NotSupportedError(f"{path}: {within}{error}")


class Locating:
    """A context that adds the file and the column to errors that do not name them.

    It is a class because a generator would cost more than decoding a small page.

    Parameters
    ----------
    path : str
    column : str
    """

    __slots__ = ("_column", "_path")

    def __init__(self, path: str, column: str) -> None:
        self._path = path
        self._column = column

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, CorruptFileError | NotSupportedError):
            raise locate(error, self._path, self._column) from error
