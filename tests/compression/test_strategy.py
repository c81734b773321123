"""The chosen compression of pages, and round trips through each."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lance_format.compression import registry
from lance_format.compression.choice import byte_strings, fixed_width, strategy
from lance_format.compression.choice.pages import CompressedPage
from lance_format.compression.codec import Context
from lance_format.compression.options import ByteStreamSplitMode, CompressionOptions, Scheme
from lance_format.data_block import BufferSlices, DataBlock, FixedWidthBlock
from lance_format.proto import encodings_pb2
from lance_format.version import FileVersion
from tests.compression import blocks
from tests.compression.chunks import decompress, place

_VERSIONS = (FileVersion.V2_1, FileVersion.V2_2)
_PLAIN = {b"lance-encoding:compression": b"none"}
_LARGER = {b"lance-encoding:dict-max-size": b"10000000"}
_schemes = st.sampled_from([None, *Scheme])


def _read(page: CompressedPage) -> DataBlock:
    values = decompress(page.chunks)
    if page.dictionary is None:
        return values
    assert isinstance(values, FixedWidthBlock)
    whole = BufferSlices.whole(page.dictionary.buffer)
    decompressor = registry.parse_decompressor(page.dictionary.encoding, Context.BLOCK)
    items = decompressor.decompress([whole], np.array([page.dictionary.num_items]))
    indices = values.data[: values.size_bytes].view(f"<u{values.bytes_per_value}").astype(np.int64)
    assert int(indices.max()) < page.dictionary.num_items
    return items.take(indices)


def _size(page: CompressedPage) -> int:
    size = sum(buffer.size for buffer in page.chunks.buffers)
    return size + (0 if page.dictionary is None else page.dictionary.buffer.size)


def _chain(encoding: encodings_pb2.CompressiveEncoding) -> str:
    name = encoding.WhichOneof("compression")
    assert name is not None
    assert (name, Context.MINI_BLOCK) in registry.COMPRESSORS
    inner = getattr(encoding, name)
    return f"{name}({_chain(inner.values)})" if name in ("general", "fsst") else name


@given(
    bits=st.sampled_from([1, 8, 16, 24, 32, 64, 128, 256]),
    count=blocks.counts,
    character=blocks.characters,
    scheme=_schemes,
    version=st.sampled_from(_VERSIONS),
    nulls=st.sampled_from([None, 0.1, 0.9]),
    seed=blocks.seeds,
)
def test_fixed_widths_round_trip(
    bits: int,
    count: int,
    character: str,
    scheme: Scheme | None,
    version: FileVersion,
    nulls: float | None,
    seed: int,
) -> None:
    per_value = max(bits // 64, 1)
    words = blocks.fixed_block(8 if bits in (1, 24) else min(bits, 64), count * per_value * 3, character, seed)
    block = FixedWidthBlock(words.data[: (count * bits + 7) // 8], bits, count)
    definition = None
    if nulls is not None:
        definition = (np.random.default_rng(seed).random(count) < nulls).astype(np.uint16)
        definition[seed % count] = 0
    page = strategy.compress_page(block, definition, CompressionOptions(scheme=scheme), version)
    valid = np.flatnonzero(definition == 0) if definition is not None else np.arange(count)
    blocks.assert_same(_read(page).take(valid), block.take(valid))


@pytest.mark.slow
@given(
    offset_bits=st.sampled_from([32, 64]),
    count=st.integers(1, 5000),
    character=blocks.characters,
    scheme=_schemes,
    version=st.sampled_from(_VERSIONS),
    seed=blocks.seeds,
)
def test_byte_strings_round_trip(
    offset_bits: int, count: int, character: str, scheme: Scheme | None, version: FileVersion, seed: int
) -> None:
    block = blocks.byte_strings(count, character, seed, offset_bits)
    page = strategy.compress_page(block, None, CompressionOptions(scheme=scheme), version)
    blocks.assert_same(_read(page), block)
    values = strategy.compress_per_value(block, None, CompressionOptions(scheme=scheme))
    back = registry.parse_per_value_decompressor(values.encoding).decompress_values(values.values)
    blocks.assert_same(back, block)


@pytest.mark.parametrize(
    ("bits", "character", "chain", "with_dictionary"),
    [
        (64, "runs", "rle", False),
        (32, "constant", "rle", False),
        (64, "few", "inline_bitpacking", True),
        (32, "few", "inline_bitpacking", True),
        (64, "small", "inline_bitpacking", False),
        (8, "small", "inline_bitpacking", False),
        (32, "signed", "inline_bitpacking", True),
        (64, "random", "flat", False),
        (64, "sequence", "general(byte_stream_split)", False),
        (32, "sequence", "general(byte_stream_split)", False),
    ],
)
@pytest.mark.parametrize("version", _VERSIONS, ids=str)
def test_statistics_choose_for_fixed_widths(
    bits: int, character: str, chain: str, with_dictionary: bool, version: FileVersion
) -> None:
    block = blocks.fixed_block(bits, 20_000, character, 1)
    page = strategy.compress_page(block, None, CompressionOptions(), version)
    assert (_chain(page.chunks.encoding), page.dictionary is not None) == (chain, with_dictionary)


@pytest.mark.parametrize(
    ("character", "chain", "with_dictionary"),
    [
        ("few", "inline_bitpacking", True),
        ("runs", "rle", True),
        ("small", "fsst(variable)", False),
        ("random", "variable", False),
    ],
)
def test_statistics_choose_for_byte_strings(character: str, chain: str, with_dictionary: bool) -> None:
    block = blocks.byte_strings(20_000, character, 1)
    page = strategy.compress_page(block, None, CompressionOptions(), FileVersion.V2_2)
    assert (_chain(page.chunks.encoding), page.dictionary is not None) == (chain, with_dictionary)


def test_small_integers_of_both_signs_shrink_without_being_asked() -> None:
    numbers = np.random.default_rng(0).integers(-(10**6), 10**6, 50_000)
    block = FixedWidthBlock(numbers.view(np.uint8), 64, numbers.size)
    page = strategy.compress_page(block, None, CompressionOptions(), FileVersion.V2_1)
    assert _chain(page.chunks.encoding) == "general(byte_stream_split)"
    assert _size(page) < block.size_bytes * 0.52
    blocks.assert_same(_read(page), block)


def test_dictionaries_are_compressed_from_2_2_on() -> None:
    block = blocks.byte_strings(20_000, "few", 1)
    for version, name in zip(_VERSIONS, ("variable", "general"), strict=True):
        page = strategy.compress_page(block, None, CompressionOptions(dict_values_scheme=Scheme.ZSTD), version)
        assert page.dictionary is not None
        assert page.dictionary.num_items == 9
        found = page.dictionary.encoding.WhichOneof("compression")
        assert found in (name, "variable")


def test_none_leaves_values_as_they_are() -> None:
    options = CompressionOptions(scheme=Scheme.NONE, dict_divisor=10**9)
    for character in blocks.CHARACTERS:
        fixed = strategy.compress_page(blocks.fixed_block(32, 5000, character, 0), None, options, FileVersion.V2_2)
        assert (_chain(fixed.chunks.encoding), fixed.dictionary) == ("flat", None)
        strings = strategy.compress_page(blocks.byte_strings(5000, character, 0), None, options, FileVersion.V2_2)
        assert strings.dictionary is None


def test_no_option_makes_a_page_larger_than_flat() -> None:
    for bits, character, scheme in itertools.product((8, 16, 32, 64), blocks.CHARACTERS, [None, *Scheme]):
        block = blocks.fixed_block(bits, 4096, character, 0)
        page = strategy.compress_page(block, None, CompressionOptions(scheme=scheme), FileVersion.V2_2)
        assert _size(page) <= block.size_bytes


def test_thresholds_are_obeyed() -> None:
    block = blocks.fixed_block(64, 20_000, "runs", 1)
    page = strategy.compress_page(block, None, CompressionOptions(rle_threshold=0.0), FileVersion.V2_2)
    assert _chain(page.chunks.encoding) != "rle"
    few = blocks.fixed_block(64, 20_000, "few", 1)
    page = strategy.compress_page(few, None, CompressionOptions(dict_divisor=10**6), FileVersion.V2_2)
    assert page.dictionary is None


def test_bytes_are_not_split_where_that_is_off() -> None:
    block = blocks.fixed_block(64, 20_000, "sequence", 1)
    options = CompressionOptions(byte_stream_split=ByteStreamSplitMode.OFF)
    page = strategy.compress_page(block, None, options, FileVersion.V2_2)
    assert _chain(page.chunks.encoding) == "inline_bitpacking"


def test_items_that_are_small_integers_are_packed() -> None:
    numbers = np.repeat(np.random.default_rng(0).integers(0, 10**6, 4000), 50)
    block = FixedWidthBlock(numbers.view(np.uint8), 64, numbers.size)
    page = strategy.compress_page(block, None, CompressionOptions(), FileVersion.V2_2)
    assert page.dictionary is not None
    assert page.dictionary.encoding.WhichOneof("compression") == "out_of_line_bitpacking"
    blocks.assert_same(_read(page), block)
    plain = strategy.compress_page(block, None, CompressionOptions(dict_values_scheme=Scheme.NONE), FileVersion.V2_2)
    assert plain.dictionary is None or plain.dictionary.encoding.WhichOneof("compression") == "flat"


@pytest.mark.parametrize(
    ("version", "asked", "bytes_per_chunk"),
    [
        (FileVersion.V2_2, None, 4096),
        (FileVersion.V2_2, 1024, 1024),
        (FileVersion.V2_2, 65536, 65536),
        (FileVersion.V2_1, 16384, 16384),
        (FileVersion.V2_1, 65536, 4096),
    ],
)
def test_chunks_of_byte_strings_have_the_size_that_is_asked_for(
    version: FileVersion, asked: int | None, bytes_per_chunk: int
) -> None:
    block = blocks.byte_strings(20_000, "random", 1)
    options = CompressionOptions(scheme=Scheme.NONE, minichunk_size=asked)
    chunks = strategy.compress_page(block, None, options, version).chunks
    assert bytes_per_chunk / 4 < int(chunks.sizes[0][:-1].max()) <= bytes_per_chunk


@given(
    counts=st.lists(st.integers(1, 3000), min_size=1, max_size=5),
    highest=st.integers(0, 4),
    run=st.integers(1, 400),
    version=st.sampled_from(_VERSIONS),
    seed=blocks.seeds,
)
def test_levels_round_trip(counts: list[int], highest: int, run: int, version: FileVersion, seed: int) -> None:
    total = sum(counts)
    runs = np.random.default_rng(seed).integers(0, highest + 1, total // run + 1)
    levels = np.repeat(runs, run)[:total].astype("<u2")
    block = FixedWidthBlock(levels.view(np.uint8), 16, total)
    chunks = strategy.compress_levels(block, np.array(counts), version)
    assert version.has_run_length_levels or chunks.encoding.WhichOneof("compression") != "rle"
    slices = place(chunks.buffers[0], chunks.sizes[0])
    found = registry.parse_decompressor(chunks.encoding, Context.BLOCK).decompress([slices], chunks.num_values)
    blocks.assert_same(found, block)


def test_levels_in_runs_are_run_length_encoded() -> None:
    levels = np.zeros(10_000, "<u2")
    levels[500:600] = 1
    block = FixedWidthBlock(levels.view(np.uint8), 16, levels.size)
    chunks = strategy.compress_levels(block, np.array([4096, 4096, 1808]), FileVersion.V2_2)
    assert (chunks.encoding.WhichOneof("compression"), chunks.buffers[0].size) == ("rle", 3 * 8 + (17 + 17 + 8) * 3)


@given(
    bits=st.sampled_from([16, 32, 64]),
    lengths=st.lists(st.sampled_from([1, 2, 7, 9, 254, 255, 256, 1024, 4096, 9000]), min_size=1, max_size=60),
    num_items=st.sampled_from([1, 2, 300, 70_000]),
    first_share=st.sampled_from([0.0, 0.5, 0.95]),
    seed=blocks.seeds,
)
def test_numbers_of_runs_are_those_of_single_values(
    bits: int, lengths: list[int], num_items: int, first_share: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    drawn = rng.integers(0, num_items, len(lengths)) * (rng.random(len(lengths)) >= first_share)
    words = np.repeat(drawn, lengths).astype(f"<u{bits // 8}")
    block = FixedWidthBlock(words.view(np.uint8), bits, words.size)
    num_runs = 1 + int(np.count_nonzero(words[1:] != words[:-1]))
    assume(num_runs < CompressionOptions().rle_threshold * words.size)
    for options in (CompressionOptions(), CompressionOptions(scheme=Scheme.ZSTD)):
        alone = fixed_width._split(block, None, num_items, options)
        by_runs = fixed_width._split(block, num_runs, num_items, options)
        assert alone is not None
        assert by_runs is not None
        assert by_runs.size_bytes == alone.size_bytes
        blocks.assert_same(by_runs.items, alone.items)
        for mine, other in zip(by_runs.compress_indices().buffers, alone.compress_indices().buffers, strict=True):
            np.testing.assert_array_equal(mine, other)


@pytest.mark.parametrize(
    ("length", "options", "is_split"), [(1000, {}, True), (3000, {}, False), (3000, _LARGER, True)]
)
def test_dictionaries_of_large_values_are_small(length: int, options: dict[bytes, bytes], is_split: bool) -> None:
    values = [b"%0*d" % (length, number % 500) for number in range(5000)]
    block = blocks.block_of(values)
    found = byte_strings.split_large(block, None, CompressionOptions.parse({**_PLAIN, **options}, "c"))
    assert (found is not None) is is_split
    if found is not None:
        assert blocks.values_of(found.items.take(found.words)) == values


@pytest.mark.parametrize("length", [10, 1000])
@pytest.mark.parametrize("layout", ["miniblock", None])
def test_dictionaries_of_some_long_values_are_small(layout: str | None, length: int) -> None:
    values = [b"%d" % (number % 10) for number in range(9000)] + [b"%0*d" % (length, n % 50) for n in range(150)]
    options = CompressionOptions.parse({**_PLAIN, b"lance-encoding:dict-max-size": b"2000"}, "c")
    block = blocks.block_of(values)
    if layout is None:
        is_split = byte_strings.split_large(block, None, options) is not None
    else:
        is_split = strategy.compress_page(block, None, options, FileVersion.V2_1).dictionary is not None
    assert is_split is (length == 10)


def test_nulls_are_no_items() -> None:
    values = [b"", b"one", b"", b"garbage", b"two", b"", b"one"] * 50
    definition = np.array([1, 0, 1, 1, 0, 1, 0] * 50, np.uint16)
    page = strategy.compress_page(blocks.block_of(values), definition, CompressionOptions(), FileVersion.V2_1)
    assert page.dictionary is not None
    assert page.dictionary.num_items == 2
