"""Answers to the planner that are given again: as long as a path leads to the same version of the same table."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

import lance_format
from connector.lru_cache import LruCache
from connector.options.snapshot import commit_of, known_commit
from connector.planner.answers import Answers
from connector.source.data_source import LanceDataSource
from tests.proxies import Proxy
from tests.servers import ObjectServer, s3_options
from tests.spark.conftest import load


class Counted(Answers):
    """Counts the answers that are not known."""

    def __init__(self) -> None:
        self.made: list[str] = []
        super().__init__(self._source_of)

    def _source_of(self, options: dict[str, str]) -> Any:
        source = LanceDataSource(options)
        for name in ("describe", "reader"):
            self._count(source, name)
        return source

    def _count(self, source: Any, name: str) -> None:
        asked = getattr(source, name)

        def counted(schema: Any) -> Any:
            self.made.append(name)
            return asked(schema)

        setattr(source, name, counted)

    def ask(self, what: str, options: dict[str, str], schema: str | None = None) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.apply(json.dumps({"ask": what, "options": options, "schema": schema})))
        return found


def write(path: str, rows: range, mode: str = "overwrite") -> None:
    lance_format.write_dataset(pa.table({"id": pa.array(rows, pa.int64())}), path, mode=mode)


@pytest.fixture
def answers(path: str) -> Counted:
    write(path, range(10))
    return Counted()


def snapshot(path: str, version: int) -> dict[str, str]:
    return {"path": path, "__lance.snapshot": json.dumps([path, version])}


SCHEMA = '{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":{}}]}'


def test_what_is_asked_again_is_known(answers: Counted, path: str) -> None:
    predicate = {**snapshot(path, 1), "__lance.predicate": '[">", ["COLUMN", "id"], ["LITERAL", "bigint", "4"]]'}
    plans = [answers.ask("plan", predicate, SCHEMA) for _ in range(3)]
    shares = [answers.ask("share", predicate, SCHEMA) for _ in range(3)]
    assert answers.made == ["reader", "reader"]
    assert plans[0] == plans[1] == plans[2]
    assert plans[0]["rows"] == 10
    assert shares == [{"sampled": 10, "passed": 5}] * 3
    answers.ask("plan", snapshot(path, 1), SCHEMA)
    assert answers.made == ["reader"] * 3
    described = [answers.ask("describe", {"path": path}) for _ in range(3)]
    assert answers.made == [*["reader"] * 3, "describe"]
    assert described[0] == described[2]
    assert "commit" not in {**described[0], **plans[0], **shares[0]}


def test_another_version_is_asked_for_anew(answers: Counted, path: str) -> None:
    for _ in range(2):
        assert answers.ask("plan", {"path": path}, SCHEMA)["rows"] == 10
        assert answers.ask("describe", {"path": path})["rows"] == 10
    write(path, range(5), "append")
    for _ in range(2):
        assert answers.ask("plan", {"path": path}, SCHEMA)["rows"] == 15
        assert answers.ask("describe", {"path": path})["version"] == 2
    assert answers.made == ["reader", "describe"] * 2
    assert answers.ask("plan", snapshot(path, 2), SCHEMA)["rows"] == 15
    assert answers.ask("plan", snapshot(path, 1), SCHEMA)["rows"] == 10


def test_another_table_at_the_path_is_asked_for_anew(answers: Counted, path: str) -> None:
    assert answers.ask("plan", snapshot(path, 1), SCHEMA)["rows"] == 10
    shutil.rmtree(path)
    write(path, range(3))
    assert answers.ask("plan", snapshot(path, 1), SCHEMA)["rows"] == 3
    shutil.rmtree(path)
    assert "DatasetNotFoundError" in answers.ask("plan", snapshot(path, 1), SCHEMA)["error"]


def test_errors_are_not_kept(answers: Counted, path: str) -> None:
    filtered = {**snapshot(path, 1), "filter": "nothing > 3"}
    for _ in range(2):
        assert "there is no column 'nothing'" in answers.ask("plan", filtered, SCHEMA)["error"]
    assert answers.made == ["reader", "reader"]


def test_what_is_no_table_is_not_kept(answers: Counted, path: str) -> None:
    history = {"path": path, "metadata_table": "history"}
    schema = answers.ask("describe", history)["schema"]
    before = answers.ask("plan", history, schema)
    assert "partitions" in before
    answers.ask("plan", history, schema)
    assert answers.made == ["describe", "reader", "reader"]


def test_a_version_without_a_known_transaction_is_asked_for_anew(answers: Counted, path: str) -> None:
    for file in (Path(path) / "_transactions").iterdir():
        file.unlink()
    version = lance_format.dataset(path)
    for _ in range(2):
        answers.ask("plan", snapshot(path, version.version), SCHEMA)
    assert answers.made == (["reader"] if commit_of(version) else ["reader", "reader"])
    assert known_commit("0" * 16 + "1" * 16) is None
    assert known_commit("") is None
    assert known_commit("0" * 15 + "1") == "0" * 15 + "1"


def test_requests_to_an_object_store(s3_server: ObjectServer) -> None:
    """A plan takes no more requests than it did, and one that is known takes one."""
    proxy = Proxy(s3_server.endpoint)
    with proxy.running():
        uri, storage = s3_server.new_root(), s3_options(proxy.endpoint)
        rows = pa.table({"id": pa.array(range(50_000), pa.int64())})
        lance_format.write_dataset(rows, uri, max_rows_per_file=20_000, storage_options=storage)
        options = {**snapshot(uri, 1), "path": uri, **{f"storage.{name}": value for name, value in storage.items()}}
        options["__lance.predicate"] = '[">", ["COLUMN", "id"], ["LITERAL", "bigint", "30000"]]'
        first = Counted().ask("plan", options, SCHEMA)  # What it reads of files is known after it.
        proxy.requests.clear()
        LanceDataSource(options).reader(StructType.fromJson(json.loads(SCHEMA))).partitions()
        alone = proxy.counts()
        answers = Counted()
        assert answers.ask("plan", options, SCHEMA) == first
        assert proxy.counts() == alone
        assert answers.ask("plan", options, SCHEMA) == first
        assert proxy.counts() == {"GET": 1}
        latest = {name: value for name, value in options.items() if not name.startswith("__")}
        answers.ask("describe", latest)
        for rows_added in (0, 0, 10, 0):
            if rows_added:
                lance_format.write_dataset(rows[:rows_added], uri, mode="append", storage_options=storage)
            proxy.requests.clear()
            assert answers.ask("describe", latest)["rows"] == 50_000 + (rows_added or 10 * (len(answers.made) > 2))
            assert proxy.counts() == {"LIST": 1}


def test_queries_see_changes_of_all_kinds(planner: SparkSession, path: str) -> None:
    write(path, range(20000))
    df = load(planner, path)
    named = planner.read.format("lance").option("version", 1).load(path)
    df.createOrReplaceTempView("known")
    query = "SELECT count(*) FROM known WHERE id % 2 = 0"
    for _ in range(2):
        assert planner.sql(query).head() == (10000,)
        assert named.where("id % 2 = 0").count() == 10000
    planner.sql(f"DELETE FROM lance.`{path}` WHERE id < 10000")
    assert planner.sql(query).head() == (5000,)
    write(path, range(100), "append")
    assert planner.sql(query).head() == (5050,)
    assert named.where("id % 2 = 0").count() == 10000
    shutil.rmtree(path)
    write(path, range(60000))
    assert planner.sql(query).head() == (30000,)
    assert planner.read.format("lance").option("version", 1).load(path).where("id % 2 = 0").count() == 30000


def test_what_was_used_last_is_kept() -> None:
    cache: LruCache[str, int | None] = LruCache(3 * 5096)
    for number, name in enumerate("abc"):
        cache.put(name, number, 1000)
    assert cache.get("a") == (0,)
    cache.put("d", None, 1000)
    assert [cache.get(name) for name in "abcd"] == [(0,), None, (2,), (None,)]
    cache.put("a", 7, 1000)
    cache.put("e", 9, 100_000)
    assert [cache.get(name) for name in "acde"] == [(7,), (2,), (None,), None]
    cache.put("a", 7, 100_000)
    assert [cache.get(name) for name in "acd"] == [None, (2,), (None,)]
