"""Checks that Python finds the packages of this distribution, without importing them."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

from pyspark.sql.datasource import DataSource

_PACKAGES = ("lance_format", "connector")
_HOME = Path(__file__).parents[1]


class HiddenError(ImportError):
    """A module that shadows a package of this distribution.

    It is no `LanceError`, because the package of that class may be the hidden one.
    """


def check_not_hidden() -> None:
    """Check that Python finds the packages beside this one, not others of the same name.

    A file `connector.py` shadows them if it is in the directory of the program, or in that where Spark was started. The
    file is located but not imported, because it may be a program.

    Raises
    ------
    HiddenError
        If another module shadows a package.
    ImportError
        If a package is missing.
    """
    for name in _PACKAGES:
        spec = importlib.util.find_spec(name)
        origin = None if spec is None else spec.origin
        if origin is None:
            raise ImportError(f"pyspark-lance in {_HOME} lacks its package {name!r}; install it again", name=name)
        if Path(origin).resolve().parent.parent != _HOME.resolve():
            raise HiddenError(
                f"{origin} hides the package {name!r} of pyspark-lance in {_HOME}; rename that file, or start Python"
                " and Spark from another directory",
                name=name,
                path=origin,
            )


def unavailable(reason: Exception) -> type[DataSource]:
    """Return a data source `lance` whose reads and writes raise the reason why the real one is unavailable.

    Parameters
    ----------
    reason : Exception
        The exception of the import.
    """
    message = str(reason)
    if not isinstance(reason, HiddenError):
        message = (
            f"the Python of this process, {sys.executable}, cannot load pyspark-lance: {reason}; let Spark use a Python"
            " that can, by the environment variable PYSPARK_PYTHON, which is read when Spark starts"
        )

    class DefaultSource(DataSource):
        def __init__(self, options: dict[str, str]) -> None:  # noqa: ARG002
            raise ImportError(message)

        @classmethod
        def name(cls) -> str:
            return "lance"

    DefaultSource.__module__ = __package__
    DefaultSource.__qualname__ = DefaultSource.__name__  # Pickle looks it up by this name.
    return DefaultSource
