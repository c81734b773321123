"""What the documentation site needs to know of the code: examples in docstrings are code, and dataclasses are such."""

from __future__ import annotations

import re
from typing import Any

import griffe

_EXAMPLE = re.compile(r"(?:^>>> .*\n?(?:^(?!>>> )(?!\n).+\n?)*)+", re.MULTILINE)
_FLAG = re.compile(r"  # doctest: .*$", re.MULTILINE)


class Doctests(griffe.Extension):
    """An extension of the reader of docstrings, which `mkdocs.yml` names."""

    def on_module_members(self, *, mod: griffe.Module, **_others: Any) -> None:
        """Name the decorator of dataclasses as the reader knows it."""
        found = mod.members.get("dataclass")
        if isinstance(found, griffe.Alias) and found.target_path == "lance_format.lazy_dataclasses.dataclass":
            found.target_path = mod.imports["dataclass"] = "dataclasses.dataclass"

    def on_object(self, *, obj: griffe.Object, **_others: Any) -> None:
        """Fence the lines from a prompt to the next empty line."""
        if obj.docstring is not None:
            obj.docstring.value = _EXAMPLE.sub(_fenced, obj.docstring.value)


def _fenced(example: re.Match[str]) -> str:
    return f"```pycon\n{_FLAG.sub('', example[0]).rstrip()}\n```\n"
