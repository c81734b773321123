"""The blob layout: descriptions and their levels, as bytes, there and back, and what contradicts itself."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_format.byte_io import ByteRange
from lance_format.data_block import FixedWidthBlock, PackedStructBlock, ValueShape, aligned
from lance_format.errors import CorruptFileError, NotSupportedError
from lance_format.proto import encodings_pb2 as pb
from lance_format.structural import blob
from lance_format.structural.layers import LayerStack
from lance_format.structural.page import DecodedRows, EncodedPage, PageDescription
from lance_format.structural.registry import parse_page
from lance_format.structural.rep_def import LevelPair
from lance_format.version import FileVersion

_NULLABLE = LayerStack((pb.REPDEF_NULLABLE_ITEM, pb.REPDEF_NULLABLE_ITEM))
_REQUIRED = LayerStack((pb.REPDEF_ALL_VALID_ITEM,))


def _encode(rows: Sequence[tuple[int, int]], definition: Sequence[int] | None, stack: LayerStack) -> EncodedPage:
    positions, sizes = (np.array(numbers, np.uint64) for numbers in zip(*rows, strict=True))
    levels = LevelPair(None, None if definition is None else np.array(definition, np.uint16), len(rows))
    return blob.encode(blob.join(positions, sizes), levels, stack, len(rows), FileVersion.V2_2)


def _read(page: EncodedPage, rows: range | np.ndarray) -> DecodedRows:
    ends = np.cumsum([buffer.size for buffer in page.buffers])
    ranges = tuple(ByteRange(int(end - b.size), b.size) for end, b in zip(ends, page.buffers, strict=True))
    data = np.concatenate([np.empty(0, np.uint8), *page.buffers])
    plan = parse_page(page.layout, PageDescription(ranges, page.num_rows, True), ValueShape()).plan(rows)
    answer = None
    while True:
        try:
            wanted = next(plan) if answer is None else plan.send(answer)
        except StopIteration as stop:
            return stop.value
        answer = [aligned(data[found.offset : found.end].copy()) for found in wanted]


def _numbers(decoded: DecodedRows) -> list[tuple[int, int]]:
    assert isinstance(decoded.values, PackedStructBlock)
    columns = []
    for field in decoded.values.codec.split_rows(decoded.values.rows):
        assert isinstance(field, FixedWidthBlock)
        columns.append(field.data.view("<u8").tolist())
    return list(zip(*columns, strict=True))


@given(
    st.lists(
        st.one_of(
            st.tuples(st.integers(0, 2**64 - 1), st.integers(1, 2**64 - 1), st.just(0)),
            st.tuples(st.just(0), st.just(0), st.integers(0, 2)),
        ),
        min_size=1,
        max_size=600,
    ),
    st.data(),
)
def test_round_trip(rows: list[tuple[int, int, int]], data: st.DataObject) -> None:
    definition = [level for _, _, level in rows]
    page = _encode([(position, size) for position, size, _ in rows], definition, _NULLABLE)
    wanted = sorted(data.draw(st.lists(st.integers(0, len(rows) - 1), min_size=1, max_size=20)))
    for selection in (range(len(rows)), range(wanted[0], wanted[-1] + 1), np.array(wanted)):
        decoded = _read(page, selection)
        expected = [rows[row] for row in selection]
        assert _numbers(decoded) == [(position, size) for position, size, _ in expected]
        assert decoded.levels.definition is not None
        assert decoded.levels.definition.tolist() == [level for _, _, level in expected]


def test_golden_bytes() -> None:
    page = _encode([(640, 7), (0, 0), (0, 0), (0, 0)], [0, 0, 1, 2], _NULLABLE)
    # After eight bytes of the chunk's header: position and size of each row.
    words = page.buffers[1][8:].view("<u8").tolist()
    assert words == [640, 7, 0, 0, 1 << 16, 0, 2 << 16, 0]
    inner = page.layout.blob_layout.inner_layout.mini_block_layout
    assert list(inner.layers) == [pb.REPDEF_ALL_VALID_ITEM]
    assert list(inner.value_compression.packed_struct.bits_per_value) == [64, 64]
    assert list(page.layout.blob_layout.layers) == list(_NULLABLE.layers)


def test_without_nulls_there_are_no_levels() -> None:
    decoded = _read(_encode([(0, 5), (0, 0)], None, _REQUIRED), range(2))
    assert decoded.levels.definition is None
    assert _numbers(decoded) == [(0, 5), (0, 0)]


@pytest.mark.parametrize(
    ("position", "stack", "message"),
    [
        (1 << 16, _REQUIRED, "allow no nulls"),
        (3 << 16, _NULLABLE, "at most 2"),
        ((1 << 16) + 1, _NULLABLE, "no definition level"),
        (1, _NULLABLE, "no definition level"),
        (1 << 40, _NULLABLE, "no definition level"),
        (2**64 - 1, _NULLABLE, "no definition level"),
    ],
)
def test_positions_that_are_no_levels(position: int, stack: LayerStack, message: str) -> None:
    page = _encode([(position, 0)], None, stack)
    with pytest.raises(CorruptFileError, match=message):
        _read(page, range(1))


def test_lists_are_refused() -> None:
    stack = LayerStack((pb.REPDEF_NULLABLE_ITEM, pb.REPDEF_ALL_VALID_LIST))
    with pytest.raises(NotSupportedError, match="lists"):
        _encode([(0, 5)], None, stack)
    page = _encode([(0, 5)], None, _REQUIRED)
    page.layout.blob_layout.layers[:] = stack.layers
    with pytest.raises(NotSupportedError, match="lists"):
        _read(page, range(1))


def test_other_inner_layouts_are_corrupt() -> None:
    page = _encode([(0, 5)], None, _REQUIRED)
    nested = pb.PageLayout(blob_layout=pb.BlobLayout(inner_layout=page.layout, layers=_REQUIRED.layers))
    with pytest.raises(CorruptFileError, match="themselves blobs"):
        _read(EncodedPage(page.buffers, nested, 1), range(1))
    constant = pb.PageLayout(constant_layout=pb.ConstantLayout(layers=_REQUIRED.layers))
    outer = pb.PageLayout(blob_layout=pb.BlobLayout(inner_layout=constant, layers=_REQUIRED.layers))
    with pytest.raises(CorruptFileError, match="not packed structs"):
        _read(EncodedPage((), outer, 1), range(1))
