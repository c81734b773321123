"""The checksums of a file that is being written, block by block."""

from __future__ import annotations

import numpy as np

from lance_format.byte_io import RangeWriter
from lance_format.checksums import RunningChecksum
from lance_format.file.container.block_sums import sums_of
from lance_format.file.container.seal import BLOCK_BYTES, Sums

_GATHERED_BYTES = 64 * 1024


class SummedSink:
    """A `RangeWriter` that computes the checksums of what it passes on. Little data waits for more.

    Parameters
    ----------
    sink : RangeWriter
    block_bytes : int
    """

    def __init__(self, sink: RangeWriter, block_bytes: int = BLOCK_BYTES) -> None:
        self._sink = sink
        self._block_bytes = block_bytes
        self._position = sink.position
        self._gathered = bytearray()
        self._sums: list[int] = []
        self._open = RunningChecksum()
        self._open_bytes = 0

    @property
    def path(self) -> str:
        """See `RangeWriter`."""
        return self._sink.path

    @property
    def position(self) -> int:
        """See `RangeWriter`."""
        return self._position

    def write(self, data: bytes | memoryview) -> None:
        """See `RangeWriter`."""
        view = memoryview(data).cast("B")
        self._position += len(view)
        if len(self._gathered) + len(view) < _GATHERED_BYTES:
            self._gathered += view
            return
        self._write_gathered()
        self._write_now(view)

    def _write_gathered(self) -> None:
        gathered, self._gathered = self._gathered, bytearray()
        if gathered:
            self._write_now(memoryview(gathered))

    def _write_now(self, view: memoryview) -> None:
        self._sink.write(view)
        position = 0
        if self._open_bytes:
            position = min(len(view), self._block_bytes - self._open_bytes)
            self._add(view[:position])
        whole = position + (len(view) - position) // self._block_bytes * self._block_bytes
        if whole > position:
            self._sums += sums_of(view[position:whole], self._block_bytes).tolist()
        if whole < len(view):
            self._add(view[whole:])

    def end_region(self) -> Sums:
        """Return the checksums of the blocks since the last region ended, and begin another."""
        self._write_gathered()
        if self._open_bytes:
            self._close_block()
        sums, self._sums = np.array(self._sums, np.uint32), []
        return sums

    def close(self) -> None:
        """See `RangeWriter`."""
        self._write_gathered()
        self._sink.close()

    def abort(self) -> None:
        """See `RangeWriter`."""
        self._sink.abort()

    def _add(self, data: memoryview) -> None:
        """Add bytes to the open block, which has room for them."""
        self._open.add(data)
        self._open_bytes += len(data)
        if self._open_bytes == self._block_bytes:
            self._close_block()

    def _close_block(self) -> None:
        self._sums.append(self._open.checksum32())
        self._open, self._open_bytes = RunningChecksum(), 0
