"""Codes of `IVF_RQ` in indices of early releases: the signs of the numbers of a vector that was rotated at random.

They are compared with a query relative to the centroid of the partition, as it is done for the vectors; `RotatedCodes`,
which replaced them, rotate a query once for all partitions. Gao and Long: RaBitQ, SIGMOD 2024.

| column | of a vector |
|---|---|
| `_rabit_codes` | signs; see `rotated_codes.py` |
| `__add_factors`, `__scale_factors` | float32 |

Here, a code is a row of bytes: signs, factors.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import pyarrow as pa

from lance_format.kernels.jit import read_only
from lance_format.kernels.vectors.distances import sum_byte_codes
from lance_format.lazy_dataclasses import dataclass
from lance_format.vectors.clustering import F32, Numbers
from lance_format.vectors.codes import U8, Measure, array_of
from lance_format.vectors.metrics import Distances, Vector, Vectors, vectors_of
from lance_format.vectors.rotated_codes import BITS, MatrixRotation, Rotation, interleaved, separated

_FACTORS = ("__add_factors", "__scale_factors")
_FACTOR_BYTES = 4 * len(_FACTORS)


@dataclass(frozen=True, slots=True, eq=False)
class SignCodes:
    """Signs of the numbers of rotated vectors.

    Parameters
    ----------
    dimension : int
        A multiple of 8.
    metric : {"l2", "cosine", "dot"}
    rotation : Rotation or MatrixRotation
    """

    dimension: int
    metric: str
    rotation: Rotation | MatrixRotation
    num_bits: ClassVar[int] = 1
    estimator: ClassVar[str] = "residual_query"

    @property
    def columns(self) -> Sequence[pa.Field]:
        """See `Codes.columns`."""
        signs = pa.field("_rabit_codes", pa.list_(pa.uint8(), self.dimension // 8))
        return [signs, *(pa.field(name, pa.float32()) for name in _FACTORS)]

    def load(self, columns: Sequence[pa.Array]) -> U8:
        """See `Codes.load`."""
        factors = np.stack([column.to_numpy() for column in columns[1:]], axis=1)
        rows = np.hstack([separated(vectors_of(columns[0])), factors.view(np.uint8)])
        return read_only(np.ascontiguousarray(rows.T)).T

    def store(self, codes: Vectors) -> Sequence[pa.Array]:
        """See `Codes.store`."""
        signs = np.ascontiguousarray(codes[:, :-_FACTOR_BYTES])
        return [array_of(interleaved(signs)), *(pa.array(np.ascontiguousarray(each)) for each in _factors(codes).T)]

    def encode(self, vectors: Vectors, centroids: F32, numbers: Numbers) -> U8:
        """See `Codes.encode`."""
        centers = centroids[numbers]
        rotated = self.rotation.apply(vectors - centers)
        square = np.einsum("ij,ij->i", rotated, rotated)
        product = np.abs(rotated).sum(axis=1) / np.float32(math.sqrt(self.dimension))
        ratio = np.divide(square, product, out=np.zeros_like(square), where=product != 0)
        if self.metric == "dot":
            factors = [1 - np.einsum("ij,ij->i", vectors - centers, centers), -ratio]
        else:
            factors = [square, -2 * ratio]
        signs = np.packbits(rotated >= 0, axis=1, bitorder="little")
        return np.hstack([signs, np.stack(factors, axis=1).astype(np.float32).view(np.uint8)])

    def measuring(self, query: Vector) -> Measure:
        """See `Codes.measuring`."""

        def measure(centroid: Vector, codes: Vectors) -> Distances:
            rotated = self.rotation.apply((query - centroid)[None])[0]
            products = np.empty(codes.shape[0], np.float32)
            table = (rotated.reshape(-1, 8) @ BITS).astype(np.float32)
            sum_byte_codes(np.ascontiguousarray(codes.T[:-_FACTOR_BYTES]), table, products)
            add, scale = _factors(codes).T
            difference = query - centroid
            known = -query @ centroid if self.metric == "dot" else difference @ difference
            found: Distances = (2 * products - rotated.sum()) / np.float32(math.sqrt(self.dimension)) * scale + add
            found += np.float32(known)
            if self.metric == "cosine":
                found /= 2
            return found

        return measure


def _factors(codes: Vectors) -> F32:
    """Return the factors of codes, `float32[num_vectors, 2]`."""
    found: F32 = np.ascontiguousarray(codes[:, -_FACTOR_BYTES:]).view("<f4")
    return found
