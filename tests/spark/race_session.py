"""A session of a race: `python -m tests.spark.race_session spark|library PATH SEED SESSION FIRST COUNT`.

It runs the statements of some steps, each of Spark by SQL or by `LanceTable`, and prints what it was told as JSON.
`<path>.seen` has the version up to which all are known to the judge, and `<path>.began.<session>` the latest version
when a session began its statement: nothing needs earlier ones, so that a vacuum may remove them.
"""

from __future__ import annotations

import dataclasses
import json
import os
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

import lance_format
from tests.spark.race_model import COLUMNS, Copy, Delete, Insert, Merge, Replace, Row, Told, Update, statement

SCHEMA = pa.schema([pa.field("k", pa.int64(), nullable=False), ("n", pa.int64()), ("w", pa.string())])
_ATTEMPTS = 200
_MERGED = ", ".join(f"{name} = s.{name}" for name in COLUMNS)


def table_of(rows: list[Row]) -> pa.Table:
    return pa.table([pa.array(column) for column in zip(*rows, strict=True)], schema=SCHEMA)


def publish(file: Path, version: int) -> None:
    """Replace the number in a file at once."""
    part = file.with_name(f"{file.name}.part")
    part.write_text(str(version))
    part.replace(file)


def safe_version(path: str) -> int:
    """Return the version before which none is needed."""
    files = [Path(f"{path}.seen"), *Path(path).parent.glob(f"{Path(path).name}.began.*[0-9]")]
    return min(int(file.read_text()) for file in files)


def _values(rows: tuple[Row, ...]) -> str:
    return "VALUES " + ", ".join(f"({k}L, {n}L, '{w}')" for k, n, w in rows)


def _source(rows: tuple[Row, ...]) -> str:
    return f"(SELECT * FROM {_values(rows)} AS given({', '.join(COLUMNS)}))"


def _statement_in_sql(change: Any, table: str) -> str:
    match change:
        case Insert(rows):
            return f"INSERT INTO {table} {_values(rows)}"
        case Copy(keys, shift, token):
            return f"INSERT INTO {table} SELECT k + {shift}L, n, '{token}' FROM {table} WHERE {keys.sql()}"
        case Replace(keys, rows):
            return f"INSERT INTO {table} REPLACE WHERE {keys.sql()} {_values(rows)}"
        case Update(keys, token):
            return f"UPDATE {table} SET n = n + 1, w = '{token}' WHERE {keys.sql()}"
        case Delete(keys, by_tasks):
            by_query = f"k IN (SELECT id FROM range(0, 1000) WHERE {keys.sql().replace('k ', 'id ', 1)})"
            return f"DELETE FROM {table} WHERE {by_query if by_tasks else keys.sql()}"
        case Merge(source, deletes, surplus):
            clauses = ["WHEN MATCHED AND s.n >= 80 THEN DELETE"] if deletes else []
            clauses += [f"WHEN MATCHED THEN UPDATE SET {_MERGED}", "WHEN NOT MATCHED THEN INSERT *"]
            if surplus is not None:
                clauses.append(f"WHEN NOT MATCHED BY SOURCE AND {surplus.sql('t.')} THEN DELETE")
            return f"MERGE INTO {table} t USING {_source(source)} s ON t.k = s.k {' '.join(clauses)}"
    raise AssertionError(change)


class SparkSession:
    """Runs statements in a session of Spark."""

    def __init__(self, path: str, spark: Any) -> None:
        from pyspark_lance import LanceTable

        self._path, self._spark = path, spark
        self._table = LanceTable.forPath(spark, path)

    def change(self, change: Any, rng: random.Random) -> None:
        if isinstance(change, Update | Delete | Merge) and rng.random() < 0.5:
            self._by_table(change)
        else:
            self._spark.sql(_statement_in_sql(change, f"lance.`{self._path}`")).collect()

    def _by_table(self, change: Any) -> None:
        match change:
            case Update(keys, token):
                self._table.update(keys.sql(), set={"n": "n + 1", "w": f"'{token}'"})
            case Delete(keys):
                self._table.delete(keys.sql())
            case Merge(source, deletes, surplus):
                merge = self._table.alias("t").merge(self._spark.sql(_source(source)[1:-1]).alias("s"), "t.k = s.k")
                if deletes:
                    merge = merge.whenMatchedDelete("s.n >= 80")
                merge = merge.whenMatchedUpdateAll().whenNotMatchedInsertAll()
                if surplus is not None:
                    merge = merge.whenNotMatchedBySourceDelete(surplus.sql("t."))
                merge.execute()

    def upkeep(self, kind: str, name: str) -> None:
        calls = {
            "optimize": "optimize({table})",
            "sort": "optimize({table}, order_by => array('k DESC'))",
            "create_index": "create_index({table}, column => 'k', name => 'of_k')",
            "refresh_index": "refresh_index({table})",
            "vacuum": "vacuum({table}, before_version => {safe}, error_if_tagged_old_versions => false)",
            "tag": "create_tag({table}, name => '{name}')",
        }
        call = calls[kind].format(table=f"table => '`{self._path}`'", safe=safe_version(self._path), name=name)
        self._spark.sql(f"CALL lance.system.{call}").collect()


class Library:
    """Runs statements in one process, without Spark."""

    def __init__(self, path: str) -> None:
        self._path = path

    def change(self, change: Any, rng: random.Random) -> None:  # noqa: ARG002
        dataset = lance_format.dataset(self._path)
        match change:
            case Insert(rows):
                lance_format.write_dataset(table_of(list(rows)), self._path, mode="append")
            case Copy():
                rows = tuple(zip(*(column.to_pylist() for column in dataset.to_table().columns), strict=True))
                copies = change.effect(rows).inserted
                if copies:
                    lance_format.write_dataset(table_of(list(copies)), self._path, mode="append")
            case Update(keys, token):
                dataset.update({"n": "n + 1", "w": f"'{token}'"}, keys.sql(), conflict_retries=_ATTEMPTS)
            case Delete(keys):
                dataset.delete(keys.sql(), conflict_retries=_ATTEMPTS)
            case Merge(source, _, surplus):
                merge = dataset.merge_insert("k").when_matched_update_all().when_not_matched_insert_all()
                if surplus is not None:
                    merge = merge.when_not_matched_by_source_delete(surplus.sql())
                merge.conflict_retries(_ATTEMPTS).execute(table_of(list(source)))

    def upkeep(self, kind: str, name: str) -> None:
        dataset = lance_format.dataset(self._path)
        match kind:
            case "optimize" | "sort":
                dataset.optimize.compact_files()
            case "create_index":
                dataset.create_scalar_index("k", "ZONEMAP", "of_k", replace=True)
            case "refresh_index":
                dataset.optimize.optimize_indices()
            case "vacuum":
                safe = safe_version(self._path)
                old = [each["version"] for each in dataset.version_refs() if each["version"] < safe]
                dataset.cleanup_old_versions(versions=old, error_if_tagged_old_versions=False)
            case "tag":
                dataset.tags.create(name)


def _is_of_library(change: Any) -> bool:
    return not isinstance(change, Replace) and not (isinstance(change, Merge) and change.deletes)


def run(runner: SparkSession | Library, path: str, seed: int, session: int, steps: range) -> list[Told]:
    """Run the statements of some steps, and return what was told of each."""
    told = []
    for step in steps:
        change = statement(seed, session, step)
        if isinstance(runner, Library) and not _is_of_library(change):
            continue
        before = lance_format.dataset(path).version
        publish(Path(f"{path}.began.{session}"), before)
        rng = random.Random(f"{seed} {session} {step} how")
        call: Callable[[], None] = (
            (lambda change=change, step=step: runner.upkeep(change, f"of_{session}_{step}"))
            if isinstance(change, str)
            else (lambda change=change, rng=rng: runner.change(change, rng))
        )
        error = None
        try:
            call()
        except Exception as raised:  # The judge says which may be.
            error = f"{type(raised).__name__}: {raised}"
        told.append(Told(session, step, before, lance_format.dataset(path).version, error))
    publish(Path(f"{path}.began.{session}"), 1 << 62)
    return told


def start_spark() -> Any:
    """Return a session of one core."""
    from pyspark.sql import SparkSession as Session

    import pyspark_lance

    builder = Session.builder.master("local[1]").config("spark.ui.enabled", "false").config("spark.log.level", "OFF")
    builder = builder.config("spark.ui.showConsoleProgress", "false").config("spark.sql.shuffle.partitions", "2")
    builder = builder.config("spark.driver.memory", "600m").config("spark.lance.commit.attempts", str(_ATTEMPTS))
    spark = builder.getOrCreate()
    pyspark_lance.register(spark)
    return spark


def main(kind: str, path: str, seed: int, session: int, first: int, count: int) -> None:
    runner = Library(path) if kind == "library" else SparkSession(path, start_spark())
    print("ready", flush=True)
    sys.stdin.readline()
    told = run(runner, path, seed, session, range(first, first + count))
    print(json.dumps([dataclasses.asdict(each) for each in told]), flush=True)
    os._exit(0)  # Without Spark's farewell.


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:]))
