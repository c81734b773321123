"""Which rows of a fragment a filter can match, by the statistics of zones of rows that its data files have.

Statistics are of physical rows, deleted ones included: these may keep a zone from being left out, and never cause it.
"""

from __future__ import annotations

from lance_format.expressions.pruning import classify
from lance_format.file import ROWS_PER_ZONE
from lance_format.table.fragment_files import FragmentFiles
from lance_format.table.projection import Projection
from lance_format.table.row_ranges import RowRanges

_CERTAIN_ROWS = 32 * 1024
"""So many rows that all match are read apart from others; with fewer that costs more than computing the filter."""


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
