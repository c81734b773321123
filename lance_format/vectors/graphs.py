"""Graphs of near neighbours, which some vector indices have for each of their partitions.

They are hierarchical: all vectors are nodes of level 0, and fewer and fewer of the levels above.
"""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt

from lance_format.kernels.jit import read_only
from lance_format.kernels.vectors.graph_search import search_graph
from lance_format.kernels.vectors.neighbor_graphs import build_graph, connect_graph
from lance_format.lazy_dataclasses import dataclass

F32 = npt.NDArray[np.float32]
U8 = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class GraphParameters:
    """Parameters of graphs.

    Parameters
    ----------
    m : int
        Number of neighbours that a vector is given, and the largest one above level 0, where it is twice as large.
    ef_construction : int
        Number of near vectors that neighbours are chosen from; no less than `m`.
    max_level : int
        Number of levels.
    """

    m: int = 20
    ef_construction: int = 150
    max_level: int = 7


@dataclass(frozen=True, slots=True, eq=False)
class NeighborGraph:
    """The neighbours of vectors, level by level. The first vector is in all levels that have one.

    Parameters
    ----------
    level_offsets : int64[max_level + 1]
        The first node of each level.
    vectors : uint32[num_nodes]
        Numbers of the vectors; those of a level ascend.
    offsets : int32[num_nodes + 1]
        The first neighbour of each node.
    neighbors : uint32[num_neighbors]
        Numbers of vectors.
    distances : float32[num_neighbors]
    """

    level_offsets: npt.NDArray[np.int64]
    vectors: npt.NDArray[np.uint32]
    offsets: npt.NDArray[np.int32]
    neighbors: npt.NDArray[np.uint32]
    distances: F32

    @classmethod
    def built(cls, vectors: F32, parameters: GraphParameters, *, by_product: bool = False) -> NeighborGraph:
        """Build the graph of some vectors; it is equal for equal ones.

        Parameters
        ----------
        vectors : float32[num_vectors, dimension]
            Finite numbers.
        parameters : GraphParameters
        by_product : bool
            Whether a distance is 1 minus the dot product, instead of the squared Euclidean distance.
        """
        tops = _tops(len(vectors), parameters)
        starts = len(vectors) + np.cumsum(tops, dtype=np.int64) - tops
        num_slots = len(vectors) + int(tops.sum(dtype=np.int64))
        shape = num_slots, 3 * parameters.m + 1
        neighbors, distances = np.empty(shape, np.uint32), np.empty(shape, np.float32)
        counts = np.zeros(num_slots, np.int32)
        vectors, choice = np.ascontiguousarray(vectors), parameters.ef_construction
        if vectors.size:
            build_graph(vectors, tops, starts, parameters.m, choice, by_product, neighbors, distances, counts)
            connect_graph(vectors, starts, choice, by_product, neighbors, distances, counts)
        members = [np.flatnonzero(tops >= level) for level in range(parameters.max_level)]
        slots = [found if not level else starts[found] + level - 1 for level, found in enumerate(members)]
        order = np.concatenate(slots)
        is_there = np.arange(shape[1]) < counts[order, None]
        return cls(
            np.cumsum([0, *map(len, members)]),
            np.concatenate(members).astype(np.uint32),
            np.concatenate([[0], np.cumsum(counts[order])]).astype(np.int32),
            neighbors[order][is_there],
            distances[order][is_there],
        )


@dataclass(frozen=True, slots=True, eq=False)
class StoredGraph:
    """The neighbours of the vectors of a partition, as a file has them; see `NeighborGraph`.

    Parameters
    ----------
    codes : uint8[num_vectors, width]
        Of the vectors, row by row.
    level_offsets, vectors, offsets, neighbors
        Those of `NeighborGraph`.
    entry : int
        The vector at which searches start.
    """

    codes: U8
    level_offsets: npt.NDArray[np.int64]
    vectors: npt.NDArray[np.uint32]
    offsets: npt.NDArray[np.int32]
    neighbors: npt.NDArray[np.uint32]
    entry: int

    @property
    def nbytes(self) -> int:
        """Size of its arrays without the codes."""
        return self.vectors.nbytes + self.offsets.nbytes + self.neighbors.nbytes

    def is_sound(self) -> bool:
        """Return whether it has the form that searches follow, and all of its numbers are those of vectors."""
        bounds, num_vectors = self.level_offsets, len(self.codes)
        if bounds.size < 2 or bounds[0] or (np.diff(bounds) < 0).any() or bounds[-1] != self.vectors.size:
            return False
        levels = [self.vectors[start:stop] for start, stop in itertools.pairwise(bounds)]
        is_whole = bool(levels[0].size == num_vectors and (levels[0] == np.arange(num_vectors)).all())
        ascend = all((above[:-1] < above[1:]).all() for above in levels[1:])
        highest = max(int(self.vectors.max(initial=0)), int(self.neighbors.max(initial=0)), self.entry)
        return is_whole and ascend and self.entry >= 0 and highest < num_vectors

    def nearest(self, table: F32, breadth: int) -> npt.NDArray[np.uint32]:
        """Return the vectors nearest to a query that the graph leads to, nearest first.

        Parameters
        ----------
        table : float32[width, 256]
            The distance of the query that each byte at each place adds.
        breadth : int
            Maximum number of vectors, and of those that the search goes on from.
        """
        nodes = np.empty(min(breadth, len(self.codes)), np.uint32)
        size = search_graph(
            read_only(self.codes), table, self.level_offsets, read_only(self.vectors), read_only(self.offsets),
            read_only(self.neighbors), self.entry, nodes, np.empty(nodes.size, np.float32),
        )  # fmt: skip
        return nodes[:size]


def _tops(num_vectors: int, parameters: GraphParameters) -> npt.NDArray[np.uint8]:
    """Return the highest level of each vector: one of `m` reaches the next. The first has that of the highest one."""
    chances = 1 - np.random.default_rng(0).random(num_vectors)
    heights = -np.log(chances) / np.log(parameters.m)
    tops: npt.NDArray[np.uint8] = np.minimum(heights, parameters.max_level - 1).astype(np.uint8)
    tops[:1] = tops.max(initial=0)
    return tops
