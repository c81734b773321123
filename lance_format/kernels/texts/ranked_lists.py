"""What a search for the best documents of posting lists is given, and what it keeps; see `best_documents.py`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lance_format.kernels.texts.posting_lists import F32, I64, U8, U32

U64 = npt.NDArray[np.uint64]

NO_ROW = np.uint64(2**64 - 1)
"""The address of a document that is not searched."""


class RankedLists(NamedTuple):
    """The posting lists of the tokens of a query, one after the other.

    Parameters
    ----------
    data : uint8[…]
    offsets : int64[num_blocks + 1]
        The blocks of all lists.
    varints : bool
        Whether blocks that are not full have varints.
    starts : int64[num_lists + 1]
        The first block of each list.
    sizes : int64[num_lists]
        Number of documents of each list.
    lasts : int64[num_blocks]
        The last document of each block.
    bounds : float32[num_blocks]
        The largest contribution of each block to a score.
    weights : float32[num_lists]
        Of the tokens.
    positions : int64[num_lists]
        Of the tokens in the query.
    """

    data: U8
    offsets: I64
    varints: bool
    starts: I64
    sizes: I64
    lasts: I64
    bounds: F32
    weights: F32
    positions: I64


class Demands(NamedTuple):
    """Conditions of a match.

    Parameters
    ----------
    num_positions : int
        Number of positions of the query that a document needs a token of.
    needs_all : bool
        Whether a document needs all tokens.
    is_phrase : bool
        Whether the tokens follow each other. The rest is ignored if they need not.
    data : uint8[…]
        The positions of all lists.
    offsets : int64[num_blocks + 1]
        Their blocks.
    widest : int
        Maximum sum of the frequencies of a block.
    steps : int64[num_lists]
    slop : int
        See `match_phrase`.
    """

    num_positions: int
    needs_all: bool
    is_phrase: bool
    data: U8
    offsets: I64
    widest: int
    steps: I64
    slop: int


class SearchedRows(NamedTuple):
    """The documents of a partition.

    Parameters
    ----------
    lengths : uint32[num_documents]
        Number of tokens of each.
    mean : float32
        Of the lengths.
    addresses : uint64[num_documents]
        Of their rows; `NO_ROW` for those that are not searched.
    is_ascending : bool
        Whether the addresses of searched documents ascend.
    is_restricted : bool
        Whether only rows of `allowed` are searched.
    allowed : uint64[…]
        Ascending addresses.
    """

    lengths: U32
    mean: np.float32
    addresses: U64
    is_ascending: bool
    is_restricted: bool
    allowed: U64


class Cursors(NamedTuple):
    """Places in lists.

    Parameters
    ----------
    blocks, decoded, counts, places : int64[num_lists]
        The block, the decoded block, its number of documents, and the index of the current one.
    documents, frequencies : int64[num_lists, 128]
        Of the decoded block.
    contributions : float32[num_lists, 128]
        To the scores of these documents, of lists that are not only looked up.
    maxima, limits : float32[num_lists]
        The largest contribution of each list, and in a range of documents; the latter -1 if it has none there.
    order : int64[num_lists]
        The lists, those to look up first.
    shares : float32[num_lists]
        What each contributes to a score, or at most contributes; -1 if the document does not have its token.
    placed : int64[num_lists]
        The block of the decoded positions.
    token_positions : uint32[num_lists * widest]
        The decoded positions of each list.
    """

    blocks: I64
    decoded: I64
    counts: I64
    places: I64
    documents: npt.NDArray[np.int64]
    frequencies: npt.NDArray[np.int64]
    contributions: F32
    maxima: F32
    limits: F32
    order: I64
    shares: F32
    placed: I64
    token_positions: U32


class Best(NamedTuple):
    """The best documents so far.

    Parameters
    ----------
    scores : float32[limit]
    addresses : uint64[limit]
        A heap with the worst first.
    floor : float32
        The least score.
    is_ascending : bool
        Whether the addresses of documents further on are higher.
    """

    scores: F32
    addresses: U64
    floor: np.float32
    is_ascending: bool
