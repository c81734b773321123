"""The commands as one program: names, help, exit codes and errors."""

from __future__ import annotations

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
    panel : str
        The group of commands that `--help` lists it in.
    examples : tuple of str
        Command lines without the name of the program.
    """

    run: Callable[..., None]
    panel: str
    examples: tuple[str, ...]


_LOOK, _READ, _CHANGE = "Look", "Read rows", "Change"
COMMANDS = {
    "info": Command(info.run, _LOOK, ("info birds.lance", "info s3://zoo/birds.lance -s region=eu-west-1 --json")),
    "history": Command(history.run, _LOOK, ("history birds.lance --limit 5",)),
    "diff": Command(diff.run, _LOOK, ("diff birds.lance 3 4", "diff birds.lance 3 4 --rows 10")),
    "stats": Command(stats.run, _LOOK, ("stats birds.lance",)),
    "files": Command(files.run, _LOOK, ("files birds.lance --limit 20",)),
    "pages": Command(pages.run, _LOOK, ("pages birds.lance/data/….lance --column name",)),
    "explain": Command(explain.run, _LOOK, ('explain birds.lance "id > 5"',)),
    "report": Command(report.run, _LOOK, ("report birds.lance -o report.html --filter \"name = 'owl'\"",)),
    "tags": Command(tags.run, _LOOK, ("tags birds.lance", "tags birds.lance --create good --version 3")),
    "branches": Command(branches.run, _LOOK, ("branches birds.lance",)),
    "verify": Command(verify.run, _LOOK, ("verify birds.lance",)),
    "head": Command(head.run, _READ, ("head birds.lance --columns id,name",)),
    "sample": Command(sample.run, _READ, ("sample birds.lance -n 5",)),
    "query": Command(query.run, _READ, ("query birds.lance \"name LIKE 'o%'\" --columns id,name",)),
    "optimize": Command(optimize.run, _CHANGE, ("optimize birds.lance", "optimize birds.lance --order-by day")),
    "vacuum": Command(vacuum.run, _CHANGE, ("vacuum birds.lance --older-than 7d --dry-run",)),
    "restore": Command(restore.run, _CHANGE, ("restore birds.lance 3",)),
    "warm": Command(warm.run, _CHANGE, ("warm",)),
}


def build() -> typer.Typer:
    """Return the program with all commands."""
    app = typer.Typer(
        name=_NAME,
        help=_HELP,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        rich_markup_mode="rich",
    )
    for name, command in COMMANDS.items():
        lines = [f"{_NAME} {example}" for example in command.examples]
        epilog = "\n\n".join(["Examples:" if len(lines) > 1 else "Example:", *(f"  {line}" for line in lines)])
        app.command(name, rich_help_panel=command.panel, epilog=epilog, no_args_is_help=name != "warm")(command.run)
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
