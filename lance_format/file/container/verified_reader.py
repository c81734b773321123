"""Reads of a sealed file, each verified before anybody sees its bytes."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import cast

import numpy as np

from lance_format.byte_io import PROBED_RANGES, Buffer, ByteRange, ByteRanges, LendingReader, RangeReader, stream_ranges
from lance_format.data_block import Bytes, Counts
from lance_format.errors import ChecksumError
from lance_format.file.container.block_sums import Values, find_mismatch
from lance_format.file.container.joined_reads import read_by_kernel
from lance_format.file.container.seal import SUM_TYPE, Seal
from lance_format.file.container.search_cache import Key, SearchCache
from lance_format.kernels.files.file_reads import read_blocks, room_for
from lance_format.kernels.files.xxh3 import MIN_BLOCK_BYTES
from lance_format.kernels.jit import is_compiler_imported
from lance_format.object_store.store import check_ranges

_UNIT_BYTES = 64 * 1024
"""Sums of the data region that are read and cached together, those of 128 MiB: a multiple of every block size."""

_STEP_BYTES = 4 * 1024 * 1024
_SCRATCH_BYTES = 64 * 1024
"""Memory for the blocks of a small range, or for the first or last block of a large one."""

_MANY_RANGES = 4 * PROBED_RANGES
_COPIED_BYTES = 64 * 1024
"""Of so few blocks the wanted part is copied, so that single rows do not keep the rest of them in memory."""

CHECKSUM_REMEDY = (
    "the storage, or what copied the file, has damaged it: restore the file or the table from a copy, or write its rows"
    " again; verify_checksums=False reads what is there"
)


class VerifiedReader:
    """A `RangeReader` of a sealed file. It reads the blocks that a range lies in, and compares their checksums.

    Parameters
    ----------
    source : RangeReader
        The file; closed with the reader.
    seal : Seal
    tail : bytes
        The last bytes of the file, as read; they are verified when they are used.
    cache : SearchCache
        For the sums of the data region.
    key : tuple
        Key of the file in the cache.

    Attributes
    ----------
    describe : callable, optional
        Returns what a range of the file holds, for error messages.
    """

    def __init__(self, source: RangeReader, seal: Seal, tail: bytes, cache: SearchCache, key: Key) -> None:
        self.path = source.path
        self.size_bytes = source.size_bytes
        self.request_shape = source.request_shape
        self._source = source
        self._seal = seal
        self._tail = tail
        self._tail_offset = source.size_bytes - len(tail)
        self._cache = cache
        self._key = (*key, "sums")
        self._unit_blocks = max(_UNIT_BYTES // seal.block_bytes, 1) * seal.block_bytes // SUM_TYPE.itemsize
        self._unit_bytes = self._unit_blocks * seal.block_bytes
        short = seal.tail_start % seal.block_bytes
        self._kernel_end = seal.tail_start if not short or short >= MIN_BLOCK_BYTES else seal.tail_start - short
        self.describe: Callable[[ByteRange], str] | None = None
        self._is_describing = False

    def read_ranges(self, ranges: Sequence[ByteRange]) -> list[bytes]:
        """See `RangeReader`.

        Raises
        ------
        ChecksumError
            If the bytes are not those that were written.
        """
        return [bytes(found) for found in self.stream_ranges(ranges)]

    def stream_ranges(self, ranges: Sequence[ByteRange]) -> Generator[Buffer, None, None]:
        """See `StreamingReader` and `read_ranges`. Sums that are not known are read first, by the same requests."""
        in_data = len(ranges) > 0 and ranges[0].offset < self._kernel_end
        lends = in_data and hasattr(self._source, "lend") and is_compiler_imported()
        return self._stream_by_kernel(ranges) if lends else self._stream(ranges)

    def read_joined(self, ranges: ByteRanges) -> Bytes | None:
        """See `lance_format.file.container.joined_reads`."""
        return read_by_kernel(self._source, ranges, self._read_joined)

    def _read_joined(self, descriptor: int, ranges: ByteRanges, out: Bytes) -> tuple[int, int]:
        positions = np.empty(len(ranges) + 2, np.int64)
        try:
            count = self._read_blocks(descriptor, ranges.offsets, ranges.sizes, True, out, positions)
        except ChecksumError:
            return 0, 0
        return count, int(positions[-1])

    def _read_blocks(
        self, descriptor: int, offsets: Counts, sizes: Counts, is_dense: bool, out: Bytes, positions: Counts
    ) -> int:
        """Read and compare the first of some ranges; see `read_blocks`, and `ChecksumError` for the sums."""
        first, size = int(offsets[0]), int(sizes[0])
        if first < 0 or not 0 <= size <= self._kernel_end - first:
            positions[-2:] = -1, 0
            return 0
        unit, block_bytes = first // self._unit_bytes, self._seal.block_bytes
        sums = np.asarray(self._sums_of(unit))
        scratch = np.empty(max(_SCRATCH_BYTES, block_bytes), np.uint8)
        first_block, end = unit * self._unit_blocks, self._kernel_end
        return read_blocks(
            descriptor, block_bytes, end, sums, first_block, offsets, sizes, scratch, is_dense, out, positions
        )

    def _stream_by_kernel(self, ranges: Sequence[ByteRange]) -> Generator[Buffer, None, None]:
        """Yield ranges that a kernel reads and compares, many small ones at once.

        A range that the kernel cannot read is read in the other way, or is an error.
        """
        source = cast("LendingReader", self._source)
        sizes = np.array([wanted.size for wanted in ranges])
        offsets = np.array([wanted.offset for wanted in ranges])
        if sizes.dtype != np.int64 or offsets.dtype != np.int64:  # They are beyond any file.
            yield from self._stream(ranges)
            return
        done = 0
        while done < len(ranges):
            descriptor = source.lend()  # The file may have been closed since the last range was taken.
            if descriptor < 0:
                yield from self._stream(ranges[done:])
                return
            is_first = not done and len(ranges) >= _MANY_RANGES
            rest = slice(done, PROBED_RANGES if is_first else len(ranges))
            out, positions = room_for(sizes[rest]), np.empty(rest.stop - done + 2, np.int64)
            start = time.perf_counter()
            count = self._read_blocks(descriptor, offsets[rest], sizes[rest], False, out, positions)
            other, num_bytes = positions[-2:].tolist()
            source.give_back(count, num_bytes)
            if is_first and count:
                source.announce(ranges[count:], (time.perf_counter() - start) / count)
            out.flags.writeable = False  # Like bytes, so that other kernels are compiled for one of both.
            for position, size in zip(positions[:count].tolist(), sizes[done : done + count].tolist(), strict=True):
                yield out[position : position + size]
            if other >= 0:
                offset = other * self._seal.block_bytes
                raise self._mismatch(offset, min(offset + self._seal.block_bytes, self._seal.tail_start))
            if not count:
                yield from self._stream(ranges[done : done + 1])
            done += count or 1

    def _sums_of(self, unit: int) -> Values:
        """Return a unit of sums, which are read if they are not known."""
        known = self._cache.get((*self._key, unit))
        if isinstance(known, memoryview):
            return known
        span = self._unit_span(unit)
        is_at_hand = span.offset >= self._tail_offset
        with contextlib.closing(stream_ranges(self._source, [] if is_at_hand else [span])) as stream:
            data = self._bytes(span, stream)
            self._verify(span, data, {})
            return self._keep(unit, data)

    def _stream(self, ranges: Sequence[ByteRange]) -> Generator[Buffer, None, None]:
        check_ranges(self, ranges)
        spans = [self.blocks_of(wanted) for wanted in ranges]
        units = self._known_units(spans)
        lacking = {unit: self._unit_span(unit) for unit, sums in units.items() if sums is None}
        tail_offset = self._tail_offset
        read = [span for span in (*lacking.values(), *spans) if span.offset < tail_offset and span.size]
        stream = stream_ranges(self._source, read)
        try:
            for unit, span in lacking.items():
                data = self._bytes(span, stream)
                self._verify(span, data, units)
                units[unit] = self._keep(unit, data)
            for wanted, span in zip(ranges, spans, strict=True):
                data = self._bytes(span, stream)
                self._verify(span, data, units)
                start = wanted.offset - span.offset
                part = data[start : start + wanted.size]
                yield part.tobytes() if span.size <= _COPIED_BYTES else part
        finally:
            stream.close()

    def verified_end(self) -> bytes:
        """Return the last bytes of the file after comparing all of them at once.

        They are those at hand, in whole blocks of the tail region. If some are damaged, none are returned: what is
        needed is verified when it is read.
        """
        seal, offset = self._seal, self._tail_offset
        start = max(offset, seal.tail_start)
        start += (seal.tail_start - start) % seal.block_bytes
        start = min(start, seal.tail_end)
        if start < offset:
            return b""
        data = memoryview(self._tail)[start - offset : seal.tail_end - offset]
        first = (start - seal.tail_start) // seal.block_bytes
        is_damaged = find_mismatch(data, seal.block_bytes, seal.tail_sums.data, first) >= 0
        return b"" if is_damaged else self._tail[start - offset :]

    def find_damage(self) -> Iterator[ChecksumError]:
        """Read the whole file, and yield an error per block that is not what was written."""
        found: set[int | None] = set()
        for start in range(0, self.size_bytes, _STEP_BYTES):
            stop = min(start + _STEP_BYTES, self.size_bytes)
            try:
                for _ in self.stream_ranges([ByteRange(start, stop - start)]):
                    pass
            except ChecksumError:
                for error in self._damaged_blocks(start, stop):
                    if error.offset not in found:
                        found.add(error.offset)
                        yield error

    def _damaged_blocks(self, start: int, stop: int) -> Iterator[ChecksumError]:
        while start < stop:
            block = self.blocks_of(ByteRange(start, 1))
            try:
                self.read_ranges([block])
            except ChecksumError as error:
                yield error
            start = block.end

    def of_pages(self) -> VerifiedReader:
        """Return a reader of the file that keeps no more of its end than the checksums and the metadata."""
        return self._with(self._source, self._tail[max(self._seal.tail_start - self._tail_offset, 0) :])

    def over(self, source: RangeReader) -> VerifiedReader:
        """Return the same for another reader of the file."""
        return self._with(source, self._tail)

    def _with(self, source: RangeReader, tail: bytes) -> VerifiedReader:
        other = VerifiedReader(source, self._seal, tail, self._cache, self._key[:-1])
        other.describe = self.describe
        return other

    def close(self) -> None:
        """See `RangeReader`."""
        self._source.close()

    def blocks_of(self, wanted: ByteRange) -> ByteRange:
        """Return the blocks that a range lies in; the seal and the footer count as one."""
        seal, start, size = self._seal, wanted.offset, wanted.size
        end, block_bytes, tail_start = start + size, seal.block_bytes, seal.tail_start
        if not size:
            return wanted
        if start < tail_start:
            start -= start % block_bytes
        elif start < seal.tail_end:
            start -= (start - tail_start) % block_bytes
        else:
            start = seal.tail_end
        if end <= tail_start:
            end += -end % block_bytes
            if end > tail_start:
                end = tail_start
        elif end <= seal.tail_end:
            end = min(end + (tail_start - end) % block_bytes, seal.tail_end)
        else:
            end = self.size_bytes
        return ByteRange(start, end - start)

    def _bytes(self, span: ByteRange, stream: Generator[Buffer, None, None]) -> memoryview:
        if not span.size:
            return memoryview(b"")
        if span.offset >= self._tail_offset:
            start = span.offset - self._tail_offset
            return memoryview(self._tail)[start : start + span.size]
        found = next(stream)
        return found.data if isinstance(found, np.ndarray) else memoryview(found)

    def _known_units(self, spans: Sequence[ByteRange]) -> dict[int, Values | None]:
        """Return the units of sums that spans of the data region need, by number, None where one is not known."""
        unit_bytes, end = self._unit_bytes, self._seal.tail_start
        inside = [span for span in spans if span.offset < end and span.size]
        needed = {span.offset // unit_bytes for span in inside}
        if end > unit_bytes:
            for span in inside:
                needed.update(range(span.offset // unit_bytes, (min(span.end, end) - 1) // unit_bytes + 1))
        found = {unit: self._cache.get((*self._key, unit)) for unit in sorted(needed)}
        return {unit: known if isinstance(known, memoryview) else None for unit, known in found.items()}

    def _unit_span(self, unit: int) -> ByteRange:
        """Return the blocks that hold a unit of sums, which begins with a block."""
        first = unit * self._unit_blocks
        last = min(first + self._unit_blocks, self._seal.num_data_blocks)
        itemsize = SUM_TYPE.itemsize
        return self.blocks_of(ByteRange(self._seal.tail_start + first * itemsize, (last - first) * itemsize))

    def _keep(self, unit: int, data: memoryview) -> Values:
        count = min(self._unit_blocks, self._seal.num_data_blocks - unit * self._unit_blocks)
        sums = np.frombuffer(data, SUM_TYPE, count).astype(np.uint32)
        self._cache.put((*self._key, unit), sums.data, sums.nbytes)
        return sums.data

    def _verify(self, span: ByteRange, data: memoryview, units: dict[int, Values | None]) -> None:
        """Raise `ChecksumError` unless some blocks have their checksums."""
        seal, begin = self._seal, span.offset
        end = begin + span.size
        if begin < seal.tail_start:
            unit_bytes = self._unit_bytes
            stop = min(end, seal.tail_start)
            for start in range(begin - begin % unit_bytes, stop, unit_bytes):
                sums = units[start // unit_bytes]
                assert sums is not None
                self._compare(data, begin, max(start, begin), min(start + unit_bytes, stop), start, sums)
        if end <= seal.tail_start:
            return
        if begin < seal.tail_end:
            first, last = max(begin, seal.tail_start), min(end, seal.tail_end)
            self._compare(data, begin, first, last, seal.tail_start, seal.tail_sums.data)
        if end > seal.tail_end:
            first = max(begin, seal.tail_end)
            if data[first - begin :] != seal.end[first - seal.tail_end :]:
                raise self._mismatch(first, end)

    def _compare(self, data: memoryview, origin: int, first: int, last: int, start: int, sums: Values) -> None:
        """Raise `ChecksumError` unless successive blocks have their checksums.

        Parameters
        ----------
        data : memoryview
            Bytes of the file.
        origin : int
            Offset of the first of them in the file.
        first, last : int
            Offsets of the blocks in the file; the last block may be short.
        start : int
            Offset of the block of the first checksum.
        sums : memoryview of uint32
        """
        size = self._seal.block_bytes
        block = find_mismatch(data[first - origin : last - origin], size, sums, (first - start) // size)
        if block >= 0:
            offset = first + block * size
            raise self._mismatch(offset, min(offset + size, last))

    def _mismatch(self, offset: int, end: int) -> ChecksumError:
        what = ""
        describe = self.describe
        if describe is not None and not self._is_describing:
            self._is_describing = True  # A description reads metadata, which may be what is damaged.
            try:
                what = describe(ByteRange(offset, end - offset))
            finally:
                self._is_describing = False
        holding = f", which hold {what}," if what else ""
        return ChecksumError(
            f"bytes {offset} to {end}{holding} are not those that were written; {CHECKSUM_REMEDY}",
            path=self.path,
            offset=offset,
        )
