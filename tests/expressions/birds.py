"""A table with a column of every kind that predicates meet, and the SQL of constants that fit each."""

from __future__ import annotations

import datetime
import math
import random
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa

NUM_ROWS = 97
_WORDS = ["", "a", "b", "ab", "abc", "Abc", "ABC", "a%b", "a_b", "äöü", "Ä", "b\\c", "owl", "snow owl", "it's", "x\ny"]
_BYTES = [b"", b"a", b"ab", b"\x00", b"\xff\xfe", b"abc"]
# No -0.0 and no negative NaN: the reference distinguishes them from 0.0 and NaN, except in comparisons with constants.
_FLOATS = [0.0, 1.0, -1.5, 2.25, 100.0, math.inf, -math.inf, math.nan, 1e-300, 1e30]
_ZONE = datetime.UTC


def _integers(bits: int, signed: bool) -> Callable[[random.Random], int]:
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    edges = [low, low + 1, 0, 1, 2, 3, 7, high - 1, high]
    return lambda rng: rng.choice(edges) if rng.random() < 0.3 else rng.randint(max(low, -20), 20)


def _float32(rng: random.Random) -> float:
    return rng.choice([value for value in _FLOATS if value != 1e-300])


def _day(rng: random.Random) -> datetime.date:
    return datetime.date(1970, 1, 1) + datetime.timedelta(days=rng.choice([-4000, -1, 0, 1, 59, 366, 11016, 18262]))


def _moment(rng: random.Random) -> datetime.datetime:
    # none within the hours that a clock skips or repeats
    hours = datetime.timedelta(hours=rng.choice([0, 12, 15]), microseconds=rng.choice([0, 1, 999_999, 123_000]))
    return datetime.datetime.combine(_day(rng), datetime.time(0)) + hours


def _decimal(rng: random.Random) -> Decimal:
    return Decimal(rng.choice([-225, -1, 0, 1, 150, 1200, 9_999_999_999])) / 100


def _maybe(rng: random.Random, make: Callable[[random.Random], Any]) -> Any:
    return None if rng.random() < 0.15 else make(rng)


_MAKERS: dict[str, tuple[pa.DataType, Callable[[random.Random], Any]]] = {
    **{f"i{bits}": (getattr(pa, f"int{bits}")(), _integers(bits, True)) for bits in (8, 16, 32, 64)},
    **{f"u{bits}": (getattr(pa, f"uint{bits}")(), _integers(bits, False)) for bits in (8, 16, 32, 64)},
    "f32": (pa.float32(), _float32),
    "f64": (pa.float64(), lambda rng: rng.choice(_FLOATS)),
    "zero": (pa.float64(), lambda rng: rng.choice([0.0, -0.0, math.nan, 1.0])),
    "b": (pa.bool_(), lambda rng: rng.random() < 0.5),
    "s": (pa.string(), lambda rng: rng.choice(_WORDS)),
    "t": (pa.string(), lambda rng: rng.choice(_WORDS)),
    "ls": (pa.large_string(), lambda rng: rng.choice(_WORDS)),
    "bin": (pa.binary(), lambda rng: rng.choice(_BYTES)),
    "fsb": (pa.binary(2), lambda rng: rng.choice([b"ab", b"cd", b"\x00\x00"])),
    "d": (pa.date32(), _day),
    "ts": (pa.timestamp("us"), _moment),
    "ts_ms": (pa.timestamp("ms"), lambda rng: _moment(rng).replace(microsecond=123_000)),
    "utc": (pa.timestamp("us", "UTC"), lambda rng: _moment(rng).replace(tzinfo=_ZONE)),
    "ny": (pa.timestamp("us", "America/New_York"), lambda rng: _moment(rng).replace(tzinfo=_ZONE)),
    "dec": (pa.decimal128(10, 2), _decimal),
    "li": (pa.list_(pa.int32()), lambda rng: [_maybe(rng, _integers(4, True)) for _ in range(rng.randint(0, 3))]),
    "lstr": (
        pa.list_(pa.string()),
        lambda rng: [_maybe(rng, lambda r: r.choice("abc")) for _ in range(rng.randint(0, 3))],
    ),
    "st": (
        pa.struct({"x": pa.int32(), "Inner": pa.struct({"name": pa.string()})}),
        lambda rng: {
            "x": _maybe(rng, _integers(8, True)),
            "Inner": _maybe(rng, lambda r: {"name": _maybe(r, lambda q: q.choice(_WORDS))}),
        },
    ),
}


def make_table(seed: int = 0) -> pa.Table:
    """Return the table: a column `id` that numbers the rows, and the others."""
    rng = random.Random(seed)
    columns = {"id": pa.array(range(NUM_ROWS), pa.int64())}
    for name, (arrow_type, make) in _MAKERS.items():
        columns[name] = pa.array([_maybe(rng, make) for _ in range(NUM_ROWS)], arrow_type)
    columns["dict"] = pa.array([_maybe(rng, lambda r: r.choice(_WORDS)) for _ in range(NUM_ROWS)]).dictionary_encode()
    return pa.table(columns)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _float_sql(value: float) -> str:
    if math.isnan(value) or math.isinf(value):
        return f"cast('{value}' as double)"
    return repr(value)


def _integer_sql(bits: int, signed: bool) -> Callable[[random.Random], str]:
    make = _integers(bits, signed)
    # the reference reads the least 64-bit integer as a float
    return lambda rng: str(max(make(rng), -(2**63) + 1))


CONSTANTS: dict[str, Callable[[random.Random], str]] = {
    **{f"i{bits}": _integer_sql(bits, True) for bits in (8, 16, 32, 64)},
    **{f"u{bits}": _integer_sql(bits, False) for bits in (8, 16, 32, 64)},
    "f32": lambda rng: _float_sql(abs(_float32(rng)) if rng.random() < 0.5 else -2.5),
    "f64": lambda rng: _float_sql(rng.choice(_FLOATS)),
    "zero": lambda rng: rng.choice(["0.0", "-0.0", "0", "1.0"]),
    "s": lambda rng: _quoted(rng.choice(_WORDS)),
    "ls": lambda rng: _quoted(rng.choice(_WORDS)),
    "dict": lambda rng: _quoted(rng.choice(_WORDS)),
    "bin": lambda rng: f"X'{rng.choice(_BYTES).hex()}'",
    "fsb": lambda rng: rng.choice(["X'6162'", "X'0000'", "X'7a7a'"]),
    "d": lambda rng: f"date '{_day(rng)}'",
    "ts": lambda rng: f"timestamp '{_moment(rng)}'",
    "ts_ms": lambda rng: f"timestamp(3) '{_moment(rng).replace(microsecond=123_000)}'",
    "utc": lambda rng: f"timestamp '{_moment(rng)}'",
    "ny": lambda rng: f"timestamp '{_moment(rng)}'",
    "dec": lambda rng: f"decimal(10, 2) '{_decimal(rng)}'",
    "st.x": _integer_sql(8, True),
    "st.Inner.name": lambda rng: _quoted(rng.choice(_WORDS)),
    "`st`['x']": _integer_sql(8, True),
}
