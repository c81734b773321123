"""The best rows are those at the head of all rows that are scored."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_format.kernels.texts.best_documents import bound_blocks
from lance_format.kernels.texts.ranked_lists import NO_ROW, SearchedRows
from lance_format.table.indices.texts.posting_list import PostingList, StoredPositions
from lance_format.table.text_search.best_rows import find_best_rows
from lance_format.table.text_search.hits import Hits
from lance_format.table.text_search.postings import CorpusStatistics, QueryToken, find_phrase, score_documents
from tests.kernels.texts.test_posting_lists import encode, encode_positions

TOKENS = ["owl", "emu", "ox", "wren"]


def posting_list(
    documents: list[int], positions: list[list[int]], lengths: npt.NDArray[np.uint32], mean: np.float32
) -> PostingList:
    counts = [len(places) for places in positions]
    data, offsets = encode(documents, counts, varints=True)
    stored = encode_positions(list(zip(documents, positions, strict=True)))
    num_blocks = offsets.size - 1
    lasts, totals, bounds = (np.zeros(num_blocks, kind) for kind in (np.int64, np.int64, np.float32))
    given_arrays = np.array(documents, np.uint32), np.array(counts, np.uint32)
    bound_blocks(*given_arrays, lengths, mean, lasts, totals, bounds)
    places = StoredPositions(np.frombuffer(stored[0], np.uint8).copy(), stored[1], None)
    blocks = np.frombuffer(data, np.uint8).copy()
    return PostingList(blocks, offsets, len(documents), True, places, lasts, totals, bounds, mean)


def corpus(
    rng: np.random.Generator, num_documents: int, longest: int
) -> tuple[dict[str, PostingList], npt.NDArray[np.uint32], CorpusStatistics]:
    """Return posting lists of random documents, of few different words and lengths if `longest` is small."""
    lengths = rng.integers(1, longest + 1, num_documents).astype(np.uint32)
    shares = rng.choice([0.0, 0.01, 0.2, 0.7], len(TOKENS))
    words = [rng.choice(len(TOKENS) + 1, length, p=[*shares / 4, 1 - shares.sum() / 4]) for length in lengths]
    mean = CorpusStatistics(num_documents, int(lengths.sum())).mean_length
    lists = {}
    for number, token in enumerate(TOKENS):
        found = [(document, np.flatnonzero(text == number).tolist()) for document, text in enumerate(words)]
        having = [(document, places) for document, places in found if places]
        if having:
            lists[token] = posting_list([x for x, _ in having], [places for _, places in having], lengths, mean)
    counts = {token: found.num_documents for token, found in lists.items()}
    return lists, lengths, CorpusStatistics(num_documents, int(lengths.sum()), counts)


@pytest.mark.parametrize("kind", ["or", "and", "phrase"])
@settings(max_examples=30)
@given(
    seed=st.integers(0, 2**32),
    num_documents=st.sampled_from([1, 50, 700]),
    longest=st.sampled_from([1, 3, 12]),
    most=st.sampled_from([0, 1, 2, 10, 300, 5000]),
)
def test_the_best_are_those_at_the_head(kind: str, seed: int, num_documents: int, longest: int, most: int) -> None:
    rng = np.random.default_rng(seed)
    lists, lengths, statistics = corpus(rng, num_documents, longest)
    places = np.sort(rng.integers(0, 3, rng.integers(1, 5)))
    if kind == "phrase":
        places = np.arange(places.size)
    tokens = list(dict.fromkeys(QueryToken(str(rng.choice(TOKENS)), int(place)) for place in places))
    needed = len({token.position for token in tokens}) if kind == "and" else 1
    addresses = np.arange(num_documents, dtype=np.uint64) * 3
    is_ascending = bool(rng.integers(2))
    if not is_ascending:
        rng.shuffle(addresses)
    addresses[rng.random(num_documents) < rng.choice([0, 0.5])] = NO_ROW
    allowed = np.sort(rng.choice(addresses, num_documents // 2, replace=False)) if rng.integers(2) else None
    postings = {token: found.decode() for token, found in lists.items()}
    scored = score_documents(postings, lengths, tokens, statistics, needed=needed)
    documents = find_phrase(postings, tokens, 1) if kind == "phrase" else scored.documents
    kept = np.isin(scored.documents, documents) & (addresses[scored.documents] != NO_ROW)
    if allowed is not None:
        kept &= np.isin(addresses[scored.documents], allowed)
    expected = Hits.of([(addresses[scored.documents[kept]], scored.scores[kept])]).best(most)
    no_rows = np.zeros(0, np.uint64)
    rows = SearchedRows(
        lengths, statistics.mean_length, addresses, is_ascending, allowed is not None,
        no_rows if allowed is None else allowed,
    )  # fmt: skip
    found = find_best_rows(
        lists, tokens, statistics, rows, most=most, needed=needed, slop=1 if kind == "phrase" else None
    )
    assert Hits.of([found]).best(most).addresses.tolist() == expected.addresses.tolist()
    assert Hits.of([found]).best(most).scores.tolist() == expected.scores.tolist()
