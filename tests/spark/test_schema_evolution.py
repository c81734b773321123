"""INSERT and MERGE WITH SCHEMA EVOLUTION: a table gets the columns of the rows, or nothing is changed."""

from __future__ import annotations

import lance
import pytest
from pyspark.sql import SparkSession

import lance_format
from tests.spark.conftest import Catalog
from tests.spark.test_catalog import version

MERGE = (
    "MERGE WITH SCHEMA EVOLUTION INTO @.birds t USING ({source}) s ON t.id = s.id"
    " WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
)


@pytest.fixture
def birds(catalog: Catalog) -> str:
    """Return the path of a table of two rows."""
    catalog.sql("CREATE TABLE @.birds (id BIGINT, s STRUCT<a: INT>, n INT)")
    catalog.sql("INSERT INTO @.birds VALUES (1, struct(10), 100), (2, struct(20), 200)")
    return catalog.path("birds")


def rows(catalog: Catalog) -> list[tuple[object, ...]]:
    found = catalog.sql("SELECT * FROM @.birds ORDER BY id")
    theirs = lance.dataset(catalog.path("birds")).to_table().sort_by("id").to_pylist()
    assert [next(iter(row.values())) for row in theirs] == [row[0] for row in found]
    lance.dataset(catalog.path("birds")).validate()
    return found


def test_merge_adds_columns_and_fields(catalog: Catalog, birds: str) -> None:
    before = lance_format.dataset(birds).version
    source = (
        "SELECT 2L AS id, named_struct('a', 21, 'b', 'x') AS s, 201 AS n, 'emu' AS name"
        " UNION ALL SELECT 3L, named_struct('a', 30, 'b', 'y'), 300, 'owl'"
    )
    catalog.sql(MERGE.format(source=source))
    assert rows(catalog) == [
        (1, (10, None), 100, None),
        (2, (21, "x"), 201, "emu"),
        (3, (30, "y"), 300, "owl"),
    ]
    assert lance_format.dataset(birds).version == before + 2  # the columns, then the rows
    catalog.sql(MERGE.format(source="SELECT 1L AS id, 'emu' AS name"))
    assert rows(catalog)[0] == (1, (10, None), 100, "emu")
    assert lance_format.dataset(birds).version == before + 3


def test_merge_takes_only_columns_that_it_assigns(catalog: Catalog, birds: str) -> None:
    catalog.sql(
        "MERGE WITH SCHEMA EVOLUTION INTO @.birds t USING (SELECT 1L AS id, 7 AS other, 8 AS unused) s ON t.id = s.id"
        " WHEN MATCHED THEN UPDATE SET n = s.other"
    )
    assert rows(catalog)[0] == (1, (10,), 7)
    assert lance_format.dataset(birds).schema.names == ["id", "s", "n"]


def test_numbers_get_wider_and_never_narrower(catalog: Catalog, birds: str) -> None:
    wide = "SELECT 1L AS id, 5000000000L AS n"
    catalog.sql(MERGE.format(source=wide))
    assert rows(catalog) == [(1, (10,), 5_000_000_000), (2, (20,), 200)]
    narrow = "SELECT 2 AS id, 201S AS n"
    if version(catalog.spark) >= (4, 2):  # Spark asks for the supported changes, and casts the other columns.
        catalog.sql(MERGE.format(source=narrow))
        assert rows(catalog)[1] == (2, (20,), 201)
    else:
        catalog.refuses(MERGE.format(source=narrow), "would change the column .* by which values may be lost")
    assert str(lance_format.dataset(birds).schema.field("n").type) == "int64"
    assert str(lance_format.dataset(birds).schema.field("id").type) == "int64"


@pytest.mark.usefixtures("birds")
def test_what_cannot_be_evolved_is_refused(catalog: Catalog) -> None:
    catalog.sql("CREATE TABLE @.lists (id BIGINT, l ARRAY<STRUCT<a: INT>>)")
    catalog.refuses(
        "MERGE WITH SCHEMA EVOLUTION INTO @.lists t USING (SELECT 1L AS id, array(named_struct('a', 1, 'b', 2)) AS l) s"
        " ON t.id = s.id WHEN NOT MATCHED THEN INSERT *",
        "below an array or a map.*CREATE OR REPLACE",
    )
    explained = catalog.sql(f"EXPLAIN {MERGE.format(source='SELECT 1L AS id, 2 AS more')}")
    assert "EXPLAIN of one would change" in str(explained)
    assert "more" not in lance_format.dataset(catalog.path("birds")).schema.names
    catalog.refuses("ALTER TABLE @.lists ADD COLUMN l.element.b INT", "below an array or a map")
    catalog.refuses("ALTER TABLE @.lists RENAME COLUMN l.element.a TO b", "below an array or a map")


def test_a_table_by_its_path(catalog: Catalog, birds: str) -> None:
    statement = MERGE.format(source="SELECT 1L AS id, 'x' AS more").replace("@.birds", f"lance.`{birds}`")
    catalog.sql(statement)
    assert rows(catalog)[0] == (1, (10,), 100, "x")


def test_a_statement_that_fails_keeps_the_rows(catalog: Catalog, birds: str) -> None:
    source = "SELECT 1L AS id, CAST(raise_error('no such bird') AS STRING) AS more"
    with pytest.raises(Exception, match="no such bird"):
        catalog.sql(MERGE.format(source=source))
    assert rows(catalog) == [(1, (10,), 100, None), (2, (20,), 200, None)]
    assert not [name for name in lance_format.dataset(birds).schema.names if name not in ("id", "s", "n", "more")]


class TestInsert:
    @pytest.fixture(autouse=True)
    def newer(self, spark: SparkSession) -> None:
        if version(spark) < (4, 2):
            pytest.skip("Spark 4.1 has no INSERT WITH SCHEMA EVOLUTION")

    @pytest.mark.usefixtures("birds")
    def test_by_name(self, catalog: Catalog) -> None:
        catalog.sql(
            "INSERT WITH SCHEMA EVOLUTION INTO @.birds BY NAME"
            " SELECT 3L AS id, named_struct('a', 30, 'b', 'x') AS s, 5000000000L AS n, 'owl' AS name"
        )
        assert rows(catalog) == [
            (1, (10, None), 100, None),
            (2, (20, None), 200, None),
            (3, (30, "x"), 5_000_000_000, "owl"),
        ]

    def test_replacing_rows(self, catalog: Catalog, birds: str) -> None:
        catalog.sql(
            "INSERT WITH SCHEMA EVOLUTION INTO @.birds REPLACE WHERE id = 2"
            " SELECT 2L AS id, named_struct('a', 22) AS s, 202 AS n, 'owl' AS name"
        )
        assert rows(catalog) == [(1, (10,), 100, None), (2, (22,), 202, "owl")]
        assert lance_format.dataset(birds).schema.names[3:] == ["name"] or version(catalog.spark) < (4, 2)
