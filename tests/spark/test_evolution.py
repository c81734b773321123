"""Tables whose rows and columns have changed: Spark sees at every version what pylance sees."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import lance
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import lance_format
from tests.spark.conftest import append, load

CHANGES: list[Callable[[Any], object]] = [
    lambda table: table.delete("id % 10 = 3 OR id BETWEEN 18 AND 21"),
    lambda table: table.update({"name": "concat(name, '!')"}, "id > 50"),
    lambda table: table.add_columns({"twice": "id * 2"}),
    lambda table: table.add_columns(pa.field("tags", pa.list_(pa.string()))),
    lambda table: table.drop_columns(["home.floor"]),
    lambda table: table.alter_columns({"path": "name", "name": "alias"}),
    lambda table: table.alter_columns({"path": "twice", "data_type": pa.int32()}),
    lambda table: table.delete("id < 20"),
    lambda table: table.update({"twice": "7"}, "id = 25"),
    lambda table: table.optimize.compact_files(),
    lambda table: table.drop_columns(["twice", "tags"]),
    lambda table: table.add_columns({"twice": "cast(id AS string)"}),
    lambda table: table.delete("true"),
]


def people() -> pa.Table:
    home = [{"city": f"city {number % 5}", "floor": number} if number % 3 else None for number in range(60)]
    return pa.table({"id": range(60), "name": [f"name {number}" for number in range(60)], "home": home})


@pytest.mark.slow
@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable ids"])
@pytest.mark.parametrize("open_table", [lance_format.dataset, lance.dataset], ids=["ours", "pylance"])
def test_every_version(spark: SparkSession, path: str, open_table: Callable[[str], Any], stable: bool) -> None:
    lance.write_dataset(people(), path, max_rows_per_file=20, enable_stable_row_ids=stable)
    for change in CHANGES:
        change(open_table(path))
        reference = lance.dataset(path)
        df = load(spark, path)
        assert df.columns == reference.schema.names
        rows = sorted((row.asDict(recursive=True) for row in df.collect()), key=lambda row: row["id"])
        assert rows == sorted(reference.to_table().to_pylist(), key=lambda row: row["id"])
    assert load(spark, path, version=1).count() == 60


def test_spark_appends_to_a_table_that_changed(spark: SparkSession, path: str) -> None:
    lance.write_dataset(people(), path, max_rows_per_file=20)
    for change in CHANGES[:7]:
        change(lance.dataset(path))
    append(load(spark, path, version=8).where("id > 55").drop("home"), path)
    reference = lance.dataset(path)
    reference.validate()
    expected = reference.checkout_version(8).to_table(filter="id > 55").to_pylist()
    found = reference.to_table(filter="id > 55").to_pylist()
    assert found[len(expected) :] == [{**row, "home": None} for row in expected]
