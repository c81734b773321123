"""The tokens of documents in memory, until they are written as a partition of a text index."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_format.kernels.texts.posting_list_encoding import count_occurrences, gather_occurrences
from lance_format.lazy_dataclasses import dataclass
from lance_format.table.indices.row_finder import RowIds
from lance_format.texts.tokenizing import Tokenizer

_Numbers = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class PostingLists:
    """The posting lists of tokens, by ascending token.

    Parameters
    ----------
    tokens : list of bytes
        In UTF-8.
    starts : int64[num_tokens + 1]
        The ascending bounds of the lists.
    documents, frequencies : uint32[num_postings]
        The documents that have each token, ascending, and how often they have it.
    positions : uint32[num_occurrences], optional
        Where they have it.
    """

    tokens: list[bytes]
    starts: npt.NDArray[np.int64]
    documents: npt.NDArray[np.uint32]
    frequencies: npt.NDArray[np.uint32]
    positions: npt.NDArray[np.uint32] | None


class GatheredTokens:
    """Documents that have tokens, and the occurrences of these.

    Parameters
    ----------
    tokenizer : Tokenizer
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._numbers: dict[str, int] = {}
        self._ids: list[RowIds] = []
        self._lengths: list[npt.NDArray[np.uint32]] = []
        self._occurrences: list[tuple[_Numbers, _Numbers, _Numbers]] = []
        self.num_documents = 0
        self.num_occurrences = 0

    @property
    def ids(self) -> RowIds:
        """The ids of the rows of the documents, `uint64[num_documents]`."""
        return np.concatenate([np.zeros(0, np.uint64), *self._ids])

    @property
    def lengths(self) -> npt.NDArray[np.uint32]:
        """The number of tokens of each document, `uint32[num_documents]`."""
        return np.concatenate([np.zeros(0, np.uint32), *self._lengths])

    def add(self, texts: pa.Array, ids: RowIds) -> None:
        """Add rows. Those without tokens are no documents.

        Parameters
        ----------
        texts : pa.Array
            `string` or `large_string`.
        ids : uint64[num_texts]

        Raises
        ------
        CorruptFileError
            If a text is not UTF-8.
        """
        numbers = self._numbers
        found = self._tokenizer.split(texts).occurrences(lambda token: numbers.setdefault(token, len(numbers)))
        documents = (found.documents + self.num_documents).astype(np.int32)
        self._occurrences.append((found.tokens, documents, found.positions.astype(np.int32)))
        self._ids.append(ids[found.has_tokens])
        self._lengths.append(found.lengths.astype(np.uint32))
        self.num_documents += found.lengths.size
        self.num_occurrences += found.tokens.size

    def posting_lists(self, *, with_positions: bool) -> PostingLists:
        """Return the posting lists of the tokens; no occurrences are left here.

        Parameters
        ----------
        with_positions : bool
            Whether they have positions.
        """
        words = sorted(self._numbers)
        order = np.array([self._numbers[word] for word in words], np.int64)
        latest, num_postings, num_positions = (np.full(order.size, fill) for fill in (-1, 0, 0))
        total = sum(
            count_occurrences(tokens, documents, latest, num_postings, num_positions)
            for tokens, documents, _ in self._occurrences
        )
        starts = np.append(0, np.cumsum(num_postings[order]))
        posting_ends, position_ends = np.empty(order.size, np.int64), np.empty(order.size, np.int64)
        posting_ends[order] = starts[:-1]
        position_ends[order] = np.cumsum(num_positions[order]) - num_positions[order]
        found, frequencies = np.empty(total, np.uint32), np.zeros(total, np.uint32)
        stored = np.empty(self.num_occurrences if with_positions else 0, np.uint32)
        latest.fill(-1)
        self._occurrences.reverse()
        while self._occurrences:
            gather_occurrences(
                *self._occurrences.pop(), latest, posting_ends, position_ends, found, frequencies, stored
            )
        return PostingLists(
            [word.encode() for word in words], starts, found, frequencies, stored if with_positions else None
        )
