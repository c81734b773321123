"""Metadata tables: `t.history`, `t.files` …, and the option `metadata_table`."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import lance_format
from connector.metadata.tables import TABLES
from lance_format import LanceDataset
from tests.spark.conftest import Catalog, load

_PAGE = Path(__file__).parents[2] / "docs" / "maintenance.md"


def build(path: str) -> LanceDataset:
    """Write a table of four versions, with an index, a tag and a branch."""
    rows = {"id": range(400), "at": [{"x": float(number)} for number in range(400)]}
    lance_format.write_dataset(pa.table(rows), path, max_rows_per_file=100)
    table = lance_format.dataset(path)
    table.create_scalar_index("id", "ZONEMAP")
    table.insert({"id": [400], "at": [{"x": 1.0}]})
    table.delete("id = 150")
    table.tags.create("first", 1)
    table.create_branch("b", 2)
    return table


@pytest.fixture
def table(catalog: Catalog) -> LanceDataset:
    return build(catalog.path("t"))


def test_the_page_lists_tables_and_columns() -> None:
    text = _PAGE.read_text()
    for name, table in TABLES.items():
        section = text.split(f"### `t.{name}`")[1].split("\n### ")[0].split("\n## ")[0]
        for field in table.schema:
            assert f"| `{field.name}` | {field.dataType.simpleString()} |" in section, (name, field.name)


def test_history(catalog: Catalog, table: LanceDataset) -> None:
    found = catalog.sql("SELECT version, operation, read_version, rows, fragments, data_files FROM @.t.history")
    assert found == [
        (4, "delete", 3, 400, 5, 5),
        (3, "append", 2, 401, 5, 5),
        (2, "create_index", 1, 400, 4, 4),
        (1, "overwrite", 0, 400, 4, 4),
    ]
    times = [row[0] for row in catalog.sql("SELECT timestamp FROM @.t.history ORDER BY version")]
    assert times == [each["timestamp"] for each in table.versions()]
    assert catalog.sql("SELECT count(*) FROM @.t.history VERSION AS OF 2") == [(2,)]
    assert catalog.sql("SELECT max(version) FROM @.t.history WHERE rows = 400 AND operation <> 'delete'") == [(2,)]
    assert catalog.sql("SELECT bytes FROM @.t.history LIMIT 1")[0][0] == sum(
        file.file_size_bytes for fragment in table.get_fragments() for file in fragment.metadata.files
    )


def test_files_and_fragments(catalog: Catalog, table: LanceDataset) -> None:
    files = catalog.sql("SELECT * FROM @.t.files")
    data = [row for row in files if row[1] == "data"]
    assert [row[0] for row in data] == [0, 1, 2, 3, 4]
    assert all(Path(table.uri, row[2]).stat().st_size == row[3] for row in data)
    assert {(row[4], tuple(row[5])) for row in data} == {("2.2", ("id", "at.x"))}
    ((fragment, _, path, *_),) = [row for row in files if row[1] == "deletion"]
    assert fragment == 1
    assert Path(table.uri, path).is_file()
    fragments = catalog.sql(
        "SELECT id, rows, physical_rows, deleted_rows, data_files, deletion_file FROM @.t.fragments"
    )
    assert fragments[1] == (1, 99, 100, 1, 1, path)
    assert [row[1] for row in fragments] == [100, 99, 100, 100, 1]
    assert catalog.sql("SELECT sum(rows), count(*) FROM @.t.fragments VERSION AS OF 'first'") == [(400, 4)]
    assert catalog.sql("SELECT count(*) FROM @.t.files VERSION AS OF 3") == [(5,)]


def test_indices(catalog: Catalog, table: LanceDataset) -> None:
    ((name, kind, uuid, columns, version, *counts),) = catalog.sql("SELECT * FROM @.t.indices")
    assert (name, kind, columns, version, counts) == ("id_idx", "ZoneMap", ["id"], 1, [4, 1])
    assert (Path(table.uri) / "_indices" / uuid).is_dir()
    assert catalog.sql("SELECT * FROM @.t.indices VERSION AS OF 1") == []


def test_references(catalog: Catalog, table: LanceDataset) -> None:
    ((name, branch, version, created, updated, metadata),) = catalog.sql("SELECT * FROM @.t.tags")
    assert (name, branch, version, metadata) == ("first", None, 1, {})
    assert created == updated
    assert abs(datetime.datetime.now() - created) < datetime.timedelta(days=1)
    ((name, parent, version, created, metadata),) = catalog.sql("SELECT * FROM @.t.branches")
    assert (name, parent, version, metadata) == ("b", None, 2, {})
    assert abs(datetime.datetime.now() - created) < datetime.timedelta(days=1)
    assert catalog.sql("SELECT * FROM @.t.refs") == [("b", "branch", None, 2), ("first", "tag", None, 1)]
    catalog.refuses("SELECT * FROM @.t.tags VERSION AS OF 1", "'tags' shows the present and has no versions")


def test_transactions(catalog: Catalog, table: LanceDataset) -> None:
    found = catalog.sql("SELECT * FROM @.t.transactions ORDER BY version")
    assert [row[0] for row in found] == [1, 2, 3, 4]
    assert [row[1] for row in found] == [table.read_transaction(version).uuid for version in (1, 2, 3, 4)]
    assert [row[2:6] for row in found] == [
        (0, "overwrite", 4, 0),
        (1, "create_index", 0, 0),
        (2, "append", 1, 0),
        (3, "delete", 0, 1),
    ]
    assert found[0][6] == {}


def test_names(catalog: Catalog, table: LanceDataset) -> None:
    assert catalog.sql("SELECT count(*) FROM @.t.branch_b.history") == [(1,)]
    assert catalog.sql(f"SELECT count(*) FROM {catalog.name}.`{table.uri}`.files") == [(6,)]
    assert catalog.sql("SELECT count(*) FROM @.t.FILES f JOIN @.t.fragments g ON f.fragment_id = g.id") == [(6,)]
    catalog.refuses("SELECT * FROM @.nothing.files", "TABLE_OR_VIEW_NOT_FOUND")
    catalog.sql("CREATE NAMESPACE @.n")
    catalog.sql("CREATE TABLE @.n.files AS SELECT 7 AS id")
    assert catalog.sql("SELECT * FROM @.n.files") == [(7,)]


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO @.t.tags SELECT * FROM @.t.tags",
        "DELETE FROM @.t.history",
        "DELETE FROM @.t.history WHERE version = 1",
        "UPDATE @.t.history SET rows = 0",
        "TRUNCATE TABLE @.t.history",
        "DROP TABLE @.t.history",
        "ALTER TABLE @.t.history ADD COLUMNS (a INT)",
        "CREATE TABLE @.t.history (a INT)",
    ],
)
def test_metadata_tables_are_not_changed(catalog: Catalog, table: LanceDataset, statement: str) -> None:
    catalog.refuses(statement, "metadata|already exists")


def test_they_are_not_written(catalog: Catalog) -> None:
    catalog.sql("CREATE TABLE @.t AS SELECT 1 AS id")
    for statement in (
        "INSERT INTO @.t.files SELECT * FROM @.t.files",
        "INSERT OVERWRITE @.t.files SELECT * FROM @.t.files",
        "INSERT INTO @.t.files REPLACE WHERE fragment_id = 0 SELECT * FROM @.t.files",
    ):
        catalog.refuses(statement, r"^'files' is a metadata table of \S+t.lance and cannot be written: write the table")


@pytest.mark.slow
def test_the_option(spark: SparkSession, path: str, pushdown: str) -> None:
    build(path)
    found = load(spark, path, metadata_table="fragments").where("rows < 100").select("id", "rows").collect()
    assert [tuple(row) for row in found] == [(1, 99), (4, 1)]
    assert load(spark, path, metadata_table="files", version=1).count() == 4
    assert load(spark, path, metadata_table="history", branch="b").count() == 1
    for table in TABLES:
        rows: list[Any] = load(spark, path, metadata_table=table).collect()
        assert rows
        assert load(spark, path, metadata_table=table).schema == TABLES[table].schema
    with pytest.raises(Exception, match="option 'metadata_table' must be one of history, files"):
        load(spark, path, metadata_table="snapshots").collect()
    with pytest.raises(Exception, match="option 'columns' does not apply to metadata tables"):
        load(spark, path, metadata_table="files", columns="path").collect()
    with pytest.raises(Exception, match="is a metadata table of"):
        load(spark, path, metadata_table="refs").write.format("lance").option("metadata_table", "refs").mode(
            "append"
        ).save(path)
