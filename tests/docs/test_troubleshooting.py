"""Each message that docs/troubleshooting.md quotes occurs in the sources, or in those of Spark."""

from __future__ import annotations

import ast
import functools
import re
import zipfile
from pathlib import Path

import pyspark
import pytest

_ROOT = Path(__file__).parents[2]
_PACKAGES = ("lance_format", "connector", "pyspark_lance")
_GAP = "\0"
"""Stands for a value within a message."""


def _quoted() -> list[str]:
    text = (_ROOT / "docs" / "troubleshooting.md").read_text()
    return [
        quote for title in re.findall(r"^### (.+)$", text, re.MULTILINE) for quote in re.findall(r"`([^`]+)`", title)
    ]


def _template(node: ast.JoinedStr) -> str:
    return "".join(part.value if isinstance(part, ast.Constant) else _GAP for part in node.values)


@functools.cache
def _messages() -> str:
    """Return all texts of the sources, one per line."""
    found: list[str] = []
    for package in _PACKAGES:
        for path in sorted((_ROOT / package).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.JoinedStr):
                    found.append(_template(node))
                elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                    found.append(node.value)
    return "\n".join(text.replace("\n", " ") for text in found)


@functools.cache
def _conditions_of_spark() -> str:
    home = Path(pyspark.__file__).parent
    (jar,) = (home / "jars").glob("spark-common-utils_*.jar")
    with zipfile.ZipFile(jar) as opened:
        of_java = opened.read("error/error-conditions.json").decode()
    return of_java + (home / "errors" / "error-conditions.json").read_text()


def _occurs(quote: str) -> bool:
    """Return whether the sources have a text with the parts of a message, and values or text between them."""
    pattern = "[^\n]*".join(re.escape(part.strip(" ")) for part in quote.split("…"))
    return re.search(pattern, _messages()) is not None


def _occurs_in_spark(quote: str) -> bool:
    condition = re.fullmatch(r"\[([A-Z_]+)(?:\.([A-Z_]+))?\]", quote)
    if condition:
        return all(re.search(f'"{name}" ?: {{', _conditions_of_spark()) for name in condition.groups() if name)
    text = re.sub(r"<\w+>", "…", _conditions_of_spark()).replace('\\"', '"')
    return quote.replace(": lance", ": …") in text


@pytest.mark.slow
@pytest.mark.parametrize("quote", _quoted())
def test_a_message_occurs(quote: str) -> None:
    assert _occurs(quote) or _occurs_in_spark(quote)


def test_words_that_nobody_says_do_not_occur() -> None:
    assert not _occurs("there is no Parquet table at …")
    assert not _occurs_in_spark("[NO_SUCH_CONDITION]")
    assert len(_quoted()) > 30
