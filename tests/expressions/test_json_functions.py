"""Functions of JSON over arbitrary bytes and texts."""

from __future__ import annotations

import json
import random
import struct

import pyarrow as pa
import pytest

from lance_format import InvalidInputError
from lance_format.expressions import as_expression, evaluate
from lance_format.jsonb import from_text

_CALLS = (
    *(
        "json_get(c, 'a')",
        "json_get_string(c, 'a')",
        "json_get_int(c, 'a')",
        "json_get_float(c, 'a')",
        "json_get_bool(c, '0')",
    ),
    *("json_extract(c, '$.*[*]')", "json_exists(c, 'a[last]')", "json_array_length(c, '$.a')"),
    "json_array_contains(c, '$.a', 'x')",
)


def _batch(documents: list[bytes | None], **texts: list[str | None]) -> pa.RecordBatch:
    columns = {name: pa.array(values, pa.string()) for name, values in texts.items()}
    return pa.RecordBatch.from_pydict({"c": pa.array(documents, pa.large_binary()), **columns})


def _evaluate(text: str, batch: pa.RecordBatch) -> list[object]:
    found: list[object] = evaluate(as_expression(text, batch.schema), batch).to_pylist()
    return found


def test_keys_and_paths_may_be_columns() -> None:
    document = from_text('{"a": [1, "x"], "b": {"a": "2"}}')
    batch = _batch([document, document, document, None], t=["$.a", "b", None, "a"], v=["x", "1", "x", "x"])
    assert _evaluate("json_extract(c, t)", batch) == ['[1,"x"]', '{"a":"2"}', None, None]
    assert _evaluate("json_array_contains(c, t, v)", batch) == [True, False, None, None]
    assert _evaluate("json_get_int(json_get(c, t), 'a') + 1", batch) == [None, 3, None, None]


def test_decimals_of_other_writers_keep_their_digits() -> None:
    decimal = b"\x70" + (10**37 + 1).to_bytes(16) + b"\x02"
    batch = _batch([struct.pack(">II", 0x8000_0001, 0x2000_0012) + decimal])
    assert _evaluate("json_get_string(c, '0')", batch) == ["100000000000000000000000000000000000.01"]
    assert _evaluate("json_get_float(c, 0)", batch) == [1e35]


@pytest.mark.slow
@pytest.mark.parametrize("call", _CALLS)
def test_any_bytes_end_in_a_value_or_one_error(call: str) -> None:
    data = from_text(json.dumps([{"a": [1, 2.5, "x", None]}, [True, {"b": {}}], 10**20, {"a": "y"}][1:]))
    others = [from_text(text) for text in ('{"a": [1, "x"], "b": 10}', '{"a": "7"}', "[true]", '{"a": -1e999}')]
    rng = random.Random(0)
    num_errors = 0
    for document in (data, *others):
        for _ in range(200):
            damaged = bytearray(document[: rng.randint(0, len(document)) if rng.random() < 0.3 else len(document)])
            for _ in range(rng.randint(1, 3)):
                if damaged:
                    damaged[rng.randrange(len(damaged))] = rng.choice([0, 0xFF, rng.randrange(256)])
            try:
                _evaluate(call, _batch([bytes(damaged)]))
            except InvalidInputError:
                num_errors += 1
    assert num_errors


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("json_get(t, 'a')", "json_get needs a json where it is given t, string"),
        ("json_extract(c)", "json_extract takes 2 arguments, and is given 1"),
        ("json_extract(c, '$.a[0 to 2]')", r"from '\[0 to 2\]' on; the steps are"),
        (f"json_extract(c, '$[{'9' * 5000}]')", "no JSON path that can be followed"),
        ("json_extract(c, '$[2147483648]')", "has the index 2147483648"),
        ("json_extract(c, '$[\"\\ud800\"]')", "is no key of a JSON path"),
        ("json_get_int(c, 'a')", "the JSON value 'x' of 'a' is no integer of 8 bytes; json_get returns it as it is"),
        ("json_get_string(json_get(c, 'b'), 'b')", r"'\[1\]' is no single value"),
    ],
)
def test_messages(text: str, problem: str) -> None:
    batch = _batch([from_text('{"a": "x", "b": {"b": [1]}}')], t=["x"])
    with pytest.raises(InvalidInputError, match=problem):
        _evaluate(text, batch)
