"""Interpreted kernels have an equivalent of each instruction that compiled ones use."""

from __future__ import annotations

import subprocess
import sys

_INSTRUCTIONS = """
import importlib, pkgutil
import lance_format.kernels
from lance_format.kernels import jit
from tests.fuzz import guarded
modules = pkgutil.walk_packages(lance_format.kernels.__path__, "lance_format.kernels.")
names = [module.name for module in modules]
values = [value for name in names for value in vars(importlib.import_module(name)).values()]
found = {value._function for value in values if isinstance(value, jit._Intrinsic)}
assert found == set(guarded._INSTRUCTIONS), found
"""

_HASHES = """
import numpy as np, xxhash
from tests.fuzz import guarded
guarded.install()
from lance_format.kernels.files.xxh3 import sum_blocks
for size in (241, 1024, 3000, 8192):
    data = np.random.default_rng(size).integers(0, 256, 2 * size, np.uint8)
    sums = np.zeros(2, np.uint32)
    sum_blocks(data, size, sums)
    expected = [xxhash.xxh3_64_intdigest(data[start : start + size].tobytes()) for start in (0, size)]
    assert sums.tolist() == [value & 0xFFFFFFFF for value in expected], size
"""


def test_each_instruction_is_interpreted() -> None:
    """A process that compiles kernels replaces instructions by compiled ones; this one must not have done so."""
    subprocess.run([sys.executable, "-c", _INSTRUCTIONS], check=True)


def test_interpreted_hashes_are_right() -> None:
    subprocess.run([sys.executable, "-c", _HASHES], check=True)
