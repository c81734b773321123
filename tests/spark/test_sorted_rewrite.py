"""`optimize` with `order_by` and `zorder_by`: a Spark job sorts the rows of fragments."""

from __future__ import annotations

import datetime
import decimal
import random
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lance_format
from connector.sorting.job import rewrite_sorted
from connector.sorting.order import Term, parse_order
from connector.sorting.zorder import ZOrder
from connector.types.column_names import quoted
from lance_format import LanceDataset, VersionNotFoundError
from tests.spark.conftest import Catalog
from tests.spark.test_jobs import jobs_of
from tests.table.leftovers import leftovers

_ROWS = 4000


def rows() -> pa.Table:
    """Return rows in no order, of many types."""
    chance = random.Random(1)
    numbers = list(range(_ROWS))
    chance.shuffle(numbers)
    values: list[float | None] = [chance.random() if number % 10 else None for number in numbers]
    return pa.table(
        {
            "id": pa.array(numbers, pa.int32()),
            "Name": pa.array([f"bird {number % 977:03}" for number in numbers]),
            "x": values,
            "small": pa.array([number % 200 for number in numbers], pa.uint8()),
            "at_y": pa.array([{"a": [number], "b": f"{number}"} for number in numbers]),
            "time": pa.array(
                [datetime.datetime(2026, 1, 1) + datetime.timedelta(minutes=number) for number in numbers],
                pa.timestamp("us", "UTC"),
            ),
            "price": pa.array([decimal.Decimal(number) for number in numbers], pa.decimal128(10, 2)),
            "vector": pa.array([[float(number)] * 4 for number in numbers], pa.list_(pa.float32(), 4)),
        }
    )


@pytest.fixture(params=[False, True], ids=["addresses", "stable row ids"])
def table(request: pytest.FixtureRequest, catalog: Catalog) -> LanceDataset:
    path = catalog.path("t")
    lance_format.write_dataset(rows(), path, max_rows_per_file=500, enable_stable_row_ids=request.param)
    table = lance_format.dataset(path)
    table.delete("id % 9 = 4")
    return table


def optimize(catalog: Catalog, arguments: str) -> list[Any]:
    return catalog.sql(f"CALL {catalog.name}.system.optimize('@.t', {arguments})")


def check(table: LanceDataset, before: pa.Table) -> lance.LanceDataset:
    """Check that pylance reads the same rows, and return the table."""
    found = lance.dataset(table.uri)
    found.validate()
    assert found.to_table(columns=before.schema.names).sort_by("id") == before.sort_by("id")
    assert leftovers(Path(table.uri)) == set()
    return found


@pytest.mark.slow
def test_rows_are_sorted(catalog: Catalog, table: LanceDataset) -> None:
    lineage = ["_rowid", "_row_created_at_version", "_row_last_updated_at_version"]
    before = table.to_table(columns=[*table.schema.names, *lineage] if table.has_stable_row_ids else None)
    version = table.version
    jobs = jobs_of(
        catalog.spark,
        lambda: optimize(catalog, "order_by => array('name DESC', '`id`'), target_rows_per_fragment => 900"),
    )
    assert {job.description for job in jobs} == {"lance: sort fragments 0-7"}
    found = check(table, before)
    assert found.version == version + 1
    assert len(found.get_fragments()) == 4
    keys = [(row["Name"], row["id"]) for row in found.to_table(columns=["Name", "id"]).to_pylist()]
    assert keys == sorted(sorted(keys, key=lambda key: key[1]), key=lambda key: key[0], reverse=True)


@pytest.mark.slow
def test_nulls_and_some_fragments(catalog: Catalog, table: LanceDataset) -> None:
    table.create_scalar_index("small", "ZONEMAP")
    before = table.to_table()
    optimize(catalog, "order_by => array('x NULLS LAST'), max_source_fragments => 3")
    found = check(table, before)
    assert [each.fragment_id for each in found.get_fragments()] == [3, 4, 5, 6, 7, 8]
    values = found.get_fragments()[-1].to_table(columns=["x"])["x"].to_pylist()
    known = [value for value in values if value is not None]
    assert values == sorted(known) + [None] * (len(values) - len(known))
    (index,) = lance_format.dataset(table.uri).list_indices()
    assert index["fragment_ids"] == {3, 4, 5, 6, 7, 8}
    assert lance.dataset(table.uri).count_rows("small = 7") == before.to_pandas()["small"].eq(7).sum()


@pytest.mark.slow
def test_z_order_prunes_by_each_column(catalog: Catalog, table: LanceDataset) -> None:
    before = table.to_table()
    optimize(catalog, "zorder_by => array('id', 'X'), target_rows_per_fragment => 250")
    found = check(table, before)
    fragments = found.get_fragments()
    assert len(fragments) == 14
    hits = [fragment for fragment in fragments if fragment.count_rows("id < 500 AND x < 0.125")]
    assert len(hits) <= 3  # An eighth of each column is within a sixteenth of the curve, which up to three ranges meet.
    for condition in ("id < 500", "x < 0.125"):
        assert not all(fragment.count_rows(condition) for fragment in fragments), condition


@pytest.mark.parametrize("name", ["x ", " x", "`x`.`y`", "`", "x\ny", "x DESC", " "])
def test_a_name_stands_for_itself(name: str) -> None:
    schema = pa.schema({"x": pa.int64(), name: pa.int64()})
    assert parse_order(schema, [name], None).terms == (Term(1, is_descending=False, nulls_first=True),)
    assert parse_order(schema, [f"{quoted(name)} DESC"], None).terms[0].place == 1
    assert parse_order(schema, None, [name]).zorder == (name,)
    assert parse_order(schema, ["x desc"], None).terms[0].place == 0


def test_bad_arguments(catalog: Catalog, table: LanceDataset) -> None:
    for arguments, message in {
        "order_by => array('id'), zorder_by => array('id')": "InvalidInputError: order_by and zorder_by contradict",
        "order_by => array('size')": "InvalidInputError: there is no column 'size' to sort by",
        "order_by => array()": "InvalidInputError: order_by is ",
        "zorder_by => array('vector')": "NotSupportedError: rows cannot be z-ordered by column 'vector'",
        "order_by => array('id'), target_rows_per_fragment => 0": "InvalidInputError: target_rows_per_fragment is 0",
        "order_by => array('id'), where => 'nothing = 1'": "InvalidInputError: ",
    }.items():
        catalog.refuses(f"CALL {catalog.name}.system.optimize('@.t', {arguments})", message)


def test_types_that_spark_rounds(catalog: Catalog) -> None:
    times = pa.array([1, 2], pa.timestamp("ns"))
    lance_format.write_dataset(
        pa.table({"id": [1, 2], "at": pa.array([{"t": time} for time in times])}), catalog.path("t")
    )
    catalog.refuses(
        f"CALL {catalog.name}.system.optimize('@.t', order_by => array('id'))",
        "NotSupportedError: column 'at' is of the type struct<t: timestamp.*which Spark rounds",
    )


def test_times_keep_their_nanoseconds(catalog: Catalog) -> None:
    ticks = pa.array([3_000_000_001, 1_000_000_009, None, 2_000_000_005]).cast(pa.time64("ns"))
    rows = pa.table({"id": [1, 2, 3, 4], "at": ticks, "nested": pa.array([{"t": tick} for tick in ticks])})
    lance_format.write_dataset(rows, catalog.path("t"))
    optimize(catalog, "order_by => array('at')")
    found = lance_format.dataset(catalog.path("t")).to_table()
    assert found["id"].to_pylist() == [3, 2, 4, 1]
    assert found == rows.take(pa.array([2, 1, 3, 0]))


@pytest.mark.slow
def test_a_failure_halfway_leaves_nothing(catalog: Catalog, table: LanceDataset) -> None:
    (file,) = table.get_fragments()[5].data_files()
    Path(table.uri, "data", file.path).unlink()
    catalog.refuses(f"CALL {catalog.name}.system.optimize('@.t', order_by => array('id'))", "DatasetNotFoundError: ")


@pytest.mark.parametrize(
    "column",
    [
        pa.array([3, None, 1, 2]),
        pa.array([0.5, float("nan"), None, -1.0]),
        pa.array([True, None, False, True]),
        pa.array([b"b", b"a\0", None, b"a"]),
        pa.array(["é", "e", None, "z"]),
        pa.array([datetime.date(2026, 1, 1), None, datetime.date(1960, 1, 1), datetime.date(2000, 1, 1)]),
        pa.array([decimal.Decimal("1.5"), None, decimal.Decimal(-7), decimal.Decimal(0)]),
        pa.array([None, None, None, None], pa.int64()),
    ],
    ids=lambda column: str(column.type),
)
def test_z_values_follow_the_order_of_one_column(column: pa.Array, tmp_path: Path) -> None:
    table = lance_format.write_dataset(pa.table({"a": column}), tmp_path / "t.lance")
    (batch,) = table.to_table().to_batches()
    keys = ZOrder.sampled(table, ["a"], [0]).keys(batch).tolist()
    values = column.to_pylist()
    order = sorted(range(len(values)), key=lambda place: _sortable(values[place]))
    assert [keys[place] for place in order] == sorted(keys)
    assert all((key == 0) == (value is None) for key, value in zip(keys, values, strict=True))


def _sortable(value: Any) -> Any:
    """Return a key that sorts null first and NaN last, as Spark does."""
    if value is None:
        return (0,)
    return (2,) if value != value else (1, value)


def test_errors_of_the_plan_are_those_of_the_library(catalog: Catalog, table: LanceDataset) -> None:
    """The driver asks another process for the columns to sort."""
    order = parse_order(table.schema, ["id"], None)
    lance_format.dataset(table.uri).update_config({"a": "b"})
    lance_format.dataset(table.uri).cleanup_old_versions(versions=[table.version])
    with pytest.raises(VersionNotFoundError, match=f"has no version {table.version}"):
        rewrite_sorted(catalog.spark, table, [0], order)
    assert leftovers(Path(table.uri)) == set()
