"""Statistics of zones computed without haste, the same made vaguer, and values and predicates for them."""

from __future__ import annotations

import random
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_format.expressions import nodes
from lance_format.expressions.nodes import Expression, Literal
from lance_format.expressions.zones import ZoneStatistics


def random_sizes(rng: random.Random, num_rows: int, most: int = 40) -> list[int]:
    """Return the sizes of zones, empty ones among them."""
    sizes = []
    while sum(sizes) < num_rows:
        sizes.append(min(rng.randint(0, most), num_rows - sum(sizes)))
    return sizes


def ranks_of(values: pa.Array) -> np.ndarray:
    """Return the place of each value in the order of the type; of null, anything."""
    if pa.types.is_float16(values.type):
        values = values.cast(pa.float32())
    return pc.rank(values, "ascending", tiebreaker="dense").to_numpy()


def statistics_of(values: pa.Array, sizes: list[int]) -> ZoneStatistics:
    """Return exact statistics of an array, which may be a dictionary or an extension."""
    if isinstance(values, pa.ExtensionArray):
        values = values.storage
    if isinstance(values, pa.DictionaryArray):
        values = values.dictionary_decode()
    ranks, valid = ranks_of(values), values.is_valid().to_numpy(zero_copy_only=False)
    least: list[int | None] = []
    greatest: list[int | None] = []
    num_nulls = []
    start = 0
    for size in sizes:
        rows = start + np.flatnonzero(valid[start : start + size])
        least.append(int(rows[ranks[rows].argmin()]) if len(rows) else None)
        greatest.append(int(rows[ranks[rows].argmax()]) if len(rows) else None)
        num_nulls.append(size - len(rows))
        start += size
    lower, upper = (values.take(pa.array(places, pa.int64())) for places in (least, greatest))
    return ZoneStatistics(np.array(sizes, np.int64), np.array(num_nulls, np.int64), lower, upper, exact=True)


def blurred(found: ZoneStatistics, rng: random.Random) -> ZoneStatistics:
    """Return statistics that say less: wider bounds, unknown bounds, unknown counts of nulls."""
    ranks = [ranks_of(bounds) for bounds in (found.lower, found.upper)]
    widest = (int(ranks[0].argmin()), int(ranks[1].argmax()))
    bounds = []
    for array, extreme in zip((found.lower, found.upper), widest, strict=True):
        places = [rng.choices([zone, None, extreme], [8, 1, 1])[0] for zone in range(found.num_zones)]
        bounds.append(array.take(pa.array(places, pa.int64())))
    lower, upper = bounds
    if pa.types.is_string(lower.type):
        lower = pc.if_else(rng.random() < 0.5, lower, pc.utf8_slice_codeunits(lower, 0, 1))
        upper = pc.if_else(rng.random() < 0.5, upper, pc.binary_join_element_wise(upper, "\x01", ""))
    unknown = np.array([rng.random() < 0.2 for _ in range(found.num_zones)], np.bool_)
    num_nulls = np.where(unknown, -1, found.num_nulls)
    return ZoneStatistics(found.num_rows, num_nulls, lower, upper, exact=False)


def random_values(rng: random.Random, arrow_type: pa.DataType, count: int) -> pa.Array:
    """Return values that lie close to each other, so that zones prune, and a few extremes."""
    if pa.types.is_boolean(arrow_type):
        return pa.array([rng.random() < 0.5 for _ in range(count)])
    if pa.types.is_floating(arrow_type):
        special = [0.0, -0.0, float("nan"), float("inf"), float("-inf"), 1.5]
        values = [rng.choice(special) if rng.random() < 0.1 else float(rng.randint(-9, 9)) for _ in range(count)]
        return pa.array(np.array(values, arrow_type.to_pandas_dtype()), arrow_type)
    if pa.types.is_decimal(arrow_type):
        highest = Decimal(10) ** (arrow_type.precision - 1)
        values = [
            rng.choice([highest - 1, -highest]) if rng.random() < 0.05 else Decimal(rng.randint(-9, 9))
            for _ in range(count)
        ]
        return pa.array([value.scaleb(-arrow_type.scale) for value in values], arrow_type)
    if pa.types.is_string(arrow_type) or pa.types.is_large_string(arrow_type):
        return pa.array(["".join(rng.choices("abü\U0010ffff", k=rng.randint(0, 4))) for _ in range(count)], arrow_type)
    if pa.types.is_fixed_size_binary(arrow_type):
        return pa.array([bytes(rng.choices(b"\x00a\xff", k=arrow_type.byte_width)) for _ in range(count)], arrow_type)
    if pa.types.is_binary(arrow_type) or pa.types.is_large_binary(arrow_type):
        return pa.array([bytes(rng.choices(b"\x00a\xff", k=rng.randint(0, 3))) for _ in range(count)], arrow_type)
    bits = arrow_type.bit_width
    low, high = (
        (0, 2**bits - 1) if pa.types.is_unsigned_integer(arrow_type) else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    )
    if pa.types.is_time(arrow_type):
        low, high = 0, 86_399
    if pa.types.is_temporal(arrow_type) and not pa.types.is_time(arrow_type):
        low, high = -(2**19), 2**19  # Python has every unit.
    values = [rng.choice([low, high]) if rng.random() < 0.05 else max(low, rng.randint(-9, 9)) for _ in range(count)]
    storage = (
        pa.array(values, {8: pa.int8(), 16: pa.int16(), 32: pa.int32()}.get(bits, pa.int64()))
        if (not pa.types.is_unsigned_integer(arrow_type))
        else pa.array(values, arrow_type)
    )
    return (
        storage.view(arrow_type)
        if not pa.types.is_date64(arrow_type)
        else pc.multiply(storage, 86_400_000).view(arrow_type)
    )


ORDERED_TYPES = [
    pa.bool_(),
    *(getattr(pa, f"{sign}int{bits}")() for sign in ("", "u") for bits in (8, 16, 32, 64)),
    *(pa.float16(), pa.float32(), pa.float64()),
    *(pa.string(), pa.large_string(), pa.binary(), pa.large_binary(), pa.binary(2)),
    *(pa.date32(), pa.date64(), pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")),
    *(pa.timestamp("s"), pa.timestamp("ms", "UTC"), pa.timestamp("us", "America/New_York"), pa.timestamp("ns")),
    *(pa.duration("s"), pa.duration("ns")),
    *(pa.decimal128(10, 2), pa.decimal128(38, 0), pa.decimal256(60, 5)),
]


def _random_term(rng: random.Random, column: Expression, values: pa.Array) -> Expression:
    def constant() -> pa.Scalar:
        return values[rng.randrange(len(values))]

    kind = rng.randrange(6)
    if kind == 0:
        return nodes.IsNull(column)
    if kind == 1:
        chosen = [rng.randrange(len(values)) for _ in range(rng.choice([0, 1, 3, 200]))]
        return nodes.In(column, values.take(pa.array(chosen, pa.int64())))
    if kind == 2:
        return nodes.NullSafeEqual(column, Literal(constant()))
    sides = [column, Literal(constant())]
    rng.shuffle(sides)
    return nodes.Comparison(rng.choice(list(nodes.NEGATED)), *sides)


def random_tree(rng: random.Random, column: Expression, values: pa.Array, depth: int) -> Expression:
    kind = rng.randrange(8) if depth else 7
    below = [random_tree(rng, column, values, depth - 1) for _ in range(3)] if kind < 6 else []
    match kind:
        case 0:
            return nodes.And(tuple(below))
        case 1:
            return nodes.Or(tuple(below))
        case 2:
            return nodes.Not(below[0])
        case 3:
            return nodes.Case((below[0],), (below[1],), below[2])
        case 4:
            return nodes.Call("coalesce", tuple(below[:2]))
        case 5:
            return nodes.NullSafeEqual(below[0], below[1])
    return _random_term(rng, column, values)
