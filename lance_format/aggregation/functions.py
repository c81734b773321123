"""Aggregate functions: one row of `FUNCTIONS` each.

| function | of | its partial value |
|---|---|---|
| `count_all` | rows | int64 |
| `count` | values that are not null | int64 |
| `sum` | integers; floating-point numbers; decimals | int64; float64; the decimals' own type |
| `min`, `max` | anything in order: numbers, times, booleans, strings, binaries | its type |
| `value_counts` | numbers; decimals of up to 18 digits | a state: see `lance_format.aggregation.value_counts` |
| moments and co-moments | float64, or structs of two | a state: see `lance_format.aggregation.moments` |

Sums are computed with 128 bits or more. One that does not fit its type is returned as several partial values that do,
so no sum overflows here. Floating-point numbers are in Spark's order: NaN equals itself and exceeds all others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from lance_format.aggregation.moments import COMOMENTS, MOMENTS, Comoments, Moments
from lance_format.aggregation.state import Accumulator, State, Surplus
from lance_format.aggregation.value_counts import ValueCounts
from lance_format.aggregation.words import (
    I32,
    I64,
    U64,
    Bool,
    from_halves,
    from_words,
    frozen,
    halves,
    is_word,
    to_floats,
    to_words,
    validity,
)
from lance_format.errors import NotSupportedError
from lance_format.kernels.aggregation.grouping import add_floats, add_integers, keep_extremes
from lance_format.masks import is_text

_PENDING_ROWS = 1 << 16
_WORD = 1 << 64


class _Count(State):
    _dtypes = ("i8",)
    type = pa.int64()

    def add(self, values: pa.Array | None, groups: I32, num_groups: int) -> None:
        (counts,) = self._used(num_groups)
        if values is not None and values.null_count:
            groups = groups[validity(values)]
        counts += np.bincount(groups, minlength=num_groups) if num_groups > 1 else groups.size

    def results(self, num_groups: int) -> pa.Array:
        return pa.array(self._used(num_groups)[0])

    def of_rows(self, values: pa.Array | None, num_rows: int) -> pa.Array:
        return pa.repeat(pa.scalar(1), num_rows) if values is None else values.is_valid().cast(pa.int64())

    def neutral(self, num_rows: int) -> pa.Array:
        return pa.repeat(pa.scalar(0), num_rows)


class _FloatSum(State):
    _dtypes = ("f8", "i8")
    type = pa.float64()

    def add(self, values: pa.Array, groups: I32, num_groups: int) -> None:
        sums, counts = self._reserve(num_groups)
        add_floats(to_floats(values), validity(values), groups, sums, counts)

    def results(self, num_groups: int) -> pa.Array:
        sums, counts = self._used(num_groups)
        return pa.array(sums, mask=counts == 0)

    def of_rows(self, values: pa.Array, num_rows: int) -> pa.Array:  # noqa: ARG002
        return values.cast(pa.float64())


class _ExactSum(State):
    """A sum of integers in 128 bits; `_most` is the greatest partial value."""

    _dtypes = ("u8", "i8", "i8")
    type = pa.int64()
    _most = 2**63 - 1

    def add(self, values: pa.Array, groups: I32, num_groups: int) -> None:
        low, high, counts = self._reserve(num_groups)
        add_integers(to_words(values), validity(values), groups, low, high, counts)

    def results(self, num_groups: int) -> pa.Array:
        low, high, counts = self._used(num_groups)
        fits = self._fits(low, high)
        first = low.view(np.int64)
        if not fits.all():
            first = first.copy()
            for group in np.flatnonzero(~fits).tolist():
                first[group] = _remainder(self._total(group), self._most)
        return from_words(first, counts > 0, self.type)

    def surplus(self, num_groups: int) -> Surplus:
        low, high, _ = self._used(num_groups)
        for group in np.flatnonzero(~self._fits(low, high)).tolist():
            total = self._total(group)
            count = abs(total) // self._most
            part = pa.array([self._most if total > 0 else -self._most], pa.int64()).to_numpy()
            yield np.full(count, group), from_words(np.repeat(part, count), np.ones(count, np.bool_), self.type)

    def of_rows(self, values: pa.Array, num_rows: int) -> pa.Array:  # noqa: ARG002
        return values.cast(self.type)

    def _fits(self, low: U64, high: I64) -> Bool:
        signed: I64 = low.view(np.int64)
        fits: Bool = (high == signed >> 63) & (signed <= self._most) & (signed >= -self._most)
        return fits

    def _total(self, group: int) -> int:
        low, high = self._arrays[:2]
        return int(high[group]) * _WORD + int(low[group])


class _DecimalSum(_ExactSum):
    """A sum of decimals that 64 bits hold, in their own type."""

    def __init__(self, arrow_type: pa.DataType) -> None:
        self.type = arrow_type
        self._most = 10**arrow_type.precision - 1
        super().__init__()


class _WideDecimalSum(State):
    """A sum of decimals of up to 38 digits, as the sums of their lower and upper halves."""

    _dtypes = ("u8", "i8", "i8", "u8", "i8", "i8")

    def __init__(self, arrow_type: pa.DataType) -> None:
        self.type = arrow_type
        self._most = 10**arrow_type.precision - 1
        super().__init__()

    def add(self, values: pa.Array, groups: I32, num_groups: int) -> None:
        arrays = self._reserve(num_groups)
        valid = validity(values)
        low, high = halves(values)
        add_integers(frozen(low), valid, groups, *arrays[:3])
        if high.any():
            add_integers(frozen(high), valid, groups, *arrays[3:])

    def results(self, num_groups: int) -> pa.Array:
        low, high, counts, upper, _, _ = self._used(num_groups)
        first_low, first_high = low.copy(), high + upper.view(np.int64)
        for group in np.flatnonzero(~self._fits(num_groups)).tolist():
            first = _remainder(self._total(group), self._most)
            first_low[group] = first % _WORD
            first_high[group] = first >> 64
        return from_halves(first_low, first_high, counts > 0, self.type)

    def surplus(self, num_groups: int) -> Surplus:
        for group in np.flatnonzero(~self._fits(num_groups)).tolist():
            total = self._total(group)
            count = abs(total) // self._most
            part = self._most if total > 0 else -self._most
            low, high = np.full(count, part % _WORD, np.uint64), np.full(count, part >> 64)
            if count:
                yield np.full(count, group), from_halves(low, high, np.ones(count, np.bool_), self.type)

    def of_rows(self, values: pa.Array, num_rows: int) -> pa.Array:  # noqa: ARG002
        return values

    def _fits(self, num_groups: int) -> Bool:
        """Return for each group whether its sum surely fits."""
        low, high, _, upper, upper_high, _ = self._used(num_groups)
        fits: Bool = (upper == 0) & (upper_high == 0) & (high == low.view(np.int64) >> 63)
        return fits

    def _total(self, group: int) -> int:
        low, high, _, upper, upper_high, _ = (int(array[group]) for array in self._arrays)
        return low + _WORD * (high + upper + _WORD * upper_high)


def _remainder(total: int, most: int) -> int:
    """Return the first of partial values whose others are `most` or its opposite."""
    return abs(total) % most if total >= 0 else -(abs(total) % most)


class _Extreme(State):
    """The least or the greatest value."""

    def __init__(self, arrow_type: pa.DataType, *, greatest: bool) -> None:
        self.type = arrow_type
        self._greatest = greatest
        super().__init__()

    def of_rows(self, values: pa.Array, num_rows: int) -> pa.Array:  # noqa: ARG002
        return values


class _WordExtreme(_Extreme):
    _dtypes = ("i8", "i8")

    def add(self, values: pa.Array, groups: I32, num_groups: int) -> None:
        kept, counts = self._reserve(num_groups)
        keep_extremes(to_words(values), validity(values), groups, kept, counts, self._greatest)

    def results(self, num_groups: int) -> pa.Array:
        kept, counts = self._used(num_groups)
        return from_words(kept, counts > 0, self.type)


class _FloatExtreme(_Extreme):
    _dtypes = ("f8", "i8")

    def add(self, values: pa.Array, groups: I32, num_groups: int) -> None:
        kept, counts = self._reserve(num_groups)
        keep_extremes(to_floats(values), validity(values), groups, kept, counts, self._greatest)

    def results(self, num_groups: int) -> pa.Array:
        kept, counts = self._used(num_groups)
        return pa.array(kept.astype(f"f{self.type.bit_width // 8}"), self.type, mask=counts == 0)


class _ArrowExtreme(_Extreme):
    """Arrow's own hash aggregation, of one batch at a time."""

    def clear(self) -> None:
        super().clear()
        self._pending: list[pa.Table] = []

    @property
    def size_bytes(self) -> int:  # type: ignore[override]
        return sum(table.nbytes for table in self._pending)

    def add(self, values: pa.Array, groups: I32, num_groups: int) -> None:
        self._pending.append(self._reduce(pa.table([groups, values], names=["group", "value"])))
        if len(self._pending) > 1 and sum(table.num_rows for table in self._pending) > _PENDING_ROWS + 2 * num_groups:
            self._pending = [self._reduce(pa.concat_tables(self._pending))]

    def results(self, num_groups: int) -> pa.Array:
        if not self._pending:
            return pa.nulls(num_groups, self.type)
        found = self._reduce(pa.concat_tables(self._pending))
        position = np.full(num_groups, -1)
        position[found["group"].to_numpy()] = np.arange(found.num_rows)
        taken = found["value"].take(pa.array(position, mask=position < 0))
        return taken.combine_chunks() if isinstance(taken, pa.ChunkedArray) else taken

    def _reduce(self, table: pa.Table) -> pa.Table:
        name = "max" if self._greatest else "min"
        found = table.group_by("group", use_threads=False).aggregate([("value", name)])
        return pa.table([found["group"], found[f"value_{name}"]], names=["group", "value"])


_Make: TypeAlias = Callable[[pa.DataType], Accumulator]
_Kinds: TypeAlias = tuple[tuple[Callable[[pa.DataType], bool], _Make], ...]


def _is_float(arrow_type: pa.DataType) -> bool:
    return bool(pa.types.is_float32(arrow_type) or pa.types.is_float64(arrow_type))


def _is_counted(arrow_type: pa.DataType) -> bool:
    is_number = pa.types.is_integer(arrow_type) or pa.types.is_decimal128(arrow_type)
    return _is_float(arrow_type) or (is_number and is_word(arrow_type))


def _is_pair(arrow_type: pa.DataType) -> bool:
    return bool(pa.types.is_struct(arrow_type)) and [field.type for field in arrow_type] == [pa.float64()] * 2


_SUMS: _Kinds = (
    (lambda arrow_type: pa.types.is_integer(arrow_type) and is_word(arrow_type), lambda _: _ExactSum()),
    (_is_float, lambda _: _FloatSum()),
    (lambda arrow_type: pa.types.is_decimal128(arrow_type) and is_word(arrow_type), _DecimalSum),
    (pa.types.is_decimal128, _WideDecimalSum),
)


def _extremes(*, greatest: bool) -> _Kinds:
    return (
        (is_word, lambda arrow_type: _WordExtreme(arrow_type, greatest=greatest)),
        (_is_float, lambda arrow_type: _FloatExtreme(arrow_type, greatest=greatest)),
        (
            lambda arrow_type: is_text(arrow_type) or pa.types.is_decimal128(arrow_type),
            lambda arrow_type: _ArrowExtreme(arrow_type, greatest=greatest),
        ),
    )


def _named(make: Callable[[str], Accumulator], name: str) -> _Make:
    return lambda _: make(name)


FUNCTIONS: dict[str, _Kinds] = {
    "count_all": ((lambda _: True, lambda _: _Count()),),
    "count": ((lambda _: True, lambda _: _Count()),),
    "sum": _SUMS,
    "min": _extremes(greatest=False),
    "max": _extremes(greatest=True),
    "value_counts": ((_is_counted, ValueCounts),),
    **{name: ((pa.types.is_float64, _named(Moments, name)),) for name in MOMENTS},
    **{name: ((_is_pair, _named(Comoments, name)),) for name in COMOMENTS},
}


def make_accumulator(function: str, argument: pa.DataType | None) -> Accumulator:
    """Return an accumulator without groups.

    Parameters
    ----------
    function : str
        A name of `FUNCTIONS`.
    argument : pa.DataType, optional
        The type of the argument, if the function has one.

    Raises
    ------
    NotSupportedError
        If the function does not take values of this type.
    """
    for is_kind, make in FUNCTIONS[function]:
        if is_kind(argument):
            return make(argument)
    raise NotSupportedError(f"{function} of {argument} is not computed here; cast it to another type")
