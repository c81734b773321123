"""Programs for sessions of Spark Connect: each puts its findings into `found`, and has its own `directory`."""

DATA_SOURCE = """
import logging
import lance_format

table = f"{directory}/birds.lance"
rows = [(1, "owl", [0.5, 1.0]), (2, "emu", None), (3, None, [])]
birds = spark.createDataFrame(rows, "id long, name string, at array<float>")

def load(**options):
    return spark.read.format("lance").options(**options).load(table)

def ids(df):
    return sorted(row.id for row in df.collect())

found = {"class": type(spark).__module__}
birds.write.format("lance").mode("overwrite").save(table)
birds.selectExpr("id + 10 AS id", "name").write.format("lance").mode("append").save(table)
found["rows"] = sorted([row.id, row.name, row.at] for row in load().where("id < 10").collect())
found["schema"] = load().schema.simpleString()
found["filtered"] = ids(load().where("name LIKE 'e%' OR id = 13"))
found["counted"] = load().count()
found["option"] = ids(load(filter="id > 10 AND name = 'owl'", columns="id"))
found["old"] = ids(load(version=1))
found["metadata"] = load(metadata_columns="_fragid").where("id IN (1, 11)").select("_fragid").distinct().count()
for mode in ("error", "ignore"):
    found[mode] = error_of(lambda: birds.write.format("lance").mode(mode).save(f"{directory}/other.lance"))
found["named"] = error_of(lambda: birds.write.format("lance").mode("append").saveAsTable("birds_table"))
found["option error"] = error_of(lambda: load(versoin=1).collect())
found["missing"] = error_of(lambda: spark.read.format("lance").load(f"{directory}/nothing.lance").collect())
found["misfit"] = error_of(lambda: birds.selectExpr("name AS id").write.format("lance").mode("append").save(table))
found["filter error"] = error_of(lambda: load(filter="nope = 1").collect())

spark.sql(f"CREATE TEMPORARY VIEW birds USING lance OPTIONS (path '{table}')")
spark.sql("INSERT INTO birds VALUES (20, 'auk', NULL)").collect()
found["inserted"] = ids(load())
lance_format.dataset(table).delete("id > 2 AND id < 13")
found["deleted"] = ids(load())
spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW birds USING lance OPTIONS (path '{table}')")
found["joined"] = spark.sql(
    "SELECT count(*) AS n FROM birds a JOIN birds b ON a.id = b.id WHERE a.name IS NOT NULL"
).first().n

import pyspark_lance
lines = []
class Lines(logging.Handler):
    def emit(self, record):
        lines.append(record.getMessage())
logging.getLogger("connector").addHandler(Lines())
pyspark_lance.register(spark)
found["registered"] = lines
found["read after"] = ids(load().where("id > 2"))
birds.write.format("lance").mode("overwrite").save(table)
found["written after"] = ids(load())
"""

LANCE_TABLE = """
from pyspark.sql import functions as f
import pyspark_lance
from pyspark_lance import LanceTable
import lance_format

path = f"{directory}/birds.lance"
found = {"path": path, "class": type(spark).__module__}

def rows():
    return sorted([row.id, row.name, row.weight] for row in LanceTable.forPath(spark, path).toDF().collect())

def result(made):
    return [made.version, made.num_updated_rows, made.num_inserted_rows, made.num_deleted_rows]

builder = LanceTable.create(spark).location(path).addColumn("id", "BIGINT", nullable=False).addColumn("name", "STRING")
birds = builder.addColumn("weight", "DOUBLE").property("enable_stable_row_ids", "true").execute()
spark.range(10).selectExpr("id", "concat('bird ', id) AS name", "id * 1.5D AS weight").write.format("lance").mode(
    "append"
).save(path)
found["deleted"] = result(birds.delete("id > 5"))
found["deleted by column"] = result(birds.delete(f.col("id") == 0))
found["updated"] = result(birds.update("id = 1", {"weight": f.lit(7), "name": "upper(name)"}))
source = spark.createDataFrame([(1, "s", 1.0), (2, "s", None), (9, "new", 2.0)], "id long, name string, weight double")
merge = birds.alias("t").merge(source.alias("s"), "t.id = s.id").whenMatchedDelete("s.weight IS NULL")
merge = merge.whenMatchedUpdate(set={"weight": f.col("t.weight") + f.col("s.weight")})
merge = merge.whenNotMatchedInsertAll("id > 8").whenNotMatchedBySourceUpdate("id = 5", {"name": "'other'"})
found["merged"] = result(merge.execute())
found["rows"] = rows()
twice = birds.alias("t").merge(source.union(source).alias("s"), "t.id = s.id").whenMatchedUpdateAll()
found["twice"] = error_of(twice.execute)
found["wrong type"] = error_of(lambda: birds.update(set={"id": "name"}))
found["null"] = error_of(lambda: birds.update(set={"id": "NULL"}))
found["unknown"] = error_of(lambda: birds.delete("nope = 1"))
found["name"] = error_of(lambda: LanceTable.forName(spark, "lance.zoo.birds"))
found["by name"] = LanceTable.forName(spark, f"lance.`{path}`").toDF().count()

class Other:  # another writer, who changes the same row between the plan and the commit
    done = False
def interfere(snapshot, plan=merge._plan):
    delta = plan(snapshot)
    if not Other.done:
        Other.done = True
        lance_format.dataset(path).update({"name": "'theirs'"}, "id = 9")
    return delta
object.__setattr__(merge, "_plan", interfere)
found["again"] = result(merge.execute())
found["changes"] = sorted(
    [row._commit_version, row._change_type, row.id, row.name] for row in birds.readChanges(4, 5).collect()
)
found["history"] = [[row.version, row.operation] for row in birds.history(2).collect()]
found["detail"] = birds.detail().first().numRows
found["restored"] = birds.restoreToVersion(2).version
found["restored rows"] = len(rows())

from connector.table_api.assigned_rows import TableColumns
TableColumns.mentioned = lambda *_: set()  # as if no text named a column
found["unnamed"] = result(birds.update("id = 3 AND weight > 1", {"name": "concat(name, '!')"}))
found["unnamed rows"] = rows()[3]
"""

JOBS = """
import pathlib
import lance_format
from connector.jobs.running import run

path = f"{directory}/table.lance"
lance_format.write_dataset({"id": range(4000)}, path, max_rows_per_file=500)
spark.conf.set("spark.lance.job.minBytes", "0")
table = lance_format.dataset(path)
plan = table.plan_update({"id": "id + 10000"}, "id % 2 = 0", split_size_bytes=300_000)
found = {"class": type(spark).__module__, "tasks": len(plan.tasks) > 1}
found["updated"] = run(spark, table, plan, description="update").num_rows_updated
found["rows"] = table.count_rows("id >= 10000")
before = len(list(pathlib.Path(path, "data").iterdir()))
plan = table.plan_update({"id": "id + 10000"}, "id % 2 = 0", split_size_bytes=300_000)
lance_format.dataset(path).delete("id = 10002")
found["conflict"] = error_of(lambda: run(spark, table, plan, description="update"))
bad = table.plan_update({"id": "id / (id - 3)"}, split_size_bytes=300_000)
pathlib.Path(path, "data", table.get_fragments()[0].data_files()[0].path).unlink()
found["bad"] = error_of(lambda: run(spark, table, bad, description="divide"))
found["left"] = len(list(pathlib.Path(path, "data").iterdir())) - before
"""
