"""The functions of JSON give the results and errors of pylance."""

from __future__ import annotations

import json
import random
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lance_format
from lance_format import InvalidInputError

_KEYS = ("a", "b", "0", "é", "a b", "last", "to", "A")
_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**64), 2**65) | st.floats(allow_nan=False) | st.sampled_from(_KEYS),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(_KEYS), inner, max_size=4),
    max_leaves=20,
)
_steps = st.sampled_from(
    [
        ".a",
        ":b",
        ".0",
        ".é",
        '."a b"',
        '["A"]',
        ".last",
        ".*",
        "[*]",
        "[0]",
        "[ 1 ]",
        "[last]",
        "[last - 1]",
        "[+2]",
        "[-1]",
        " .a",
    ]
)
_paths = st.builds(
    lambda start, steps: start + "".join(steps), st.sampled_from(["$", "", " $"]), st.lists(_steps, max_size=3)
)
_SCALARS = [
    *(
        "null",
        "true",
        "false",
        "0",
        "-0.0",
        "2.5",
        "-2.5",
        "-0.5",
        "0.49999999999999994",
        "1e16",
        "9.2e18",
        "-9.3e18",
        "1e-7",
    ),
    *("9223372036854775807", "9223372036854775808", "9.223372036854775807e18", "-9223372036854775808", "NaN", "-1e999"),
    *(
        '""',
        '"x"',
        '"35"',
        '"+5"',
        '" 7"',
        '"7 "',
        '"2.5"',
        '".5"',
        '"1."',
        '"1e3"',
        '"1e"',
        '"0x10"',
        '"1_0"',
        '"\uff11"',
    ),
    *(
        '"9223372036854775808"',
        '"-9223372036854775808"',
        '"inf"',
        '"-Infinity"',
        '"nan"',
        '"TRUE"',
        '"no"',
        '"t"',
        '"on"',
        '"1"',
    ),
    *("{}", "[]", "[1]"),
]


def _table(path: Path, texts: list[str | None]) -> str:
    column = pa.ExtensionArray.from_storage(pa.json_(), pa.array(texts, pa.string()))
    lance_format.write_dataset(pa.table({"n": range(len(texts)), "c": column}), path)
    return str(path)


def _assert_same(uri: str, **columns: str) -> None:
    theirs = lance.dataset(uri).to_table(columns=columns)
    assert lance_format.dataset(uri).to_table(columns=columns).equals(theirs), columns


@settings(max_examples=10)
@given(st.lists(_values, min_size=5, max_size=20), st.lists(_paths, min_size=5, max_size=5), _values)
def test_paths(
    tmp_path_factory: pytest.TempPathFactory, values: list[object], paths: list[str], wanted: object
) -> None:
    uri = _table(tmp_path_factory.mktemp("json"), [*map(json.dumps, values), None])
    text = (wanted if isinstance(wanted, str) else json.dumps(wanted)).replace("'", "''")
    for path in paths:
        _assert_same(
            uri,
            extract=f"json_extract(c, '{path}')",
            exists=f"json_exists(c, '{path}')",
            length=f"json_array_length(c, '{path}')",
            contains=f"json_array_contains(c, '{path}', '{text}')",
        )


@settings(max_examples=3)
@given(st.lists(_values, min_size=10, max_size=30))
def test_members(tmp_path_factory: pytest.TempPathFactory, values: list[object]) -> None:
    uri = _table(tmp_path_factory.mktemp("json"), [*map(json.dumps, values), None])
    for key in (*_KEYS, "1", "-1", "+1", "00", " 1", "", "99999999999999999999"):
        _assert_same(uri, x=f"json_get(c, '{key}')", y=f"json_get(json_get(c, '{key}'), 'a')")
    _assert_same(uri, x="json_get(c, 0)", y="json_get(c, NULL)", z="json_extract(c, NULL)")


@pytest.mark.slow
@pytest.mark.parametrize("function", ["json_get_string", "json_get_int", "json_get_float", "json_get_bool"])
def test_conversions(function: str, tmp_path: Path) -> None:
    uri = _table(tmp_path / "t", [f'{{"a": {text}}}' for text in _SCALARS])
    theirs, ours = lance.dataset(uri), lance_format.dataset(uri)
    num_refused = 0
    for number in range(len(_SCALARS)):
        asked = {"columns": {"x": f"{function}(c, 'a')"}, "filter": f"n = {number}"}
        try:
            expected = theirs.to_table(**asked)
        except (OSError, ValueError):
            with pytest.raises(InvalidInputError, match=r"the JSON value .* of 'a' is no |is no single value"):
                ours.to_table(**asked)
            num_refused += 1
        else:
            found, wanted = ours.to_table(**asked).column(0), expected.column(0)
            assert found.type == wanted.type
            assert repr(found[0].as_py()) == repr(wanted[0].as_py()), _SCALARS[number]
    assert 0 < num_refused < len(_SCALARS)


_REFUSED = [
    "$..a",
    "$.",
    "$[",
    "$[x]",
    "$. a",
    "$a",
    "$['a']",
    "$.a-b",
    '$["a","b"]',
    "@.a",
    "$.a.",
    '$["a"',
    "$[]",
    '$[""]',
    "*",
]


@pytest.mark.parametrize("path", _REFUSED)
def test_what_is_no_path(path: str, tmp_path: Path) -> None:
    uri = _table(tmp_path / "t", ['{"a": 1}'])
    asked = {"x": "json_exists(c, '{}')".format(path.replace("'", "''"))}
    with pytest.raises((OSError, ValueError), match="InvalidJsonPath"):
        lance.dataset(uri).to_table(columns=asked)
    with pytest.raises(InvalidInputError, match="is no JSON path that can be followed"):
        lance_format.dataset(uri).to_table(columns=asked)


def test_filters(tmp_path: Path) -> None:
    rng = random.Random(0)
    rows = [
        {"age": rng.randrange(90), "tags": rng.sample("abcdef", rng.randrange(4)), "o": {"on": rng.random() < 0.5}}
        for _ in range(500)
    ]
    uri = _table(tmp_path / "t", [None if rng.random() < 0.1 else json.dumps(row) for row in rows])
    for predicate in (
        "json_get_int(c, 'age') > 40 AND n > 100",
        "NOT json_get_bool(json_get(c, 'o'), 'on')",
        "json_array_contains(c, '$.tags', 'b') OR json_array_length(c, '$.tags') = 0",
        "json_extract(c, '$.tags[last]') = '\"c\"'",
        "json_exists(c, '$.tags[2]') IS NULL",
    ):
        expected = lance.dataset(uri).to_table(["n"], filter=predicate)
        assert 0 < expected.num_rows < 500
        assert lance_format.dataset(uri).to_table(["n"], filter=predicate).equals(expected), predicate
