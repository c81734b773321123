"""General compression: zstd and LZ4 over every other one."""

from __future__ import annotations

import contextlib
import tracemalloc

import numpy as np
import pyarrow as pa
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from lance_format.compression import bitpacking, byte_codecs, flat, general, registry, rle, variable
from lance_format.compression.byte_codecs import LZ4, ZSTD
from lance_format.compression.codec import CompressedChunks, Context
from lance_format.data_block import BufferSlices, FixedWidthBlock
from lance_format.errors import CorruptFileError
from lance_format.proto import encodings_pb2
from tests.compression import blocks
from tests.compression.chunks import decompress, place

_SCHEMES = (LZ4, ZSTD)


def _inner(block: FixedWidthBlock, name: str) -> CompressedChunks:
    if name == "rle":
        return rle.compress(block, bitpacking.measure(block)[1])
    if name == "packed":
        return bitpacking.compress_inline(block, bitpacking.block_widths(block))
    return flat.compress(block)


@given(
    scheme=st.sampled_from(_SCHEMES),
    inner=st.sampled_from(["flat", "packed", "rle"]),
    bits=st.sampled_from([8, 16, 32, 64]),
    count=blocks.counts,
    character=blocks.characters,
    seed=blocks.seeds,
)
def test_round_trip_over_fixed_widths(
    scheme: int, inner: str, bits: int, count: int, character: str, seed: int
) -> None:
    block = blocks.fixed_block(bits, count, character, seed)
    plain = _inner(block, inner)
    chunks = general.compress(plain, scheme, None)
    assert chunks.buffers[0].size <= plain.buffers[0].size
    blocks.assert_same(decompress(chunks), block)


@pytest.mark.slow
@given(scheme=st.sampled_from(_SCHEMES), character=blocks.characters, seed=blocks.seeds)
def test_round_trip_over_byte_strings(scheme: int, character: str, seed: int) -> None:
    block = blocks.byte_strings(2000, character, seed)
    blocks.assert_same(decompress(general.compress(variable.compress(block), scheme, None)), block)


@given(scheme=st.sampled_from(_SCHEMES), bits=st.sampled_from([32, 64]), character=blocks.characters, seed=blocks.seeds)
def test_round_trip_of_single_values(scheme: int, bits: int, character: str, seed: int) -> None:
    block = blocks.byte_strings(50, character, seed, bits)
    small, encoding = general.compress_values(block, variable.describe(bits), scheme, None)
    back = registry.parse_per_value_decompressor(encoding).decompress_values(small)
    blocks.assert_same(back, block)


@pytest.mark.parametrize("scheme", _SCHEMES)
def test_round_trip_of_blocks(scheme: int) -> None:
    block = blocks.byte_strings(3000, "few", 0)
    data, encoding = general.compress_block(variable.compress_block(block), variable.describe(32), scheme, None)
    assert encoding.WhichOneof("compression") == "general"
    back = registry.parse_decompressor(encoding, Context.BLOCK).decompress([BufferSlices.whole(data)], np.array([3000]))
    blocks.assert_same(back, block)
    noise = np.random.default_rng(0).integers(0, 256, 500, np.uint8)
    assert general.compress_block(noise, flat.describe(8), scheme, None) == (noise, flat.describe(8))


def _expand(scheme: int, data: bytes, limit: int | None = None) -> bytes:
    limits = None if limit is None else np.array([limit])
    whole = BufferSlices.whole(np.frombuffer(data, np.uint8))
    expanded = byte_codecs.expand(scheme, whole, limits, 8)
    return expanded.data[: int(expanded.sizes[0])].tobytes()


def test_golden_bytes() -> None:
    assert _expand(LZ4, bytes.fromhex("03000000" + "30616263")) == b"abc"
    frame = bytes.fromhex("28b52ffd2003190000616263")
    assert _expand(ZSTD, (3).to_bytes(8, "little") + frame) == b"abc"
    assert _expand(ZSTD, frame) == b"abc"


def test_zstd_frames_without_their_size() -> None:
    content = b"some text " * 500
    frame = zstandard.ZstdCompressor(write_content_size=False).compress(content)
    assert zstandard.frame_content_size(frame) == -1
    assert _expand(ZSTD, frame) == content
    assert _expand(ZSTD, len(content).to_bytes(8, "little") + frame) == content
    with pytest.raises(CorruptFileError, match="more than"):
        _expand(ZSTD, frame, 4999)
    with pytest.raises(CorruptFileError, match="says 5001"):
        _expand(ZSTD, (5001).to_bytes(8, "little") + frame)


def test_empty_buffers_expand_to_nothing() -> None:
    empty = BufferSlices(np.zeros(0, np.uint8), np.zeros(2, np.int64), np.zeros(2, np.int64))
    for scheme in _SCHEMES:
        assert byte_codecs.expand(scheme, empty, None, 1).data.size == 0


@given(content=st.one_of(st.binary(max_size=400), st.binary(max_size=9).map(lambda piece: piece * 90)))
def test_lz4_blocks_of_another_compressor(content: bytes) -> None:
    block = pa.Codec("lz4_raw").compress(content, asbytes=True)
    data = len(content).to_bytes(4, "little") + block
    assert _expand(LZ4, data) == content
    for wrong in (len(content) + 1, max(len(content) - 1, 0)):
        if wrong != len(content):
            with pytest.raises(CorruptFileError):
                _expand(LZ4, wrong.to_bytes(4, "little") + block)


@given(scheme=st.sampled_from(_SCHEMES), data=st.data())
def test_damaged_buffers_never_read_out_of_bounds(scheme: int, data: st.DataObject) -> None:
    content = b"repetition, repetition, repetition and noise \x93\x01\xfe" * 8
    small, _ = byte_codecs.shrink(scheme, None, BufferSlices.whole(np.frombuffer(content, np.uint8)))
    damaged = bytearray(small.tobytes())
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    damaged = damaged[: data.draw(st.integers(0, len(damaged)))]
    with contextlib.suppress(CorruptFileError):
        assert len(_expand(scheme, bytes(damaged), 10_000)) <= 10_000


@pytest.mark.parametrize(("scheme", "prefix"), [(LZ4, 4), (ZSTD, 8)])
def test_sizes_beyond_belief_are_refused_before_anything_is_allocated(scheme: int, prefix: int) -> None:
    small, _ = byte_codecs.shrink(scheme, None, BufferSlices.whole(np.zeros(1000, np.uint8)))
    huge = b"\xff" * (prefix - 1) + b"\x7f" + small.tobytes()[prefix:]
    with pytest.raises(CorruptFileError):
        _expand(scheme, huge)
    with pytest.raises(CorruptFileError, match="at most 999 fit"):
        _expand(scheme, small.tobytes(), 999)


def test_frames_that_say_they_are_large_are_believed_as_far_as_they_are() -> None:
    content = bytes(64 << 20)
    frame = zstandard.ZstdCompressor().compress(content)
    assert _expand(ZSTD, frame) == content
    assert _expand(ZSTD, len(content).to_bytes(8, "little") + frame) == content
    with pytest.raises(CorruptFileError, match="says 67108865"):
        _expand(ZSTD, (len(content) + 1).to_bytes(8, "little") + frame)
    tracemalloc.start()
    try:
        with pytest.raises(CorruptFileError):
            _expand(ZSTD, frame[:100] + b"\xff" * len(frame))
        assert tracemalloc.get_traced_memory()[1] < 32 << 20
    finally:
        tracemalloc.stop()


def test_lz4_blocks_larger_than_any() -> None:
    with pytest.raises(CorruptFileError, match="further than LZ4 can"):
        _expand(LZ4, (0xFFFFFFFF).to_bytes(4, "little") + bytes(17 << 20))


def test_limits_follow_from_the_number_of_values() -> None:
    bomb = byte_codecs.shrink(ZSTD, None, BufferSlices.whole(np.zeros(10**6, np.uint8)))[0]
    encoding = general.describe(flat.describe(32), ZSTD, None)
    decompressor = registry.parse_decompressor(encoding, Context.MINI_BLOCK)
    with pytest.raises(CorruptFileError, match="fit"):
        decompressor.decompress([place(bomb, np.array([bomb.size]))], np.array([1024]))


def test_encodings_are_checked() -> None:
    for scheme, inner in ((3, flat.describe(8)), (ZSTD, encodings_pb2.CompressiveEncoding())):
        with pytest.raises(CorruptFileError):
            registry.parse_decompressor(general.describe(inner, scheme if scheme != 3 else 0, None), Context.BLOCK)
    twice = general.describe(general.describe(flat.describe(8), ZSTD, None), ZSTD, None)
    with pytest.raises(CorruptFileError):
        registry.parse_decompressor(twice, Context.MINI_BLOCK)
