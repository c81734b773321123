"""Search in graphs of near neighbours, as files hold them: see `neighbor_graphs.py`, whose lists these are."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lance_format.kernels.jit import allocating_kernel, kernel
from lance_format.kernels.vectors.neighbor_graphs import insert

F32 = npt.NDArray[np.float32]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
U8 = npt.NDArray[np.uint8]
U32 = npt.NDArray[np.uint32]


@kernel
def _distance(codes: U8, row: int, table: F32) -> np.float32:
    """Return the sum of the entries of a table that the bytes of a row select."""
    first, second, third, fourth = np.float32(0), np.float32(0), np.float32(0), np.float32(0)
    width = codes.shape[1]
    fours = width // 4 * 4
    for place in range(0, fours, 4):
        first += table[place, codes[row, place]]
        second += table[place + 1, codes[row, place + 1]]
        third += table[place + 2, codes[row, place + 2]]
        fourth += table[place + 3, codes[row, place + 3]]
    for place in range(fours, width):
        first += table[place, codes[row, place]]
    return (first + second) + (third + fourth)


@kernel
def _find(vectors: U32, start: int, stop: int, wanted: int) -> int:
    """Return the place of a number in a range of ascending ones, or -1."""
    low, high = start, stop
    while low < high:
        middle = (low + high) // 2
        if vectors[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low if low < stop and vectors[low] == wanted else -1


@kernel
def _descend(
    codes: U8, table: F32, level_offsets: I64, vectors: U32, offsets: I32, neighbors: U32, entry: int
) -> np.int64:
    """Return the nearest vector that the levels above level 0 lead to."""
    nearest, distance = np.int64(entry), _distance(codes, entry, table)
    for level in range(level_offsets.size - 2, 0, -1):
        is_nearer = True
        while is_nearer:
            is_nearer = False
            node = _find(vectors, level_offsets[level], level_offsets[level + 1], nearest)
            if node < 0:
                break
            for index in range(offsets[node], offsets[node + 1]):
                other = np.int64(neighbors[index])
                between = _distance(codes, other, table)
                if between < distance:
                    nearest, distance, is_nearer = other, between, True
    return nearest


@allocating_kernel
def search_graph(
    codes: U8,
    table: F32,
    level_offsets: I64,
    vectors: U32,
    offsets: I32,
    neighbors: U32,
    entry: int,
    nodes: U32,
    distances: F32,
) -> int:
    """Find the vectors nearest to a query that a graph leads to.

    Parameters
    ----------
    codes : uint8[num_vectors, width], read-only
    table : float32[width, 256]
        The distance that each byte at each place adds.
    level_offsets : int64[num_levels + 1]
    vectors : uint32[num_nodes], read-only
        Level 0 has all vectors in order; those of other levels ascend.
    offsets : int32[num_nodes + 1], read-only
    neighbors : uint32[num_neighbors], read-only
        Below `num_vectors`.
    entry : int
        The vector at which a search starts.
    nodes : uint32[breadth]
        Set to the vectors, nearest first.
    distances : float32[breadth]
        Set to their distances.

    Returns
    -------
    int
        Their number.
    """
    looked_at, seen = np.empty(nodes.size, np.bool_), np.zeros(codes.shape[0], np.bool_)
    start = _descend(codes, table, level_offsets, vectors, offsets, neighbors, entry)
    nodes[0], distances[0], looked_at[0] = start, _distance(codes, start, table), False
    seen[start] = True
    size, next_place = 1, 0
    while next_place < size:
        if looked_at[next_place]:
            next_place += 1
            continue
        looked_at[next_place] = True
        node = np.int64(nodes[next_place])
        for index in range(offsets[node], offsets[node + 1]):
            neighbor = neighbors[index]
            if seen[neighbor]:
                continue
            seen[neighbor] = True
            distance = _distance(codes, neighbor, table)
            if size == nodes.size and distance >= distances[size - 1]:
                continue
            place = insert(nodes, distances, looked_at, size, neighbor, distance)
            size = min(size + 1, nodes.size)
            next_place = min(next_place, place)
    return size
