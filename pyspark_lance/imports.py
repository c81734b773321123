"""Checks that a Python finds the packages of this distribution, without importing what is taken for them."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

from pyspark.sql.datasource import DataSource

_PACKAGES = ("lance_format", "connector")
_HOME = Path(__file__).parents[1]


class HiddenError(ImportError):
    """Another module goes before a package of this distribution.

    It is no `LanceError`, because the package that has those may be the hidden one.
    """


def check_not_hidden() -> None:
    """Check that the packages behind this one are those beside it.

    A file `connector.py` in the directory of the program, or in that in which Spark was started, goes before them. It
    is looked for and not imported: it may be a program.

    Raises
    ------
    HiddenError
        If a package is another one than that beside this one.
    ImportError
        If it is not there.
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
    """Return a data source `lance` that says why there is none, when something is read or written.

    Parameters
    ----------
    reason : Exception
        What went wrong when it was to be imported.
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
    DefaultSource.__qualname__ = DefaultSource.__name__  # by which it is pickled
    return DefaultSource
