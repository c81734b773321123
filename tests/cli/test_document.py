"""`docs/cli.md`: its examples run in order, and it names every command, its keys and its options."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

import lance_format
from lance_cli.app import COMMANDS
from tests.cli.command_line import execute, json_of, text_of

_PAGE = (Path(__file__).parents[2] / "docs" / "cli.md").read_text()
_WALK = _PAGE.split("## A walk through a table")[1].split("\n## ")[0]


def test_the_walk_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    printed = ""
    for language, example in re.findall(r"```(\w+)\n(.*?)```", _WALK, re.DOTALL):
        if language == "python":
            exec(compile(example, "docs/cli.md", "exec"), {})
        elif language == "text":
            assert all(line in printed for line in example.splitlines()), printed
        else:
            printed = "".join(text_of(*shlex.split(line)[1:]) for line in example.splitlines())

    table = lance_format.dataset("readings.lance")
    assert table.to_table().sort_by("value") == table.checkout_version(3).to_table().sort_by("value")
    found = json_of("diff", "readings.lance", 3, 4)["versions"]
    assert [(each["rows_inserted"], each["rows_deleted"]) for each in found] == [(20_000, 20_000)]


def test_the_table_of_commands_has_them_all() -> None:
    section = _PAGE.split("## Commands")[1].split("\n## ")[0]
    assert {name for row in re.findall(r"^\| (`.*?) \|", section, re.M) for name in re.findall(r"`(\w+)", row)} == set(
        COMMANDS
    )


def _documented_keys() -> dict[str, set[str]]:
    section = _PAGE.split("## For programs")[1].split("| exit code")[0]
    rows = re.findall(r"^\| (`.*?) \| (.*) \|$", section, re.M)
    keys = {name: set(re.findall(r"`(\w+)`", text)) for names, text in rows for name in re.findall(r"`(\w+)`", names)}
    keys["tags"].discard("branches")
    keys["branches"].discard("tags")
    return keys


@pytest.mark.slow
def test_the_documented_keys_are_those_of_the_output(tmp_path: Path, table: Path) -> None:
    path = tmp_path / "t"
    lance_format.write_dataset({"a": [1]}, path)
    (file,) = (path / "data").iterdir()
    lines = {
        "info": (table,),
        "history": (table,),
        "diff": (table, 1, 2),
        "stats": (table,),
        "files": (table,),
        "pages": (file,),
        "explain": (table, "id = 1"),
        "report": (table, "-o", tmp_path / "report.html"),
        "tags": (table,),
        "branches": (table,),
        "verify": (table,),
        "head": (table,),
        "sample": (table,),
        "query": (table, "id = 1"),
        "optimize": (path,),
        "vacuum": (path, "--dry-run"),
        "restore": (path, 1),
        "warm": (),
    }
    found = {name: set(json_of(name, *line)) for name, line in lines.items()}
    found["query"] |= set(json_of("query", table, "id = 1", "--count"))
    found["optimize"] |= set(json_of("optimize", path, "--dry-run"))
    assert found == _documented_keys()


def test_the_exit_codes(tmp_path: Path) -> None:
    codes = [int(code) for row in re.findall(r"^\| ([\d, ]+) \|", _PAGE, re.M) for code in row.split(", ")]
    assert codes == [0, 1, 2, 130, 141]
    assert execute("info", tmp_path / "t").code == 1
