"""Expressions over dictionaries have the values that they have over the strings, and are computed per item."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_format.errors import InvalidInputError
from lance_format.expressions import (
    KEY_TYPE,
    Together,
    as_expression,
    evaluate,
    evaluate_items,
    evaluation,
    filter_mask,
    looked_up,
    nodes,
)

SCHEMA = pa.schema([("s", pa.string()), ("t", pa.string()), ("n", pa.int32())])
VALUES = [
    "s",
    "s = 'a'",
    "s <> t",
    "s IS NULL",
    "s IN ('a', 'bb', NULL)",
    "s LIKE 'b%' OR s = '7'",
    "s = 'a' AND n > 1 AND t LIKE '%b'",
    "NOT (s < 'b' AND s >= '')",
    "s IS NOT DISTINCT FROM t",
    "upper(s)",
    "concat(s, 'x')",
    "length(s) + n",
    "coalesce(s, 'none')",
    "coalesce(s, t)",
    "coalesce(s, 'none') = 'none'",
    "CASE WHEN s = 'a' THEN n ELSE 0 END",
    "CASE WHEN s = 'a' THEN t WHEN t = 'a' THEN s ELSE 'c' END",
    "CASE WHEN s = '7' THEN CAST(s AS int) ELSE n END",
    "CASE WHEN s = '7' THEN CAST(s AS int) + 1 ELSE 0 END",
    "TRY_CAST(s AS int)",
    "TRY_CAST(s AS int) > n",
]
TEXTS = st.none() | st.sampled_from(["", "a", "b", "bb", "7", "A"])
ROWS = st.lists(st.tuples(TEXTS, TEXTS, st.none() | st.integers(-2, 3)), max_size=20)
KEYS = st.sampled_from([pa.int8(), KEY_TYPE, pa.int32()])


def as_dictionary(array: pa.Array, keys: pa.DataType, unused: list[str]) -> pa.DictionaryArray:
    """Return an array as a dictionary, with items that no row has."""
    items = pa.array([*unused, *array.drop_null().unique().to_pylist()], array.type)
    places = {item: place for place, item in enumerate(items.to_pylist())}
    numbers = [None if value is None else places[value] for value in array.to_pylist()]
    return pa.DictionaryArray.from_arrays(pa.array(numbers, keys), items)


@given(ROWS, KEYS, st.sampled_from(VALUES), st.integers(0, 3), st.lists(st.sampled_from(["x", "9"]), unique=True))
def test_values_are_those_of_strings(
    rows: list[tuple[Any, ...]], keys: pa.DataType, text: str, start: int, unused: list[str]
) -> None:
    plain = pa.RecordBatch.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA)
    stored = pa.record_batch(
        [as_dictionary(plain["s"], keys, unused), as_dictionary(plain["t"], keys, unused), plain["n"]], SCHEMA.names
    )
    bound = as_expression(text, SCHEMA)
    wanted = evaluate(bound, plain.slice(start))
    for found in (
        evaluate(bound, stored.slice(start)),
        looked_up(evaluate_items(bound, stored.slice(start))),
        looked_up(Together([bound, as_expression("s = 'a'", SCHEMA)]).evaluate(stored.slice(start))[bound]),
    ):
        found.validate(full=True)
        assert found.type == bound.type
        assert found.equals(wanted)


def test_a_predicate_is_computed_for_the_items(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    apply = evaluation.apply

    def counting(node: nodes.Expression, values: list[evaluation.Value]) -> evaluation.Value:
        sizes.extend(len(value) for value in values if isinstance(value, pa.Array))
        return apply(node, values)

    monkeypatch.setattr(evaluation, "apply", counting)
    rows = pa.array(["a", "b", None] * 1000)
    batch = pa.record_batch({"s": as_dictionary(rows, KEY_TYPE, [])})
    mask = filter_mask(as_expression("upper(s) LIKE 'A%'", batch.schema), batch)
    assert mask.to_pylist() == [value == "a" for value in rows.to_pylist()]
    assert max(sizes) == 3


def test_more_items_than_rows_are_not_computed() -> None:
    """A slice of a dictionary has all of its items, which may have no values."""
    items = pa.array([f"{number}" for number in range(100)])
    batch = pa.record_batch({"s": pa.DictionaryArray.from_arrays(pa.array([3, None], KEY_TYPE), items)})
    assert evaluate(as_expression("CAST(s AS int)", SCHEMA), batch).to_pylist() == [3, None]


def test_items_without_a_value_matter_only_where_rows_have_them() -> None:
    bound = as_expression("CAST(s AS int) > 5", SCHEMA)
    items = pa.array(["7", "no number"])
    batch = pa.record_batch({"s": pa.DictionaryArray.from_arrays(pa.array([0, 0, None, 0], KEY_TYPE), items)})
    assert evaluate(bound, batch).to_pylist() == [True, True, None, True]
    batch = pa.record_batch({"s": pa.DictionaryArray.from_arrays(pa.array([0, 0, 1, 0], KEY_TYPE), items)})
    with pytest.raises(InvalidInputError, match="no number"):
        evaluate(bound, batch)


def test_keys_below_nulls_may_be_any() -> None:
    keys = pa.Array.from_buffers(
        KEY_TYPE, 16, [pa.py_buffer(b"\x01\x80"), pa.array([1, *[32767] * 14, 0], KEY_TYPE).buffers()[1]]
    )
    batch = pa.record_batch({"s": pa.DictionaryArray.from_arrays(keys, pa.array(["a", "b"]), safe=False)})
    assert filter_mask(as_expression("s = 'b'", SCHEMA), batch).to_pylist() == [True] + [False] * 15
    assert filter_mask(as_expression("s IS NULL", SCHEMA), batch).to_pylist() == [False, *[True] * 14, False]
