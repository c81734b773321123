"""Reads of a sealed file, each verified before anybody sees its bytes."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from typing import cast

import numpy as np
import numpy.typing as npt

from lance_format.byte_io import Buffer, ByteRange, PackingReader, RangeReader, stream_ranges
from lance_format.errors import ChecksumError
from lance_format.file.container.block_sums import Values, find_mismatch, sums_of
from lance_format.file.container.seal import SUM_TYPE, Seal, Sums
from lance_format.file.container.search_cache import Key, SearchCache

Numbers = npt.NDArray[np.int64]

_UNIT_BYTES = 64 * 1024
"""Sums of the data region that are read and cached together, those of 128 MiB: a multiple of every block size."""

_STEP_BYTES = 4 * 1024 * 1024
_MANY_RANGES = 16
"""From so many small ranges on they are read together, which takes 60 µs and saves 4 µs each."""

_TOGETHER_BYTES = 512 * 1024
"""Bytes that are read together, which the caches of a processor hold."""

_COPIED_BYTES = 64 * 1024
"""Of so few blocks the wanted part is copied, so that single rows do not keep the rest of them in memory."""

REMEDY = (
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
        self.describe: Callable[[ByteRange], str] | None = None

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
        together = self._together(ranges) if len(ranges) >= _MANY_RANGES else None
        if together is not None:
            yield from together
            return
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

    def _together(self, ranges: Sequence[ByteRange]) -> Iterator[bytes] | None:
        """Return a reading of small ranges of the data region, or None if there are others, or sums are not known."""
        if not hasattr(self._source, "read_into"):
            return None
        size = self._seal.block_bytes
        begins, stops = [wanted.offset for wanted in ranges], [wanted.offset + wanted.size for wanted in ranges]
        if min(begins) < 0 or max(stops) > self._seal.tail_start // size * size:
            return None
        offsets = np.array(begins)
        sizes = np.array(stops) - offsets
        first, last = offsets // size, -(-(offsets + sizes) // size)
        num_blocks = last - first
        if num_blocks.max() * size > _COPIED_BYTES:
            return None
        ends = np.cumsum(num_blocks)
        blocks = np.arange(ends[-1]) + np.repeat(last - ends, num_blocks)
        sums = self._known_sums(blocks)
        source = cast("PackingReader", self._source)
        return None if sums is None else self._read_together(source, offsets, sizes, first, ends, blocks, sums)

    def _read_together(
        self,
        source: PackingReader,
        offsets: Numbers,
        sizes: Numbers,
        first: Numbers,
        ends: Numbers,
        blocks: Numbers,
        sums: Sums,
    ) -> Iterator[bytes]:
        """Read ranges, some hundred KiB at once into the same memory, and yield a copy of each.

        Parameters
        ----------
        source : PackingReader
        offsets, sizes : int64[num_ranges]
        first : int64[num_ranges]
            The first block of each.
        ends : int64[num_ranges]
            Number of blocks of the ranges up to and including each.
        blocks : int64[num_blocks]
            The blocks of all ranges.
        sums : uint32[num_blocks]
            What they ought to be.
        """
        size = self._seal.block_bytes
        memory = np.empty(_TOGETHER_BYTES, np.uint8).data
        starts = np.concatenate(([0], ends[:-1]))
        begins = offsets - first * size + starts * size
        read = 0
        while read < len(ends):
            block = int(starts[read])
            stop = int(np.searchsorted(ends, block + _TOGETHER_BYTES // size, "right"))
            data = memory[: (int(ends[stop - 1]) - block) * size]
            some = slice(read, stop)
            source.read_into((first[some] * size).tolist(), ((ends[some] - starts[some]) * size).tolist(), data)
            different = np.flatnonzero(sums_of(data, size) != sums[block : ends[stop - 1]])
            if different.size:
                offset = int(blocks[block + different[0]]) * size
                raise self._mismatch(offset, offset + size)
            places = begins[some] - block * size
            for begin, end in zip(places.tolist(), (places + sizes[some]).tolist(), strict=True):
                yield data[begin:end].tobytes()
            read = stop

    def _known_sums(self, blocks: Numbers) -> Sums | None:
        """Return the sums of blocks of the data region; None if some are not known."""
        sums = np.empty(len(blocks), np.uint32)
        units = blocks // self._unit_blocks
        for unit in set(units.tolist()):
            known = self._cache.get((*self._key, unit))
            if not isinstance(known, memoryview):
                return None
            wanted = units == unit
            sums[wanted] = np.asarray(known)[blocks[wanted] - unit * self._unit_blocks]
        return sums

    def find_damage(self) -> Iterator[ChecksumError]:
        """Read the whole file, and yield an error per block that is not what was written."""
        found: set[int | None] = set()
        for start in range(0, self.size_bytes, _STEP_BYTES):
            stop = min(start + _STEP_BYTES, self.size_bytes)
            try:
                self.read_ranges([ByteRange(start, stop - start)])
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
        what = "" if self.describe is None else self.describe(ByteRange(offset, end - offset))
        holding = f", which hold {what}," if what else ""
        return ChecksumError(
            f"bytes {offset} to {end}{holding} are not those that were written; {REMEDY}",
            path=self.path,
            offset=offset,
        )
