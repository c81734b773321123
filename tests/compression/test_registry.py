"""Every encoding that the format knows is read, or refused for a stated reason."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from lance_format.compression import flat, registry, variable
from lance_format.compression.codec import Context
from lance_format.data_block import BufferSlices, FixedWidthBlock, VariableWidthBlock
from lance_format.errors import CorruptFileError, NotSupportedError
from lance_format.proto import encodings_pb2

_NAMES = [member.name for member in encodings_pb2.CompressiveEncoding.DESCRIPTOR.oneofs[0].fields]


@pytest.mark.parametrize(("name", "context"), list(itertools.product(_NAMES, Context)))
def test_every_encoding_is_read_or_refused_by_name(name: str, context: Context) -> None:
    assert ((name, context) in registry.READ) != ((name, context) in registry.UNSUPPORTED)
    if (name, context) in registry.UNSUPPORTED:
        encoding = encodings_pb2.CompressiveEncoding()
        getattr(encoding, name).SetInParent()
        with pytest.raises(NotSupportedError, match=name):
            registry.parse_decompressor(encoding, context)


def test_whatever_is_written_is_read() -> None:
    assert registry.READ >= registry.COMPRESSORS


def test_an_empty_encoding_is_corrupt() -> None:
    with pytest.raises(CorruptFileError, match="empty or unknown"):
        registry.parse_decompressor(encodings_pb2.CompressiveEncoding(), Context.BLOCK)


@pytest.mark.parametrize("bits", [3, 12, 2**40])
def test_flat_widths_are_checked(bits: int) -> None:
    with pytest.raises(CorruptFileError, match="bits"):
        flat.parse(flat.describe(bits))
    with pytest.raises(NotSupportedError, match="without a bit"):
        flat.parse(flat.describe(0))


def test_flat_chunks_that_are_too_short_are_corrupt() -> None:
    whole = BufferSlices.whole(np.zeros(7, np.uint8))
    with pytest.raises(CorruptFileError, match="7 bytes for 2 values"):
        flat.parse(flat.describe(32)).decompress([whole], np.array([2]))
    with pytest.raises(CorruptFileError, match="for 57 values of 1 bits"):
        flat.parse(flat.describe(1)).decompress([whole], np.array([57]))


@pytest.mark.parametrize("bits", [1, 8, 24, 40000])
def test_flat_chunks_follow_the_rules(bits: int) -> None:
    block = FixedWidthBlock(np.zeros(10_000 * bits // 8, np.uint8), bits, 10_000)
    chunks = flat.compress(block)
    assert chunks.num_values.sum() == 10_000
    assert all(count & (count - 1) == 0 for count in chunks.num_values[:-1].tolist())
    assert chunks.num_values.max() <= 4096
    assert chunks.sizes[0].max() <= max(4096, 2 * (bits // 8))


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_byte_strings_of_all_sizes(dtype: type[np.signedinteger]) -> None:
    rng = np.random.default_rng(0)
    sizes = np.concatenate([rng.integers(0, 40, 5000), [0, 5000, 3, 100_000, 0], rng.integers(0, 3000, 50)])
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(dtype)
    data = rng.integers(0, 256, int(offsets[-1]), np.uint8)
    block = VariableWidthBlock(data, offsets).slice(3, sizes.size)
    chunks = variable.compress(block)
    assert all(count & (count - 1) == 0 for count in chunks.num_values[:-1].tolist())
    starts = np.concatenate([[0], np.cumsum(chunks.sizes[0])[:-1]])
    slices = BufferSlices(chunks.buffers[0], starts, chunks.sizes[0])
    back = variable.parse(chunks.encoding).decompress([slices], chunks.num_values)
    assert back.offsets.dtype == dtype
    np.testing.assert_array_equal(np.diff(back.offsets), sizes[3:])
    np.testing.assert_array_equal(back.data, data[offsets[3] :])


@pytest.mark.parametrize("position", [0, 4, 8])
def test_offsets_that_lie_are_corrupt(position: int) -> None:
    block = VariableWidthBlock(np.frombuffer(b"abcdef", np.uint8), np.array([0, 2, 6], np.int32))
    chunks = variable.compress(block)
    for wrong in (0, 3, 2**31 - 1, 2**32 - 1):
        data = chunks.buffers[0].copy()
        data[position : position + 4] = np.array([wrong], "<u4").view(np.uint8)
        with pytest.raises(CorruptFileError):
            variable.parse(chunks.encoding).decompress([BufferSlices.whole(data)], np.array([2]))
