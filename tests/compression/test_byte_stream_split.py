"""Byte stream split."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_format.compression import byte_stream_split, flat, general
from lance_format.compression.byte_codecs import LZ4, ZSTD
from lance_format.data_block import FixedWidthBlock
from lance_format.errors import CorruptFileError
from lance_format.proto import encodings_pb2
from tests.compression import blocks
from tests.compression.chunks import decompress, slices_of


@given(
    bits=st.sampled_from([32, 64]),
    count=blocks.counts,
    character=blocks.characters,
    scheme=st.sampled_from([None, LZ4, ZSTD]),
    seed=blocks.seeds,
)
def test_round_trip(bits: int, count: int, character: str, scheme: int | None, seed: int) -> None:
    block = blocks.fixed_block(bits, count, character, seed)
    chunks = byte_stream_split.compress(block)
    assert chunks.sizes[0].max() <= 8192
    if scheme is not None:
        chunks = general.compress(chunks, scheme, None)
    blocks.assert_same(decompress(chunks), block)


def test_golden_bytes() -> None:
    block = FixedWidthBlock(np.array([1.0, 2.0, 3.0, 4.0], "<f4").view(np.uint8), 32, 4)
    chunks = byte_stream_split.compress(block)
    assert chunks.buffers[0].tobytes().hex() == "0000000000000000" + "80004080" + "3f404040"


def test_lies_are_corrupt() -> None:
    chunks = byte_stream_split.compress(blocks.fixed_block(32, 3000, "random", 0))
    decompressor = byte_stream_split.parse(chunks.encoding)
    for wrong in (1, -1, 2**40):
        with pytest.raises(CorruptFileError, match="byte-split chunk"):
            decompressor.decompress(slices_of(chunks), chunks.num_values + wrong)
    inner = encodings_pb2.ByteStreamSplit(values=flat.describe(16))
    with pytest.raises(CorruptFileError, match="16 bits"):
        byte_stream_split.parse(encodings_pb2.CompressiveEncoding(byte_stream_split=inner))
