"""Reading the rows of a fragment that pass a filter: the columns of the filter first, the others for passing rows.

`lance_format.file.reading.column_reader` decides per page whether to read ranges or single rows. If most rows pass, all
columns are read at once. If few rows pass the terms on numbers, dates and the like, the other columns of the filter are
read for these rows only. Small fragments are tested together. Groups of rows, and of small fragments, grow from one to
the next, so that the first rows arrive early.

Abadi et al., "Materialization Strategies in a Column-Oriented DBMS", ICDE 2007.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from lance_format.object_store import ReadCounter
from lance_format.table.fragments.dictionary_columns import without_dictionaries
from lance_format.table.fragments.open_files import in_step
from lance_format.table.fragments.reader import filter_rows
from lance_format.table.fragments.row_columns import LiveRows
from lance_format.table.fragments.small_fragments import has_small_files, has_small_pages
from lance_format.table.scan.first_terms import FirstTerms
from lance_format.table.scan.joined_rows import JoinedRows, ScannedRows
from lance_format.table.scan.late_columns import LateColumns, united
from lance_format.table.scan.pace import MAX_FILES_TOGETHER, TESTED_BYTES, Pace, Seen
from lance_format.table.scan.row_ranges import RowRanges
from lance_format.table.scan.scanned_fragment import OpenFragment, Window, clip, read_together
from lance_format.table.scan.stages import Stages, of_size
from lance_format.table.scan.tasks import FragmentRanges

_MOST_ROWS = 8 * 1024
"""So many rows of a fragment are read with others', and so are all of one with small files."""

_GROUP_BYTES = 16 * 1024 * 1024
"""Maximum bytes of a group's filter columns that are part of the result."""

_SMALL_BYTES = 256 * 1024
_FEW_COLUMNS = 16
"""So many columns of a file of this size are read sooner than those of the filter and then the passing rows."""

_FEW_ROWS = 16
"""So few rows of a larger fragment were mostly found by an index, and pass: reading all columns at once costs less."""


def materialise(
    late: LateColumns, fragment: OpenFragment, ranges: RowRanges, window: Window, pace: Pace
) -> Iterator[JoinedRows]:
    """Yield rows that pass the filter and the window, with all columns that outputs need, once `late` has these.

    Parameters
    ----------
    late : LateColumns
    fragment : OpenFragment
    ranges : RowRanges
    window : Window
    pace : Pace
    """
    stages = late.stages
    for part in ranges.split_by_certainty():
        if part.certain[0]:
            wanted = clip(fragment.scan, part, window)
            pace.num_seen += wanted.num_rows
            yield from late.rest()
            found = fragment.read(stages.projection.output_source, wanted, batch_size=pace.batch_size)
            yield from map(JoinedRows.of_one, found)
            continue
        left = part
        while len(left) and not window.is_over:
            group, left = left.cut(pace.group_rows)
            seen = Seen()
            at_once = stages.are_whole and (pace.at_once or _are_read_sooner(stages, pace, fragment, ranges))
            if stages.is_cheap and not at_once:
                group = fragment.bridged(group)
            pace.num_seen += group.num_rows
            yield from (_at_once if at_once else _in_two_stages)(late, fragment, group, window, pace, seen)
            pace.observe(seen)


def _are_read_sooner(stages: Stages, pace: Pace, fragment: OpenFragment, ranges: RowRanges) -> bool:
    """Return whether all columns of ranges cost less at once: of few rows, or of a small file if one of them passes."""
    stored = fragment.scan.fragment
    if pace.in_most_parts and has_small_files(stored):
        is_narrow = stored.known_bytes <= _SMALL_BYTES and len(stages.late.fields) <= _FEW_COLUMNS
        if is_narrow or (pace.num_seen and has_small_pages(stored)):
            return True
    return ranges.num_rows <= _FEW_ROWS and not ranges.is_all_of(fragment.scan.physical_rows())


def small_together(fragments: Iterable[FragmentRanges], pace: Pace) -> Iterator[list[FragmentRanges]]:
    """Yield fragments in order, adjacent small ones as a group, without empty ones."""
    group: list[FragmentRanges] = []
    num_rows = num_files = num_bytes = 0
    for scan, ranges in fragments:
        size, fragment = ranges.num_rows, scan.fragment
        if not size:
            continue
        is_whole = has_small_files(fragment) and ranges.is_all_of(fragment.physical_rows)
        is_small = is_whole or size <= _MOST_ROWS
        files, size_bytes = len(fragment.files), fragment.known_bytes if is_whole else 0
        num_rows, num_files, num_bytes = num_rows + size, num_files + files, num_bytes + size_bytes
        is_full = num_rows > pace.joined_rows or num_files > MAX_FILES_TOGETHER or num_bytes > pace.joined_bytes
        if group and (is_full or not is_small):
            yield group
            group, num_rows, num_files, num_bytes = [], size, files, size_bytes
        group.append((scan, ranges))
        if not is_small or len(group) >= pace.together:
            yield group
            group, num_rows, num_files, num_bytes = [], 0, 0, 0
    if group:
        yield group


def materialise_together(
    late: LateColumns,
    group: Sequence[tuple[OpenFragment, RowRanges]],
    window: Window,
    pace: Pace,
    counter: ReadCounter,
) -> Iterator[JoinedRows]:
    """Materialise several small fragments at once, ignoring the certainty of ranges; see `materialise`."""
    stages, seen = late.stages, Seen()
    at_once = stages.are_whole and (pace.at_once or all(_are_read_sooner(stages, pace, *member) for member in group))
    read = stages.projection.source if at_once else stages.projection.filter_source
    pending: list[JoinedRows] = []
    size_bytes = 0
    small = [(fragment.scan, ranges, fragment.position) for fragment, ranges in group]
    for members, joined in read_together(small, read, pace.tested_rows, counter, late.opened):
        if window.is_over:
            return
        pace.num_seen += sum(ranges.num_rows for _, ranges in group[members])
        fragment, ranges = group[members.start]
        opened = () if joined else fragment.read(read, ranges, batch_size=pace.tested_rows)
        for found in [joined] if joined else map(JoinedRows.of_one, opened):
            pending.append(found)
            size_bytes += found.batch.nbytes
        if size_bytes >= TESTED_BYTES:
            yield from _test(late, pending, at_once, window, seen)
            pending, size_bytes = [], 0
    if pending:
        yield from _test(late, pending, at_once, window, seen)
    pace.observe(seen)


def _test(
    late: LateColumns, tested: Sequence[JoinedRows], at_once: bool, window: Window, seen: Seen
) -> Iterator[JoinedRows]:
    """Yield the rows of some batches that pass the filter and the window."""
    stages = late.stages
    kept = stages.projection.output_source if at_once else stages.kept
    for found in united(tested):
        seen.test(found)
        passed = stages.passing(found, kept, window)
        seen.passes(passed)
        if passed.num_rows:
            yield from late.whole(passed) if at_once else late.few([*passed.split()])
        if window.is_over:
            return


def _at_once(
    late: LateColumns, fragment: OpenFragment, ranges: RowRanges, window: Window, pace: Pace, seen: Seen
) -> Iterator[JoinedRows]:
    """Read all columns, and drop the rows that fail."""
    stages, outputs = late.stages, late.stages.projection.output_source
    source = fragment.as_dictionaries(stages.projection.source, ranges)
    for found in map(JoinedRows.of_one, fragment.read(source, ranges, batch_size=pace.tested_rows)):
        seen.test(found)
        passed = stages.passing(found, outputs, window)
        seen.passes(passed)
        if not stages.keeps_dictionaries:
            passed = JoinedRows(without_dictionaries(passed.batch, outputs), passed.parts)
        yield from late.whole(passed)
        if window.is_over:
            return


def _in_two_stages(
    late: LateColumns, fragment: OpenFragment, ranges: RowRanges, window: Window, pace: Pace, seen: Seen
) -> Iterator[JoinedRows]:
    """Read the columns of the filter, and the others for the passing rows."""
    stages = late.stages
    group: list[ScannedRows] = []
    size_bytes = 0
    for found in map(JoinedRows.of_one, _tested(stages, fragment, ranges, pace, seen)):
        passed = stages.passing(found, stages.kept, window)
        seen.passes(passed)
        if passed.num_rows:
            batch = without_dictionaries(passed.batch, stages.kept)
            group.append((batch, passed.parts[0]))
            size_bytes += batch.nbytes
        if window.is_over:
            break
        if size_bytes >= _GROUP_BYTES or not stages.late.fields:
            yield from late.passed(fragment, group)
            group, size_bytes = [], 0
    yield from late.passed(fragment, group)


def _tested(stages: Stages, fragment: OpenFragment, ranges: RowRanges, pace: Pace, seen: Seen) -> Iterator[ScannedRows]:
    """Read the columns of the filter, of all rows or of those that pass the first terms."""
    first = stages.first
    if first is not None and pace.first_alone:
        yield from _tested_first(first, fragment, ranges, pace, seen)
        return
    source = fragment.as_dictionaries(stages.projection.filter_source, ranges)
    for batch, rows in fragment.read(source, ranges, batch_size=pace.tested_rows):
        if first is not None and not seen.num_first:  # A sample suffices.
            first.mask(batch, seen)
        seen.test(JoinedRows(batch, (rows,)))
        yield batch, rows


def _tested_first(
    first: FirstTerms, fragment: OpenFragment, ranges: RowRanges, pace: Pace, seen: Seen
) -> Iterator[ScannedRows]:
    passed: list[ScannedRows] = []
    for batch, rows in fragment.read(first.source, ranges, batch_size=pace.tested_rows):
        mask = first.mask(batch, seen)
        seen.test(JoinedRows(batch, (rows,)))
        if mask.true_count:
            passed.append((filter_rows(batch, mask), rows.filter(mask)))
    if not passed:
        return
    left = LiveRows.concatenate([rows for _, rows in passed])
    known = of_size([batch for batch, _ in passed], pace.tested_rows)
    rest = (batch for batch, _ in fragment.take(first.rest, left, batch_size=pace.tested_rows))
    start = 0
    for one, other in in_step([known, rest]):
        names = [*one.schema.names, *other.schema.names]
        yield pa.RecordBatch.from_arrays([*one.columns, *other.columns], names), left.slice(start, one.num_rows)
        start += one.num_rows
