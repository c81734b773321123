"""Splitting texts into tokens, many at once: words are copied by a kernel, and each distinct one is treated once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lance_format.errors import CorruptFileError
from lance_format.kernels.texts.text_tokens import measure_grams, split_grams, split_words
from lance_format.lazy_dataclasses import dataclass
from lance_format.list_items import items_of, offsets_of
from lance_format.texts.token_rules import TokenRules
from lance_format.texts.word_forms import WordForms, visible_characters, word_characters

Counts = npt.NDArray[np.int64]


_DROPPED = -2


@dataclass(frozen=True, slots=True, eq=False)
class Occurrences:
    """Occurrences of tokens in documents: texts that have tokens.

    Parameters
    ----------
    has_tokens : bool[num_texts]
        Whether each text is a document.
    lengths : int64[num_documents]
        Number of tokens of each, those included whose occurrences are left out.
    tokens : int32[num_occurrences]
        The number of the token.
    documents : int64[num_occurrences]
        Ascending.
    positions : int64[num_occurrences]
    """

    has_tokens: npt.NDArray[np.bool_]
    lengths: Counts
    tokens: npt.NDArray[np.int32]
    documents: Counts
    positions: Counts


@dataclass(frozen=True, slots=True, eq=False)
class Tokens:
    """The tokens of some texts.

    Parameters
    ----------
    words : list of str or None
        Distinct words after their reduction to tokens, which may repeat; None for dropped ones.
    codes : int32[num_occurrences]
        The index in `words` of each occurrence, text by text, dropped ones included.
    counts : int64[num_texts]
        Number of occurrences in each text, dropped ones included.
    are_words : bool
        Whether they follow each other. Sequences of characters are all at position 0.
    """

    words: list[str | None]
    codes: npt.NDArray[np.int32]
    counts: Counts
    are_words: bool

    @property
    def texts(self) -> Counts:
        """The text of each occurrence, `int64[num_occurrences]`."""
        return np.repeat(np.arange(self.counts.size), self.counts)

    @property
    def positions(self) -> Counts:
        """The position of each occurrence in its text, dropped ones counted, `int64[num_occurrences]`."""
        if not self.are_words:
            return np.zeros(self.codes.size, np.int64)
        starts = np.cumsum(self.counts) - self.counts
        return np.arange(self.codes.size) - np.repeat(starts, self.counts)

    def occurrences(self, number_of: Callable[[str], int]) -> Occurrences:
        """Return the occurrences of some tokens, and the texts that have any token.

        Parameters
        ----------
        number_of : callable
            Returns the number of a token; -1 for those whose occurrences are left out.
        """
        numbers = np.array([_DROPPED if word is None else number_of(word) for word in self.words], np.int32)
        tokens, owners = numbers[self.codes], self.texts
        lengths = np.bincount(owners[tokens != _DROPPED], minlength=self.counts.size)
        has_tokens, chosen = lengths > 0, tokens >= 0
        documents = np.cumsum(has_tokens) - 1
        return Occurrences(
            has_tokens, lengths[has_tokens], tokens[chosen], documents[owners[chosen]], self.positions[chosen]
        )


class Tokenizer:
    """Tokenizer of texts by the rules of an index.

    Parameters
    ----------
    rules : TokenRules

    Raises
    ------
    NotSupportedError
        If a package is needed that is not installed.
    """

    def __init__(self, rules: TokenRules) -> None:
        self.rules = rules
        self._forms = WordForms(rules)

    def query_tokens(self, text: str) -> list[tuple[str, int]]:
        """Return the tokens of a query in their order, and their positions."""
        tokens = self.split(pa.array([text]))
        found = zip((tokens.words[code] for code in tokens.codes.tolist()), tokens.positions.tolist(), strict=True)
        return [(word, position) for word, position in found if word is not None]

    def split(self, texts: pa.Array) -> Tokens:
        """Split texts, `string` or `large_string`; null has no tokens.

        Raises
        ------
        CorruptFileError
            If a text is not UTF-8.
        """
        try:
            texts.validate(full=True)
        except pa.ArrowInvalid as error:
            raise CorruptFileError(f"a text is not UTF-8: {error}") from error
        texts = texts.cast(pa.large_string())
        if texts.null_count:
            texts = pc.fill_null(texts, "")
        words, counts = self._words(texts)
        encoded = words.dictionary_encode()
        forms = [self._forms.of(word) for word in encoded.dictionary.to_pylist()]
        return Tokens(
            forms,
            encoded.indices.to_numpy(zero_copy_only=False).astype(np.int32, copy=False),
            counts,
            self.rules.base_tokenizer != "ngram",
        )

    def _words(self, texts: pa.Array) -> tuple[pa.Array, Counts]:
        """Return the words of texts, and the number of each text's."""
        if self.rules.base_tokenizer == "raw":
            return texts, np.ones(len(texts), np.int64)
        data, offsets = _bytes_of(texts)
        counts = np.zeros(len(texts), np.int64)
        if self.rules.base_tokenizer == "ngram":
            limits = (self.rules.min_ngram_length, self.rules.max_ngram_length, self.rules.prefix_only)
            out = np.empty(measure_grams(data, offsets, *limits, counts), np.uint8)
            ends = np.empty(int(counts.sum()) + 1, np.int64)
            num_words = split_grams(data, offsets, *limits, out, ends)
        else:
            is_simple = self.rules.base_tokenizer == "simple"
            num_bytes = int(offsets[-1] - offsets[0])
            out, ends = np.empty(num_bytes, np.uint8), np.empty(num_bytes // 2 + len(texts) + 1, np.int64)
            in_word = word_characters() if is_simple else visible_characters()
            num_words = split_words(data, offsets, in_word, out, ends, counts)
        buffers = [None, pa.py_buffer(ends[: num_words + 1]), pa.py_buffer(out)]
        return pa.Array.from_buffers(pa.large_string(), num_words, buffers), counts


def _bytes_of(texts: pa.Array) -> tuple[npt.NDArray[np.uint8], Counts]:
    """Return the bytes and the offsets of large strings without nulls."""
    data = texts.buffers()[2]
    return np.frombuffer(data or b"", np.uint8), offsets_of(texts).astype(np.int64)


def has_texts(value_type: pa.DataType) -> bool:
    """Return whether values of a type are texts or lists of texts."""
    if pa.types.is_list(value_type) or pa.types.is_large_list(value_type):
        value_type = value_type.value_type
    return bool(pa.types.is_string(value_type) or pa.types.is_large_string(value_type))


def joined_texts(lists: pa.Array) -> pa.Array:
    """Return the texts of lists, joined by spaces as in pylance.

    Nulls among them are left out, and so are empty texts before the first other one; a null list has no text.
    """
    lists = lists.cast(pa.list_(pa.large_string()))
    values, parents = items_of(lists)
    sizes = np.asarray(pc.fill_null(pc.binary_length(values), 0).to_numpy())
    # The number of texts that are not empty, up to each and before each list.
    so_far = np.cumsum(sizes > 0)
    before = np.append(0, so_far)[np.searchsorted(parents, np.arange(len(lists)))]
    kept = np.asarray(values.is_valid().to_numpy(zero_copy_only=False)) & (so_far > before[parents])
    counts = np.bincount(parents[kept], minlength=len(lists))
    offsets = pa.array(np.append(0, np.cumsum(counts)), pa.int32())
    parts = pa.ListArray.from_arrays(offsets, values.filter(pa.array(kept)))
    return pc.binary_join(parts, pa.scalar(" ", pa.large_string()))
