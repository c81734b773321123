"""Conversion of levels to the validity and offsets of each layer, and back.

Encoding strategy document, "Repetition and definition levels"; `layers.py` describes the numbers. Both directions
proceed layer by layer over whole pages: reading from the innermost layer outwards, writing from the rows inwards.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from lance_format.data_block import Counts
from lance_format.errors import CorruptFileError
from lance_format.kernels.pages import levels as kernels
from lance_format.lazy_dataclasses import dataclass
from lance_format.memory import empty
from lance_format.structural.layers import LayerStack, Levels, item_layer, list_layer

Validity = npt.NDArray[np.bool_]
_NO_LEVELS = np.empty(0, np.uint16)


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer of some rows.

    Parameters
    ----------
    validity : bool[num_slots] or None
        None if all are valid.
    offsets : int64[num_slots + 1] or None
        Starts of the lists of a list layer among the slots of the next layer inwards.
    num_slots : int
    """

    validity: Validity | None
    offsets: Counts | None
    num_slots: int


@dataclass(frozen=True, slots=True)
class LevelPair:
    """The levels of some rows.

    Parameters
    ----------
    repetition, definition : uint16[num_levels] or None
        None if all are 0.
    num_levels : int
    """

    repetition: Levels | None
    definition: Levels | None
    num_levels: int

    def select(self, start: int, stop: int) -> LevelPair:
        """Return a range of entries, a view."""
        repetition = None if self.repetition is None else self.repetition[start:stop]
        definition = None if self.definition is None else self.definition[start:stop]
        return LevelPair(repetition, definition, stop - start)

    def take(self, entries: Counts) -> LevelPair:
        """Gather entries."""
        repetition = None if self.repetition is None else self.repetition[entries]
        definition = None if self.definition is None else self.definition[entries]
        return LevelPair(repetition, definition, len(entries))


def check_levels(levels: LevelPair, stack: LayerStack) -> None:
    """Raise `CorruptFileError` if a level is higher than the layers allow, or a page with lists starts within a row."""
    for name, found, highest in (
        ("definition", levels.definition, stack.max_definition),
        ("repetition", levels.repetition, stack.max_repetition),
    ):
        if found is not None and found.size and int(found.max()) > highest:
            raise CorruptFileError(f"a {name} level is {int(found.max())}; the layers allow at most {highest}")


def visible(definition: Levels | None, stack: LayerStack) -> Validity | None:
    """Return a mask of the entries that have a value; None if all have."""
    if definition is None or not _has_invisible(stack):
        return None
    return definition <= stack.max_visible


def visible_definition(levels: LevelPair, stack: LayerStack) -> Levels | None:
    """Return the definition levels of the visible entries, 0 for valid values; None if all are valid."""
    if levels.definition is None:
        return None
    if not _has_invisible(stack):
        return levels.definition
    kept = empty(levels.definition.size, np.uint16)
    return kept[: kernels.select_levels(levels.definition, stack.max_visible, kept)]


def _has_invisible(stack: LayerStack) -> bool:
    """Return whether entries may have no value."""
    return bool(stack.lists) and stack.max_visible < stack.max_definition


def unravel(levels: LevelPair, stack: LayerStack, dimensions: Sequence[int]) -> list[Layer]:
    """Turn the levels of whole rows into layers, innermost first.

    Parameters
    ----------
    levels : LevelPair
    stack : LayerStack
    dimensions : sequence of int
        For each layer, the number of inner slots per slot: the size of a fixed-size list of structs, 1 for others.

    Raises
    ------
    CorruptFileError
        If the levels are not those of whole rows.
    """
    repetition, definition = levels.repetition, levels.definition
    if stack.lists and levels.num_levels and (repetition is None or int(repetition[0]) != stack.max_repetition):
        raise CorruptFileError("the repetition levels do not start with a row")
    result: list[Layer] = []
    num_slots = levels.num_levels
    offsets: Counts | None = None
    first = 0
    for following in stack.lists:
        collapsed = _collapse(repetition, definition, stack, following)
        num_slots = int(collapsed.offsets[-1])
        if offsets is not None and definition is not None and num_slots < definition.size:
            kept = empty(num_slots + 1, np.int64)
            kernels.select_offsets(offsets, definition, stack.bases[following], kept)
            offsets = kept
        levels_here = _levels_between(definition, stack, first, following, num_slots)
        result += _layers(levels_here, offsets, stack, range(first, following), dimensions, num_slots)
        repetition, definition = collapsed.repetition, collapsed.definition
        multiplicity = math.prod(dimensions[first:following])
        offsets = collapsed.offsets if multiplicity == 1 else collapsed.offsets // multiplicity
        num_slots = offsets.size - 1
        first = following
    return result + _layers(definition, offsets, stack, range(first, len(stack.layers)), dimensions, num_slots)


def _levels_between(
    definition: Levels | None, stack: LayerStack, first: int, following: int, num_slots: int
) -> Levels | None:
    """Return the levels of the entries that are items of lists of layer `following`; None if all are valid."""
    if definition is None or stack.bases[first] == stack.bases[following]:
        return None
    if num_slots == definition.size:
        return definition
    found = empty(num_slots + 1, np.uint16)
    kernels.select_levels(definition, stack.bases[following], found)
    return found[:num_slots]


def _layers(
    definition: Levels | None,
    offsets: Counts | None,
    stack: LayerStack,
    indices: range,
    dimensions: Sequence[int],
    num_slots: int,
) -> list[Layer]:
    """Return the layers from one list layer, given by its offsets, or from the values, up to the next list layer."""
    result = []
    for index in indices:
        if dimensions[index] > 1:
            if num_slots % dimensions[index]:
                raise CorruptFileError("the levels of a fixed-size list are not a multiple of its size")
            num_slots //= dimensions[index]
            definition = None if definition is None else definition[:: dimensions[index]]
        own = offsets if index == indices.start else None
        result.append(Layer(_validity(definition, stack, index), own, num_slots))
    return result


def _validity(definition: Levels | None, stack: LayerStack, index: int) -> Validity | None:
    if definition is None:
        return None
    validity = definition <= stack.bases[index]
    if stack.empty_level(index):
        validity |= definition == stack.empty_level(index)
    return None if validity.all() else validity


@dataclass(frozen=True, slots=True)
class _Collapsed:
    """The entries that start a list: their levels, and the offsets of their items."""

    repetition: Levels | None
    definition: Levels | None
    offsets: Counts


def _collapse(repetition: Levels | None, definition: Levels | None, stack: LayerStack, index: int) -> _Collapsed:
    """Reduce entries to those that start a list of layer `index`."""
    inner = _NO_LEVELS if repetition is None else repetition
    levels = _NO_LEVELS if definition is None else definition
    num_lists = int(np.count_nonzero(inner))
    offsets = empty(num_lists + 1, np.int64)
    outer = _NO_LEVELS if index == stack.lists[-1] else empty(num_lists + 1, np.uint16)
    outer_levels = empty(num_lists + 1, np.uint16)
    kernels.collapse_lists(inner, levels, stack.bases[index], offsets, outer, outer_levels)
    return _Collapsed(outer[:num_lists], None if definition is None else outer_levels[:num_lists], offsets)


class LevelBuilder:
    """Builds the levels of a leaf column, layer by layer from the rows inwards.

    Entries that are still *live* correspond, in order, to the slots of the layer reached so far; those of null and
    empty lists have ended. Nulls are noted by layer, and get their numbers once all layers are known.

    Parameters
    ----------
    num_rows : int
    num_lists : int
        Number of list layers to be added.
    """

    _NULL, _EMPTY = 1, 2

    def __init__(self, num_rows: int, num_lists: int) -> None:
        self._left = num_lists
        self._num_rows = num_rows
        self._repetition = np.full(num_rows if num_lists else 0, num_lists, np.uint16)
        self._found_codes: Levels | None = None
        self._live: Validity | None = None
        self._has_lists = num_lists > 0
        self._layers: list[int] = []

    @property
    def _codes(self) -> Levels:
        """The layer and kind of what each entry ends with, 0 for those that go on; made when it is looked at."""
        if self._found_codes is None:
            self._found_codes = np.zeros(self._num_rows, np.uint16)
        return self._found_codes

    def add_items(self, validity: Validity | None) -> None:
        """Add a struct or leaf layer; `validity` is bool[live entries], or None if all are valid."""
        if validity is None and self._found_codes is None:
            self._layers.append(item_layer(nullable=False))
            return
        codes = self._codes if self._live is None else self._codes[self._live]
        # Pylance shows values in null structs if the fields of the struct are marked as all valid.
        nullable = bool(codes.any())
        if validity is not None:
            null = ~validity & (codes == 0)
            nullable = nullable or bool(null.any())
            self._set_codes(null, self._NULL)
        self._layers.append(item_layer(nullable=nullable))

    def add_lists(self, validity: Validity | None, sizes: Counts) -> Counts:
        """Add a list layer.

        Parameters
        ----------
        validity : bool[live entries] or None
        sizes : int64[live entries]
            Size of every list, null or not.

        Returns
        -------
        kept : int64[live entries]
            Number of items of each list that become entries: 0 for lists that are null or nested in a null.
        """
        codes = self._codes if self._live is None else self._codes[self._live]
        hidden = codes != 0
        null = np.zeros(len(sizes), np.bool_) if validity is None else ~validity & ~hidden
        kept = np.where(hidden | null, 0, sizes)
        empty = (kept == 0) & ~hidden & ~null
        self._set_codes(null, self._NULL)
        self._set_codes(empty, self._EMPTY)
        # Pylance cannot read lists that are all valid below structs that are not.
        nullable = bool(null.any() or hidden.any())
        self._layers.append(list_layer(nullable=nullable, emptyable=bool(empty.any())))
        counts = np.ones(len(self._codes), np.int64)
        live = np.zeros(len(self._codes), np.bool_)
        positions = slice(None) if self._live is None else self._live
        counts[positions] = np.maximum(kept, 1)
        live[positions] = kept > 0
        self._left -= 1
        self._expand(counts, live, self._left)
        return kept

    def add_fixed_size_lists(self, validity: Validity | None, dimension: int) -> None:
        """Add a layer of fixed-size lists of structs; each becomes `dimension` entries."""
        self.add_items(validity)
        counts = np.full(len(self._codes), dimension, np.int64)
        live = np.ones(len(self._codes), np.bool_) if self._live is None else self._live
        counts[~live] = 1
        self._expand(counts, live, self._left)

    def finish(self) -> tuple[LevelPair, LayerStack]:
        """Return the levels and the layers, innermost first."""
        stack = LayerStack(tuple(reversed(self._layers)))
        if self._found_codes is None and not self._has_lists:
            return LevelPair(None, None, self._num_rows), stack
        numbers = np.zeros(4 * len(self._layers) + 4, np.uint16)
        for depth in range(len(self._layers)):
            index = len(self._layers) - 1 - depth
            numbers[4 * (depth + 1) + self._NULL] = stack.null_level(index)
            numbers[4 * (depth + 1) + self._EMPTY] = stack.empty_level(index)
        definition = None
        if stack.max_definition:
            definition = self._codes
            kernels.renumber(definition, numbers)
        repetition = self._repetition if self._has_lists else None
        num_levels = self._num_rows if self._found_codes is None else self._found_codes.size
        return LevelPair(repetition, definition, num_levels), stack

    def _set_codes(self, chosen: Validity, kind: int) -> None:
        """Mark live entries; the layer being added is the one after all added so far."""
        code = np.uint16(4 * (len(self._layers) + 1) + kind)
        codes = self._codes
        if self._live is None:
            codes += np.multiply(chosen, code, dtype=np.uint16)  # They are 0 yet. Faster than setting some.
        else:
            codes[np.flatnonzero(self._live)[chosen]] = code

    def _expand(self, counts: Counts, live: Validity, continued: int) -> None:
        """Repeat every entry; all repetitions except the first get the repetition level `continued`."""
        total = int(counts.sum())
        repetition, codes = empty(total, np.uint16), empty(total, np.uint16)
        expanded = empty(total, np.bool_)
        before = self._repetition if self._has_lists else np.zeros(counts.size, np.uint16)
        kernels.expand_entries(counts, live, before, self._codes, continued, repetition, codes, expanded)
        self._repetition, self._found_codes = repetition, codes
        self._live = None if expanded.all() else expanded
