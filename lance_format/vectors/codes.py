"""Codes of vectors in indices, and the distances of a query from them.

| codes | of a vector | distances |
|---|---|---|
| `FlatCodes` | the vector itself | exact |
| `ScalarCodes` | a byte per number, on a scale between two bounds | of the query's code; by `dot`, of the query |
| `ProductCodes` | per sub-vector, the number of the nearest of 256 or 16 centroids | sums of those of the centroids |

Vectors of length 1 stand for others if the metric is `cosine`. Product codes stand for the difference from the centroid
of the partition, except by the metric `dot`. Jégou, Douze, Schmid: Product Quantization for Nearest Neighbor Search,
IEEE TPAMI 2011.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_format.kernels.vectors.distances import (
    code_products,
    squared_code_distances,
    sub_vector_distances,
    sum_byte_codes,
    sum_half_byte_codes,
)
from lance_format.lazy_dataclasses import dataclass
from lance_format.vectors.clustering import nearest_centroids, split_vectors
from lance_format.vectors.metrics import Distances, Vector, Vectors, distances_to

U8 = npt.NDArray[np.uint8]
F32 = npt.NDArray[np.float32]


class Codes(Protocol):
    """Form of the vectors of an index."""

    @property
    def column(self) -> pa.Field:
        """The column of the codes."""

    @property
    def is_relative(self) -> bool:
        """True if codes stand for the differences from the centroid of the partition."""

    def encode(self, vectors: Vectors) -> Vectors:
        """Return the codes of vectors, `[num_vectors, width]`, which are not transposed.

        Parameters
        ----------
        vectors : float[num_vectors, dimension]
            See `query` of `distances`.
        """

    def decode(self, codes: Vectors) -> F32:
        """Return the vectors that codes stand for, `float32[num_vectors, dimension]`.

        Parameters
        ----------
        codes : numeric[num_vectors, width]
            Not transposed.
        """

    def distances(self, query: Vector, codes: Vectors) -> Distances:
        """Return the distances of the vectors of a partition from a query, as exactly as the codes tell.

        Parameters
        ----------
        query : float32[dimension]
            Of length 1 if the metric is `cosine`; then its difference from the centroid if the codes are relative.
        codes : numeric[num_vectors, width]
            As they are stored.
        """


@dataclass(frozen=True, slots=True)
class FlatCodes:
    """Vectors as they are.

    Parameters
    ----------
    dimension : int
    metric : str
    number : pa.DataType
        The type of their numbers.
    """

    dimension: int
    metric: str
    number: pa.DataType

    is_relative: ClassVar[bool] = False

    @property
    def column(self) -> pa.Field:
        """The column of the vectors."""
        return pa.field("flat", pa.list_(self.number, self.dimension))

    def encode(self, vectors: Vectors) -> Vectors:
        """Return the vectors, with the numbers of the index."""
        return vectors.astype(self.number.to_pandas_dtype(), copy=False)

    def decode(self, codes: Vectors) -> F32:
        """See `Codes.decode`."""
        return codes.astype(np.float32, copy=False)

    def distances(self, query: Vector, codes: Vectors) -> Distances:
        """See `Codes.distances`."""
        return distances_to(query.astype(codes.dtype), codes, self.metric)


@dataclass(frozen=True, slots=True)
class ScalarCodes:
    """A byte per number: 0 for the lower bound, 255 for the upper one.

    Parameters
    ----------
    dimension : int
    metric : str
    lower, upper : float
    """

    dimension: int
    metric: str
    lower: float
    upper: float
    is_relative: ClassVar[bool] = False

    @property
    def column(self) -> pa.Field:
        """The column of the codes."""
        return pa.field("__sq_code", pa.list_(pa.uint8(), self.dimension))

    def encode(self, vectors: Vectors) -> U8:
        """Return the codes of vectors, `uint8[…]`, which are rounded down."""
        if self.lower == self.upper:
            return np.zeros(vectors.shape, np.uint8)
        scaled = (vectors.astype(np.float64) - self.lower) * 255 / (self.upper - self.lower)
        return np.clip(np.nan_to_num(scaled), 0, 255).astype(np.uint8)

    def decode(self, codes: Vectors) -> F32:
        """See `Codes.decode`."""
        return codes * np.float32((self.upper - self.lower) / 255) + np.float32(self.lower)

    def distances(self, query: Vector, codes: Vectors) -> Distances:
        """See `Codes.distances`."""
        out = np.empty(codes.shape[0], np.float32)
        step = (self.upper - self.lower) / 255
        if self.metric == "dot":
            code_products(codes, query.astype(np.float32), out)
            return (1 - self.lower * float(query.sum(dtype=np.float64)) - step * out).astype(np.float32)
        squared_code_distances(codes, self.encode(query), out)
        return out * np.float32(step * step / 2 if self.metric == "cosine" else step * step)


@dataclass(frozen=True, slots=True, eq=False)
class ProductCodes:
    """The number of the nearest centroid of each sub-vector, of 4 or 8 bits.

    Parameters
    ----------
    dimension : int
    metric : str
    num_bits : int
    codebook : float32[num_sub_vectors, 2**num_bits, dimension / num_sub_vectors]
    is_transposed : bool
        Whether a partition has all codes of the first sub-vector first, instead of all of the first vector.
    """

    dimension: int
    metric: str
    num_bits: int
    codebook: F32
    is_transposed: bool

    @property
    def is_relative(self) -> bool:
        """See `Codes.is_relative`."""
        return self.metric != "dot"

    @property
    def width(self) -> int:
        """Number of bytes per vector."""
        return int(self.codebook.shape[0]) * self.num_bits // 8

    @property
    def column(self) -> pa.Field:
        """The column of the codes."""
        return pa.field("__pq_code", pa.list_(pa.uint8(), self.width))

    def encode(self, vectors: Vectors) -> U8:
        """See `Codes.encode`."""

        def encoded(part: F32, centroids: F32) -> U8:
            return nearest_centroids(part, centroids)[0].astype(np.uint8)

        parts = split_vectors(vectors.astype(np.float32, copy=False), len(self.codebook))
        with ThreadPoolExecutor(pa.cpu_count()) as threads:
            numbers: U8 = np.stack(list(threads.map(encoded, parts, self.codebook)), axis=1)
        return numbers if self.num_bits == 8 else (numbers[:, ::2] | numbers[:, 1::2] << 4).astype(np.uint8)

    def decode(self, codes: Vectors) -> F32:
        """See `Codes.decode`."""
        numbers = codes if self.num_bits == 8 else np.stack([codes & 15, codes >> 4], axis=2).reshape(len(codes), -1)
        return np.hstack([entries[numbers[:, part]] for part, entries in enumerate(self.codebook)])

    def distances(self, query: Vector, codes: Vectors) -> Distances:
        """See `Codes.distances`."""
        table = self._table(query)
        stored = codes.reshape(self.width, -1) if self.is_transposed else np.ascontiguousarray(codes.T)
        out = np.empty(codes.shape[0], np.float32)
        (sum_byte_codes if self.num_bits == 8 else sum_half_byte_codes)(stored, table, out)
        if self.metric == "dot":
            out -= np.float32(self.codebook.shape[0] - 1)
        if self.metric == "cosine":
            out /= 2
        return out

    def _table(self, query: Vector) -> F32:
        """Return the distances of the sub-vectors of a query from the centroids of each."""
        out = np.empty(self.codebook.shape[:2], np.float32)
        sub_vector_distances(query.astype(np.float32), self.codebook, self.metric == "dot", out)
        return out
