"""Clustering of vectors, and models of indices."""

from __future__ import annotations

import pickle

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_format.table.indices.vectors.quantizations import QUANTIZATIONS
from lance_format.vectors.clustering import cluster, nearest_centroids, split_vectors
from lance_format.vectors.codes import ScalarCodes
from lance_format.vectors.training import ModelParameters, VectorModel, as_compared, usable


@given(st.integers(1, 40), st.integers(0, 60), st.integers(1, 30), st.booleans(), st.integers(0, 2**32 - 1))
def test_nearest_centroids(dimension: int, count: int, clusters: int, by_product: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(count, dimension)).astype(np.float32)
    centroids = rng.normal(size=(clusters, dimension)).astype(np.float32)
    exact = vectors.astype(np.float64) @ centroids.T
    distances = -exact if by_product else ((vectors[:, None] - centroids[None]).astype(np.float64) ** 2).sum(2)
    numbers, found = nearest_centroids(vectors, centroids, by_product=by_product)
    chosen = distances[np.arange(count), numbers]
    np.testing.assert_allclose(chosen, distances.min(1), rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(found, chosen, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("dimension", [2, 40])
def test_clusters_that_are_apart_are_found(dimension: int) -> None:
    rng = np.random.default_rng(1)
    middles = rng.normal(size=(6, dimension)) * 100
    vectors = (middles[rng.integers(0, 6, 3000)] + rng.normal(size=(3000, dimension))).astype(np.float32)
    best = min((cluster(vectors, 6, 50, np.random.default_rng(seed)) for seed in range(8)), key=lambda found: found[1])
    distances = np.sqrt(((best[0][:, None] - middles[None]) ** 2).sum(2))
    assert sorted(distances.argmin(1).tolist()) == list(range(6))
    assert distances.min(1).max() < 1


def test_equal_vectors_and_few_vectors() -> None:
    random = np.random.default_rng(2)
    same = np.ones((50, 3), np.float32)
    centroids, loss = cluster(same, 4, 10, random)
    assert loss == pytest.approx(0, abs=1e-3)
    assert np.abs(centroids - 1).max() < 0.01
    centroids, loss = cluster(same[:2], 5, 10, random)
    assert centroids.shape == (5, 3)
    assert np.isfinite(centroids).all()
    centroids, loss = cluster(same[:0], 5, 10, random)
    assert (centroids.shape, loss) == ((5, 3), 0.0)


def test_no_cluster_stays_empty() -> None:
    vectors = np.random.default_rng(3).normal(size=(2000, 20)).astype(np.float32)
    vectors[:1500] = vectors[0]  # Most of the first centroids are equal.
    centroids, _ = cluster(vectors, 40, 50, np.random.default_rng(3))
    numbers, _ = nearest_centroids(vectors, centroids)
    assert np.bincount(numbers, minlength=40).astype(bool).mean() > 0.8


def test_sub_vectors() -> None:
    vectors = np.arange(12, dtype=np.float32).reshape(2, 6)
    assert [part.tolist() for part in split_vectors(vectors, 3)] == [
        [[0, 1], [6, 7]],
        [[2, 3], [8, 9]],
        [[4, 5], [10, 11]],
    ]


def test_usable_vectors() -> None:
    vectors = np.array([[1, 2], [0, 0], [np.nan, 1], [np.inf, 1], [-0.0, 0]], np.float32)
    assert usable(vectors, "l2").tolist() == [True, True, False, False, True]
    assert usable(vectors, "cosine").tolist() == [True, False, False, False, False]
    large = np.array([[1e18, 0], [1e19, 1], [1, -1e30], [1e300, 1e300]])
    assert usable(large, "l2").tolist() == usable(large, "dot").tolist() == [True, False, False, False]
    assert usable(large, "cosine").all()
    assert usable(large[:3].astype(np.float32), "l2").tolist() == [True, False, False]
    assert usable(np.array([[65504, 1], [np.inf, 1]], np.float16), "l2").tolist() == [True, False]
    assert usable(np.zeros((2, 0), np.float32), "l2").tolist() == [True, True]


@pytest.mark.parametrize("metric", ["l2", "cosine", "dot"])
@pytest.mark.parametrize("quantization", ["FLAT", "SQ", "PQ", "RQ"])
@pytest.mark.parametrize("number", [pa.float32(), pa.float64()], ids=str)
def test_large_numbers_make_no_warnings(number: pa.DataType, quantization: str, metric: str) -> None:
    rng = np.random.default_rng(5)
    dtype = number.to_pandas_dtype()
    scales = 10.0 ** rng.uniform(-30, np.log10(np.finfo(dtype).max) - 1, size=(500, 1))
    vectors = (rng.normal(size=(500, 8)) * scales).astype(dtype)
    vectors[0] = np.sqrt(float(np.finfo(np.float32).max) / 16 / 8) * 0.999
    vectors[1] = -vectors[0]
    kept = vectors[usable(vectors, metric)]
    assert len(kept) == len(vectors) if metric == "cosine" else 20 < len(kept) < 450
    parameters = ModelParameters(metric, 5, num_sub_vectors=4)
    sample = as_compared(kept, metric).astype(np.float32)
    model = VectorModel.trained(parameters, sample, number, QUANTIZATIONS[quantization].fit)
    assert np.isfinite(model.centroids).all()
    assert np.isfinite(model.loss)
    numbers, codes = model.encode(kept)
    for number_of_one in range(5):
        query = as_compared(kept[:1], metric)[0].astype(np.float32)
        measure = model.codes.measuring(query)
        assert np.isfinite(measure(model.centroids[number_of_one], codes[numbers == number_of_one])).all()


@pytest.mark.parametrize("metric", ["l2", "cosine", "dot"])
@pytest.mark.parametrize(("quantization", "tolerance"), [("FLAT", 1e-5), ("SQ", 0.05), ("PQ", 0.6), ("RQ", 0.02)])
def test_codes_of_a_model_are_near(metric: str, quantization: str, tolerance: float) -> None:
    rng = np.random.default_rng(4)
    vectors = rng.normal(size=(2000, 8)).astype(np.float32)
    parameters = ModelParameters(metric, 10, num_sub_vectors=4)
    trained = VectorModel.trained(parameters, vectors, pa.float32(), QUANTIZATIONS[quantization].fit)
    model = pickle.loads(pickle.dumps(trained))
    numbers, codes = model.encode(vectors)
    compared = vectors / np.linalg.norm(vectors, axis=1, keepdims=True) if metric == "cosine" else vectors
    assert numbers.tolist() == nearest_centroids(compared, model.centroids, by_product=metric == "dot")[0].tolist()
    query = compared[17]
    for number in range(10):
        mine = numbers == number
        found = model.codes.measuring(query)(model.centroids[number], codes[mine])
        exact = ((compared[mine] - query) ** 2).sum(1) / (2 if metric == "cosine" else 1)
        if metric == "dot":
            exact = 1 - compared[mine] @ query
        assert np.abs(found - exact).mean() < tolerance * max(np.abs(exact).mean(), 1)


def test_scalar_codes_have_the_bounds_of_the_sample() -> None:
    vectors = np.array([[1, 2], [-3, 8]], np.float32)
    model = VectorModel.trained(ModelParameters("l2", 1), vectors, pa.float32(), QUANTIZATIONS["SQ"].fit)
    assert isinstance(model.codes, ScalarCodes)
    assert (model.codes.lower, model.codes.upper) == (-3, 8)
    assert model.encode(vectors)[1].tolist() == [[92, 115], [0, 255]]
