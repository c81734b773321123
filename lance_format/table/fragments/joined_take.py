"""Taking rows of many fragments: those whose files hold the columns alike are read at once."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa

from lance_format.errors import CorruptFileError, LanceError, NotSupportedError
from lance_format.file import take_joined
from lance_format.table.fragments.column_parts import ColumnParts, column_parts
from lance_format.table.fragments.open_files import FragmentFiles
from lance_format.table.fragments.row_columns import LiveRows

_MOST_TOGETHER = 64
"""Maximum number of fragments whose files are open at the same time."""
_MOST_OPENED_AT_ONCE = 32
"""Maximum number of files that are opened concurrently, where a request takes long."""

TakenRows = tuple[pa.RecordBatch, Sequence[int]]
"""Rows of some fragments, and the positions of these among the given ones."""


def take_fragments(fragments: Sequence[LiveRows]) -> Iterator[TakenRows]:
    """Read rows of fragments.

    Parameters
    ----------
    fragments : sequence of LiveRows
        The rows of each fragment, deleted or not, ascending; they may repeat. All have the same columns.
    """
    alike: dict[ColumnParts, list[int]] = {}
    for position, rows in enumerate(fragments):
        scan = rows.scan
        alike.setdefault(column_parts(scan.schema, scan.fragment.files), []).append(position)
    for parts, positions in alike.items():
        for start in range(0, len(positions), _MOST_TOGETHER):
            group = positions[start : start + _MOST_TOGETHER]
            found = _take_alike(parts, [fragments[position] for position in group]) if len(group) > 1 else None
            if found is not None:
                yield found, group
                continue
            for position in group:
                rows = fragments[position]
                yield rows.scan.take_physical(rows.offsets), [position]


def _take_alike(parts: ColumnParts, fragments: Sequence[LiveRows]) -> pa.RecordBatch | None:
    """Read rows of fragments whose files hold the columns alike; None if each has to be read for itself."""
    if not parts.held:
        return None
    with contextlib.ExitStack() as stack:
        opened = [stack.enter_context(rows.scan.open()) for rows in fragments]
        try:
            _open(parts, fragments, opened)
            pieces = []
            for number, columns in parts.held.items():
                files = zip(fragments, opened, strict=True)
                readers = [held.reader(rows.scan.fragment.files[number]) for rows, held in files]
                piece = take_joined(readers, columns, [rows.offsets for rows in fragments])
                if piece is None:
                    return None
                pieces.append(piece)
            return parts.assemble(pieces, pieces[0].num_rows)
        except (CorruptFileError, NotSupportedError):
            return None


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
