import ast
from pathlib import Path

import numpy as np
import pyroaring
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lance_format
from lance_format.row_numbers import distinct, from_bitmap, to_bitmap

NUMBERS = st.lists(st.integers(0, 2**32 - 1) | st.integers(0, 300) | st.integers(65_500, 65_600), max_size=50)


@given(NUMBERS)
def test_sets(numbers: list[int]) -> None:
    expected = sorted(set(numbers))
    for kind in (np.int64, np.uint64, np.uint32):
        found = distinct(np.array(numbers, kind))
        assert found.dtype == kind
        assert found.tolist() == expected
    bitmap = to_bitmap(np.array(numbers, np.int64))
    assert bitmap == pyroaring.BitMap(numbers)
    found = from_bitmap(bitmap)
    assert found.dtype == np.int64
    assert found.tolist() == expected
    found[:1] = 7  # It is a copy that may be changed.


def calls(module: Path) -> list[str]:
    """Return the calls of a module that go through numbers one by one, or hash them."""
    slow = []
    for node in ast.walk(ast.parse(module.read_text())):
        if not isinstance(node, ast.Call):
            continue
        name = ast.unparse(node.func)
        hashes = name == "np.unique" and not any(keyword.arg.startswith("return_") for keyword in node.keywords)
        one_by_one = name.endswith(("BitMap", ".update")) and "astype" in ast.unparse(node)
        if hashes or name == "np.union1d" or one_by_one:
            slow.append(f"{module.name}:{node.lineno}: {ast.unparse(node)}")
    return slow


@pytest.mark.parametrize("room", ["file", "structural", "expressions", "table"])
def test_no_set_of_rows_is_hashed_or_gone_through(room: str) -> None:
    modules = sorted(Path(lance_format.__file__).parent.joinpath(room).rglob("*.py"))
    assert modules
    assert [call for module in modules for call in calls(module)] == []
