"""Graphs of near neighbours: Malkov and Yashunin, Efficient and Robust Approximate Nearest Neighbor Search Using
Hierarchical Navigable Small World Graphs, IEEE TPAMI 2020.

A node is a vector. It has neighbours at level 0, and at each level up to its top, which few nodes have. Each level of a
node is a slot: slot `node` is level 0, and slot `starts[node] + level - 1` another one. The first node has all levels.

The nodes that a search knows are one list, nearest first, as long as wanted. The nearest that has not been looked at is
next, until all have been: those that fell out of the list are farther than all in it.

A slot gets half as many neighbours again as it can keep, before it selects some of them: that takes the most time. In
the end all nodes are made to lead to each other at level 0, wherever a search enters it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lance_format.kernels.jit import allocating_kernel, kernel, summing_kernel

F32 = npt.NDArray[np.float32]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
U8 = npt.NDArray[np.uint8]
U32 = npt.NDArray[np.uint32]
Bools = npt.NDArray[np.bool_]


@summing_kernel
def _distance(vectors: F32, left: int, right: int, by_product: bool) -> np.float32:
    """Return the squared Euclidean distance of two vectors, or 1 minus their dot product."""
    total = np.float32(0)
    if by_product:
        for place in range(vectors.shape[1]):
            total += vectors[left, place] * vectors[right, place]
        return np.float32(1) - total
    for place in range(vectors.shape[1]):
        difference = vectors[left, place] - vectors[right, place]
        total += difference * difference
    return total


@kernel
def insert(nodes: U32, distances: F32, looked_at: Bools, size: int, node: np.uint32, distance: np.float32) -> int:
    """Add a node to a list, nearest first, which loses its farthest if it is full.

    Parameters
    ----------
    nodes : uint32[breadth]
    distances : float32[breadth]
    looked_at : bool[breadth]
        Set to False for the node.
    size : int
        Number of nodes in the list.
    node : uint32
    distance : float32

    Returns
    -------
    int
        The place of the node; `breadth` if it is too far.
    """
    low, high = 0, size
    while low < high:
        middle = (low + high) // 2
        if distances[middle] <= distance:
            low = middle + 1
        else:
            high = middle
    for place in range(min(size, nodes.size - 1), low, -1):
        nodes[place] = nodes[place - 1]
        distances[place] = distances[place - 1]
        looked_at[place] = looked_at[place - 1]
    if low < nodes.size:
        nodes[low], distances[low], looked_at[low] = node, distance, False
    return low


@kernel
def _search_level(
    vectors: F32,
    wanted: int,
    by_product: bool,
    slots: I64,
    neighbors: U32,
    counts: I32,
    level: int,
    seen: I64,
    mark: int,
    nodes: U32,
    distances: F32,
    looked_at: Bools,
) -> int:
    """Extend a list of one node to the nearest nodes of a level that are found from it; return its size."""
    size, next_place = 1, 0
    seen[nodes[0]] = mark
    looked_at[0] = False
    while next_place < size:
        if looked_at[next_place]:
            next_place += 1
            continue
        looked_at[next_place] = True
        node = np.int64(nodes[next_place])
        slot = node if level == 0 else slots[node] + level - 1
        for index in range(counts[slot]):
            neighbor = neighbors[slot, index]
            if seen[neighbor] == mark:
                continue
            seen[neighbor] = mark
            distance = _distance(vectors, wanted, neighbor, by_product)
            if size == nodes.size and distance >= distances[size - 1]:
                continue
            place = insert(nodes, distances, looked_at, size, neighbor, distance)
            size = min(size + 1, nodes.size)
            next_place = min(next_place, place)
    return size


@allocating_kernel
def _select(
    vectors: F32, by_product: bool, nodes: U32, distances: F32, size: int, most: int, out: U32, out_distances: F32
) -> int:
    """Choose neighbours from a list, nearest first, and return their number.

    Those come first that are no nearer to one chosen before than to the node, then the nearest of the others. Of equal
    vectors one comes first, lest they have no neighbours but each other.
    """
    if size <= most:
        out[:size] = nodes[:size]
        out_distances[:size] = distances[:size]
        return size
    is_left = np.ones(size, np.bool_)
    chosen = 0
    for index in range(size):
        if chosen == most:
            break
        is_apart = True
        for other in range(chosen):
            between = _distance(vectors, nodes[index], out[other], by_product)
            is_equal = between == distances[index] and out_distances[other] == distances[index]
            if between < distances[index] or is_equal:
                is_apart = False
                break
        if is_apart:
            out[chosen], out_distances[chosen] = nodes[index], distances[index]
            is_left[index] = False
            chosen += 1
    for index in range(size):
        if chosen == most:
            break
        if is_left[index]:
            out[chosen], out_distances[chosen] = nodes[index], distances[index]
            chosen += 1
    return chosen


@allocating_kernel
def _prune(
    vectors: F32, by_product: bool, neighbors: U32, neighbor_distances: F32, counts: I32, slot: int, most: int
) -> int:
    """Select the neighbours of a slot anew; return their number."""
    count = counts[slot]
    nodes, distances, looked_at = np.empty(count, np.uint32), np.empty(count, np.float32), np.empty(count, np.bool_)
    for index in range(count):
        insert(nodes, distances, looked_at, index, neighbors[slot, index], neighbor_distances[slot, index])
    counts[slot] = _select(
        vectors, by_product, nodes, distances, count, most, neighbors[slot], neighbor_distances[slot]
    )
    return counts[slot]


@allocating_kernel
def _adjacent(neighbors: U32, counts: I32, num_nodes: int, forwards: bool, bounds: I64) -> U32:
    """Return the neighbours of nodes at level 0, or the nodes that have them as such, and set the bounds of each."""
    bounds[:] = 0
    for node in range(num_nodes):
        for index in range(counts[node]):
            bounds[(node if forwards else np.int64(neighbors[node, index])) + 1] += 1
    for node in range(num_nodes):
        bounds[node + 1] += bounds[node]
    found, places = np.empty(bounds[num_nodes], np.uint32), bounds[:num_nodes].copy()
    for node in range(num_nodes):
        for index in range(counts[node]):
            neighbor = np.int64(neighbors[node, index])
            owner, other = (node, neighbor) if forwards else (neighbor, node)
            found[places[owner]] = other
            places[owner] += 1
    return found


@kernel
def _flood(adjacent: U32, bounds: I64, first: int, is_reached: Bools, stack: I64) -> int:
    """Mark the nodes that are reached from a node, and are not marked yet."""
    is_reached[first] = True
    stack[0] = first
    size = 1
    while size:
        size -= 1
        node = stack[size]
        for index in range(bounds[node], bounds[node + 1]):
            other = adjacent[index]
            if not is_reached[other]:
                is_reached[other] = True
                stack[size] = other
                size += 1
    return size


@allocating_kernel
def connect_graph(
    vectors: F32, starts: I64, breadth: int, by_product: bool, neighbors: U32, neighbor_distances: F32, counts: I32
) -> int:
    """Let each node lead to each other at level 0, by as many more neighbours as that takes; see `build_graph`.

    Parameters
    ----------
    vectors, starts, breadth, by_product, neighbors, neighbor_distances, counts
        Those of `build_graph`.

    Returns
    -------
    int
        The number of neighbours that were added.
    """
    num_nodes, most = vectors.shape[0], neighbors.shape[1] - 1
    seen, stack = np.zeros(num_nodes, np.int64), np.empty(num_nodes, np.int64)
    nodes, distances, looked_at = (
        np.empty(breadth, np.uint32),
        np.empty(breadth, np.float32),
        np.empty(breadth, np.bool_),
    )
    bounds = np.empty(num_nodes + 1, np.int64)
    added = 0
    for forwards in (True, False):
        is_reached = np.zeros(num_nodes, np.bool_)
        adjacent = _adjacent(neighbors, counts, num_nodes, forwards, bounds)
        _flood(adjacent, bounds, 0, is_reached, stack)
        latest = 0
        for node in range(1, num_nodes):
            if is_reached[node]:
                continue
            added += 1
            nodes[0], distances[0] = 0, _distance(vectors, node, 0, by_product)
            size = _search_level(
                vectors, node, by_product, starts, neighbors, counts, 0, seen, added, nodes, distances, looked_at
            )
            other = latest
            for index in range(size):
                if is_reached[nodes[index]] and (not forwards or counts[nodes[index]] < most):
                    other = np.int64(nodes[index])
                    break
            source, target = (other, node) if forwards else (node, other)
            neighbors[source, counts[source]] = target
            neighbor_distances[source, counts[source]] = _distance(vectors, node, other, by_product)
            counts[source] += 1
            _flood(adjacent, bounds, node, is_reached, stack)
            latest = node
    return added


@allocating_kernel
def build_graph(
    vectors: F32,
    tops: U8,
    starts: I64,
    most: int,
    breadth: int,
    by_product: bool,
    neighbors: U32,
    neighbor_distances: F32,
    counts: I32,
) -> int:
    """Build the graph of some vectors; nodes become part of it one after another.

    Parameters
    ----------
    vectors : float32[num_nodes, dimension]
    tops : uint8[num_nodes]
        The highest level of each node; no other has more than the first.
    starts : int64[num_nodes]
        The slots of the first levels, from `num_nodes` on.
    most : int
        Number of neighbours that a new node gets, and that it can have at levels above 0; twice as many at level 0.
    breadth : int
        Number of nodes to choose these from.
    by_product : bool
        Whether a distance is 1 minus the dot product, instead of the squared Euclidean distance.
    neighbors : uint32[num_slots, 3 * most + 1]
        Set to the neighbours.
    neighbor_distances : float32[num_slots, 3 * most + 1]
        Set to their distances.
    counts : int32[num_slots]
        All 0; set to the numbers of neighbours.

    Returns
    -------
    int
        The number of nodes.
    """
    num_nodes = vectors.shape[0]
    seen = np.zeros(num_nodes, np.int64)
    mark = 0
    nodes, distances, looked_at = (
        np.empty(breadth, np.uint32),
        np.empty(breadth, np.float32),
        np.empty(breadth, np.bool_),
    )
    chosen, chosen_distances = np.empty(most, np.uint32), np.empty(most, np.float32)
    for node in range(1, num_nodes):
        nodes[0] = 0
        distances[0] = _distance(vectors, node, 0, by_product)
        for level in range(tops[0], -1, -1):
            mark += 1
            is_linked = level <= tops[node]
            length = breadth if is_linked else 1
            size = _search_level(
                vectors, node, by_product, starts, neighbors, counts, level, seen, mark,
                nodes[:length], distances[:length], looked_at[:length],
            )  # fmt: skip
            if not is_linked:
                continue
            count = _select(vectors, by_product, nodes, distances, size, most, chosen, chosen_distances)
            kept = 2 * most if level == 0 else most
            slot = node if level == 0 else starts[node] + level - 1
            neighbors[slot, :count] = chosen[:count]
            neighbor_distances[slot, :count] = chosen_distances[:count]
            counts[slot] = count
            for index in range(count):
                other = np.int64(chosen[index]) if level == 0 else starts[chosen[index]] + level - 1
                if counts[other] == kept + kept // 2:
                    _prune(vectors, by_product, neighbors, neighbor_distances, counts, other, kept)
                neighbors[other, counts[other]] = node
                neighbor_distances[other, counts[other]] = chosen_distances[index]
                counts[other] += 1
    for slot in range(counts.size):
        kept = 2 * most if slot < num_nodes else most
        if counts[slot] > kept:
            _prune(vectors, by_product, neighbors, neighbor_distances, counts, slot, kept)
    return num_nodes
