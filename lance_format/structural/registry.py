"""Layouts by the message of a page: a table of readers, and one of unsupported layouts with reasons."""

from __future__ import annotations

from collections.abc import Callable

from lance_format.data_block import ValueShape
from lance_format.errors import CorruptFileError, NotSupportedError
from lance_format.proto import encodings_pb2
from lance_format.structural.blob import BlobPage
from lance_format.structural.constant import ConstantPage
from lance_format.structural.full_zip import FullZipPage
from lance_format.structural.mini_block import MiniBlockPage
from lance_format.structural.page import Page, PageDescription

LAYOUTS: dict[str, Callable[[encodings_pb2.PageLayout, PageDescription, ValueShape], Page]] = {
    "mini_block_layout": lambda layout, page, _: MiniBlockPage(layout.mini_block_layout, page),
    "full_zip_layout": lambda layout, page, _: FullZipPage(layout.full_zip_layout, page),
    "constant_layout": lambda layout, page, shape: ConstantPage(layout.constant_layout, page, shape),
    "blob_layout": lambda layout, page, shape: BlobPage(
        layout.blob_layout, lambda inner: parse_page(inner, page, shape)
    ),
}
"""Constructors of pages, by the name of the protobuf member."""

UNSUPPORTED: dict[str, str] = {
    "sparse_layout": "part of the unstable file format 2.3",
}
"""Layouts that are not read, with the reasons."""


def parse_page(layout: encodings_pb2.PageLayout, page: PageDescription, shape: ValueShape) -> Page:
    """Build the page that a layout describes.

    Parameters
    ----------
    layout : encodings_pb2.PageLayout
    page : PageDescription
        The buffers and the number of rows of the page.
    shape : ValueShape
        The values of the column.

    Raises
    ------
    CorruptFileError
        If the layout is empty or contradicts itself or the page.
    NotSupportedError
        If it is valid, but cannot be read.
    """
    name = layout.WhichOneof("layout")
    if name is None:
        raise CorruptFileError("a page has a layout that is empty or unknown")
    construct = LAYOUTS.get(name)
    if construct is None:
        raise NotSupportedError(f"page layout {name!r} cannot be read: {UNSUPPORTED[name]}")
    return construct(layout, page, shape)
