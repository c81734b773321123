"""Decoding of whole pages of many files at once.

A small page costs as many calls as a large one. Pages whose layouts differ only in the number of values, or in the only
value, are decoded as if they were one page: the chunks of all of them, or their entries, follow each other. Others are
decoded one by one.
"""

from __future__ import annotations

import contextlib
from collections.abc import Hashable, Iterator, Sequence

from lance_format.compression.expansion import most_expansion
from lance_format.data_block import Bytes, ValueShape, aligned
from lance_format.errors import NotSupportedError
from lance_format.proto import encodings_pb2
from lance_format.structural.constant import ConstantPage
from lance_format.structural.full_zip import FullZipPage
from lance_format.structural.mini_block import MiniBlockPage
from lance_format.structural.page import DecodedRows, Page, PageDescription, PlacedPage
from lance_format.structural.registry import parse_page

_FREE_FIELDS: dict[str, tuple[str, ...]] = {
    "mini_block_layout": ("num_items", "num_dictionary_items"),
    "full_zip_layout": ("num_items", "num_visible_items"),
    "constant_layout": ("inline_value",),
}
"""Layouts that are decoded at once, by the name of the protobuf member, and fields in which they may differ."""

_MOST_BYTES = 64 * 1024 * 1024
"""Maximum size of the byte strings of several pages that are decoded at once."""

_LEAST_BYTES = 16 * 1024
"""Smaller pages are decoded whatever they may expand to."""


def group_pages(pages: Sequence[PlacedPage]) -> list[list[int]]:
    """Return the positions of pages that may be decoded at once, group by group."""
    forms: dict[int, Hashable] = {}  # Layouts of the same bytes are often the same object.
    groups: dict[Hashable, list[int]] = {}
    for position, page in enumerate(pages):
        form = forms.get(id(page.layout))
        if form is None:
            form = forms[id(page.layout)] = _form_of(page.layout)
        groups.setdefault((form, len(page.buffers), page.large_chunks), []).append(position)
    return list(groups.values())


def _form_of(layout: encodings_pb2.PageLayout) -> Hashable:
    """Return what layouts share that are decoded at once."""
    name = layout.WhichOneof("layout")
    shared = encodings_pb2.PageLayout.FromString(layout.SerializeToString())
    if name not in _FREE_FIELDS:
        return shared.SerializeToString()
    details = getattr(shared, name)
    present = tuple(field.name for field, _ in details.ListFields())
    for free in _FREE_FIELDS[name]:
        details.ClearField(free)
    return present, shared.SerializeToString()


def decode_group(pages: Sequence[PlacedPage], data: Bytes, shape: ValueShape) -> Iterator[DecodedRows]:
    """Decode all rows of the pages of one group, at once if possible, and if they cannot become large.

    Parameters
    ----------
    pages : sequence of PlacedPage
    data : uint8[…]
        The files, each at a multiple of 8 bytes.
    shape : ValueShape

    Raises
    ------
    CorruptFileError, NotSupportedError
        If one of them is malformed, or cannot be read.
    """
    for some in [pages] if shape.bits_per_offset is None else _bounded(pages):
        yield from _decode_group(some, data, shape)


def _bounded(pages: Sequence[PlacedPage]) -> Iterator[Sequence[PlacedPage]]:
    """Divide pages of byte strings so that those of several never have more than `_MOST_BYTES`.

    Values of dictionaries become large only when they are looked up.

    Raises
    ------
    NotSupportedError
        If one page may have more.
    """
    if pages[0].layout.mini_block_layout.HasField("dictionary"):
        yield pages
        return
    most = _MOST_BYTES // most_expansion(pages[0].layout)
    sizes = [sum(buffer.size for buffer in page.buffers) for page in pages]
    if max(sizes) > max(most, _LEAST_BYTES):
        raise NotSupportedError(f"a page of {max(sizes)} bytes may expand to more than {_MOST_BYTES}")
    if sum(sizes) <= most:
        yield pages
        return
    start = num_bytes = 0
    for position, size in enumerate(sizes):
        if num_bytes + size > most and position > start:
            yield pages[start:position]
            start, num_bytes = position, 0
        num_bytes += size
    yield pages[start:]


def _decode_group(pages: Sequence[PlacedPage], data: Bytes, shape: ValueShape) -> Iterator[DecodedRows]:
    first = _parse(pages[0], shape)
    if len(pages) > 1 and isinstance(first, MiniBlockPage | FullZipPage | ConstantPage):
        with contextlib.suppress(NotSupportedError):
            yield first.decode_together(pages, data)
            return
    for page in pages:
        yield _decode(_parse(page, shape), page, data)


def _parse(page: PlacedPage, shape: ValueShape) -> Page:
    return parse_page(page.whole_layout, PageDescription(page.buffers, page.num_rows, page.large_chunks), shape)


def _decode(page: Page, placed: PlacedPage, data: Bytes) -> DecodedRows:
    """Decode a page for itself."""
    plan = page.plan(range(placed.num_rows))
    try:
        wanted = next(plan)
        while True:
            wanted = plan.send([aligned(data[placed.base + part.offset : placed.base + part.end]) for part in wanted])
    except StopIteration as stop:
        decoded: DecodedRows = stop.value
        return decoded
