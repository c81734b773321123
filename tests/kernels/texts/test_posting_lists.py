"""Posting lists: blocks that the tests pack, damaged ones, and phrases compared with a search through all positions."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_format.kernels.texts.posting_lists import (
    decode_early_positions,
    decode_positions,
    decode_postings,
    match_phrase,
)

Postings = list[tuple[int, list[int]]]
"""Documents, and the positions of the token in each."""


def pack(values: Sequence[int]) -> bytes:
    """Pack 128 integers in four lanes, with their number of bits before."""
    num_bits = max(values).bit_length()
    lanes = [sum(value << (num_bits * place) for place, value in enumerate(values[lane::4])) for lane in range(4)]
    words = [lane >> (32 * number) & 0xFFFFFFFF for number in range(num_bits) for lane in lanes]
    return bytes([num_bits]) + struct.pack(f"<{len(words)}I", *words)


def varint(value: int) -> bytes:
    return (bytes([value & 0x7F | 0x80]) + varint(value >> 7)) if value > 0x7F else bytes([value])


def differences(values: Sequence[int], first: int = 0) -> list[int]:
    return [value - before for value, before in zip(values, [first, *values[:-1]], strict=True)]


def encode(documents: list[int], frequencies: list[int], *, varints: bool) -> tuple[bytes, npt.NDArray[np.int64]]:
    data, offsets = b"", [0]
    for start in range(0, len(documents), 128):
        some, counts = documents[start : start + 128], frequencies[start : start + 128]
        data += struct.pack("<f", 1.0)
        if len(some) == 128:
            data += struct.pack("<I", some[0]) + pack(differences(some, some[0])) + pack(counts)
        elif varints:
            data += b"".join(map(varint, [*differences(some), *counts]))
        else:
            data += struct.pack(f"<{2 * len(some)}I", *some, *counts)
        offsets.append(len(data))
    return data, np.array(offsets, np.int64)


def encode_positions(postings: Postings) -> tuple[bytes, npt.NDArray[np.int64]]:
    data, offsets = b"", [0]
    for start in range(0, len(postings), 128):
        deltas = [delta for _, positions in postings[start : start + 128] for delta in differences(positions)]
        whole = len(deltas) // 128 * 128
        data += b"".join(pack(deltas[first : first + 128]) for first in range(0, whole, 128))
        data += b"".join(map(varint, deltas[whole:]))
        offsets.append(len(data))
    return data, np.array(offsets, np.int64)


def encode_early_positions(postings: Postings) -> tuple[bytes, npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    parts, bounds = [], [0]
    for _, positions in postings:
        parts.append(struct.pack("<I", len(positions)))
        for start in range(0, len(positions), 128):
            some = positions[start : start + 128]
            packed = struct.pack("<I", some[0]) + pack(differences(some, some[0])) if len(some) == 128 else b""
            parts.append(packed or struct.pack(f"<{len(some)}I", *some))
        bounds.append(len(parts))
    offsets = np.cumsum([0, *map(len, parts)])
    return b"".join(parts), offsets, np.array(bounds)


def random_postings(seed: int, count: int, largest: int) -> Postings:
    rng = np.random.default_rng(seed)
    documents = np.cumsum(rng.integers(1, largest, count))
    return [(int(document), sorted(rng.integers(0, 500, rng.integers(1, 6)).tolist())) for document in documents]


@pytest.mark.parametrize("varints", [False, True])
@given(seed=st.integers(0, 2**32), count=st.integers(0, 400), largest=st.sampled_from([2, 9, 2**20]))
def test_documents_and_positions_are_decoded(varints: bool, seed: int, count: int, largest: int) -> None:
    postings = random_postings(seed, count, largest)
    documents, frequencies = [document for document, _ in postings], [len(positions) for _, positions in postings]
    data, offsets = encode(documents, frequencies, varints=varints)
    found, counts = np.zeros(count, np.uint32), np.zeros(count, np.uint32)
    limit = documents[-1] + 1 if documents else 0
    assert decode_postings(np.frombuffer(data, np.uint8), offsets, limit, varints, found, counts) == count
    assert (found.tolist(), counts.tolist()) == (documents, frequencies)
    if documents:
        blocks = len(offsets) - 1
        assert decode_postings(np.frombuffer(data, np.uint8), offsets, limit - 1, varints, found, counts) == -blocks
    data, offsets = encode_positions(postings)
    places = np.zeros(sum(frequencies), np.uint32)
    assert decode_positions(np.frombuffer(data, np.uint8), offsets, counts, places) == places.size
    assert places.tolist() == [position for _, positions in postings for position in positions]


@given(st.integers(0, 2**32), st.integers(1, 300), st.data())
def test_damage_is_found_or_harmless(seed: int, count: int, data: st.DataObject) -> None:
    postings = random_postings(seed, count, 9)
    frequencies = np.array([len(positions) for _, positions in postings], np.uint32)
    encoded = [
        encode([document for document, _ in postings], frequencies.tolist(), varints=True),
        encode_positions(postings),
    ]
    found, counts, places = (
        np.zeros(count, np.uint32),
        np.zeros(count, np.uint32),
        np.zeros(frequencies.sum(), np.uint32),
    )
    for number, (whole, offsets) in enumerate(encoded):
        damaged = bytearray(whole)
        damaged[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
        damaged = damaged[: data.draw(st.sampled_from([len(whole), len(whole) // 2]))]
        stored, bounds = np.frombuffer(bytes(damaged), np.uint8), np.minimum(offsets, len(damaged))
        if number:
            assert decode_positions(stored, bounds, frequencies, places) in {places.size, *range(-len(bounds), 0)}
        else:
            decoded = decode_postings(stored, bounds, 10 * count, True, found, counts)
            assert decoded in {count, *range(-len(bounds), 0)}
            if decoded == count:
                assert (np.diff(found.astype(np.int64)) > 0).all()
                assert found[-1] < 10 * count


Places = st.lists(st.integers(0, 12), min_size=1, max_size=4, unique=True).map(sorted)


@given(st.lists(Places, min_size=1, max_size=4), st.integers(0, 3), st.data())
def test_phrases_are_matched(places: list[list[int]], slop: int, data: st.DataObject) -> None:
    steps = [0, *(data.draw(st.integers(0, 3)) for _ in places[1:])]
    ends = np.cumsum([len(found) for found in places])
    starts, stops = (ends - [len(found) for found in places]).reshape(1, -1), ends.reshape(1, -1)
    out = np.zeros(1, np.bool_)
    positions = np.array([position for found in places for position in found], np.uint32)
    match_phrase(starts, stops, positions, np.array(steps, np.int64), slop, out)
    reached = set(places[0])
    for step, found in zip(steps[1:], places[1:], strict=True):
        reached = {place for place in found if any(0 <= place - before - step <= slop for before in reached)}
    assert out[0] == bool(reached)


@given(st.integers(0, 2**32), st.lists(st.sampled_from([1, 2, 127, 128, 129, 300]), max_size=4), st.data())
def test_early_positions_are_decoded(seed: int, sizes: list[int], data: st.DataObject) -> None:
    rng = np.random.default_rng(seed)
    postings = [(number, sorted(rng.integers(0, 2**20, size).tolist())) for number, size in enumerate(sizes)]
    whole, offsets, bounds = encode_early_positions(postings)
    frequencies, found = np.array(sizes, np.uint32), np.zeros(sum(sizes), np.uint32)
    stored = np.frombuffer(whole, np.uint8)
    assert decode_early_positions(stored, offsets, bounds, frequencies, found) == found.size
    assert found.tolist() == [position for _, positions in postings for position in positions]
    if whole:
        damaged = stored.copy()
        damaged[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
        decoded = decode_early_positions(damaged, offsets, bounds, frequencies, found)
        assert decoded in {found.size, *range(-len(sizes), 0)}
