"""NGRAM indices: each trigram of the texts of a column, with the ids of the rows that have it.

The only file, `ngram_postings.lance`, has a row per token, and no other rows in it.

| column | |
|---|---|
| `tokens` | uint32: the number of a trigram, see `lance_format.kernels.texts.trigrams`; 0 stands for null |
| `posting_list` | a 64-bit Roaring bitmap of ids |

Texts are folded before: see `lance_format.table.indices.folding`. Ids are stable ones if the table has these and the
index is of version 0, and addresses otherwise.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyroaring

from lance_format.errors import CorruptFileError
from lance_format.expressions import nodes
from lance_format.expressions.functions.patterns import literal_texts
from lance_format.expressions.nodes import Call, Expression, Literal
from lance_format.kernels.texts.trigrams import NUM_SYMBOLS, NUM_TOKENS
from lance_format.lazy_dataclasses import dataclass
from lance_format.table.format.index_metadata import IndexMetadata
from lance_format.table.indices.index_file import IndexFile
from lance_format.table.indices.named_rows import NamedRows
from lance_format.table.indices.row_finder import FoundRows, KnownForm, Question, RowIds, found_in
from lance_format.table.indices.supersets import can_bound, superset
from lance_format.table.versions.table_version import TableVersion

NGRAM_FILE = "ngram_postings.lance"
NGRAM_COLUMNS = [
    pa.field("tokens", pa.uint32()),
    pa.field("posting_list", pa.binary(), nullable=False, metadata={"lance-encoding:compression": "none"}),
]

FORM = KnownForm(newest=1)
_RUNS = re.compile("[0-9A-Za-z]{3,}")
_MOST_CHARACTERS = 4096
_MOST_TEXTS = 64
_TOKENS_AT_ONCE = 4
_FEW_ROWS = 64
"""Rows so few that they are looked at rather than excluded by further trigrams."""

Tokens = npt.NDArray[np.int64]


def is_text(value_type: pa.DataType) -> bool:
    """Return whether values of a type have trigrams."""
    return bool(pa.types.is_string(value_type) or pa.types.is_large_string(value_type))


def tokens_of(texts: Iterable[str]) -> Tokens:
    """Return distinct tokens that any value has which contains some texts, perhaps in another case; ascending.

    Characters outside of ASCII are left out, since releases of the reference fold them differently. So is the end of
    very long texts.
    """
    found: set[int] = set()
    for text in texts:
        for run in _runs_of(text):
            symbols = [int(character, 36) + 1 for character in run]
            found.update(
                one * NUM_SYMBOLS**2 + two * NUM_SYMBOLS + three
                for one, two, three in zip(symbols, symbols[1:], symbols[2:], strict=False)
            )
    return np.array(sorted(found), np.int64)


def _runs_of(text: str) -> list[str]:
    """Return what has trigrams."""
    return _RUNS.findall(text[:_MOST_CHARACTERS])


def can_answer(question: Question) -> bool:
    """Return whether such an index bounds the rows for which a predicate holds."""
    return can_bound(question.predicate.expression, lambda node: _texts_of(node) is not None)


def find_rows(table: TableVersion, index: IndexMetadata, question: Question) -> FoundRows | None:
    """See `Finder`. The rows are those of a superset."""
    expression = question.predicate.expression
    with IndexFile(table, index, NGRAM_FILE, NGRAM_COLUMNS) as file:
        postings = _Postings(table, index, file)

        def rows_of(node: Expression) -> pyroaring.BitMap64 | None:
            texts = _texts_of(node)
            if texts is None:
                return None
            found = (postings.having_all(tokens_of(each)) for each in texts)
            return functools.reduce(_either, found, pyroaring.BitMap64())

        return found_in(superset(expression, rows_of, _both, _either), question.most_rows, is_exact=False)


def check_part(table: TableVersion, index: IndexMetadata, value_type: pa.DataType) -> None:  # noqa: ARG001
    """See `CheckPart`."""
    FORM.check(index)
    rows = NamedRows(table, index, by_id=FORM.names_ids(table, index))
    with IndexFile(table, index, NGRAM_FILE, NGRAM_COLUMNS) as file:
        _load_tokens(table, index, file)
        named = pyroaring.BitMap64()
        for batch in file.read_all():
            for stored in batch.column("posting_list"):
                named |= _parse(stored, file.path)
    rows.check(_greatest_ids(named), file.path)


def _greatest_ids(rows: pyroaring.BitMap64) -> RowIds:
    """Return the greatest id of each fragment."""
    found, left = [], len(rows)
    while left:
        found.append(rows[left - 1])
        left = rows.rank((found[-1] >> 32 << 32) - 1) if found[-1] >> 32 else 0
    return np.array(found, np.uint64)


def _parse(stored: pa.Scalar, path: str) -> pyroaring.BitMap64:
    try:
        return pyroaring.BitMap64.deserialize(stored.as_py())
    except (ValueError, IndexError, TypeError) as error:
        raise CorruptFileError(f"malformed bitmap of rows: {error}", path=path) from error


@dataclass(frozen=True, slots=True, eq=False)
class _StoredTokens:
    """The tokens of a file, ascending, and their rows in it."""

    numbers: Tokens
    positions: npt.NDArray[np.int64]


class _Postings:
    """The rows of tokens."""

    def __init__(self, table: TableVersion, index: IndexMetadata, file: IndexFile) -> None:
        self._file = file
        self._tokens = _load_tokens(table, index, file)

    def having_all(self, tokens: Tokens) -> pyroaring.BitMap64:
        """Return the rows that have all of some tokens, at least one."""
        places = np.searchsorted(self._tokens.numbers, tokens)
        if not np.array_equal(np.append(self._tokens.numbers, NUM_TOKENS)[places], tokens):
            return pyroaring.BitMap64()
        positions = self._tokens.positions[places]
        found: pyroaring.BitMap64 | None = None
        for start in range(0, positions.size, _TOKENS_AT_ONCE):
            for stored in self._file.take(np.sort(positions[start : start + _TOKENS_AT_ONCE]), "posting_list"):
                rows = _parse(stored, self._file.path)
                found = rows if found is None else found & rows
            if found is not None and len(found) <= _FEW_ROWS:
                break
        assert found is not None
        return found


def _load_tokens(table: TableVersion, index: IndexMetadata, file: IndexFile) -> _StoredTokens:
    """Return the tokens of an index, cached.

    Raises
    ------
    CorruptFileError
        If they are malformed.
    """
    key = (index.uuid, NGRAM_FILE)
    cached = table.cache.of_indices.get(key)
    if isinstance(cached, _StoredTokens):
        return cached
    if file.num_rows > NUM_TOKENS:
        raise CorruptFileError(f"{file.num_rows} tokens; there are at most {NUM_TOKENS}", path=file.path)
    tokens = file.read_column("tokens")
    if tokens.null_count:
        raise CorruptFileError("a token is null", path=file.path)
    numbers = tokens.to_numpy().astype(np.int64)
    order = np.argsort(numbers)
    found = _StoredTokens(numbers[order], order)
    if found.numbers.size and (found.numbers[-1] >= NUM_TOKENS or not np.diff(found.numbers).all()):
        raise CorruptFileError("a token is no trigram, or there twice", path=file.path)
    table.cache.of_indices.put(key, found, found.numbers.nbytes + order.nbytes)
    return found


def _texts_of(node: Expression) -> list[list[str]] | None:
    """Return alternatives of texts where a term is true: all of one are in the value, and have trigrams.

    None if they may be any.
    """
    found = _alternatives(node)
    if found is None or not all(any(map(_runs_of, texts)) for texts in found):
        return None
    return found


def _alternatives(node: Expression) -> list[list[str]] | None:
    match node:
        case Call("contains" | "starts_with" | "ends_with", (nodes.Column(), Literal(value))) if _is_known(value):
            return [[value.as_py()]]
        case nodes.Like(nodes.Column(), pattern):
            return [literal_texts(pattern)]
        case nodes.Comparison("=", nodes.Column(), Literal(value)) if _is_known(value):
            return [[value.as_py()]]
        case nodes.In(nodes.Column(), values) if is_text(values.type) and len(values) <= _MOST_TEXTS:
            return [[text] for text in values.drop_null().to_pylist()]
    return None


def _is_known(value: pa.Scalar) -> bool:
    return is_text(value.type) and value.is_valid


def _both(one: pyroaring.BitMap64, other: pyroaring.BitMap64) -> pyroaring.BitMap64:
    return one & other


def _either(one: pyroaring.BitMap64, other: pyroaring.BitMap64) -> pyroaring.BitMap64:
    return one | other
