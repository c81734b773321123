"""Posting lists in memory, and the scores of documents that have tokens of a query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

import numpy as np
import numpy.typing as npt

from lance_format.kernels.texts.posting_lists import add_scores, match_phrase
from lance_format.lazy_dataclasses import dataclass
from lance_format.table.indices.texts.posting_list import Postings
from lance_format.texts.bm25 import mean_length, token_weights


@dataclass(frozen=True, slots=True)
class QueryToken:
    """A token to look for.

    Parameters
    ----------
    token : str
    position : int
        In the query. Tokens that stand for one word share it.
    """

    token: str
    position: int


@dataclass(frozen=True, slots=True)
class CorpusStatistics:
    """The statistics of documents that BM25 needs.

    Parameters
    ----------
    num_documents, num_tokens : int
    num_containing : mapping of str to int
        Number of documents that have each token.
    """

    num_documents: int = 0
    num_tokens: int = 0
    num_containing: Mapping[str, int] = field(default_factory=dict)

    def __add__(self, other: CorpusStatistics) -> CorpusStatistics:
        tokens = {**self.num_containing, **other.num_containing}
        containing = {token: self.num_containing.get(token, 0) + other.num_containing.get(token, 0) for token in tokens}
        return CorpusStatistics(
            self.num_documents + other.num_documents, self.num_tokens + other.num_tokens, containing
        )

    @property
    def mean_length(self) -> np.float32:
        """Mean number of tokens of a document."""
        return mean_length(self.num_tokens, self.num_documents)

    def weight(self, token: str) -> np.float32:
        """Return the weight of a token, in single precision; 0 if no document has it."""
        containing = self.num_containing.get(token, 0)
        if not containing:
            return np.float32(0)
        found: np.float32 = token_weights(np.array([containing]), self.num_documents)[0]
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """Documents that match, and their scores.

    Parameters
    ----------
    documents : int64[num_matches]
        Ascending.
    scores : float32[num_matches]
    """

    documents: npt.NDArray[np.int64]
    scores: npt.NDArray[np.float32]


def score_documents(
    postings: Mapping[str, Postings],
    lengths: npt.NDArray[np.uint32],
    tokens: Sequence[QueryToken],
    statistics: CorpusStatistics,
    *,
    needed: int = 1,
) -> Scored:
    """Score the documents that have tokens of a query.

    Parameters
    ----------
    postings : mapping of str to Postings
        Those of the tokens that occur.
    lengths : uint32[num_documents]
        Number of tokens of each document.
    tokens : sequence of QueryToken
    statistics : CorpusStatistics
    needed : int
        Number of positions of the query that a document needs a token of; at least one.
    """
    scores, matched = np.zeros(lengths.size, np.float32), np.zeros(lengths.size, np.uint32)
    latest = np.full(lengths.size, -1, np.int64)
    mean = statistics.mean_length
    for token in tokens:
        found = postings.get(token.token)
        if found is not None:
            weight = statistics.weight(token.token)
            add_scores(
                found.documents, found.frequencies, lengths, weight, mean, token.position, scores, latest, matched
            )
    documents = np.flatnonzero(matched >= max(needed, 1))
    return Scored(documents, scores[documents])


def find_phrase(postings: Mapping[str, Postings], tokens: Sequence[QueryToken], slop: int) -> npt.NDArray[np.int64]:
    """Return the documents that have tokens one after the other, ascending.

    Parameters
    ----------
    postings : mapping of str to Postings
        With positions.
    tokens : sequence of QueryToken
        By position.
    slop : int
        Maximum number of further positions between neighbours.
    """
    lists = [postings.get(token.token) for token in tokens]
    known = [found for found in lists if found is not None]
    if len(known) < len(lists) or not known:
        return np.zeros(0, np.int64)
    common = min((found.documents for found in known), key=len)
    for found in known:
        places = np.minimum(np.searchsorted(found.documents, common), found.documents.size - 1)
        common = common[found.documents[places] == common]
    starts, stops = (np.empty((common.size, len(known)), np.int64) for _ in range(2))
    stored, before = [], 0
    for column, found in enumerate(known):
        ends = np.cumsum(found.frequencies, dtype=np.int64)
        rows = np.searchsorted(found.documents, common)
        stops[:, column] = before + ends[rows]
        starts[:, column] = stops[:, column] - found.frequencies[rows]
        stored.append(np.zeros(0, np.uint32) if found.positions is None else found.positions)
        before += stored[-1].size
    matches = np.zeros(common.size, np.bool_)
    match_phrase(starts, stops, np.concatenate(stored), steps_of(tokens), slop, matches)
    return common[matches].astype(np.int64)


def steps_of(tokens: Sequence[QueryToken]) -> npt.NDArray[np.int64]:
    """Return the distance of each token of a phrase from the one before, `int64[num_tokens]`."""
    return np.diff([token.position for token in tokens], prepend=tokens[0].position).astype(np.int64)
