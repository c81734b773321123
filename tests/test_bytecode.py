"""Bytecode of modules that no installer has compiled."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import lance_format

pytestmark = pytest.mark.system

_PROGRAM = """
import sys
from pyspark_lance.bytecode import compile_modules
sys.dont_write_bytecode = True
print([str(path) for path in compile_modules()])
print([str(path) for path in compile_modules()])
"""


def _compile(prefix: Path) -> list[list[str]]:
    """Return the modules that stay uncompiled, of a first call and of another."""
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(prefix), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, env=environment, check=True)
    assert done.stderr == ""
    return [ast.literal_eval(line) for line in done.stdout.splitlines()]


def test_all_modules_of_processes_are_compiled(tmp_path: Path) -> None:
    assert _compile(tmp_path) == [[], []]
    compiled = {path.name.partition(".")[0] for path in tmp_path.rglob("*.pyc")}
    own = {path.stem for path in Path(lance_format.__file__).parent.rglob("*.py")}
    assert own <= compiled
    assert {"worker", "plan_data_source_read", "frame"} <= compiled, "PySpark's workers and planners, and pandas"


def test_modules_whose_bytecode_cannot_be_stored_are_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    left, again = _compile(tmp_path / "file")
    assert str(Path(lance_format.__file__)) in left
    assert left == again
