"""Clustering of vectors: Lloyd's algorithm.

Distances of many vectors from many centroids are computed as products of matrices, some vectors at a time. A centroid
that loses all its vectors moves to the cluster with the largest loss. Lloyd: Least squares quantization in PCM, IEEE
Transactions on Information Theory 1982.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lance_format.kernels.jit import read_only
from lance_format.kernels.vectors.distances import find_nearest

F32 = npt.NDArray[np.float32]
Numbers = npt.NDArray[np.int64]

_PRODUCTS = 1 << 24
"""Number of distances in memory."""
_TOLERANCE = 1e-4
"""Share of the loss by which a step has to be better than the last one to be followed by another."""
_FEW_NUMBERS = 16
"""Number of dimensions up to which a kernel is faster than a product of matrices."""
_NUDGE = np.float32(1e-3)


def nearest_centroids(vectors: F32, centroids: F32, *, by_product: bool = False) -> tuple[Numbers, F32]:
    """Return the number of the nearest centroid of each vector, and its distance.

    Parameters
    ----------
    vectors : float32[num_vectors, dimension]
    centroids : float32[num_centroids, dimension]
    by_product : bool
        Whether a centroid with a larger dot product is nearer, instead of by the Euclidean distance.

    Returns
    -------
    numbers : int64[num_vectors]
    distances : float32[num_vectors]
        Squared, or minus the dot product.
    """
    numbers, distances = np.empty(len(vectors), np.int64), np.empty(len(vectors), np.float32)
    squares = np.zeros(len(centroids), np.float32) if by_product else (centroids**2).sum(1)
    factor = np.float32(1 if by_product else 2)
    columns = np.ascontiguousarray(centroids.T)
    if len(columns) <= _FEW_NUMBERS:
        find_nearest(read_only(vectors), columns, squares, factor, numbers, distances)
    else:
        step = max(_PRODUCTS // len(centroids), 1)
        for start in range(0, len(vectors), step):
            part = vectors[start : start + step]
            products = part @ columns
            products *= -factor
            products += squares
            numbers[start : start + step] = products.argmin(1)
            distances[start : start + step] = products[np.arange(len(part)), numbers[start : start + step]]
    if not by_product:
        distances += (vectors**2).sum(1)
        np.maximum(distances, 0, out=distances)
    return numbers, distances


def cluster(
    vectors: F32, num_clusters: int, max_iterations: int, random: np.random.Generator, *, by_product: bool = False
) -> tuple[F32, float]:
    """Find centroids of clusters.

    Parameters
    ----------
    vectors : float32[num_vectors, dimension]
        Finite numbers.
    num_clusters : int
        If there are fewer vectors, some centroids are repeated.
    max_iterations : int
    random : numpy.random.Generator
        Chooses the first centroids.
    by_product : bool
        See `nearest_centroids`.

    Returns
    -------
    centroids : float32[num_clusters, dimension]
    loss : float
        The sum of the distances of the last step.
    """
    if not len(vectors):
        return np.zeros((num_clusters, vectors.shape[1]), np.float32), 0.0
    chosen = random.permutation(len(vectors))[:num_clusters]
    centroids = vectors[np.resize(chosen, num_clusters)].copy()
    before = np.inf
    for _ in range(max_iterations):
        numbers, distances = nearest_centroids(vectors, centroids, by_product=by_product)
        loss = float(distances.sum(dtype=np.float64))
        losses = np.bincount(numbers, None if by_product else distances, len(centroids)).astype(np.float64)
        centroids = _means(vectors, numbers, centroids, losses, random)
        if before - loss <= _TOLERANCE * abs(loss):
            break
        before = loss
    return centroids, loss


def split_vectors(vectors: F32, num_parts: int) -> list[F32]:
    """Divide vectors into sub-vectors of equal length; the result has those of one place side by side."""
    return [np.ascontiguousarray(part) for part in np.split(vectors, num_parts, axis=1)]


def _means(
    vectors: F32, numbers: Numbers, centroids: F32, losses: npt.NDArray[np.float64], random: np.random.Generator
) -> F32:
    """Return the mean of each cluster; an empty one splits that with the largest loss.

    Parameters
    ----------
    vectors : float32[num_vectors, dimension]
    numbers : int64[num_vectors]
        Of the clusters.
    centroids : float32[num_clusters, dimension]
    losses : float64[num_clusters]
    random : numpy.random.Generator
    """
    counts = np.bincount(numbers, minlength=len(centroids))
    order = np.argsort(numbers, kind="stable")
    there = np.flatnonzero(counts)
    starts = np.concatenate([[0], np.cumsum(counts[there])[:-1]])
    means = centroids.copy()
    sums: npt.NDArray[Any] = np.add.reduceat(vectors[order], starts, axis=0, dtype=np.float64)
    means[there] = sums / counts[there, None]
    for empty in np.flatnonzero(counts == 0).tolist():
        largest = int(losses.argmax())
        nudge = np.float32(1) + _NUDGE * random.choice([-1, 1], means.shape[1]).astype(np.float32)
        means[empty] = means[largest] * nudge
        losses[empty] = losses[largest] = losses[largest] / 2
    return means
