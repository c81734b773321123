"""Options of a writer, and what overrides them."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from lance_format.compression.defaults import EncodingDefaults, overlay
from lance_format.errors import InvalidInputError

_COLUMNS = ("a", "a.b", "c")


def _parse(
    everywhere: Mapping[str, object] | None = None, columns: Mapping[str, Mapping[str, object]] | None = None
) -> EncodingDefaults:
    return EncodingDefaults.parse(everywhere, columns, _COLUMNS)


def test_columns_go_before_all_and_inner_before_outer() -> None:
    defaults = _parse(
        {"compression": "zstd", "lance-encoding:rle-threshold": 0.25},
        {"a": {"compression": "lz4"}, "a.b": {"bss": "off", "rle-threshold": "1"}},
    )
    of = {
        path: {key.decode(): value.decode() for key, value in defaults.of(path).items()}
        for path in [("a", "b"), ("c",)]
    }
    assert of["a", "b"] == {
        "lance-encoding:compression": "lz4",
        "lance-encoding:bss": "off",
        "lance-encoding:rle-threshold": "1",
    }
    assert of["c",] == {"lance-encoding:compression": "zstd", "lance-encoding:rle-threshold": "0.25"}
    assert EncodingDefaults().of(("a",)) == _parse().of(("a",)) == {}


def test_a_level_goes_with_its_scheme() -> None:
    options = _parse({"compression": "zstd", "compression-level": 9}, {"a": {"compression": "lz4"}})
    assert options.of(("a",)) == {b"lance-encoding:compression": b"lz4"}
    merged = options.of(("c",))
    overlay(merged, {b"lance-encoding:bss": b"on"})
    assert merged[b"lance-encoding:compression-level"] == b"9"
    overlay(merged, {b"lance-encoding:compression": b"zstd"})
    assert b"lance-encoding:compression-level" not in merged


@pytest.mark.parametrize(
    ("everywhere", "columns", "message"),
    [
        ({"compresion": "zstd"}, {}, "there is no encoding option 'compresion'; the options are compression, "),
        ({}, {"d": {}}, "for column 'd': there is none; the columns are a, a.b, c"),
        ({}, {"a": {"packed": "true"}}, "'packed' must be in the metadata of a field"),
        ({"lance-encoding:blob": "true"}, {}, "'lance-encoding:blob' must be in the metadata of a field"),
    ],
)
def test_what_is_unknown_is_refused(
    everywhere: dict[str, str], columns: dict[str, dict[str, str]], message: str
) -> None:
    with pytest.raises(InvalidInputError, match=message):
        _parse(everywhere, columns)
