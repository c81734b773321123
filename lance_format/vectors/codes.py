"""Codes of vectors in indices, and the distances of a query from them.

| codes | of a vector | distances |
|---|---|---|
| `FlatCodes` | the vector itself | exact |
| `ScalarCodes` | a byte per number, on a scale between two bounds | of the query's code; by `dot`, of the query |
| `ProductCodes` | per sub-vector, the number of the nearest of 256 or 16 centroids | sums of those of the centroids |
| `RotatedCodes`, `SignCodes` | some bits, or one, per number of the rotated vector | of what these stand for |

Vectors of length 1 stand for others if the metric is `cosine`. Product codes stand for the difference from the centroid
of the partition, except by the metric `dot`. Jégou, Douze, Schmid: Product Quantization for Nearest Neighbor Search,
IEEE TPAMI 2011.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

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
from lance_format.vectors.clustering import Numbers, nearest_centroids, split_vectors
from lance_format.vectors.metrics import Distances, Vector, Vectors, distances_to, vectors_of

U8 = npt.NDArray[np.uint8]
F32 = npt.NDArray[np.float32]


class Measure(Protocol):
    """Computes distances from a query."""

    def __call__(self, centroid: Vector, codes: Vectors) -> Distances:
        """Return the distances of the vectors of a partition, as exactly as the codes tell.

        Parameters
        ----------
        centroid : float32[dimension]
            Of the partition.
        codes : numeric[num_vectors, width]
        """


class Codes(Protocol):
    """Form of the vectors of an index."""

    @property
    def columns(self) -> Sequence[pa.Field]:
        """The columns that a file has of them."""

    def load(self, columns: Sequence[pa.Array]) -> Vectors:
        """Return the codes of a partition, `[num_vectors, width]`.

        Parameters
        ----------
        columns : sequence of pa.Array
            Of the partition as a whole, without nulls.
        """

    def store(self, codes: Vectors) -> Sequence[pa.Array]:
        """Return the columns of the codes of a partition.

        Parameters
        ----------
        codes : numeric[num_vectors, width]
        """

    def encode(self, vectors: Vectors, centroids: F32, numbers: Numbers) -> Vectors:
        """Return the codes of vectors, `[num_vectors, width]`.

        Parameters
        ----------
        vectors : float[num_vectors, dimension]
            Of length 1 if the metric is `cosine`.
        centroids : float32[num_partitions, dimension]
        numbers : int64[num_vectors]
            The partition of each vector.
        """

    def measuring(self, query: Vector) -> Measure:
        """Return a function that computes distances from a query.

        Parameters
        ----------
        query : float32[dimension]
            Of length 1 if the metric is `cosine`.
        """


class DecodableCodes(Codes, Protocol):
    """Codes that tell a vector without its partition: graphs are built by them."""

    def decode(self, codes: Vectors) -> F32:
        """Return the vectors that codes stand for, or their differences from the centroids of their partitions.

        Parameters
        ----------
        codes : numeric[num_vectors, width]

        Returns
        -------
        float32[num_vectors, dimension]
        """

    def distance_table(self, query: Vector, centroid: Vector) -> F32 | None:
        """Return what each byte at each place of a code adds to the distance from a query, but for a constant.

        None if the numbers of codes are not bytes.

        Parameters
        ----------
        query : float32[dimension]
            Of length 1 if the metric is `cosine`.
        centroid : float32[dimension]
            Of the partition.

        Returns
        -------
        float32[width, 256] or None
        """


class _OneColumn:
    """Codes that are a column of a file as they are."""

    __slots__ = ()

    def load(self, columns: Sequence[pa.Array]) -> Vectors:
        """See `Codes.load`."""
        return vectors_of(columns[0])

    def store(self, codes: Vectors) -> Sequence[pa.Array]:
        """See `Codes.store`."""
        return [array_of(codes)]


@dataclass(frozen=True, slots=True)
class FlatCodes(_OneColumn):
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

    @property
    def columns(self) -> Sequence[pa.Field]:
        """See `Codes.columns`."""
        return [pa.field("flat", pa.list_(self.number, self.dimension))]

    def encode(self, vectors: Vectors, centroids: F32, numbers: Numbers) -> Vectors:
        """Return the vectors, with the numbers of the index; see `Codes.encode`."""
        del centroids, numbers
        return vectors.astype(self.number.to_pandas_dtype(), copy=False)

    def decode(self, codes: Vectors) -> F32:
        """See `DecodableCodes.decode`."""
        return codes.astype(np.float32, copy=False)

    def measuring(self, query: Vector) -> Measure:
        """See `Codes.measuring`."""
        numbers = query.astype(self.number.to_pandas_dtype())

        def measure(centroid: Vector, codes: Vectors) -> Distances:
            del centroid
            return distances_to(numbers, codes, self.metric)

        return measure

    def distance_table(self, query: Vector, centroid: Vector) -> F32 | None:
        """See `DecodableCodes.distance_table`."""
        del query, centroid
        return None


@dataclass(frozen=True, slots=True)
class ScalarCodes(_OneColumn):
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

    @property
    def columns(self) -> Sequence[pa.Field]:
        """See `Codes.columns`."""
        return [pa.field("__sq_code", pa.list_(pa.uint8(), self.dimension))]

    def encode(self, vectors: Vectors, centroids: F32, numbers: Numbers) -> U8:
        """See `Codes.encode`."""
        del centroids, numbers
        return self._rounded(vectors)

    def _rounded(self, vectors: Vectors) -> U8:
        """Return the codes of vectors, `uint8[…]`, which are rounded down."""
        if self.lower == self.upper:
            return np.zeros(vectors.shape, np.uint8)
        scaled = (vectors.astype(np.float64) - self.lower) * 255 / (self.upper - self.lower)
        return np.clip(np.nan_to_num(scaled), 0, 255).astype(np.uint8)

    def decode(self, codes: Vectors) -> F32:
        """See `DecodableCodes.decode`."""
        return codes * np.float32((self.upper - self.lower) / 255) + np.float32(self.lower)

    def measuring(self, query: Vector) -> Measure:
        """See `Codes.measuring`."""
        step = (self.upper - self.lower) / 255
        numbers, rounded = query.astype(np.float32), self._rounded(query)
        offset = 1 - self.lower * float(query.sum(dtype=np.float64))

        def measure(centroid: Vector, codes: Vectors) -> Distances:
            del centroid
            out = np.empty(codes.shape[0], np.float32)
            if self.metric == "dot":
                code_products(codes, numbers, out)
                return (offset - step * out).astype(np.float32)
            squared_code_distances(codes, rounded, out)
            return out * np.float32(step * step / 2 if self.metric == "cosine" else step * step)

        return measure

    def distance_table(self, query: Vector, centroid: Vector) -> F32:
        """See `DecodableCodes.distance_table`."""
        del centroid
        values = np.arange(256, dtype=np.float32)
        if self.metric == "dot":
            return -np.outer(query.astype(np.float32), values)
        return (self._rounded(query).astype(np.float32)[:, None] - values) ** 2


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
        Whether a file has all codes of the first sub-vector first of a partition, instead of all of the first vector.
    """

    dimension: int
    metric: str
    num_bits: int
    codebook: F32
    is_transposed: bool

    @property
    def columns(self) -> Sequence[pa.Field]:
        """See `Codes.columns`."""
        width = int(self.codebook.shape[0]) * self.num_bits // 8
        return [pa.field("__pq_code", pa.list_(pa.uint8(), width))]

    def load(self, columns: Sequence[pa.Array]) -> Vectors:
        """See `Codes.load`."""
        stored = vectors_of(columns[0])
        return stored.reshape(stored.shape[::-1]).T if self.is_transposed else stored

    def store(self, codes: Vectors) -> Sequence[pa.Array]:
        """See `Codes.store`."""
        return [array_of(np.ascontiguousarray(codes.T).reshape(codes.shape) if self.is_transposed else codes)]

    def encode(self, vectors: Vectors, centroids: F32, numbers: Numbers) -> U8:
        """See `Codes.encode`."""
        if self._is_relative:
            vectors = vectors - centroids[numbers]

        def encoded(part: F32, centroids: F32) -> U8:
            return nearest_centroids(part, centroids)[0].astype(np.uint8)

        parts = split_vectors(vectors.astype(np.float32, copy=False), len(self.codebook))
        with ThreadPoolExecutor(pa.cpu_count()) as threads:
            found: U8 = np.stack(list(threads.map(encoded, parts, self.codebook)), axis=1)
        return found if self.num_bits == 8 else (found[:, ::2] | found[:, 1::2] << 4).astype(np.uint8)

    def decode(self, codes: Vectors) -> F32:
        """See `DecodableCodes.decode`."""
        numbers = codes if self.num_bits == 8 else np.stack([codes & 15, codes >> 4], axis=2).reshape(len(codes), -1)
        return np.hstack([entries[numbers[:, part]] for part, entries in enumerate(self.codebook)])

    def measuring(self, query: Vector) -> Measure:
        """See `Codes.measuring`."""
        add_up = sum_byte_codes if self.num_bits == 8 else sum_half_byte_codes

        def measure(centroid: Vector, codes: Vectors) -> Distances:
            table = self._table(query - centroid if self._is_relative else query)
            out = np.empty(codes.shape[0], np.float32)
            add_up(np.ascontiguousarray(codes.T), table, out)
            if self.metric == "dot":
                out -= np.float32(self.codebook.shape[0] - 1)
            if self.metric == "cosine":
                out /= 2
            return out

        return measure

    def distance_table(self, query: Vector, centroid: Vector) -> F32:
        """See `DecodableCodes.distance_table`."""
        table = self._table(query - centroid if self._is_relative else query)
        if self.num_bits == 8:
            return table
        values = np.arange(256)
        return table[::2, values & 15] + table[1::2, values >> 4]

    @property
    def _is_relative(self) -> bool:
        return self.metric != "dot"

    def _table(self, query: Vector) -> F32:
        """Return the distances of the sub-vectors of a query from the centroids of each."""
        out = np.empty(self.codebook.shape[:2], np.float32)
        sub_vector_distances(query.astype(np.float32), self.codebook, self.metric == "dot", out)
        return out


def array_of(codes: Vectors) -> pa.FixedSizeListArray:
    """Return codes as a column.

    Parameters
    ----------
    codes : numeric[num_vectors, width]
    """
    return pa.FixedSizeListArray.from_arrays(pa.array(np.ascontiguousarray(codes).ravel()), codes.shape[1])


def no_codes(codes: Codes) -> Vectors:
    """Return the codes of no vector, `[0, width]`."""
    return codes.load([pa.array([], column.type) for column in codes.columns])
