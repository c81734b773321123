"""Models of vector indices: centroids and codes that fit a sample of vectors."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_format.lazy_dataclasses import dataclass
from lance_format.vectors.clustering import F32, Numbers, cluster, nearest_centroids, split_vectors
from lance_format.vectors.codes import Codes, FlatCodes, ProductCodes, ScalarCodes
from lance_format.vectors.metrics import Vectors
from lance_format.vectors.rotated_codes import RotatedCodes, Rotation

_SAMPLE_PER_CODE = 256
_MOST_SQUARE = float(np.finfo(np.float32).max) / 16
"""Of the length of a vector: its squared distance from another one has 32 bits, too, also between codes."""


@dataclass(frozen=True, slots=True)
class ModelParameters:
    """Parameters of a model.

    Parameters
    ----------
    quantization : {"FLAT", "SQ", "PQ", "RQ"}
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
    """

    quantization: str
    metric: str
    num_partitions: int
    num_sub_vectors: int = 1
    num_bits: int = 8
    sample_rate: int = 256
    max_iters: int = 50

    @property
    def sample_rows(self) -> int:
        """The number of vectors to train with."""
        per_code = _SAMPLE_PER_CODE << self.num_bits if self.quantization == "PQ" else 0
        return max(self.sample_rate * self.num_partitions, per_code)


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
    def trained(cls, parameters: ModelParameters, sample: Vectors, number: pa.DataType) -> VectorModel:
        """Fit a model to vectors; equal samples yield equal models.

        Parameters
        ----------
        parameters : ModelParameters
        sample : float[num_vectors, dimension]
            Vectors that `usable` has passed.
        number : pa.DataType
            The type of the numbers of the column.
        """
        random = np.random.default_rng(0)
        metric, dimension = parameters.metric, sample.shape[1]
        vectors = as_compared(sample, metric).astype(np.float32, copy=False)
        by_product = metric == "dot"
        chosen = vectors
        if len(vectors) > (most := parameters.sample_rate * parameters.num_partitions):
            chosen = vectors[random.permutation(len(vectors))[:most]]
        centroids, loss = cluster(
            chosen, parameters.num_partitions, parameters.max_iters, random, by_product=by_product
        )
        codes: Codes
        match parameters.quantization:
            case "FLAT":
                codes = FlatCodes(dimension, metric, number)
            case "SQ":
                lower, upper = (float(vectors.min()), float(vectors.max())) if vectors.size else (0.0, 0.0)
                codes = ScalarCodes(dimension, metric, lower, upper)
            case "RQ":
                codes = RotatedCodes(dimension, metric, parameters.num_bits, Rotation.at_random(dimension, random))
            case _:
                if not by_product:
                    vectors = vectors - centroids[_partitions(vectors, centroids, metric)[0]]
                codebook = _codebook(parameters, vectors, random)
                codes = ProductCodes(dimension, metric, parameters.num_bits, codebook, is_transposed=True)
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


def _codebook(parameters: ModelParameters, vectors: F32, random: np.random.Generator) -> F32:
    """Return the centroids of each sub-vector."""
    most = _SAMPLE_PER_CODE << parameters.num_bits
    parts = split_vectors(vectors[random.permutation(len(vectors))[:most]], parameters.num_sub_vectors)

    def clustered(part: F32, chance: np.random.Generator) -> F32:
        return cluster(part, 1 << parameters.num_bits, parameters.max_iters, chance)[0]

    with ThreadPoolExecutor(pa.cpu_count()) as threads:
        return np.stack(list(threads.map(clustered, parts, random.spawn(len(parts)))))
