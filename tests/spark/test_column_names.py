"""Names of columns that pylance cannot read are refused in Spark, unless they are asked for or there already."""

import lance
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from connector.types.column_names import mentioned_names
from tests.spark.conftest import append, load, overwrite

UNPORTABLE = ["a.b", "a`b"]
NAMES = ["id", "name", "p", "a b", "a.b", "x`y"]


@pytest.mark.parametrize("name", UNPORTABLE)
def test_names_that_pylance_cannot_read(spark: SparkSession, path: str, name: str) -> None:
    rows = spark.range(3).withColumnRenamed("id", name)
    for write in (append, overwrite):
        with pytest.raises(PySparkException, match=r"choose another one, such as 'a_b', by .*withColumnRenamed"):
            write(rows, path)
    append(rows.withColumnRenamed(name, "a_b"), path)
    assert lance.dataset(path).to_table().column_names == ["a_b"]
    with pytest.raises(PySparkException, match="allow_unportable_names"):
        append(rows.withColumn("a_b", rows[f"`{name.replace('`', '``')}`"]), path, mergeSchema=True)
    assert lance.dataset(path).version == 1


@pytest.mark.parametrize("name", UNPORTABLE)
def test_tables_that_have_such_names(spark: SparkSession, path: str, name: str) -> None:
    quoted = f"`{name.replace('`', '``')}`"
    rows = spark.range(3).withColumnRenamed("id", name)
    append(rows, path, allow_unportable_names=True)
    append(rows, path)
    assert sorted(load(spark, path).filter(f"{quoted} > 0").select(quoted).collect()) == [(1,), (1,), (2,), (2,)]
    overwrite(rows.filter(f"{quoted} = 2"), path)
    assert load(spark, path).collect() == [(2,)]


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("t.id = s.id AND s.name > 'x'", ["id"]),
        ("ID = 3 OR Name IS NULL", ["id", "name"]),
        ("s.p.id + t.p.id", ["id", "p"]),
        ("p.id", ["id", "p"]),
        ("s.`id` + T.`Name`", ["name"]),
        ("s . name", []),
        ("s.\nname", ["name"]),
        ("s./**/name", NAMES),
        ("s.id * 2 - count(1)*t.id", ["id"]),
        ("*(t.id, s.name)", ["id"]),
        ("count(*)", NAMES),
        ("struct(t.*)", NAMES),
        ("struct(* EXCEPT (id))", NAMES),
        ("EXISTS (SELECT * FROM other)", NAMES),
        ("f(DISTINCT *)", NAMES),
        ("IDENTIFIER('t.i' || 'd')", NAMES),
        ("1 -- s.\n + id", NAMES),
        ("'`' || id || s.`name`", ["id", "name"]),
        ("`a b`", ["a b"]),
        ("a b", ["a b"]),
        ("t.`a.b`", ["a.b"]),
        ("t.`x``y`", ["x`y"]),
        ("name_2 + identity", []),
        ("", []),
    ],
)
def test_names_that_expressions_mention(sql: str, found: list[str]) -> None:
    assert mentioned_names(sql, NAMES, "t") == found


def test_names_that_expressions_mention_by_any_qualifier() -> None:
    assert mentioned_names("s.id = t.name", ["id", "name", "p"]) == ["id", "name"]
    assert mentioned_names("my t.id", ["id", "name"], "my t") == ["id"]
    assert mentioned_names("s.id = name.p", ["id", "name", "p"], "t") == ["name", "p"]
