"""Taking rows of many fragments: those whose files hold the columns alike are read at once."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import MappingProxyType
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from lance_format.datatypes import Schema
from lance_format.errors import CorruptFileError, LanceError, NotSupportedError
from lance_format.file import take_joined
from lance_format.object_store import ReadCounter
from lance_format.table.fragments.column_parts import ColumnParts, column_parts
from lance_format.table.fragments.open_files import FragmentFiles
from lance_format.table.fragments.row_columns import LiveRows
from lance_format.table.fragments.small_fragments import num_tiny, take_of_tiny

_MOST_TOGETHER = 64
"""Maximum number of fragments whose files are open at the same time."""
_MOST_OPENED_AT_ONCE = 32
"""Maximum number of files that are opened concurrently, where a request takes long."""

OpenFiles: TypeAlias = Mapping[int, FragmentFiles]
NONE_OPEN: OpenFiles = MappingProxyType({})
TakenRows: TypeAlias = tuple[pa.RecordBatch, list[LiveRows]]
"""Rows of some fragments, in order."""


def take_fragments(
    fragments: Sequence[LiveRows],
    schema: Schema,
    counter: ReadCounter | None = None,
    opened: OpenFiles = NONE_OPEN,
) -> Iterator[TakenRows]:
    """Read rows of fragments, in order.

    Parameters
    ----------
    fragments : sequence of LiveRows
        The rows of each fragment, deleted or not, ascending; they may repeat.
    schema : Schema
        The columns, in output order.
    counter : ReadCounter, optional
    opened : mapping of int to FragmentFiles
        Files that are open, by the ids of fragments; they stay open.
    """
    for parts, alike in itertools.groupby(fragments, lambda rows: _parts_of(rows, schema)):
        left = list(alike)
        while left:
            count = num_tiny(parts, left[:_MOST_TOGETHER]) or _MOST_TOGETHER
            group, left = left[:count], left[count:]
            found = _take_together(parts, group, counter, opened)
            if found is not None:
                yield found, group
                continue
            for rows in group:
                yield from _take_alone(rows, schema, counter, opened)


def take_alike(
    fragments: Sequence[LiveRows],
    schema: Schema,
    counter: ReadCounter | None = None,
    opened: OpenFiles = NONE_OPEN,
) -> pa.RecordBatch | None:
    """Read rows of several fragments at once; see `take_fragments`.

    Returns
    -------
    pa.RecordBatch or None
        None if each has to be read for itself: there is one only, or too many, they hold the columns differently, or
        something is unusual or wrong.
    """
    if len(fragments) > _MOST_TOGETHER:
        return None
    held = {_parts_of(rows, schema) for rows in fragments}
    return _take_together(held.pop(), fragments, counter, opened) if len(held) == 1 else None


def _parts_of(rows: LiveRows, schema: Schema) -> ColumnParts:
    return column_parts(schema, rows.scan.fragment.files, rows.scan.table)


def _take_together(
    parts: ColumnParts, fragments: Sequence[LiveRows], counter: ReadCounter | None, opened: OpenFiles
) -> pa.RecordBatch | None:
    """Read rows of fragments whose files hold the columns alike; see `take_alike`."""
    if len(fragments) < 2 or not parts.held:
        return None
    tiny = take_of_tiny(parts, fragments, ReadCounter() if counter is None else counter)
    if tiny is not None:
        return tiny
    with contextlib.ExitStack() as stack:
        holders = [stack.enter_context(_files_of(rows, counter, opened)) for rows in fragments]
        try:
            _open(parts, fragments, holders)
            pieces = []
            for number, columns in parts.held.items():
                files = zip(fragments, holders, strict=True)
                readers = [holder.reader(rows.scan.fragment.files[number]) for rows, holder in files]
                piece = take_joined(readers, columns, [rows.offsets for rows in fragments])
                if piece is None:
                    return None
                pieces.append(piece)
            return parts.assemble(pieces, pieces[0].num_rows)
        except (CorruptFileError, NotSupportedError):
            return None


def _files_of(
    rows: LiveRows, counter: ReadCounter | None, opened: OpenFiles
) -> contextlib.AbstractContextManager[FragmentFiles]:
    known = opened.get(rows.scan.fragment.id)
    return rows.scan.open(counter) if known is None else contextlib.nullcontext(known)


def _take_alone(rows: LiveRows, schema: Schema, counter: ReadCounter | None, opened: OpenFiles) -> Iterator[TakenRows]:
    """Read rows of one fragment, in pieces of limited size if none repeats."""
    with _files_of(rows, counter, opened) as files:
        if not schema.fields or (np.diff(rows.offsets) == 0).any():
            yield files.take(schema, rows.offsets), [rows]
            return
        start = 0
        for batch in files.take_batches(schema, rows.offsets, batch_size=max(rows.offsets.size, 1)):
            yield batch, [rows.slice(start, batch.num_rows)]
            start += batch.num_rows


def _open(parts: ColumnParts, fragments: Sequence[LiveRows], opened: Sequence[FragmentFiles]) -> None:
    """Open the files that have the columns, at the same time where a request takes long."""
    if not fragments[0].scan.directory.store.is_remote:
        return

    def open_one(rows: LiveRows, files: FragmentFiles) -> None:
        with contextlib.suppress(LanceError):  # Who reads it says what is wrong.
            for number in parts.held:
                files.reader(rows.scan.fragment.files[number])

    with ThreadPoolExecutor(min(len(opened), _MOST_OPENED_AT_ONCE), "lance-open") as pool:
        list(pool.map(open_one, fragments, opened))
