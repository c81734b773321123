"""Rows that damage has made unreadable, found by reading what is left of a data file.

Checksums are of blocks of some KiB, and a page has up to some MiB. So most rows of a damaged page can be read. The rows
that need a block follow each other. If the first and the last row of a range fail at the same damaged block, or at
blocks with nothing but damaged ones between them, all rows of the range do; otherwise its halves are tried. Nulls and
empty values between rows that cannot be read may need no block, and count as lost all the same.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

import numpy as np

from lance_format.errors import CorruptFileError, LanceError, NotSupportedError, VersionNotFoundError
from lance_format.file import ColumnProjection, FileReader
from lance_format.lazy_dataclasses import dataclass
from lance_format.table.format.file_entries import DataFile
from lance_format.table.format.fragment import FragmentMetadata
from lance_format.table.fragments.open_files import FragmentFiles
from lance_format.table.maintenance.findings import DELETIONS, VALUES, LostRows, check_cause
from lance_format.table.transaction.operations import Rewrite
from lance_format.table.versions.table_version import TableVersion

Range = tuple[int, int]
"""Offsets of rows in a fragment: `start <= offset < stop`."""

_BATCH_ROWS = 8192
_UNKNOWN_PLACE = -1


@dataclass(frozen=True, slots=True)
class RecoverableFragment:
    """A fragment with damaged files, whose live rows can all be read.

    Parameters
    ----------
    fragment : FragmentMetadata
    unreadable : tuple of (int, int)
        Ascending ranges of offsets that cannot be read. All of these rows are deleted.
    """

    fragment: FragmentMetadata
    unreadable: tuple[Range, ...]


def find_lost_values(
    table: TableVersion, fragment: FragmentMetadata, damage: Mapping[DataFile, Sequence[int]]
) -> tuple[list[LostRows], tuple[Range, ...]]:
    """Read what is left of damaged data files, and return what is lost.

    Parameters
    ----------
    table : TableVersion
        It verifies.
    fragment : FragmentMetadata
    damage : mapping of DataFile to sequence of int
        Offsets of the damaged blocks of each damaged, missing or inconsistent file.

    Returns
    -------
    list of LostRows
        Live rows with lost values, each row once. All count as live if the deletion file cannot be read.
    tuple of (int, int)
        Ascending ranges of all rows that cannot be read, deleted ones included.
    """
    scan = table.scan(fragment, table.manifest.schema)
    num_rows, deleted = fragment.physical_rows, np.zeros(0, np.int64)
    with suppress(CorruptFileError, FileNotFoundError):  # The rows of these files are lost as well.
        num_rows = scan.physical_rows()
        deleted = scan.deleted_rows()
    unreadable: dict[str, list[Range]] = {}
    with scan.open_recovering() as files:
        for file, parts in files.parts(table.manifest.schema).items():
            for part in parts if file in damage else ():
                ranges = _unreadable_rows(files, file, part, num_rows, damage[file])
                unreadable.setdefault(part.field.name, []).extend(ranges)
    found = []
    for columns, start, stop in _by_columns(unreadable):
        num_live = stop - start - int(np.diff(np.searchsorted(deleted, [start, stop]))[0])
        if num_live:
            found.append(LostRows(VALUES, fragment.id, columns, start, stop, num_live))
    return found, _united(rows for ranges in unreadable.values() for rows in ranges)


def lost_deletions(fragment: FragmentMetadata) -> LostRows:
    """Return what is lost with the deletion file of a fragment."""
    deletion = fragment.deletion_file
    assert deletion is not None
    return LostRows(DELETIONS, fragment.id, (), 0, fragment.physical_rows, deletion.num_deleted_rows)


def find_other_holder(table: TableVersion, fragment: FragmentMetadata, files: Collection[DataFile]) -> int | None:
    """Return the latest earlier version of the branch that holds the rows of a fragment in other files, None if none.

    It is the version before the compaction that wrote the files, unless it is damaged, too.

    Parameters
    ----------
    table : TableVersion
    fragment : FragmentMetadata
    files : collection of DataFile
        The damaged files of the fragment.
    """
    history = table.history()
    versions = sorted(version for version in history.names if version <= table.manifest.version)
    with suppress(CorruptFileError, FileNotFoundError, NotSupportedError, VersionNotFoundError):
        first = bisect.bisect_left(
            versions, True, key=lambda each: history.load(each).fragment(fragment.id) is not None
        )
        operation = history.load_transaction(versions[first]).operation
        if first == 0 or not isinstance(operation, Rewrite):
            return None
        before = history.load(versions[first - 1])
        damaged = {file.path for file in files}
        for group in operation.groups:
            if damaged <= {file.path for made in group.new_fragments for file in made.files}:
                held = [before.fragment(old.id) for old in group.old_fragments]
                if all(old is not None and old.field_ids >= fragment.field_ids for old in held):
                    return before.version
    return None


def _unreadable_rows(
    files: FragmentFiles, file: DataFile, part: ColumnProjection, num_rows: int, damage: Sequence[int]
) -> list[Range]:
    """Return the rows of a part of a column that cannot be read, all of them if the file cannot be opened."""
    try:
        reader = files.reader(file)
    except LanceError as error:
        check_cause(error)
        return [(0, num_rows)]
    places = _places(damage, 0 if reader.seal is None else reader.seal.block_bytes)
    return list(_united(_failing(lambda start, stop: _failure(reader, part, start, stop, places), 0, num_rows)))


def _failing(failure: Callable[[int, int], int | None], start: int, stop: int) -> Iterator[Range]:
    """Yield the rows of a range that cannot be read.

    Parameters
    ----------
    failure : callable
        Returns the place of the damage that makes reading a range of rows fail, or None if it can be read.
    start, stop : int
    """
    if start == stop or failure(start, stop) is None:
        return
    first = failure(start, start + 1)
    if stop - start == 1 or (first is not None and first == failure(stop - 1, stop)):
        yield start, stop
        return
    middle = (start + stop) // 2
    yield from _failing(failure, start, middle)
    yield from _failing(failure, middle, stop)


def _failure(
    reader: FileReader, part: ColumnProjection, start: int, stop: int, places: Mapping[int, int]
) -> int | None:
    try:
        for _ in reader.read([part], start, stop, batch_size=_BATCH_ROWS):
            pass
    except LanceError as error:
        check_cause(error)
        offset = error.offset if isinstance(error, CorruptFileError) else None
        return _UNKNOWN_PLACE if offset is None else places.get(offset, offset)
    return None


def _places(damage: Sequence[int], block_bytes: int) -> dict[int, int]:
    """Return for each damaged block the first of the successive damaged blocks that it belongs to."""
    places: dict[int, int] = {}
    for offset in sorted(damage):
        places[offset] = places.get(offset - block_bytes, offset)
    return places


def _by_columns(unreadable: Mapping[str, Sequence[Range]]) -> Iterator[tuple[tuple[str, ...], int, int]]:
    """Yield ascending ranges of rows that cannot be read in the same columns, with the names of these."""
    edges = sorted({edge for ranges in unreadable.values() for rows in ranges for edge in rows})
    previous: tuple[tuple[str, ...], int, int] = ((), 0, 0)
    for start, stop in itertools.pairwise(edges):
        columns = tuple(
            name for name, ranges in unreadable.items() if any(one <= start < other for one, other in ranges)
        )
        if previous[0] == columns:
            previous = (columns, previous[1], stop)
            continue
        if previous[0]:
            yield previous
        previous = (columns, start, stop)
    if previous[0]:
        yield previous


def _united(ranges: Iterable[Range]) -> tuple[Range, ...]:
    """Return ascending ranges, with those that touch each other united."""
    united: list[Range] = []
    for start, stop in sorted(ranges):
        if united and start <= united[-1][1]:
            united[-1] = (united[-1][0], max(stop, united[-1][1]))
        else:
            united.append((start, stop))
    return tuple(united)
