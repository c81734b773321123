"""Graphs of near neighbours: they lead a search to what is nearest."""

from __future__ import annotations

import dataclasses
import heapq

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from lance_format.vectors.codes import DecodableCodes, FlatCodes, ProductCodes, ScalarCodes
from lance_format.vectors.graphs import GraphParameters, NeighborGraph, StoredGraph

F32 = npt.NDArray[np.float32]
_IN_ONE_PARTITION = (np.zeros((1, 8), np.float32), np.zeros(50, np.int64))
"""Centroids, and the number of that of each vector."""


def _neighbors(graph: NeighborGraph, level: int, vector: int) -> list[int]:
    first, end = graph.level_offsets[level : level + 2]
    node = first + np.searchsorted(graph.vectors[first:end], vector)
    assert graph.vectors[node] == vector
    found: list[int] = graph.neighbors[graph.offsets[node] : graph.offsets[node + 1]].tolist()
    return found


def _found(graph: NeighborGraph, distances: F32, breadth: int) -> list[int]:
    """Return the vectors that a search from the first one finds, by their distances from the query, nearest first."""
    start, levels = 0, np.flatnonzero(np.diff(graph.level_offsets)).tolist()
    for level in reversed(levels[1:]):
        while (nearest := min([start, *_neighbors(graph, level, start)], key=distances.__getitem__)) != start:
            start = nearest
    seen, left, best = {start}, [(distances[start], start)], [(-distances[start], start)]
    while left:
        distance, node = heapq.heappop(left)
        if len(best) == breadth and distance > -best[0][0]:
            break
        for neighbor in _neighbors(graph, 0, node):
            if neighbor not in seen:
                seen.add(neighbor)
                heapq.heappush(left, (distances[neighbor], neighbor))
                heapq.heappush(best, (-distances[neighbor], neighbor))
                if len(best) > breadth:
                    heapq.heappop(best)
    return [node for _, node in sorted((-distance, node) for distance, node in best)]


def _vectors(kind: str, rng: np.random.Generator) -> F32:
    """Return 3,000 vectors: independent ones, some clusters, or clusters of equal ones among others."""
    scattered = rng.standard_normal((3000, 16)).astype(np.float32)
    if kind == "clusters":
        scattered = scattered / 10 + rng.standard_normal((30, 16)).astype(np.float32)[rng.integers(0, 30, 3000)]
    if kind == "equal":
        scattered[:600] = rng.standard_normal((3, 16)).astype(np.float32)[np.arange(600) % 3]
    return scattered


@pytest.mark.parametrize("by_product", [False, True])
@pytest.mark.parametrize("kind", ["scattered", "clusters", "equal"])
def test_searches_find_the_nearest(kind: str, by_product: bool) -> None:
    rng = np.random.default_rng(1)
    vectors = _vectors(kind, rng)
    graph = NeighborGraph.built(vectors, GraphParameters(), by_product=by_product)
    hits = 0
    for query in _vectors(kind, rng)[1000:1040]:
        distances = 1 - vectors @ query if by_product else ((vectors - query) ** 2).sum(axis=1)
        expected = np.sort(distances)[:10]
        found = _found(graph, distances, 100)[:10]
        hits += np.count_nonzero(distances[found] <= expected[-1])
    assert hits >= (0.93 if by_product else 0.97) * 400


def test_neighbors_have_their_distances() -> None:
    vectors = _vectors("scattered", np.random.default_rng(2))[:500]
    for by_product in (False, True):
        graph = NeighborGraph.built(vectors, GraphParameters(m=6, ef_construction=30), by_product=by_product)
        owners = np.repeat(graph.vectors, np.diff(graph.offsets))
        left, right = vectors[owners], vectors[graph.neighbors]
        expected = 1 - (left * right).sum(axis=1) if by_product else ((left - right) ** 2).sum(axis=1)
        np.testing.assert_allclose(graph.distances, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("num_vectors", [0, 1, 2, 5, 41])
def test_few_vectors_are_all_neighbors(num_vectors: int) -> None:
    vectors = _vectors("scattered", np.random.default_rng(3))[:num_vectors]
    graph = NeighborGraph.built(vectors, GraphParameters(max_level=1))
    assert graph.level_offsets.tolist() == [0, num_vectors]
    found = [set(graph.neighbors[a:b].tolist()) for a, b in zip(graph.offsets[:-1], graph.offsets[1:], strict=True)]
    if num_vectors <= 20:
        assert found == [set(range(num_vectors)) - {node} for node in range(num_vectors)]
    assert all(len(found[node]) >= 20 for node in range(21, num_vectors))


def test_equal_vectors_make_equal_graphs() -> None:
    vectors = _vectors("clusters", np.random.default_rng(4))[:800]
    first, second = (NeighborGraph.built(vectors.copy(), GraphParameters()) for _ in range(2))
    for name in ("level_offsets", "vectors", "offsets", "neighbors", "distances"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))


@pytest.mark.parametrize("num_bits", [4, 8])
def test_product_codes_are_decoded(num_bits: int) -> None:
    rng = np.random.default_rng(5)
    codebook = rng.standard_normal((4, 1 << num_bits, 2)).astype(np.float32)
    codes = ProductCodes(8, "l2", num_bits, codebook, is_transposed=True)
    numbers = rng.integers(0, 1 << num_bits, (50, 4))
    vectors = np.hstack([codebook[part, numbers[:, part]] for part in range(4)])
    np.testing.assert_array_equal(codes.decode(codes.encode(vectors, *_IN_ONE_PARTITION)), vectors)


def test_other_codes_are_decoded() -> None:
    vectors = np.random.default_rng(6).random((50, 8), np.float32)
    codes = ScalarCodes(8, "l2", 0, 1)
    assert np.abs(codes.decode(codes.encode(vectors, *_IN_ONE_PARTITION)) - vectors).max() <= 1 / 255
    flat = FlatCodes(8, "l2", pa.float32())
    np.testing.assert_array_equal(flat.decode(flat.encode(vectors, *_IN_ONE_PARTITION)), vectors)


def _stored(graph: NeighborGraph, codes: npt.NDArray[np.uint8]) -> StoredGraph:
    return StoredGraph(codes, graph.level_offsets, graph.vectors, graph.offsets, graph.neighbors, 0)


def _codes(name: str, metric: str, vectors: F32) -> DecodableCodes:
    if name == "scalar":
        return ScalarCodes(16, metric, float(vectors.min()), float(vectors.max()))
    num_bits = int(name)
    codebook = np.random.default_rng(1).choice(vectors, 1 << num_bits).reshape(-1, 8, 2).swapaxes(0, 1).copy()
    return ProductCodes(16, metric, num_bits, codebook, is_transposed=True)


@pytest.mark.parametrize("metric", ["l2", "cosine", "dot"])
@pytest.mark.parametrize("name", ["scalar", "4", "8"])
@pytest.mark.parametrize("kind", ["scattered", "clusters", "equal"])
def test_searches_of_codes(name: str, metric: str, kind: str) -> None:
    """As many vectors as there are come in order; of fewer, as many are near as of a search by the distances of all."""
    rng = np.random.default_rng(4)
    vectors = _vectors(kind, rng)
    if metric == "cosine":
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    codes, centroid = _codes(name, metric, vectors), np.zeros(16, np.float32)
    stored = codes.encode(vectors, centroid[None], np.zeros(len(vectors), np.int64))
    graph = NeighborGraph.built(codes.decode(stored), GraphParameters(), by_product=metric == "dot")
    searched = _stored(graph, np.ascontiguousarray(stored))
    assert searched.is_sound()
    recalls = []
    for query in _vectors("scattered", rng)[:10]:
        distances = codes.measuring(query)(centroid, stored)
        table = codes.distance_table(query, centroid)
        assert table is not None
        near = searched.nearest(table, len(vectors))
        assert sorted(near.tolist()) == list(range(len(vectors)))
        assert distances[near] == pytest.approx(np.sort(distances), rel=1e-4, abs=1e-4)
        few = searched.nearest(table, 100)
        assert len(few) == len(set(few.tolist())) == 100
        tenth = np.sort(distances)[9] + 1e-4
        recalls.append([(distances[found] <= tenth).sum() for found in (few, _found(graph, distances, 100))])
    mine, expected = np.minimum(recalls, 10).mean(axis=0)
    assert mine >= expected - 0.5


def test_graphs_that_searches_do_not_follow() -> None:
    vectors = _vectors("scattered", np.random.default_rng(5))
    graph = NeighborGraph.built(vectors, GraphParameters())
    codes = np.zeros((3000, 16), np.uint8)
    assert _stored(graph, codes).is_sound()
    assert not _stored(graph, codes[:-1]).is_sound()
    damaged: list[dict[str, object]] = [
        {"entry": 3000},
        {"entry": -1},
        {"level_offsets": np.zeros(0, np.int64)},
        {"level_offsets": graph.level_offsets + 1},
        {"level_offsets": graph.level_offsets[:2]},
        {"level_offsets": graph.level_offsets[[0, 2, 1, *range(3, graph.level_offsets.size)]]},
        {"vectors": graph.vectors[::-1]},
        {"vectors": np.concatenate([graph.vectors[:3001][::-1], graph.vectors[3001:]])},
        {"neighbors": np.where(np.arange(graph.neighbors.size) == 7, 3000, graph.neighbors).astype(np.uint32)},
    ]
    for change in damaged:
        assert not dataclasses.replace(_stored(graph, codes), **change).is_sound()
