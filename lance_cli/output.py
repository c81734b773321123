"""Results of commands: tables of text for people, and JSON for programs."""

from __future__ import annotations

import base64
import datetime
import decimal
import io
import json
import math
import os
import sys
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lance_format.lazy_dataclasses import dataclass

_MAX_WIDTH = 60
_ELLIPSIS = "…"
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_UNLIMITED_WIDTH = 1 << 20
_PIPE_CLOSED = 141
"""What a shell reports for a program that SIGPIPE ended."""
_SECRET_WORDS = ("secret", "password", "token", "credential", "access_key", "sas", "private_key")


class Right(str):
    """The heading of a column whose values are aligned to the right, such as numbers."""

    __slots__ = ()


def headings(*names: str) -> list[str]:
    """Return headings; those that start with `#` become `Right`, without it."""
    return [Right(name[1:]) if name.startswith("#") else name for name in names]


@dataclass(frozen=True, slots=True)
class Grid:
    """A table to print.

    Parameters
    ----------
    columns : sequence of str
        The headings.
    rows : sequence of sequence
        Values; see `shown`.
    title : str
    note : str
        A line below the table.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    title: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a command.

    Parameters
    ----------
    facts : mapping
        The JSON object for programs. Keys tell units, such as `size_bytes`.
    grids : sequence of Grid
        The tables for people.
    text : str
        A line before the tables.
    max_width : int, optional
        Maximum width of a value in a table; None for no limit.
    """

    facts: Mapping[str, Any]
    grids: Sequence[Grid] = field(default_factory=tuple)
    text: str = ""
    max_width: int | None = _MAX_WIDTH


def show(answer: Answer, *, as_json: bool) -> None:
    """Print a result.

    Raises
    ------
    typer.Exit
        If the reader of a pipe, such as `head`, has closed it.
    """
    try:
        _print(answer, as_json=as_json)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes it once more at the end.
        raise typer.Exit(_PIPE_CLOSED) from None


def wants_bar() -> bool:
    """Return whether to show the progress of long commands: people see both outputs."""
    return sys.stdout.isatty() and sys.stderr.isatty()


def _print(answer: Answer, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(to_json(answer.facts), indent=2, ensure_ascii=False, allow_nan=False))
        return
    if sys.stdout.isatty():
        _print_grids(Console(highlight=False), answer)
        return
    text = io.StringIO()  # without the width of a terminal, and without the spaces that fill columns
    _print_grids(Console(file=text, width=_UNLIMITED_WIDTH, highlight=False), answer)
    print("\n".join(line.rstrip() for line in text.getvalue().splitlines()))


def _print_grids(console: Console, answer: Answer) -> None:
    if answer.text:
        console.print(Text(printable(answer.text)), soft_wrap=True)
    for position, grid in enumerate(answer.grids):
        if position or answer.text:
            console.print()
        _print_grid(console, grid, answer.max_width)


def _print_grid(console: Console, grid: Grid, max_width: int | None) -> None:
    if grid.title:
        console.print(Text(printable(grid.title), style="bold"), soft_wrap=True)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=bool(grid.columns), header_style="bold")
    for name in grid.columns or [""] * len(grid.rows[0] if grid.rows else ()):
        table.add_column(
            Text(printable(name)),
            justify="right" if isinstance(name, Right) else "left",
            no_wrap=max_width is not None,
            overflow="ellipsis" if max_width is not None else "fold",
        )
    for row in grid.rows:
        table.add_row(*(Text(shorten(shown(value), max_width)) for value in row))
    console.print(table)
    if grid.note:
        console.print(Text(printable(grid.note), style="dim"), soft_wrap=True)


def shown(value: Any) -> str:
    """Return a value as text for people, on one line."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, datetime.datetime):
        return value.astimezone().isoformat(" ", "seconds") if value.tzinfo else value.isoformat(" ")
    if isinstance(value, bytes):
        return f"{len(value)} bytes"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(shown, value)) if value else "-"
    return printable(str(value))


def shown_value(value: Any) -> str:
    """Return a value of a row as text for people, on one line: nulls and nested values are recognisable."""
    if value is None:
        return "null"
    if isinstance(value, bytes):
        return f"0x{value[:32].hex()}{_ELLIPSIS if len(value) > 32 else ''} ({len(value)} bytes)"
    if isinstance(value, (list, tuple, dict)):
        return printable(json.dumps(to_json(value), ensure_ascii=False))
    if isinstance(value, float):
        return repr(value)
    return printable(str(value))


def printable(text: str) -> str:
    """Replace line breaks and control characters, which could disturb a terminal."""
    return "".join(c if unicodedata.category(c) not in ("Cc", "Cf", "Cs") else f"\\x{ord(c):02x}" for c in text)


def shorten(text: str, max_width: int | None) -> str:
    """Cut a text that is wider than allowed."""
    return text if max_width is None or len(text) <= max_width else text[: max_width - 1] + _ELLIPSIS


def bytes_text(size: int | None) -> str:
    """Return a number of bytes in a fitting unit."""
    if size is None:
        return "-"
    value = float(size)
    for unit in _UNITS:
        if value < 1024 or unit == _UNITS[-1]:
            break
        value /= 1024
    return f"{size} B" if unit == "B" else f"{value:.1f} {unit}"


def count_text(count: int | None) -> str:
    """Return a number with separators for thousands."""
    return "-" if count is None else f"{count:,}"


def masked(entries: Mapping[str, str]) -> dict[str, str]:
    """Return entries with the values of those that are named like secrets replaced."""
    return {
        key: "(hidden)" if any(word in key.lower() for word in _SECRET_WORDS) else value
        for key, value in entries.items()
    }


def to_json(value: Any) -> Any:
    """Return a value as JSON has it.

    Times are ISO 8601, in UTC if they have a zone. Bytes are base64. Decimals, other types, and numbers that JSON
    lacks, such as NaN, are texts.
    """
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, datetime.datetime):
        return (value.astimezone(datetime.UTC) if value.tzinfo else value).isoformat()
    if isinstance(value, (datetime.date, datetime.time, decimal.Decimal)):
        return str(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(value).decode()
    if isinstance(value, Iterable):
        return [to_json(item) for item in value]
    return str(value)
