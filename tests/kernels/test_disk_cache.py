"""Compiled code on disk: no process runs code that was compiled for something else."""

from __future__ import annotations

import importlib.util
import logging
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from lance_format.kernels import disk_cache
from lance_format.kernels.compression.rle import find_runs
from lance_format.kernels.disk_cache import KernelCache, portable_processor
from lance_format.kernels.words import copy_bytes

pytestmark = pytest.mark.system

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
_CALLS = """
import sys
import numpy as np
from sums import total

for name in sys.argv[1:]:
    total(np.array([1, 2, 3], name), np.zeros(1, name))
print(sum(total.compiled.stats.cache_misses.values()))
"""
_TYPES = (np.int16, np.float64)


class _Package:
    """Two modules with a kernel each; one calls the other."""

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

    def start(self, **environment: str) -> subprocess.Popen[str]:
        """Start a process that calls the kernel for all types, and prints for how many it compiled code."""
        root = Path(disk_cache.__file__).parents[2]
        paths = os.pathsep.join([str(self._directory), str(root)])
        names = [dtype.__name__ for dtype in _TYPES]
        return subprocess.Popen(
            [sys.executable, "-c", _CALLS, *names],
            env={**os.environ, **environment, "PYTHONPATH": paths},
            stdout=subprocess.PIPE,
            text=True,
        )


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


def test_a_change_in_any_room_is_another_source(tmp_path: Path) -> None:
    root = tmp_path / "kernels"
    shutil.copytree(disk_cache.KERNELS, root, ignore=shutil.ignore_patterns("__pycache__"))
    (root / "texts" / "inner").mkdir()
    (root / "texts" / "inner" / "deep.py").write_text("LIMIT = 3")
    found = {disk_cache._source(root)}
    files = sorted(root.rglob("*.py"))
    assert len(files) > 40
    for file in files:
        file.write_text(f"{file.read_text()}\n# changed\n")
        found.add(disk_cache._source(root))
    (root / "pages" / "ends.py").rename(root / "columns" / "ends.py")
    found.add(disk_cache._source(root))
    assert len(found) == len(files) + 2
    for name in ("__pycache__", "compiled"):
        (root / name).mkdir()
        (root / name / "made.py").write_text("LIMIT = 4")
    assert disk_cache._source(root) in found


def test_names_have_the_room() -> None:
    names, sources = zip(*(KernelCache(each._function)._name for each in (find_runs, copy_bytes)), strict=True)
    python = f"py{sys.version_info[0]}{sys.version_info[1]}{sys.abiflags}"
    assert names == (f"compression.rle.find_runs.{python}", f"words.copy_bytes.{python}")
    assert sources == (disk_cache._source(disk_cache.KERNELS),) * 2


def test_code_in_a_directory_that_cannot_be_written_is_used(
    package: _Package, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in an image whose file system is read-only, or that another user has built."""
    assert package.totals() == [12] * len(_TYPES)

    def refuse(**_options: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    assert package.hits() == len(_TYPES)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "chosen"))
    monkeypatch.setattr("numba.config.CACHE_DIR", str(tmp_path / "chosen"))
    assert package.hits() == 0


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


def test_one_process_compiles_for_all(package: _Package) -> None:
    processes = [package.start() for _ in range(3)]
    assert sum(int(process.communicate()[0]) for process in processes) == len(_TYPES)


_FORK = """
import os, signal, threading
from numba.core.compiler_lock import global_compiler_lock
import lance_format.kernels.disk_cache

held, may_end = threading.Event(), threading.Event()

def hold():
    with global_compiler_lock:
        held.set()
        may_end.wait(60)

threading.Thread(target=hold).start()
held.wait()
threading.Timer(0.2, may_end.set).start()
child = os.fork()
if child == 0:
    signal.alarm(10)
    with global_compiler_lock:
        os._exit(0)
assert os.waitpid(child, 0)[1] == 0
with global_compiler_lock:
    pass
"""


def test_a_process_is_not_forked_while_a_thread_compiles() -> None:
    """It would wait for that thread, which it lacks."""
    done = subprocess.run([sys.executable, "-c", _FORK], capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def shipped(package: _Package, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Compile the kernel for the processor of wheels, and return the directory of its files."""
    directory, cache = tmp_path / "compiled", tmp_path / "cache"
    directory.mkdir()
    name, _ = portable_processor(os.uname().machine)
    process = package.start(NUMBA_CPU_NAME=name, NUMBA_CPU_FEATURES="", NUMBA_CACHE_DIR=str(cache))
    assert process.communicate()[0].strip() == str(len(_TYPES))
    for path in cache.rglob("*.nbc"):
        shutil.copy(path, directory)
    monkeypatch.setattr(disk_cache, "SHIPPED", directory)
    return directory


@pytest.mark.usefixtures("shipped")
class TestKernelsOfAWheel:
    def test_nothing_is_compiled(self, package: _Package) -> None:
        assert package.totals() == [12] * len(_TYPES)
        assert package.hits() == len(_TYPES)
        assert not package.files

    def test_another_source_is_compiled(self, package: _Package) -> None:
        package.set_weight(5)
        assert package.totals() == [30] * len(_TYPES)
        assert len(package.files) == len(_TYPES)

    def test_an_older_processor_compiles(self, package: _Package, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(disk_cache, "portable_processor", lambda _: ("x86-64-v3", {"a feature of the future"}))
        disk_cache._runs_portable_code.cache_clear()
        try:
            assert package.totals() == [12] * len(_TYPES)
            assert len(package.files) == len(_TYPES)
        finally:
            disk_cache._runs_portable_code.cache_clear()

    def test_damage_is_compiled_again(self, package: _Package, shipped: Path) -> None:
        for path in shipped.iterdir():
            path.write_bytes(path.read_bytes()[:-1])
        assert package.totals() == [12] * len(_TYPES)
        assert len(package.files) == len(_TYPES)


def test_a_cache_that_cannot_be_written_is_told_once(
    package: _Package, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(_path: Path, _content: bytes) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "write_bytes", refuse)
    disk_cache._warn_of_no_cache.cache_clear()
    with caplog.at_level(logging.WARNING):
        assert package.totals() == [12] * len(_TYPES)
    assert [record.getMessage() for record in caplog.records] == [
        "compiled code cannot be kept ([Errno 13] Permission denied): every process compiles the kernels that it "
        "calls, which takes seconds. Set NUMBA_CACHE_DIR to a directory that can be written"
    ]
