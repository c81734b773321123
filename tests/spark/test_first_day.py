"""The first steps of a user, in programs with own sessions."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark.programs import run

pytestmark = pytest.mark.system

_IMPORT_ALONE = """
import pyspark_lance

import subprocess

path = sys.argv[1]
found = {}


def forked():
    jvm = spark._jvm.java.lang.ProcessHandle.current().pid()
    processes = subprocess.run(["ps", "-eo", "ppid,args"], capture_output=True, text=True).stdout
    own = [line.split()[1:] for line in processes.splitlines() if line.split()[0] == str(jvm)]
    return sorted({words[-1] for words in own if "-m" in words})


for name in ("first", "second"):
    spark = session()
    table = f"{path}/{name}.lance"
    spark.range(10).write.format("lance").save(table)
    df = spark.read.format("lance").load(table).where("id > 7")
    found[name] = {
        "ids": sorted(row.id for row in df.collect()),
        "plan": df._jdf.queryExecution().executedPlan().toString(),
        "again": error_of(lambda: spark.range(10).write.format("lance").save(table)),
    }
    spark.range(3).write.format("lance").option("path", f"{path}/{name}-named.lance").saveAsTable(name)
    found[name]["named"] = spark.table(name).count()
    found[name]["daemon"] = spark.sparkContext.getConf().get("spark.python.daemon.module")
    found[name]["forked"] = forked()
    spark.stop()
print(json.dumps(found))
"""


def test_an_import_before_the_session_is_all_it_takes(tmp_path: Path) -> None:
    found = run(_IMPORT_ALONE, tmp_path, str(tmp_path))
    assert set(found) == {"first", "second"}
    for answers in found.values():
        assert answers["ids"] == [8, 9]
        assert "id > 7" in answers["plan"]
        assert "PATH_ALREADY_EXISTS" in answers["again"]
        assert answers["named"] == 3
        assert answers["daemon"] == "connector.daemon"
        assert answers["forked"] == ["pyspark.worker"]


_WRONG_PYTHON = """
spark = session()
read = error_of(lambda: spark.read.format("lance").load(sys.argv[1]))
import pyspark_lance
registered = error_of(lambda: pyspark_lance.register(spark))
print(json.dumps({"read": read, "registered": registered}))
"""


def test_a_python_of_the_workers_that_lacks_what_is_needed(tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(bare)], check=True)
    python = str(bare / "bin" / "python")
    found = run(_WRONG_PYTHON, tmp_path, str(tmp_path), PYSPARK_PYTHON=python)
    assert f"{python}, cannot load pyspark-lance: No module named 'pyarrow'" in found["read"]
    assert "PYSPARK_PYTHON" in found["read"]
    assert found["registered"] == (
        f"InvalidInputError: Spark's workers run {python!r}, which does not find the package 'numba'; set the"
        " environment variable PYSPARK_PYTHON, and PYSPARK_DRIVER_PYTHON if you use it, to"
        f" {sys.executable} before the session starts"
    )


def test_a_module_where_spark_starts_that_is_named_like_a_package(tmp_path: Path) -> None:
    module = tmp_path / "connector.py"
    module.write_text("raise SystemExit('this is a program')")
    found = run(_WRONG_PYTHON, tmp_path, str(tmp_path))
    assert f"{module} hides the package 'connector' of pyspark-lance" in found["read"]
    assert f"take {module} for the package 'connector'" in found["registered"]
    assert "rename that file" in found["registered"]


def test_a_module_where_spark_starts_that_is_named_like_one_of_python(tmp_path: Path) -> None:
    module = tmp_path / "types.py"
    module.write_text("raise RuntimeError('this is a program')")
    found = run(_WRONG_PYTHON, tmp_path, str(tmp_path))
    assert found["registered"] == (
        f"InvalidInputError: Spark's workers, which start in {tmp_path}, take {module} for the module 'types' of"
        " Python; rename that file, or start Spark from another directory"
    )


def test_a_module_where_spark_starts_that_is_named_like_a_dependency(tmp_path: Path) -> None:
    module = tmp_path / "numpy.py"
    module.write_text("raise RuntimeError('this is a program')")
    found = run(_WRONG_PYTHON, tmp_path, str(tmp_path))
    assert found["registered"] == (
        f"InvalidInputError: Spark's workers, which start in {tmp_path}, take {module} for the package 'numpy';"
        " rename it, or start Spark from another directory"
    )


def test_a_module_beside_the_program_that_is_named_like_a_package(tmp_path: Path) -> None:
    module = tmp_path / "programs" / "connector.py"
    module.parent.mkdir()
    module.write_text("raise SystemExit('this is a program')")
    found = run("import pyspark_lance; print(json.dumps(error_of(lambda: pyspark_lance.register(None))))", tmp_path)
    assert f"{module} hides the package 'connector' of pyspark-lance" in found
    assert found.startswith("HiddenError")


_UNPREPARED = """
import lance_format

spark = session()
path = sys.argv[1]
df = spark.range(5)
df.write.mode("append").parquet(f"{path}/parquet")
lance_format.write_dataset({"id": [1]}, f"{path}/tables/one.lance")

def stream():
    query = spark.readStream.format("lance").load(f"{path}/tables/one.lance").writeStream.format("noop").start()
    try:
        query.processAllAvailable()
    finally:
        query.stop()

def attempts():
    return {
        "save": error_of(lambda: df.write.format("lance").save(f"{path}/saved.lance")),
        "create": error_of(lambda: spark.sql(f"CREATE TABLE one USING lance LOCATION '{path}/tables/one.lance'")),
        "ctas": error_of(lambda: spark.sql("CREATE TABLE two USING lance AS SELECT 1 AS id")),
        "named": error_of(lambda: df.write.format("lance").saveAsTable("three")),
        "parquet": error_of(lambda: spark.read.format("lance").load(f"{path}/parquet")),
        "above": error_of(lambda: spark.read.format("lance").load(f"{path}/tables")),
        "stream": error_of(stream),
    }

before = attempts()
import pyspark_lance
print(json.dumps({"before": before, "after": attempts()}))
"""


def test_errors_name_the_cure(tmp_path: Path) -> None:
    found = run(_UNPREPARED, tmp_path, str(tmp_path))
    before, after = found["before"], found["after"]
    assert "UNSUPPORTED_DATA_SOURCE_SAVE_MODE" in before["save"]  # Spark's own; the documentation has it
    for name in ("create", "ctas", "named"):
        assert "a table of a catalog" in before[name]
        assert "import pyspark_lance" in before[name]
    for found in (before, after):
        assert f"there is no Lance table at {tmp_path}/parquet, which holds Parquet files" in found["parquet"]
        assert f"but there is one at {tmp_path}/tables/one.lance; give the path" in found["above"]
    assert [before["stream"], after["stream"]] == [None, None]
    assert [name for name in ("save", "create", "ctas", "named") if after[name] is not None] == []
