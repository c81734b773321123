"""`CALL catalog.system.add_columns(…)`: columns from a view whose rows name rows of the table."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import lance
import pyarrow as pa
import pytest

import lance_format
from lance_format import LanceDataset
from tests.spark.conftest import Catalog
from tests.spark.test_jobs import jobs_of
from tests.table.leftovers import leftovers

_ROWS = 2000


@pytest.fixture(params=[False, True], ids=["addresses", "stable row ids"])
def table(request: pytest.FixtureRequest, catalog: Catalog) -> LanceDataset:
    """Return a table of four fragments; with stable row ids, rows have moved since they got theirs."""
    rows = pa.table({"id": range(_ROWS), "name": [f"bird {number}" for number in range(_ROWS)]})
    lance_format.write_dataset(rows, catalog.path("t"), max_rows_per_file=500, enable_stable_row_ids=request.param)
    table = lance_format.dataset(catalog.path("t"))
    table.update({"name": "'emu'"}, "id % 5 = 0")
    table.delete("id % 7 = 3")
    return table


def add(catalog: Catalog, arguments: str) -> list[object]:
    return catalog.sql(f"CALL {catalog.name}.system.add_columns('@.t', {arguments})")


def check(table: LanceDataset, column: str, has_value: str = "true") -> None:
    """Check that pylance reads twice the id in each row that has a value, and null in the others."""
    found = lance.dataset(table.uri)
    found.validate()
    for row in found.to_table(columns={"id": "id", "value": column, "known": has_value}).to_pylist():
        assert row["value"] == (row["id"] * 2 if row["known"] else None)
    assert leftovers(Path(table.uri)) == set()


@pytest.mark.slow
@pytest.mark.parametrize("key", ["_rowaddr", "_rowid"])
def test_columns_of_a_view(catalog: Catalog, table: LanceDataset, key: str) -> None:
    before = {file.path for fragment in table.get_fragments() for file in fragment.data_files()}
    catalog.sql(f"CREATE OR REPLACE TEMPORARY VIEW v AS SELECT id * 2 AS twice, {key}, upper(name) AS loud FROM @.t")
    version = table.version
    jobs = jobs_of(catalog.spark, lambda: add(catalog, "source => 'v'"))
    assert jobs[-1].description == "lance: add columns twice, loud"
    check(table, "twice")
    assert table.latest_version == version + 1
    assert catalog.sql("SELECT count(*) FROM @.t WHERE loud <> upper(name)") == [(0,)]
    new = lance_format.dataset(table.uri)
    after = {file.path for fragment in new.get_fragments() for file in fragment.data_files()}
    assert before < after
    assert all(len(fragment.data_files()) == 2 for fragment in new.get_fragments())


@pytest.mark.slow
def test_some_rows_and_columns(catalog: Catalog, table: LanceDataset) -> None:
    catalog.sql(
        "CREATE OR REPLACE TEMPORARY VIEW v AS SELECT _fragid, _rowaddr, id * 2 AS a, array(float(id), 1f) AS b, 7 AS c"
        " FROM @.t WHERE id % 3 = 0"
    )
    assert add(catalog, "'v', columns => array('a', 'b')") == [(["a", "b"], table.version + 1)]
    check(table, "a", "id % 3 = 0")
    assert catalog.sql("SELECT * FROM @.t WHERE id = 6") == [(6, "bird 6", 12, [6.0, 1.0])]


@pytest.mark.slow
def test_views_and_settings_are_those_of_the_session_that_calls(catalog: Catalog, table: LanceDataset) -> None:
    other = dataclasses.replace(catalog, spark=catalog.spark.newSession())
    other.spark.conf.set("spark.lance.planner.enabled", "true")
    for setting, value in (("", "lance.Catalog"), (".root", str(catalog.root))):
        other.spark.conf.set(f"spark.sql.catalog.{catalog.name}{setting}", value)
    for session, factor in ((catalog, 3), (other, 2)):
        session.spark.table(f"{catalog.name}.db.t").selectExpr(
            "_rowaddr", f"id * {factor} AS twice"
        ).createOrReplaceTempView("v")
    add(other, "'v'")
    check(table, "twice")


@pytest.mark.slow
def test_bad_sources(catalog: Catalog, table: LanceDataset) -> None:
    spark = catalog.spark
    spark.table(f"{catalog.name}.db.t").selectExpr("_rowaddr", "_rowaddr + 1 AS a", "name").createOrReplaceTempView("v")
    spark.sql("SELECT * FROM v UNION ALL SELECT * FROM v LIMIT 1").createOrReplaceTempView("unused")
    spark.sql("SELECT _rowaddr, a FROM v UNION ALL SELECT _rowaddr, a FROM v").createOrReplaceTempView("twice")
    spark.sql("SELECT _rowaddr + 99999999999999 AS _rowaddr, a FROM v").createOrReplaceTempView("elsewhere")
    spark.sql("SELECT if(a % 2 = 0, NULL, _rowaddr) AS _rowaddr, a FROM v").createOrReplaceTempView("unnamed")
    spark.sql("SELECT 99999 AS _rowid, a FROM v LIMIT 1").createOrReplaceTempView("unknown")
    for arguments, message in {
        "'nothing'": "TABLE_OR_VIEW_NOT_FOUND",
        "'v'": "InvalidInputError: column 'name' exists already",
        "'v', columns => array('b')": "InvalidInputError: the source has no column 'b' to add",
        "'v', '_rowid', array('a')": "InvalidInputError: the source has no column '_rowid' to name rows",
        "'v', 'id'": "InvalidInputError: key is 'id'",
        "'twice'": "InvalidInputError: row .* has several values",
        "'elsewhere'": "InvalidInputError: version .* has no fragment",
        "'unnamed'": "InvalidInputError: a row of the source names no row",
        "'unknown'": "InvalidInputError: (a row of the source names no row|there is no row 99999)",
    }.items():
        catalog.refuses(f"CALL {catalog.name}.system.add_columns('@.t', {arguments})", message)
