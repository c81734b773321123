"""Codes of `IVF_RQ`: some bits for each number of a vector that was rotated at random, relative to its centroid.

The highest bit of a number is its sign, the others its size on a scale that suits the vector; the rotation makes all
numbers alike. Two factors of each vector turn the dot product of its code and a rotated query into a distance. Signs
have factors of their own, and the error that distances by signs alone are expected to have: pylance skips vectors that
are too far by their signs. Gao and Long: RaBitQ, SIGMOD 2024; Gao et al.: Practical and Asymptotically Optimal
Quantization of High-Dimensional Vectors in Euclidean Space, SIGMOD 2025.

| column | of a vector |
|---|---|
| `_rabit_codes` | signs, the lowest bit first; every 32 vectors of a partition interleaved, the rest transposed |
| `__add_factors`, `__scale_factors`, `__error_factors` | float32: of the signs |
| `__blocked_ex_codes` | the other bits, in blocks of 64 numbers, see `_places_in_block`; if there are any |
| `__add_factors_ex`, `__scale_factors_ex` | float32: of all bits, if there are others than the sign |

Here, a code is a row of bytes: signs, other bits, factors.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_format.kernels.jit import read_only
from lance_format.kernels.vectors.distances import sum_byte_codes
from lance_format.kernels.vectors.rotated_codes import quantize, rotate, set_bits
from lance_format.lazy_dataclasses import dataclass
from lance_format.vectors.clustering import F32, Numbers
from lance_format.vectors.codes import U8, Measure, array_of
from lance_format.vectors.metrics import Distances, Vector, Vectors, vectors_of

MOST_BITS = 9
_BLOCK = 64
_ROWS = 32
"""Vectors that are interleaved."""
_ORDER = np.array([0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15])
_FIRST_SCALES = (0.0, 0.15, 0.20, 0.52, 0.59, 0.71, 0.75, 0.77, 0.81)
"""Of codes of as many bits without the sign: share of the greatest scale that the best one exceeds."""
_CERTAINTY = 1.9
"""Standard deviations of the error."""
_TURNS = 4
_OTHER_BITS = 4
"""Position of the column of other bits: pylance merges partitions by the positions of columns, not their names."""
_ENCODED_AT_ONCE = 2048
BITS = (np.arange(256)[None, :] >> np.arange(8)[:, None] & 1).astype(np.float64)
"""Of each byte, the lowest first."""


@dataclass(frozen=True, slots=True, eq=False)
class Rotation:
    """A rotation of vectors; see `lance_format.kernels.vectors.rotated_codes.rotate`.

    Parameters
    ----------
    signs : uint8[4, dimension / 8]
    """

    signs: U8

    @classmethod
    def at_random(cls, dimension: int, random: np.random.Generator) -> Rotation:
        """Return one of the rotations of vectors of some dimension, a multiple of 8."""
        return cls(random.integers(0, 256, (_TURNS, dimension // 8), np.uint8))

    def apply(self, vectors: Vectors) -> F32:
        """Return rotated vectors, `float32[num_vectors, dimension]`."""
        out = np.empty(vectors.shape, np.float32)
        rotate(read_only(np.ascontiguousarray(vectors, np.float32)), read_only(self.signs), out)
        return out


@dataclass(frozen=True, slots=True, eq=False)
class MatrixRotation:
    """A rotation by an orthogonal matrix.

    Parameters
    ----------
    matrix : float32[dimension, dimension]
    """

    matrix: F32

    def apply(self, vectors: Vectors) -> F32:
        """See `Rotation.apply`."""
        return np.asarray(vectors.astype(np.float32, copy=False) @ self.matrix.T)


@dataclass(frozen=True, slots=True, eq=False)
class RotatedCodes:
    """Signs and sizes of the numbers of rotated vectors.

    Parameters
    ----------
    dimension : int
        A multiple of 8.
    metric : {"l2", "cosine", "dot"}
    num_bits : int
        Per number: from 1 to 9.
    rotation : Rotation or MatrixRotation
    """

    dimension: int
    metric: str
    num_bits: int
    rotation: Rotation | MatrixRotation
    estimator: ClassVar[str] = "raw_query"

    @property
    def columns(self) -> Sequence[pa.Field]:
        """See `Codes.columns`."""
        signs, others = (pa.list_(pa.uint8(), width) for width in _widths(self.dimension, self.num_bits))
        columns = [("_rabit_codes", signs), *((name, pa.float32()) for name in self._factor_names)]
        if self.num_bits > 1:
            columns.insert(_OTHER_BITS, ("__blocked_ex_codes", others))
        return [pa.field(name, value_type) for name, value_type in columns]

    @property
    def _num_bytes(self) -> int:
        """Number of bytes of a code before its factors."""
        return sum(_widths(self.dimension, self.num_bits))

    @property
    def _factor_names(self) -> list[str]:
        names = ["__add_factors", "__scale_factors", "__error_factors"]
        return names if self.num_bits == 1 else [*names, "__add_factors_ex", "__scale_factors_ex"]

    def load(self, columns: Sequence[pa.Array]) -> U8:
        """See `Codes.load`."""
        codes = [separated(vectors_of(columns[0])), *map(vectors_of, columns[_OTHER_BITS : _OTHER_BITS + 1])]
        factors = np.stack(
            [column.to_numpy() for column in (*columns[1:_OTHER_BITS], *columns[_OTHER_BITS + 1 :])], axis=1
        )
        # The bytes of all vectors at one place follow each other, as sums need them.
        return read_only(np.ascontiguousarray(np.hstack([*codes, factors.view(np.uint8)]).T)).T

    def store(self, codes: Vectors) -> Sequence[pa.Array]:
        """See `Codes.store`."""
        signs, others, factors = np.split(codes, np.cumsum(_widths(self.dimension, self.num_bits)), axis=1)
        numbers = np.ascontiguousarray(factors).view("<f4")
        columns = [pa.array(np.ascontiguousarray(column)) for column in numbers.T]
        columns.insert(0, array_of(interleaved(np.ascontiguousarray(signs))))
        if self.num_bits > 1:
            columns.insert(_OTHER_BITS, array_of(others))
        return columns

    def encode(self, vectors: Vectors, centroids: F32, numbers: Numbers) -> U8:
        """See `Codes.encode`."""
        centers = self.rotation.apply(centroids)

        def encoded(start: int) -> U8:
            chosen = numbers[start : start + _ENCODED_AT_ONCE]
            rotated = self.rotation.apply(vectors[start : start + _ENCODED_AT_ONCE] - centroids[chosen])
            return self._encoded(rotated, centers, chosen)

        with ThreadPoolExecutor(pa.cpu_count()) as threads:
            starts = range(0, max(len(vectors), 1), _ENCODED_AT_ONCE)
            return np.concatenate(list(threads.map(encoded, starts)))

    def _encoded(self, rotated: F32, centers: F32, numbers: Numbers) -> U8:
        num_sizes = self.num_bits - 1
        codes, sums = np.empty(rotated.shape, np.uint16), np.empty((len(rotated), 6))
        quantize(rotated, centers, numbers, num_sizes, _FIRST_SCALES[num_sizes], codes, sums)
        found = np.zeros((len(rotated), self._num_bytes), np.uint8)
        set_bits(codes, _places(self.dimension, self.num_bits), found)
        factors = self._computed(sums).astype(np.float32)
        return np.hstack([found, np.ascontiguousarray(factors).view(np.uint8)])

    def measuring(self, query: Vector) -> Measure:
        """See `Codes.measuring`."""
        rotated = self.rotation.apply(query[None])[0].astype(np.float64)
        table, width = self._table(rotated), self._num_bytes
        first = width + 4 * self._factor_names.index("__add_factors" if self.num_bits == 1 else "__add_factors_ex")
        middle = np.float32((2 ** (self.num_bits - 1) - 0.5) * rotated.sum())

        def measure(centroid: Vector, codes: Vectors) -> Distances:
            products = np.empty(codes.shape[0], np.float32)
            sum_byte_codes(np.ascontiguousarray(codes.T[:width]), table, products)
            add, scale = np.ascontiguousarray(codes[:, first : first + 8]).view("<f4").T
            found: Distances = (products - middle) * scale
            if self.metric == "dot":
                # What codes lack of a vector, times its centroid, is in `add`: of the query, use its part along that.
                product = query @ centroid
                share = _ratio(product, centroid @ centroid)
                found += np.float32(share) * (add - 1) + np.float32(1 - product)
                return found
            difference = query - centroid
            found += add + np.float32(difference @ difference)
            if self.metric == "cosine":
                found /= 2
            return found

        return measure

    def _table(self, rotated: npt.NDArray[np.float64]) -> F32:
        """Return what each value of each byte of a code adds to the dot product with a query."""
        weights = np.zeros(8 * self._num_bytes)
        weights[_places(self.dimension, self.num_bits)] = rotated[:, None] * 2.0 ** np.arange(self.num_bits)
        table: F32 = (weights.reshape(-1, 8) @ BITS).astype(np.float32)
        return table

    def _computed(self, sums: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the factors of vectors; see `quantize`."""
        by_product = self.metric == "dot"
        square = sums[:, 5]
        base, step = (1 - sums[:, 4], 1) if by_product else (square, 2)
        found = []
        for with_vector, with_centroid in ((sums[:, 0], sums[:, 1]), (sums[:, 2], sums[:, 3])):
            found.append(base + step * _ratio(square * with_centroid, with_vector))
            found.append(-step * _ratio(square, with_vector))
        alignment = _ratio(square * self.dimension / 4, sums[:, 0] ** 2)
        error = step * _CERTAINTY * np.sqrt(square * np.maximum(alignment - 1, 0) / (self.dimension - 1))
        found.insert(2, error)
        return np.stack(found[: len(self._factor_names)], axis=1)


def _ratio(numerator: npt.ArrayLike, denominator: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Return the ratio of numbers, 0 where it is undefined."""
    found = np.zeros(denominator.shape)
    np.divide(numerator, denominator, out=found, where=denominator != 0)
    return found


def _widths(dimension: int, num_bits: int) -> tuple[int, int]:
    """Return the number of bytes of the signs of a vector, and of the other bits."""
    return dimension // 8, -(-dimension // _BLOCK) * _BLOCK * (num_bits - 1) // 8


@functools.lru_cache(maxsize=16)
def _places(dimension: int, num_bits: int) -> npt.NDArray[np.int64]:
    """Return the numbers of the bits of each number of a vector in a code, the lowest first.

    Returns
    -------
    int64[dimension, num_bits]
        Not to be modified.
    """
    signs = np.arange(dimension)[:, None]
    if num_bits == 1:
        return signs
    blocks, numbers = np.divmod(np.arange(dimension), _BLOCK)
    others = _places_in_block(num_bits - 1)[numbers] + blocks[:, None] * _BLOCK * (num_bits - 1) + dimension
    return np.hstack([others, signs])


def _places_in_block(num_bits: int) -> npt.NDArray[np.int64]:
    """Return the numbers of the bits of 64 numbers in a block, `int64[64, num_bits]`, the lowest first.

    A block is planes of 2, 4 or 6 bits of its numbers, and one of their highest bits. Planes have the numbers of four
    runs of 16 side by side in a byte; of 6 bits, those of the last run in what the other three leave.
    """
    numbers: npt.NDArray[np.int64] = np.arange(_BLOCK)
    run, place = np.divmod(numbers, 16)
    if num_bits in (1, 8):
        return numbers[:, None] * num_bits + np.arange(num_bits)
    if num_bits == 4:  # Runs of 16 in 8 bytes each: the first 8 numbers are the lower halves.
        first = 8 * (8 * run + place % 8) + 4 * (place // 8)
        return np.asarray(first[:, None] + np.arange(4))
    low = num_bits - num_bits % 2
    bit = np.arange(low)
    if low == 2:
        planes = 8 * place[:, None] + 2 * run[:, None] + bit
    elif low == 4:
        planes = 8 * (16 * (run // 2) + place)[:, None] + 4 * (run % 2)[:, None] + bit
    else:
        own = 8 * (16 * run + place)[:, None] + bit
        spread = 8 * (16 * (bit // 2) + place[:, None]) + 6 + bit % 2
        planes = np.where(run[:, None] < 3, own, spread)
    if num_bits == low:
        return np.asarray(planes)
    highest = _BLOCK * low + 8 * (place % 8) + 2 * run + place // 8
    return np.hstack([planes, highest[:, None]])


def interleaved(signs: U8) -> U8:
    """Return the signs of the vectors of a partition as they are stored, `uint8[num_vectors, width]`.

    Of 32 vectors, each byte becomes 32 bytes: their lower halves, two to a byte, then the upper ones.
    """
    num_rows, width = signs.shape
    whole = num_rows // _ROWS * _ROWS
    blocks = signs[:whole].reshape(-1, _ROWS, width).transpose(0, 2, 1)
    halves = np.stack([blocks & 15, blocks >> 4], axis=2)
    stored = halves[..., _ORDER] | halves[..., _ORDER + 16] << 4
    return np.concatenate([stored.ravel(), signs[whole:].T.ravel()]).reshape(num_rows, width)


def separated(stored: U8) -> U8:
    """Return the signs of each vector of a partition; the inverse of `interleaved`."""
    num_rows, width = stored.shape
    whole = num_rows // _ROWS * _ROWS
    pairs = stored[:whole].reshape(-1, width, 2, 16)
    halves = np.empty((*pairs.shape[:3], _ROWS), np.uint8)
    halves[..., _ORDER], halves[..., _ORDER + 16] = pairs & 15, pairs >> 4
    blocks = halves[:, :, 0] | halves[:, :, 1] << 4
    rest = stored[whole:].reshape(width, num_rows - whole).T
    return np.concatenate([blocks.transpose(0, 2, 1).reshape(whole, width), rest])
