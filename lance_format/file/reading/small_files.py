"""Reading of small files, each of which is in memory: of many at once, or of one with many columns.

A small file costs calls rather than bytes: as many as a large one. So its end is parsed where it differs from those of
other files, and the pages that all files have of a column, or of columns of one type, are decoded as one
(`lance_format.structural.together`).

Nothing is an error here. A file that is damaged, or that holds anything unusual, is left to `FileReader`, which reads
it or says what is wrong.
"""

from __future__ import annotations

import contextlib
from collections.abc import Hashable, Iterator, Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from lance_format import memory
from lance_format.arrow_rows import take_rows
from lance_format.byte_io import ByteRange, RangeReader
from lance_format.data_block import Bytes, starts_of
from lance_format.errors import CorruptFileError, LanceError, NotSupportedError
from lance_format.file.columns.assembly import build_leaf, bytes_of_strings, merge
from lance_format.file.columns.dictionaries import concat
from lance_format.file.columns.leaf_columns import Leaf
from lance_format.file.columns.projection import ColumnProjection
from lance_format.file.container.block_sums import find_mismatch
from lance_format.file.container.column_metadata import PageMetadata, parse_column
from lance_format.file.container.footer import TailReader, read_metadata, read_version
from lance_format.file.container.inline_values import Surroundings
from lance_format.file.container.seal import Seal
from lance_format.file.reading.batches import to_batch
from lance_format.file.reading.file_end import Verification, read_verified_seal
from lance_format.lazy_dataclasses import dataclass
from lance_format.object_store.memory import MemoryReader
from lance_format.proto import encodings_pb2
from lance_format.structural.page import PlacedPage
from lance_format.structural.row_index import expand_ranges
from lance_format.structural.together import decode_group, group_pages
from lance_format.version import FileVersion

_Column: TypeAlias = tuple[Sequence[PageMetadata], bytes | None]
"""The pages of a column; the inline value of the only one, if its layout has that of another file."""

_Pages: TypeAlias = tuple[Sequence[_Column], bool]
"""The wanted columns of a file, and whether its chunk tables have large words."""

MOST_ROWS = 32 * 1024
"""Maximum number of rows of a small file."""

_MOST_FIELD_BYTES, _MOST_WIDE_BYTES = 48 * 1024, 16 * 1024 * 1024
"""A file is small as well that has so few bytes for each of its fields, up to the latter."""

_LEAST_COLUMNS = 8
"""Fewer columns of a file cost little to look for."""

_LEAST_SLICE_ROWS = 64
"""From so many rows of a page on, on average, copying pages costs less than copying rows."""

_ALIGNMENT = 64
_MOST_BYTES = 64 * 1024 * 1024
"""Maximum size of the rows in memory."""

_MOST_ITEMS_ALIKE = 512 * 1024
"""Maximum number of values of columns of one type that are decoded at once: more cost bytes rather than calls."""


@dataclass(frozen=True, slots=True)
class SmallFile:
    """A data file in memory.

    Parameters
    ----------
    path : str
    data : bytes
        The whole file.
    num_rows : int
        Its rows, according to the manifest.
    verification : Verification
    """

    path: str
    data: bytes
    num_rows: int
    verification: Verification


def can_read_together(projections: Sequence[ColumnProjection]) -> bool:
    """Return whether columns can be read from many files at once: each row has one value, and no payload elsewhere."""
    try:
        return all(
            projection.stored is projection.field and all(leaf.items_per_row == 1 for leaf, _ in projection.leaves)
            for projection in projections
        )
    except LanceError:
        return False


def read_small_files(
    files: Sequence[SmallFile], projections: Sequence[ColumnProjection]
) -> tuple[list[bool], pa.RecordBatch | None]:
    """Read all rows of some files.

    Parameters
    ----------
    files : sequence of SmallFile
    projections : sequence of ColumnProjection
        The columns, at least one, which all files hold alike; see `can_read_together`.

    Returns
    -------
    is_read : list of bool
        Whether each file has been read.
    rows : pa.RecordBatch or None
        The rows of these files, in order; None if there are none.
    """
    leaves = [found for projection in projections for found in projection.leaves]
    columns = _ColumnParser([number for _, number in leaves])
    found = [_open(file, columns) for file in files]
    opened = [(file, columns) for file, columns in zip(files, found, strict=True) if columns is not None]
    num_rows = sum(file.num_rows for file, _ in opened)
    if opened and num_rows * sum(leaf.slot_bytes for leaf, _ in leaves) <= _MOST_BYTES:
        with contextlib.suppress(LanceError, OverflowError):
            arrays = _decode(opened, [leaf for leaf, _ in leaves])
            return [columns is not None for columns in found], _to_batch(arrays, projections, num_rows)
    return [False] * len(files), None


def most_wide_bytes(num_fields: int) -> int:
    """Return up to how many bytes a file with few rows is small because of its many fields."""
    return min(num_fields * _MOST_FIELD_BYTES, _MOST_WIDE_BYTES)


def is_wide(source: RangeReader, version: FileVersion, num_rows: int, projections: Sequence[ColumnProjection]) -> bool:
    """Return whether a file has many wanted columns with few rows and bytes each, so that calls for each cost most.

    Parameters
    ----------
    source : RangeReader
    version : FileVersion
    num_rows : int
        Number of rows of the file.
    projections : sequence of ColumnProjection
    """
    if not 0 < num_rows <= MOST_ROWS or len(projections) < _LEAST_COLUMNS:
        return False
    if source.request_shape.reads_ahead or not version.has_levels:
        return False
    return source.size_bytes <= most_wide_bytes(len(projections))


def read_wide_file(
    source: RangeReader, projections: Sequence[ColumnProjection], num_rows: int
) -> pa.RecordBatch | None:
    """Read all rows of a file whose end has been read, columns of one type at once; see `is_wide`.

    Parameters
    ----------
    source : RangeReader
        Which verifies what it reads.
    projections : sequence of ColumnProjection
    num_rows : int

    Returns
    -------
    pa.RecordBatch or None
        None if the file has to be read column by column.

    Raises
    ------
    StorageError
        If the storage fails.
    """
    if not can_read_together(projections):
        return None
    with contextlib.suppress(CorruptFileError, NotSupportedError):
        (data,) = source.read_ranges([ByteRange(0, source.size_bytes)])
        return read_small_files([SmallFile(source.path, data, num_rows, Verification(False))], projections)[1]
    return None


class _ColumnParser:
    """Parses the metadata of some columns, which files often have in common, or but for the only value.

    Parameters
    ----------
    numbers : sequence of int
        The numbers of the columns.
    """

    def __init__(self, numbers: Sequence[int]) -> None:
        self.numbers = numbers
        self._known: dict[tuple[int, FileVersion], Surroundings] = {}
        self._last: dict[tuple[int, FileVersion], tuple[int, Sequence[int]]] = {}

    def parse(self, number: int, data: bytes, file_size: int, version: FileVersion) -> _Column:
        """Return the pages of a column, given its metadata; see `parse_column`."""
        place = number, version
        known = self._known.get(place)
        value = None if known is None else known.value_in(data)
        if known is not None and value is not None:
            return known.pages, value
        pages = parse_column(data, file_size, version).pages
        form = len(data), [page.num_rows for page in pages]
        if self._last.get(place) == form:  # Otherwise the next file probably differs in more than the value, too.
            found = Surroundings.of(data, pages, version)
            if found is not None:
                self._known[place] = found
        self._last[place] = form
        return pages, None


def _open(file: SmallFile, columns: _ColumnParser) -> _Pages | None:
    """Verify a file, and find the pages of some of its columns; None if it is better read for itself."""
    tail = TailReader(MemoryReader(file.path, file.data), file.data)
    try:
        seal = read_verified_seal(tail, file.verification)
        if seal is not None and not _is_intact(file.data, seal):
            return None
        version = read_version(tail)
        if not version.has_levels:
            return None
        metadata = read_metadata(tail, version)
        numbers = columns.numbers
        if metadata.num_rows != file.num_rows or not all(0 <= number < metadata.num_columns for number in numbers):
            return None
        messages = tail.read([metadata.columns[number] for number in numbers])
        found = [
            columns.parse(number, message, len(file.data), version)
            for number, message in zip(numbers, messages, strict=True)
        ]
    except LanceError:
        return None
    for pages, _ in found:
        sizes = [page.num_rows for page in pages]
        if sum(sizes) != file.num_rows or not all(sizes):
            return None
    return found, version.has_large_chunks


def _is_intact(data: bytes, seal: Seal) -> bool:
    """Return whether a file has the checksums of all of its blocks; the seal itself has been verified."""
    whole, size = memoryview(data), seal.block_bytes
    if find_mismatch(whole[seal.tail_start : seal.tail_end], size, seal.tail_sums.data, 0) >= 0:
        return False
    return find_mismatch(whole[: seal.tail_start], size, seal.data_sums(data).data, 0) < 0


def _decode(opened: Sequence[tuple[SmallFile, _Pages]], leaves: Sequence[Leaf]) -> list[pa.Array]:
    """Return the rows of the leaves."""
    pages: list[list[PlacedPage]] = [[] for _ in leaves]
    sizes = [-(-len(file.data) // _ALIGNMENT) * _ALIGNMENT for file, _ in opened]
    data, base = memory.empty(sum(sizes), np.uint8), 0
    for (file, (columns, large_chunks)), size in zip(opened, sizes, strict=True):
        for placed, (column, value) in zip(pages, columns, strict=True):
            for page in column:
                assert isinstance(page.layout, encodings_pb2.PageLayout)
                placed.append(PlacedPage(page.layout, page.buffers, page.num_rows, large_chunks, base, value))
        end = base + len(file.data)
        data[base:end] = np.frombuffer(file.data, np.uint8)
        data[end : base + size] = 0
        base += size
    data.setflags(write=False)
    arrays: dict[int, pa.Array] = {}
    room, num_rows = _MOST_BYTES, sum(file.num_rows for file, _ in opened)
    for alike in _alike(pages, leaves, num_rows):
        whole = _decode_leaf([page for number in alike for page in pages[number]], leaves[alike[0]], data, room)
        room -= whole.nbytes
        arrays.update((number, whole.slice(place * num_rows, num_rows)) for place, number in enumerate(alike))
    return [arrays[number] for number in range(len(leaves))]


def _alike(pages: Sequence[Sequence[PlacedPage]], leaves: Sequence[Leaf], num_rows: int) -> Iterator[list[int]]:
    """Yield the numbers of leaves whose pages are decoded at once: those of one type that have one layout."""
    groups: dict[Hashable, list[int]] = {}
    for number, (leaf, own) in enumerate(zip(leaves, pages, strict=True)):
        is_alike = leaf.form is not None and len({id(page.layout) for page in own}) == 1
        groups.setdefault((leaf.form, id(own[0].layout)) if is_alike else number, []).append(number)
    for group in groups.values():
        own = pages[group[0]]
        num_items = len(own) * own[0].layout.mini_block_layout.num_items  # Those of lists, rows otherwise.
        most = max(1, _MOST_ITEMS_ALIKE // max(num_rows, num_items))
        for start in range(0, len(group), most):
            yield group[start : start + most]


def _decode_leaf(pages: Sequence[PlacedPage], leaf: Leaf, data: Bytes, room: int) -> pa.Array:
    """Return the rows of a leaf in the order of its pages, of at most `room` bytes."""
    groups = group_pages(pages)
    arrays: list[pa.Array] = []
    for group in groups:
        for decoded in decode_group([pages[position] for position in group], data, leaf.shape):
            is_too_large = bytes_of_strings(decoded.values, leaf.arrow_type) > room
            built = [] if is_too_large else build_leaf(decoded, leaf)
            room -= sum(array.nbytes for array in built)
            if is_too_large or room < 0:
                raise NotSupportedError(f"column {leaf.name!r} of these files is too large to be read at once")
            arrays += built
    whole = concat(arrays)
    sizes = np.array([page.num_rows for page in pages])
    if len(whole) != sizes.sum():
        raise CorruptFileError(f"column {leaf.name!r}: the pages do not hold their {sizes.sum()} rows")
    if len(groups) == 1:
        return whole
    order = np.concatenate(groups)
    starts = np.empty(len(pages), np.int64)
    starts[order] = starts_of(sizes[order])
    if len(whole) >= _LEAST_SLICE_ROWS * len(pages):
        return concat([whole.slice(start, size) for start, size in zip(starts.tolist(), sizes.tolist(), strict=True)])
    return take_rows(whole, pa.array(expand_ranges(starts, starts + sizes)))


def _to_batch(arrays: Sequence[pa.Array], projections: Sequence[ColumnProjection], num_rows: int) -> pa.RecordBatch:
    left = iter(arrays)
    merged = [merge(projection.stored, [next(left) for _ in projection.leaves]) for projection in projections]
    return to_batch(merged, pa.schema([projection.arrow_field for projection in projections]), num_rows)
