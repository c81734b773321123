"""Posting lists as files store them. They are validated when they are read, and decoded as often as they are needed."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_format.errors import CorruptFileError, NotSupportedError
from lance_format.kernels.texts.best_documents import bound_blocks
from lance_format.kernels.texts.posting_lists import (
    BLOCK_ROWS,
    decode_early_positions,
    decode_positions,
    decode_postings,
)
from lance_format.lazy_dataclasses import dataclass
from lance_format.list_items import offsets_of
from lance_format.table.indices.texts.index_files import PartFile

_VARINTS = {b"varint_delta_v1": True, b"fixed32_v1": False, None: False}


@dataclass(frozen=True, slots=True, eq=False)
class Postings:
    """The documents that have a token.

    Parameters
    ----------
    documents : uint32[num_documents]
        Ascending.
    frequencies : uint32[num_documents]
        How often each has it.
    positions : uint32[frequencies.sum()], optional
        Where it is in each, ascending.
    """

    documents: npt.NDArray[np.uint32]
    frequencies: npt.NDArray[np.uint32]
    positions: npt.NDArray[np.uint32] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class StoredPositions:
    """The positions of a token.

    Parameters
    ----------
    data : uint8[…]
    offsets : int64[num_blocks + 1]
        The blocks of 128 documents each; those of the parts of documents in files of version 1.
    parts : int64[num_documents + 1], optional
        The parts of each document; None except in files of version 1.
    """

    data: npt.NDArray[np.uint8]
    offsets: npt.NDArray[np.int64]
    parts: npt.NDArray[np.int64] | None

    @property
    def size_bytes(self) -> int:
        """Size in memory."""
        return self.data.nbytes + self.offsets.nbytes + (0 if self.parts is None else self.parts.nbytes)

    def decode(self, frequencies: npt.NDArray[np.uint32]) -> tuple[npt.NDArray[np.uint32], int]:
        """Return the positions, and -1 - the index of the first malformed block or document if there is one.

        Parameters
        ----------
        frequencies : uint32[num_documents]
        """
        positions = np.empty(int(frequencies.sum(dtype=np.uint64)), np.uint32)
        if self.parts is None:
            return positions, decode_positions(self.data, self.offsets, frequencies, positions)
        return positions, decode_early_positions(self.data, self.offsets, self.parts, frequencies, positions)


@dataclass(frozen=True, slots=True, eq=False)
class PostingList:
    """A posting list, validated.

    Parameters
    ----------
    data : uint8[…]
    offsets : int64[num_blocks + 1]
        The blocks, from 0 to the size of `data`.
    num_documents : int
        Number of documents that have the token.
    varints : bool
        See `decode_postings`.
    positions : StoredPositions, optional
    lasts, totals : int64[num_blocks]
    bounds : float32[num_blocks]
        See `bound_blocks`.
    mean_length : float32
        The mean that the bounds are of.
    """

    data: npt.NDArray[np.uint8]
    offsets: npt.NDArray[np.int64]
    num_documents: int
    varints: bool
    positions: StoredPositions | None
    lasts: npt.NDArray[np.int64]
    totals: npt.NDArray[np.int64]
    bounds: npt.NDArray[np.float32]
    mean_length: np.float32

    @property
    def has_early_positions(self) -> bool:
        """True if its positions are those of files of version 1."""
        return self.positions is not None and self.positions.parts is not None

    @property
    def size_bytes(self) -> int:
        """Size in memory."""
        size = self.data.nbytes + self.offsets.nbytes + self.lasts.nbytes + self.totals.nbytes + self.bounds.nbytes
        return size + (0 if self.positions is None else self.positions.size_bytes)

    def decode(self) -> Postings:
        """Return the documents, their frequencies, and the positions if they are there."""
        documents, frequencies = (np.empty(self.num_documents, np.uint32) for _ in range(2))
        last = int(self.lasts[-1]) if self.lasts.size else -1
        decode_postings(self.data, self.offsets, last + 1, self.varints, documents, frequencies)
        positions = None if self.positions is None else self.positions.decode(frequencies)[0]
        return Postings(documents, frequencies, positions)


def read_lists(
    file: PartFile, rows: list[int], lengths: npt.NDArray[np.uint32], mean_length: np.float32, *, with_positions: bool
) -> list[PostingList]:
    """Read and validate posting lists.

    Parameters
    ----------
    file : PartFile
    rows : list of int
        The numbers of their tokens.
    lengths : uint32[num_documents]
        Number of tokens of each document.
    mean_length : float32
    with_positions : bool

    Raises
    ------
    CorruptFileError
        If a list is malformed.
    NotSupportedError
        If its form is not known here.
    """
    codec = file.metadata.get(b"posting_tail_codec")
    if codec not in _VARINTS or file.metadata.get(b"posting_block_size", b"128") != b"128":
        raise NotSupportedError(f"posting lists of the form {codec!r} are not supported")
    sizes, lists = file.take("_length", rows).to_pylist(), file.take("_posting", rows)
    positions = _read_positions(file, rows, sizes) if with_positions else [None] * len(rows)
    return [
        _validated(file, lists[at], int(size), _VARINTS[codec], found, lengths, mean_length)
        for at, (size, found) in enumerate(zip(sizes, positions, strict=True))
    ]


def _validated(
    file: PartFile, stored: pa.Scalar, size: int, varints: bool, positions: StoredPositions | None,
    lengths: npt.NDArray[np.uint32], mean_length: np.float32,
) -> PostingList:  # fmt: skip
    blocks = stored.values
    num_blocks = -(-size // BLOCK_ROWS)
    if blocks is None or len(blocks) != num_blocks or size > lengths.size or blocks.null_count:
        raise CorruptFileError(f"a posting list of {size} documents has other blocks", path=file.path)
    data, offsets = _bytes_of(blocks)
    documents, frequencies = np.empty(size, np.uint32), np.empty(size, np.uint32)
    count = decode_postings(data, offsets, lengths.size, varints, documents, frequencies)
    if count < 0:
        raise CorruptFileError(f"block {-1 - count} of a posting list is malformed", path=file.path)
    if positions is not None:
        total = int(frequencies.sum(dtype=np.uint64))
        # A position takes a bit of a byte at least, except in packed groups of zeros.
        if total > 128 * (positions.data.size + 1):
            raise CorruptFileError("positions of tokens are of other documents", path=file.path)
        _, count = positions.decode(frequencies)
        if count < 0:
            raise CorruptFileError(f"block {-1 - count} of positions is malformed", path=file.path)
    lasts, totals = np.empty(num_blocks, np.int64), np.empty(num_blocks, np.int64)
    bounds = np.empty(num_blocks, np.float32)
    bound_blocks(documents, frequencies, lengths, mean_length, lasts, totals, bounds)
    return PostingList(data, offsets, size, varints, positions, lasts, totals, bounds, mean_length)


def _read_positions(file: PartFile, rows: list[int], sizes: list[int]) -> list[StoredPositions]:
    codec = file.metadata.get(b"positions_codec")
    if codec is None:
        stored = file.take("_position", rows)
        return [_early_positions(file, stored[at], int(size)) for at, size in enumerate(sizes)]
    if codec != b"packed_delta_v1":
        raise NotSupportedError(f"positions of the form {codec!r} are not supported")
    data, offsets = file.take("_compressed_position", rows), file.take("_position_block_offset", rows)
    return [_positions(file, data[at], offsets[at], int(size)) for at, size in enumerate(sizes)]


def _positions(file: PartFile, data: pa.Scalar, offsets: pa.Scalar, size: int) -> StoredPositions:
    stored, starts = np.frombuffer(data.as_buffer() or b"", np.uint8), offsets.values
    is_whole = starts is not None and len(starts) == -(-size // BLOCK_ROWS) and not starts.null_count
    bounds = np.append(starts.to_numpy().astype(np.int64), stored.size) if is_whole else np.zeros(0, np.int64)
    if not is_whole or (bounds[1:] < bounds[:-1]).any():
        raise CorruptFileError("positions of tokens have other blocks than their documents", path=file.path)
    return StoredPositions(*_moved(stored, bounds), None)


def _early_positions(file: PartFile, stored: pa.Scalar, size: int) -> StoredPositions:
    documents = stored.values
    is_whole = documents is not None and len(documents) == size and not documents.null_count
    parts = documents.flatten() if is_whole else None
    if parts is None or parts.null_count:
        raise CorruptFileError("positions of tokens are of other documents", path=file.path)
    bounds = np.asarray(documents.offsets.to_numpy(), np.int64)
    return StoredPositions(*_bytes_of(parts), bounds - bounds[0])


def _bytes_of(blocks: pa.Array) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    return _moved(np.frombuffer(blocks.buffers()[2] or b"", np.uint8), offsets_of(blocks).astype(np.int64, copy=False))


def _moved(
    data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Return the bytes between the first and the last offset, copied, and offsets in them."""
    return data[offsets[0] : offsets[-1]].copy(), offsets - offsets[0]
