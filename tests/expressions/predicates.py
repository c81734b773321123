"""Random predicates over the table of `birds`; the reference accepts all of them."""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.expressions.birds import CONSTANTS

_OPERATORS = ["=", "!=", "<>", "<", "<=", ">", ">=", "=="]
_INTEGERS = ["i8", "i16", "i32", "u8", "u16", "u32", "id", "st.x"]
_STRINGS = ["s", "t", "st.Inner.name"]
_ALIKE = [
    ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "id", "st.x"],
    ["f32", "f64", "i8", "i32", "u16"],
    ["s", "t", "ls", "st.Inner.name"],
    ["d", "ts", "ts_ms"],
    ["utc", "ny"],
    ["dec", "i8", "i32", "i64"],
    ["b", "b"],
    ["bin", "bin"],
]
_PATTERNS = ["a%", "%b", "%", "", "_", "a_b", "a\\%b", "%ö%", "A%", "__", "%\n%", "a.b", "%w o%", "abc\\", "b\\\\c"]


def _column_and_constant(rng: random.Random) -> str:
    name = rng.choice(list(CONSTANTS))
    sides = [name, CONSTANTS[name](rng)]
    if rng.random() < 0.3:
        sides.reverse()
    return f"{sides[0]} {rng.choice(_OPERATORS)} {sides[1]}"


def _columns(rng: random.Random) -> str:
    alike = rng.choice(_ALIKE)
    return f"{rng.choice(alike)} {rng.choice(_OPERATORS)} {rng.choice(alike)}"


def _null(rng: random.Random) -> str:
    name = rng.choice([*CONSTANTS, "b", "li", "st", "st.Inner"])
    return f"{name} is {rng.choice(['', 'not '])}null"


def _boolean(rng: random.Random) -> str:
    return rng.choice(
        ["b", "not b", "b is true", "b is not true", "b is false", "b is not false", "b = true", "null or b"]
    )


def _distinct(rng: random.Random) -> str:
    name = rng.choice([name for name in CONSTANTS if name not in ("dict", "fsb", "ny")])
    other = rng.choice([CONSTANTS[name](rng), "null", name])
    return f"{name} is {rng.choice(['', 'not '])}distinct from {other}"


def _among(rng: random.Random) -> str:
    name = rng.choice([name for name in CONSTANTS if "'" not in name])
    values = [CONSTANTS[name](rng) for _ in range(rng.randint(1, 6))]
    if rng.random() < 0.2:
        values.append("null")
    return f"{name} {rng.choice(['', 'not '])}in ({', '.join(values)})"


def _between(rng: random.Random) -> str:
    name = rng.choice(list(CONSTANTS))
    low, high = CONSTANTS[name](rng), CONSTANTS[name](rng)
    return f"{name} {rng.choice(['', 'not '])}between {low} and {high}"


def _like(rng: random.Random) -> str:
    verb = rng.choice(["like", "not like", "ilike", "not ilike"])
    return f"{rng.choice([*_STRINGS, 'ls'])} {verb} '{rng.choice(_PATTERNS)}'"


def _arithmetic(rng: random.Random) -> str:
    left = rng.choice(_INTEGERS)
    right = rng.choice([rng.choice(_INTEGERS), str(rng.randint(-5, 5))])
    shape = rng.choice(
        ["{} + {}", "{} - {}", "{} * {}", "{} / (1 + 2)", "{} % 3", "-{}", "({} - 1) * {}", "-7 / 2 + {}"]
    )
    if shape == "-{}" and left[0] == "u":
        left = "i16"
    text = shape.format(left, right)
    return f"{text} {rng.choice(_OPERATORS)} {rng.randint(-20, 100)}"


def _float_arithmetic(rng: random.Random) -> str:
    shape = rng.choice(
        ["{} + 1.5", "{} * 2.0", "{} / 0.0", "{} % 2.0", "-{}", "{} - f32", "{} / i8", "sqrt({})", "{} * {}"]
    )
    value = shape.format("f64", "f64")
    # The processor decides the sign of a computed NaN, and the reference orders it by the sign.
    return f"not isnan({value}) and {value} {rng.choice(_OPERATORS)} {rng.choice(['0.0', '-0.0', '1.5', '-3.0'])}"


def _string_function(rng: random.Random) -> str:
    name = rng.choice(_STRINGS)
    return rng.choice(
        [
            f"length({name}) {rng.choice(_OPERATORS)} {rng.randint(0, 4)}",
            f"char_length({name}) = {rng.choice(_INTEGERS)}",
            f"octet_length({name}) > {rng.randint(0, 4)}",
            f"lower({name}) = 'abc'",
            f"upper({name}) in ('ABC', 'ÄÖÜ')",
            f"starts_with({name}, '{rng.choice(['a', '', 'Ä', 'x'])}')",
            f"ends_with({name}, '{rng.choice(['b', '', 'owl'])}')",
            f"contains({name}, '{rng.choice(['b', '', '%', 'w o'])}')",
            f"strpos({name}, '{rng.choice(['b', 'ü', '%', ''])}') {rng.choice(_OPERATORS)} {rng.randint(0, 3)}",
            f"concat({name}, t) = 'abab'",
            f"concat({name}, i8) = '1'",
            f"{name} || 'c' = 'abc'",
            f"left({name}, {rng.randint(-2, 3)}) = 'ab'",
            f"left({name}, {rng.randint(-2, 3)}) {rng.choice(_OPERATORS)} 'a'",
            f"right({name}, {rng.randint(-2, 3)}) = 'b'",
            f"reverse({name}) = 'ba'",
            f"replace({name}, 'b', 'x') = 'ax'",
            f"btrim({name}, 'a') = 'b'",
            f"ltrim({name}) = 'owl'",
            f"regexp_like({name}, '{rng.choice(['^a', 'b$', '[A-Z]', 'ö.', '^$', 'a|o'])}')",
            f"regexp_like({name}, 'AB', 'i')",
            f"regexp_match({name}, '{rng.choice(['^a', 'b$', '(a)(b)'])}')",
            f"coalesce({name}, 'ab') = 'ab'",
            f"nullif({name}, 'ab') is null",
        ]
    )


def _number_function(rng: random.Random) -> str:
    return rng.choice(
        [
            f"coalesce(i32, i8, 3) {rng.choice(_OPERATORS)} 3",
            f"nullif(i8, {rng.randint(0, 3)}) > 0",
            "isnan(f64)",
            "iszero(f32)",
            f"nanvl(f64, 1.0) {rng.choice(_OPERATORS)} 1.0",
            f"greatest(i8, i32, 2) {rng.choice(_OPERATORS)} 7",
            f"least(i8, u8) {rng.choice(_OPERATORS)} 2",
            f"round(f64) {rng.choice(_OPERATORS)} {rng.choice(['2.0', '-2.0', '100.0'])}",
            f"round(f64, 1) {rng.choice(_OPERATORS)} 2.3",
            f"power(i8, 2) {rng.choice(_OPERATORS)} 49.0",
            f"abs(dec) {rng.choice(_OPERATORS)} decimal(10, 2) '2.25'",
            f"dec + i8 {rng.choice(_OPERATORS)} dec",
            f"dec * 2 {rng.choice(_OPERATORS)} 3",
            f"dec - decimal(5, 3) '1.500' {rng.choice(_OPERATORS)} 0",
        ]
    )


def _time_function(rng: random.Random) -> str:
    part = rng.choice(["year", "month", "day", "dow", "doy", "week", "quarter"])
    clock = rng.choice(["hour", "minute", "second", "millisecond", "microsecond"])
    moment = rng.choice(["ts", "ts_ms", "utc", "ny"])
    return rng.choice(
        [
            f"date_part('{part}', d) {rng.choice(_OPERATORS)} {rng.choice([1, 4, 12, 1970])}",
            f"date_part('{part}', {moment}) {rng.choice(_OPERATORS)} {rng.choice([1, 4, 12, 2000])}",
            f"date_part('{clock}', {moment}) {rng.choice(_OPERATORS)} {rng.choice([0, 12, 15, 123])}",
            f"date_part('epoch', {moment}) > 0.0",
            f"date_trunc('{rng.choice(['month', 'day', 'hour', 'year'])}', ts) = ts",
            f"date_trunc('{rng.choice(['month', 'day', 'year'])}', ts) {rng.choice(_OPERATORS)} timestamp '1970-03-01'",
            f"d - date '1970-01-01' {rng.choice(_OPERATORS)} 1",
        ]
    )


def _list_function(rng: random.Random) -> str:
    return rng.choice(
        [
            f"array_has(li, {rng.randint(-8, 7)})",
            "array_contains(li, i32)",
            f"array_has(lstr, '{rng.choice('abcz')}')",
            f"array_has_any(li, [{rng.randint(-3, 3)}, {rng.randint(0, 7)}])",
            f"array_has_any(lstr, Array['a', '{rng.choice('bz')}'])",
            f"array_has_all(li, [{rng.randint(-3, 3)}])",
            "array_has_all(lstr, ['a', 'b'])",
            f"array_length(li) {rng.choice(_OPERATORS)} {rng.randint(0, 3)}",
            f"li[{rng.choice([1, 2, 3, -1, -2, 0, 9])}] {rng.choice(_OPERATORS)} {rng.randint(-5, 5)}",
            f"lstr[{rng.choice([1, -1])}] = 'a'",
            "empty(li)",
        ]
    )


def _cast(rng: random.Random) -> str:
    return rng.choice(
        [
            f"cast(i8 as bigint) {rng.choice(_OPERATORS)} 100000000000",
            f"cast({rng.choice(['i8', 'u32', 'b', 'dec', 'd', 'ts', 'utc'])} as string) > '1'",
            "cast(f64 as string) in ('1.0', 'NaN', 'inf', '-1.5', '2.25', '-0.0')",
            "cast(ts as date) = d",
            "cast(d as timestamp) <= ts",
            "concat(cast(ts as timestamp(0)), '') > '1970-01-01T12:00:00'",
            f"cast(i8 as double) {rng.choice(_OPERATORS)} 2.5",
            f"cast(b as int) {rng.choice(_OPERATORS)} 1",
            # as a sum, since the reference loses the rounding of a cast that it compares with a constant
            f"cast(dec as int) + 0 * i8 {rng.choice(_OPERATORS)} -2",
            f"cast(dec as decimal(12, 1)) + i8 {rng.choice(_OPERATORS)} decimal(5, 1) '-2.3'",
            "try_cast(s as int) is null",
            f"try_cast(i32 as tinyint) + i8 {rng.choice(_OPERATORS)} 5",
            "i8::int = i8",
        ]
    )


TERMS: list[Callable[[random.Random], str]] = [
    _column_and_constant,
    _columns,
    _null,
    _boolean,
    _distinct,
    _among,
    _between,
    _like,
    _arithmetic,
    _float_arithmetic,
    _string_function,
    _number_function,
    _time_function,
    _list_function,
    _cast,
]


def predicate(rng: random.Random, depth: int = 2) -> str:
    """Return a random predicate as SQL."""
    if depth == 0 or rng.random() < 0.3:
        return rng.choice(TERMS)(rng)
    if rng.random() < 0.2:
        return f"not ({predicate(rng, depth - 1)})"
    parts = [predicate(rng, depth - 1) for _ in range(rng.randint(2, 3))]
    return rng.choice([" and ", " or "]).join(f"({part})" for part in parts)
