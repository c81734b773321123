"""Searches of vectors and of texts as DataFrames."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from connector.protocol import SEARCH
from connector.table_api.target import Target
from lance_format import InvalidInputError
from lance_format.query import FullTextQuery

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


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
    return _search(target, {"nearest": given}, condition).orderBy("_distance").limit(given["k"])


def search_texts(
    target: Target, query: str | FullTextQuery, columns: Sequence[str] | None, count: int, condition: str | None
) -> DataFrame:
    """Return the rows of a table that match a text query, the best ones first.

    Parameters
    ----------
    target : Target
    query : str or FullTextQuery
    columns : sequence of str, optional
        The columns to search for a text.
    count : int
        The maximum number of rows.
    condition : str, optional
        See `search_vectors`.

    Raises
    ------
    InvalidInputError
        If an argument is invalid.
    """
    rows = _search(target, {"full_text_query": _asked(query, columns), "limit": _checked(count)}, condition)
    return rows.orderBy(rows["_score"].desc()).limit(count)


def search_both(
    target: Target,
    arguments: Mapping[str, Any],
    query: str | FullTextQuery,
    columns: Sequence[str] | None,
    rrf_k: int,
    condition: str | None,
) -> DataFrame:
    """Return the rows that a search of vectors or one of texts finds, the best ones of both first.

    Parameters
    ----------
    target : Target
    arguments, condition
        See `search_vectors`. `k` is the maximum number of rows, too.
    query, columns
        See `search_texts`.
    rrf_k : int
        See `LanceDataset.scanner`.

    Raises
    ------
    InvalidInputError
        If an argument is invalid.
    """
    nearest = {name: _plain(value) for name, value in arguments.items() if value is not None}
    count = _checked(nearest["k"])
    search = {"nearest": nearest, "full_text_query": _asked(query, columns), "limit": count, "rrf_k": rrf_k}
    rows = _search(target, search, condition)
    return rows.orderBy(rows["_relevance_score"].desc()).limit(count)


def _asked(query: str | FullTextQuery, columns: Sequence[str] | None) -> dict[str, Any]:
    """Return a text and its columns, or a query, in a form for JSON."""
    if columns is not None and (isinstance(columns, str) or not isinstance(columns, Sequence)):
        raise InvalidInputError(f"columns is {columns!r}; a list of names is needed")
    if not isinstance(query, FullTextQuery):
        return {"query": query, "columns": None if columns is None else list(columns)}
    if columns is not None:
        raise InvalidInputError(f"columns are {columns!r} beside {query!r}, which names its columns")
    return query.to_dict()


def _checked(count: int) -> int:
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise InvalidInputError(f"numResults is {count!r}; a whole number from 1 on is needed")
    return count


def _search(target: Target, search: Mapping[str, Any], condition: str | None) -> DataFrame:
    try:
        text = json.dumps(search)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"a search has an argument that is no number, text or list: {error}") from error
    reader = target.spark.read.format("lance").options(**target.options).option(SEARCH, text)
    if condition is not None:
        own = target.parsed.filter
        reader = reader.option("filter", condition if own is None else f"({own}) AND ({condition})")
    rows = reader.load(target.path)
    return rows if target.alias is None else rows.alias(target.alias)


def _plain(value: Any) -> Any:
    """Return a vector, or several, as lists of numbers."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if hasattr(value, "toArray"):  # a vector of pyspark.ml
        return value.toArray().tolist()
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return value
