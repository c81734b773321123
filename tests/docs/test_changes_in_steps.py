"""The example of changes in steps runs unchanged."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import lance_format

_PAGE = Path(__file__).parents[2] / "docs" / "tables.md"


def test_the_example_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    section = _PAGE.read_text().split("## Changes in steps")[1].split("\n## ")[0]
    (example,) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    table = lance_format.write_dataset({"id": range(10), "name": ["owl"] * 10}, tmp_path / "birds.lance")
    exec(compile(example, str(_PAGE), "exec"), {"table": table})
    assert capsys.readouterr().out == "4\n"
    assert table.count_rows("name = 'OWL'") == 4
