"""Arrays of every type that Lance stores, with chosen nulls and styles, from a seed."""

from __future__ import annotations

import decimal
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.types as t

ZONES = (None, "UTC", "+05:30", "America/New_York")
UNITS = ("s", "ms", "us", "ns")
FLAT_TYPES: list[pa.DataType] = [
    pa.null(),
    pa.bool_(),
    *(getattr(pa, f"{sign}int{bits}")() for sign in ("", "u") for bits in (8, 16, 32, 64)),
    pa.float16(),
    pa.float32(),
    pa.float64(),
    pa.decimal128(38, 5),
    pa.decimal128(10, -2),
    pa.decimal256(60, 3),
    pa.date32(),
    pa.date64(),
    pa.time32("s"),
    pa.time32("ms"),
    pa.time64("us"),
    pa.time64("ns"),
    *(pa.timestamp(unit, zone) for unit in UNITS for zone in ZONES),
    *(pa.duration(unit) for unit in UNITS),
    pa.string(),
    pa.binary(),
    pa.large_string(),
    pa.large_binary(),
    pa.binary(3),
    pa.binary(16),
    pa.binary(100),
]
STYLES = ("constant", "small", "random")
NULLS = ("no nulls", "some nulls", "all nulls")


def make_array(arrow_type: pa.DataType, num_rows: int, nulls: str, style: str, seed: int = 0) -> pa.Array:
    """Return an array of the type; `style` is one value, few bits, or random values."""
    if nulls == "all nulls" or t.is_null(arrow_type):
        return pa.nulls(num_rows, arrow_type)
    rng = np.random.default_rng(seed)
    mask = rng.random(num_rows) < 0.3 if nulls == "some nulls" else None
    if style == "constant":
        numbers = np.full(num_rows, 7)
    elif style == "small":
        numbers = rng.integers(0, 50, num_rows)
    else:
        numbers = rng.integers(-(2**62), 2**62, num_rows)
    return _build(arrow_type, numbers, mask)


def flat_tables(sizes: Sequence[int], nulls: str) -> list[pa.Table]:
    """Return tables of so many rows, with a column of each flat type that has values."""
    types = {str(kind): kind for kind in FLAT_TYPES if not t.is_null(kind)}
    return [
        pa.table({name: make_array(kind, size, nulls, STYLES[seed % 3], seed) for name, kind in types.items()})
        for seed, size in enumerate(sizes)
    ]


def same_values(found: pa.Table, expected: pa.Table) -> bool:
    """Return whether two tables hold the same Python values; Arrow compares them where it can, which is much faster."""
    return _looked_up(found).equals(_looked_up(expected)) or found.to_pylist() == expected.to_pylist()


def _looked_up(table: pa.Table) -> pa.Table:
    """Replace dictionaries, whose items two writers may order differently, by their values."""
    for place, field in enumerate(table.schema):
        if t.is_dictionary(field.type):
            chunks = [chunk.dictionary.take(chunk.indices) for chunk in table.column(place).chunks]
            table = table.set_column(place, field.name, pa.chunked_array(chunks, field.type.value_type))
    return table


def _build(arrow_type: pa.DataType, numbers: np.ndarray, mask: np.ndarray | None) -> pa.Array:
    if t.is_boolean(arrow_type):
        return pa.array(numbers % 2 == 0, mask=mask)
    make = _value_maker(arrow_type)
    if make is not None:
        return pa.array([make(int(number)) for number in numbers], arrow_type, mask=mask)
    if t.is_floating(arrow_type):
        scaled = numbers / 2.0**62 if arrow_type == pa.float16() and abs(numbers).max() > 1000 else numbers / 3
        return pa.array(scaled.astype(arrow_type.to_pandas_dtype()), mask=mask)
    if t.is_date64(arrow_type):
        numbers = numbers % 30_000 * 86_400_000
    if t.is_time(arrow_type):
        numbers = numbers % 86_400
    array = pa.array(numbers.astype(f"i{arrow_type.bit_width // 8}"), mask=mask)
    return array.view(arrow_type)


def _value_maker(arrow_type: pa.DataType) -> Callable[[int], object] | None:
    if t.is_string(arrow_type) or t.is_large_string(arrow_type):
        return lambda number: "ü" * (number % 17) + str(number)
    if t.is_binary(arrow_type) or t.is_large_binary(arrow_type):
        return lambda number: bytes([number % 256]) * (number % 31)
    if t.is_decimal(arrow_type):
        return lambda number: decimal.Decimal(number % 10**8) * (1 if arrow_type.scale >= 0 else 100)
    if t.is_fixed_size_binary(arrow_type):
        width = arrow_type.byte_width
        return lambda number: (number % 2**64).to_bytes(8, "little")[:width].ljust(width, b"\1")
    return None
