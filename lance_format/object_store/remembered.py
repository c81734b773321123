"""Contents of small objects that a process has read or written, for the next reader of the same content."""

from __future__ import annotations

import threading
from collections import OrderedDict

from lance_format.lazy_dataclasses import dataclass

_MAX_BYTES = 16 * 1024 * 1024
_MAX_OBJECT_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class _Content:
    tag: str
    data: bytes


class RememberedContents:
    """Contents by path and entity tag. Safe to use from several threads.

    A store changes the tag of an object whenever it changes the content. Nothing is returned unless the caller names
    the tag, as a listing or a reply has it, so that an object that was replaced is never mistaken for the former one.

    Parameters
    ----------
    max_bytes : int
        The least recently used contents make room for others.
    """

    def __init__(self, max_bytes: int = _MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._contents: OrderedDict[str, _Content] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def get(self, path: str, tag: str | None) -> bytes | None:
        """Return the content that an object has under a tag; None if it is not known, or the tag is None."""
        with self._lock:
            found = self._contents.get(path)
            if found is None or tag is None or found.tag != _bare(tag):
                return None
            self._contents.move_to_end(path)
            return found.data

    def put(self, path: str, tag: str | None, data: bytes) -> None:
        """Remember the content of an object; ignored if it is large or has no tag.

        Parameters
        ----------
        path : str
        tag : str, optional
            The entity tag of the content.
        data : bytes
        """
        if not tag or len(data) > min(_MAX_OBJECT_BYTES, self._max_bytes):
            return
        with self._lock:
            former = self._contents.pop(path, None)
            self._size += len(data) - (0 if former is None else len(former.data))
            self._contents[path] = _Content(_bare(tag), data)
            while self._size > self._max_bytes:
                self._size -= len(self._contents.popitem(last=False)[1].data)


def _bare(tag: str) -> str:
    """Return a tag without quotes: Azure's listings have none, its replies do."""
    return tag.strip('"')
