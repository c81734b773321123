"""Distances between vectors by metric, as pylance defines them.

| metric | distance |
|---|---|
| `l2` | the square of the Euclidean distance |
| `cosine` | 1 minus the cosine of the angle; none from or to a vector of length 0 |
| `dot` | 1 minus the dot product |
| `hamming` | the number of bits that differ, of vectors of bytes |
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_format.errors import InvalidInputError
from lance_format.kernels.vectors.distances import cosine_distances, dot_distances, hamming_distances, squared_distances

Distances = npt.NDArray[np.float32]
Vectors = npt.NDArray[Any]
Vector = npt.NDArray[Any]

_KERNELS: Mapping[str, Callable[[Any, Any, Any], int]] = MappingProxyType(
    {"l2": squared_distances, "cosine": cosine_distances, "dot": dot_distances, "hamming": hamming_distances}
)
_ALIASES = MappingProxyType({"euclidean": "l2"})


def vectors_of(array: pa.Array) -> Vectors:
    """Return the vectors of an array, `[num_vectors, dimension]`; null numbers are 0, null vectors undefined.

    Parameters
    ----------
    array : pa.Array
        Fixed-size lists of floating-point numbers, or of uint8.
    """
    width = array.type.list_size
    return _numbers(array.values.slice(array.offset * width, len(array) * width)).reshape(len(array), width)


def _numbers(values: pa.Array) -> npt.NDArray[Any]:
    if not values.null_count:
        found: npt.NDArray[Any] = values.to_numpy(zero_copy_only=False)
        return found
    if not pa.types.is_floating(values.type):
        return _numbers(values.fill_null(0))
    numbers: npt.NDArray[Any] = values.to_numpy(zero_copy_only=False).copy()
    numbers[values.is_null().to_numpy(zero_copy_only=False)] = 0  # Early releases of Arrow cannot fill half floats.
    return numbers


def parse_metric(text: object, *, name: str = "metric", known: Collection[str] = tuple(_KERNELS)) -> str:
    """Return the name of a metric, given in any case.

    Parameters
    ----------
    text : object
        Other objects than texts name none.
    name : str
        Of the argument, for errors.
    known : collection of str
        The metrics to choose from.

    Raises
    ------
    InvalidInputError
        If there is none of that name.
    """
    lower = text.lower() if isinstance(text, str) else ""
    found = _ALIASES.get(lower, lower)
    if found not in known:
        raise InvalidInputError(f"{name} is {text!r}; use one of {', '.join(known)}")
    return found


def default_metric(dtype: np.dtype[Any]) -> str:
    """Return the metric of vectors of a type if none is given."""
    return "hamming" if dtype == np.uint8 else "l2"


def check_metric(metric: str, dtype: np.dtype[Any]) -> None:
    """Check that vectors of a type have distances by a metric.

    Raises
    ------
    InvalidInputError
        If they have none.
    """
    if (metric == "hamming") != (dtype == np.uint8):
        raise InvalidInputError(f"metric is {metric!r}, which vectors of {dtype} do not have; leave it out")


def distances_to(query: Vector, vectors: Vectors, metric: str) -> Distances:
    """Return the distance of each vector from a query; NaN where there is none.

    Parameters
    ----------
    query : numeric[dimension]
        Of the type of the vectors; float16 is computed as float32.
    vectors : numeric[num_vectors, dimension]
    metric : str
    """
    if vectors.dtype == np.float16:
        query, vectors = query.astype(np.float32), vectors.astype(np.float32)
    out = np.empty(vectors.shape[0], np.float32)
    _KERNELS[metric](vectors, query, out)
    return out
