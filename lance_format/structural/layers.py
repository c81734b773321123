"""Meaning of the layers of a column for its repetition and definition levels.

Encoding strategy document, "Repetition and definition levels". A leaf column has one layer for itself and one for each
struct and list above it, listed innermost first. Definition levels number, in that order, the ways a value can be
missing:

    0 the value exists 1, 2, … one level per layer that may be null, and one per list layer that may be empty; null
    comes before empty in a list layer

A level means that its layer is null or empty and all outer layers are neither. Repetition levels count list layers from
the innermost on: 0 continues the innermost list, and `n` starts new lists in the `n` innermost list layers. The highest
level starts a row. An entry of a null or empty list has levels but no value: it is *invisible*.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from lance_format.errors import CorruptFileError
from lance_format.lazy_dataclasses import dataclass
from lance_format.lazy_properties import cached_property
from lance_format.proto import encodings_pb2 as pb

Levels: TypeAlias = npt.NDArray[np.uint16]

_LEVELS_OF_LAYER = {
    pb.REPDEF_ALL_VALID_ITEM: 0,
    pb.REPDEF_ALL_VALID_LIST: 0,
    pb.REPDEF_NULLABLE_ITEM: 1,
    pb.REPDEF_NULLABLE_LIST: 1,
    pb.REPDEF_EMPTYABLE_LIST: 1,
    pb.REPDEF_NULL_AND_EMPTY_LIST: 2,
}
_LISTS = frozenset(
    {
        pb.REPDEF_ALL_VALID_LIST,
        pb.REPDEF_NULLABLE_LIST,
        pb.REPDEF_EMPTYABLE_LIST,
        pb.REPDEF_NULL_AND_EMPTY_LIST,
    }
)
_NULLABLE = frozenset({pb.REPDEF_NULLABLE_ITEM, pb.REPDEF_NULLABLE_LIST, pb.REPDEF_NULL_AND_EMPTY_LIST})
_EMPTYABLE = frozenset({pb.REPDEF_EMPTYABLE_LIST, pb.REPDEF_NULL_AND_EMPTY_LIST})
_MAX_LAYERS = 1000


@dataclass(frozen=True)
class LayerStack:
    """The layers of a page, innermost first."""

    layers: tuple[int, ...]

    @classmethod
    def parse(cls, layers: Sequence[int]) -> LayerStack:
        """Check layers that a file names.

        Raises
        ------
        CorruptFileError
            If there is none, or an unknown one.
        """
        if not 1 <= len(layers) <= _MAX_LAYERS:
            raise CorruptFileError(f"the page has repetition and definition layers {list(layers)[:20]}")
        return _parse_layers(tuple(layers))

    @cached_property
    def bases(self) -> tuple[int, ...]:
        """For each layer, the highest definition level of the layers inside it; one entry more for all layers."""
        bases = [0]
        for layer in self.layers:
            bases.append(bases[-1] + _LEVELS_OF_LAYER[layer])  # type: ignore[index]
        return tuple(bases)

    @cached_property
    def lists(self) -> tuple[int, ...]:
        """The positions of the list layers, innermost first."""
        return tuple(index for index, layer in enumerate(self.layers) if layer in _LISTS)

    @property
    def max_definition(self) -> int:
        """The highest definition level."""
        return self.bases[-1]

    @property
    def max_repetition(self) -> int:
        """The repetition level that starts a row; 0 if there are no lists."""
        return len(self.lists)

    @property
    def max_visible(self) -> int:
        """The highest definition level of an entry that has a value."""
        return self.bases[self.lists[0]] if self.lists else self.max_definition

    def null_level(self, index: int) -> int:
        """Return the definition level of a null in a layer; 0 if it has no nulls."""
        return self.bases[index] + 1 if self.layers[index] in _NULLABLE else 0

    def empty_level(self, index: int) -> int:
        """Return the definition level of an empty list in a layer; 0 if it has none."""
        return self.bases[index + 1] if self.layers[index] in _EMPTYABLE else 0


@functools.lru_cache(maxsize=64)
def _parse_layers(layers: tuple[int, ...]) -> LayerStack:
    """Check layers; cached, since most pages have the same layers."""
    if any(layer not in _LEVELS_OF_LAYER for layer in layers):
        raise CorruptFileError(f"the page has repetition and definition layers {list(layers)[:20]}")
    if layers[0] in _LISTS:
        raise CorruptFileError("the innermost layer of the page is a list")
    return LayerStack(layers)


def item_layer(*, nullable: bool) -> int:
    """Return the layer of values or structs."""
    return pb.REPDEF_NULLABLE_ITEM if nullable else pb.REPDEF_ALL_VALID_ITEM


def list_layer(*, nullable: bool, emptyable: bool) -> int:
    """Return the layer of lists."""
    if nullable:
        return pb.REPDEF_NULL_AND_EMPTY_LIST if emptyable else pb.REPDEF_NULLABLE_LIST
    return pb.REPDEF_EMPTYABLE_LIST if emptyable else pb.REPDEF_ALL_VALID_LIST
