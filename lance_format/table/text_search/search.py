"""Answering queries: the entry of this room.

Words are looked up in the index of their column, and in the texts of the rows that it does not cover. As in pylance,
the scores of indexed rows come from the statistics of the index, which still count deleted rows, and those of other
rows from both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from lance_format.errors import InvalidInputError
from lance_format.kernels.texts.ranked_lists import NO_ROW, SearchedRows
from lance_format.lazy_dataclasses import dataclass
from lance_format.lazy_properties import cached_property
from lance_format.object_store import map_together
from lance_format.query import (
    BooleanQuery,
    BoostQuery,
    FullTextOperator,
    FullTextQuery,
    MatchQuery,
    MultiMatchQuery,
    Occur,
    PhraseQuery,
)
from lance_format.table.format.field_paths import find_field
from lance_format.table.indices.texts.partition import Partition
from lance_format.table.indices.texts.posting_list import PostingList, Postings
from lance_format.table.text_search.best_rows import find_best_rows
from lance_format.table.text_search.flat_search import FlatCorpus, check_searchable, read_corpus
from lance_format.table.text_search.hits import Hits, united
from lance_format.table.text_search.live_documents import live_documents
from lance_format.table.text_search.postings import (
    CorpusStatistics,
    QueryToken,
    Scored,
    find_phrase,
    score_documents,
)
from lance_format.table.text_search.target import SearchTarget, indexed_columns
from lance_format.table.versions.table_version import TableVersion
from lance_format.texts.token_rules import PLAIN, TokenRules
from lance_format.texts.tokenizing import Tokenizer

_KEPT_QUERIES = 64
"""Number of queries whose tokens are remembered."""

_Rows: TypeAlias = tuple[npt.NDArray[np.uint64], npt.NDArray[np.float32]]
"""Addresses and scores."""

TextRequest: TypeAlias = str | Mapping[str, Any] | FullTextQuery
"""A text, its columns too (`{"query": …, "columns": […]}`), or a query, also as the mapping of its `to_dict`."""


def as_query(table: TableVersion, request: TextRequest) -> FullTextQuery:
    """Return the query that a user asks for.

    Parameters
    ----------
    table : TableVersion
    request : str, mapping of str to object, or FullTextQuery

    Raises
    ------
    InvalidInputError
        If it is none, a named column is not there or has no texts, or no column is named and none has an index.
    """
    columns: Sequence[str] | None = None
    given: Any = request
    if isinstance(request, Mapping) and not {"query", "columns"} & request.keys():
        given = FullTextQuery.from_dict(request)
    elif isinstance(request, Mapping):
        unknown = request.keys() - {"query", "columns"}
        given, columns = request.get("query"), request.get("columns")
        if unknown or given is None:
            raise InvalidInputError(f"full_text_query is {dict(request)!r}; 'query' and 'columns' are needed")
        is_list = isinstance(columns, Sequence) and not isinstance(columns, str)
        if columns is not None and not (is_list and all(isinstance(name, str) for name in columns)):
            raise InvalidInputError(f"the columns of full_text_query are {columns!r}; a list of names is needed")
        for name in columns or ():
            check_searchable(find_field(table.manifest.schema, name))
    if isinstance(given, FullTextQuery):
        return given
    if not isinstance(given, str):
        raise InvalidInputError(f"full_text_query is {given!r}; text, or a query of lance_format.query is needed")
    names = list(columns or indexed_columns(table))
    if len(given) > 1 and given.startswith('"') and given.endswith('"'):
        if len(names) > 1:
            raise InvalidInputError(f"a phrase is looked for in one column, not in {', '.join(names)}; name it")
        return PhraseQuery(given[1:-1], names[0])
    return MatchQuery(given, names[0]) if len(names) == 1 else MultiMatchQuery(given, names)


@dataclass(frozen=True, slots=True, eq=False)
class SearchScope:
    """The rows that are searched.

    Parameters
    ----------
    table : TableVersion
    allowed : uint64[…], optional
        The addresses of the rows to look at, ascending; by default all. Others do not count in the statistics of rows
        without an index either.
    is_fast : bool
        Whether to look at indexed rows only.
    """

    table: TableVersion
    allowed: npt.NDArray[np.uint64] | None = None
    is_fast: bool = False


class TextSearch:
    """A search of a version of a table.

    Parameters
    ----------
    scope : SearchScope
    """

    def __init__(self, scope: SearchScope) -> None:
        self._scope = scope
        self._targets: dict[str, SearchTarget] = {}

    def find(self, query: FullTextQuery, most: int | None = None) -> Hits:
        """Find the rows that match a query.

        Parameters
        ----------
        query : FullTextQuery
        most : int, optional
            Number of the best rows that are needed, see `Hits.best`. Others may be missing.

        Raises
        ------
        InvalidInputError
            If a column does not exist, or has no texts; or if the index of a phrase has no positions.
        NotSupportedError
            If an index is of a form that is not known here.
        CorruptFileError
            If a file of an index is malformed.
        """
        answer = _ANSWERS.get(type(query))
        if answer is None:
            raise InvalidInputError(f"{query!r} is no query of lance_format.query")
        return answer(self, query, most)

    def _match(self, query: MatchQuery, most: int | None = None) -> Hits:
        target = self._target(query.column)
        plain = _query_tokens(target.tokenizer.rules, query.query)
        # pylance leaves words as they are where it looks for similar tokens, and looks for none in other rows.
        words = _query_tokens(PLAIN, query.query) if query.fuzziness else plain
        tokens = _expanded(target, words, query) if query.fuzziness else plain
        leaf = _Leaf(self._scope, target, tokens, plain, with_positions=False)
        needs_all = query.operator is FullTextOperator.AND
        needed, elsewhere = (len({token.position for token in given}) if needs_all else 1 for given in (words, plain))
        # Different scores may become equal if they are multiplied, and then the lower address is the better one.
        return leaf.match(needed, elsewhere, most if query.boost == 1 else None).times(query.boost)

    def _phrase(self, query: PhraseQuery, most: int | None = None) -> Hits:
        target = self._target(query.column)
        if not target.has_positions:
            raise InvalidInputError(
                f"the index of column {query.column!r} has no positions, which phrases need; make it again with"
                " with_position=True"
            )
        tokens = _query_tokens(target.tokenizer.rules, query.query)
        leaf = _Leaf(self._scope, target, tokens, tokens, with_positions=True)
        return leaf.phrase(query.slop, most)

    def _multi(self, query: MultiMatchQuery, most: int | None = None) -> Hits:
        del most
        parts = [self._match(part) for part in query.queries]
        addresses = united(parts)
        scores = np.full(addresses.size, -np.inf, np.float32)
        for part in parts:
            found, matches = part.scores_of(addresses)
            scores = np.where(matches, np.maximum(scores, found), scores)
        return Hits(addresses, scores)

    def _boost(self, query: BoostQuery, most: int | None = None) -> Hits:
        del most
        positive, negative = self.find(query.positive), self.find(query.negative)
        return positive.plus([negative.times(-query.negative_boost)])

    def _boolean(self, query: BooleanQuery, most: int | None = None) -> Hits:
        del most
        found = {occur: [self.find(part) for kind, part in query.queries if kind is occur] for occur in Occur}
        must, should = found[Occur.MUST], found[Occur.SHOULD]
        addresses = must[0].addresses if must else united(should)
        for part in must[1:]:
            addresses = addresses[part.scores_of(addresses)[1]]
        for part in found[Occur.MUST_NOT]:
            addresses = addresses[~part.scores_of(addresses)[1]]
        return Hits(addresses, np.zeros(addresses.size, np.float32)).plus([*must, *should])

    def _target(self, column: str) -> SearchTarget:
        if column not in self._targets:
            self._targets[column] = SearchTarget.of(self._scope.table, column)
        return self._targets[column]


_ANSWERS: Mapping[type, Callable[[TextSearch, Any, int | None], Hits]] = MappingProxyType(
    {
        MatchQuery: TextSearch._match,
        PhraseQuery: TextSearch._phrase,
        MultiMatchQuery: TextSearch._multi,
        BoostQuery: TextSearch._boost,
        BooleanQuery: TextSearch._boolean,
    }
)


class _Leaf:
    """The search for tokens in one column.

    Parameters
    ----------
    scope : SearchScope
    target : SearchTarget
    tokens, plain : sequence of QueryToken
        To look for in the index, and in other rows; the former may have similar ones.
    with_positions : bool
        Whether positions are needed.
    """

    def __init__(
        self,
        scope: SearchScope,
        target: SearchTarget,
        tokens: Sequence[QueryToken],
        plain: Sequence[QueryToken],
        *,
        with_positions: bool,
    ) -> None:
        self._scope = scope
        self._target = target
        # pylance counts repeated sequences of characters, which share a position, once in the index only.
        self._tokens = list(dict.fromkeys(tokens))
        self._plain = plain
        self._with_positions = with_positions

    def match(self, needed: int, needed_elsewhere: int, most: int | None) -> Hits:
        """Find the rows that have tokens of a number of positions of the query.

        Parameters
        ----------
        needed, needed_elsewhere : int
            In the index, and in other rows.
        most : int, optional
            See `TextSearch.find`.
        """
        parts = []
        for partition, lists in self._indexed():
            if most is None:
                postings, lengths = _decoded(lists), partition.documents.lengths
                scored = score_documents(postings, lengths, self._tokens, self._statistics, needed=needed)
                parts.append(self._live(partition, scored))
            else:
                parts.append(self._best(partition, lists, most, needed=needed))
        if (flat := self._flat) is not None:
            statistics = self._statistics + flat.statistics
            scored = score_documents(flat.postings, flat.lengths, self._plain, statistics, needed=needed_elsewhere)
            parts.append((flat.addresses[scored.documents], scored.scores))
        return Hits.of(parts)

    def phrase(self, slop: int, most: int | None) -> Hits:
        """Find the rows that have the tokens one after the other.

        Parameters
        ----------
        slop : int
            See `PhraseQuery`.
        most : int, optional
            See `TextSearch.find`.
        """
        parts = []
        for partition, lists in self._indexed():
            if most is None or any(found.has_early_positions for found in lists.values()):
                lengths = partition.documents.lengths
                scored = self._scored_phrase(_decoded(lists), lengths, self._statistics, slop)
                parts.append(self._live(partition, scored))
            else:
                parts.append(self._best(partition, lists, most, slop=slop))
        if (flat := self._flat) is not None:
            scored = self._scored_phrase(flat.postings, flat.lengths, self._statistics + flat.statistics, slop)
            parts.append((flat.addresses[scored.documents], scored.scores))
        return Hits.of(parts)

    def _scored_phrase(
        self,
        postings: Mapping[str, Postings],
        lengths: npt.NDArray[np.uint32],
        statistics: CorpusStatistics,
        slop: int,
    ) -> Scored:
        documents = find_phrase(postings, self._tokens, slop)
        scored = score_documents(postings, lengths, self._tokens, statistics)
        kept = np.isin(scored.documents, documents, assume_unique=True)
        return Scored(scored.documents[kept], scored.scores[kept])

    def _best(
        self,
        partition: Partition,
        lists: Mapping[str, PostingList],
        most: int,
        *,
        needed: int = 1,
        slop: int | None = None,
    ) -> _Rows:
        """Return the best rows of a partition that are live and allowed, and their scores."""
        live, allowed = live_documents(self._scope.table, partition), self._scope.allowed
        rows = SearchedRows(
            partition.documents.lengths,
            self._mean_length,
            live.addresses,
            live.is_ascending,
            allowed is not None,
            np.zeros(0, np.uint64) if allowed is None else allowed,
        )
        return find_best_rows(lists, self._tokens, self._statistics, rows, most=most, needed=needed, slop=slop)

    def _live(self, partition: Partition, scored: Scored) -> _Rows:
        """Return the rows of documents that are live and allowed, and their scores."""
        addresses = live_documents(self._scope.table, partition).addresses[scored.documents]
        kept = addresses != NO_ROW
        if self._scope.allowed is not None:
            kept &= np.isin(addresses, self._scope.allowed)
        return addresses[kept], scored.scores[kept]

    def _indexed(self) -> Iterator[tuple[Partition, Mapping[str, PostingList]]]:
        """Yield the partitions that have tokens; the addresses of their documents are known then."""
        found = [each for each in zip(self._target.partitions, self._lists, strict=True) if each[1]]
        table = self._scope.table
        located = map_together(table.store, lambda each: live_documents(table, each[0]), found)
        yield from (each for each, _ in zip(found, located, strict=True))

    @cached_property
    def _lists(self) -> list[Mapping[str, PostingList]]:
        names = list(dict.fromkeys(token.token for token in (*self._tokens, *self._plain)))
        mean_length = self._mean_length

        def find(partition: Partition) -> Mapping[str, PostingList]:
            return partition.find_lists(names, mean_length, with_positions=self._with_positions)

        return list(map_together(self._scope.table.store, find, self._target.partitions))

    @cached_property
    def _mean_length(self) -> np.float32:
        """The mean length of the documents of the index."""
        store, partitions = self._scope.table.store, self._target.partitions
        documents = list(map_together(store, lambda partition: partition.documents, partitions))
        num_documents, num_tokens = sum(x.lengths.size for x in documents), sum(x.num_tokens for x in documents)
        return CorpusStatistics(num_documents, num_tokens).mean_length

    @cached_property
    def _statistics(self) -> CorpusStatistics:
        """The statistics of the index."""
        total = CorpusStatistics()
        for partition, lists in zip(self._target.partitions, self._lists, strict=True):
            documents = partition.documents
            containing = {token: found.num_documents for token, found in lists.items()}
            total += CorpusStatistics(documents.lengths.size, documents.num_tokens, containing)
        return total

    @cached_property
    def _flat(self) -> FlatCorpus | None:
        """The rows that the index does not cover; None if there are none, or they are not looked at."""
        target, scope = self._target, self._scope
        if scope.is_fast or not target.others or not self._plain:
            return None
        names = [token.token for token in self._plain]
        return read_corpus(scope.table, target.path, target.others, target.tokenizer, names, scope.allowed)


def _decoded(lists: Mapping[str, PostingList]) -> dict[str, Postings]:
    return {token: found.decode() for token, found in lists.items()}


@lru_cache(maxsize=_KEPT_QUERIES)
def _query_tokens(rules: TokenRules, text: str) -> tuple[QueryToken, ...]:
    return tuple(QueryToken(word, position) for word, position in Tokenizer(rules).query_tokens(text))


def _expanded(target: SearchTarget, tokens: Sequence[QueryToken], query: MatchQuery) -> list[QueryToken]:
    """Return the tokens of an index that are similar to those of a query."""
    found: dict[QueryToken, None] = {}
    for token in tokens:
        left = query.max_expansions - len(found)
        prefix = token.token[: query.prefix_length]
        similar: set[str] = set()
        for partition in target.partitions:
            similar.update(islice(partition.dictionary.similar(token.token, query.fuzziness, prefix), left))
        for name in sorted(similar, key=str.encode)[: max(left, 0)]:
            found[QueryToken(name, token.position)] = None
    return list(found)
