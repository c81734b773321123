"""Reading of many small fragments at once.

Only whole fragments are read so. A fragment that is damaged, or unusual, is left to `FragmentFiles`, which reads it or
says what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np
import pyarrow as pa

from lance_format.arrow_rows import take_rows
from lance_format.byte_io import ByteRange
from lance_format.data_block import starts_of
from lance_format.datatypes import Schema
from lance_format.errors import LanceError
from lance_format.file import MOST_ROWS, SmallFile, can_read_together, most_wide_bytes, read_small_files
from lance_format.object_store import CountedStore, ReadableStore, ReadCounter, map_together
from lance_format.table.format.file_entries import DataFile
from lance_format.table.format.fragment import FragmentMetadata
from lance_format.table.fragments.column_parts import ColumnParts, column_parts
from lance_format.table.fragments.deletion_file import RowOffsets
from lance_format.table.fragments.reader import (
    Consecutive,
    FragmentReader,
    OffsetsFunction,
    filter_rows,
    load_deleted_rows,
)
from lance_format.table.fragments.row_columns import LiveRows
from lance_format.version import FileVersion

_MOST_BYTES = 512 * 1024
"""Maximum size of the files of a small fragment: reading all of it costs less than the calls that look for a part."""

_SMALL_PAGE_BYTES = 32 * 1024
"""Reading a page of so many bytes costs no more than finding some of its rows."""

_TINY_PAGE_BYTES, _MOST_TINY_BYTES = 8 * 1024, 16 * 1024 * 1024
"""A page of at most so many bytes is a chunk or two, of which single rows need all; and bytes of several fragments."""

_WANTED_SHARE = 0.25
"""Share of the columns of a fragment with more bytes that have to be wanted."""


def has_small_files(fragment: FragmentMetadata) -> bool:
    """Return whether a fragment has few rows and bytes, as far as the table records these."""
    if not 0 < fragment.physical_rows <= MOST_ROWS:
        return False
    return 0 < fragment.known_bytes <= max(_MOST_BYTES, most_wide_bytes(_num_fields(fragment)))


def has_small_pages(fragment: FragmentMetadata) -> bool:
    """Return whether pages of a fragment with small files cost calls rather than bytes, single rows or not."""
    return fragment.known_bytes <= _SMALL_PAGE_BYTES * _num_fields(fragment)


def _num_fields(fragment: FragmentMetadata) -> int:
    return sum([len(file.fields) for file in fragment.files])


def smallness(schema: Schema) -> Callable[[FragmentReader], bool]:
    """Return what tells of a fragment whether these columns may be read with those of others: its files are small."""
    return partial(_is_small, sum(1 for _ in schema.walk()))


def _is_small(num_fields: int, scan: FragmentReader) -> bool:
    fragment = scan.fragment
    return (
        has_small_files(fragment)
        and (fragment.known_bytes <= _MOST_BYTES or num_fields >= _WANTED_SHARE * _num_fields(fragment))
        and all(file.file_size_bytes for file in fragment.files)
        and all(_has_levels(file) for file in fragment.files)
    )


def _has_levels(file: DataFile) -> bool:
    """Return whether a file is of format 2.1 or later, as far as the manifest knows."""
    version = FileVersion.from_manifest(file.file_major_version, file.file_minor_version)
    return version is None or version.has_levels


def read_small_fragments(
    scans: Sequence[FragmentReader], schema: Schema, counter: ReadCounter
) -> Iterator[tuple[list[int], pa.RecordBatch, list[RowOffsets | OffsetsFunction]]]:
    """Read some columns of all live rows of small fragments.

    Parameters
    ----------
    scans : sequence of FragmentReader
    schema : Schema
        The columns, in output order.
    counter : ReadCounter

    Yields
    ------
    (list of int, pa.RecordBatch, list of int64[num_rows] or OffsetsFunction)
        Positions of fragments, their rows in this order, and the offsets of these in each. Others have to be read for
        themselves.
    """
    groups: dict[ColumnParts, list[int]] = {}
    for position, scan in enumerate(scans):
        groups.setdefault(column_parts(schema, scan.fragment.files, scan.table), []).append(position)
    for parts, positions in groups.items():
        found = _read_alike(parts, {position: scans[position] for position in positions}, counter)
        if found is not None:
            yield found[0], *_live([scans[position] for position in found[0]], found[1])


def num_tiny(parts: ColumnParts, fragments: Sequence[LiveRows]) -> int:
    """Return how many fragments, from the first on, are read at once by `take_of_tiny`.

    Parameters
    ----------
    parts, fragments
        See there.
    """
    num_fields = sum([len(columns) for columns in parts.held.values()])
    if not fragments or fragments[0].scan.directory.store.is_remote:
        return 0
    num_bytes = 0
    for number, rows in enumerate(fragments):
        num_bytes += rows.scan.fragment.known_bytes
        if num_bytes > _MOST_TINY_BYTES or not _is_tiny(num_fields, rows.scan):
            return number
    return len(fragments)


def take_of_tiny(parts: ColumnParts, fragments: Sequence[LiveRows], counter: ReadCounter) -> pa.RecordBatch | None:
    """Read rows of fragments whose files are read as a whole sooner than their ends and parts.

    Parameters
    ----------
    parts : ColumnParts
        The wanted columns, which all of them hold alike.
    fragments : sequence of LiveRows
    counter : ReadCounter

    Returns
    -------
    pa.RecordBatch or None
        None if the fragments are larger, or have to be read for themselves.
    """
    if num_tiny(parts, fragments) < len(fragments):
        return None
    scans = [rows.scan for rows in fragments]
    found = _read_alike(parts, dict(enumerate(scans)), counter)
    if found is None or len(found[0]) < len(fragments):
        return None
    bases = starts_of(np.array([scan.fragment.physical_rows for scan in scans], np.int64)).tolist()
    places = np.concatenate([rows.offsets + base for rows, base in zip(fragments, bases, strict=True)])
    return take_rows(found[1], pa.array(places))


def _is_tiny(num_fields: int, scan: FragmentReader) -> bool:
    return scan.fragment.known_bytes <= _TINY_PAGE_BYTES * num_fields and _is_small(num_fields, scan)


def _live(
    scans: Sequence[FragmentReader], batch: pa.RecordBatch
) -> tuple[pa.RecordBatch, list[RowOffsets | OffsetsFunction]]:
    """Drop deleted rows; return the others, and their offsets in each fragment."""
    if all(scan.fragment.deletion_file is None for scan in scans):
        return batch, [Consecutive(0, scan.fragment.physical_rows) for scan in scans]
    load_deleted_rows(scans)
    kept = [np.ones(scan.fragment.physical_rows, np.bool_) for scan in scans]
    for mask, scan in zip(kept, scans, strict=True):
        mask[scan.deleted_rows()] = False
    return filter_rows(batch, pa.array(np.concatenate(kept))), [np.flatnonzero(mask) for mask in kept]


def _read_alike(
    parts: ColumnParts, scans: Mapping[int, FragmentReader], counter: ReadCounter
) -> tuple[list[int], pa.RecordBatch] | None:
    """Read fragments whose files hold the columns alike; see `read_small_fragments`."""
    if len(scans) < 2 or not parts.held or not all(map(can_read_together, parts.held.values())):
        return None
    store, numbers = next(iter(scans.values())).directory.store, list(parts.held)
    read = map_together(store, lambda scan: _load(scan, numbers, counter), scans.values())
    files = {position: loaded for position, loaded in zip(scans, read, strict=True) if loaded is not None}
    pieces: list[pa.RecordBatch] = []
    for number, projections in enumerate(parts.held.values()):
        is_read, rows = read_small_files([loaded[number] for loaded in files.values()], projections)
        if rows is None or (pieces and not all(is_read)):
            return None
        if not all(is_read):
            files = {position: file for (position, file), good in zip(files.items(), is_read, strict=True) if good}
        pieces.append(rows)
    try:
        return list(files), parts.assemble(pieces, pieces[0].num_rows)
    except LanceError:
        return None


def _load(scan: FragmentReader, numbers: Sequence[int], counter: ReadCounter) -> list[SmallFile] | None:
    """Read data files of a fragment into memory; None if that fails."""
    store = CountedStore(scan.directory.store, counter)
    try:
        return [_load_file(scan, store, scan.fragment.files[number]) for number in numbers]
    except LanceError:
        return None


def _load_file(scan: FragmentReader, store: ReadableStore, file: DataFile) -> SmallFile:
    path = scan.directory.holding(file, scan.bases).path(file.relative_path)
    source = store.open_reader(path, file.file_size_bytes)
    try:
        (data,) = source.read_ranges([ByteRange(0, file.file_size_bytes)])
    finally:
        source.close()
    return SmallFile(path, data, scan.fragment.physical_rows, scan.directory.verification(file.path))
