"""Text searches in Spark: `LanceTable.textSearch`, and the table function `text_search`."""

from __future__ import annotations

import json
from typing import Any

import lance
import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import lance_format
from lance_format.query import (
    BooleanQuery,
    BoostQuery,
    FullTextOperator,
    MatchQuery,
    MultiMatchQuery,
    Occur,
    PhraseQuery,
)
from pyspark_lance import LanceTable
from tests.spark.conftest import Catalog

TEXTS = ["an owl", "two owls and an owl", "an emu", None, "the owl sees the emu", "nothing", "emu emu emu", "owl"]


def _notes() -> pa.Table:
    return pa.table({"id": pa.array(range(len(TEXTS))), "note": TEXTS, "other": [None, *TEXTS[1:]]})


def _write(path: str) -> str:
    rows = _notes()
    lance_format.write_dataset(rows, path, max_rows_per_file=3)
    lance.dataset(path).create_scalar_index("note", "INVERTED", with_position=True)
    lance_format.write_dataset(rows.slice(0, 2), path, mode="append")
    return path


def _expected(path: str, query: Any, filter: str | None = None, limit: int = 10) -> list[tuple[Any, ...]]:
    found = lance.dataset(path).to_table(["id", "_score"], filter, full_text_query=query, limit=limit, prefilter=True)
    return sorted((pytest.approx(-row["_score"], rel=1e-5).expected, row["id"]) for row in found.to_pylist())


def _rows(found: Any) -> list[tuple[Any, ...]]:
    rows = [(-row._score, row.id) for row in found.collect()]
    assert [score for score, _ in rows] == sorted(score for score, _ in rows)
    return [(pytest.approx(score, rel=1e-5), number) for score, number in sorted(rows)]


def test_matching_rows(spark: SparkSession, path: str, way: str) -> None:
    table = LanceTable.forPath(spark, _write(path))
    found = table.textSearch("owl")
    assert found.schema.names == ["id", "note", "other", "_score"]
    assert _expected(path, "owl") == _rows(found)
    assert found.count() == 6
    assert found.select("note").count() == 6
    assert _expected(path, "owl emu", "id > 1", 3) == _rows(table.textSearch("owl emu", numResults=3, filter="id > 1"))
    assert _expected(path, '"the owl"') == _rows(table.textSearch('"the owl"'))
    named = {"query": "emu", "columns": ["other"]}
    assert _expected(path, named) == _rows(table.textSearch("emu", ["other"]))


def test_function_of_sql(planner: SparkSession, path: str) -> None:
    name = f"lance.`{_write(path)}`"
    found = planner.sql(f"SELECT id, _score FROM text_search('{name}', 'owl emu', 3, filter => 'id > 1')")
    assert _expected(path, "owl emu", "id > 1", 3) == _rows(found)
    named = f"query => :text, `table` => '{name}', columns => array('other')"
    found = planner.sql(f"SELECT id, _score FROM text_search({named})", args={"text": "emu"})
    assert _expected(path, {"query": "emu", "columns": ["other"]}) == _rows(found)
    (plan,) = planner.sql(f"EXPLAIN SELECT id FROM text_search('{name}', 'owl')").first()
    assert "text search: " in plan
    for arguments, message in {
        f"'{name}'": "text_search: the argument query is missing",
        f"'{name}', 5": "text_search: query is 5; text is needed",
        f"'{name}', 'owl', 0": "text_search: num_results is 0",
        f"'{name}', 'owl', 2.7": "text_search: num_results is 2.7; a whole number",
        f"'{name}', 'owl', num_results => 2.5F": "text_search: num_results is 2.5; a whole number",
        f"'{name}', 'owl', columns => 'note'": "text_search: columns is note; an array is needed",
        f"'{name}', 'owl', metric => 'l2'": "text_search: there is no argument metric",
        f"'{name}', 'owl', columns => array('nope')": "no column 'nope'",
    }.items():
        with pytest.raises(Exception, match=message):
            planner.sql(f"SELECT * FROM text_search({arguments})")


def test_tables_of_catalogs(catalog: Catalog) -> None:
    catalog.sql("CREATE TABLE @.t (id BIGINT, note STRING)")
    catalog.sql("INSERT INTO @.t VALUES (1, 'an owl'), (2, 'an emu'), (3, 'an owl and an emu')")
    search = "SELECT id FROM text_search('@.t', 'emu', columns => array('note'))"
    assert sorted(catalog.sql(search)) == [(2,), (3,)]
    catalog.sql("DELETE FROM @.t WHERE id = 2")
    assert catalog.sql(search) == [(3,)]


def test_metadata_tables_are_not_searched(catalog: Catalog) -> None:
    catalog.sql("CREATE TABLE @.t (id BIGINT, note STRING)")
    for table in ("indices", "files"):
        message = f"a search finds rows of a table, not of the metadata table '{table}'"
        catalog.refuses(f"SELECT * FROM text_search('@.t.{table}', 'owl', columns => array('name'))", message)
    for options in ({"metadata_table": "history"}, {"readChangeFeed": "true", "startingVersion": "1"}):
        found = LanceTable.forPath(catalog.spark, catalog.path("t"), options)
        with pytest.raises(Exception, match="a search finds rows of a table"):
            found.textSearch("owl", ["note"])


def test_an_index_by_sql(catalog: Catalog) -> None:
    lance_format.write_dataset(_notes(), catalog.path("t"), max_rows_per_file=3)
    catalog.sql("CREATE INDEX words ON @.t USING fts (note) OPTIONS (with_position = TRUE, stem = false)")
    assert catalog.sql("SELECT name, type FROM @.t.indices") == [("words", "Inverted")]
    search = "SELECT id FROM text_search('@.t', '%s', 20)"
    for text in ("owl", "owl emu", '"the owl"'):
        found = catalog.sql(search % text)
        assert sorted(found) == sorted((number,) for _, number in _expected(catalog.path("t"), text, limit=20))
    catalog.sql("INSERT INTO @.t VALUES (9, 'a quokka', NULL)")
    assert catalog.sql(search % "quokka") == [(9,)]
    catalog.sql(f"CALL {catalog.name}.system.refresh_index('@.t')")
    table = lance_format.dataset(catalog.path("t"))
    ids = set[int]().union(*(index["fragment_ids"] for index in table.list_indices()))
    assert ids == {fragment.fragment_id for fragment in table.get_fragments()}
    assert catalog.sql(search % "quokka") == [(9,)]
    catalog.refuses("CREATE INDEX i ON @.t USING fts (note) OPTIONS (language = 'Klingon')", "language is 'Klingon'")
    catalog.refuses("CREATE INDEX i ON @.t USING fts (note) OPTIONS (stem = 3)", "stem")
    catalog.refuses("CREATE INDEX i ON @.t USING inverted (id)", "strings and lists of strings")


def test_an_index_by_a_method(spark: SparkSession, path: str, way: str) -> None:
    lance_format.write_dataset(_notes(), path, max_rows_per_file=3)
    table = LanceTable.forPath(spark, path)
    made = table.createIndex(
        "note", "INVERTED", customStopWords=["emu"], minNgramLength=2, withPosition=True, baseTokenizer="whitespace"
    )
    assert (made.name, made.type, made.fragments) == ("note_idx", "Inverted", 3)
    assert _expected(path, "owl") == _rows(table.textSearch("owl"))
    assert table.textSearch("emu").count() == 0
    assert _expected(path, '"the owl"') == _rows(table.textSearch('"the owl"'))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(("owl", ["nope"]), "no column 'nope'"), (("owl", ["id"]), "text"), (("owl", None, 5, "x > 3"), "x")],
    ids=str,
)
def test_wrong_arguments(planner: SparkSession, path: str, arguments: tuple[Any, ...], message: str) -> None:
    table = LanceTable.forPath(planner, _write(path))
    with pytest.raises(PySparkException, match=message):
        table.textSearch(*arguments)
    with pytest.raises(lance_format.InvalidInputError, match="columns is 'note'; a list of names is needed"):
        table.textSearch("owl", "note")
    with pytest.raises(lance_format.InvalidInputError, match="numResults is 0"):
        table.textSearch("owl", numResults=0)


def test_queries_of_all_kinds(planner: SparkSession, path: str) -> None:
    table, name = LanceTable.forPath(planner, _write(path)), f"lance.`{path}`"
    owl, emu = MatchQuery("owl", "note", fuzziness=1), MatchQuery("emu", "note")
    queries = [
        BooleanQuery([(Occur.MUST, owl), (Occur.MUST_NOT, emu)]),
        BoostQuery(owl, emu, negative_boost=0.25),
        MultiMatchQuery("owl emu", ["note", "other"], boosts=[1, 2], operator=FullTextOperator.AND),
        PhraseQuery("the emu", "note", slop=2),
        owl & emu,
    ]
    for query in queries:
        found = lance_format.dataset(path).to_table(["id"], full_text_query=query, limit=20)["id"].to_pylist()
        assert sorted(found) == sorted(row.id for row in table.textSearch(query, numResults=20).collect())
        text = "SELECT id FROM text_search(:name, num_results => 20, structured_query => :query)"
        rows = planner.sql(text, args={"name": name, "query": json.dumps(query.to_dict())}).collect()
        assert sorted(found) == sorted(row.id for row in rows)
        assert found
    with pytest.raises(lance_format.InvalidInputError, match="which names its columns"):
        table.textSearch(owl, ["note"])
    for given, message in {
        "structured_query => '{'": "structured_query is no JSON",
        "structured_query => '[]'": "a query is an object of JSON",
        "structured_query => '{\"no\": {}}'": "one of match, phrase, boost, multi_match, boolean",
        "structured_query => '{}', query => 'owl'": "leave out query and columns",
        'structured_query => \'{"match": {"terms": "owl"}}\'': "malformed query.*column",
    }.items():
        with pytest.raises(Exception, match=message):
            planner.sql(f"SELECT * FROM text_search('{name}', num_results => 3, {given})")


def test_hybrid_search(planner: SparkSession, path: str) -> None:
    vectors = pa.array([[float(number), 1.0] for number in range(len(TEXTS))], pa.list_(pa.float32(), 2))
    lance_format.write_dataset(_notes().append_column("v", vectors), path, max_rows_per_file=3)
    nearest = {"column": "v", "q": [2.0, 1.0], "k": 4}
    asked = {"query": "emu owl", "columns": ["note"]}
    both = lance_format.dataset(path).to_table(["id"], nearest=nearest, full_text_query=asked, limit=4, rrf_k=10)
    expected = list(zip(both["id"].to_pylist(), both["_relevance_score"].to_pylist(), strict=True))
    found = LanceTable.forPath(planner, path).hybridSearch("v", [2, 1], "emu owl", ["note"], 4, rrfK=10)
    assert [(row.id, row._relevance_score) for row in found.collect()] == expected
    search = f"SELECT id, _relevance_score FROM hybrid_search('lance.`{path}`', 'v', array(2, 1), "
    rows = planner.sql(search + "'emu owl', 4, columns => array('note'), rrf_k => 10)")
    assert [tuple(row) for row in rows.collect()] == expected
    (plan,) = planner.sql(f"EXPLAIN {search} 'owl', columns => array('note'))").first()
    assert "rrf_k 60" in plan
    for arguments, message in {
        "'owl', rrf_k => -1": "rrf_k is -1",
        "'owl', rrf_k => 'a'": "rrf_k is 'a'",
        "'owl', columns => array('note'), nprobes => 0": "nprobes",
        "num_results => 3": "the argument query is missing",
    }.items():
        with pytest.raises(Exception, match=message):
            planner.sql(search + arguments + ")")
