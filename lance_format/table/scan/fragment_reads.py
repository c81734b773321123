"""Reading of ranges of rows of fragments, in order: small fragments together, and the rows that pass a filter alone."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence

from lance_format.lazy_dataclasses import dataclass
from lance_format.table.fragments.opening import opened_ahead
from lance_format.table.fragments.reader import FragmentReader
from lance_format.table.scan.joined_rows import JoinedRows
from lance_format.table.scan.late_columns import LateColumns
from lance_format.table.scan.late_materialisation import materialise, materialise_together, small_together
from lance_format.table.scan.metrics import ScanMeter
from lance_format.table.scan.pace import Seen
from lance_format.table.scan.pruning.statistics_pruning import PrunedOnce
from lance_format.table.scan.scanned_fragment import OpenFragment, Window, read_together, within
from lance_format.table.scan.stages import Stages
from lance_format.table.scan.tasks import FragmentRanges

_CHEAP_ROWS = 256 * 1024
"""So many rows of a few numbers are tested as fast as statistics of a fragment are read."""


@dataclass(frozen=True, slots=True)
class FragmentReads:
    """The reads of a scan.

    Parameters
    ----------
    stages : Stages
    batch_size : int
        Maximum number of rows per batch.
    batch_bytes : int or None
        Approximate maximum size of a batch in memory; None for any.
    position : callable
        Returns the number of live rows before a fragment.
    """

    stages: Stages
    batch_size: int
    batch_bytes: int | None
    position: Callable[[FragmentReader], int]

    def read(self, fragments: Iterable[FragmentRanges], window: Window, meter: ScanMeter) -> Iterator[JoinedRows]:
        """Yield the rows that pass the filter and the window, with all columns that outputs need.

        Parameters
        ----------
        fragments : iterable of (FragmentReader, RowRanges)
            The physical rows that may be needed, and which of them are certain to pass.
        window : Window
        meter : ScanMeter
        """
        for joined in self._read(fragments, window, meter):
            yield JoinedRows(self.stages.projection.complete(joined.batch, *joined.parts), joined.parts)

    def _read(self, fragments: Iterable[FragmentRanges], window: Window, meter: ScanMeter) -> Iterator[JoinedRows]:
        if self.stages.projection.filter is None:
            yield from self._all(fragments, window, meter)
            return
        wanted = (found for found in fragments if len(found[1]))
        for is_certain, group in itertools.groupby(wanted, key=lambda found: bool(found[1].certain.all())):
            yield from (self._all if is_certain else self._filtered)(group, window, meter)
            if window.is_over:
                return

    def _all(self, fragments: Iterable[FragmentRanges], window: Window, meter: ScanMeter) -> Iterator[JoinedRows]:
        """Read rows that are known to pass the filter."""
        projection, pace = self.stages.projection, meter.pace
        source, limited = projection.output_source, window.left is not None
        wanted = within(fragments, window)
        opened = opened_ahead(wanted, source, meter.reads, lambda *wanted: wanted[-1].num_rows, is_limited=limited)
        with contextlib.closing(opened) as ahead:
            for group in small_together(ahead, pace):
                yield from self._group(group, meter)
                if projection.filter is not None or not group[0][0].directory.store.is_remote:
                    pace.widen()  # Whole fragments of a remote store are read while they are opened.

    def _group(self, group: Sequence[FragmentRanges], meter: ScanMeter) -> Iterator[JoinedRows]:
        """Read all rows of small fragments, or of another one."""
        source, seen = self.stages.projection.output_source, Seen()
        placed = [(scan, ranges, self.position(scan)) for scan, ranges in group]
        together = read_together(
            placed, source, self.batch_size, meter.reads, keeps_dictionaries=self.stages.keeps_dictionaries
        )
        for members, known in together:
            meter.rows_scanned += sum(ranges.num_rows for _, ranges in group[members])
            if known is None:
                found = self._one(group[members.start], meter)
            else:
                seen.test(known)
                found = known.cut(self.batch_size)
            yield from meter.metered(found, [scan for scan, _ in group[members]])
        if seen.num_rows:
            meter.pace.fit(seen)
        elif len(group) > 1:
            meter.pace.narrow()

    def _one(self, wanted: FragmentRanges, meter: ScanMeter) -> Iterator[JoinedRows]:
        scan, ranges = wanted
        with scan.open(meter.reads) as files:
            fragment = OpenFragment(scan, files, self.position(scan), ranges, self.batch_bytes)
            source = self.stages.projection.output_source
            if self.stages.keeps_dictionaries:
                source = fragment.as_dictionaries(source, ranges)
            found = fragment.read(source, ranges, batch_size=self.batch_size)
            yield from map(JoinedRows.of_one, found)

    def _filtered(self, fragments: Iterable[FragmentRanges], window: Window, meter: ScanMeter) -> Iterator[JoinedRows]:
        """Read rows, and leave out those that do not pass the filter."""
        pace, limited = meter.pace, window.left is not None
        pruned = PrunedOnce(self.stages.projection)
        late = LateColumns(self.stages, pace, meter.reads, may_wait=not limited)
        source, reads = self.stages.projection.filter_source, meter.reads
        opened_first = opened_ahead(fragments, source, reads, pruned.prune_ahead, is_limited=limited)
        with contextlib.closing(opened_first) as ahead, contextlib.ExitStack() as stack:
            for group in small_together(ahead, pace):
                opened = []
                for scan, ranges in group:
                    files = late.opened[scan.fragment.id] = stack.enter_context(scan.open(meter.reads))
                    fragment = OpenFragment(scan, files, self.position(scan), ranges, self.batch_bytes)
                    is_small = len(group) > 1 or (self.stages.is_cheap and ranges.num_rows <= _CHEAP_ROWS)
                    wanted = pruned.rows(files, scan, ranges, is_small=is_small)
                    if len(wanted):
                        opened.append((fragment, wanted))
                if len(opened) == 1:
                    found = materialise(late, *opened[0], window, pace)
                else:
                    found = materialise_together(late, opened, window, pace, meter.reads)
                yield from meter.metered(found, [fragment.scan for fragment, _ in opened])
                if window.is_over:
                    break
                yield from meter.metered(late.end_fragments(stack), [])
            yield from meter.metered(late.rest(), [])
