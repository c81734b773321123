"""Reading of whole fragments: the next ones are opened while one is read, and small ones are read together."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Generator, Iterable, Iterator, Sequence

from lance_format.datatypes import Schema
from lance_format.object_store import ReadCounter
from lance_format.table.fragments.joined_take import TakenRows
from lance_format.table.fragments.opening import opened_ahead
from lance_format.table.fragments.reader import FragmentReader
from lance_format.table.fragments.row_columns import LiveRows
from lance_format.table.fragments.small_fragments import read_small_fragments, smallness

_MOST_TOGETHER = 64


def read_whole(scans: Iterable[FragmentReader], schema: Schema, *, batch_size: int) -> Generator[TakenRows, None, None]:
    """Read some columns of the live rows of fragments.

    Parameters
    ----------
    scans : iterable of FragmentReader
    schema : Schema
        The columns, in output order.
    batch_size : int
        Maximum number of rows per batch.

    Yields
    ------
    (pa.RecordBatch, list of LiveRows)
        Rows of one fragment, or of several.
    """
    for are_small, some in itertools.groupby(scans, key=smallness(schema)):
        if are_small:
            for group in _groups(some, batch_size):
                yield from _read_together(group, schema, batch_size)
        else:
            yield from _read_ahead(some, schema, batch_size)


def _read_together(scans: Sequence[FragmentReader], schema: Schema, batch_size: int) -> Iterator[TakenRows]:
    found = list(read_small_fragments(scans, schema, ReadCounter())) if len(scans) > 1 else []
    if len(found) != 1 or len(found[0][0]) < len(scans):
        yield from _read_ahead(scans, schema, batch_size)
        return
    _, batch, offsets = found[0]
    if batch.num_rows:
        yield batch, [LiveRows(scan, rows, 0) for scan, rows in zip(scans, offsets, strict=True)]


def _read_ahead(scans: Iterable[FragmentReader], schema: Schema, batch_size: int) -> Iterator[TakenRows]:
    counter = ReadCounter()
    opened = opened_ahead(((scan, None) for scan in scans), schema, counter, lambda _, scan, __: scan.physical_rows())
    with contextlib.closing(opened) as ahead:
        for scan, _ in ahead:
            with scan.open(counter) as files:
                for batch, offsets in scan.read_range(files, schema, 0, scan.physical_rows(), batch_size=batch_size):
                    yield batch, [LiveRows(scan, offsets, 0)]


def _groups(scans: Iterable[FragmentReader], batch_size: int) -> Iterator[list[FragmentReader]]:
    """Yield fragments that follow each other and whose files hold the same fields, as many as are read together."""
    group: list[FragmentReader] = []
    num_rows = 0
    for scan in scans:
        size = scan.fragment.physical_rows
        is_full = len(group) == _MOST_TOGETHER or num_rows + size > batch_size
        if group and (is_full or _fields(scan) != _fields(group[0])):
            yield group
            group, num_rows = [], 0
        group.append(scan)
        num_rows += size
    if group:
        yield group


def _fields(scan: FragmentReader) -> list[tuple[int, ...]]:
    return [file.fields for file in scan.fragment.files]
