"""The documentation site has every page and every public name, and its snippets are found."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

import lance_format
import pyspark_lance
from connector.options import column_options
from connector.options.options import _PARSERS
from tests.docs.snippets import Snippet, find_snippets, prints

_ROOT = Path(__file__).parents[2]
_DOCS = _ROOT / "docs"


def _pages(nav: Any) -> list[str]:
    """Return the pages of a part of the navigation."""
    if isinstance(nav, str):
        return [nav]
    parts = nav.values() if isinstance(nav, dict) else nav
    return [page for part in parts for page in _pages(part)]


def test_each_page_is_in_the_navigation_once() -> None:
    nav = yaml.safe_load((_ROOT / "mkdocs.yml").read_text())["nav"]
    assert sorted(_pages(nav)) == sorted(str(path.relative_to(_DOCS)) for path in _DOCS.rglob("*.md"))


@pytest.mark.parametrize("package", [lance_format, pyspark_lance])
def test_the_reference_has_each_public_name(package: Any) -> None:
    page = (_DOCS / "reference" / f"{package.__name__}.md").read_text()
    listed = set(re.findall(rf"^::: {package.__name__}\.(\w+)$", page, re.MULTILINE))
    assert set(package.__all__) - {"DefaultSource"} == listed


_PAGE = """
<!-- first:
a = 1
-->
```python
print(a)
```
```text
1
```

<!-- not run: no bucket -->
- ```sql
  SELECT 1
  ```
"""


def test_the_parts_of_a_page_are_found() -> None:
    first, printing, skipped = find_snippets(_PAGE.replace("- ```", "  ```"))
    assert (first.code, first.line) == ("a = 1\n", 3)
    assert (printing.code, printing.expected, printing.line) == ("print(a)\n", "1\n", 6)
    assert (skipped.code, skipped.reason) == ("SELECT 1\n", "no bucket")


def test_snippets_of_a_later_spark_are_not_run() -> None:
    page = "<!-- since Spark {} -->\n```sql\nSELECT 1\n```\n"
    reasons = [find_snippets(page.format(version))[0].reason for version in ("4.0", "99.1")]
    assert reasons == [None, "needs Spark 99.1"]


@pytest.mark.parametrize(
    ("expected", "is_about", "found", "agrees"),
    [
        ("1\n", False, "1", True),
        ("1\n", False, "2", False),
        ("a … c\n", False, "a b c\n", True),
        ("a … c\n", False, "a b d\n", False),
        ("|100 |\n", True, "|99 |\n", True),
        ("|100 |\n", True, "|50 |\n", False),
        ("|100 |\n", True, "|100 |\n|100 |\n", False),
    ],
)
def test_outputs_are_compared(expected: str, is_about: bool, found: str, agrees: bool) -> None:
    assert prints(Snippet("python", "", 1, expected, is_about), found) is agrees


def test_the_pages_on_spark_have_each_option() -> None:
    pages = "".join((_DOCS / name).read_text() for name in ("spark.md", "streaming.md", "sql.md"))
    names = {*_PARSERS, *(f"<column>.{name}" for name in column_options.PROPERTIES)} - {"queryName"}
    assert sorted(name for name in names if f"`{name}`" not in pages) == []
