"""Finding the fragments and rows that may match a filter, by the indices of the table.

Of ZONEMAP indices, all fragments are laid out one after another, so that one evaluation per column decides for all
zones. Other kinds name rows (`indexed_rows.py`). An index errs on the side of "may match": it includes rows deleted
since, and uncovered rows are unknown. Where exact answers cover the whole filter, rows are certain to match. No data
file is opened.
"""

from __future__ import annotations

import collections
import functools
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_format.datatypes import Field
from lance_format.expressions import BoundExpression, FieldPath, columns_of, conjuncts
from lance_format.expressions.pruning import ZoneVerdicts, classify, rows_of_zones
from lance_format.expressions.zones import ZoneStatistics
from lance_format.lazy_dataclasses import dataclass
from lance_format.logical_types import JSON
from lance_format.object_store import map_together
from lance_format.table.format.fragment_list import FragmentList
from lance_format.table.format.index_metadata import IndexMetadata
from lance_format.table.indices.zones.zone_map import ZoneNumbers, Zones, is_ordinary
from lance_format.table.indices.zones.zone_map_index import ZoneMapDetails, load_zones
from lance_format.table.scan.pruning.indexed_rows import can_answer, can_hold, find_indexed_rows, names_rows, own_terms
from lance_format.table.scan.row_ranges import RowRanges
from lance_format.table.versions.table_version import TableVersion

_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PrunedFragments:
    """Fragments and rows that indices exclude from a filtered scan.

    Parameters
    ----------
    excluded : frozenset of int
        The ids of fragments without a row that may match.
    ranges : mapping of int to RowRanges
        The rows that may match, by fragment id, for fragments where only some of them may.
    num_indices, num_parts, num_zones : int
        Numbers of indices, their parts and their zones that were used.
    """

    excluded: frozenset[int] = frozenset()
    ranges: Mapping[int, RowRanges] = field(default_factory=dict)
    num_indices: int = 0
    num_parts: int = 0
    num_zones: int = 0


def usable_indices(table: TableVersion, predicate: BoundExpression | None) -> list[str]:
    """Return the names of the indices that a filter can use."""
    if predicate is None:
        return []
    found = [index.name for usable in _usable(table, predicate, _has_zones).values() for index in usable.parts]
    for path, column in _usable(table, predicate, names_rows).items():
        found += [index.name for index in column.parts if can_answer(index, predicate, path, column.value_type)]
    return list(dict.fromkeys(found))


def prune_fragments(
    table: TableVersion, predicate: BoundExpression, fragments: FragmentList | None = None
) -> PrunedFragments:
    """Find the rows that cannot match a filter.

    Parameters
    ----------
    table : TableVersion
    predicate : BoundExpression
        A filter over stored columns.
    fragments : FragmentList, optional
        Fragments of the table, by default all.

    Raises
    ------
    CorruptFileError
        If the file of an index is malformed.
    DatasetNotFoundError
        If the file of an index is missing.
    """
    zoned, named = (_usable(table, predicate, kind) for kind in (_has_zones, names_rows))
    if not zoned and not named:
        return PrunedFragments()
    layout = _Layout.of(table.manifest.fragments if fragments is None else fragments)
    pruned = _by_zones(table, predicate, zoned, layout)
    return _by_rows(table, predicate, named, layout, pruned) if named else pruned


def _by_zones(
    table: TableVersion, predicate: BoundExpression, usable: Mapping[FieldPath, _Usable], layout: _Layout
) -> PrunedFragments:
    known: dict[FieldPath, ZoneStatistics] = {}
    used: list[IndexMetadata] = []
    for path, found in usable.items():
        statistics, parts = _statistics(table, found, layout)
        if statistics is not None:
            known[path] = statistics
            used += parts
    if not known:
        return PrunedFragments()
    excluded, ranges = layout.split(classify(predicate, known, layout.num_rows))
    _LOGGER.debug("indices leave out %d of %d fragments, parts of %d", len(excluded), len(layout.ids), len(ranges))
    num_zones = sum(statistics.num_zones for statistics in known.values())
    return PrunedFragments(excluded, ranges, len({index.name for index in used}), len(used), num_zones)


def _by_rows(
    table: TableVersion,
    predicate: BoundExpression,
    usable: Mapping[FieldPath, _Usable],
    layout: _Layout,
    pruned: PrunedFragments,
) -> PrunedFragments:
    """Exclude further fragments and rows."""
    excluded, ranges = set(pruned.excluded), dict(pruned.ranges)
    num_rows = np.diff(layout.first_rows)
    names, num_parts = set(), 0
    needed, exact = _terms_of(predicate), collections.defaultdict[int, set[tuple[FieldPath, ...]]](set)
    for path, column in usable.items():
        term = own_terms(predicate, path)
        if term is None:
            continue
        left = ~np.isin(layout.ids, np.array(sorted(excluded), np.int64)) if excluded else slice(None)
        for found in find_indexed_rows(table, column.parts, term, column.value_type, layout.ids[left], num_rows[left]):
            names.add(found.index.name)
            num_parts += 1
            excluded.update(found.excluded.tolist())
            for fragment_id, rows in found.ranges.items():
                ranges[fragment_id] = rows.intersect(ranges[fragment_id]) if fragment_id in ranges else rows
                if found.is_exact:
                    exact[fragment_id].add((path,))
    ranges = {
        fragment_id: rows.as_certain() if exact[fragment_id] >= needed else rows
        for fragment_id, rows in ranges.items()
        if fragment_id not in excluded
    }
    return PrunedFragments(
        frozenset(excluded), ranges, pruned.num_indices + len(names), pruned.num_parts + num_parts, pruned.num_zones
    )


def _terms_of(predicate: BoundExpression) -> set[tuple[FieldPath, ...]]:
    """Return the columns of each of the conjunctive terms of a filter."""
    return {columns_of(term) for term in conjuncts(predicate.expression)}


@dataclass(frozen=True, slots=True)
class _Usable:
    """A column of a filter, and the parts of its indices."""

    value_type: pa.DataType
    parts: tuple[IndexMetadata, ...]


def _has_zones(index: IndexMetadata) -> bool:
    return index.fragment_ids is not None and ZoneMapDetails.parse(index) is not None


def _usable(
    table: TableVersion, predicate: BoundExpression, kind: Callable[[IndexMetadata], bool]
) -> dict[FieldPath, _Usable]:
    """Return the usable columns and indices of a kind, without reading anything."""
    parts = [index for index in table.manifest.indices if kind(index)]
    found: dict[FieldPath, _Usable] = {}
    for path in predicate.columns if parts else ():
        column = _find(table.manifest.schema.fields, path)
        if column is not None:
            value_type = column.to_arrow_type()
            mine = tuple(index for index in parts if index.fields == (column.id,) and _suits(index, value_type))
            if mine:
                found[path] = _Usable(value_type, mine)
    return found


def _suits(index: IndexMetadata, value_type: pa.DataType) -> bool:
    return can_hold(index, value_type) if names_rows(index) else is_ordinary(value_type)


@dataclass(frozen=True, slots=True, eq=False)
class _Layout:
    """Fragments, one after another.

    Parameters
    ----------
    ids : int64[num_fragments]
        Ascending.
    first_rows : int64[num_fragments + 1]
        The first row of each fragment, and the end of the last.
    """

    ids: ZoneNumbers
    first_rows: ZoneNumbers

    @classmethod
    def of(cls, fragments: FragmentList) -> _Layout:
        """Lay out fragments, except those of early releases that share an id or have an unknown size."""
        columns = fragments.columns
        ids, positions, counts = np.unique(columns.ids, return_index=True, return_counts=True)
        physical_rows = columns.physical_rows[positions]
        known = (physical_rows > 0) & (counts == 1)
        return cls(ids[known], np.append(0, np.cumsum(physical_rows[known])))

    @property
    def num_rows(self) -> int:
        """Number of rows of the fragments."""
        return int(self.first_rows[-1])

    def split(self, verdicts: ZoneVerdicts) -> tuple[frozenset[int], dict[int, RowRanges]]:
        """Return the fragments where no row may match, and the rows of the fragments where some may."""
        if not self.ids.size:
            return frozenset(), {}
        zones = np.searchsorted(verdicts.boundaries, self.first_rows)
        counts = np.add.reduceat(verdicts.may_match, zones[:-1], dtype=np.int64)
        found = {}
        for position in np.flatnonzero((counts > 0) & (counts < np.diff(zones))).tolist():
            part = slice(zones[position], zones[position + 1])
            bounds = verdicts.boundaries[part.start : part.stop + 1] - self.first_rows[position]
            found[int(self.ids[position])] = _ranges(bounds, verdicts.may_match[part])
        return frozenset(self.ids[counts == 0].tolist()), found


def _ranges(bounds: ZoneNumbers, chosen: npt.NDArray[np.bool_]) -> RowRanges:
    starts, stops = rows_of_zones(bounds, chosen)
    return RowRanges(starts, stops, np.zeros(starts.size, np.bool_))


def _find(siblings: Sequence[Field], path: FieldPath) -> Field | None:
    """Return the stored field of a path; none of JSON, since filters compare its text."""
    found = next((sibling for sibling in siblings if sibling.name == path[0]), None)
    if found is None or (len(path) > 1 and found.logical_type != "struct"):
        return None
    if len(path) > 1:
        return _find(found.children, path[1:])
    is_read_otherwise = found.logical_type == JSON or b"lance-encoding:blob" in found.metadata
    return None if is_read_otherwise else found


def _statistics(
    table: TableVersion, column: _Usable, layout: _Layout
) -> tuple[ZoneStatistics | None, list[IndexMetadata]]:
    """Return the statistics of a column for all rows, and the parts they come from; None if there are none."""
    left = np.ones(layout.ids.size, np.bool_)
    parts, used = [], []
    covering = [index for index in column.parts if np.isin(layout.ids, index.covered_ids()).any()]
    load = functools.partial(load_zones, table, value_type=column.value_type)
    for index, loaded in zip(covering, map_together(table.store, load, covering), strict=True):
        if loaded is None:
            continue
        zones = loaded.of(table, index)
        positions = np.searchsorted(layout.ids, zones.fragment_ids)
        positions[positions == layout.ids.size] = 0
        known = np.flatnonzero((layout.ids[positions] == zones.fragment_ids) & left[positions])
        if known.size:
            parts.append(zones.take(known))
            used.append(index)
            left[positions[known]] = False
    return (_laid_out(Zones.concatenate(parts).in_order(), layout, left) if parts else None), used


def _laid_out(zones: Zones, layout: _Layout, unknown: npt.NDArray[np.bool_]) -> ZoneStatistics:
    """Return zones as consecutive ones of all rows, with one zone for each unknown fragment.

    Rows between zones were deleted before the zones were made. They become rows of the preceding zone.
    """
    positions = np.searchsorted(layout.ids, zones.fragment_ids)
    starts = layout.first_rows[positions] + zones.starts
    is_first = np.ones(len(zones), np.bool_)
    is_first[1:] = positions[1:] != positions[:-1]
    starts[is_first] = layout.first_rows[positions[is_first]]
    starts = np.concatenate([starts, layout.first_rows[:-1][unknown]])
    order = np.argsort(starts)
    num_rows = np.diff(starts[order], append=layout.num_rows)
    is_known = order < len(zones)
    chosen = pa.array(np.where(is_known, order, 0), mask=~is_known)
    num_nulls = np.full(order.size, -1)
    num_nulls[is_known] = zones.null_counts[order[is_known]]
    all_null = np.zeros(order.size, np.bool_)
    all_null[is_known] = (zones.null_counts == zones.lengths)[order[is_known]]
    num_nulls[all_null] = num_rows[all_null]
    return ZoneStatistics(num_rows, num_nulls, zones.lower.take(chosen), zones.upper.take(chosen), exact=False)
