"""Queries of the text search, by the names and arguments of pylance's `lance.query`.

>>> from lance_format.query import BooleanQuery, MatchQuery, Occur
>>> owls = MatchQuery("owl", "note") & MatchQuery("night", "note")
>>> query = BooleanQuery([(Occur.MUST, owls), (Occur.MUST_NOT, MatchQuery("day", "note"))])
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from types import MappingProxyType
from typing import Any

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


class FullTextQuery(ABC):
    """A query; see its subclasses."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return the query as mappings, lists, numbers and texts, in the JSON form of Lance.

        >>> MatchQuery("owl", "note").to_dict()["match"]["terms"]
        'owl'
        """

    @staticmethod
    def from_dict(given: Mapping[str, Any]) -> FullTextQuery:
        """Return the query that a mapping describes; see `to_dict`. Numbers that it lacks have their defaults.

        >>> FullTextQuery.from_dict({"phrase": {"column": "note", "terms": "owl night", "slop": 1}})
        PhraseQuery('owl night', 'note')

        Parameters
        ----------
        given : mapping of str to object
            One of `match`, `phrase`, `boost`, `multi_match` and `boolean`, and its parameters.

        Raises
        ------
        InvalidInputError
            If it describes none.
        """
        kind, content = _only_item(given)
        parse = _PARSERS.get(kind)
        if parse is None or not isinstance(content, Mapping):
            raise InvalidInputError(
                f"{given!r} is no query; one of {', '.join(_PARSERS)} and its parameters are needed"
            )
        try:
            return parse(content)
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, InvalidInputError):
                raise
            raise InvalidInputError(f"malformed query {given!r}: {error}") from error

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

    def to_dict(self) -> dict[str, Any]:
        """See `FullTextQuery.to_dict`."""
        return {
            "match": {
                "column": self.column,
                "terms": self.query,
                "boost": self.boost,
                "fuzziness": self.fuzziness,
                "max_expansions": self.max_expansions,
                "operator": self.operator.value.capitalize(),
                "prefix_length": self.prefix_length,
            }
        }

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

    def to_dict(self) -> dict[str, Any]:
        """See `FullTextQuery.to_dict`."""
        return {"phrase": {"column": self.column, "terms": self.query, "slop": self.slop}}

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

    def to_dict(self) -> dict[str, Any]:
        """See `FullTextQuery.to_dict`."""
        return {
            "boost": {
                "positive": self.positive.to_dict(),
                "negative": self.negative.to_dict(),
                "negative_boost": self.negative_boost,
            }
        }

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
        if not factors or len(factors) != len(columns):
            raise InvalidInputError(f"a query of {len(columns)} columns has {len(factors)} boosts; give one per column")
        self.queries = tuple(
            MatchQuery(query, column, boost=boost, operator=operator)
            for column, boost in zip(columns, factors, strict=True)
        )

    def to_dict(self) -> dict[str, Any]:
        """See `FullTextQuery.to_dict`."""
        return {"multi_match": {"match_queries": [query.to_dict()["match"] for query in self.queries]}}

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

    def to_dict(self) -> dict[str, Any]:
        """See `FullTextQuery.to_dict`."""
        found: dict[str, list[Any]] = {occur.value.lower(): [] for occur in Occur}
        for occur, query in self.queries:
            found[occur.value.lower()].append(query.to_dict())
        return {"boolean": found}

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


def _only_item(given: object) -> tuple[str, object]:
    return next(iter(given.items())) if isinstance(given, Mapping) and len(given) == 1 else ("", None)


def _match(given: Mapping[str, Any]) -> MatchQuery:
    left = dict(given)
    operator = left.pop("operator", "Or")
    chosen = FullTextOperator(operator.upper() if isinstance(operator, str) else operator)
    return MatchQuery(left.pop("terms"), left.pop("column"), operator=chosen, **left)


def _phrase(given: Mapping[str, Any]) -> PhraseQuery:
    left = dict(given)
    return PhraseQuery(left.pop("terms"), left.pop("column"), **left)


def _boost(given: Mapping[str, Any]) -> BoostQuery:
    left = dict(given)
    positive, negative = (FullTextQuery.from_dict(left.pop(name)) for name in ("positive", "negative"))
    return BoostQuery(positive, negative, **left)


def _multi_match(given: Mapping[str, Any]) -> MultiMatchQuery:
    left = dict(given)
    queries = [_match(part) for part in left.pop("match_queries")]
    if left or len({(query.query, query.operator) for query in queries}) != 1:
        raise InvalidInputError(f"a multi_match query is {dict(given)!r}; match_queries of the same terms are needed")
    columns, boosts = [query.column for query in queries], [query.boost for query in queries]
    return MultiMatchQuery(queries[0].query, columns, boosts=boosts, operator=queries[0].operator)


def _boolean(given: Mapping[str, Any]) -> BooleanQuery:
    names = {occur.value.lower(): occur for occur in Occur}
    return BooleanQuery(
        [(names[name], FullTextQuery.from_dict(part)) for name, parts in given.items() for part in parts]
    )


_PARSERS: Mapping[str, Callable[[Mapping[str, Any]], FullTextQuery]] = MappingProxyType(
    {"match": _match, "phrase": _phrase, "boost": _boost, "multi_match": _multi_match, "boolean": _boolean}
)
