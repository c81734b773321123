"""Finding the rows of a fragment that a filter can match, by the statistics of zones in its data files.

Statistics include deleted rows. These may keep a zone from being skipped, but never cause it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from lance_format.datatypes import Schema
from lance_format.expressions.pruning import classify
from lance_format.expressions.zones import ZoneStatistics
from lance_format.file import ROWS_PER_ZONE
from lance_format.object_store import run_together
from lance_format.table.fragments.open_files import FragmentFiles
from lance_format.table.fragments.reader import FragmentReader
from lance_format.table.scan.projection import Projection
from lance_format.table.scan.row_ranges import RowRanges
from lance_format.table.scan.tasks import FragmentRanges

_T = TypeVar("_T")

_CERTAIN_ROWS = 32 * 1024
"""Minimum number of consecutive matching rows to read separately; for fewer, evaluating the filter costs less."""
_MAX_FRAGMENTS_AHEAD = 32
"""Statistics of one fragment take about a millisecond, or two requests; for more fragments tasks share the work."""
_MOST_PASSED_OVER = 64
"""Maximum number of small fragments that are not pruned in a row."""
_NUM_SAMPLES = 4
_WORTHLESS_SHARE = 0.75


def prune(projection: Projection, files: FragmentFiles, ranges: RowRanges, num_rows: int) -> RowRanges:
    """Skip rows that cannot match the filter, and mark those that must.

    Parameters
    ----------
    projection : Projection
        With a filter.
    files : FragmentFiles
    ranges : RowRanges
    num_rows : int
        Number of physical rows of the fragment.

    Raises
    ------
    CorruptFileError
        If the statistics are malformed, or contradict themselves or their file.
    """
    if projection.filter is None or ranges.num_rows <= ROWS_PER_ZONE:
        return ranges  # So few rows are tested without reading statistics.
    found = files.zone_statistics(projection.filter_source)
    if not found:
        return ranges
    verdicts = classify(projection.filter, found, num_rows)
    may = verdicts.may_match
    kept = RowRanges(verdicts.boundaries[:-1][may], verdicts.boundaries[1:][may], verdicts.must_match[may])
    return ranges.intersect(kept).with_certainty_of(_CERTAIN_ROWS)


class PrunedOnce:
    """Rows of fragments that their statistics do not exclude, found while the fragments are opened or later.

    Parameters
    ----------
    projection : Projection
        With a filter.
    """

    def __init__(self, projection: Projection) -> None:
        self._projection = projection
        self._found: dict[int, tuple[FragmentReader, RowRanges]] = {}
        """By identity: what is here is not freed, so that no other object takes its place."""
        self._passed_over = 0
        """How many small fragments are read without pruning after one whose statistics told nothing."""
        self._left_to_pass = 0

    def prune_ahead(self, files: FragmentFiles, scan: FragmentReader, ranges: RowRanges) -> int:
        """Find rows before they are asked for, and return their number.

        Parameters
        ----------
        files : FragmentFiles
            Those of the fragment.
        scan : FragmentReader
        ranges : RowRanges
            The rows to choose from.
        """
        found = prune(self._projection, files, ranges, scan.physical_rows())
        self._found[id(scan)] = scan, found
        return found.num_rows

    def rows(self, files: FragmentFiles, scan: FragmentReader, ranges: RowRanges, *, is_small: bool) -> RowRanges:
        """Return the rows; called once per fragment. See `prune_ahead`.

        Parameters
        ----------
        files : FragmentFiles
        scan : FragmentReader
        ranges : RowRanges
        is_small : bool
            Whether testing all rows costs about as much as pruning them. Of such fragments ever fewer are pruned while
            that skips nothing, as of tables whose rows are in no order.
        """
        _, found = self._found.pop(id(scan), (scan, None))
        if found is not None:
            return found
        if is_small and self._left_to_pass:
            self._left_to_pass -= 1
            return ranges
        found = prune(self._projection, files, ranges, scan.physical_rows())
        is_fruitless = found.num_rows == ranges.num_rows and not found.certain.any()
        self._passed_over = min(2 * self._passed_over or 1, _MOST_PASSED_OVER) if is_fruitless else 0
        self._left_to_pass = self._passed_over
        return found


def is_pruned_ahead(projection: Projection, num_rows: npt.NDArray[np.int64]) -> bool:
    """Return whether `prune_ahead` prunes fragments of these numbers of rows, `int64[num_fragments]`."""
    num_large = int(np.count_nonzero(num_rows > ROWS_PER_ZONE))
    return projection.filter is not None and 0 < num_large <= _MAX_FRAGMENTS_AHEAD


def prune_ahead(projection: Projection, fragments: Sequence[FragmentRanges]) -> Sequence[FragmentRanges]:
    """Prune fragments before they are divided into tasks, if they are few and it helps.

    It stops if it skips little of the first ones: if the rows of a table are in no order, all zones have about the same
    bounds.

    Parameters
    ----------
    projection : Projection
        Without a filter nothing is skipped.
    fragments : sequence of (FragmentReader, RowRanges)

    Raises
    ------
    CorruptFileError
        See `prune`.
    """
    num_rows = np.array([ranges.num_rows for _, ranges in fragments], np.int64)
    if not is_pruned_ahead(projection, num_rows):
        return fragments
    large = np.flatnonzero(num_rows > ROWS_PER_ZONE).tolist()

    def pruned(index: int) -> RowRanges:
        scan, ranges = fragments[index]
        with scan.open() as files:
            return prune(projection, files, ranges, scan.physical_rows())

    found = list(fragments)
    samples = large[:: -(-len(large) // _NUM_SAMPLES)]
    for group in (samples, [index for index in large if index not in samples]):
        for index, ranges in zip(group, _waiting(fragments, pruned, group), strict=True):
            found[index] = fragments[index][0], ranges
        left = sum(found[index][1].num_rows for index in samples)
        if left > _WORTHLESS_SHARE * sum(fragments[index][1].num_rows for index in samples):
            break
    return found


def statistics_ahead(fragments: Sequence[FragmentRanges], column: Schema) -> Sequence[ZoneStatistics | None]:
    """Return the statistics of one flat column of each fragment, if the fragments are few.

    Those of fragments without statistics, and of small ones, are None.

    Parameters
    ----------
    fragments : sequence of (FragmentReader, RowRanges)
    column : Schema

    Raises
    ------
    CorruptFileError
        If the statistics are malformed, or contradict themselves or their file.
    """
    large = [index for index, (_, ranges) in enumerate(fragments) if ranges.num_rows > ROWS_PER_ZONE]
    found: list[ZoneStatistics | None] = [None] * len(fragments)
    if not large or len(large) > _MAX_FRAGMENTS_AHEAD:
        return found

    def statistics(index: int) -> ZoneStatistics | None:
        scan, _ = fragments[index]
        with scan.open() as files:
            known = files.zone_statistics(column).get((column.names[0],))
        return known if known is not None and known.num_rows.sum() == scan.physical_rows() else None

    for index, known in zip(large, _waiting(fragments, statistics, large), strict=True):
        found[index] = known
    return found


def _waiting(fragments: Sequence[FragmentRanges], read: Callable[[int], _T], indices: Sequence[int]) -> list[_T]:
    """Call a function for some fragments, at once if it waits for a remote store; threads do not make others faster."""
    store = fragments[0][0].directory.store
    calls = [partial(read, index) for index in indices]
    return run_together(store, calls) if store.is_remote else [call() for call in calls]
