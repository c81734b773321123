"""The best rows of a partition of a text index, found without scoring all of its documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from lance_format.kernels.texts.best_documents import find_best
from lance_format.kernels.texts.ranked_lists import Demands, RankedLists, SearchedRows
from lance_format.table.indices.texts.posting_list import PostingList
from lance_format.table.text_search.postings import CorpusStatistics, QueryToken, steps_of


def find_best_rows(
    lists: Mapping[str, PostingList],
    tokens: Sequence[QueryToken],
    statistics: CorpusStatistics,
    rows: SearchedRows,
    *,
    most: int,
    needed: int = 1,
    slop: int | None = None,
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.float32]]:
    """Return the addresses of the rows of the highest scores, and their scores, in any order.

    Parameters
    ----------
    lists : mapping of str to PostingList
        Those of the tokens that occur.
    tokens : sequence of QueryToken
    statistics : CorpusStatistics
    rows : SearchedRows
    most : int
        Maximum number of rows. Of equal scores, those of lower addresses are returned.
    needed : int
        Number of positions of the query that a document needs a token of; at least one.
    slop : int, optional
        Maximum number of further positions between the tokens of a phrase; None if they need not follow each other.
        Lists have positions then, not of files of version 1.
    """
    found = [lists[token.token] for token in tokens if token.token in lists]
    known = [token for token in tokens if token.token in lists]
    needs_all = slop is not None or needed == len(tokens)
    if not found or not most or (needs_all and len(found) < len(tokens)):
        return np.zeros(0, np.uint64), np.zeros(0, np.float32)
    starts = np.cumsum([0, *(some.lasts.size for some in found)])
    ranked = RankedLists(
        np.concatenate([some.data for some in found]),
        _joined([some.offsets for some in found]),
        found[0].varints,
        starts,
        np.array([some.num_documents for some in found]),
        np.concatenate([some.lasts for some in found]),
        np.concatenate([some.bounds for some in found]),
        np.array([statistics.weight(token.token) for token in known], np.float32),
        np.array([token.position for token in known]),
    )
    limit = min(most, int(ranked.sizes.sum()), rows.lengths.size)
    scores, addresses = np.empty(limit, np.float32), np.empty(limit, np.uint64)
    count = find_best(ranked, _demands(found, known, needed, needs_all, slop), rows, scores, addresses)
    return addresses[:count], scores[:count]


def _demands(
    lists: Sequence[PostingList], tokens: Sequence[QueryToken], needed: int, needs_all: bool, slop: int | None
) -> Demands:
    if slop is None:
        nothing = np.zeros(0, np.int64)
        return Demands(needed, needs_all, False, np.zeros(0, np.uint8), nothing, 0, nothing, 0)
    stored = [some.positions for some in lists if some.positions is not None]
    return Demands(
        needed,
        needs_all,
        True,
        np.concatenate([some.data for some in stored]),
        _joined([some.offsets for some in stored]),
        max(int(some.totals.max(initial=0)) for some in lists),
        steps_of(tokens),
        slop,
    )


def _joined(offsets: Sequence[npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
    """Return the offsets of the blocks of lists that follow each other."""
    before = np.cumsum([0, *(some[-1] for some in offsets)])
    moved = [some[:-1] + start for some, start in zip(offsets, before, strict=False)]
    return np.concatenate([*moved, before[-1:]])
