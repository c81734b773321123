"""Writing the files of a partition of a text index; see `lance_format.table.indices.texts.index_files`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_format.kernels.texts.posting_list_encoding import GROUP_BLOCKS, encode_positions, encode_postings
from lance_format.kernels.texts.posting_lists import BLOCK_ROWS
from lance_format.table.indices.texts.gathered_tokens import GatheredTokens, PostingLists
from lance_format.table.indices.written_parts import OpenFile, write_file
from lance_format.texts.bm25 import mean_length, token_weights
from lance_format.texts.dictionary import serialize_dictionary

FORMAT_VERSION = 2
"""Of what is written."""

_PACKED = {"lance-encoding:compression": "none"}
_BLOCKS = pa.list_(pa.field("item", pa.large_binary(), metadata=_PACKED))
_TOKEN_COLUMNS = [
    pa.field("_token_fst_bytes", pa.large_binary(), nullable=False, metadata=_PACKED),
    pa.field("_token_next_id", pa.uint32(), nullable=False),
    pa.field("_token_total_length", pa.uint64(), nullable=False),
]
_DOCUMENT_COLUMNS = [
    pa.field("_rowid", pa.uint64(), nullable=False),
    pa.field("_num_tokens", pa.uint32(), nullable=False),
]
_POSTING_COLUMNS = [
    pa.field("_posting", _BLOCKS, nullable=False),
    pa.field("_max_score", pa.float32(), nullable=False),
    pa.field("_length", pa.uint32(), nullable=False),
    pa.field("_impacts", _BLOCKS, nullable=False),
]
_POSITION_COLUMNS = [
    pa.field("_compressed_position", pa.large_binary(), nullable=False, metadata=_PACKED),
    pa.field("_position_block_offset", pa.list_(pa.uint32()), nullable=False),
]
POSTING_METADATA: Mapping[bytes, bytes] = {
    b"format_version": b"%d" % FORMAT_VERSION,
    b"posting_block_size": b"%d" % BLOCK_ROWS,
    b"posting_tail_codec": b"varint_delta_v1",
}
POSITION_METADATA: Mapping[bytes, bytes] = {
    b"positions_codec": b"packed_delta_v1",
    b"positions_layout": b"shared_stream_v2",
}
_BEST = np.float32(2.2)
"""What a frequency tends to in BM25: `k1 + 1`."""

_TOKENS_AT_ONCE = 4096
_BATCH_ROWS = 1 << 16


def write_partition(
    open_file: OpenFile, number: int, gathered: GatheredTokens, *, with_positions: bool
) -> dict[str, int]:
    """Write the files of a partition, and return their sizes in bytes by name.

    Parameters
    ----------
    open_file : callable
    number : int
        Of the partition.
    gathered : GatheredTokens
        Its occurrences are taken.
    with_positions : bool
    """
    lists, lengths, ids = gathered.posting_lists(with_positions=with_positions), gathered.lengths, gathered.ids
    columns = _POSTING_COLUMNS + (_POSITION_COLUMNS if with_positions else [])
    metadata = {**POSTING_METADATA, **(POSITION_METADATA if with_positions else {})}
    num_tokens = b"%d" % lengths.sum(dtype=np.uint64)
    tokens = [
        pa.array([serialize_dictionary(lists.tokens)], pa.large_binary()),
        pa.array([len(lists.tokens)], pa.uint32()),
        pa.array([sum(map(len, lists.tokens))], pa.uint64()),
    ]
    invert, docs, words = (f"part_{number}_{what}.lance" for what in ("invert", "docs", "tokens"))
    return {
        invert: write_file(open_file, invert, columns, _postings(lists, lengths), metadata),
        words: write_file(open_file, words, _TOKEN_COLUMNS, [tokens]),
        docs: write_file(open_file, docs, _DOCUMENT_COLUMNS, _documents(ids, lengths), {b"total_tokens": num_tokens}),
    }


def _documents(ids: npt.NDArray[np.uint64], lengths: npt.NDArray[np.uint32]) -> Iterator[list[pa.Array]]:
    for start in range(0, ids.size, _BATCH_ROWS):
        yield [pa.array(ids[start : start + _BATCH_ROWS]), pa.array(lengths[start : start + _BATCH_ROWS])]


def _postings(lists: PostingLists, lengths: npt.NDArray[np.uint32]) -> Iterator[list[pa.Array]]:
    """Yield the columns of some tokens at a time."""
    mean = mean_length(int(lengths.sum(dtype=np.uint64)), lengths.size)
    first_position = 0
    for first in range(0, len(lists.tokens), _TOKENS_AT_ONCE):
        bounds = lists.starts[first : first + _TOKENS_AT_ONCE + 1]
        documents, frequencies = (values[bounds[0] : bounds[-1]] for values in (lists.documents, lists.frequencies))
        starts = bounds - bounds[0]
        arrays = _encoded(documents, frequencies, starts, lengths, mean)
        if lists.positions is not None:
            last = first_position + int(frequencies.sum(dtype=np.uint64))
            arrays += _encoded_positions(lists.positions[first_position:last], frequencies, starts)
            first_position = last
        yield arrays


def _encoded(
    documents: npt.NDArray[np.uint32],
    frequencies: npt.NDArray[np.uint32],
    starts: npt.NDArray[np.int64],
    lengths: npt.NDArray[np.uint32],
    mean: np.float32,
) -> list[pa.Array]:
    counts = np.diff(starts)
    num_blocks, num_groups = -(-counts // BLOCK_ROWS), -(-counts // (BLOCK_ROWS * GROUP_BLOCKS))
    scores = np.zeros(counts.size, np.float32)
    out = np.empty(10 * documents.size + 14 * num_blocks.sum(), np.uint8)
    impacts = np.empty(2 * (12 * documents.size + 10 * num_blocks.sum()), np.uint8)
    block_ends = np.empty(num_blocks.sum(), np.int64)
    impact_ends = np.empty(num_blocks.sum() + num_groups.sum(), np.int64)
    weights = token_weights(counts, lengths.size) * _BEST
    encode_postings(
        documents, frequencies, starts, lengths, weights, mean, scores, out, block_ends, impacts, impact_ends
    )
    return [
        _lists(num_blocks, _binary(block_ends, out)),
        pa.array(scores),
        pa.array(counts.astype(np.uint32)),
        _lists(num_blocks + num_groups, _binary(impact_ends, impacts)),
    ]


def _encoded_positions(
    positions: npt.NDArray[np.uint32], frequencies: npt.NDArray[np.uint32], starts: npt.NDArray[np.int64]
) -> list[pa.Array]:
    num_blocks = -(-np.diff(starts) // BLOCK_ROWS)
    out = np.empty(6 * positions.size + num_blocks.sum(), np.uint8)
    ends, block_starts = np.empty(num_blocks.size, np.int64), np.empty(num_blocks.sum(), np.uint32)
    encode_positions(positions, frequencies, starts, out, ends, block_starts)
    return [_binary(ends, out), _lists(num_blocks, pa.array(block_starts))]


def _binary(ends: npt.NDArray[np.int64], data: npt.NDArray[np.uint8]) -> pa.Array:
    """Return the parts of bytes that end at offsets."""
    offsets = np.append(0, ends)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data[: offsets[-1]].copy())]
    return pa.Array.from_buffers(pa.large_binary(), ends.size, buffers)


def _lists(counts: npt.NDArray[np.int64], items: pa.Array) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array(np.append(0, np.cumsum(counts)).astype(np.int32)), items)
