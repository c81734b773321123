"""Distances of vectors from one query, and of vectors that indices hold as codes of bytes.

The caller checks shapes and that codes are within their tables. Vectors and query have the same type of numbers.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from lance_format.kernels.jit import allocating_kernel, kernel, summing_kernel

F32 = npt.NDArray[np.float32]
I64 = npt.NDArray[np.int64]
Floats = npt.NDArray[np.floating[Any]]
U8 = npt.NDArray[np.uint8]


@summing_kernel
def squared_distances(vectors: Floats, query: Floats, out: F32) -> int:
    """Compute squared Euclidean distances.

    Parameters
    ----------
    vectors : float32 or float64[num_vectors, dimension], read-only
    query : float32 or float64[dimension], read-only
    out : float32[num_vectors]

    Returns
    -------
    int
        The number of vectors.
    """
    num_vectors, dimension = vectors.shape
    for row in range(num_vectors):
        total = query[0] - query[0]
        for place in range(dimension):
            difference = vectors[row, place] - query[place]
            total += difference * difference
        out[row] = total
    return num_vectors


@summing_kernel
def dot_distances(vectors: Floats, query: Floats, out: F32) -> int:
    """Compute 1 minus the dot product; see `squared_distances`."""
    num_vectors, dimension = vectors.shape
    for row in range(num_vectors):
        total = query[0] - query[0]
        for place in range(dimension):
            total += vectors[row, place] * query[place]
        out[row] = 1 - total
    return num_vectors


@summing_kernel
def cosine_distances(vectors: Floats, query: Floats, out: F32) -> int:
    """Compute 1 minus the cosine of the angle; NaN for a vector of length 0. See `squared_distances`."""
    num_vectors, dimension = vectors.shape
    length = query[0] - query[0]
    for place in range(dimension):
        length += query[place] * query[place]
    length = math.sqrt(length)
    for row in range(num_vectors):
        total = query[0] - query[0]
        square = query[0] - query[0]
        for place in range(dimension):
            total += vectors[row, place] * query[place]
            square += vectors[row, place] * vectors[row, place]
        product = math.sqrt(square) * length
        out[row] = 1 - total / product if product != 0 else np.nan
    return num_vectors


@allocating_kernel
def hamming_distances(vectors: U8, query: U8, out: F32) -> int:
    """Count the bits that differ.

    Parameters
    ----------
    vectors : uint8[num_vectors, dimension], read-only
    query : uint8[dimension], read-only
    out : float32[num_vectors]

    Returns
    -------
    int
        The number of vectors.
    """
    counts = np.zeros(256, np.int64)
    for value in range(1, 256):
        counts[value] = counts[value >> 1] + (value & 1)
    num_vectors, dimension = vectors.shape
    for row in range(num_vectors):
        total = 0
        for place in range(dimension):
            total += counts[vectors[row, place] ^ query[place]]
        out[row] = total
    return num_vectors


@summing_kernel
def sub_vector_distances(query: F32, codebook: F32, by_product: bool, out: F32) -> int:
    """Compute the distances of the parts of a query from the centroids of each part.

    Parameters
    ----------
    query : float32[num_sub_vectors * width], read-only
    codebook : float32[num_sub_vectors, num_centroids, width], read-only
    by_product : bool
        Whether a distance is 1 minus the dot product, instead of the squared Euclidean distance.
    out : float32[num_sub_vectors, num_centroids]

    Returns
    -------
    int
        The number of sub-vectors.
    """
    num_parts, num_centroids, width = codebook.shape
    for part in range(num_parts):
        start = part * width
        for number in range(num_centroids):
            total = np.float32(0)
            if by_product:
                for place in range(width):
                    total += query[start + place] * codebook[part, number, place]
                total = np.float32(1) - total
            else:
                for place in range(width):
                    difference = query[start + place] - codebook[part, number, place]
                    total += difference * difference
            out[part, number] = total
    return num_parts


@kernel
def sum_byte_codes(codes: U8, table: F32, out: F32) -> int:
    """Add up the entries of a table that the codes of vectors select.

    Parameters
    ----------
    codes : uint8[num_sub_vectors, num_vectors], read-only
    table : float32[num_sub_vectors, 256]
    out : float32[num_vectors]

    Returns
    -------
    int
        The number of vectors.
    """
    num_sub_vectors, num_vectors = codes.shape
    out[:] = 0
    fours = num_sub_vectors // 4 * 4
    for part in range(0, fours, 4):
        first, second, third, fourth = table[part], table[part + 1], table[part + 2], table[part + 3]
        for row in range(num_vectors):
            left = first[codes[part, row]] + second[codes[part + 1, row]]
            out[row] += left + (third[codes[part + 2, row]] + fourth[codes[part + 3, row]])
    for part in range(fours, num_sub_vectors):
        entries = table[part]
        for row in range(num_vectors):
            out[row] += entries[codes[part, row]]
    return num_vectors


@kernel
def sum_half_byte_codes(codes: U8, table: F32, out: F32) -> int:
    """Add up the entries of a table that the codes of vectors select, of which two are in a byte, the lower one first.

    Parameters
    ----------
    codes : uint8[num_sub_vectors / 2, num_vectors], read-only
    table : float32[num_sub_vectors, 16]
    out : float32[num_vectors]

    Returns
    -------
    int
        The number of vectors.
    """
    num_bytes, num_vectors = codes.shape
    out[:] = 0
    for part in range(num_bytes):
        low, high = table[2 * part], table[2 * part + 1]
        for row in range(num_vectors):
            code = codes[part, row]
            out[row] += low[code & 15] + high[code >> 4]
    return num_vectors


@kernel
def squared_code_distances(codes: U8, query: U8, out: F32) -> int:
    """Compute squared Euclidean distances of vectors of bytes.

    Parameters
    ----------
    codes : uint8[num_vectors, dimension], read-only
    query : uint8[dimension], read-only
    out : float32[num_vectors]

    Returns
    -------
    int
        The number of vectors.
    """
    num_vectors, dimension = codes.shape
    for row in range(num_vectors):
        total = np.int32(0)
        for place in range(dimension):
            difference = np.int32(codes[row, place]) - np.int32(query[place])
            total += difference * difference
        out[row] = total
    return num_vectors


@allocating_kernel
def find_nearest(vectors: F32, columns: F32, squares: F32, factor: np.float32, numbers: I64, distances: F32) -> int:
    """Find the nearest centroid of each vector: that with the least `squares - factor * product`.

    Parameters
    ----------
    vectors : float32[num_vectors, dimension], read-only
    columns : float32[dimension, num_centroids], read-only
        The centroids, transposed.
    squares : float32[num_centroids], read-only
    factor : np.float32
    numbers : int64[num_vectors]
        Set to the numbers of the centroids.
    distances : float32[num_vectors]
        Set to the least values.

    Returns
    -------
    int
        The number of vectors.
    """
    num_vectors, dimension = vectors.shape
    num_centroids = squares.size
    found = np.empty(num_centroids, np.float32)
    for row in range(num_vectors):
        found[:] = squares
        for place in range(dimension):
            weight = factor * vectors[row, place]
            for number in range(num_centroids):
                found[number] -= weight * columns[place, number]
        least = found[0]
        for number in range(num_centroids):
            least = min(least, found[number])
        number = 0
        while number < num_centroids - 1 and found[number] != least:
            number += 1
        numbers[row] = number
        distances[row] = least
    return num_vectors


@summing_kernel
def code_products(codes: U8, query: F32, out: F32) -> int:
    """Compute dot products of vectors of bytes with a query.

    Parameters
    ----------
    codes : uint8[num_vectors, dimension], read-only
    query : float32[dimension], read-only
    out : float32[num_vectors]

    Returns
    -------
    int
        The number of vectors.
    """
    num_vectors, dimension = codes.shape
    for row in range(num_vectors):
        total = np.float32(0)
        for place in range(dimension):
            total += np.float32(codes[row, place]) * query[place]
        out[row] = total
    return num_vectors
