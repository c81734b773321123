"""Command lines, run in this process."""

from __future__ import annotations

import contextlib
import io
import json
from dataclasses import dataclass
from typing import Any

from lance_cli.app import run


@dataclass(frozen=True)
class Ended:
    """A command line that has ended: its exit code, and what it printed."""

    code: int
    out: str
    err: str


def execute(*arguments: object) -> Ended:
    """Run a command line."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run([str(argument) for argument in arguments])
    return Ended(code, out.getvalue(), err.getvalue())


def text_of(*arguments: object) -> str:
    """Run a command line that succeeds, and return what it prints for people."""
    ended = execute(*arguments)
    assert (ended.code, ended.err) == (0, "")
    return ended.out


def json_of(*arguments: object) -> Any:
    """Run a command line that succeeds, and return the JSON that it prints."""
    return json.loads(text_of(*arguments, "--json"))
