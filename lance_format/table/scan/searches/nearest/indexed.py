"""Search by a vector index: the partitions whose centroids are nearest are searched, by the codes of their vectors.

Rows that the index does not cover are searched exactly. Distances of rows that it finds are those of codes, unless
`refine_factor` is given or there are such other rows: then they are computed from the vectors.
"""

from __future__ import annotations

import dataclasses
import functools
import logging
import math
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from lance_format.errors import NotSupportedError
from lance_format.lazy_properties import cached_property
from lance_format.object_store import map_together
from lance_format.table.format.field_paths import find_field
from lance_format.table.format.fragment import FragmentMetadata
from lance_format.table.format.fragment_list import FragmentList
from lance_format.table.format.index_metadata import FRAGMENT_REUSE_INDEX, IndexMetadata
from lance_format.table.fragments.deletion_file import RowOffsets
from lance_format.table.indices.catalog import kind_of
from lance_format.table.indices.opening import naming
from lance_format.table.indices.row_finder import RowIds, UnusableError
from lance_format.table.indices.vectors.measuring import Measuring
from lance_format.table.indices.vectors.vector_index import VECTOR, Partition, VectorIndex, VectorIndexReader
from lance_format.table.row_ids.index import row_addresses
from lance_format.table.scan.options import ScanOptions
from lance_format.table.scan.searches.nearest.best import Hits, NearestRows
from lance_format.table.scan.searches.nearest.exact import VectorScanner, measure
from lance_format.table.scan.searches.nearest.query import Nearest
from lance_format.table.scan.searches.ranked import Addresses, filtered_addresses
from lance_format.table.versions.row_places import FindRows, row_finder
from lance_format.table.versions.table_version import TableVersion
from lance_format.vectors.metrics import Distances, Vector, distances_to

_LOGGER = logging.getLogger(__name__)
_MINIMUM_NPROBES = 20
_FEW_ROWS = 1000
"""Rows that pass a filter whose distances are computed without the index, plus a multiple of those that are wanted."""
_FEW_PER_ROW = 10
_GROWTH = 4
_MOST_PARTS = 8


class IndexSearch:
    """A search by the parts of one index.

    Parameters
    ----------
    table : TableVersion
    nearest : Nearest
    parts : sequence of IndexMetadata
    metric : str
        Of the index.
    """

    def __init__(self, table: TableVersion, nearest: Nearest, parts: Sequence[IndexMetadata], metric: str) -> None:
        self._table = table
        self._nearest = nearest
        self._parts = parts
        self.metric = metric

    @classmethod
    def choose(cls, table: TableVersion, nearest: Nearest) -> IndexSearch | None:
        """Return a search by an index of the column; None if there is none that can be used.

        Raises
        ------
        CorruptFileError
            If a file of an index is malformed.
        DatasetNotFoundError
            If a file of an index is missing.
        """
        indices = table.manifest.indices
        if nearest.vector_type.is_multiple or any(index.name == FRAGMENT_REUSE_INDEX for index in indices):
            return None
        field_id = find_field(table.manifest.schema, nearest.column)[-1].id
        mine = [index for index in indices if kind_of(index) == VECTOR and _is_of(index, field_id)]
        for name in dict.fromkeys(index.name for index in mine):
            parts = [index for index in mine if index.name == name]
            try:
                metrics = set(map_together(table.store, functools.partial(_metric_of, table, nearest), parts))
            except (NotSupportedError, UnusableError) as error:
                _LOGGER.info("index %r is not used: %s", name, error)
                continue
            if len(metrics) == 1 and nearest.metric in (None, *metrics):
                return cls(table, nearest, parts, metrics.pop())
        return None

    def describe(self) -> str:
        """Return the name of the index, and how much of it is searched."""
        num_parts = f", {len(self._parts)} parts" if len(self._parts) > 1 else ""
        return f"by the index {self._parts[0].name!r}{num_parts}"

    def search(self, options: ScanOptions) -> list[Hits]:
        """Return the nearest rows of each query among those that the options choose."""
        fragments = self._table.manifest.fragments if options.fragments is None else FragmentList.of(options.fragments)
        ids = fragments.columns.ids
        is_covered = np.isin(ids, np.concatenate([part.covered_ids() for part in self._parts]))
        if options.fast_search:
            covered = [fragments[position] for position in np.flatnonzero(is_covered).tolist()]
            options = dataclasses.replace(options, fragments=covered)
        allowed = filtered_addresses(self._table, options)
        if allowed is not None and allowed.size <= _FEW_ROWS + _FEW_PER_ROW * self._nearest.k:
            return [self._measure(query, allowed) for query in range(self._nearest.num_searches)]
        exact = None
        if not options.fast_search and not is_covered.all():
            others = [fragments[position] for position in np.flatnonzero(~is_covered).tolist()]
            exact = self._search_exactly(options, others)
        is_refined = exact is not None or self._nearest.refine_factor is not None
        found = []
        for query in range(self._nearest.num_searches):
            hits = self._search_parts(query, ids, allowed, is_refined=is_refined)
            if is_refined:
                hits = _united([self._measure(query, hits.addresses), *(exact[query : query + 1] if exact else [])])
            found.append(hits.first(self._nearest.k))
        return found

    @cached_property
    def _find_rows(self) -> FindRows:
        return row_finder(self._table)

    def _measure(self, query: int, addresses: Addresses) -> Hits:
        return measure(self._table, self._nearest, query, self.metric, addresses)

    def _search_exactly(self, options: ScanOptions, fragments: Sequence[FragmentMetadata]) -> list[Hits]:
        kept = options if options.prefilter else dataclasses.replace(options, filter=None)
        scanner = VectorScanner(self._table, dataclasses.replace(kept, fragments=fragments), self._nearest.column)
        return scanner.search(self._nearest, self.metric)

    def _search_parts(
        self, query: int, fragment_ids: RowOffsets, allowed: Addresses | None, *, is_refined: bool
    ) -> Hits:
        """Search each part for rows of the fragments that it covers: it may name others by former vectors.

        Distances of codes do not exclude rows by the upper bound if these are measured afterwards.
        """
        wanted = dataclasses.replace(self._nearest, upper=math.nan) if is_refined else self._nearest
        count = self._nearest.k * (self._nearest.refine_factor or 1)
        vector = _unit(self._nearest.queries[query]) if self.metric == "cosine" else self._nearest.queries[query]
        find_rows = self._find_rows

        def search(part: IndexMetadata) -> Hits:
            rows = _Rows(find_rows, np.intersect1d(fragment_ids, part.covered_ids()), allowed)
            # Distances that are too large are infinite.
            with (
                naming(part),
                VectorIndexReader(self._table, part) as reader,
                np.errstate(over="ignore", invalid="ignore"),
            ):
                return self._search_part(reader, vector, wanted, count, rows)

        return _united(list(map_together(self._table.store, search, self._parts))).first(count)

    def _search_part(self, reader: VectorIndexReader, vector: Vector, wanted: Nearest, count: int, rows: _Rows) -> Hits:
        """Search partitions, nearest first, until there are enough rows, or no more to be searched.

        Graphs are followed if any row will do. If too few of those that they lead to are there, all rows are measured.
        """
        order, measuring = _nearest_partitions(reader.index, vector), Measuring(reader, vector, count, wanted.ef)
        measure = measuring.nearest if rows.are_all and math.isinf(wanted.lower) else measuring.all
        most = min(wanted.maximum_nprobes or order.size, order.size)
        least = min(_MINIMUM_NPROBES if wanted.minimum_nprobes is None else wanted.minimum_nprobes, most)
        best, start, stop = NearestRows.of(wanted, count), 0, max(least, 1)
        while True:
            numbers = order[start:stop].tolist()
            partitions = zip(numbers, self._read(reader, numbers), strict=True)
            _add_live(best, [measure(number, partition) for number, partition in partitions], rows, count)
            if len(best.hits) >= count:
                return best.hits
            if measure == measuring.nearest and measuring.has_followed:
                measure, best, start = measuring.all, NearestRows.of(wanted, count), 0
            elif stop >= most:
                return best.hits
            else:
                start, stop = stop, min(2 * stop, most)

    def _read(self, reader: VectorIndexReader, numbers: Sequence[int]) -> Iterator[Partition]:
        """Read partitions, side by side where a request takes long, unless many parts are read so."""
        if len(self._parts) > _MOST_PARTS:
            return map(reader.read, numbers)
        return map_together(self._table.store, reader.read, numbers)


class _Rows:
    """The rows that a search may return.

    Parameters
    ----------
    find : callable
        See `row_finder`.
    covered : int64[num_fragments]
        Ids of fragments.
    allowed : uint64[num_rows], optional
        Addresses, ascending; by default all rows of these fragments.
    """

    def __init__(self, find: FindRows, covered: RowOffsets, allowed: Addresses | None) -> None:
        self._find = find
        self._covered = covered
        self._allowed = allowed

    @property
    def are_all(self) -> bool:
        """Whether no filter excludes rows."""
        return self._allowed is None

    def addresses(self, ids: RowIds) -> tuple[Addresses, npt.NDArray[np.bool_]]:
        """Return the addresses of rows, and for each whether it may be returned."""
        fragment_ids, offsets = self._find(ids)
        is_there = (fragment_ids >= 0) & np.isin(fragment_ids, self._covered)
        found = row_addresses(np.where(is_there, fragment_ids, 0), np.where(is_there, offsets, 0))
        if self._allowed is not None:
            places = np.minimum(np.searchsorted(self._allowed, found), max(self._allowed.size - 1, 0))
            is_there &= self._allowed[places] == found if self._allowed.size else False
        return found, is_there


def _add_live(best: NearestRows, measured: Sequence[tuple[RowIds, Distances]], rows: _Rows, count: int) -> None:
    """Add the nearest rows of partitions that may be returned; whether they may is looked up for as few as possible."""
    most = 2 * count
    while True:
        nearest = [(ids, distances, best.nearest_of(distances, most)) for ids, distances in measured]
        ids = np.concatenate([np.zeros(0, np.uint64), *(ids[chosen] for ids, _, chosen in nearest)])
        distances = np.concatenate([np.zeros(0, np.float32), *(distances[chosen] for _, distances, chosen in nearest)])
        of_all = best.nearest_of(distances, most)
        addresses, is_there = rows.addresses(ids[of_all])
        if np.count_nonzero(is_there) >= count or of_all.size < most:
            best.add(distances[of_all[is_there]], addresses[is_there].__getitem__)
            return
        most *= _GROWTH


def _nearest_partitions(index: VectorIndex, vector: Vector) -> npt.NDArray[np.int64]:
    """Return the partitions with rows, nearest first."""
    metric = "l2" if index.metric == "cosine" else index.metric
    query = vector.astype(index.centroids.dtype)
    if metric == "hamming":
        distances = distances_to(query.astype(np.uint8), index.centroids.astype(np.uint8), metric)
    else:
        distances = distances_to(query, index.centroids, metric)
    order = np.argsort(distances, kind="stable")
    return order[index.lengths[order] > 0]


def _unit(vector: Vector) -> Vector:
    """Return a vector of length 1; NaN if it has length 0, or numbers that are not finite."""
    exact = vector.astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        exact /= np.abs(exact).max()  # Squares of its numbers can have more than 64 bits.
        return (exact / np.linalg.norm(exact)).astype(np.float32)


def _united(found: Sequence[Hits]) -> Hits:
    addresses = np.concatenate([hits.addresses for hits in found])
    distances = np.concatenate([hits.distances for hits in found])
    order = np.lexsort((addresses, distances))
    return Hits(addresses[order], distances[order])


def _is_of(index: IndexMetadata, field_id: int) -> bool:
    """Return whether a part is of a column, and has files: one that pylance has not trained covers no fragment."""
    return index.fields == (field_id,) and bool(index.fragment_ids)


def _metric_of(table: TableVersion, nearest: Nearest, part: IndexMetadata) -> str:
    with naming(part), VectorIndexReader(table, part) as reader:
        if reader.index.dimension != nearest.vector_type.dimension:
            raise UnusableError(f"its vectors have {reader.index.dimension} numbers")
        return reader.index.metric
