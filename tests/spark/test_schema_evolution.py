"""INSERT and MERGE WITH SCHEMA EVOLUTION: a table gets the columns of the rows, or nothing is changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import lance_format
from tests.spark.conftest import Catalog
from tests.spark.test_catalog import version
from tests.table.leftovers import leftovers

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


@pytest.mark.slow
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
    assert lance_format.dataset(birds).version == before + 1
    catalog.sql(MERGE.format(source="SELECT 1L AS id, 'emu' AS name"))
    assert rows(catalog)[0] == (1, (10, None), 100, "emu")
    assert lance_format.dataset(birds).version == before + 2


def test_merge_takes_only_columns_that_it_assigns(catalog: Catalog, birds: str) -> None:
    catalog.sql(
        "MERGE WITH SCHEMA EVOLUTION INTO @.birds t USING (SELECT 1L AS id, 7 AS other, 8 AS unused) s ON t.id = s.id"
        " WHEN MATCHED THEN UPDATE SET n = s.other"
    )
    assert rows(catalog)[0] == (1, (10,), 7)
    assert lance_format.dataset(birds).schema.names == ["id", "s", "n"]


@pytest.mark.slow
def test_types_stay(catalog: Catalog, birds: str) -> None:
    before = lance_format.dataset(birds).version
    is_cast = version(catalog.spark) >= (4, 2)  # Spark asks for the supported changes, and casts the other columns.
    wide = MERGE.format(source="SELECT 1L AS id, 5000000000L AS n, 'x' AS more")
    refusal = "CAST_OVERFLOW" if is_cast else "n of .* from int to bigint.*ALTER COLUMN n TYPE BIGINT"
    catalog.refuses(wide, refusal)
    assert lance_format.dataset(birds).version == before
    other = MERGE.format(source="SELECT 2 AS id, 201S AS n, 'x' AS more")
    if is_cast:
        catalog.sql(other)
        assert rows(catalog)[1] == (2, (20,), 201, "x")
        assert lance_format.dataset(birds).version == before + 1
    else:
        catalog.refuses(other, "would change the column .* Cast the rows")
    stored = lance_format.dataset(birds).schema
    assert [str(stored.field(name).type) for name in ("id", "n")] == ["int64", "int32"]


@pytest.mark.usefixtures("birds")
def test_what_cannot_be_evolved_is_refused(catalog: Catalog) -> None:
    catalog.sql("CREATE TABLE @.lists (id BIGINT, l ARRAY<STRUCT<a: INT>>)")
    catalog.refuses(
        "MERGE WITH SCHEMA EVOLUTION INTO @.lists t USING (SELECT 1L AS id, array(named_struct('a', 1, 'b', 2)) AS l) s"
        " ON t.id = s.id WHEN NOT MATCHED THEN INSERT *",
        "below an array or a map.*CREATE OR REPLACE",
    )
    before = lance_format.dataset(catalog.path("birds")).version
    assert "more" in str(catalog.sql(f"EXPLAIN {MERGE.format(source='SELECT 1L AS id, 2 AS more')}"))
    assert lance_format.dataset(catalog.path("birds")).version == before
    catalog.refuses("ALTER TABLE @.lists ADD COLUMN l.element.b INT", "below an array or a map")
    catalog.refuses("ALTER TABLE @.lists RENAME COLUMN l.element.a TO b", "below an array or a map")
    catalog.sql("CREATE TABLE @.old (id BIGINT) TBLPROPERTIES ('file_format_version' = '2.1')")
    catalog.refuses("ALTER TABLE @.old ADD COLUMN m MAP<STRING, INT>", "'m.* file format 2.1 cannot hold")
    evolving = MERGE.format(source="SELECT 1L AS id, map('a', 1) AS m").replace("@.birds", "@.old")
    catalog.refuses(evolving, "'m.* file format 2.1 cannot hold")


@pytest.mark.parametrize(("name", "message"), [("a.b", "such as 'a_b'"), ("_rowoffset", "reserved")])
def test_names_that_no_table_can_have_are_refused(catalog: Catalog, birds: str, name: str, message: str) -> None:
    # Spark 4.1 does not find a new column with a dot in its name.
    catalog.refuses(MERGE.format(source=f"SELECT 1L AS id, 'x' AS `{name}`"), f"{message}|UNRESOLVED_COLUMN")
    catalog.refuses(f"ALTER TABLE @.birds ADD COLUMN `{name}` INT", message)
    lance.dataset(birds).validate()


def test_a_branch_evolves(catalog: Catalog, birds: str) -> None:
    lance_format.dataset(birds).create_branch("b")
    before = rows(catalog)
    catalog.sql(MERGE.format(source="SELECT 1L AS id, 'x' AS more").replace("@.birds", "@.birds.branch_b"))
    catalog.sql(MERGE.format(source="SELECT 3L AS id, 7 AS other").replace("@.birds", "@.birds.branch_b"))
    catalog.sql("ALTER TABLE @.birds.branch_b RENAME COLUMN other TO last")
    catalog.sql("ALTER TABLE @.birds.branch_b ADD COLUMN empty INT")
    catalog.refuses("ALTER TABLE @.birds.files ADD COLUMN empty INT", "names a metadata table")
    found = catalog.sql("SELECT id, more, last, empty FROM @.birds.branch_b ORDER BY id")
    assert found == [(1, "x", None, None), (2, None, None, None), (3, None, 7, None)]
    assert rows(catalog) == before
    theirs = lance.dataset(birds)
    assert theirs.checkout_version(("b", None)).schema.names[-3:] == ["more", "last", "empty"]
    assert theirs.to_table().num_rows == len(before)


def test_a_table_by_its_path(catalog: Catalog, birds: str) -> None:
    statement = MERGE.format(source="SELECT 1L AS id, 'x' AS more").replace("@.birds", f"lance.`{birds}`")
    catalog.sql(statement)
    assert rows(catalog)[0] == (1, (10,), 100, "x")


@pytest.mark.parametrize("error", ["raise_error('no such bird')", "error_of(id)"], ids=["source", "task"])
def test_a_statement_that_fails_changes_nothing(catalog: Catalog, birds: str, error: str) -> None:
    def fail(number: Any) -> Any:
        raise ValueError(f"no such bird {number}")

    catalog.spark.udf.register("error_of", fail, "string")
    before = lance_format.dataset(birds).version
    source = f"SELECT id, CAST({error} AS STRING) AS more FROM range(1, 3)"
    with pytest.raises(Exception, match="no such bird"):
        catalog.sql(MERGE.format(source=source))
    assert rows(catalog) == [(1, (10,), 100), (2, (20,), 200)]
    assert lance_format.dataset(birds).version == before
    assert not leftovers(Path(birds))


def test_a_merge_that_only_inserts(catalog: Catalog, birds: str) -> None:
    before = lance_format.dataset(birds).version
    catalog.sql(
        MERGE.format(source="SELECT id, 'x' AS more FROM range(2, 4)").replace(" WHEN MATCHED THEN UPDATE SET *", "")
    )
    assert rows(catalog) == [(1, (10,), 100, None), (2, (20,), 200, None), (3, None, None, "x")]
    assert lance_format.dataset(birds).version == before + 1


@pytest.mark.parametrize(("deletes", "left"), [(False, [1, 2]), (True, [2])], ids=["nothing", "a delete"])
def test_columns_come_without_written_rows(catalog: Catalog, birds: str, deletes: bool, left: list[int]) -> None:
    before = lance_format.dataset(birds).version
    surplus = " WHEN NOT MATCHED BY SOURCE AND t.id = 1 THEN DELETE" if deletes else ""
    merge = MERGE.format(source="SELECT 3L AS id, 'x' AS more").replace("NOT MATCHED", "NOT MATCHED AND s.id > 3")
    catalog.sql(merge + surplus)
    assert [(row[0], row[3]) for row in rows(catalog)] == [(number, None) for number in left]
    assert lance_format.dataset(birds).version == before + 1
    catalog.sql(merge)
    assert lance_format.dataset(birds).version == before + 1


def test_conditions_see_the_new_columns(catalog: Catalog, birds: str) -> None:
    catalog.sql(
        "MERGE WITH SCHEMA EVOLUTION INTO @.birds t USING (SELECT id, 'x' AS more FROM range(2, 5)) s"
        " ON t.id = s.id AND t.more IS NULL WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        " WHEN NOT MATCHED BY SOURCE AND t.more IS NULL THEN DELETE"
    )
    assert rows(catalog) == [(2, (20,), 200, "x"), (3, None, None, "x"), (4, None, None, "x")]


def test_the_source_reads_the_table(catalog: Catalog, birds: str) -> None:
    before = "(SELECT * FROM @.birds VERSION AS OF 2)"
    source = f"SELECT b.id, b.n + a.n AS n, 'x' AS more FROM @.birds b JOIN {before} a USING (id)"
    catalog.sql(MERGE.format(source=source))
    assert rows(catalog) == [(1, (10,), 200, "x"), (2, (20,), 400, "x")]


def test_another_writer_adds_the_column_meanwhile(catalog: Catalog, birds: str) -> None:
    def add(number: Any) -> Any:
        dataset = lance_format.dataset(birds)
        if "more" not in dataset.schema.names:
            dataset.add_columns(pa.schema([("more", pa.string())]))
        return number

    catalog.spark.udf.register("adding", add, "long")
    catalog.sql(MERGE.format(source="SELECT adding(id) AS id, 'x' AS more FROM range(2, 4, 1, 1)"))
    assert rows(catalog) == [(1, (10,), 100, None), (2, (20,), 200, "x"), (3, None, None, "x")]


class TestInsert:
    @pytest.fixture(autouse=True)
    def newer(self, spark: SparkSession) -> None:
        if version(spark) < (4, 2):
            pytest.skip("Spark 4.1 has no INSERT WITH SCHEMA EVOLUTION")

    @pytest.mark.slow
    def test_adds_columns_with_the_rows(self, catalog: Catalog, birds: str) -> None:
        before = lance_format.dataset(birds).version
        insert = "INSERT WITH SCHEMA EVOLUTION INTO @.birds BY NAME SELECT 3L AS id, {} AS name"
        with pytest.raises(Exception, match="no such bird"):
            catalog.sql(insert.format("CAST(raise_error('no such bird') AS STRING)"))
        assert lance_format.dataset(birds).version == before
        catalog.sql(insert.format("'owl'"))
        assert rows(catalog) == [(1, (10,), 100, None), (2, (20,), 200, None), (3, None, None, "owl")]
        assert lance_format.dataset(birds).version == before + 1
        catalog.sql("INSERT WITH SCHEMA EVOLUTION OVERWRITE TABLE @.birds BY NAME SELECT 4L AS id, 1.5D AS weight")
        assert rows(catalog) == [(4, None, None, None, 1.5)]
        assert lance_format.dataset(birds).version == before + 2

    @pytest.mark.usefixtures("birds")
    def test_by_name(self, catalog: Catalog) -> None:
        catalog.sql(
            "INSERT WITH SCHEMA EVOLUTION INTO @.birds BY NAME"
            " SELECT 3L AS id, named_struct('a', 30, 'b', 'x') AS s, 300L AS n, 'owl' AS name"
        )
        assert rows(catalog) == [
            (1, (10, None), 100, None),
            (2, (20, None), 200, None),
            (3, (30, "x"), 300, "owl"),
        ]

    def test_replacing_rows(self, catalog: Catalog, birds: str) -> None:
        before = lance_format.dataset(birds).version
        catalog.sql(
            "INSERT WITH SCHEMA EVOLUTION INTO @.birds REPLACE WHERE id = 2"
            " SELECT 2L AS id, named_struct('a', 22) AS s, 202 AS n, 'owl' AS name"
        )
        assert rows(catalog) == [(1, (10,), 100, None), (2, (22,), 202, "owl")]
        assert lance_format.dataset(birds).schema.names[3:] == ["name"] or version(catalog.spark) < (4, 2)
        assert lance_format.dataset(birds).version == before + 1

    @pytest.mark.parametrize("into", ["INTO @.birds BY NAME", "INTO @.birds REPLACE WHERE id = 2"])
    def test_columns_come_without_rows(self, catalog: Catalog, birds: str, into: str) -> None:
        source = "SELECT 2L AS id, named_struct('a', 22) AS s, 202 AS n, 'owl' AS name WHERE false"
        catalog.sql(f"INSERT WITH SCHEMA EVOLUTION {into} {source}")
        assert lance_format.dataset(birds).schema.names[3:] == ["name"]
        assert [row[3] for row in rows(catalog)] == [None, None] if "BY NAME" in into else [None]
