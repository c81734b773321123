"""A search for nearest neighbours, as a validated value."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_format.errors import InvalidInputError
from lance_format.lazy_dataclasses import dataclass
from lance_format.vectors.metrics import check_metric, default_metric, distances_to, parse_metric, vectors_of

DISTANCE = "_distance"
QUERY_INDEX = "query_index"
_DEFAULT_K = 10
TUNING = ("query_parallelism", "approx_mode", "search_effort")
"""Arguments of pylance that have no effect here."""
_NUMBERS = (
    ("k", 1),
    ("nprobes", 1),
    ("minimum_nprobes", 0),
    ("maximum_nprobes", 1),
    ("refine_factor", 1),
    ("ef", 1),
)


@dataclass(frozen=True, slots=True, eq=False)
class VectorType:
    """The vectors of a column.

    Parameters
    ----------
    dimension : int
    dtype : np.dtype
    is_multiple : bool
        Whether a row has a list of vectors.
    """

    dimension: int
    dtype: np.dtype[Any]
    is_multiple: bool

    @classmethod
    def of(cls, column: str, value_type: pa.DataType) -> VectorType:
        """Return the vectors of a type of values.

        Raises
        ------
        InvalidInputError
            If it has none.
        """
        is_multiple = pa.types.is_list(value_type) or pa.types.is_large_list(value_type)
        vector = _storage(value_type.value_type if is_multiple else value_type)
        if pa.types.is_fixed_size_list(vector) and vector.list_size > 0:
            number = vector.value_type
            if pa.types.is_floating(number) or number == pa.uint8():
                return cls(vector.list_size, np.dtype(number.to_pandas_dtype()), is_multiple)
        raise InvalidInputError(
            f"column {column!r} has no vectors, but {value_type}; fixed-size lists of floating-point numbers, or of"
            " uint8, are needed"
        )


def _storage(value_type: pa.DataType) -> pa.DataType:
    return value_type.storage_type if isinstance(value_type, pa.BaseExtensionType) else value_type


@dataclass(frozen=True, slots=True, eq=False)
class Nearest:
    """A search for the rows whose vectors are nearest to others; see `LanceDataset.scanner`.

    Parameters
    ----------
    column : str
    queries : numeric[num_queries, dimension]
        Of the type of the column.
    vector_type : VectorType
    k : int
        The number of rows per search.
    metric : str, optional
        None is that of the index, or the default of the type.
    is_batch : bool
        Whether every query is a search of its own.
    minimum_nprobes, maximum_nprobes : int, optional
        Numbers of partitions of an index to search.
    refine_factor : int, optional
        How many times `k` rows have their exact distances computed after a search by an index.
    ef : int, optional
        How many of the nearest vectors a search of a graph goes on from.
    use_index : bool
    lower, upper : float
        Half-open range of the distances.
    """

    column: str
    queries: npt.NDArray[Any]
    vector_type: VectorType
    k: int = _DEFAULT_K
    metric: str | None = None
    is_batch: bool = False
    minimum_nprobes: int | None = None
    maximum_nprobes: int | None = None
    refine_factor: int | None = None
    ef: int | None = None
    use_index: bool = True
    lower: float = -math.inf
    upper: float = math.nan

    @classmethod
    def of(cls, given: Mapping[str, Any], value_type: pa.DataType) -> Nearest:
        """Return a search by the arguments of pylance.

        Parameters
        ----------
        given : mapping of str to object
        value_type : pa.DataType
            The type of the column.

        Raises
        ------
        InvalidInputError
            If an argument is missing, unknown or invalid, or the column has no vectors of that dimension.
        """
        left = {name: value for name, value in given.items() if value is not None and name not in TUNING}
        column = column_of(given)
        left.pop("column")
        vector_type = VectorType.of(column, value_type)
        if "q" not in left:
            raise InvalidInputError("nearest has no q, the vector to search for")
        queries, is_batch = _queries(left.pop("q"), column, vector_type)
        numbers: dict[str, Any] = {
            name: _whole_number(left.pop(name), name, least) for name, least in _NUMBERS if name in left
        }
        probes = numbers.pop("nprobes", None)
        if probes is not None:
            numbers = {"minimum_nprobes": probes, "maximum_nprobes": probes} | numbers
        lower, upper = _range(left.pop("distance_range", (None, None)))
        metric = left.pop("metric", None)
        use_index = left.pop("use_index", True)
        if left:
            raise InvalidInputError(f"nearest has an unknown argument {next(iter(left))!r}")
        if not isinstance(use_index, bool | np.bool_):
            raise InvalidInputError(f"use_index is {use_index!r}; True or False is needed")
        least, most = numbers.get("minimum_nprobes"), numbers.get("maximum_nprobes")
        if least is not None and most is not None and least > most:
            raise InvalidInputError(f"minimum_nprobes is {least}, and maximum_nprobes {most}, which is less")
        if metric is not None:
            metric = parse_metric(_text(metric, "metric"))
            check_metric(metric, vector_type.dtype)
        chosen: dict[str, Any] = {"metric": metric, "use_index": bool(use_index), "lower": lower, "upper": upper}
        return cls(column, queries, vector_type, is_batch=is_batch, **chosen, **numbers)

    @property
    def num_searches(self) -> int:
        """The number of searches, with up to `k` rows each."""
        return len(self.queries) if self.is_batch else 1

    @property
    def exact_metric(self) -> str:
        """The metric of a search without an index."""
        return self.metric or default_metric(self.vector_type.dtype)

    def distances(self, array: pa.Array, metric: str) -> list[npt.NDArray[np.float32]]:
        """Return for each search the distance of each value; NaN where there is none.

        Of a list of vectors, it is the sum, over the vectors of the query, of the distances from the nearest vector.

        Parameters
        ----------
        array : pa.Array
            Values of the column.
        metric : str
        """
        if isinstance(array, pa.ExtensionArray):
            array = array.storage
        if not self.vector_type.is_multiple:
            return [self._single(query, array, metric) for query in self.queries]
        starts, lengths = _extents(array)
        items = array.values
        if isinstance(items, pa.ExtensionArray):
            items = items.storage
        has_some = lengths > 0
        total = np.zeros(len(array), np.float32)
        for query in self.queries if has_some.any() else ():
            found = self._single(query, items, metric)
            total[has_some] += _least_of(found, starts[has_some], lengths[has_some])
        total[~has_some] = np.nan
        return [total]

    def _single(self, query: npt.NDArray[Any], array: pa.Array, metric: str) -> npt.NDArray[np.float32]:
        found = distances_to(query, vectors_of(array), metric)
        if array.null_count:
            found[array.is_null().to_numpy(zero_copy_only=False)] = np.nan
        return found


def column_of(given: Mapping[str, Any]) -> str:
    """Return the name of the column that a search is about.

    Raises
    ------
    InvalidInputError
        If it has none.
    """
    column = given.get("column")
    if column is None:
        raise InvalidInputError("nearest has no column, the name of the column of vectors")
    return _text(column, "column")


def _text(value: object, name: str) -> str:
    if not isinstance(value, str):
        raise InvalidInputError(f"{name} of nearest is {value!r}; text is needed")
    return value


def _extents(array: pa.Array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the first item of each list, and its number of items; 0 of a null."""
    offsets = array.offsets.to_numpy().astype(np.int64)
    lengths = np.diff(offsets)
    if array.null_count:
        lengths[array.is_null().to_numpy(zero_copy_only=False)] = 0
    return offsets[:-1], lengths


def _least_of(
    values: npt.NDArray[np.float32], starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]
) -> npt.NDArray[np.float32]:
    """Return the least value of each of some ranges, which are not empty; NaN is greater than all others."""
    values = np.where(np.isnan(values), np.float32(np.inf), values)
    chosen = np.repeat(starts - np.concatenate([[0], np.cumsum(lengths)[:-1]]), lengths) + np.arange(lengths.sum())
    found: npt.NDArray[np.float32] = np.minimum.reduceat(
        values[chosen], np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int64)
    )
    return found


def _queries(given: object, column: str, vector_type: VectorType) -> tuple[npt.NDArray[Any], bool]:
    """Return query vectors of the type of a column, and whether there are several."""
    found = _as_numbers(given)
    if found is None or found.ndim not in (1, 2):
        raise InvalidInputError("q of nearest is not a vector of numbers, nor a list of such vectors")
    if not found.size or found.shape[-1] != vector_type.dimension:
        raise InvalidInputError(
            f"q of nearest has {found.shape[-1]} numbers, and the vectors of column {column!r} have"
            f" {vector_type.dimension}"
        )
    is_batch = found.ndim == 2 and not vector_type.is_multiple
    if vector_type.dtype == np.uint8:
        with np.errstate(invalid="ignore"):
            valid = bool(((found >= 0) & (found < 256)).all())
        if not valid:
            raise InvalidInputError(f"q of nearest has numbers other than 0 to 255, which column {column!r} has")
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(np.atleast_2d(found).astype(vector_type.dtype)), is_batch


def _as_numbers(given: object) -> npt.NDArray[np.float64] | None:
    """Return one vector or several as numbers; None if they are not."""
    if isinstance(given, pa.Scalar):
        given = given.as_py()
    if isinstance(given, pa.ChunkedArray | pa.Array):
        given = given.to_pylist()
    try:
        found = np.asarray(given)
        if found.dtype.kind not in "biufO" or (found.dtype.kind == "O" and not all(map(_is_number, found.flat))):
            return None
        with np.errstate(over="ignore"):
            return found.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        return None


def _is_number(value: object) -> bool:
    return isinstance(value, Real | Decimal | np.bool_)


def _whole_number(value: object, name: str, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InvalidInputError(f"{name} of nearest is {value!r}; a whole number from {least} on is needed")
    return int(value)


def _range(given: object) -> tuple[float, float]:
    """Return the bounds of distances; an upper one of NaN excludes none."""
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise InvalidInputError(f"distance_range of nearest is {given!r}; a lower and an upper bound are needed")
    bounds = []
    for bound, default in zip(given, (-math.inf, math.nan), strict=True):
        if bound is not None and (isinstance(bound, bool) or not isinstance(bound, int | float | np.number)):
            raise InvalidInputError(f"distance_range of nearest has the bound {bound!r}; a number is needed")
        bounds.append(default if bound is None else _rounded(bound))
    return bounds[0], bounds[1]


def _rounded(bound: Any) -> float:
    """Return a bound as a distance, of 32 bits; those that are too large are infinite."""
    try:
        with np.errstate(over="ignore"):
            return float(np.float32(bound))
    except OverflowError:
        return math.inf if bound > 0 else -math.inf
