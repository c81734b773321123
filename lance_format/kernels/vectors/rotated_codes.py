"""Rotations of vectors, and codes of some bits for each number of what they yield; see `vectors/rotated_codes.py`.

The caller checks shapes. Vectors have at least one number.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from lance_format.kernels.jit import allocating_kernel, kernel

F32 = npt.NDArray[np.float32]
F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
U8 = npt.NDArray[np.uint8]
U16 = npt.NDArray[np.uint16]

_STEPS = 256
"""Scales that are tried for each vector."""
_ROUNDING = 1e-5
_LANES = 16
"""Vectors that are rotated at once: the processor computes the same for each."""


@kernel
def _mix(lanes: F32, start: int, stop: int, step: int) -> None:
    """Replace the numbers at two places, a step apart, by their sum and their difference, at all places of a range.

    Parameters
    ----------
    lanes : float32[dimension, _LANES]
    start, stop, step : int
        Twice the step divides the length of the range.
    """
    for first in range(start, stop, 2 * step):
        for place in range(first, first + step):
            for lane in range(_LANES):
                left, right = lanes[place, lane], lanes[place + step, lane]
                lanes[place, lane] = left + right
                lanes[place + step, lane] = left - right


@kernel
def _transform(lanes: F32, start: int, size: int) -> None:
    """Multiply numbers by a Hadamard matrix, and by what keeps lengths; their number is a power of two."""
    step = 1
    while step < size:
        _mix(lanes, start, start + size, step)
        step *= 2
    factor = np.float32(1 / math.sqrt(size))
    for place in range(start, start + size):
        for lane in range(_LANES):
            lanes[place, lane] *= factor


@allocating_kernel
def rotate(vectors: F32, signs: U8, out: F32) -> int:
    """Rotate vectors: four times, change signs and mix numbers.

    If their number is no power of two, the greatest power of two of them is mixed, the first or the last ones in turn,
    and then each number of the first half with one of the second.

    Parameters
    ----------
    vectors : float32[num_vectors, dimension], read-only
    signs : uint8[4, ceil(dimension / 8)], read-only
        A bit per number, the lowest first.
    out : float32[num_vectors, dimension]

    Returns
    -------
    int
        The number of vectors.
    """
    num_vectors, dimension = vectors.shape
    size = 1
    while 2 * size <= dimension:
        size *= 2
    lanes = np.zeros((dimension, _LANES), np.float32)
    for first in range(0, num_vectors, _LANES):
        count = min(_LANES, num_vectors - first)
        for lane in range(count):
            for place in range(dimension):
                lanes[place, lane] = vectors[first + lane, place]
        for turn in range(4):
            for place in range(dimension):
                if signs[turn, place >> 3] >> (place & 7) & 1:
                    for lane in range(_LANES):
                        lanes[place, lane] = -lanes[place, lane]
            _transform(lanes, 0 if turn % 2 == 0 else dimension - size, size)
            if size != dimension:
                _mix(lanes, 0, dimension, dimension // 2)
        scale = np.float32(1 if size == dimension else 0.25)
        for lane in range(count):
            for place in range(dimension):
                out[first + lane, place] = lanes[place, lane] * scale
    return num_vectors


@allocating_kernel
def _best_scale(lengths: F64, num_bits: int, first_scale: float) -> float:
    """Return the scale by which numbers of a vector become codes that point most nearly in its direction.

    Parameters
    ----------
    lengths : float64[dimension]
        Of the numbers of a vector of length 1, without signs.
    num_bits : int
        Of a code, without the sign.
    first_scale : float
        Share of the last scale that the first one has.
    """
    greatest_code = (1 << num_bits) - 1
    greatest = lengths[0]
    for place in range(1, lengths.size):
        if lengths[place] > greatest or math.isnan(lengths[place]):
            greatest = lengths[place]
    last = (greatest_code + 10) / greatest
    first = last * first_scale
    products, squares = np.zeros(_STEPS + 1), np.zeros(_STEPS + 1)
    steps = _STEPS / (last - first)
    for place in range(lengths.size):
        length = lengths[place]
        code = min(int(first * length + _ROUNDING), greatest_code)
        products[0] += (code + 0.5) * length
        squares[0] += (code + 0.5) * (code + 0.5)
        if length * last <= code + 1:  # Also a number of 0.
            continue
        scale = 1 / length
        for higher in range(code + 1, greatest_code + 1):
            if higher * scale >= last:
                break
            step = min(max(int((higher * scale - first) * steps), 0), _STEPS - 1) + 1
            products[step] += length
            squares[step] += 2 * higher
    best, found = -1.0, first
    product, square = 0.0, 0.0
    for step in range(_STEPS + 1):
        product += products[step]
        square += squares[step]
        if product / math.sqrt(square) > best:
            best = product / math.sqrt(square)
            found = first + (last - first) * step / _STEPS
    return found


@allocating_kernel
def quantize(
    rotated: F32, centroids: F32, numbers: I64, num_bits: int, first_scale: float, codes: U16, sums: F64
) -> int:
    """Compute the codes of rotated vectors: a bit for the sign of each number, above others for its size.

    A code stands for itself, less `2**num_bits - 0.5`; its sign for one half, less or more than zero.

    Parameters
    ----------
    rotated : float32[num_vectors, dimension], read-only
        Differences from centroids.
    centroids : float32[num_partitions, dimension], read-only
        Rotated, too.
    numbers : int64[num_vectors], read-only
        The centroid of each vector.
    num_bits : int
        Of a code, without the sign.
    first_scale : float
        See `_best_scale`.
    codes : uint16[num_vectors, dimension]
    sums : float64[num_vectors, 6]
        Set to dot products: of the signs with the vector, and with the centroid, of what the codes stand for with both,
        and of the vector with the centroid, and with itself.

    Returns
    -------
    int
        The number of vectors.
    """
    num_vectors, dimension = rotated.shape
    greatest_code = (1 << num_bits) - 1
    middle = (1 << num_bits) - 0.5
    lengths = np.empty(dimension, np.float64)
    for row in range(num_vectors):
        square = 0.0
        for place in range(dimension):
            lengths[place] = abs(rotated[row, place])
            square += lengths[place] * lengths[place]
        scale = 0.0
        if num_bits and square > 0:
            lengths /= math.sqrt(square)
            scale = _best_scale(lengths, num_bits, first_scale)
        sums[row] = 0
        for place in range(dimension):
            value, center = np.float64(rotated[row, place]), np.float64(centroids[numbers[row], place])
            code = min(int(scale * lengths[place] + _ROUNDING), greatest_code)
            sign = 1
            if value < 0:
                code, sign = greatest_code - code, 0
            code += sign << num_bits
            codes[row, place] = code
            sums[row, 0] += value * (sign - 0.5)
            sums[row, 1] += center * (sign - 0.5)
            sums[row, 2] += value * (code - middle)
            sums[row, 3] += center * (code - middle)
            sums[row, 4] += value * center
        sums[row, 5] = square
    return num_vectors


@kernel
def set_bits(codes: U16, places: I64, out: U8) -> int:
    """Write each bit of codes to its place.

    Parameters
    ----------
    codes : uint16[num_vectors, dimension], read-only
    places : int64[dimension, num_bits], read-only
        Numbers of bits in a row of bytes, for the bits of each code, the lowest first.
    out : uint8[num_vectors, num_bytes]
        Zeros.

    Returns
    -------
    int
        The number of vectors.
    """
    num_vectors, dimension = codes.shape
    for row in range(num_vectors):
        for place in range(dimension):
            code = codes[row, place]
            for bit in range(places.shape[1]):
                number = places[place, bit]
                out[row, number >> 3] |= np.uint8((code >> bit & 1) << (number & 7))
    return num_vectors
