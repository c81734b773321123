"""Input that is too deep, too long or no text gives one clear error, before any write."""

from pathlib import Path

import pyarrow as pa
import pytest

import lance_format
from lance_format import CorruptFileError, InvalidInputError, LanceDataset, NotSupportedError
from lance_format.datatypes import parse_fields
from lance_format.proto import file_pb2

NINES = "9" * 5000


@pytest.fixture
def table(tmp_path: Path) -> LanceDataset:
    return lance_format.write_dataset({"id": [1, 2], "s": ["ab", "cd"]}, tmp_path / "t")


def nested(depth: int, kind: str) -> pa.Table:
    array = pa.array([1])
    for _ in range(depth):
        if kind == "struct":
            array = pa.StructArray.from_arrays([array], ["c"])
        else:
            array = pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), array)
    return pa.table({"x": array})


@pytest.mark.parametrize("kind", ["struct", "list"])
class TestNesting:
    @pytest.mark.parametrize("depth", [63, 150, 300, 2000])
    def test_what_nobody_could_read_is_not_written(self, tmp_path: Path, kind: str, depth: int) -> None:
        with pytest.raises(NotSupportedError, match="column 'x' is nested more than 62 levels deep"):
            lance_format.write_dataset(nested(depth, kind), tmp_path / "t")
        assert not (tmp_path / "t").exists()

    def test_the_deepest_is_read_by_both(self, tmp_path: Path, kind: str) -> None:
        lance = pytest.importorskip("lance")
        data = nested(62, kind)
        assert lance_format.write_dataset(data, tmp_path / "t").to_table() == data
        assert lance.dataset(str(tmp_path / "t")).to_table() == data


def test_siblings_of_one_name_are_corrupt() -> None:
    fields = [
        file_pb2.Field(id=0, parent_id=-1, name="s", logical_type="struct"),
        file_pb2.Field(id=1, parent_id=0, name="a", logical_type="int64"),
        file_pb2.Field(id=2, parent_id=0, name="a", logical_type="string"),
    ]
    with pytest.raises(CorruptFileError, match="two fields 'a' side by side"):
        parse_fields(fields)
    fields[2].name = "A"
    (struct,) = parse_fields(fields)
    assert [child.name for child in struct.children] == ["a", "A"]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        (f"id = {NINES}", 0),
        (f"id < {NINES}", 2),
        (f"id > -{NINES}", 2),
        (f"id IN (1, {NINES})", 1),
        (f"id = 1.{NINES}", 1),
        (f"id < 1e{NINES}", 2),
        (f"s = '{NINES}'", 0),
        (f"s LIKE '{'%' * 5000}'", 2),
    ],
    ids=lambda part: str(part)[:20],
)
def test_long_constants(table: LanceDataset, text: str, rows: int) -> None:
    assert table.count_rows(text) == rows


@pytest.mark.parametrize(
    "text",
    [
        "length(repeat(s, 100000000)) > 3",
        "length(repeat(s, id * 1000000000000)) > 3",
        "repeat('ab', 9223372036854775807) = s",
        f"id = X'{NINES}'",
        f"cast('{NINES}' AS bigint) = id",
        f"s = date '{NINES}-01-01'",
        f"CAST(id AS DECIMAL({NINES}, 2)) = 1",
        "(" * 3000 + "id = 1" + ")" * 3000,
        "NOT " * 3000 + "id = 1",
        "id" + " + 1" * 3000 + " = 1",
        "lower(" * 3000 + "s" + ")" * 3000 + " = 'x'",
        "s = '\ud800'",
        "`\udfff` = 1",
    ],
    ids=lambda text: ascii(text[:20]),
)
def test_expressions_out_of_bounds(table: LanceDataset, text: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        table.count_rows(text)
    str(caught.value).encode()
    with pytest.raises(InvalidInputError):
        table.delete(text)
    assert lance_format.dataset(table.uri).count_rows() == 2


def test_repeating_within_bounds(table: LanceDataset) -> None:
    assert table.count_rows("length(repeat(s, 1000)) = 2000") == 2
    assert table.count_rows("repeat(s, id) = 'cdcd'") == 1


@pytest.mark.parametrize("uri", ["file://{}#tag", "file://{}?version=1", "file://{}#", "file://{}?"])
def test_a_file_has_no_query_and_no_fragment(table: LanceDataset, uri: str) -> None:
    with pytest.raises(InvalidInputError, match="has a query or a fragment"):
        lance_format.dataset(uri.format(table.uri))
    with pytest.raises(InvalidInputError, match="has a query or a fragment"):
        lance_format.write_dataset({"id": [3]}, uri.format(table.uri), mode="overwrite")
    assert lance_format.dataset(f"file://{table.uri}").count_rows() == 2


def test_such_names_are_written_in_percent(tmp_path: Path) -> None:
    for name, written in (("a#b", "a%23b"), ("a?b", "a%3Fb")):
        lance_format.write_dataset({"id": [1]}, tmp_path / name)
        assert lance_format.dataset(f"file://{tmp_path}/{written}").count_rows() == 1


@pytest.mark.parametrize("path", ["/tmp/\ud800", "a\0b", "memory://\udc80", b"/tmp/x"])
def test_what_is_no_path(path: str) -> None:
    for call in (lance_format.dataset, lambda where: lance_format.write_dataset({"a": [1]}, where)):
        with pytest.raises(InvalidInputError) as caught:
            call(path)
        str(caught.value).encode()
