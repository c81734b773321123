"""Compiled kernels on disk: one file per kernel, signature and processor, named by what it holds.

The index of numba numbers the files of a kernel. Two processes that compile a kernel for different types may give their
files the same number, and later processes would run code for other types. A file that an earlier source left keeps its
number until it is replaced. Here the name of a file identifies the source, the signature and the processor. The file is
loaded only if its content agrees.

```
<kernel>-<line>.py311.<source>.<signature>.nbc = digest (32 bytes), pickle of (key, code)
```
"""

from __future__ import annotations

import contextlib
import hashlib
import pickle
import uuid
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numba
from numba.core import serialize
from numba.core.caching import FunctionCache

_DIGEST_BYTES = 32
_NAME_BYTES = 12


class KernelCache(FunctionCache):
    """Cache of a kernel. A cache that cannot be read or written is not used, and raises no error.

    Parameters
    ----------
    function : callable
        The kernel as Python knows it.
    callees : iterable of KernelCache
        Caches of the kernels that it calls. Its compiled code contains theirs.

    Raises
    ------
    RuntimeError
        If there is no directory for compiled code.
    """

    def __init__(self, function: Callable[..., Any], callees: Iterable[KernelCache] = ()) -> None:
        super().__init__(function)  # type: ignore[no-untyped-call]
        stamps = [self._impl.locator.get_source_stamp(), *(callee.source_stamp for callee in callees)]
        self.source_stamp: str = _name((numba.__version__, stamps))
        self._cache_file = _Files(Path(self._cache_path), self._impl.filename_base, self.source_stamp)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled code of a signature, or None."""
        with contextlib.suppress(OSError):
            return super().load_overload(sig, target_context)  # type: ignore[no-untyped-call]
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Save the compiled code of a signature if there is room."""
        with contextlib.suppress(OSError):
            super().save_overload(sig, data)  # type: ignore[no-untyped-call]


class _Files:
    """The files of one kernel.

    Parameters
    ----------
    directory : Path
    base : str
        The beginning of their names.
    source : str
        Identifies the source of the kernel, and of all that it calls.
    """

    def __init__(self, directory: Path, base: str, source: str) -> None:
        self._directory = directory
        self._base = base
        self._source = source

    def load(self, key: Any) -> Any:
        """Return the code of a key, or None if there is none or its file is damaged."""
        try:
            stored = self._path(key).read_bytes()
        except FileNotFoundError:
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
        for other in self._directory.glob(f"{self._base}.*.nbc"):
            if not other.name.startswith(f"{self._base}.{self._source}."):
                other.unlink(missing_ok=True)

    def flush(self) -> None:
        """Delete the code of all keys."""
        for path in self._directory.glob(f"{self._base}.*.nbc"):
            path.unlink(missing_ok=True)

    def _path(self, key: Any) -> Path:
        return self._directory / f"{self._base}.{self._source}.{_name(key)}.nbc"


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=_DIGEST_BYTES).digest()


def _name(value: Any) -> str:
    return hashlib.blake2b(repr(value).encode(), digest_size=_NAME_BYTES).hexdigest()
