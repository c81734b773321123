"""Names of columns that pylance cannot read are refused in Spark, unless they are asked for or there already."""

import lance
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.spark.conftest import append, load, overwrite

UNPORTABLE = ["a.b", "a`b"]


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
