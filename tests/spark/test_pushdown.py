"""Predicates that Spark pushes: what becomes of them, and over which columns they are taken."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import types as t

from connector.read.predicates import filterable_columns, parse_predicate
from connector.types.row_columns import ROW_FIELDS
from connector.types.schemas import to_spark_schema
from lance_format import InvalidInputError, LanceDataset
from lance_format.expressions import to_sql

A = ["COLUMN", "a"]
FORMS: list[tuple[list[Any], str]] = [
    (["=", ["COLUMN", "s", "a.b"], ["LITERAL", "int", "3"]], "s.`a.b` = 3"),
    (["<>", A, ["CAST", "bigint", ["COLUMN", "b"]]], "a != CAST(b AS bigint)"),
    (
        ["AND", ["ALWAYS_TRUE"], ["OR", ["IS_NULL", A], ["NOT", ["<=>", A, A]]]],
        "True AND ((a IS NULL) OR (a IS DISTINCT FROM a))",
    ),
    (["IS_NOT_NULL", A], "a IS NOT NULL"),
    (["IN", A, "decimal(5,2)", ["1.50", None]], "a IN (decimal(5, 2) '1.50', NULL)"),
    (["STARTS_WITH", A, ["LITERAL", "string", "50%_\\"]], "starts_with(a, '50%_\\')"),
    (["ENDS_WITH", A, ["LITERAL", "string", "'"]], "ends_with(a, '''')"),
    (["CONTAINS", A, ["LITERAL", "string", ""]], "contains(a, '')"),
    (["ALWAYS_FALSE"], "False"),
]


def no_table() -> LanceDataset:
    raise AssertionError("no form here needs the table")


@pytest.mark.parametrize(("form", "sql"), FORMS, ids=[form[0] for form, _ in FORMS])
def test_forms(form: list[Any], sql: str) -> None:
    expression = parse_predicate(json.dumps(form), no_table)
    assert to_sql(expression) == sql
    assert pickle.loads(pickle.dumps(expression)) == expression


CONSTANTS = [
    ("boolean", True, pa.scalar(True)),
    ("tinyint", "-128", pa.scalar(-128, pa.int8())),
    ("bigint", "9223372036854775807", pa.scalar(2**63 - 1, pa.int64())),
    ("float", "0.10000000149011612", pa.scalar(0.10000000149011612, pa.float32())),
    ("double", "-Infinity", pa.scalar(float("-inf"))),
    ("decimal(38,0)", "9" * 38, pa.scalar(int("9" * 38), pa.decimal128(38, 0))),
    ("string", "żółw\u0000", pa.scalar("żółw\u0000")),
    ("binary", "AP8=", pa.scalar(b"\x00\xff")),
    ("date", "-1", pa.scalar(-1, pa.int32()).cast(pa.date32())),
    ("timestamp", "-1", pa.scalar(-1, pa.timestamp("us", "UTC"))),
    ("timestamp_ntz", "1", pa.scalar(1, pa.timestamp("us"))),
    ("time(6)", "1000", pa.scalar(1000, pa.time64("ns"))),
    ("int", None, pa.scalar(None, pa.int32())),
]


@pytest.mark.parametrize(("spark_type", "value", "expected"), CONSTANTS, ids=[name for name, _, _ in CONSTANTS])
def test_constants(spark_type: str, value: object, expected: pa.Scalar) -> None:
    (found,) = parse_predicate(json.dumps(["NOT", ["LITERAL", spark_type, value]]), no_table).children
    assert found.value == expected
    assert found.value.type == expected.type


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1",
        "[]",
        '["XOR", ["ALWAYS_TRUE"]]',
        '["NOT"]',
        '["LITERAL", "int", "x"]',
        '["LITERAL", "int", "2147483648"]',
        '["LITERAL", "interval", "1"]',
        '["LITERAL", "decimal(3,1)", "nothing"]',
        '["LITERAL", "binary", "?"]',
    ],
)
def test_other_forms_are_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match="is not one that the planner bridge writes"):
        parse_predicate(text, no_table)


@pytest.mark.parametrize("depth", [5_000, 200_000])
def test_deep_predicates_are_refused(depth: int) -> None:
    with pytest.raises(InvalidInputError, match="the predicate is nested too deeply"):
        parse_predicate('["NOT", ' * depth + '["ALWAYS_TRUE"]' + "]" * depth, no_table)


def test_columns_whose_values_spark_sees_as_they_are_stored() -> None:
    struct = pa.struct([("x", pa.int8()), ("day", pa.date64()), ("list", pa.list_(pa.int8()))])
    exact = {
        "flag": pa.bool_(),
        "u64": pa.uint64(),
        "half": pa.float16(),
        "price": pa.decimal256(30, 2),
        "text": pa.large_string(),
        "word": pa.dictionary(pa.int8(), pa.string()),
        "key": pa.binary(4),
        "at": pa.timestamp("ms", "Europe/Berlin"),
        "clock": pa.time32("s"),
        "a.b": pa.date32(),
    }
    inexact = {
        "at_ns": pa.timestamp("ns"),
        "day": pa.date64(),
        "took": pa.duration("us"),
        "nothing": pa.null(),
        "list": pa.list_(pa.int64()),
        "json": pa.json_(),
        "vector": pa.list_(pa.float32(), 2),
    }
    stored = pa.schema([*exact.items(), *inexact.items(), ("s", struct)])
    found = filterable_columns(stored, to_spark_schema(stored))
    assert found == [[name] for name in (*ROW_FIELDS, *exact)] + [["s", "x"]]


def test_columns_with_a_meaning_of_their_own_are_left_to_spark() -> None:
    stored = pa.schema(
        [("text", pa.string()), ("variant", pa.struct([("value", pa.binary())])), ("_rowid", pa.int64())]
    )
    seen = t.StructType(
        [
            t.StructField("text", t.StringType("UTF8_LCASE")),
            t.StructField("variant", t.VariantType()),
            t.StructField("_rowid", t.LongType()),
        ]
    )
    assert filterable_columns(stored, seen) == [[name] for name in ROW_FIELDS if name != "_rowid"] + [["_rowid"]]
