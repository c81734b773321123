"""Names of types: the reference makes the same types of them."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest

import lance_format
from lance_format import InvalidInputError

NAMES = [
    "Boolean",
    "Int8",
    "UInt64",
    "Float64",
    "Utf8",
    "LargeUtf8",
    "Binary",
    "LargeBinary",
    "Date32",
    "Date64",
    "Time32(Millisecond)",
    "Time64(ns)",
    "Duration(Second)",
    "Timestamp(Microsecond, None)",
    "Timestamp(ns)",
    'Timestamp(Second, Some("Europe/Berlin"))',
    "Decimal128(10, 2)",
    "Decimal256(40,-3)",
    "FixedSizeBinary(3)",
    "FixedSizeList(4, Float32)",
    "FixedSizeList(4 x Float32)",
    "List(Utf8)",
    "LargeList(List(Int8))",
]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("names") / "t"
    lance.write_dataset(pa.table({"a": [1, 2, None], "t": ["7", None, "x"]}), str(path))
    return path


@pytest.mark.parametrize("name", NAMES)
def test_types_of_nulls(path: Path, name: str) -> None:
    columns = {"a": "a", "x": f"arrow_cast(NULL, '{name}')"}
    expected = lance.dataset(str(path)).to_table(columns=columns)
    assert lance_format.dataset(path).to_table(columns=columns) == expected
    assert expected["x"].null_count == 3


def test_values(path: Path) -> None:
    columns = {"x": "arrow_cast(a, 'Int8')", "y": "arrow_cast(a * 1.5, 'Utf8')"}
    assert lance_format.dataset(path).to_table(columns) == lance.dataset(str(path)).to_table(columns=columns)
    assert lance_format.dataset(path).count_rows("arrow_cast(a, 'Utf8') = '1'") == 1
    with pytest.raises(InvalidInputError):
        lance_format.dataset(path).to_table({"x": "arrow_cast(t, 'Int8')"})


@pytest.mark.parametrize(
    "name",
    [
        "",
        "int8",
        "Nope",
        "Int8(3)",
        "List",
        "List()",
        "List(Int8",
        "FixedSizeList(0, Int8)",
        "FixedSizeList(Int8)",
        "Decimal128(99, 2)",
        "Timestamp(day)",
        "Timestamp(s, UTC)",
        "Struct([])",
        "List(" * 400,
        "FixedSizeList(99999999999, Int8)",
    ],
)
def test_what_names_no_type(path: Path, name: str) -> None:
    with pytest.raises(InvalidInputError, match="arrow_cast"):
        lance_format.dataset(path).to_table({"x": f"arrow_cast(NULL, '{name}')"})


def test_the_name_has_to_be_a_constant(path: Path) -> None:
    for call in ("arrow_cast(a, t)", "arrow_cast(a, 3)", "arrow_cast(a)"):
        with pytest.raises(InvalidInputError, match="arrow_cast"):
            lance_format.dataset(path).to_table({"x": call})
