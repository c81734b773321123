"""Zones of rows in the order of their bounds, so that a sorted scan reads those of its first rows first."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from lance_format.datatypes import Schema
from lance_format.expressions import BoundExpression, filter_mask
from lance_format.expressions.zones import ZoneStatistics
from lance_format.file import ROWS_PER_ZONE
from lance_format.lazy_dataclasses import dataclass
from lance_format.table.scan.options import ColumnOrdering
from lance_format.table.scan.ordered.sort_order import Ranks, rank
from lance_format.table.scan.pruning.statistics_pruning import statistics_ahead
from lance_format.table.scan.row_ranges import Flags, RowRanges
from lance_format.table.scan.tasks import FragmentRanges


@dataclass(frozen=True, slots=True)
class Zones:
    """Zones of fragments.

    Parameters
    ----------
    fragments : sequence of (FragmentReader, RowRanges)
        The rows to choose from.
    owners : int64[num_zones]
        The index of each zone's fragment.
    starts, stops : int64[num_zones]
    bounds : pa.ChunkedArray
        Of the values of each zone, the bound that comes first in the order; null if unknown.
    may_be_first : bool[num_zones]
        Whether a row of the zone may precede its bound.
    """

    fragments: Sequence[FragmentRanges]
    owners: Ranks
    starts: Ranks
    stops: Ranks
    bounds: pa.ChunkedArray
    may_be_first: Flags

    @classmethod
    def of(cls, fragments: Sequence[FragmentRanges], column: Schema, ordering: ColumnOrdering) -> Zones:
        """Look up the zones of fragments, best first. Those without known bounds come last.

        Parameters
        ----------
        fragments : sequence of (FragmentReader, RowRanges)
            At least one.
        column : Schema
            The sort column, as it is stored.
        ordering : ColumnOrdering
        """
        owners, starts, stops, bounds, firsts = [], [], [], [], []
        for owner, found in enumerate(statistics_ahead(fragments, column)):
            scan, ranges = fragments[owner]
            borders = _borders(found, scan.physical_rows())
            kept = ranges.touched(borders)
            owners.append(np.full(int(kept.sum()), owner))
            starts.append(borders[:-1][kept])
            stops.append(borders[1:][kept])
            bounds.append(_bounds(found, ordering, column, kept.size).filter(pa.array(kept)))
            may_have_nulls = kept if found is None else found.num_nulls != 0
            firsts.append(may_have_nulls[kept] & ordering.nulls_first)
        united = pa.chunked_array(bounds)
        members, firsts_of, stops_of, may_be = (np.concatenate(parts) for parts in (owners, starts, stops, firsts))
        zones = cls(fragments, members, firsts_of, stops_of, united, may_be)
        ranks = rank(united, ColumnOrdering(ordering.column_name, ordering.ascending))
        return zones._chosen(np.lexsort([ranks, ~zones.may_be_first, united.is_null().to_numpy()]))

    def cut(self, num_rows: int) -> tuple[list[FragmentRanges], Zones]:
        """Split off the first zones, of about `num_rows` rows. Return their rows in the order of the table."""
        wanted = min(num_rows, sys.maxsize)
        end = int(np.searchsorted(np.cumsum(self.stops - self.starts), wanted)) + 1
        taken = self._chosen(np.lexsort([self.starts[:end], self.owners[:end]]))
        rows = []
        firsts = np.flatnonzero(np.diff(taken.owners, prepend=-1)).tolist()
        for first, stop in itertools.pairwise([*firsts, len(taken)]):
            scan, ranges = self.fragments[taken.owners[first]]
            zones = RowRanges(taken.starts[first:stop], taken.stops[first:stop], np.zeros(stop - first, np.bool_))
            rows.append((scan, ranges.intersect(zones)))
        return rows, self._chosen(np.arange(end, max(end, len(self.bounds))))

    def within(self, predicate: BoundExpression) -> Zones:
        """Return the zones of which a row may pass a predicate on the sort column that all bounds before pass, too."""
        (path,) = predicate.columns
        bounds = self.bounds.combine_chunks()
        passing = filter_mask(predicate, pa.record_batch([bounds], names=[path[0]]))
        kept = (
            passing.to_numpy(zero_copy_only=False) | self.may_be_first | bounds.is_null().to_numpy(zero_copy_only=False)
        )
        return self._chosen(np.flatnonzero(kept))

    def __len__(self) -> int:
        return self.owners.size

    def _chosen(self, zones: Ranks) -> Zones:
        return Zones(
            self.fragments,
            self.owners[zones],
            self.starts[zones],
            self.stops[zones],
            self.bounds.take(pa.array(zones)),
            self.may_be_first[zones],
        )


def _borders(found: ZoneStatistics | None, num_rows: int) -> Ranks:
    if found is None:
        return np.append(np.arange(0, num_rows, ROWS_PER_ZONE), num_rows)
    return np.append(0, np.cumsum(found.num_rows))


def _bounds(found: ZoneStatistics | None, ordering: ColumnOrdering, column: Schema, num_zones: int) -> pa.Array:
    arrow_type = column.to_storage().field(0).type
    if found is None or found.lower.type != arrow_type:
        return pa.nulls(num_zones, arrow_type)
    return found.lower if ordering.ascending else found.upper
