"""Primary keys: declared by Spark's own clauses, kept as pylance keeps them, and heeded by concurrent merges."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

import lance_format
from pyspark_lance import LanceTable
from tests.spark.conftest import Catalog
from tests.table.leftovers import leftovers

KEY = "lance-schema:unenforced-primary-key"


@pytest.fixture
def birds(catalog: Catalog) -> str:
    """Return the path of a table with a key."""
    catalog.sql("CREATE TABLE @.birds (id BIGINT NOT NULL, name STRING, PRIMARY KEY (id))")
    catalog.sql("INSERT INTO @.birds VALUES (1, 'owl'), (2, 'emu')")
    return catalog.path("birds")


def key_of(path: str) -> list[str]:
    """Return the names of the columns of the key, as pylance has them, too."""
    theirs = lance.dataset(path).schema
    ours = [field.name() for field in lance_format.dataset(path).lance_schema.unenforced_primary_key()]
    assert sorted(ours) == sorted(field.name for field in theirs if KEY.encode() in (field.metadata or {}))
    return ours


def merging(catalog: Catalog, name: str, other: str) -> None:
    """Merge a row with the key 7, while another writer does something, the first time that the query runs."""
    once = Path(catalog.path("birds")).parent / "once"
    once.touch()
    path = catalog.path("birds")

    def colliding(_: str) -> str:
        if once.exists():
            once.unlink()
            rows = pa.table({"id": [7], "name": ["theirs"]}, schema=lance_format.dataset(path).schema)
            if other == "pylance":
                lance.dataset(path).merge_insert("id").when_not_matched_insert_all().execute(rows)
            elif other == "lance_format":
                lance_format.dataset(path).merge_insert("id").when_not_matched_insert_all().execute(rows)
            else:
                lance_format.dataset(path).insert(rows)
        return name

    catalog.spark.udf.register("colliding", colliding, "string")
    catalog.sql(
        "MERGE INTO @.birds t USING (SELECT 7L AS id, colliding('ours') AS name) s ON t.id = s.id"
        " WHEN MATCHED THEN UPDATE SET name = concat(t.name, ' and ', s.name) WHEN NOT MATCHED THEN INSERT *"
    )


@pytest.mark.slow
@pytest.mark.parametrize("other", ["pylance", "lance_format", "append"])
def test_of_two_merges_that_insert_a_key_the_second_sees_the_first(catalog: Catalog, birds: str, other: str) -> None:
    merging(catalog, "ours", other)
    assert sorted(catalog.sql("SELECT * FROM @.birds")) == [(1, "owl"), (2, "emu"), (7, "theirs and ours")]
    assert not leftovers(Path(birds))
    lance.dataset(birds).validate()


def test_pylance_sees_the_keys_that_a_merge_of_spark_inserts(catalog: Catalog, birds: str) -> None:
    stale = lance.dataset(birds)
    catalog.sql(
        "MERGE INTO @.birds t USING (SELECT 7L AS id, 'ours' AS name) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *"
    )
    rows = pa.table({"id": [7], "name": ["theirs"]}, schema=stale.schema)
    stale.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(rows)
    assert sorted(catalog.sql("SELECT * FROM @.birds")) == [(1, "owl"), (2, "emu"), (7, "theirs")]


@pytest.mark.slow
def test_without_a_key_both_are_inserted(catalog: Catalog) -> None:
    catalog.sql("CREATE TABLE @.birds (id BIGINT NOT NULL, name STRING)")
    catalog.sql("INSERT INTO @.birds VALUES (1, 'owl')")
    merging(catalog, "ours", "append")
    assert sorted(catalog.sql("SELECT * FROM @.birds")) == [(1, "owl"), (7, "ours"), (7, "theirs")]


def test_ways_to_declare_a_key(catalog: Catalog) -> None:
    catalog.sql("CREATE TABLE @.one (id BIGINT NOT NULL PRIMARY KEY NOT ENFORCED, name STRING)")
    assert key_of(catalog.path("one")) == ["id"]
    catalog.sql("CREATE TABLE @.two (a BIGINT NOT NULL, b STRING NOT NULL, CONSTRAINT k PRIMARY KEY (b, a) RELY)")
    assert key_of(catalog.path("two")) == ["b", "a"]
    assert any("PRIMARY KEY (b, a)" in str(row) for row in catalog.sql("DESCRIBE EXTENDED @.two"))
    catalog.sql("CREATE TABLE @.other (a BIGINT NOT NULL, PRIMARY KEY (A))")
    assert key_of(catalog.path("other")) == ["a"]
    catalog.refuses("CREATE TABLE @.none (a BIGINT NOT NULL, PRIMARY KEY (b))", "(?i)b")
    catalog.sql("CREATE TABLE @.later (id BIGINT NOT NULL, name STRING)")
    catalog.sql("INSERT INTO @.later VALUES (1, 'owl')")
    catalog.sql("ALTER TABLE @.later ADD CONSTRAINT k PRIMARY KEY (id) NOT ENFORCED")
    assert key_of(catalog.path("later")) == ["id"]
    assert catalog.sql("SELECT * FROM @.later") == [(1, "owl")]
    catalog.sql("CREATE OR REPLACE TABLE @.later (name STRING NOT NULL, PRIMARY KEY (name))")
    assert key_of(catalog.path("later")) == ["name"]


def test_the_statement_of_the_peer_and_other_ways(catalog: Catalog) -> None:
    for number in range(6):
        catalog.sql(f"CREATE TABLE @.t{number} (id BIGINT NOT NULL, `a b` STRING NOT NULL, c INT)")
    catalog.sql("ALTER TABLE @.t0 SET UNENFORCED PRIMARY KEY (id)")
    catalog.sql(f"alter table {catalog.name}.db.`t1`\n set unenforced primary key (`a b`, id) ;")
    catalog.sql("USE @")
    catalog.sql("ALTER TABLE t2 SET UNENFORCED PRIMARY KEY (ID)")
    assert catalog.sql(f"CALL {catalog.name}.system.set_unenforced_primary_key('t3', array('a b', 'id'))") == [
        (["a b", "id"], 2)
    ]
    LanceTable.forPath(catalog.spark, catalog.path("t4")).setUnenforcedPrimaryKey("id")
    found = [key_of(catalog.path(f"t{number}")) for number in range(5)]
    assert found == [["id"], ["a b", "id"], ["id"], ["a b", "id"], ["id"]]
    assert catalog.sql("SELECT 'ALTER TABLE t SET UNENFORCED PRIMARY KEY (id)'") == [
        ("ALTER TABLE t SET UNENFORCED PRIMARY KEY (id)",)
    ]
    for statement, message in {
        "ALTER TABLE @.t0 SET UNENFORCED PRIMARY KEY (`a b`)": "the table has a primary key, which cannot be changed",
        "ALTER TABLE @.t5 SET UNENFORCED PRIMARY KEY (c)": "'c' cannot be part of the primary key",
        "ALTER TABLE @.t5 SET UNENFORCED PRIMARY KEY (nothing)": "there is no column 'nothing'",
        "ALTER TABLE @.t0 SET UNENFORCED PRIMARY KEY ()": "PARSE_SYNTAX_ERROR",
        "ALTER TABLE @.t0 SET UNENFORCED KEY (id)": "PARSE_SYNTAX_ERROR",
        f"CALL {catalog.name}.system.set_unenforced_primary_key('@.t0', array('c'))": "the table has a primary key",
        f"CALL {catalog.name}.system.set_unenforced_primary_key('@.t5', array('id', 'ID'))": "one column or more, each",
        "ALTER TABLE @.t5 ADD CONSTRAINT k PRIMARY KEY (id, id)": "one column or more, each once, is needed",
    }.items():
        catalog.refuses(statement, message)


@pytest.mark.usefixtures("birds")
def test_what_is_no_key_is_refused(catalog: Catalog) -> None:
    catalog.sql("CREATE TABLE @.t (id BIGINT NOT NULL, name STRING)")
    for statement, message in {
        "CREATE TABLE @.u (id BIGINT NOT NULL, CHECK (id > 0))": "CHECK .*PRIMARY KEY .* NOT ENFORCED",
        "CREATE TABLE @.u (id BIGINT NOT NULL, UNIQUE (id))": "UNIQUE .*PRIMARY KEY .* NOT ENFORCED",
        "ALTER TABLE @.t ADD CONSTRAINT c CHECK (id > 0)": "CHECK .*PRIMARY KEY .* NOT ENFORCED",
        "ALTER TABLE @.t ADD CONSTRAINT k PRIMARY KEY (name)": "'name' cannot be part of the primary key",
        "ALTER TABLE @.birds DROP CONSTRAINT primary_key": "the primary key of a table stays",
        "ALTER TABLE @.birds ADD CONSTRAINT k PRIMARY KEY (name)": "key",
    }.items():
        catalog.refuses(statement, message)


def test_columns_with_a_collation_are_no_key(catalog: Catalog) -> None:
    """Equal keys would have different bytes, by which concurrent merges compare them."""
    catalog.sql("CREATE TABLE @.t (id STRING COLLATE UTF8_LCASE NOT NULL)")
    catalog.sql("CREATE TABLE @.u (id STRING NOT NULL, PRIMARY KEY (id))")
    for statement in (
        "CREATE TABLE @.v (id STRING COLLATE UTF8_LCASE NOT NULL, PRIMARY KEY (id))",
        "ALTER TABLE @.t ADD CONSTRAINT k PRIMARY KEY (id)",
        "ALTER TABLE @.u ALTER COLUMN id TYPE STRING COLLATE UTF8_LCASE",
    ):
        catalog.refuses(statement, "column 'id' has the type 'string collate UTF8_LCASE'")


@pytest.mark.slow
@pytest.mark.usefixtures("birds")
def test_copies_and_replacements(catalog: Catalog) -> None:
    catalog.sql("CREATE TABLE @.copy AS SELECT * FROM @.birds")
    assert key_of(catalog.path("copy")) == []
    catalog.sql("INSERT OVERWRITE @.birds SELECT id + 10, name FROM @.birds")
    assert key_of(catalog.path("birds")) == ["id"]
    assert sorted(catalog.sql("SELECT * FROM @.birds")) == [(11, "owl"), (12, "emu")]
    with pytest.raises(PySparkException, match="NULL"):
        catalog.sql("INSERT OVERWRITE @.birds SELECT CAST(NULL AS BIGINT), name FROM @.birds")
    catalog.sql("ALTER TABLE @.birds ADD COLUMN weight DOUBLE")
    catalog.sql("UPDATE @.birds SET weight = 1 WHERE id = 11")
    assert key_of(catalog.path("birds")) == ["id"]
