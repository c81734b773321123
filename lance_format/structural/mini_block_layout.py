"""What the layout of a mini-block page says about its bytes.

Columns of one type often have layouts of the same bytes, which are parsed once: see `parse_layout`.
"""

from __future__ import annotations

import functools
from collections.abc import Hashable

from lance_format.compression.codec import Context, Decompressor
from lance_format.compression.registry import parse_decompressor
from lance_format.errors import CorruptFileError
from lance_format.identity import Itself
from lance_format.lazy_properties import cached_property
from lance_format.proto import encodings_pb2
from lance_format.structural.layers import LayerStack

MAX_DICTIONARY_ITEMS = 2**32
_MAX_VALUE_BUFFERS = 16
_MAX_REPETITION_DEPTH = 1000
_NUM_LAYOUTS = 64
"""Number of layouts whose parsed forms are kept."""


class ParsedLayout:
    """The layout of mini-block pages, parsed. Pages that have the same bytes of it may share it; it never changes.

    Parameters
    ----------
    layout : MiniBlockLayout

    Attributes
    ----------
    stack : LayerStack
    num_values, num_dictionary_items : int
    has_large_chunks : bool
        Whether chunk words have 32 bits.
    depth : int
        Depth of the repetition index; 0 if there is none.
    values : Decompressor
    repetition, definition, items : Decompressor or None
        Of the levels, and of the items of the dictionary; None if there are none.
    num_buffers : int
        Least number of buffers of the page.

    Raises
    ------
    CorruptFileError
        If the layout contradicts itself.
    NotSupportedError
        If it uses unsupported features.
    """

    def __init__(self, layout: encodings_pb2.MiniBlockLayout) -> None:
        self._layout = layout
        self.stack = LayerStack.parse(layout.layers)
        self.num_values: int = layout.num_items
        self.num_dictionary_items: int = layout.num_dictionary_items
        self.has_large_chunks: bool = layout.has_large_chunk
        self.depth: int = layout.repetition_index_depth
        self.values = parse_decompressor(layout.value_compression, Context.MINI_BLOCK)
        self.repetition = _parse_levels(layout, "rep_compression")
        self.definition = _parse_levels(layout, "def_compression")
        self.items: Decompressor | None = None
        if layout.HasField("dictionary"):
            self.items = parse_decompressor(layout.dictionary, Context.BLOCK)
        self.num_buffers = 2 + (self.items is not None) + bool(self.stack.lists)
        has_lists = bool(self.stack.lists)
        if has_lists != (self.repetition is not None) or has_lists != bool(self.depth):
            raise CorruptFileError("the page has repetition levels without lists, or lists without them")
        if self.depth > _MAX_REPETITION_DEPTH:
            raise CorruptFileError(f"the repetition index has depth {self.depth}")
        if self.num_dictionary_items > MAX_DICTIONARY_ITEMS:
            raise CorruptFileError(f"the page says that its dictionary has {self.num_dictionary_items} items")
        if layout.num_buffers != self.values.num_buffers or layout.num_buffers > _MAX_VALUE_BUFFERS:
            raise CorruptFileError(
                f"chunks have {layout.num_buffers} value buffers; their encoding has {self.values.num_buffers}"
            )

    @property
    def word_bytes(self) -> int:
        """Size of a chunk word."""
        return 4 if self.has_large_chunks else 2

    @cached_property
    def form(self) -> Hashable:
        """Properties of pages whose rows are decoded together: all but the numbers of values, and FSST's symbols."""
        shared = encodings_pb2.MiniBlockLayout.FromString(self._layout.SerializeToString())
        shared.ClearField("num_items")
        shared.ClearField("num_dictionary_items")
        if shared.value_compression.HasField("fsst"):
            shared.value_compression.fsst.ClearField("symbol_table")
        return shared.SerializeToString()


def parse_layout(layout: encodings_pb2.MiniBlockLayout) -> ParsedLayout:
    """Return a layout parsed, the same object for the same message while it is one of the last.

    Messages that are parsed once have one object for the same bytes.
    """
    return _parse(Itself(layout))


@functools.lru_cache(maxsize=_NUM_LAYOUTS)
def _parse(itself: Itself[encodings_pb2.MiniBlockLayout]) -> ParsedLayout:
    return ParsedLayout(itself.value)


def _parse_levels(layout: encodings_pb2.MiniBlockLayout, name: str) -> Decompressor | None:
    return parse_decompressor(getattr(layout, name), Context.BLOCK) if layout.HasField(name) else None
