"""The command `pyspark-lance`: tables of every storage, looked at and maintained from a shell.

Only the standard library is imported before a command runs, apart from the packages of the extra `cli`.
"""

from __future__ import annotations

import sys

_MISSING = "pyspark-lance: {} is not installed: run  pip install 'pyspark-lance[cli]'  to get the command line"


def main() -> None:
    """Run the command of the command line, and exit."""
    try:
        import rich  # noqa: F401
        import typer  # noqa: F401
    except ModuleNotFoundError as error:
        print(_MISSING.format(error.name), file=sys.stderr)
        sys.exit(1)
    from lance_cli.app import run  # imports the packages that are looked for above

    sys.exit(run())
