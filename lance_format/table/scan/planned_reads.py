"""The fragments, zones and pages that a scan would read, found without reading the pages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lance_format.datatypes import Schema
from lance_format.expressions.pruning import classify
from lance_format.file import ROWS_PER_ZONE, PageSizes
from lance_format.lazy_dataclasses import dataclass
from lance_format.table.format.fragment import FragmentMetadata
from lance_format.table.fragments.open_files import FragmentFiles
from lance_format.table.scan.projection import Projection
from lance_format.table.scan.pruning.index_pruning import PrunedFragments
from lance_format.table.scan.pruning.statistics_pruning import prune
from lance_format.table.scan.row_ranges import RowRanges
from lance_format.table.scan.tasks import FragmentRanges

INDEX, STATISTICS, ROW_NUMBERS = "index", "statistics", "row numbers"


@dataclass(frozen=True, slots=True)
class FragmentReads:
    """The reads of one fragment.

    Parameters
    ----------
    fragment_id : int
    rows, rows_read : int
        Physical rows, and those that may match the filter.
    zones, zones_read : int or None
        Zones of the filter's columns, and those that may match. None without statistics, if the fragment is no larger
        than a zone and thus read without them, or if it is skipped before its files are opened.
    pages, pages_read : int or None
        Pages of all columns of the scan, and those with rows that may match. None if no file is opened.
    size_bytes, bytes_read : int or None
        Bytes of these pages. Fewer are read if few rows pass the filter, or parts of pages suffice.
    filter_bytes_read : int or None
        The part of `bytes_read` that the columns of the filter have.
    skipped_by : str
        "index", "statistics" or "row numbers" for a fragment that is skipped; empty for one that is read.
    """

    fragment_id: int
    rows: int
    rows_read: int
    zones: int | None = None
    zones_read: int | None = None
    pages: int | None = None
    pages_read: int | None = None
    size_bytes: int | None = None
    bytes_read: int | None = None
    filter_bytes_read: int | None = None
    skipped_by: str = ""


@dataclass(frozen=True, slots=True)
class PlannedReads:
    """The reads of a scan.

    Parameters
    ----------
    fragments : tuple of FragmentReads
        In the order of the table.
    filter_columns : tuple of str
        Dotted paths of the fields that the filter tests.
    columns_without_statistics : tuple of str
        Those of them that some opened fragment of several zones has no statistics of.
    indices : int
        Number of indices that were used.
    """

    fragments: tuple[FragmentReads, ...]
    filter_columns: tuple[str, ...] = ()
    columns_without_statistics: tuple[str, ...] = ()
    indices: int = 0

    def total(self, name: str) -> int:
        """Return the sum of a count over the fragments that have it."""
        return sum(getattr(fragment, name) or 0 for fragment in self.fragments)

    @property
    def fragments_read(self) -> int:
        """Number of fragments with a row that may match."""
        return sum(not fragment.skipped_by for fragment in self.fragments)


def plan_reads(
    projection: Projection,
    ranges: Iterable[FragmentRanges],
    fragments: Sequence[FragmentMetadata],
    pruned: PrunedFragments,
) -> PlannedReads:
    """Find the reads of a scan. The files of fragments that are not skipped before are opened.

    Parameters
    ----------
    projection : Projection
    ranges : iterable of FragmentRanges
        The fragments that indices and row numbers leave, with their rows.
    fragments : sequence of FragmentMetadata
        All fragments of the scan.
    pruned : PrunedFragments
    """
    found: dict[int, FragmentReads] = {}
    unknown: set[str] = set()
    for scan, wanted in ranges:
        fragment = scan.fragment
        if len(wanted):
            with scan.open() as files:
                found[fragment.id], lacking = _read_of(projection, files, wanted, fragment.id, scan.physical_rows())
                unknown |= lacking
    reads = tuple(found.get(fragment.id) or _skipped(fragment, pruned) for fragment in fragments)
    columns = () if projection.filter is None else tuple(sorted(".".join(path) for path in projection.filter.columns))
    return PlannedReads(reads, columns, tuple(sorted(unknown)), pruned.num_indices)


def _skipped(fragment: FragmentMetadata, pruned: PrunedFragments) -> FragmentReads:
    by_index = fragment.id in pruned.excluded or fragment.id in pruned.ranges
    return FragmentReads(fragment.id, fragment.physical_rows, 0, skipped_by=INDEX if by_index else ROW_NUMBERS)


def _read_of(
    projection: Projection, files: FragmentFiles, ranges: RowRanges, fragment_id: int, num_rows: int
) -> tuple[FragmentReads, set[str]]:
    """Return the reads of an opened fragment, and the columns of the filter without statistics."""
    wanted = prune(projection, files, ranges, num_rows)
    zones, zones_read, lacking = None, None, set()
    if projection.filter is not None and num_rows > ROWS_PER_ZONE:  # Smaller fragments are read without statistics.
        statistics = files.zone_statistics(projection.filter_source)
        lacking = {".".join(path) for path in projection.filter.columns if path not in statistics}
        if statistics:
            borders = classify(projection.filter, statistics, num_rows).boundaries
            zones, zones_read = len(borders) - 1, int(wanted.touched(borders).sum())
    everything = _page_sizes(files, projection.source)
    touched = [(sizes, wanted.touched(sizes.first_rows)) for sizes in everything]
    tested = _page_sizes(files, projection.filter_source)
    reads = FragmentReads(
        fragment_id,
        num_rows,
        wanted.num_rows,
        zones,
        zones_read,
        sum(sizes.size_bytes.size for sizes in everything),
        sum(int(mask.sum()) for _, mask in touched),
        sum(int(sizes.size_bytes.sum()) for sizes in everything),
        sum(int(sizes.size_bytes[mask].sum()) for sizes, mask in touched),
        sum(int(sizes.size_bytes[wanted.touched(sizes.first_rows)].sum()) for sizes in tested),
        "" if len(wanted) else STATISTICS,
    )
    return reads, lacking


def _page_sizes(files: FragmentFiles, schema: Schema) -> list[PageSizes]:
    return [sizes for file, held in files.parts(schema).items() for sizes in files.reader(file).page_sizes(held)]
