"""Compiled code on disk: no process runs code that was compiled for something else."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

_SOURCE = """
from lance_format.kernels.jit import kernel
from {helpers} import weight

@kernel
def total(source, out):
    for number in source:
        out[0] += number * weight(number)
    return len(source)
"""
_HELPERS = """
from lance_format.kernels.jit import kernel

@kernel
def weight(number):
    return {weight}
"""
_TYPES = (np.int16, np.int32, np.int64, np.float32, np.float64)


class _Package:
    """Two modules with a kernel each, of which one calls the other."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._helpers = f"helpers_{directory.parent.name}_{os.getpid()}"
        self._directory = directory
        directory.mkdir()
        monkeypatch.syspath_prepend(str(directory))
        (directory / "sums.py").write_text(_SOURCE.format(helpers=self._helpers))
        self.set_weight(2)

    def set_weight(self, weight: int) -> None:
        """Change the source of the kernel that is called."""
        path = self._directory / f"{self._helpers}.py"
        path.write_text(_HELPERS.format(weight=weight))
        os.utime(path, ns=(weight * 10**18, weight * 10**18))

    @property
    def files(self) -> list[Path]:
        return sorted((self._directory / "__pycache__").glob("sums.total*.nbc"))

    def load(self) -> ModuleType:
        """Return the module as a new process has it."""
        for name in (self._helpers, "sums"):
            spec = importlib.util.spec_from_file_location(name, self._directory / f"{name}.py")
            assert spec is not None
            assert spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            sys.modules[name] = module
            spec.loader.exec_module(module)
        return module

    def totals(self) -> list[float]:
        """Return a sum per type, each by code of its own."""
        module = self.load()
        found = []
        for dtype in _TYPES:
            out = np.zeros(1, dtype)
            assert module.total(np.array([1, 2, 3], dtype), out) == 3
            found.append(float(out[0]))
        return found

    def hits(self) -> int:
        """Return for how many types the code comes from the disk."""
        module = self.load()
        for dtype in _TYPES:
            module.total(np.array([1, 2, 3], dtype), np.zeros(1, dtype))
        return sum(module.total.compiled.stats.cache_hits.values())


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> _Package:
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    return _Package(tmp_path / "package", monkeypatch)


def test_code_is_compiled_once(package: _Package) -> None:
    assert package.totals() == [12] * len(_TYPES)
    assert len(package.files) == len(_TYPES)
    assert package.hits() == len(_TYPES)


def test_code_for_other_types_is_not_run(package: _Package) -> None:
    assert package.totals() == [12] * len(_TYPES)
    contents = [path.read_bytes() for path in package.files]
    for path, content in zip(package.files, contents[1:] + contents[:1], strict=True):
        path.write_bytes(content)
    assert package.totals() == [12] * len(_TYPES)


def test_names_do_not_depend_on_the_order(package: _Package) -> None:
    names = []
    for types in (_TYPES, _TYPES[::-1]):
        module = package.load()
        for dtype in types:
            module.total(np.array([1], dtype), np.zeros(1, dtype))
        names.append({path.name for path in package.files})
        module.total.compiled._cache.flush()
        assert not package.files
    assert names[0] == names[1]
    assert len(names[0]) == len(_TYPES)


def test_a_kernel_that_is_called_has_another_source(package: _Package) -> None:
    assert package.totals() == [12] * len(_TYPES)
    before = set(package.files)
    package.set_weight(5)
    assert package.totals() == [30] * len(_TYPES)
    assert len(package.files) == len(_TYPES)
    assert not before & set(package.files)


@pytest.mark.parametrize("damage", [b"", b"short", None], ids=["empty", "short", "a flipped bit"])
def test_damaged_files_are_compiled_again(package: _Package, damage: bytes | None) -> None:
    assert package.totals() == [12] * len(_TYPES)
    for path in package.files:
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(bytes(content) if damage is None else damage)
    assert package.totals() == [12] * len(_TYPES)
    assert package.hits() == len(_TYPES)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is full")
def test_a_full_disk_costs_the_cache_only(package: _Package, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_path: Path, content: bytes) -> int:
        with Path("/dev/full").open("wb", buffering=0) as device:
            return device.write(content) or 0

    monkeypatch.setattr(Path, "write_bytes", full)
    assert package.totals() == [12] * len(_TYPES)
    assert not package.files
