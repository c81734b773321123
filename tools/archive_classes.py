"""Archive the classes of Spark that queries load, so that later JVMs start in less than half of the CPU time.

    python tools/archive_classes.py FILE

A JVM uses the archive by `-XX:SharedArchiveFile=FILE`, if it is the same Java with the same jars of Spark. This also
compiles the planner for this Spark, so that later drivers load it.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

import pyspark_lance


def archive(file: str) -> None:
    """Write an archive of the classes that a session loads which writes, reads and changes a table."""
    builder = (
        SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").config("spark.log.level", "OFF")
    )
    spark = builder.config("spark.driver.extraJavaOptions", f"-XX:ArchiveClassesAtExit={file}").getOrCreate()
    pyspark_lance.register(spark)
    with tempfile.TemporaryDirectory() as directory:
        for form in ("parquet", "lance"):
            for mode in ("overwrite", "append"):
                rows = spark.range(9).selectExpr("id", "string(id) AS name")
                rows.write.format(form).mode(mode).save(f"{directory}/{form}")
        rows = spark.read.format("lance").load(f"{directory}/lance").union(spark.read.parquet(f"{directory}/parquet"))
        rows.createOrReplaceTempView("numbers")
        rows.where("id > 3").groupBy("name").count().orderBy("name").collect()
        rows.join(rows.limit(5), "id", "left").selectExpr("explode(sequence(0, id))", "struct(id, array(id))").collect()
        spark.sql("SELECT count(DISTINCT id), avg(id) FROM numbers WHERE name IN (SELECT name FROM numbers)").collect()
        spark.createDataFrame([(1, "x", None)], "a int, b string, c date").toArrow()
    with contextlib.suppress(Py4JError, OSError):  # The JVM ends before it answers.
        spark.sparkContext._jvm.java.lang.System.exit(0)


if __name__ == "__main__":
    archive(sys.argv[1])
