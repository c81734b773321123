"""The program: what it imports, exit codes, completion, pipes, and a missing extra."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import lance_format
from lance_cli.app import COMMANDS
from tests.cli.command_line import execute

pytestmark = pytest.mark.system

_ROOT = Path(__file__).parents[2]
_HEAVY = ("numpy", "pyarrow", "numba", "pandas", "google.protobuf", "pyspark", "obstore", "sqlglot")
_MAIN = "import sys; from lance_cli import main; sys.argv[1:] = {arguments!r}; main()"


def _start(*arguments: str, before: str = "") -> subprocess.Popen[str]:
    program = before + _MAIN.format(arguments=list(arguments))
    environment = {**os.environ, "COLUMNS": "100"}
    return subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        cwd=_ROOT,
    )


def test_help_imports_nothing_heavy() -> None:
    check = (
        "import sys, lance_cli.app\n"
        "for line in (['--help'], ['query', '--help']):\n"
        "    assert lance_cli.app.run(line) == 0, line\n"
        f"print('imported:', [name for name in {_HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=False, cwd=_ROOT)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "imported: []"


def test_every_command_has_help_with_an_example() -> None:
    listed = execute("--help").out
    for name in COMMANDS:
        assert re.search(rf"\b{name}\b", listed)
        ended = execute(name, "--help")
        assert ended.code == 0
        assert f"pyspark-lance {name}" in ended.out


def test_exit_codes(tmp_path: Path) -> None:
    assert execute("info", tmp_path / "nowhere").code == 1
    assert execute("info", tmp_path / "nowhere").out == ""
    assert "no Lance table" in execute("info", tmp_path / "nowhere").err
    assert execute("nonsense").code == 2
    assert execute("head", tmp_path, "--limit", "-1").code == 2
    assert execute("info", tmp_path, "--version", "side:x").code == 2


def test_storage_options(tmp_path: Path) -> None:
    ended = execute("info", tmp_path / "t", "-s", "aws_secret_access_key:hunter2")
    assert ended.code == 2
    assert "hunter2" not in ended.err
    ended = execute("info", "s3://bucket/t", "-s", "nonsense=hunter2")
    assert ended.code == 1
    assert "nonsense" in ended.err
    assert "hunter2" not in ended.err


def test_a_closed_pipe_ends_the_program_quietly(tmp_path: Path) -> None:
    path = tmp_path / "t"
    lance_format.write_dataset({"text": [str(number) * 50 for number in range(5000)]}, path)
    process = _start("head", str(path), "--limit", "5000")
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.wait() == 141
    assert process.stderr.read() == ""
    process.stderr.close()


def test_without_the_extra_the_program_names_the_command_that_installs_it() -> None:
    with _start("info", "t", before="import sys; sys.modules['typer'] = None; ") as process:
        out, err = process.communicate()
    assert (process.returncode, out) == (1, "")
    assert "pip install 'pyspark-lance[cli]'" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_PYSPARK_LANCE_COMPLETE", f"complete_{shell}")
    for name, value in (
        ("COMP_WORDS", "pyspark-lance hi"),
        ("COMP_CWORD", "1"),
        ("_TYPER_COMPLETE_ARGS", "pyspark-lance hi"),
    ):
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
    assert "history" in execute().out


def test_the_script_is_declared() -> None:
    project = tomllib.loads((_ROOT / "pyproject.toml").read_text())["project"]
    assert project["scripts"] == {"pyspark-lance": "lance_cli:main"}
    assert {re.split("[>=]", name)[0] for name in project["optional-dependencies"]["cli"]} >= {"typer", "rich"}
