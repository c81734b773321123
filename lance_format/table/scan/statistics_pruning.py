"""Finding the rows of a fragment that a filter can match, by the statistics of zones in its data files.

Statistics are of physical rows, deleted ones included: these may keep a zone from being left out, and never cause it.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from lance_format.expressions.pruning import classify
from lance_format.file import ROWS_PER_ZONE
from lance_format.table.fragments.open_files import FragmentFiles
from lance_format.table.scan.projection import Projection
from lance_format.table.scan.row_ranges import RowRanges
from lance_format.table.scan.tasks import FragmentRanges

_CERTAIN_ROWS = 32 * 1024
"""So many rows that all match are read apart from others; with fewer that costs more than computing the filter."""
_MAX_FRAGMENTS_AHEAD = 32
"""Looking at one takes about a millisecond, or two requests; with more, that is divided among tasks like the rest."""
_NUM_SAMPLES = 4
_WORTHLESS_SHARE = 0.75
_REQUESTS_AT_ONCE = 16


def prune(projection: Projection, files: FragmentFiles, ranges: RowRanges, num_rows: int) -> RowRanges:
    """Leave out rows that the filter cannot match, and mark those that it must.

    Parameters
    ----------
    projection : Projection
        With a filter.
    files : FragmentFiles
    ranges : RowRanges
        Of the fragment.
    num_rows : int
        Its physical rows.

    Raises
    ------
    CorruptFileError
        If the statistics are malformed, or contradict themselves or their file.
    """
    if projection.filter is None or ranges.num_rows <= ROWS_PER_ZONE:
        return ranges  # So many rows are looked at rather than reading statistics of them.
    found = files.zone_statistics(projection.filter_source)
    if not found:
        return ranges
    verdicts = classify(projection.filter, found, num_rows)
    may = verdicts.may_match
    kept = RowRanges(verdicts.boundaries[:-1][may], verdicts.boundaries[1:][may], verdicts.must_match[may])
    return ranges.intersect(kept).with_certainty_of(_CERTAIN_ROWS)


def prune_ahead(projection: Projection, fragments: Sequence[FragmentRanges]) -> Sequence[FragmentRanges]:
    """Do that for fragments before their rows are divided into tasks, if they are few and it is of use.

    It is taken to be of none if it leaves out little of some of them: where the rows of a table are in no order, all
    zones have about the same bounds.

    Parameters
    ----------
    projection : Projection
        Without a filter nothing is left out.
    fragments : sequence of (FragmentReader, RowRanges)

    Raises
    ------
    CorruptFileError
        See `prune`.
    """
    large = [index for index, (_, ranges) in enumerate(fragments) if ranges.num_rows > ROWS_PER_ZONE]
    if projection.filter is None or not large or len(large) > _MAX_FRAGMENTS_AHEAD:
        return fragments

    def pruned(index: int) -> RowRanges:
        scan, ranges = fragments[index]
        with scan.open() as files:
            return prune(projection, files, ranges, scan.physical_rows())

    found = list(fragments)
    samples = large[:: -(-len(large) // _NUM_SAMPLES)]
    with ThreadPoolExecutor(_REQUESTS_AT_ONCE, "lance-prune") as pool:
        for group in (samples, [index for index in large if index not in samples]):
            for index, ranges in zip(group, pool.map(pruned, group), strict=True):
                found[index] = fragments[index][0], ranges
            left = sum(found[index][1].num_rows for index in samples)
            if left > _WORTHLESS_SHARE * sum(fragments[index][1].num_rows for index in samples):
                break
    return found
