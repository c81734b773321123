"""Rows that no index covers: their texts are read and split into tokens."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_format.datatypes import Field
from lance_format.errors import CorruptFileError, InvalidInputError, NotSupportedError
from lance_format.lazy_dataclasses import dataclass
from lance_format.table.format.fragment import FragmentMetadata
from lance_format.table.fragments.row_columns import addresses_of
from lance_format.table.indices.column_values import read_column
from lance_format.table.indices.texts.posting_list import Postings
from lance_format.table.text_search.postings import CorpusStatistics
from lance_format.table.versions.table_version import TableVersion
from lance_format.texts.tokenizing import Occurrences, Tokenizer, has_texts, joined_texts

_BATCH_ROWS = 16 * 1024


@dataclass(frozen=True, slots=True, eq=False)
class FlatCorpus:
    """Rows whose texts have been read.

    Parameters
    ----------
    addresses : uint64[num_documents]
        Those with tokens.
    lengths : uint32[num_documents]
    postings : dict of str to Postings
        Of the tokens of the query that occur, with positions.
    """

    addresses: npt.NDArray[np.uint64]
    lengths: npt.NDArray[np.uint32]
    postings: dict[str, Postings]

    @property
    def statistics(self) -> CorpusStatistics:
        """The statistics of the rows."""
        containing = {token: found.documents.size for token, found in self.postings.items()}
        return CorpusStatistics(self.lengths.size, int(self.lengths.sum(dtype=np.uint64)), containing)


def check_searchable(path: Sequence[Field]) -> None:
    """Refuse a column that has no texts.

    Raises
    ------
    InvalidInputError
        If it has none.
    """
    name = ".".join(field.name for field in path)
    if any(parent.logical_type != "struct" for parent in path[:-1]):
        raise InvalidInputError(f"column {name!r} is inside of lists; only texts and lists of texts can be searched")
    value_type = path[-1].to_arrow_type()
    if not has_texts(value_type) or path[-1].logical_type == "json":
        raise InvalidInputError(f"column {name!r} is of type {value_type}; text and lists of text can be searched")


def read_corpus(
    table: TableVersion,
    path: Sequence[Field],
    fragments: Sequence[FragmentMetadata],
    tokenizer: Tokenizer,
    tokens: Sequence[str],
    allowed: npt.NDArray[np.uint64] | None,
) -> FlatCorpus:
    """Read the texts of fragments.

    Parameters
    ----------
    table : TableVersion
    path : sequence of Field
        The fields from a column to the searched one.
    fragments : sequence of FragmentMetadata
    tokenizer : Tokenizer
    tokens : sequence of str
        The tokens of the query.
    allowed : uint64[…], optional
        The rows to read, ascending; by default all.

    Raises
    ------
    CorruptFileError
        If a text is not UTF-8.
    """
    numbers = {token: number for number, token in enumerate(dict.fromkeys(tokens))}
    found = []
    for texts, rows in read_column(table, path, fragments, batch_size=_BATCH_ROWS):
        addresses = np.concatenate([addresses_of(each) for each in rows])
        if allowed is not None:
            kept = np.isin(addresses, allowed, assume_unique=True)
            addresses, texts = addresses[kept], texts.filter(pa.array(kept))
        try:
            found.append(_read(_as_texts(texts, tokenizer), addresses, tokenizer, numbers))
        except CorruptFileError as error:
            named = ", ".join(str(each.scan.fragment.id) for each in rows)
            raise error.retold(f"fragment {named}: {error.what}", path=table.uri) from error
    return _gathered(found, list(numbers))


def _as_texts(values: pa.Array, tokenizer: Tokenizer) -> pa.Array:
    if not pa.types.is_nested(values.type):
        return values
    if tokenizer.rules.base_tokenizer not in ("simple", "whitespace"):
        raise NotSupportedError(
            f"lists that no index covers cannot be split by the tokenizer {tokenizer.rules.base_tokenizer!r}; update"
            " the index, or set fast_search"
        )
    return joined_texts(values)


def _read(
    texts: pa.Array, addresses: npt.NDArray[np.uint64], tokenizer: Tokenizer, numbers: dict[str, int]
) -> tuple[npt.NDArray[np.uint64], Occurrences]:
    """Return the addresses of the rows that have tokens, and the occurrences of those of the query."""
    valid = np.asarray(texts.is_valid().to_numpy(zero_copy_only=False))
    if not valid.all():
        texts, addresses = texts.filter(pa.array(valid)), addresses[valid]
    found = tokenizer.split(texts).occurrences(lambda token: numbers.get(token, -1))
    return addresses[found.has_tokens], found


def _gathered(read: list[tuple[npt.NDArray[np.uint64], Occurrences]], tokens: list[str]) -> FlatCorpus:
    addresses = np.concatenate([np.zeros(0, np.uint64), *(rows for rows, _ in read)])
    parts = [part for _, part in read]
    lengths, numbers, positions = (
        np.concatenate([np.zeros(0, np.int64), *(getattr(part, name) for part in parts)])
        for name in ("lengths", "tokens", "positions")
    )
    before = np.cumsum([0, *(part.lengths.size for part in parts)])
    documents = np.concatenate(
        [np.zeros(0, np.int64), *(part.documents + first for part, first in zip(parts, before, strict=False))]
    )
    postings = {}
    for number, token in enumerate(tokens):
        mine = numbers == number
        if mine.any():
            found, frequencies = np.unique(documents[mine], return_counts=True)
            postings[token] = Postings(
                found.astype(np.uint32), frequencies.astype(np.uint32), positions[mine].astype(np.uint32)
            )
    return FlatCorpus(addresses, lengths.astype(np.uint32), postings)
