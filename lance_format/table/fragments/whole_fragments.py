"""Reading of whole fragments: the next ones are opened while one is read, and small ones are read together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lance_format.datatypes import Schema
from lance_format.object_store import ReadCounter
from lance_format.table.fragments.joined_take import TakenRows
from lance_format.table.fragments.opening import opened_ahead
from lance_format.table.fragments.reader import FragmentReader
from lance_format.table.fragments.row_columns import LiveRows
from lance_format.table.fragments.small_fragments import is_small, read_small_fragments

_MOST_TOGETHER = 64


def read_whole(scans: Iterable[FragmentReader], schema: Schema, *, batch_size: int) -> Iterator[TakenRows]:
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
    counter = ReadCounter()
    ahead = opened_ahead(((scan, None) for scan in scans), schema, counter, lambda _, scan, __: scan.physical_rows())
    for group in _groups((scan for scan, _ in ahead), batch_size):
        found = list(read_small_fragments(group, schema, counter)) if len(group) > 1 else []
        if len(found) == 1 and len(found[0][0]) == len(group):
            _, batch, offsets = found[0]
            if batch.num_rows:
                yield batch, [LiveRows(scan, rows, 0) for scan, rows in zip(group, offsets, strict=True)]
            continue
        for scan in group:
            with scan.open(counter) as files:
                stop = scan.physical_rows()
                for batch, offsets_of in scan.read_range(files, schema, 0, stop, batch_size=batch_size):
                    yield batch, [LiveRows(scan, offsets_of, 0)]


def _groups(scans: Iterable[FragmentReader], batch_size: int) -> Iterator[list[FragmentReader]]:
    """Yield small fragments that follow each other and whose files hold the same fields together, others alone."""
    group: list[FragmentReader] = []
    num_rows = 0
    for scan in scans:
        size = scan.fragment.physical_rows
        fits = group and len(group) < _MOST_TOGETHER and num_rows + size <= batch_size
        if group and not (fits and is_small(scan) and is_small(group[0]) and _fields(scan) == _fields(group[0])):
            yield group
            group, num_rows = [], 0
        group.append(scan)
        num_rows += size
    if group:
        yield group


def _fields(scan: FragmentReader) -> list[tuple[int, ...]]:
    return [file.fields for file in scan.fragment.files]
