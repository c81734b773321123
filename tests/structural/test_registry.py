"""Every page layout that the format knows is read, or refused for a stated reason."""

from __future__ import annotations

import pytest

from lance_format.data_block import ValueShape
from lance_format.errors import CorruptFileError, NotSupportedError
from lance_format.proto import encodings_pb2
from lance_format.structural import registry
from lance_format.structural.layers import LayerStack
from lance_format.structural.page import PageDescription

_PAGE = PageDescription((), 10, large_chunks=True)


@pytest.mark.parametrize("name", [member.name for member in encodings_pb2.PageLayout.DESCRIPTOR.oneofs[0].fields])
def test_every_layout_is_read_or_refused_by_name(name: str) -> None:
    assert (name in registry.LAYOUTS) != (name in registry.UNSUPPORTED)
    if name in registry.UNSUPPORTED:
        layout = encodings_pb2.PageLayout()
        getattr(layout, name).SetInParent()
        with pytest.raises(NotSupportedError, match=name):
            registry.parse_page(layout, _PAGE, ValueShape(bits_per_value=32))


def test_an_empty_layout_is_corrupt() -> None:
    with pytest.raises(CorruptFileError, match="empty or unknown"):
        registry.parse_page(encodings_pb2.PageLayout(), _PAGE, ValueShape(bits_per_value=32))


def test_layers() -> None:
    stack = LayerStack.parse(
        [
            encodings_pb2.REPDEF_NULLABLE_ITEM,
            encodings_pb2.REPDEF_NULL_AND_EMPTY_LIST,
            encodings_pb2.REPDEF_ALL_VALID_ITEM,
            encodings_pb2.REPDEF_EMPTYABLE_LIST,
        ]
    )
    assert stack.bases == (0, 1, 3, 3, 4)
    assert (stack.max_definition, stack.max_repetition, stack.max_visible) == (4, 2, 1)
    assert [stack.null_level(index) for index in range(4)] == [1, 2, 0, 0]
    assert [stack.empty_level(index) for index in (1, 3)] == [3, 4]
    for unknown in ([], [0], [77], [encodings_pb2.REPDEF_ALL_VALID_LIST]):
        with pytest.raises(CorruptFileError, match="layer"):
            LayerStack.parse(unknown)
