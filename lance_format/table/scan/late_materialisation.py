"""Reading the rows of a fragment that pass a filter: the columns of the filter first, the others for passing rows.

The passing rows of several batches are gathered, so that the other columns take few requests.
`lance_format.file.reading.column_reader` decides per page whether to read ranges or single rows. If most rows pass, all
columns are read at once. If few rows pass the terms on numbers, dates and the like, the other columns of the filter are
read for these rows only. Small fragments are tested together. Groups of rows, and of small fragments, grow from one to
the next, so that the first rows arrive early.

Abadi et al., "Materialization Strategies in a Column-Oriented DBMS", ICDE 2007.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Generator, Iterable, Iterator, Sequence

import pyarrow as pa

from lance_format.datatypes import Field, Schema
from lance_format.errors import NotSupportedError
from lance_format.file.columns.dictionaries import concat
from lance_format.lazy_dataclasses import dataclass
from lance_format.object_store import ReadCounter
from lance_format.table.fragments.column_parts import combine_parts, remainder
from lance_format.table.fragments.open_files import empty_columns_batch, in_step
from lance_format.table.fragments.reader import filter_rows
from lance_format.table.fragments.row_columns import LiveRows
from lance_format.table.fragments.small_fragments import MOST_ROWS
from lance_format.table.scan.first_terms import FirstTerms
from lance_format.table.scan.pace import MAX_FILES_TOGETHER, TESTED_BYTES, Pace, Seen
from lance_format.table.scan.projection import Projection
from lance_format.table.scan.row_ranges import RowRanges
from lance_format.table.scan.scanned_fragment import OpenFragment, ScannedRows, Window, clip, read_together
from lance_format.table.scan.tasks import FragmentRanges

_GROUP_BYTES = 16 * 1024 * 1024
"""Maximum bytes of a group's filter columns that are part of the result."""


@dataclass(frozen=True, slots=True)
class Stages:
    """Order in which columns are read.

    Parameters
    ----------
    projection : Projection
    kept : Schema
        Columns of the filter that outputs need.
    late : Schema
        Other columns that outputs need.
    are_whole : bool
        Whether outputs need their columns without narrowing.
    first : FirstTerms, optional
        None if the filter has no terms to test first.
    """

    projection: Projection
    kept: Schema
    late: Schema
    are_whole: bool
    first: FirstTerms | None = None

    @classmethod
    def of(cls, projection: Projection) -> Stages:
        """Divide the columns of a projection into stages."""
        outputs, tested = projection.output_source, projection.filter_source
        there = {field.name: field for field in tested.fields}
        rests = (remainder(field, there[field.name]) if field.name in there else field for field in outputs.fields)
        kept = tuple(field for field in tested.fields if field.name in outputs.names)
        return cls(
            projection,
            dataclasses.replace(tested, fields=kept),
            dataclasses.replace(outputs, fields=tuple(field for field in rests if field is not None)),
            all(projection.source.field(field.name) == field for field in outputs.fields),
            None if projection.filter is None else FirstTerms.of(projection.filter, tested),
        )

    def passing(self, batch: pa.RecordBatch, rows: LiveRows, kept: Schema, window: Window) -> ScannedRows:
        """Return the rows of a batch that pass the filter and the window, with the columns `kept`; see `select`."""
        (mask,) = self.masks([(batch, rows)])
        return self.select(batch, rows, mask, kept, window)

    def masks(self, tested: Sequence[ScannedRows]) -> list[pa.BooleanArray]:
        """Return for every row of some batches whether the filter is true, computed at once if possible."""
        batches = [self.projection.tested(batch, rows) for batch, rows in tested]
        found = [self.projection.mask(batch) for batch in _concatenated(batches)]
        if len(found) == len(batches):
            return found
        ends = itertools.accumulate((batch.num_rows for batch in batches), initial=0)
        return [found[0].slice(start, stop - start) for start, stop in itertools.pairwise(ends)]

    def select(
        self, batch: pa.RecordBatch, rows: LiveRows, mask: pa.BooleanArray, kept: Schema, window: Window
    ) -> ScannedRows:
        """Return the rows of a batch where a mask is true and that pass the window.

        Parameters
        ----------
        batch : pa.RecordBatch
        rows : LiveRows
            The rows of the batch.
        mask : pa.BooleanArray
            Whether the filter is true for each row.
        kept : Schema
            The columns to return.
        window : Window
            Moved by the rows where the mask is true.
        """
        batch = batch.select(kept.names) if kept.fields else empty_columns_batch(batch.num_rows)
        if mask.true_count < batch.num_rows:
            batch, rows = filter_rows(batch, mask), rows.filter(mask)
        skipped, num_rows = window.pass_rows(batch.num_rows)
        if num_rows < batch.num_rows:
            batch, rows = batch.slice(skipped, num_rows), rows.slice(skipped, num_rows)
        return batch, rows

    def join(self, kept: pa.RecordBatch, late: pa.RecordBatch | None = None) -> pa.RecordBatch:
        """Return all columns that outputs need, of the same rows."""
        fields = self.projection.output_source.fields
        if not fields:
            return empty_columns_batch(kept.num_rows)
        stages = [(self.kept, kept)] + ([] if late is None else [(self.late, late)])
        arrays = []
        for field in fields:
            parts: list[tuple[Field, pa.Array]] = [
                (schema.field(field.name), batch.column(field.name))
                for schema, batch in stages
                if field.name in schema.names
            ]
            arrays.append(combine_parts(field, parts, kept.num_rows))
        return pa.RecordBatch.from_arrays(arrays, schema=self.projection.output_source.to_storage())


def materialise(
    stages: Stages, fragment: OpenFragment, ranges: RowRanges, window: Window, pace: Pace
) -> Iterator[ScannedRows]:
    """Yield the rows of ranges that pass the filter and the window, with all columns that outputs need.

    Parameters
    ----------
    stages : Stages
    fragment : OpenFragment
    ranges : RowRanges
    window : Window
    pace : Pace
    """
    for part in ranges.split_by_certainty():
        if part.certain[0]:
            wanted = clip(fragment.scan, part, window)
            pace.num_seen += wanted.num_rows
            yield from fragment.read(stages.projection.output_source, wanted, batch_size=pace.batch_size)
            continue
        left = part
        while len(left) and not window.is_over:
            group, left = left.cut(pace.group_rows)
            seen = Seen()
            at_once = pace.at_once and stages.are_whole
            pace.num_seen += group.num_rows
            yield from (_at_once if at_once else _in_two_stages)(stages, fragment, group, window, pace, seen)
            pace.observe(seen)


def small_together(fragments: Iterable[FragmentRanges], pace: Pace) -> Iterator[list[FragmentRanges]]:
    """Yield fragments in order, adjacent small ones as a group, without empty ones."""
    group: list[FragmentRanges] = []
    num_rows = num_files = 0
    for scan, ranges in fragments:
        size, files = ranges.num_rows, len(scan.fragment.files)
        is_small = size <= MOST_ROWS and not ranges.certain.any()
        if group and (not is_small or num_rows + size > pace.tested_rows or num_files + files > MAX_FILES_TOGETHER):
            yield group
            group, num_rows, num_files = [], 0, 0
        if size:
            group.append((scan, ranges))
            num_rows, num_files = num_rows + size, num_files + files
        if group and (not is_small or len(group) >= pace.together):
            yield group
            group, num_rows, num_files = [], 0, 0
    if group:
        yield group


def materialise_together(
    stages: Stages,
    group: Sequence[tuple[OpenFragment, RowRanges]],
    window: Window,
    pace: Pace,
    counter: ReadCounter,
) -> Iterator[ScannedRows]:
    """Materialise several small fragments at once, ignoring the certainty of ranges; see `materialise`."""
    seen = Seen()
    at_once = pace.at_once and stages.are_whole
    read = stages.projection.source if at_once else stages.projection.filter_source
    pending: list[tuple[OpenFragment, ScannedRows]] = []
    size_bytes = 0
    small = [(fragment.scan, ranges, fragment.position) for fragment, ranges in group]
    known = read_together(small, read, pace.tested_rows, counter)
    for (fragment, ranges), rows in zip(group, known, strict=True):
        if window.is_over:
            return
        pace.num_seen += ranges.num_rows
        for found in [rows] if rows else fragment.read(read, ranges, batch_size=pace.tested_rows):
            pending.append((fragment, found))
            size_bytes += found[0].nbytes
        if size_bytes >= TESTED_BYTES:
            yield from _test(stages, pending, at_once, window, pace, seen)
            pending, size_bytes = [], 0
    if pending:
        yield from _test(stages, pending, at_once, window, pace, seen)
    pace.observe(seen)


def _test(
    stages: Stages,
    tested: Sequence[tuple[OpenFragment, ScannedRows]],
    at_once: bool,
    window: Window,
    pace: Pace,
    seen: Seen,
) -> Iterator[ScannedRows]:
    """Return the rows of some batches that pass the filter and the window, with all columns that outputs need."""
    kept = stages.projection.output_source if at_once else stages.kept
    masks = stages.masks([found for _, found in tested])
    for (fragment, (batch, rows)), mask in zip(tested, masks, strict=True):
        seen.test(batch)
        if not mask.true_count:
            continue
        passed = stages.select(batch, rows, mask, kept, window)
        seen.num_passed += passed[0].num_rows
        if at_once:
            seen.late_bytes += passed[0].nbytes
            for first in range(0, passed[0].num_rows, pace.batch_size):
                piece = passed[0].slice(first, pace.batch_size)
                yield piece, passed[1].slice(first, piece.num_rows)
        elif passed[0].num_rows:
            seen.late_bytes += yield from _complete(stages, fragment, [passed], pace.batch_size)
        if window.is_over:
            return


def _at_once(
    stages: Stages, fragment: OpenFragment, ranges: RowRanges, window: Window, pace: Pace, seen: Seen
) -> Iterator[ScannedRows]:
    """Read all columns, and drop the rows that fail."""
    outputs = stages.projection.output_source
    for batch, rows in fragment.read(stages.projection.source, ranges, batch_size=pace.tested_rows):
        found, left = stages.passing(batch, rows, outputs, window)
        seen.num_rows += batch.num_rows
        seen.num_passed += found.num_rows
        seen.tested_bytes += batch.nbytes
        seen.late_bytes += found.nbytes
        for first in range(0, found.num_rows, pace.batch_size):
            piece = found.slice(first, pace.batch_size)
            yield piece, left.slice(first, piece.num_rows)
        if window.is_over:
            return


def _in_two_stages(
    stages: Stages, fragment: OpenFragment, ranges: RowRanges, window: Window, pace: Pace, seen: Seen
) -> Iterator[ScannedRows]:
    """Read the columns of the filter, and the others for the passing rows."""
    group: list[ScannedRows] = []
    size_bytes = 0
    for batch, rows in _tested(stages, fragment, ranges, pace, seen):
        passed = stages.passing(batch, rows, stages.kept, window)
        seen.num_passed += passed[0].num_rows
        if passed[0].num_rows:
            group.append(passed)
            size_bytes += passed[0].nbytes
        if window.is_over:
            break
        if size_bytes >= _GROUP_BYTES or not stages.late.fields:
            seen.late_bytes += yield from _complete(stages, fragment, group, pace.batch_size)
            group, size_bytes = [], 0
    seen.late_bytes += yield from _complete(stages, fragment, group, pace.batch_size)


def _tested(stages: Stages, fragment: OpenFragment, ranges: RowRanges, pace: Pace, seen: Seen) -> Iterator[ScannedRows]:
    """Read the columns of the filter, of all rows or of those that pass the first terms."""
    first = stages.first
    if first is not None and pace.first_alone:
        yield from _tested_first(first, fragment, ranges, pace, seen)
        return
    for batch, rows in fragment.read(stages.projection.filter_source, ranges, batch_size=pace.tested_rows):
        if first is not None and not seen.num_first:  # A sample suffices.
            first.mask(batch, seen)
        seen.test(batch)
        yield batch, rows


def _tested_first(
    first: FirstTerms, fragment: OpenFragment, ranges: RowRanges, pace: Pace, seen: Seen
) -> Iterator[ScannedRows]:
    passed: list[ScannedRows] = []
    for batch, rows in fragment.read(first.source, ranges, batch_size=pace.tested_rows):
        mask = first.mask(batch, seen)
        seen.test(batch)
        if mask.true_count:
            passed.append((filter_rows(batch, mask), rows.filter(mask)))
    if not passed:
        return
    left = LiveRows.concatenate([rows for _, rows in passed])
    known = _of_size([batch for batch, _ in passed], pace.tested_rows)
    rest = (batch for batch, _ in fragment.take(first.rest, left, batch_size=pace.tested_rows))
    start = 0
    for one, other in in_step([known, rest]):
        names = [*one.schema.names, *other.schema.names]
        yield pa.RecordBatch.from_arrays([*one.columns, *other.columns], names), left.slice(start, one.num_rows)
        start += one.num_rows


def _complete(
    stages: Stages, fragment: OpenFragment, group: Sequence[ScannedRows], batch_size: int
) -> Generator[ScannedRows, None, int]:
    """Read the other columns of a group, and cut it into batches; return the bytes of these columns."""
    if not group:
        return 0
    rows = LiveRows.concatenate([rows for _, rows in group])
    streams = [_of_size([batch for batch, _ in group], batch_size)]
    if stages.late.fields:
        streams.append(batch for batch, _ in fragment.take(stages.late, rows, batch_size=batch_size))
    first = size_bytes = 0
    for pieces in in_step(streams):
        joined = stages.join(*pieces)
        yield joined, rows.slice(first, joined.num_rows)
        first += joined.num_rows
        size_bytes += pieces[-1].nbytes
    return size_bytes


def _of_size(batches: Sequence[pa.RecordBatch], batch_size: int) -> Iterator[pa.RecordBatch]:
    """Cut batches into pieces of at most a size, and combine small ones."""
    pending: list[pa.RecordBatch] = []
    num_rows = 0
    for batch in batches:
        for start in range(0, batch.num_rows, batch_size):
            piece = batch.slice(start, batch_size)
            if num_rows + piece.num_rows > batch_size:
                yield from _concatenated(pending)
                pending, num_rows = [], 0
            pending.append(piece)
            num_rows += piece.num_rows
    yield from _concatenated(pending)


def _concatenated(batches: Sequence[pa.RecordBatch]) -> Sequence[pa.RecordBatch]:
    """Join batches into one if its arrays can hold them."""
    if len(batches) < 2:
        return batches
    num_rows = sum(batch.num_rows for batch in batches)
    if not batches[0].num_columns:
        return [empty_columns_batch(num_rows)]
    columns = [[batch.column(index) for batch in batches] for index in range(batches[0].num_columns)]
    try:
        arrays = [concat(parts) for parts in columns]
    except NotSupportedError:  # 32-bit offsets, or the keys of dictionaries, overflow.
        return batches
    return [pa.RecordBatch.from_arrays(arrays, schema=batches[0].schema)]
