"""Random nested types and arrays, from a seed."""

from __future__ import annotations

import random
from collections.abc import Callable

import pyarrow as pa
import pyarrow.types as t

LEAVES = [pa.int32(), pa.int64(), pa.string(), pa.bool_(), pa.float64(), pa.binary(3), pa.date32(), pa.null()]


def random_type(rng: random.Random, depth: int, *, maps: bool) -> pa.DataType:
    """Return a type of structs, lists and maps at most `depth` deep."""
    kinds = ["leaf", "list", "struct", "large_list", *(["map"] if maps else [])] if depth else ["leaf"]
    kind = rng.choice(kinds)
    if kind == "leaf":
        return rng.choice(LEAVES)
    if kind == "list":
        return pa.list_(random_type(rng, depth - 1, maps=maps))
    if kind == "large_list":
        return pa.large_list(random_type(rng, depth - 1, maps=maps))
    if kind == "map":
        return pa.map_(rng.choice([pa.string(), pa.int32()]), random_type(rng, depth - 1, maps=maps))
    return pa.struct([(f"f{index}", random_type(rng, depth - 1, maps=maps)) for index in range(rng.randint(1, 3))])


class RandomValues:
    """Makes values with given chances of nulls and of empty lists, and a longest list."""

    def __init__(
        self, rng: random.Random, nulls: float, empties: float, longest: int, *, null_structs: bool = True
    ) -> None:
        self._rng = rng
        self._null_structs = null_structs
        self._nulls = nulls
        self._empties = empties
        self._longest = longest
        self._budget = 30_000  # of values; nested lists would multiply

    def array(self, arrow_type: pa.DataType, num_rows: int) -> pa.Array:
        return pa.array([self.value(arrow_type) for _ in range(num_rows)], arrow_type)

    def value(self, arrow_type: pa.DataType) -> object:
        may_be_null = self._null_structs or not t.is_struct(arrow_type)
        if t.is_null(arrow_type) or (may_be_null and self._rng.random() < self._nulls):
            return None
        if t.is_struct(arrow_type):
            return {field.name: self.value(field.type) for field in arrow_type}
        if t.is_map(arrow_type):
            return [(self._leaf(arrow_type.key_type), self.value(arrow_type.item_type)) for _ in range(self._length())]
        if t.is_fixed_size_list(arrow_type):
            return [self.value(arrow_type.value_type) for _ in range(arrow_type.list_size)]
        if t.is_list(arrow_type) or t.is_large_list(arrow_type):
            return [self.value(arrow_type.value_type) for _ in range(self._length())]
        return self._leaf(arrow_type)

    def _length(self) -> int:
        if self._rng.random() < self._empties:
            return 0
        length = self._rng.randint(1, self._longest) if self._budget > 0 else 1
        self._budget -= length
        return length

    def _leaf(self, arrow_type: pa.DataType) -> object:
        rng = self._rng
        makers: list[tuple[Callable[[pa.DataType], bool], Callable[[], object]]] = [
            (t.is_string, lambda: "v" * rng.randint(0, 5) + str(rng.randint(0, 999))),
            (t.is_boolean, lambda: rng.random() < 0.5),
            (t.is_floating, rng.random),
            (t.is_fixed_size_binary, lambda: rng.randbytes(arrow_type.byte_width)),
            (t.is_date, lambda: rng.randint(-(10**5), 10**5)),
        ]
        for matches, make in makers:
            if matches(arrow_type):
                return make()
        return rng.randint(-(2**31), 2**31 - 1) if rng.random() < 0.5 else rng.randint(0, 100)
