"""Recovery of damaged checksums from the data that they are of.

A sealed file has the sums of its data region at the start of its tail region, and the sums of the tail region in the
seal:

    │ data region │ sums of the data region, descriptor, … │ sums of the tail region │ …

If a block of the tail region is not what was written, the sums in it are computed again from the data. If the block
then has its own sum, nothing else of it was damaged, and the data is what was written: this proves both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

from lance_format.byte_io import ByteRange, RangeReader
from lance_format.checksums import checksum32
from lance_format.errors import LanceError
from lance_format.file.container.footer import TailReader
from lance_format.file.container.seal import SUM_TYPE, Seal, read_seal
from lance_format.lazy_dataclasses import dataclass
from lance_format.object_store import ReadableStore


@dataclass(frozen=True, slots=True)
class RecoveringStore:
    """A `ReadableStore` of data files, which are read as if damaged checksums had been mended.

    Parameters
    ----------
    store : ReadableStore
    """

    store: ReadableStore

    def open_reader(self, path: str, size_bytes: int | None = None) -> RangeReader:
        """See `ReadableStore`."""
        reader = self.store.open_reader(path, size_bytes)
        with suppress(LanceError):  # Who reads the file gets the error.
            seal = read_seal(TailReader(reader))
            blocks = {} if seal is None else dict(_recovered_blocks(reader, seal))
            if blocks:
                return _RecoveredReader(reader, blocks)
        return reader


class _RecoveredReader:
    """A `RangeReader` of a file, some blocks of which have other bytes."""

    def __init__(self, reader: RangeReader, blocks: dict[int, bytes]) -> None:
        self.path = reader.path
        self.size_bytes = reader.size_bytes
        self.request_shape = reader.request_shape
        self._reader = reader
        self._blocks = blocks

    def read_ranges(self, ranges: Sequence[ByteRange]) -> list[bytes]:
        """See `RangeReader`."""
        return [
            self._mended(wanted, data) for wanted, data in zip(ranges, self._reader.read_ranges(ranges), strict=True)
        ]

    def close(self) -> None:
        """See `RangeReader`."""
        self._reader.close()

    def _mended(self, wanted: ByteRange, data: bytes) -> bytes:
        for offset, block in self._blocks.items():
            start, stop = max(offset, wanted.offset), min(offset + len(block), wanted.end)
            if start < stop:
                place = slice(start - wanted.offset, stop - wanted.offset)
                data = data[: place.start] + block[start - offset : stop - offset] + data[place.stop :]
        return data


def _recovered_blocks(reader: RangeReader, seal: Seal) -> Iterator[tuple[int, bytes]]:
    """Yield the offsets and the right bytes of damaged blocks of the tail region in which only sums are damaged."""
    size, itemsize = seal.block_bytes, SUM_TYPE.itemsize
    sums_end = seal.tail_start + seal.num_data_blocks * itemsize
    for number, start in enumerate(range(seal.tail_start, sums_end, size)):
        stop = min(start + size, seal.tail_end)
        (stored,) = reader.read_ranges([ByteRange(start, stop - start)])
        if checksum32(stored) == seal.tail_sums[number]:
            continue
        first = number * size // itemsize * size
        last = min(first + size // itemsize * size, seal.tail_start)
        (data,) = reader.read_ranges([ByteRange(first, last - first)])
        computed = [checksum32(data[offset : offset + size]) for offset in range(0, len(data), size)]
        sums = b"".join(value.to_bytes(itemsize, "little") for value in computed)
        block = sums + stored[len(sums) :]
        if checksum32(block) == seal.tail_sums[number]:
            yield start, block
