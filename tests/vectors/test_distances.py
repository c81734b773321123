"""Distances between vectors equal those of NumPy."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_format.errors import InvalidInputError
from lance_format.vectors.codes import ProductCodes, ScalarCodes
from lance_format.vectors.metrics import check_metric, default_metric, distances_to, parse_metric

_IN_ONE_PARTITION = (np.zeros((1, 8), np.float32), np.zeros(50, np.int64))
"""Centroids, and the number of that of each vector."""


def _expected(query: np.ndarray, vectors: np.ndarray, metric: str) -> np.ndarray:
    query, vectors = query.astype(np.float64), vectors.astype(np.float64)
    if metric == "l2":
        return ((vectors - query) ** 2).sum(1)
    product = vectors @ query
    if metric == "dot":
        return 1 - product
    with np.errstate(invalid="ignore"):
        return 1 - product / (np.linalg.norm(vectors, axis=1) * np.linalg.norm(query))


@given(st.integers(1, 40), st.integers(0, 30), st.sampled_from(["f2", "f4", "f8"]), st.integers(0, 2**32 - 1))
def test_distances(dimension: int, count: int, dtype: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(count, dimension)).astype(dtype)
    vectors[rng.random(count) < 0.1] = 0
    query = rng.normal(size=dimension).astype(dtype)
    stored = pa.array(vectors.ravel()).to_numpy().reshape(vectors.shape)
    for metric in ("l2", "cosine", "dot"):
        found = distances_to(query, stored, metric)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, _expected(query, vectors, metric), rtol=1e-3, atol=1e-4)


@given(st.integers(1, 20), st.integers(0, 20), st.integers(0, 2**32 - 1))
def test_bits_that_differ(dimension: int, count: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    vectors = rng.integers(0, 256, (count, dimension), dtype=np.uint8)
    query = rng.integers(0, 256, dimension, dtype=np.uint8)
    expected = np.unpackbits(vectors ^ query, axis=1).sum(1)
    assert distances_to(query, vectors, "hamming").tolist() == expected.tolist()


@pytest.mark.parametrize("metric", ["l2", "cosine", "dot"])
def test_infinite_and_undefined_numbers(metric: str) -> None:
    vectors = np.array([[np.inf, 0], [np.nan, 0], [3e38, 3e38], [1, 1]], np.float32)
    with np.errstate(all="ignore"):
        expected = _expected(np.ones(2), vectors, metric).astype(np.float32)
    found = distances_to(np.ones(2, np.float32), vectors, metric)
    assert np.isnan(found[1])
    assert np.isnan(found).tolist()[:2] == np.isnan(expected).tolist()[:2]
    assert found[3] == pytest.approx(expected[3], abs=1e-6)


def test_codes_of_one_value() -> None:
    codes = ScalarCodes(4, "l2", 2.5, 2.5)
    assert codes.encode(np.array([[1.0, 2, 3, np.nan]]), *_IN_ONE_PARTITION).tolist() == [[0, 0, 0, 0]]
    assert codes.measuring(np.ones(4, np.float32))(np.zeros(4), np.zeros((3, 4), np.uint8)).tolist() == [0, 0, 0]


def test_numbers_beyond_the_bounds_of_scalar_codes() -> None:
    codes = ScalarCodes(5, "l2", -1.0, 1.0)
    vectors = np.array([[-np.inf, -3, 0, 3, np.inf]])
    assert codes.encode(vectors, *_IN_ONE_PARTITION).tolist() == [[0, 0, 127, 255, 255]]


@given(st.sampled_from([4, 8]), st.sampled_from(["l2", "cosine", "dot"]), st.booleans(), st.integers(0, 2**32 - 1))
def test_product_codes(num_bits: int, metric: str, is_transposed: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    num_parts, width, count = int(rng.choice([2, 4])), int(rng.integers(1, 4)), int(rng.integers(1, 20))
    codebook = rng.normal(size=(num_parts, 1 << num_bits, width)).astype(np.float32)
    numbers = rng.integers(0, 1 << num_bits, (count, num_parts), dtype=np.uint8)
    vectors = codebook[np.arange(num_parts), numbers].reshape(count, -1)
    stored = numbers if num_bits == 8 else numbers[:, ::2] | numbers[:, 1::2] << 4
    if is_transposed:
        stored = np.ascontiguousarray(stored.T).reshape(stored.shape)
    codes = ProductCodes(num_parts * width, metric, num_bits, codebook, is_transposed)
    query = rng.normal(size=num_parts * width).astype(np.float32)
    expected = _expected(query, vectors, "dot" if metric == "dot" else "l2") / (2 if metric == "cosine" else 1)
    (column,) = codes.columns
    loaded = codes.load([pa.FixedSizeListArray.from_arrays(pa.array(stored.ravel()), type=column.type)])
    centroid = np.zeros(query.size, np.float32)
    np.testing.assert_allclose(codes.measuring(query)(centroid, loaded), expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(codes.load(codes.store(loaded)), loaded)


def test_metrics() -> None:
    assert parse_metric("Euclidean") == parse_metric("L2") == "l2"
    assert default_metric(np.dtype(np.uint8)) == "hamming"
    assert default_metric(np.dtype(np.float16)) == "l2"
    with pytest.raises(InvalidInputError, match="metric is 'manhattan'; use one of l2, cosine, dot, hamming"):
        parse_metric("manhattan")
    with pytest.raises(InvalidInputError, match="vectors of float32 do not have"):
        check_metric("hamming", np.dtype(np.float32))
    with pytest.raises(InvalidInputError, match="vectors of uint8 do not have"):
        check_metric("l2", np.dtype(np.uint8))
