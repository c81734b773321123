"""Rows that are chosen at random, and always the same ones for a seed, however a table is divided into tasks."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lance_format.errors import InvalidInputError

_BITS_OF_FLOAT64 = 53


def hash_fraction(values: pa.Array, seed: pa.Scalar, run: pa.Scalar | None = None) -> pa.Array:
    """Return a number from 0 to 1, excluding 1, for each integer, as if drawn at random.

    Parameters
    ----------
    values : int64 array
        Not negative.
    seed : integer scalar
        Other seeds give other numbers.
    run : integer scalar, optional
        Length of the runs of integers, each from a multiple of it on, that get one number; by default 1.

    Returns
    -------
    float64 array; null where the value is.

    Raises
    ------
    InvalidInputError
        If a seed is not an integer, or a run is not a positive one.
    """
    words = np.asarray(pc.fill_null(values, 0)).view(np.uint64)
    length = 1 if run is None else _integer(run, "length of runs")
    if length < 1:
        raise InvalidInputError(f"the length of runs of hash_fraction must be 1 or more, and is {length}")
    start = np.array([_integer(seed, "seed")], np.int64).view(np.uint64)
    mixed = _mix(words // np.uint64(length) ^ _mix(start))
    fractions = (mixed >> np.uint64(64 - _BITS_OF_FLOAT64)) * 2.0**-_BITS_OF_FLOAT64
    return pa.array(fractions, mask=np.asarray(pc.is_null(values)) if values.null_count else None)


def _mix(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return well mixed bits of words (Steele, Lea and Flood, Fast Splittable Pseudorandom Number Generators, 2014)."""
    mixed = words + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ mixed >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ mixed >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return mixed ^ mixed >> np.uint64(31)


def _integer(value: pa.Scalar, what: str) -> int:
    if not pa.types.is_integer(value.type) or not value.is_valid or not -(1 << 63) <= value.as_py() < 1 << 63:
        raise InvalidInputError(f"the {what} of hash_fraction must be an integer of 64 bits, and is {value.as_py()!r}")
    return int(value.as_py())
