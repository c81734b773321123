"""Arguments and options that several commands share, and the tables that they name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

import lance_format

if TYPE_CHECKING:
    from lance_format import LanceDataset

TablePath = Annotated[str, typer.Argument(metavar="PATH", help="Directory or URI of the table.", show_default=False)]
StorageOptions: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--storage-option",
        "-s",
        metavar="KEY=VALUE",
        help="Option of the storage; may be repeated. Environment variables keep secrets out of the list of processes.",
        show_default=False,
    ),
]
Version: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--version",
        "-v",
        metavar="VERSION",
        help="A version, a tag, BRANCH: or BRANCH:VERSION. By default the latest version.",
        show_default=False,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
Columns: TypeAlias = Annotated[
    str | None,
    typer.Option("--columns", "-c", metavar="A,B", help="Columns, separated by commas.", show_default=False),
]
Limit = Annotated[int, typer.Option("--limit", "-n", min=0, help="Maximum number of rows to print.")]
Wide = Annotated[bool, typer.Option("--wide", help="Print values in full.")]


def open_table(path: str, storage_options: Sequence[str] | None, version: str | None = None) -> LanceDataset:
    """Open the table that a command names.

    Parameters
    ----------
    path : str
    storage_options : sequence of str, optional
        Each as `key=value`.
    version : str, optional
        The number of a version, a tag, or a branch and a colon, with or without a number.
    """
    reference = None if version is None else _parse_version(version)
    return lance_format.dataset(path, reference, storage_options=parse_storage_options(storage_options))


def parse_storage_options(given: Sequence[str] | None) -> dict[str, str]:
    """Return options of a storage by their names.

    Raises
    ------
    typer.BadParameter
        If one is not of the form `key=value`. The message does not show it: it may be a secret.
    """
    found: dict[str, str] = {}
    for number, text in enumerate(given or (), start=1):
        key, sign, value = text.partition("=")
        if not sign or not key:
            raise typer.BadParameter(f"storage option {number} is not of the form KEY=VALUE")
        found[key] = value
    return found


def split_names(text: str | None) -> list[str] | None:
    """Return the names of a list with commas, or None if there is no list."""
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def _parse_version(text: str) -> int | str | tuple[str | None, int | None]:
    branch, sign, number = text.rpartition(":")
    if not sign:
        return int(text) if text.isdecimal() else text
    if number and not number.isdecimal():
        raise typer.BadParameter(f"{text!r} names no version: a number is needed after the colon")
    return branch or None, int(number) if number else None
