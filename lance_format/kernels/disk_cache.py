"""Compiled kernels on disk: one file per kernel, signature and processor, named by its content.

A wheel for a platform contains compiled kernels (`compiled/`), for a processor that most machines have. Other kernels
are compiled on their first call, and kept beside the package, in the user's cache directory, or in `NUMBA_CACHE_DIR`;
they are also loaded from directories that the user may only read. One process compiles a kernel, and others wait.

numba's own index is not used. It numbers the files of a kernel: two processes that compile a kernel for different types
may give their files the same number, and later processes would run code for other types. Here the name of a file
identifies the source, the signature and the processor. The file is loaded only if its content agrees.

```
<room>.<module>.<kernel>.py311.<source>.<key>.nbc = digest (32 bytes), pickle of (key, code)
```
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import logging
import os
import pickle
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import llvmlite
import numba
from numba.core import serialize
from numba.core.caching import CompileResultCacheImpl, _Cache
from numba.core.compiler import CompileResult
from numba.core.compiler_lock import global_compiler_lock
from numba.core.runtime.nrt import rtsys

from lance_format.lazy_properties import cached_property

KERNELS = Path(__file__).parent
"""Directory of all kernels, in rooms."""

SHIPPED = KERNELS / "compiled"
"""Directory of the compiled kernels in wheels."""

_DIGEST_BYTES = 32
_NO_ROOMS = frozenset({"__pycache__", SHIPPED.name})
_NAME_BYTES = 12
_MAX_WAIT_SECONDS = 300.0
_WAIT_SECONDS = 0.02
_CONFIG: Any = numba.config
_LOGGER = logging.getLogger(__name__)

_unlock = global_compiler_lock._lock.release
# Nobody would release the lock in a process that was forked while another thread compiled or loaded a kernel.
os.register_at_fork(before=global_compiler_lock._lock.acquire, after_in_parent=_unlock, after_in_child=_unlock)


@functools.cache
def portable_processor(architecture: str) -> tuple[str, frozenset[str]]:
    """Return the processor that shipped kernels are compiled for, and the features that a machine needs to run them.

    Parameters
    ----------
    architecture : str
        The first part of a target triple of LLVM.
    """
    if architecture == "x86_64":
        features = {"avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "popcnt", "sse4.2", "xsave"}
        return "x86-64-v3", frozenset(features)
    return "generic", frozenset()


def prepare_runtime(target_context: Any) -> None:
    """Initialise what compiled code calls: reference counts of arrays."""
    rtsys.initialize(target_context)


class KernelCache(_Cache):
    """Cache of a kernel. A cache that cannot be read or written is not used, and raises no error.

    Parameters
    ----------
    function : callable
        The Python function of the kernel.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._enabled = True
        root, module = KERNELS, function.__module__.removeprefix(f"{__package__}.")
        if module == function.__module__:
            path = Path(function.__code__.co_filename)
            root, module = path.parent, path.stem
        base = f"{module}.{function.__qualname__}.py{sys.version_info[0]}{sys.version_info[1]}{sys.abiflags}"
        self._name = base, _own_source() if root == KERNELS else _source(root)
        self._shipped = _Files(SHIPPED, *self._name)

    @cached_property
    def _kept(self) -> _Files | None:
        """The files of the user, or None if no directory can be written."""
        try:
            locator = CompileResultCacheImpl(self._function).locator  # type: ignore[no-untyped-call]
        except RuntimeError:
            return None
        return _Files(Path(locator.get_cache_path()), *self._name)

    def _places(self) -> Iterator[_Files]:
        """Return the files of the user, then those in directories that this user may only read, as in an image."""
        if self._kept is not None:
            yield self._kept
        for locators in CompileResultCacheImpl._locator_classes:
            reading: Any = type("Reading", (locators,), {"ensure_cache_path": lambda _: None})
            locator = reading.from_function(self._function, self._function.__code__.co_filename)
            if locator is not None:
                yield _Files(Path(locator.get_cache_path()), *self._name)
                if _CONFIG.CACHE_DIR:
                    return

    @property
    def cache_path(self) -> str | None:
        """Directory of the user's compiled kernels."""
        return None if self._kept is None else str(self._kept.directory)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled code of a signature, or None.

        Unlike numba's own cache, this imports none of the modules that compilation needs, which imports them itself.
        """
        if not self._enabled:
            return None
        processor = target_context.codegen().magic_tuple()
        payload = self._shipped.load(_portable_key(sig, processor)) if _runs_portable_code(processor) else None
        if payload is None:
            payload = next(filter(None, (files.load((sig, processor)) for files in self._places())), None)
        if payload is None:
            return None
        prepare_runtime(target_context)
        return CompileResult._rebuild(target_context, *payload)  # type: ignore[no-untyped-call]

    def save_overload(self, sig: Any, data: Any) -> None:
        """Save the compiled code of a signature if there is room."""
        if not self._enabled:
            return
        if self._kept is None:
            _warn_of_no_cache("no directory for it can be written")
            return
        try:
            self._kept.save((sig, data.codegen.magic_tuple()), data._reduce())
        except OSError as error:
            _warn_of_no_cache(str(error))

    @contextlib.contextmanager
    def lock(self, sig: Any, target_context: Any) -> Iterator[None]:
        """Keep other processes from compiling the kernel as well, unless its code is there already.

        They wait for five minutes at most, and compile it then.
        """
        processor = target_context.codegen().magic_tuple()
        shipped = _runs_portable_code(processor) and self._shipped.has(_portable_key(sig, processor))
        if shipped or self._kept is None or self._kept.has((sig, processor)):
            yield
            return
        with self._kept.lock():
            yield

    def enable(self) -> None:
        """Load and save code, as by default."""
        self._enabled = True

    def disable(self) -> None:
        """Neither load nor save code."""
        self._enabled = False

    def flush(self) -> None:
        """Delete the user's code of all signatures."""
        if self._kept is not None:
            self._kept.flush()


class _Files:
    """The files of one kernel.

    Parameters
    ----------
    directory : Path
    base : str
        The beginning of their names.
    source : str
        Identifies the source of the kernel and its callees.
    """

    def __init__(self, directory: Path, base: str, source: str) -> None:
        self.directory = directory
        self._base = base
        self._source = source

    def has(self, key: Any) -> bool:
        """Tell whether there is a file of a key."""
        return self._path(key).exists()

    def load(self, key: Any) -> Any:
        """Return the code of a key, or None if there is none, or its file is damaged or cannot be read."""
        try:
            stored = self._path(key).read_bytes()
        except OSError:
            return None
        digest, content = stored[:_DIGEST_BYTES], stored[_DIGEST_BYTES:]
        if digest != _digest(content):
            return None
        known, code = pickle.loads(content)
        return code if known == key else None

    def save(self, key: Any, code: Any) -> None:
        """Save the code of a key, and delete that of other sources."""
        content: bytes = serialize.dumps((key, code))  # type: ignore[no-untyped-call]
        path = self._path(key)
        partial = path.with_name(f"{path.name}.{uuid.uuid4().hex[:16]}")
        try:
            partial.write_bytes(_digest(content) + content)
            partial.replace(path)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise
        for other in self.directory.glob(f"{self._base}.*.nbc"):
            if not other.name.startswith(f"{self._base}.{self._source}."):
                other.unlink(missing_ok=True)

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the lock of the kernel if the file system has locks, and nobody keeps it for too long."""
        with contextlib.ExitStack() as stack:
            with contextlib.suppress(OSError):
                file = stack.enter_context((self.directory / f"{self._base}.lock").open("ab"))
                _wait_for(file)
            yield

    def flush(self) -> None:
        """Delete the code of all keys."""
        for path in self.directory.glob(f"{self._base}.*.nbc"):
            path.unlink(missing_ok=True)

    def _path(self, key: Any) -> Path:
        return self.directory / f"{self._base}.{self._source}.{_short(repr(key).encode())}.nbc"


def _wait_for(file: IO[bytes]) -> None:
    end = time.monotonic() + _MAX_WAIT_SECONDS
    while time.monotonic() < end:
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        time.sleep(_WAIT_SECONDS)


def _portable_key(sig: Any, processor: tuple[str, str, str]) -> Any:
    triple = processor[0]
    name, _ = portable_processor(triple.partition("-")[0])
    return sig, (triple, name, "")


@functools.cache
def _runs_portable_code(processor: tuple[str, str, str]) -> bool:
    triple, _, features = processor
    _, needed = portable_processor(triple.partition("-")[0])
    return needed <= {name[1:] for name in features.split(",") if name.startswith("+")}


@functools.cache
def _warn_of_no_cache(reason: str) -> None:
    _LOGGER.warning(
        "compiled code cannot be kept (%s): every process compiles the kernels that it calls, which takes seconds. "
        "Set NUMBA_CACHE_DIR to a directory that can be written",
        reason,
    )


@functools.cache
def _own_source() -> str:
    """Return the source of our kernels, looked up once: later changes are not those that this process runs."""
    return _source(KERNELS)


def _source(directory: Path) -> str:
    """Return what identifies the source of all kernels in a directory and in those below, and the compiler.

    Kernels call each other, and use each other's constants, also across rooms.
    """
    paths = sorted(_modules(directory)) if directory.is_dir() else []
    if not paths:  # The package is in an archive.
        directory = next(path for path in (directory, *directory.parents) if path.is_file())
        paths = [directory]
    digests = [(path.relative_to(directory).as_posix(), _digest(path.read_bytes())) for path in paths]
    return _short(repr((numba.__version__, llvmlite.__version__, digests)).encode())


def _modules(directory: Path) -> Iterator[Path]:
    for path in directory.iterdir():
        if path.suffix == ".py":
            yield path
        elif path.name not in _NO_ROOMS and path.is_dir():
            yield from _modules(path)


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=_DIGEST_BYTES).digest()


def _short(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=_NAME_BYTES).hexdigest()
