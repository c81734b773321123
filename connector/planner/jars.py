"""Jars of the planner's compiled classes, which later drivers of the machine load instead of compiling.

```
lance-planner-<key>-<digest>.jar
```

The key identifies the sources and what they are compiled against. The digest is that of the content: a damaged jar is
not loaded. Jars are not deleted, as executors may fetch a jar for as long as its driver runs.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import uuid
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

_NAME = "lance-planner-"
_DIGEST_BYTES = 16
_FIRST_DATE = (1980, 1, 1, 0, 0, 0)


def key_of(sources: Iterable[Path], *against: str) -> str:
    """Return what identifies compiled classes.

    Parameters
    ----------
    sources : iterable of Path
    *against : str
        Versions of what the classes are compiled against.
    """
    return _digest(repr((against, [(source.name, source.read_bytes()) for source in sources])).encode())


def find_jar(key: str) -> Path | None:
    """Return the jar of a key, or None if none is kept or all are damaged."""
    for directory in _directories():
        with contextlib.suppress(OSError):
            for jar in sorted(directory.glob(f"{_NAME}{key}-*.jar")):
                if jar.name == _file_name(key, jar.read_bytes()):
                    return jar
    return None


def keep_jar(key: str, classes: Path) -> Path | None:
    """Pack classes into a jar that later drivers find.

    Parameters
    ----------
    key : str
    classes : Path
        A directory of classes.

    Returns
    -------
    Path or None
        None if no directory can be written.
    """
    content = _pack(classes)
    for directory in _directories():
        partial = directory / uuid.uuid4().hex
        try:
            directory.mkdir(parents=True, exist_ok=True)
            partial.write_bytes(content)
            return partial.replace(directory / _file_name(key, content))
        except OSError:
            with contextlib.suppress(OSError):
                partial.unlink(missing_ok=True)
    return None


def temporary_jar(classes: Path) -> Path:
    """Pack classes into a jar that the caller deletes."""
    descriptor, path = tempfile.mkstemp(prefix=_NAME, suffix=".jar")
    os.close(descriptor)
    jar = Path(path)
    jar.write_bytes(_pack(classes))
    return jar


def class_names(jar: Path) -> list[str]:
    """Return the names of the classes of a jar."""
    with zipfile.ZipFile(jar) as archive:
        return [name.removesuffix(".class").replace("/", ".") for name in archive.namelist()]


def _directories() -> Iterator[Path]:
    """Return the directories to look at in order, which are those of compiled kernels."""
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        yield Path(chosen)
        return
    yield Path(__file__).parent / "__pycache__"
    with contextlib.suppress(RuntimeError):  # The user has no home directory.
        yield Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pyspark-lance"


def _pack(classes: Path) -> bytes:
    """Return a jar of a directory, the same for the same classes."""
    with tempfile.TemporaryFile() as file:
        with zipfile.ZipFile(file, "w") as archive:
            for path in sorted(classes.rglob("*.class")):
                archive.writestr(zipfile.ZipInfo(path.relative_to(classes).as_posix(), _FIRST_DATE), path.read_bytes())
        file.seek(0)
        return file.read()


def _file_name(key: str, content: bytes) -> str:
    return f"{_NAME}{key}-{_digest(content)}.jar"


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=_DIGEST_BYTES).hexdigest()
