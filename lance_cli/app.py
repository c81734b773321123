"""The commands as one program: names, help, exit codes and errors."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable

import typer

from lance_cli.commands import (
    branches,
    diff,
    explain,
    files,
    head,
    history,
    info,
    optimize,
    pages,
    query,
    report,
    restore,
    sample,
    stats,
    tags,
    vacuum,
    verify,
    warm,
)
from lance_format import LanceError
from lance_format.lazy_dataclasses import dataclass

_HELP = (
    "Look at Lance tables, and maintain them.\n\n"
    "Tables are directories, or URIs such as s3://bucket/table. --json prints JSON for programs. The exit code is 0"
    " after success, 1 after an error, 2 after a wrong command line, and 141 if the reader of a pipe has stopped."
)
_NAME = "pyspark-lance"


@dataclass(frozen=True, slots=True)
class Command:
    """A command.

    Parameters
    ----------
    run : callable
        Its docstring is the help, its parameters are the arguments.
    examples : tuple of str
        Command lines without the name of the program.
    """

    run: Callable[..., None]
    examples: tuple[str, ...]


COMMANDS = {
    "info": Command(info.run, ("info birds.lance", "info s3://zoo/birds.lance -s region=eu-west-1 --json")),
    "history": Command(history.run, ("history birds.lance --limit 5",)),
    "diff": Command(diff.run, ("diff birds.lance 3 4", "diff birds.lance 3 4 --rows 10")),
    "stats": Command(stats.run, ("stats birds.lance",)),
    "files": Command(files.run, ("files birds.lance --limit 20",)),
    "pages": Command(pages.run, ("pages birds.lance/data/….lance --column name",)),
    "explain": Command(explain.run, ('explain birds.lance "id > 5"',)),
    "report": Command(report.run, ("report birds.lance -o report.html --filter \"name = 'owl'\"",)),
    "tags": Command(tags.run, ("tags birds.lance", "tags birds.lance --create good --version 3")),
    "branches": Command(branches.run, ("branches birds.lance",)),
    "verify": Command(verify.run, ("verify birds.lance",)),
    "head": Command(head.run, ("head birds.lance --columns id,name",)),
    "sample": Command(sample.run, ("sample birds.lance -n 5",)),
    "query": Command(query.run, ("query birds.lance \"name LIKE 'o%'\" --columns id,name",)),
    "optimize": Command(optimize.run, ("optimize birds.lance", "optimize birds.lance --order-by day")),
    "vacuum": Command(vacuum.run, ("vacuum birds.lance --older-than 7d --dry-run",)),
    "restore": Command(restore.run, ("restore birds.lance 3",)),
    "warm": Command(warm.run, ("warm",)),
}


def build() -> typer.Typer:
    """Return the program with all commands."""
    app = typer.Typer(
        name=_NAME,
        help=_HELP,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
        rich_markup_mode=None,  # It takes as long to import as everything else.
    )
    for name, command in COMMANDS.items():
        lines = [f"{_NAME} {example}" for example in command.examples]
        epilog = "\n\n".join(["Examples:" if len(lines) > 1 else "Example:", *(f"  {line}" for line in lines)])
        short_help = re.split("[.:;]", str(command.run.__doc__), maxsplit=1)[0]
        app.command(name, short_help=short_help, epilog=epilog, no_args_is_help=name != "warm")(command.run)
    return app


def run(arguments: list[str] | None = None) -> int:
    """Run a command line, and return the exit code.

    Parameters
    ----------
    arguments : list of str, optional
        By default those of the process.
    """
    try:
        build()(args=arguments, prog_name=_NAME)
    except LanceError as error:
        print(f"{_NAME}: {' '.join(str(error).split())}", file=sys.stderr)
        return 1
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0
