"""Every page layout that the format knows is read, or refused for a stated reason."""

from __future__ import annotations

import pytest

from lance_format.data_block import ValueShape
from lance_format.errors import CorruptFileError, NotSupportedError
from lance_format.proto import encodings_pb2
from lance_format.structural import registry
from lance_format.structural.page import PageDescription, parse_flat_layers

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
    assert not parse_flat_layers([encodings_pb2.REPDEF_ALL_VALID_ITEM])
    assert parse_flat_layers([encodings_pb2.REPDEF_NULLABLE_ITEM])
    for unknown in ([], [0], [77]):
        with pytest.raises(CorruptFileError, match="layers"):
            parse_flat_layers(unknown)
    with pytest.raises(NotSupportedError, match="REPDEF_NULLABLE_LIST"):
        parse_flat_layers([encodings_pb2.REPDEF_ALL_VALID_ITEM, encodings_pb2.REPDEF_NULLABLE_LIST])
