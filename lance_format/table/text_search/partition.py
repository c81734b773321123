"""A partition of a text index: its documents, its tokens and their posting lists."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_format.errors import CorruptFileError, NotSupportedError
from lance_format.kernels.posting_lists import BLOCK_ROWS, decode_early_positions, decode_positions, decode_postings
from lance_format.lazy_dataclasses import dataclass
from lance_format.table.format.index_metadata import IndexMetadata
from lance_format.table.indices.opening import index_path
from lance_format.table.indices.texts.index_files import PartFile, open_file
from lance_format.table.text_search.postings import Postings
from lance_format.table.versions.table_version import TableVersion
from lance_format.texts.dictionary import TokenDictionary

_Loaded = TypeVar("_Loaded", TokenDictionary, "Documents")
_VARINTS = {b"varint_delta_v1": True, b"fixed32_v1": False, None: False}


@dataclass(frozen=True, slots=True, eq=False)
class Documents:
    """The documents of a partition.

    Parameters
    ----------
    row_ids : uint64[num_documents]
    lengths : uint32[num_documents]
        Number of tokens of each.
    """

    row_ids: npt.NDArray[np.uint64]
    lengths: npt.NDArray[np.uint32]

    @property
    def num_tokens(self) -> int:
        """Number of tokens of all."""
        return int(self.lengths.sum(dtype=np.uint64))


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

    def find_postings(self, tokens: Sequence[str], *, with_positions: bool = False) -> dict[str, Postings]:
        """Read the posting lists of those tokens that occur.

        Parameters
        ----------
        tokens : sequence of str
        with_positions : bool
        """
        numbers = {token: self.dictionary.find(token) for token in tokens}
        known = {token: number for token, number in numbers.items() if number is not None}
        if not known:
            return {}
        num_documents = self.documents.lengths.size
        with open_file(self._table, self.index, self._name("invert")) as file:
            rows = list(known.values())
            lengths, lists = file.take("_length", rows), file.take("_posting", rows)
            found = [
                _decode(file, lists, row, int(length), num_documents) for row, length in enumerate(lengths.to_pylist())
            ]
            if with_positions:
                found = self._with_positions(file, rows, found)
        return dict(zip(known, found, strict=True))

    def _with_positions(self, file: PartFile, rows: list[int], found: list[Postings]) -> list[Postings]:
        codec = file.metadata.get(b"positions_codec")
        if codec is None:
            stored = file.take("_position", rows)
            return [_decode_early_positions(file, stored[at], postings) for at, postings in enumerate(found)]
        if codec != b"packed_delta_v1":
            raise NotSupportedError(f"positions of the form {codec!r} are not supported")
        data, offsets = file.take("_compressed_position", rows), file.take("_position_block_offset", rows)
        return [_decode_positions(file, data[at], offsets[at], postings) for at, postings in enumerate(found)]

    def _load_documents(self) -> Documents:
        with open_file(self._table, self.index, self._name("docs")) as file:
            row_ids, lengths = file.read("_rowid"), file.read("_num_tokens")
            if row_ids.null_count or lengths.null_count:
                raise CorruptFileError("a document is null", path=file.path)
        documents = Documents(row_ids.to_numpy(), lengths.to_numpy())
        self._keep("docs", documents, 12 * len(lengths))
        return documents

    def _load_dictionary(self) -> TokenDictionary:
        with open_file(self._table, self.index, self._name("tokens")) as file:
            stored = file.read("_token_fst_bytes")
            if len(stored) != 1 or stored.null_count:
                raise CorruptFileError(f"there are {len(stored)} dictionaries of tokens, not 1", path=file.path)
            dictionary = TokenDictionary(stored[0].as_py(), file.path)
        self._keep("tokens", dictionary, stored.nbytes)
        return dictionary

    def _name(self, what: str) -> str:
        return f"part_{self.number}_{what}.lance"

    def _cached(self, what: str, kind: type[_Loaded]) -> _Loaded | None:
        found = self._table.cache.get((index_path(self._table, self.index, self._name(what)), "content"))
        return found if isinstance(found, kind) else None

    def _keep(self, what: str, content: object, size_bytes: int) -> None:
        self._table.cache.put((index_path(self._table, self.index, self._name(what)), "content"), content, size_bytes)


def _decode(file: PartFile, lists: pa.Array, row: int, length: int, num_documents: int) -> Postings:
    codec = file.metadata.get(b"posting_tail_codec")
    if codec not in _VARINTS or file.metadata.get(b"posting_block_size", b"128") != b"128":
        raise NotSupportedError(f"posting lists of the form {codec!r} are not supported")
    blocks = lists[row].values
    num_blocks = -(-length // BLOCK_ROWS)
    if blocks is None or len(blocks) != num_blocks or length > num_documents or blocks.null_count:
        raise CorruptFileError(f"a posting list of {length} documents has other blocks", path=file.path)
    data, offsets = _bytes_of(blocks)
    documents, frequencies = np.empty(length, np.uint32), np.empty(length, np.uint32)
    count = decode_postings(data, offsets, num_documents, _VARINTS[codec], documents, frequencies)
    if count < 0:
        raise CorruptFileError(f"block {-1 - count} of a posting list is malformed", path=file.path)
    return Postings(documents, frequencies)


def _decode_positions(file: PartFile, data: pa.Scalar, offsets: pa.Scalar, postings: Postings) -> Postings:
    stored = np.frombuffer(data.as_buffer() or b"", np.uint8)
    starts = np.asarray(offsets.values.to_numpy(zero_copy_only=False), np.int64)
    bounds = np.append(starts, stored.size)
    num_blocks = -(-postings.documents.size // BLOCK_ROWS)
    total = int(postings.frequencies.sum(dtype=np.uint64))
    # A position takes a bit of a byte at least, except in packed groups of zeros.
    if starts.size != num_blocks or (bounds[1:] < bounds[:-1]).any() or total > 128 * (stored.size + 1):
        raise CorruptFileError("positions of tokens have other blocks than their documents", path=file.path)
    positions = np.empty(total, np.uint32)
    count = decode_positions(stored, bounds, postings.frequencies, positions)
    if count < 0:
        raise CorruptFileError(f"block {-1 - count} of positions is malformed", path=file.path)
    return Postings(postings.documents, postings.frequencies, positions)


def _decode_early_positions(file: PartFile, stored: pa.Scalar, postings: Postings) -> Postings:
    documents = stored.values
    total = int(postings.frequencies.sum(dtype=np.uint64))
    is_whole = documents is not None and len(documents) == postings.documents.size and not documents.null_count
    parts = documents.flatten() if is_whole else None
    if parts is None or parts.null_count or total > 128 * (parts.nbytes + 1):
        raise CorruptFileError("positions of tokens are of other documents", path=file.path)
    data, offsets = _bytes_of(parts)
    bounds = np.asarray(documents.offsets.to_numpy(), np.int64)
    positions = np.empty(total, np.uint32)
    count = decode_early_positions(data, offsets, bounds - bounds[0], postings.frequencies, positions)
    if count < 0:
        raise CorruptFileError(f"the positions of document {-1 - count} are malformed", path=file.path)
    return Postings(postings.documents, postings.frequencies, positions)


def _bytes_of(blocks: pa.Array) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    _, offsets, data = blocks.buffers()
    found = np.frombuffer(offsets, np.int64)[blocks.offset : blocks.offset + len(blocks) + 1]
    return np.frombuffer(data or b"", np.uint8), found
