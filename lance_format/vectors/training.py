"""Models of vector indices: centroids and codes that fit a sample of vectors."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_format.lazy_dataclasses import dataclass
from lance_format.vectors.clustering import F32, Numbers, cluster, nearest_centroids, split_vectors
from lance_format.vectors.codes import Codes
from lance_format.vectors.metrics import Vectors

_MOST_SQUARE = float(np.finfo(np.float32).max) / 16
"""Of the length of a vector: its squared distance from another one has 32 bits, too, also between codes."""


@dataclass(frozen=True, slots=True)
class ModelParameters:
    """Parameters of a model.

    Parameters
    ----------
    metric : str
    num_partitions : int
    num_sub_vectors : int
        Of product codes.
    num_bits : int
        Of product codes: 4 or 8. Of rotated codes: from 1 to 9.
    sample_rate : int
        Number of vectors of the sample per partition.
    max_iters : int
        Maximum number of steps of a clustering.
    target_partition_size : int
        Rows per partition that give the number of partitions where none is asked for; 0 if they do not.
    """

    metric: str
    num_partitions: int
    num_sub_vectors: int = 1
    num_bits: int = 8
    sample_rate: int = 256
    max_iters: int = 50
    target_partition_size: int = 0

    @property
    def sample_rows(self) -> int:
        """The number of vectors to find centroids with."""
        return self.sample_rate * self.num_partitions


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Vectors for which codes are wanted.

    Parameters
    ----------
    parameters : ModelParameters
    vectors : float32[num_vectors, dimension]
        As `as_compared` returns them.
    centroids : float32[num_partitions, dimension]
    number : pa.DataType
        The type of the numbers of the column.
    random : np.random.Generator
    """

    parameters: ModelParameters
    vectors: F32
    centroids: F32
    number: pa.DataType
    random: np.random.Generator

    @property
    def dimension(self) -> int:
        """Number of numbers per vector."""
        return int(self.vectors.shape[1])

    def differences(self) -> F32:
        """Return the differences of the vectors from the centroids of their partitions."""
        return self.vectors - self.centroids[_partitions(self.vectors, self.centroids, self.parameters.metric)[0]]


@dataclass(frozen=True, slots=True, eq=False)
class VectorModel:
    """Centroids and codes, which turn a vector into a partition and a code. Can be pickled.

    Parameters
    ----------
    centroids : float32[num_partitions, dimension]
    codes : Codes
    metric : str
    number : np.dtype
        Of the numbers of the column, in which centroids are stored.
    loss : float
        Of the clustering.
    """

    centroids: F32
    codes: Codes
    metric: str
    number: np.dtype[Any]
    loss: float

    @classmethod
    def trained(
        cls, parameters: ModelParameters, sample: Vectors, number: pa.DataType, fit: Callable[[Sample], Codes]
    ) -> VectorModel:
        """Fit a model to vectors; equal samples yield equal models.

        Parameters
        ----------
        parameters : ModelParameters
        sample : float[num_vectors, dimension]
            Vectors that `usable` has passed.
        number : pa.DataType
            The type of the numbers of the column.
        fit : callable
            Returns codes for vectors such as those of a sample.
        """
        random = np.random.default_rng(0)
        metric = parameters.metric
        vectors = as_compared(sample, metric).astype(np.float32, copy=False)
        chosen = vectors
        if len(vectors) > parameters.sample_rows:
            chosen = vectors[random.permutation(len(vectors))[: parameters.sample_rows]]
        centroids, loss = cluster(
            chosen, parameters.num_partitions, parameters.max_iters, random, by_product=metric == "dot"
        )
        codes = fit(Sample(parameters, vectors, centroids, number, random))
        return cls(centroids, codes, metric, np.dtype(number.to_pandas_dtype()), loss)

    def encode(self, vectors: Vectors) -> tuple[Numbers, Vectors]:
        """Return the partitions of vectors, and their codes, `[num_vectors, width]`.

        Parameters
        ----------
        vectors : float[num_vectors, dimension]
            Vectors that `usable` has passed.
        """
        compared = as_compared(vectors, self.metric)
        numbers, _ = _partitions(compared, self.centroids, self.metric)
        return numbers, self.codes.encode(compared, self.centroids, numbers)


def usable(vectors: Vectors, metric: str) -> npt.NDArray[np.bool_]:
    """Return for each vector whether an index can hold it: its numbers are finite, and it can be compared.

    By `cosine` it has to have a direction. By other metrics its numbers have to be small enough for distances of
    32 bits.

    Parameters
    ----------
    vectors : float[num_vectors, dimension]
    metric : str
    """
    greatest = np.abs(vectors).max(axis=1, initial=0)
    found = np.isfinite(greatest)
    if metric == "cosine":
        return np.asarray(found & (greatest > 0))
    return np.asarray(found & (greatest <= np.float32(math.sqrt(_MOST_SQUARE / max(vectors.shape[1], 1)))))


def as_compared(vectors: Vectors, metric: str) -> Vectors:
    """Return vectors as partitions compare them: of length 1 if the metric is `cosine`, at least of 32 bits.

    Parameters
    ----------
    vectors : float[num_vectors, dimension]
        Vectors that `usable` has passed.
    metric : str
    """
    if metric == "cosine":
        exact = vectors.astype(np.float64)
        if vectors.dtype == np.float64:  # Squares of its numbers can have more than 64 bits.
            exact /= np.abs(exact).max(axis=1, keepdims=True, initial=0)
        exact /= np.linalg.norm(exact, axis=1, keepdims=True)
        return exact.astype(np.promote_types(vectors.dtype, np.float32))
    return vectors.astype(np.float32) if vectors.dtype == np.float16 else vectors


def _partitions(vectors: Vectors, centroids: F32, metric: str) -> tuple[Numbers, F32]:
    return nearest_centroids(vectors.astype(np.float32, copy=False), centroids, by_product=metric == "dot")


def fit_codebook(sample: Sample, most: int) -> F32:
    """Return the centroids of each sub-vector of product codes.

    Parameters
    ----------
    sample : Sample
    most : int
        Number of vectors to find them with.

    Returns
    -------
    float32[num_sub_vectors, 2**num_bits, dimension / num_sub_vectors]
    """
    parameters, random = sample.parameters, sample.random
    vectors = sample.vectors if parameters.metric == "dot" else sample.differences()
    parts = split_vectors(vectors[random.permutation(len(vectors))[:most]], parameters.num_sub_vectors)

    def clustered(part: F32, chance: np.random.Generator) -> F32:
        return cluster(part, 1 << parameters.num_bits, parameters.max_iters, chance)[0]

    with ThreadPoolExecutor(pa.cpu_count()) as threads:
        return np.stack(list(threads.map(clustered, parts, random.spawn(len(parts)))))
