"""Searches for nearest neighbours as DataFrames."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from connector.protocol import NEAREST
from connector.table_api.target import Target
from lance_format import InvalidInputError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

DISTANCE = "_distance"


def search_vectors(target: Target, arguments: Mapping[str, Any], condition: str | None) -> DataFrame:
    """Return the rows of a table whose vectors are nearest to another one, nearest first.

    Parameters
    ----------
    target : Target
    arguments : mapping of str to object
        See `nearest` of `LanceDataset.scanner`. None stands for a default; `k` is there.
    condition : str, optional
        The rows to search, in the SQL of the library; by default all.

    Raises
    ------
    InvalidInputError
        If an argument is invalid.
    """
    given = {name: _plain(value) for name, value in arguments.items() if value is not None}
    try:
        search = json.dumps(given)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"a search has an argument that is no number, text or list: {error}") from error
    reader = target.spark.read.format("lance").options(**target.options).option(NEAREST, search)
    if condition is not None:
        own = target.parsed.filter
        reader = reader.option("filter", condition if own is None else f"({own}) AND ({condition})")
    rows = reader.load(target.path)
    rows = rows if target.alias is None else rows.alias(target.alias)
    return rows.orderBy(DISTANCE).limit(given["k"])


def _plain(value: Any) -> Any:
    """Return a vector, or several, as lists of numbers."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if hasattr(value, "toArray"):  # a vector of pyspark.ml
        return value.toArray().tolist()
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return value
