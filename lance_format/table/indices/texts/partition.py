"""A partition of a text index: its documents, its tokens and their posting lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lance_format.errors import CorruptFileError
from lance_format.lazy_dataclasses import dataclass
from lance_format.lazy_properties import cached_property
from lance_format.table.format.index_metadata import IndexMetadata
from lance_format.table.indices.opening import index_path
from lance_format.table.indices.texts.index_files import PartFile, open_file
from lance_format.table.indices.texts.posting_list import PostingList, read_lists
from lance_format.table.versions.table_version import TableVersion
from lance_format.texts.dictionary import TokenDictionary, serialize_dictionary

_Loaded = TypeVar("_Loaded", TokenDictionary, "Documents")


@dataclass(frozen=True, slots=True, eq=False)
class Documents:
    """The documents of a partition.

    Parameters
    ----------
    row_ids : uint64[num_documents]
    lengths : uint32[num_documents]
        Number of tokens of each.
    num_tokens : int
        Number of tokens of all.
    """

    row_ids: npt.NDArray[np.uint64]
    lengths: npt.NDArray[np.uint32]
    num_tokens: int


class Partition:
    """A partition of a part of an index.

    Parameters
    ----------
    table : TableVersion
    index : IndexMetadata
    number : int
    """

    def __init__(self, table: TableVersion, index: IndexMetadata, number: int) -> None:
        self._table = table
        self.index = index
        self.number = number

    @cached_property
    def documents(self) -> Documents:
        """Its documents, cached."""
        return self._cached("docs", Documents) or self._load_documents()

    @cached_property
    def dictionary(self) -> TokenDictionary:
        """Its tokens, cached."""
        return self._cached("tokens", TokenDictionary) or self._load_dictionary()

    def find_lists(
        self, tokens: Sequence[str], mean_length: np.float32, *, with_positions: bool = False
    ) -> dict[str, PostingList]:
        """Return the posting lists of those tokens that occur, cached.

        Parameters
        ----------
        tokens : sequence of str
        mean_length : float32
            Mean number of tokens of a document, which bounds of scores depend on.
        with_positions : bool

        Raises
        ------
        CorruptFileError
            If a list is malformed.
        """
        found = {token: self._cached_list(token, mean_length, with_positions) for token in tokens}
        numbers = {token: self.dictionary.find(token) for token, known in found.items() if known is None}
        missing = {token: number for token, number in numbers.items() if number is not None}
        if missing:
            with open_file(self._table, self.index, self.file_name("invert")) as file:
                lengths = self.documents.lengths
                read = read_lists(file, list(missing.values()), lengths, mean_length, with_positions=with_positions)
            for token, made in zip(missing, read, strict=True):
                found[token] = made
                self._table.cache.of_indices.put(self._key_of_list(token, with_positions), made, made.size_bytes)
        return {token: known for token, known in found.items() if known is not None}

    def _cached_list(self, token: str, mean_length: np.float32, with_positions: bool) -> PostingList | None:
        found = self._table.cache.of_indices.get(self._key_of_list(token, with_positions))
        return found if isinstance(found, PostingList) and found.mean_length == mean_length else None

    def _key_of_list(self, token: str, with_positions: bool) -> tuple[str, str, bool]:
        return index_path(self._table, self.index, self.file_name("invert")), token, with_positions

    def _load_documents(self) -> Documents:
        with open_file(self._table, self.index, self.file_name("docs")) as file:
            row_ids, lengths = file.read("_rowid"), file.read("_num_tokens")
            if row_ids.null_count or lengths.null_count:
                raise CorruptFileError("a document is null", path=file.path)
        num_tokens = int(lengths.to_numpy().sum(dtype=np.uint64))
        documents = Documents(row_ids.to_numpy(), lengths.to_numpy(), num_tokens)
        self._keep("docs", documents, 12 * len(lengths))
        return documents

    def _load_dictionary(self) -> TokenDictionary:
        with open_file(self._table, self.index, self.file_name("tokens")) as file:
            if file.has("_token"):
                dictionary = _listed_tokens(file)
            else:
                stored = file.read("_token_fst_bytes")
                if len(stored) != 1 or stored.null_count:
                    raise CorruptFileError(f"there are {len(stored)} dictionaries of tokens, not 1", path=file.path)
                dictionary = TokenDictionary(stored[0].as_py(), file.path)
        self._keep("tokens", dictionary, dictionary.size_bytes)
        return dictionary

    def file_name(self, what: str) -> str:
        """Return the name of the file of its `docs`, `tokens` or posting lists (`invert`)."""
        return f"part_{self.number}_{what}.lance"

    def _cached(self, what: str, kind: type[_Loaded]) -> _Loaded | None:
        found = self._table.cache.of_indices.get((index_path(self._table, self.index, self.file_name(what)), "content"))
        return found if isinstance(found, kind) else None

    def _keep(self, what: str, content: object, size_bytes: int) -> None:
        self._table.cache.of_indices.put(
            (index_path(self._table, self.index, self.file_name(what)), "content"), content, size_bytes
        )


def _listed_tokens(file: PartFile) -> TokenDictionary:
    """Return the tokens of a file that has a row for each."""
    tokens, numbers = file.read("_token"), file.read("_token_id")
    if tokens.null_count or numbers.null_count:
        raise CorruptFileError("a token is null", path=file.path)
    order = pc.sort_indices(tokens)  # By bytes.
    ordered = tokens.take(order)
    rows = np.sort(numbers.to_numpy())
    if pc.count_distinct(ordered).as_py() != len(ordered) or not np.array_equal(rows, np.arange(rows.size)):
        raise CorruptFileError("a token, or the number of one, is there twice", path=file.path)
    data = serialize_dictionary(ordered.cast(pa.binary()).to_pylist())
    return TokenDictionary(data, file.path, numbers.take(order).to_numpy())
