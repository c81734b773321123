"""The judge is the reference: the same expressions keep the same rows and have the same values."""

from __future__ import annotations

import math
import random
from pathlib import Path

import lance
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lance_format
from lance_format import expressions
from lance_format.errors import InvalidInputError
from tests.expressions.birds import make_table
from tests.expressions.predicates import TERMS, predicate


class Both:
    """A table as the reference has it and as a batch."""

    def __init__(self, path: Path) -> None:
        table = make_table()
        self.reference = lance.write_dataset(table, path)
        self.batch = table.combine_chunks().to_batches()[0]

    def check_filter(self, source: str | pc.Expression) -> None:
        expected = self.reference.to_table(columns=["id"], filter=source)["id"].to_pylist()
        bound = expressions.as_expression(source, self.batch.schema)
        kept = self.batch.filter(expressions.filter_mask(bound, self.batch))["id"].to_pylist()
        assert kept == expected, source

    def check_values(self, text: str) -> None:
        expected = self.reference.to_table(columns={"y": text})["y"].combine_chunks()
        if expected.type == pa.string_view():
            expected = expected.cast(pa.string())
        bound = expressions.as_expression(text, self.batch.schema)
        values = expressions.evaluate(bound, self.batch)
        assert values.type == bound.type == expected.type, text
        assert list(map(_comparable, values.to_pylist())) == list(map(_comparable, expected.to_pylist())), text


def _comparable(value: object) -> object:
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Both:
    return Both(tmp_path_factory.mktemp("expressions") / "birds")


@pytest.mark.slow
@pytest.mark.parametrize("term", TERMS, ids=lambda term: term.__name__.strip("_"))
def test_terms_keep_the_rows_that_the_reference_keeps(both: Both, term) -> None:
    rng = random.Random(1)
    for text in sorted({term(rng) for _ in range(120)}):
        both.check_filter(text)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_predicates_keep_the_rows_that_the_reference_keeps(both: Both, seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(250):
        both.check_filter(predicate(rng))


_VALUES = [
    "i32",
    "st.x",
    "st.Inner",
    "i8 + 1",
    "1 - i8",
    "i32 * i8",
    "u8 - 2",
    "u8 + i8",
    "u32 + i32",
    "i64 + 1",
    "u64 + u8",
    "i32 / 2",
    "i32 % 3",
    "i64 % -1",
    "-i16",
    "(i8 + 1) * 2",
    "i32 + f32",
    "f64 * 2",
    "f32 / 0",
    "f64 / f64",
    "f64 % 2.0",
    "dec + 1",
    "dec * 2",
    "dec + dec",
    "dec - i8",
    "d - date '1970-01-01'",
    "i8 > 1",
    "i8 is null",
    "f64 = f64",
    "b and i8 > 1",
    "s || '!'",
    "s || i32",
    "concat(s, t, i8)",
    "lower(s)",
    "upper(t)",
    "length(s)",
    "length(ls)",
    "octet_length(s)",
    "octet_length(ls)",
    "strpos(s, 'b')",
    "strpos(ls, 'b')",
    "left(s, 1)",
    "right(s, -1)",
    "reverse(s)",
    "replace(s, 'a', 'xy')",
    "replace(s, '', 'a\\1')",
    "replace(ls, '', '')",
    "repeat(s, 2)",
    "repeat(s, i8 % 3)",
    "repeat(s, -1)",
    "btrim(s, 'a')",
    "coalesce(i32, 7)",
    "coalesce(i32, f64)",
    "coalesce(s, 'none')",
    "nullif(i32, 1)",
    "greatest(i8, i32)",
    "least(f64, 1.5)",
    "abs(f64)",
    "abs(dec)",
    "round(f64)",
    "round(f32, 1)",
    "round(i8)",
    "sqrt(f64)",
    "power(i8, 2)",
    "power(f32, 2)",
    "power(f32, f32)",
    "ln(u8)",
    "isnan(f32)",
    "date_part('year', d)",
    "date_part('dow', ny)",
    "date_part('hour', d)",
    "date_part('microsecond', d)",
    "date_part('hour', ny)",
    "date_part('epoch', ts)",
    "date_part('microsecond', ts)",
    "date_trunc('month', ts)",
    "date_trunc('day', d)",
    "array_has(li, 1)",
    "array_has_any(lstr, ['a', 'b'])",
    "array_has_all(li, [1])",
    "array_length(li)",
    "li[1]",
    "lstr[-1]",
    "get_field(st, 'x')",
    "cast(i8 as string)",
    "cast(f32 as string)",
    "cast(f32 * 1e10 as string)",
    "cast(f64 * 12345678901.0 as string)",
    "cast(f64 / 10000000.0 as string)",
    "concat(i64 * 1.5, '')",
    "cast(b as string)",
    "cast(d as string)",
    "cast(ts as string)",
    "cast(utc as string)",
    "cast(ny as string)",
    "cast(dec as string)",
    "cast(dec as double)",
    "cast(dec as int)",
    "cast(dec as decimal(12, 1))",
    "cast(i8 as decimal(5, 1))",
    "cast(ts as date)",
    "cast(ts as timestamp(3))",
    "cast(d as timestamp)",
    "cast(b as int)",
    "cast(i8 as boolean)",
    "cast(s as binary)",
    "try_cast(s as int)",
    "regexp_like(t, '^\\w+$')",
    "i8 + coalesce(try_cast('x' as tinyint), i8)",
    "try_cast(f64 as int)",
    "try_cast(i64 as smallint)",
    "i8::bigint",
]


@pytest.mark.parametrize("text", _VALUES)
def test_expressions_have_the_values_that_the_reference_computes(both: Both, text: str) -> None:
    both.check_values(text)


@pytest.mark.parametrize(
    "text", ["i8 / 0", "1 / (i8 - i8)", "i8 % 0", "i8 / -1", "abs(i8)", "cast(i32 as tinyint)", "cast(s as int)"]
)
def test_values_without_a_result_are_errors_as_in_the_reference(both: Both, text: str) -> None:
    with pytest.raises(Exception, match=r"ivide by zero|verflow|Cast error|cast"):
        both.reference.to_table(columns={"y": text})
    bound = expressions.as_expression(text, both.batch.schema)
    with pytest.raises(InvalidInputError, match="has no value for some row"):
        expressions.evaluate(bound, both.batch)


_TEXTS = [
    "20200101", "1959-01-19T00:00:00.000001", "2020-01-01 15:00:00Z", "2020-01-01T23:30:00-05:00", "2020-1-1",
    "2020-1-12", "2020-11-2", "2020-01-01x", "2020-02-30", "12020-01-01", "1969-12-31 23:59:59.9", "10:00:00",
    "", "a", " 1", "+1", "-1", "0x1", "-0X1",
    "+-1", "00012", "1e3", "TRUE", " Tr ", "yes", "f", "of", "off", "on", "NaN", None,
]  # fmt: skip


@pytest.mark.parametrize("arrow_type", [pa.string(), pa.large_string()], ids=str)
@pytest.mark.parametrize("to", ["date", "timestamp", "timestamp(0)", "int", "int unsigned", "double", "boolean"])
def test_texts_become_the_values_that_the_reference_reads(tmp_path: Path, arrow_type: pa.DataType, to: str) -> None:
    table = pa.table({"s": pa.array(_TEXTS, arrow_type)})
    text = f"try_cast(s as {to})"
    expected = lance.write_dataset(table, tmp_path).to_table(columns={"y": text})["y"].combine_chunks()
    (batch,) = table.to_batches()
    found = expressions.evaluate(expressions.as_expression(text, batch.schema), batch)
    assert found.cast(pa.string()).to_pylist() == expected.cast(pa.string()).to_pylist()


@pytest.mark.parametrize("text", ["i8 + try_cast('x' as tinyint)", "f64 * try_cast('x' as int)"])
def test_constants_without_a_value_make_nulls(both: Both, text: str) -> None:
    bound = expressions.as_expression(text, both.batch.schema)
    assert expressions.evaluate(bound, both.batch).null_count == both.batch.num_rows


def test_years_that_a_unit_cannot_hold_are_null() -> None:
    batch = pa.record_batch({"s": ["+10000-01-01"]})
    bound = expressions.as_expression("try_cast(s as timestamp(9))", batch.schema)
    assert expressions.evaluate(bound, batch).to_pylist() == [None]


_FIELD = {name: pc.field(name) for name in ("i8", "i32", "f64", "s", "b", "d", "ts", "dec")}
_ARROW_TERMS = [
    _FIELD["i8"] > 3,
    pc.field("id") + 3 >= 5,
    _FIELD["f64"] < 2.25,
    _FIELD["f64"] > 1.0,
    _FIELD["f64"] == pa.scalar(math.nan),
    _FIELD["s"] != "abc",
    _FIELD["s"] >= "b",
    _FIELD["b"],
    ~_FIELD["b"],
    _FIELD["b"] == True,  # noqa: E712
    _FIELD["i8"].is_null(),
    _FIELD["s"].is_valid(),
    _FIELD["i8"].isin([1, 2, 3, 100]),
    _FIELD["d"] > pa.scalar(0, pa.int32()).cast(pa.date32()),
    _FIELD["ts"] <= pa.scalar(0, pa.int64()).cast(pa.timestamp("us")),
]


def test_expressions_of_pyarrow_keep_the_rows_that_the_reference_keeps(both: Both) -> None:
    for term in _ARROW_TERMS:
        both.check_filter(term)
        for other in _ARROW_TERMS[::3]:
            both.check_filter(term & other)
            both.check_filter(term | ~other)


@pytest.mark.parametrize("text_type", [pa.string(), pa.large_string()], ids=str)
def test_letters_that_have_another_case_of_several(tmp_path: Path, text_type: pa.DataType) -> None:
    letters = "ßẞİıŉǰΐΰևẖẗẘẚﬀﬃﬓΣσςǅᾳᾼàÉж😀ﬆ"
    words = [
        "",
        "abc",
        None,
        "ΟΔΟΣ",
        "ΟΔΟΣ. Σ",
        "Σ",
        "STRASSE",
        "Straße",
        *letters,
        *(f"A{letter}b" for letter in letters),
    ]
    table = pa.table({"s": pa.array([*words, *words], text_type)})
    reference = lance.write_dataset(table, tmp_path / "t")
    ours = lance_format.dataset(tmp_path / "t")
    for text in ("lower(s)", "upper(s)", "lower(upper(s))", "length(upper(s))", "concat(s, upper('Maß'))"):
        expected = reference.to_table(columns={"y": text})["y"].to_pylist()
        assert ours.to_table(columns={"y": text})["y"].to_pylist() == expected, text
        sliced = table.slice(3, 30).combine_chunks().to_batches()[0]
        found = expressions.evaluate(expressions.as_expression(text, sliced.schema), sliced)
        assert found.to_pylist() == expected[3:33], text
    for text in ("upper(s) = 'STRASSE'", "lower(s) = 'οδος'", "upper(s) IS NULL"):
        assert ours.to_table(filter=text).to_pylist() == reference.to_table(filter=text).to_pylist(), text
