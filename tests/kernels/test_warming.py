"""Kernels that are compiled beforehand, and caches that cannot be written."""

from __future__ import annotations

import importlib
import os
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import lance_format.kernels
from lance_format.kernels.jit import _Intrinsic, _Kernel
from pyspark_lance.__main__ import main

pytestmark = pytest.mark.system

ROOT = Path(__file__).parents[2]


def _called_from_python() -> dict[str, _Kernel[..., int]]:
    """Return the kernels that writing or reading calls; those that only others call are compiled as parts of them."""
    prefix = f"{lance_format.kernels.__name__}."
    names = [info.name for info in pkgutil.walk_packages(lance_format.kernels.__path__, prefix)]
    modules = [importlib.import_module(name) for name in names]
    kernels = {
        f"{module.__name__}.{name}": found
        for module in modules
        for name, found in vars(module).items()
        if isinstance(found, _Kernel) and not isinstance(found, _Intrinsic) and found.__module__ == module.__name__
    }
    inner = {name for found in kernels.values() for name in found._function.__code__.co_names}
    return {name: found for name, found in kernels.items() if name.rpartition(".")[2] not in inner}


def test_the_kernels_of_what_is_written_are_compiled(capsys: pytest.CaptureFixture[str]) -> None:
    kernels = _called_from_python()
    assert len(kernels) > 30
    main(["warm"])
    assert capsys.readouterr().out.startswith("All kernels are compiled")
    compiled = {name: found.__dict__.get("compiled") for name, found in kernels.items()}
    assert [name for name, found in compiled.items() if not getattr(found, "signatures", None)] == []


_LOADED = """
import sys
from pyspark_lance.__main__ import main

main(["warm"])
print([name for name in ("numba.np.linalg", "numba.typed.typedlist", "scipy.linalg") if name in sys.modules])
"""


def test_compiled_kernels_are_loaded_without_what_only_compiling_needs(capsys: pytest.CaptureFixture[str]) -> None:
    main(["warm"])
    assert "All kernels are compiled" in capsys.readouterr().out
    loading = subprocess.run([sys.executable, "-c", _LOADED], capture_output=True, text=True, check=True, cwd=ROOT)
    assert loading.stdout.splitlines()[-1] == "[]", loading.stdout


_WITHOUT_A_CACHE = """
import lance_format

table = lance_format.write_dataset({"name": ["owl", None, "emu"]}, "memory://birds")
print(table.to_table()["name"].to_pylist())
"""


def test_nothing_needs_a_place_for_the_cache() -> None:
    """A home that cannot be written, and a package that another user has installed."""
    nowhere = {
        "HOME": "/dev/null",
        "XDG_CACHE_HOME": "/dev/null",
        "NUMBA_CACHE_LOCATOR_CLASSES": "UserWideCacheLocator",
        "NUMBA_CPU_NAME": "generic",  # No code is kept for it.
        "NUMBA_CPU_FEATURES": "",
    }
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **nowhere}
    done = subprocess.run(
        [sys.executable, "-c", _WITHOUT_A_CACHE], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "['owl', None, 'emu']"
    assert done.stderr.count("Set NUMBA_CACHE_DIR") == 1
