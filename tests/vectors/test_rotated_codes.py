"""Codes of rotated vectors tell distances, the more exactly the more bits they have."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_format.vectors.rotated_codes import RotatedCodes, Rotation


def _codes(dimension: int, metric: str, num_bits: int) -> RotatedCodes:
    return RotatedCodes(dimension, metric, num_bits, Rotation.at_random(dimension, np.random.default_rng(1)))


@given(st.integers(1, 20), st.integers(0, 40), st.integers(0, 2**32 - 1))
def test_rotations_keep_lengths_and_angles(eights: int, count: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    vectors = random.normal(size=(count, 8 * eights)).astype(np.float32)
    rotation = Rotation.at_random(8 * eights, random)
    rotated = rotation.apply(vectors)
    np.testing.assert_allclose(rotated @ rotated.T, vectors @ vectors.T, rtol=1e-4, atol=1e-4)
    for number in range(count):  # Each is rotated alike, alone and with others.
        np.testing.assert_array_equal(rotation.apply(vectors[number : number + 1])[0], rotated[number])


@given(st.integers(1, 20), st.integers(0, 100), st.integers(1, 9), st.integers(0, 2**32 - 1))
def test_what_is_stored_is_loaded(eights: int, count: int, num_bits: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    codes = _codes(8 * eights, "l2", num_bits)
    vectors = random.normal(size=(count, 8 * eights)).astype(np.float32)
    numbers = random.integers(0, 3, count)
    encoded = codes.encode(vectors, vectors[:1].repeat(3, axis=0) if count else np.zeros((3, 8 * eights)), numbers)
    stored = codes.store(encoded)
    assert [column.type for column in stored] == [column.type for column in codes.columns]
    np.testing.assert_array_equal(codes.load(stored), encoded)
    chunked = [pa.concat_arrays([column.slice(0, 0), column]) for column in stored]
    np.testing.assert_array_equal(codes.load(chunked), encoded)


@pytest.mark.parametrize("metric", ["l2", "cosine", "dot"])
@pytest.mark.parametrize("dimension", [8, 64, 136])
def test_more_bits_are_more_exact(dimension: int, metric: str) -> None:
    random = np.random.default_rng(2)
    vectors = random.normal(size=(500, dimension)).astype(np.float32)
    centroids = random.normal(size=(4, dimension)).astype(np.float32) / 4
    if metric == "cosine":
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        centroids /= 2 * np.linalg.norm(centroids, axis=1, keepdims=True)
    query, numbers = vectors[0] + vectors[1], random.integers(0, 4, 500)
    exact = 1 - vectors @ query if metric == "dot" else ((vectors - query) ** 2).sum(axis=1)
    exact /= 2 if metric == "cosine" else 1
    errors = []
    for num_bits in range(1, 10):
        codes = _codes(dimension, metric, num_bits)
        encoded, measure = codes.encode(vectors, centroids, numbers), codes.measuring(query)
        found = np.empty(500)
        for number, centroid in enumerate(centroids):
            found[numbers == number] = measure(centroid, encoded[numbers == number])
        errors.append(np.sqrt(np.mean((found - exact) ** 2)) / exact.std())
    assert errors[0] < 1
    assert errors[4] < 0.1
    assert errors[8] < 0.01
    assert all(later < earlier for earlier, later in itertools.pairwise(errors))


@pytest.mark.parametrize("num_bits", [1, 5])
def test_vectors_that_are_their_centroid(num_bits: int) -> None:
    centroids = np.arange(32, dtype=np.float32).reshape(2, 16)
    codes = _codes(16, "l2", num_bits)
    encoded = codes.encode(centroids[[1, 0, 1]], centroids, np.array([1, 0, 1]))
    query = np.ones(16, np.float32)
    for place, number in enumerate([1, 0, 1]):
        (found,) = codes.measuring(query)(centroids[number], encoded[place : place + 1])
        assert found == ((centroids[number] - 1) ** 2).sum()
