"""Early writing to disk: the system begins with bytes of a file that is to be synced while later ones are encoded.

Otherwise it begins when the file is synced, and the writer waits for all bytes. Nothing is durable before the sync.
Only Linux has such a call, and Python does not offer it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

_WRITE = 2  # SYNC_FILE_RANGE_WRITE: begin, and wait for nothing.
_PAGE_BYTES = 4096
_STEP_BYTES = 64 * 1024
"""A disk takes as long for fewer bytes."""


def _find_call() -> Callable[..., int] | None:
    try:
        call: Any = ctypes.CDLL(None).sync_file_range
    except (AttributeError, OSError, TypeError):
        return None
    call.argtypes = (ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint)
    found: Callable[..., int] = call
    return found


_call = _find_call()


class WriteBack:
    """Begins to write a file that grows.

    Parameters
    ----------
    descriptor : int
        Of the open file.
    """

    __slots__ = ("_begun", "_descriptor")

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._begun = 0

    def advance(self, size_bytes: int) -> None:
        """Begin to write whole pages of a file that has some size now, if they are enough.

        What the call returns is ignored: some file systems lack it, and the sync reports every failed write.
        """
        if size_bytes - self._begun < _STEP_BYTES or _call is None:
            return
        end = size_bytes // _PAGE_BYTES * _PAGE_BYTES
        _call(self._descriptor, self._begun, end - self._begun, _WRITE)
        self._begun = end
