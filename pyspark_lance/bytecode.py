"""Bytecode of the modules that Spark's Python processes import, where no installer has compiled it.

The first query of a session starts several processes, each of which imports some 600 modules of this project and as
many others. Without their bytecode that takes each of them twice as long. pip compiles what it installs, uv only with
`--compile-bytecode`. Python keeps what it compiles on import, unless `PYTHONDONTWRITEBYTECODE` is set, as in many
images, or the modules belong to another user.
"""

from __future__ import annotations

import compileall
import importlib
import sys
from collections.abc import Iterator
from importlib.util import cache_from_source
from pathlib import Path

_PACKAGES = ("lance_format", "connector", "pyspark_lance", "pyspark.sql.worker")
"""Packages of which all modules are compiled; processes import them one by one."""


def compile_modules() -> list[Path]:
    """Compile modules whose bytecode is not there: those of this project, and those that are imported.

    Returns
    -------
    list of Path
        Modules whose bytecode cannot be stored.
    """
    from connector.daemon import preload  # imports what a start of the command line does without

    preload()
    wanted = [path for path in dict.fromkeys([*_of_packages(), *_imported()]) if not _is_compiled(path)]
    return [path for path in wanted if not compileall.compile_file(path, quiet=2)]


def _of_packages() -> Iterator[Path]:
    for name in _PACKAGES:
        for directory in importlib.import_module(name).__path__:
            yield from sorted(Path(directory).rglob("*.py"))


def _imported() -> Iterator[Path]:
    for module in list(sys.modules.values()):
        origin = getattr(getattr(module, "__spec__", None), "origin", None)
        if isinstance(origin, str) and origin.endswith(".py"):
            yield Path(origin)


def _is_compiled(path: Path) -> bool:
    """Return whether there is bytecode; `compileall` replaces what names the source by its hash, not by its time."""
    try:
        return Path(cache_from_source(path)).stat().st_mtime >= path.stat().st_mtime
    except OSError:
        return not path.exists()  # as of modules that come from an archive
