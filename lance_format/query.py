"""Queries of the text search, by the names and arguments of pylance's `lance.query`.

>>> from lance_format.query import BooleanQuery, MatchQuery, Occur
>>> owls = MatchQuery("owl", "note") & MatchQuery("night", "note")
>>> query = BooleanQuery([(Occur.MUST, owls), (Occur.MUST_NOT, MatchQuery("day", "note"))])
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from enum import Enum

from lance_format.arguments import checked_methods
from lance_format.errors import InvalidInputError

__all__ = [
    "BooleanQuery",
    "BoostQuery",
    "FullTextOperator",
    "FullTextQuery",
    "MatchQuery",
    "MultiMatchQuery",
    "Occur",
    "PhraseQuery",
]


class FullTextOperator(Enum):
    """The words of a query that a row needs: all of them, or one."""

    AND = "AND"
    OR = "OR"


class Occur(Enum):
    """The part that a query has in a `BooleanQuery`."""

    SHOULD = "SHOULD"
    MUST = "MUST"
    MUST_NOT = "MUST_NOT"


class FullTextQuery:
    """A query; see its subclasses."""

    def __and__(self, other: FullTextQuery) -> BooleanQuery:
        """Return the query for rows that match both queries."""
        return BooleanQuery([(Occur.MUST, self), (Occur.MUST, other)])

    def __or__(self, other: FullTextQuery) -> BooleanQuery:
        """Return the query for rows that match one of two queries."""
        return BooleanQuery([(Occur.SHOULD, self), (Occur.SHOULD, other)])


@checked_methods
class MatchQuery(FullTextQuery):
    """A query for rows with words of a text.

    Parameters
    ----------
    query : str
    column : str
    boost : float
        Factor of the scores.
    fuzziness : int, optional
        Maximum number of characters that may differ in a word. None is 0, as in pylance.
    max_expansions : int
        Maximum number of similar words to look for, in alphabetical order.
    operator : FullTextOperator
        Whether a row needs all words, or one.
    prefix_length : int
        Number of characters at the beginning of a word that may not differ.

    Raises
    ------
    InvalidInputError
        If a number is negative, or not finite.
    """

    def __init__(
        self,
        query: str,
        column: str,
        *,
        boost: float = 1.0,
        fuzziness: int | None = 0,
        max_expansions: int = 50,
        operator: FullTextOperator = FullTextOperator.OR,
        prefix_length: int = 0,
    ) -> None:
        self.query = query
        self.column = column
        self.boost = _factor("boost", boost)
        self.fuzziness = 0 if fuzziness is None else _count("fuzziness", fuzziness)
        self.max_expansions = _count("max_expansions", max_expansions)
        self.operator = operator
        self.prefix_length = _count("prefix_length", prefix_length)

    def __repr__(self) -> str:
        return f"MatchQuery({self.query!r}, {self.column!r})"


@checked_methods
class PhraseQuery(FullTextQuery):
    """A query for rows with the words of a text one after the other. Its index needs the positions of words.

    Parameters
    ----------
    query : str
    column : str
    slop : int
        Maximum number of further words between neighbours.

    Raises
    ------
    InvalidInputError
        If `slop` is negative.
    """

    def __init__(self, query: str, column: str, *, slop: int = 0) -> None:
        self.query = query
        self.column = column
        self.slop = _count("slop", slop)

    def __repr__(self) -> str:
        return f"PhraseQuery({self.query!r}, {self.column!r})"


@checked_methods
class BoostQuery(FullTextQuery):
    """A query for the rows of one query; those of another one are ranked lower.

    Parameters
    ----------
    positive, negative : FullTextQuery
    negative_boost : float
        The share of the score of `negative` that is subtracted.

    Raises
    ------
    InvalidInputError
        If `negative_boost` is negative, or not finite.
    """

    def __init__(self, positive: FullTextQuery, negative: FullTextQuery, *, negative_boost: float = 0.5) -> None:
        self.positive = positive
        self.negative = negative
        self.negative_boost = _factor("negative_boost", negative_boost)

    def __repr__(self) -> str:
        return f"BoostQuery({self.positive!r}, {self.negative!r})"


@checked_methods
class MultiMatchQuery(FullTextQuery):
    """A query of several columns; the score of a row is that of its best column.

    Parameters
    ----------
    query : str
    columns : sequence of str
    boosts : sequence of float, optional
        Factor of the scores of each column; by default 1.
    operator : FullTextOperator
        Whether a column needs all words, or one.

    Raises
    ------
    InvalidInputError
        If there is no column, or not one boost per column; or if a boost is negative, or not finite.
    """

    def __init__(
        self,
        query: str,
        columns: Sequence[str],
        *,
        boosts: Sequence[float] | None = None,
        operator: FullTextOperator = FullTextOperator.OR,
    ) -> None:
        factors = [1.0] * len(columns) if boosts is None else list(boosts)
        if not columns or len(factors) != len(columns):
            raise InvalidInputError(f"a query of {len(columns)} columns has {len(factors)} boosts; give one per column")
        self.queries = tuple(
            MatchQuery(query, column, boost=boost, operator=operator)
            for column, boost in zip(columns, factors, strict=True)
        )

    def __repr__(self) -> str:
        return f"MultiMatchQuery({self.queries[0].query!r}, {[query.column for query in self.queries]!r})"


@checked_methods
class BooleanQuery(FullTextQuery):
    """A query that combines others. The score of a row is the sum of the scores of all that it matches.

    Parameters
    ----------
    queries : sequence of (Occur, FullTextQuery)
        Rows match all with `MUST`, or one with `SHOULD` if there are none, and none with `MUST_NOT`.

    Raises
    ------
    InvalidInputError
        If there is neither `MUST` nor `SHOULD`.
    """

    def __init__(self, queries: Sequence[tuple[Occur, FullTextQuery]]) -> None:
        self.queries = tuple(queries)
        if all(occur is Occur.MUST_NOT for occur, _ in self.queries):
            raise InvalidInputError("a BooleanQuery needs a query with Occur.MUST or Occur.SHOULD")

    def __repr__(self) -> str:
        return f"BooleanQuery({list(self.queries)!r})"


def _factor(name: str, value: float) -> float:
    if not 0 <= value <= sys.float_info.max:
        raise InvalidInputError(f"{name} is {value!r}; a finite number from 0 on is needed")
    return float(value)


def _count(name: str, value: int) -> int:
    if not 0 <= value < 2**32:
        raise InvalidInputError(f"{name} is {value!r}; a whole number from 0 on is needed")
    return value
