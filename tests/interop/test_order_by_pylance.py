"""Sorted scans, as pylance sorts."""

import itertools
import math
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance.dataset import ColumnOrdering

import lance_format
from lance_format import InvalidInputError, NotSupportedError

NAN = math.nan


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Several fragments with deleted rows; `n` is unique."""
    path = tmp_path_factory.mktemp("ordered") / "t"
    values = [None if n % 7 == 3 else n * 31 % 8 for n in range(60)]
    table = pa.table(
        {
            "n": range(60),
            "v": pa.array(values, pa.int16()),
            "s": [None if v is None else f"{'x' * (v % 3)}{v}" for v in values[::-1]],
            "f": [NAN if n % 5 == 0 else None if n % 5 == 1 else (n * 13 % 60) / 7 for n in range(60)],
            "b": [None if n % 4 == 1 else n % 4 < 2 for n in range(60)],
            "p": [None if n % 9 == 0 else {"x": n * 7 % 10, "when": None} for n in range(60)],
        }
    )
    lance_format.write_dataset(table, path, max_rows_per_file=17)
    lance_format.dataset(path).delete("n % 11 = 2")
    return path


def orders(*columns: str) -> list[list[ColumnOrdering]]:
    """Every direction of every column, and then `n`, which leaves nothing open."""
    directions = itertools.product((True, False), repeat=2 * len(columns))
    return [
        [*(ColumnOrdering(column, *each[2 * i : 2 * i + 2]) for i, column in enumerate(columns)), ColumnOrdering("n")]
        for each in directions
    ]


@pytest.mark.parametrize("columns", [("v",), ("s",), ("f",), ("b",), ("v", "s"), ("b", "f")], ids=str)
def test_orders(path: Path, columns: tuple[str, ...]) -> None:
    ours, reference = lance_format.dataset(path), lance.dataset(path)
    for order in orders(*columns):
        found, expected = (table.to_table(order_by=order) for table in (ours, reference))
        assert found.schema == expected.schema
        assert str(found.to_pylist()) == str(expected.to_pylist())


@pytest.mark.parametrize(
    "options",
    [
        {"limit": 7},
        {"limit": 7, "offset": 3},
        {"offset": 50},
        {"limit": 0},
        {"filter": "n > 20 and p.x < 7", "limit": 9},
        {"columns": ["s", "n"]},
        {"columns": ["p"], "with_row_id": True},
        {"columns": ["n"], "with_row_address": True, "filter": "v > 2"},
        {"columns": {"twice": "n * 2", "v": "v"}, "limit": 5},
        {"batch_size": 10},
    ],
    ids=str,
)
def test_what_else_is_asked_of_a_scan(path: Path, options: dict[str, Any]) -> None:
    """pylance tells the order; it cannot sort by what is not among the columns, and fails at a limit of 0."""
    ours, reference = lance_format.dataset(path), lance.dataset(path)
    order = ["v", ColumnOrdering("n", ascending=False)]
    sorted_n = reference.to_table(order_by=order, filter=options.get("filter"))["n"].to_pylist()
    start = options.get("offset", 0)
    wanted = sorted_n[start : start + options.get("limit", len(sorted_n))]
    unsorted = {key: value for key, value in options.items() if key not in ("limit", "offset")}
    rows = dict(
        zip(
            ours.to_table(columns=["n"], filter=options.get("filter"))["n"].to_pylist(),
            ours.to_table(**unsorted).to_pylist(),
            strict=True,
        )
    )
    found = ours.scanner(order_by=order, **options)
    assert str(found.to_table().to_pylist()) == str([rows[n] for n in wanted])
    assert str(found.to_reader().read_all()) == str(found.to_table())
    assert all(batch.num_rows <= options.get("batch_size", 8192) for batch in found.to_batches())
    assert found.count_rows() == len(wanted)


def test_fragments_and_rows_that_are_equal(path: Path) -> None:
    """Equal rows stay in the order of the table."""
    ours, reference = lance_format.dataset(path), lance.dataset(path)
    order = [ColumnOrdering("v"), ColumnOrdering("n")]
    for mine, theirs in zip(ours.get_fragments(), reference.get_fragments(), strict=True):
        assert str(mine.to_table(order_by=order).to_pylist()) == str(theirs.to_table(order_by=order).to_pylist())
    assert str(ours.to_table(order_by=["v"]).to_pylist()) == str(ours.to_table(order_by=order).to_pylist())
    assert ours.to_table(["n"], order_by=[]) == ours.to_table(["n"])
    assert ours.to_table(columns=["n"], order_by=["p.x", "n"])["n"].to_pylist() == [
        row["n"]
        for row in sorted(
            ours.to_table().to_pylist(),
            key=lambda row: (row["p"] is None, (row["p"] or {"x": 0})["x"], row["n"]),
        )
    ]
    assert len(ours.to_table(columns=[], order_by=["v"], limit=5)) == 5


TYPES = [pa.uint8(), pa.float16(), pa.float32(), pa.decimal128(9, 2), pa.date32(), pa.time64("us"), pa.large_string()]
TYPES += [pa.timestamp("ns", "UTC"), pa.duration("s"), pa.binary(), pa.bool_()]


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_types(tmp_path: Path, kind: pa.DataType) -> None:
    numbers = [None if n % 6 == 4 else n * 7 % 5 for n in range(30)]
    if pa.types.is_binary(kind) or pa.types.is_large_string(kind):
        values = pa.array([None if n is None else b"\x00b" * n for n in numbers], pa.binary()).cast(kind)
    elif pa.types.is_temporal(kind):
        width = pa.int32() if kind.bit_width == 32 else pa.int64()
        values = pa.array(numbers, width).cast(kind)
    else:
        values = pa.array(numbers, pa.int64()).cast(pa.float32()).cast(kind, safe=False)
    lance_format.write_dataset(pa.table({"v": values, "n": range(30)}), tmp_path)
    for order in orders("v"):
        found = lance_format.dataset(tmp_path).to_table(order_by=order)
        assert found == lance.dataset(tmp_path).to_table(order_by=order)


@pytest.mark.parametrize("kind", [pa.list_(pa.int64()), pa.struct({"x": pa.int64()})], ids=str)
def test_types_without_an_order(tmp_path: Path, kind: pa.DataType) -> None:
    lance_format.write_dataset(pa.table({"v": pa.array([None, None], kind)}), tmp_path)
    with pytest.raises(NotSupportedError, match="sorted by column 'v'"):
        lance_format.dataset(tmp_path).to_table(order_by=["v"])


def test_orders_that_make_no_sense(path: Path) -> None:
    for order in (["z"], [3], [ColumnOrdering("p.z")]):
        with pytest.raises(InvalidInputError):
            lance_format.dataset(path).scanner(order_by=order)
