"""Payloads of blobs: storing them in a data file, and reading them by their descriptions.

Payloads of up to some tens of KiB, and all that this library writes, are in the data file itself. Others are in
separate or shared files, which are numbered and lie in a directory with the data file's name:

    data/<name of the data file without .lance>/<32 bits of the number, least significant first>.blob
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa

from lance_format.byte_io import ByteRange, RangeReader
from lance_format.data_block import Bytes, Counts, VariableWidthBlock
from lance_format.datatypes import Field
from lance_format.errors import CorruptFileError, NotSupportedError
from lance_format.file.blobs.arrays import (
    DEDICATED,
    EXTERNAL,
    INLINE,
    Descriptions,
    in_form_of,
    payload_sizes,
    payloads_of,
    replace_blobs,
)
from lance_format.file.columns.leaves import bitmap, validity_of, values_of
from lance_format.file.container.locating import locate
from lance_format.file.container.verified_reader import VerifiedReader
from lance_format.kernels.pages import mini_block as kernels
from lance_format.lazy_dataclasses import dataclass
from lance_format.object_store import ObjectNotFoundError, ReadableStore
from lance_format.structural.blob import ByteCounts

_ALIGNMENT = 64
_MAX_GAP_BYTES = 8 * 1024
_BYTES_AT_ONCE = 64 * 1024 * 1024
_BYTES_A_WRITE = 4 * 1024 * 1024


class BlobSource(Protocol):
    """Opens the files that have the payloads of one data file."""

    def open_data_file(self) -> RangeReader:
        """Open the data file itself."""

    def open_sidecar(self, blob_id: int) -> RangeReader:
        """Open a file besides it.

        Parameters
        ----------
        blob_id : int
            From 0 to 2^32 - 1.

        Raises
        ------
        CorruptFileError
            If there is no such file.
        """


@dataclass(frozen=True, slots=True)
class StoredBlobs:
    """The `BlobSource` of a data file in a store.

    Parameters
    ----------
    store : ReadableStore
    path : str
        Of the data file.
    """

    store: ReadableStore
    path: str

    def open_data_file(self) -> RangeReader:
        """See `BlobSource`."""
        return self.store.open_reader(self.path)

    def open_sidecar(self, blob_id: int) -> RangeReader:
        """See `BlobSource`."""
        bits = f"{blob_id:032b}"
        path = f"{self.path.removesuffix('.lance')}/{bits[::-1]}.blob"
        try:
            return self.store.open_reader(path)
        except ObjectNotFoundError as error:
            raise CorruptFileError("a blob is said to be in this file, which does not exist", path=path) from error


@dataclass(frozen=True, slots=True)
class VerifiedBlobs:
    """The `BlobSource` of a sealed data file; files besides it have no checksums.

    Parameters
    ----------
    files : BlobSource
    source : VerifiedReader
        The data file, open.
    """

    files: BlobSource
    source: VerifiedReader

    def open_data_file(self) -> RangeReader:
        """See `BlobSource`."""
        return self.source.over(self.files.open_data_file())

    def open_sidecar(self, blob_id: int) -> RangeReader:
        """See `BlobSource`."""
        return self.files.open_sidecar(blob_id)


@dataclass(frozen=True, slots=True)
class BlobLocation:
    """Place of a payload: a range of what `open` opens."""

    open: Callable[[], RangeReader]
    extent: ByteRange


def store_payloads(array: pa.Array, field: Field, target: Field, write: Callable[[memoryview], int]) -> pa.Array:
    """Write the payloads of a column, and return it with descriptions in their place.

    Parameters
    ----------
    array : pyarrow.Array
    field, target : Field
        The field of the table, and the same with descriptions.
    write : callable
        Writes bytes at the next multiple of 64 bytes, and returns that offset.
    """

    def store(blobs: pa.Array, described: Field) -> pa.Array:
        payloads = payloads_of(blobs, described.name)
        valid = validity_of(payloads)
        block = values_of(payloads, valid)
        assert isinstance(block, VariableWidthBlock)
        sizes = np.diff(block.offsets)
        positions = _write_all(block, sizes, write)
        kinds, ids = np.zeros(len(sizes), np.uint8), np.zeros(len(sizes), np.uint32)
        return Descriptions(valid, kinds, positions.view(np.uint64), sizes.view(np.uint64), ids).to_array(described)

    return replace_blobs(array, field, target, store)


def _write_all(block: VariableWidthBlock, sizes: Counts, write: Callable[[memoryview], int]) -> Counts:
    """Write the payloads that are not empty; returns where each is, 0 for empty ones. Small ones go together."""
    positions = np.zeros(len(sizes), np.int64)
    rows = np.flatnonzero(sizes)
    padded = (sizes[rows] + _ALIGNMENT - 1) // _ALIGNMENT * _ALIGNMENT
    ends = np.cumsum(padded)
    first = 0
    while first < rows.size:
        begin = int(ends[first] - padded[first])
        last = max(first + 1, int(np.searchsorted(ends, begin + _BYTES_A_WRITE, side="right")))
        chosen = rows[first:last]
        data = block.data[int(block.offsets[chosen[0]]) : int(block.offsets[chosen[-1] + 1])]
        starts = ends[first:last] - padded[first:last] - begin
        if last - first > 1:
            out = np.zeros(int(starts[-1] + sizes[chosen[-1]]), np.uint8)
            kernels.scatter(data, sizes[chosen], starts, out)
            data = out
        positions[chosen] = write(data.data) + starts
        first = last
    return positions


class BlobReader:
    """Reads payloads of one data file.

    Parameters
    ----------
    source : RangeReader
        The data file, open.
    files : BlobSource or None
        The files that payloads may be in; None if only those in the data file can be read.
    """

    def __init__(self, source: RangeReader, files: BlobSource | None) -> None:
        self._source = source
        self._files = files

    def resolve(
        self, arrays: Sequence[pa.Array], described: Sequence[Field], wanted: Sequence[Field]
    ) -> Iterator[list[pa.Array]]:
        """Read the payloads of some columns, in batches of some tens of MiB, or one row.

        Parameters
        ----------
        arrays : sequence of pyarrow.Array
            The same rows of several columns, with descriptions in place of blobs.
        described, wanted : sequence of Field
            The fields of the columns, and of the results: with bytes, or the table's form, in place of descriptions, or
            unchanged.

        Yields
        ------
        list of pyarrow.Array
        """
        columns = list(zip(arrays, described, wanted, strict=True))
        if all(field is target for _, field, target in columns):
            yield list(arrays)
            return
        sizes = np.sum(
            [payload_sizes(array, field, _BYTES_AT_ONCE) for array, field, target in columns if field is not target],
            axis=0,
        )
        ends = np.cumsum(sizes)
        start = 0
        while start < ends.size:
            limit = ends[start] - sizes[start] + _BYTES_AT_ONCE
            stop = max(start + 1, int(np.searchsorted(ends, limit, side="right")))
            yield [self.load(array.slice(start, stop - start), field, target) for array, field, target in columns]
            start = stop

    def load(self, array: pa.Array, field: Field, target: Field) -> pa.Array:
        """Return a column with payloads in place of descriptions.

        Parameters
        ----------
        array : pyarrow.Array
            A column with descriptions.
        field, target : Field
            Fields of the column and of the result. The column is returned unchanged if they are equal.

        Raises
        ------
        CorruptFileError
            If a payload is not within its file, or two overlap: every row is expected once.
        NotSupportedError
            If a payload is outside of the table's files.
        """
        if field is target:
            return array
        try:
            return replace_blobs(array, field, target, lambda blobs, wanted: in_form_of(self._load(blobs), wanted))
        except (CorruptFileError, NotSupportedError) as error:
            raise locate(error, self._source.path, field.name) from error

    def locate(self, array: pa.StructArray) -> list[BlobLocation | None]:
        """Return the location of the payload of each description, None for nulls; see `load` for the errors."""
        found = Descriptions.parse(array)
        _check_kinds(found)
        self._check_inline(found)
        locations: list[BlobLocation | None] = []
        for row in range(len(array)):
            if found.valid is not None and not found.valid[row]:
                locations.append(None)
                continue
            extent = ByteRange(int(found.positions[row]), int(found.sizes[row]))
            locations.append(BlobLocation(self._opener(int(found.kinds[row]), int(found.blob_ids[row])), extent))
        return locations

    def _opener(self, kind: int, blob_id: int) -> Callable[[], RangeReader]:
        files = self._files
        if files is None:
            raise NotSupportedError("blobs can be opened only if their file is known")
        return files.open_data_file if kind == INLINE else lambda: files.open_sidecar(blob_id)

    def _load(self, array: pa.StructArray) -> pa.Array:
        found = Descriptions.parse(array)
        _check_kinds(found)
        self._check_inline(found)
        rows = np.flatnonzero(found.sizes)
        owners = np.where(found.kinds[rows] == INLINE, np.int64(-1), found.blob_ids[rows].astype(np.int64))
        order = np.lexsort((found.positions[rows], owners))
        rows, owners = rows[order], owners[order]
        pieces = []
        for group in np.split(np.arange(rows.size), np.flatnonzero(np.diff(owners)) + 1):
            if group.size:
                mine = rows[group]
                pieces.append(self._read(int(owners[group[0]]), found.positions[mine], found.sizes[mine]))
        data = pieces[0] if len(pieces) == 1 else np.concatenate([np.empty(0, np.uint8), *pieces])
        sizes = found.sizes.astype(np.int64)
        if (np.diff(order) < 0).any():
            offsets = np.concatenate([[0], np.cumsum(sizes[rows])])
            data = VariableWidthBlock(data, offsets).take(np.argsort(order)).data
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        buffers = [bitmap(found.valid), pa.py_buffer(offsets), pa.py_buffer(data)]
        return pa.Array.from_buffers(pa.large_binary(), len(array), buffers)

    def _read(self, owner: int, positions: ByteCounts, sizes: ByteCounts) -> Bytes:
        """Read ascending ranges of one file, one after the other."""
        if owner < 0:
            return _read_ranges(self._source, positions, sizes)
        if self._files is None:
            raise NotSupportedError("blobs outside of the data file can be read only where its place is known")
        sidecar = self._files.open_sidecar(owner)
        try:
            return _read_ranges(sidecar, positions, sizes)
        finally:
            sidecar.close()

    def _check_inline(self, found: Descriptions) -> None:
        inline = found.kinds == INLINE
        _check_within(self._source, found.positions[inline], found.sizes[inline])


def _check_kinds(found: Descriptions) -> None:
    kinds = found.kinds if found.valid is None else found.kinds[found.valid]
    highest = int(kinds.max(initial=0))
    if highest == EXTERNAL:
        raise NotSupportedError("a blob is stored outside of the table, at a URI, which is not followed")
    if highest > DEDICATED:
        raise NotSupportedError(f"a blob is stored in the unknown way {highest}")


def _check_within(source: RangeReader, positions: ByteCounts, sizes: ByteCounts) -> None:
    limit = np.uint64(source.size_bytes)
    outside = (sizes > 0) & ((sizes > limit) | (positions > limit - np.minimum(sizes, limit)))
    if outside.any():
        row = int(np.argmax(outside))
        raise CorruptFileError(
            f"a blob of {sizes[row]} bytes at byte {positions[row]} ends after the file, which has {limit} bytes",
            path=source.path,
        )


def _read_ranges(source: RangeReader, positions: ByteCounts, sizes: ByteCounts) -> Bytes:
    """Read ascending ranges, which must not overlap; nearly adjacent ones are read together."""
    _check_within(source, positions, sizes)
    starts, lengths = positions.astype(np.int64), sizes.astype(np.int64)
    ends = starts + lengths
    gaps = starts[1:] - ends[:-1]
    if (gaps < 0).any():
        raise CorruptFileError(f"two blobs overlap at byte {starts[1:][gaps < 0][0]}", path=source.path)
    firsts = np.concatenate([[0], np.flatnonzero(gaps > _MAX_GAP_BYTES) + 1])
    lasts = np.append(firsts[1:], starts.size) - 1
    runs = list(zip(firsts, lasts, strict=True))
    requests = [ByteRange(int(starts[first]), int(ends[last] - starts[first])) for first, last in runs]
    out = np.empty(int(lengths.sum()), np.uint8)
    position = 0
    for (first, last), data in zip(runs, source.read_ranges(requests), strict=True):
        chosen = slice(first, last + 1)
        within = starts[chosen] - starts[first]
        position += kernels.copy_slices(np.frombuffer(data, np.uint8), within, lengths[chosen], out[position:])
    return out
