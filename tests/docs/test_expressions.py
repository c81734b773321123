"""The page on expressions names every function that there is."""

from __future__ import annotations

import re
from pathlib import Path

from lance_format.expressions.functions.registry import FUNCTIONS

_PAGE = Path(__file__).parents[2] / "docs" / "expressions.md"
_PARSED = {"is_valid", "get_field", "now", "current_timestamp", "current_date", "today"}
"""Functions that the parser turns into nodes or constants."""


def test_the_page_lists_the_functions() -> None:
    table = _PAGE.read_text().split("## Functions")[1].split("## ")[0]
    listed = set(re.findall(r"`(\w+)`", table))
    assert listed == (set(FUNCTIONS) - {"||"}) | _PARSED
