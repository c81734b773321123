"""Docstrings of public functions describe their parameters and errors."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]
_PACKAGES = ("lance_format", "lance_cli", "connector", "pyspark_lance")
_FEW = 2
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def _functions() -> Iterator[tuple[str, _Function]]:
    """Yield the public functions, and the public methods of public classes."""
    for package in _PACKAGES:
        for path in sorted((_ROOT / package).rglob("*.py")):
            if path.name.endswith("_pb2.py"):
                continue
            where = path.relative_to(_ROOT).with_suffix("").as_posix()
            for node in ast.parse(path.read_text()).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    for member in node.body:
                        if isinstance(member, _Function) and not member.name.startswith("_"):
                            yield f"{where}: {node.name}.{member.name}", member
                elif isinstance(node, _Function) and not node.name.startswith("_") and not _is_command(where, node):
                    yield f"{where}: {node.name}", node


def _is_command(where: str, function: _Function) -> bool:
    """Return whether a function is a command, whose docstring is its help and whose options describe themselves."""
    return where.startswith("lance_cli/commands/") and function.name == "run"


def _is_declared_elsewhere(function: _Function) -> bool:
    """Return whether a docstring refers to another one, opens with the error, or belongs to another function."""
    text = ast.get_docstring(function) or ""
    names = {ast.unparse(decorator).split(".")[-1] for decorator in function.decorator_list}
    refers = any(mark in text for mark in ("see `", "See `", "raises as `", "raises what `"))
    return refers or text.startswith("Raise `") or bool(names & {"overload", "override"})


def _parameters(function: _Function) -> list[str]:
    arguments = function.args
    names = [a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    return [name for name in names if name not in ("self", "cls")]


def _raises(function: _Function) -> bool:
    """Return whether the function itself raises a new error, not one within a nested function."""
    pending: list[ast.AST] = list(function.body)
    while pending:
        node = pending.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            continue
        if isinstance(node, ast.Raise) and node.exc is not None:
            return True
        pending += ast.iter_child_nodes(node)
    return False


def _lacking(section: str, functions: Iterator[tuple[str, _Function]]) -> list[str]:
    return [name for name, function in functions if section not in (ast.get_docstring(function) or "")]


def test_many_parameters_are_described() -> None:
    many = ((n, f) for n, f in _functions() if len(_parameters(f)) > _FEW and not _is_declared_elsewhere(f))
    assert _lacking("Parameters\n---", many) == []


@pytest.mark.slow
def test_errors_are_described() -> None:
    raising = ((n, f) for n, f in _functions() if _raises(f) and not _is_declared_elsewhere(f))
    assert _lacking("Raises\n---", raising) == []


@pytest.mark.parametrize("text", ["def f(a, b, c):\n  'Add.'\n  raise ValueError"])
def test_the_check_finds_what_is_missing(text: str) -> None:
    (function,) = ast.parse(text).body
    assert isinstance(function, ast.FunctionDef)
    assert _parameters(function) == ["a", "b", "c"]
    assert _raises(function)
    assert _lacking("Raises\n---", iter([("f", function)])) == ["f"]
