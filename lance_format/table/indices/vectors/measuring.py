"""Distances of a query from the rows of partitions: of all of them, or of those that a graph leads to."""

from __future__ import annotations

from typing import cast

from lance_format.table.indices.row_finder import RowIds
from lance_format.table.indices.vectors.vector_index import Partition, VectorIndexReader
from lance_format.vectors.codes import DecodableCodes
from lance_format.vectors.metrics import Distances, Vector

_FEW_BYTES = 8 * 1024 * 1024
"""So many bytes of codes are measured in a millisecond or two, as fast as a graph is followed."""
_GRAPH_ROW_BYTES = 200
"""Approximate size of a row of a graph in memory."""
_BREADTH = 64


class Measuring:
    """Measures distances from a query.

    Parameters
    ----------
    reader : VectorIndexReader
    query : float32[dimension]
        Of length 1 if the metric is `cosine`.
    count : int
        Number of rows that are wanted.
    ef : int, optional
        How many of the nearest rows a search of a graph goes on from. By default, graphs of large partitions are
        followed if the index fits into memory: each is several times as large as the codes.
    """

    def __init__(self, reader: VectorIndexReader, query: Vector, count: int, ef: int | None) -> None:
        index = reader.index
        self._reader = reader
        self._query = query
        self._measure = index.codes.measuring(query)
        self._breadth = max(count, ef) if ef is not None else max(2 * count, _BREADTH)
        self._least_bytes = 0 if ef is not None else _FEW_BYTES
        self._num_rows = int(index.lengths.sum())
        self.has_followed = False
        """Whether rows were left out to which graphs did not lead."""

    def all(self, number: int, partition: Partition) -> tuple[RowIds, Distances]:
        """Return the ids of the rows of a partition, and their distances."""
        return partition.row_ids, self._measure(self._reader.index.centroids[number], partition.codes)

    def nearest(self, number: int, partition: Partition) -> tuple[RowIds, Distances]:
        """Return those of the rows that a graph leads to; of all if no graph is followed."""
        index = self._reader.index
        if not index.has_graphs or partition.codes.nbytes < self._least_bytes or not self._fits(partition):
            return self.all(number, partition)
        centroid = index.centroids[number]
        table = cast("DecodableCodes", index.codes).distance_table(self._query, centroid)
        graph = None if table is None else self._reader.read_graph(number, partition)
        if graph is None or table is None:
            return self.all(number, partition)
        self.has_followed = True
        found = graph.nearest(table, self._breadth)
        return partition.row_ids[found], self._measure(centroid, graph.codes[found])

    def _fits(self, partition: Partition) -> bool:
        row_bytes = partition.codes.nbytes // max(partition.row_ids.size, 1) + _GRAPH_ROW_BYTES
        return not self._least_bytes or self._num_rows * row_bytes <= self._reader.cache_bytes
