"""Conditions on texts in WHERE: `lance_match`, `lance_match_phrase` and `lance_multi_match`."""

from __future__ import annotations

import contextlib
import random
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.functions import expr

import lance_format
from connector.read.text_matches import with_rows
from lance_format import InvalidInputError
from lance_format.query import BooleanQuery, FullTextOperator, MatchQuery, Occur, PhraseQuery
from tests.spark.conftest import Catalog

TEXTS = ["an owl", "two owls and an owl", "an emu", None, "the owl sees the emu", "nothing", "emu emu emu", "owl", ""]


def _write(path: str) -> str:
    """Write texts, of which the indices lack the last ones."""
    other = [text and text[::-1] for text in TEXTS]
    places = pa.array([{"a.b": text} for text in reversed(TEXTS)])
    rows = pa.table({"id": pa.array(range(len(TEXTS))), "note": TEXTS, "other": other, "place": places})
    lance_format.write_dataset(rows, path, max_rows_per_file=4)
    dataset = lance_format.dataset(path)
    for column in ("note", "other", "place.`a.b`"):
        dataset.create_scalar_index(column, "INVERTED", name=f"i{len(column)}", with_position=True, stem=False)
    more = rows.set_column(0, "id", pa.array(range(len(TEXTS), 2 * len(TEXTS))))
    lance_format.write_dataset(more, path, mode="append")
    return path


def _found(path: str, query: Any) -> set[int]:
    return set(lance.dataset(path).to_table(["id"], full_text_query=query)["id"].to_pylist())


CONDITIONS = {
    "lance_match(note, 'owl')": MatchQuery("owl", "note"),
    "lance_match(note, 'owl emu')": MatchQuery("owl emu", "note"),
    "lance_match(note, 'owl emu', 'operator=AND')": MatchQuery("owl emu", "note", operator=FullTextOperator.AND),
    "lance_match(note, 'awl', 'fuzziness = 1, Prefix_Length=0')": MatchQuery("awl", "note", fuzziness=1),
    "lance_match(note, 'none of these words')": MatchQuery("none of these words", "note"),
    "lance_match_phrase(note, 'an owl')": PhraseQuery("an owl", "note"),
    "lance_match_phrase(note, 'owl emu', 2)": PhraseQuery("owl emu", "note", slop=2),
    "lance_multi_match('owl ume', note, other)": BooleanQuery(
        [(Occur.SHOULD, MatchQuery("owl ume", column)) for column in ("note", "other")]
    ),
    "lance_multi_match('owl lwo', 'operator=and', note, other)": BooleanQuery(
        [(Occur.MUST, MatchQuery("owl lwo", column)) for column in ("note", "other")]
    ),
}


def _theirs(path: str, query: Any) -> set[int]:
    """Return what pylance finds, whose classes of queries are its own."""
    import lance.query as theirs

    def convert(ours: Any) -> Any:
        if isinstance(ours, BooleanQuery):
            occurs = {Occur.SHOULD: theirs.Occur.SHOULD, Occur.MUST: theirs.Occur.MUST}
            return theirs.BooleanQuery([(occurs[occur], convert(part)) for occur, part in ours.queries])
        form = ours.to_dict()
        if "phrase" in form:
            found = form["phrase"]
            return theirs.PhraseQuery(found["terms"], found["column"], slop=found["slop"])
        found = form["match"]
        return theirs.MatchQuery(
            found["terms"],
            found["column"],
            fuzziness=found["fuzziness"],
            operator=theirs.FullTextOperator[found["operator"].upper()],
        )

    return _found(path, convert(query))


@pytest.mark.parametrize("condition", CONDITIONS)
def test_rows_are_those_of_a_search(planner: SparkSession, path: str, condition: str) -> None:
    rows = planner.sql(f"SELECT id FROM lance.`{_write(path)}` WHERE {condition}").collect()
    assert sorted(row.id for row in rows) == sorted(_theirs(path, CONDITIONS[condition]))


def test_conditions_combine_with_others(planner: SparkSession, path: str) -> None:
    name = f"lance.`{_write(path)}`"
    atoms = {condition: _theirs(path, query) for condition, query in CONDITIONS.items()}
    atoms["id IN (0, 2, 4, 6, 8, 10)"] = {*range(0, 12, 2)}
    atoms["id > 5"] = set(range(6, 18))
    generator = random.Random(5)

    def draw(depth: int) -> tuple[str, set[int]]:
        kind = generator.choice(["AND", "OR", "NOT"]) if depth else "atom"
        if kind == "atom":
            return generator.choice([*atoms.items()])
        text, rows = draw(depth - 1)
        if kind == "NOT":
            return f"NOT ({text})", set(range(18)) - rows
        others, more = draw(depth - 1)
        return f"({text}) {kind} ({others})", rows & more if kind == "AND" else rows | more

    for _ in range(12):
        text, rows = draw(3)
        if "lance_" not in text:
            continue
        found = planner.sql(f"SELECT id FROM {name} WHERE {text}").collect()
        assert sorted(row.id for row in found) == sorted(rows), text


def test_all_kinds_of_queries(planner: SparkSession, path: str) -> None:
    table = planner.table(f"lance.`{_write(path)}`")
    table.createOrReplaceTempView("notes")
    where = "lance_match(note, 'emu')"
    assert planner.sql(f"SELECT count(*), max(id) FROM notes WHERE {where}").collect() == [(6, 15)]
    assert planner.sql(f"SELECT id FROM notes WHERE {where} AND id > 2 ORDER BY id LIMIT 2").collect() == [(4,), (6,)]
    assert table.where(expr(where)).where("id < 9").count() == 3
    assert planner.sql("SELECT id FROM notes WHERE lance_match(place.`a.b`, 'nothing')").collect() == [(3,), (12,)]
    joined = "SELECT l.id FROM notes l JOIN notes r ON l.id = r.id - 9 WHERE lance_match(l.note, 'emu') AND r.id = 11"
    assert planner.sql(joined).collect() == [(2,)]
    (plan,) = planner.sql(f"EXPLAIN SELECT id FROM notes WHERE {where}").first()
    assert "lance_match(note)" in plan
    assert "- Filter" not in plan
    words = f"SELECT id FROM notes WHERE note IN ('MATCH', 'owl', 'an emu') AND {where} AND note <> 'MATCH'"
    assert sorted(planner.sql(words).collect()) == [(2,), (11,)]
    kept = planner.sql(f"SELECT id FROM notes WHERE {where}").cache()
    (plan,) = planner.sql(f"EXPLAIN SELECT id FROM notes WHERE {where}").first()
    assert "InMemoryTableScan" in plan
    kept.unpersist()
    old = planner.sql(f"SELECT id FROM lance.`{path}` VERSION AS OF 1 WHERE {where}").collect()
    assert sorted(old) == [(2,), (4,), (6,)]


def test_rows_are_changed(catalog: Catalog) -> None:
    catalog.sql("CREATE TABLE @.t AS SELECT id, concat('word', id % 4) AS note FROM range(20)")
    catalog.sql("CREATE INDEX i ON @.t USING fts (note)")
    catalog.sql("UPDATE @.t SET note = 'changed' WHERE lance_match(note, 'word1')")
    catalog.sql("DELETE FROM @.t WHERE lance_match(note, 'word2') AND id > 2")
    source = "(SELECT 3L AS id) s ON t.id = s.id AND lance_match(t.note, 'word3')"
    catalog.sql(f"MERGE INTO @.t USING {source} WHEN MATCHED THEN UPDATE SET note = 'merged'")
    rows = dict(lance.dataset(catalog.path("t")).to_table().to_pandas().to_numpy().tolist())
    expected = {n: f"word{n % 4}" for n in range(20) if n % 4 != 2 or n == 2}
    assert rows == {**expected, **dict.fromkeys(range(1, 20, 4), "changed"), 3: "merged"}
    assert catalog.sql("SELECT count(*) FROM @.t WHERE lance_match(note, 'changed merged')") == [(6,)]


def test_a_change_that_runs_again_searches_again(planner: SparkSession, path: str, tmp_path: Path) -> None:
    lance_format.write_dataset({"id": [1, 2, 3], "note": ["an owl", "two owl", "an emu"]}, path)
    lance_format.dataset(path).create_scalar_index("note", "INVERTED")

    def colliding(number: int) -> str:
        with contextlib.suppress(FileExistsError):
            (tmp_path / "once").mkdir()
            lance_format.dataset(path).update({"note": "'an emu'"}, where="id = 2")
            lance_format.dataset(path).update({"note": "'an owl'"}, where="id = 3")
        return "found"

    planner.udf.register("colliding", colliding, "string")
    planner.sql(f"UPDATE lance.`{path}` SET note = colliding(id) WHERE lance_match(note, 'owl')")
    rows = lance.dataset(path).to_table().to_pylist()
    assert {row["id"]: row["note"] for row in rows} == {1: "found", 2: "an emu", 3: "found"}


def test_tables_without_an_index(planner: SparkSession, path: str) -> None:
    lance_format.write_dataset({"id": [1, 2], "note": ["an owl", "an emu"]}, path)
    assert planner.sql(f"SELECT id FROM lance.`{path}` WHERE lance_match(note, 'owl')").collect() == [(1,)]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (
            "SELECT lance_match(note, 'owl') FROM {}",
            "lance_match is a condition .* here Spark would",
        ),
        ("SELECT 1 FROM {} WHERE lance_match(upper(note), 'owl')", "here Spark would have to"),
        ("SELECT 1 FROM {} WHERE lance_match(note, 'owl') OR rand() > 0.5", "here Spark would have to"),
        ("SELECT 1 FROM {} WHERE lance_match(id, 'owl')", "here Spark would have to"),
        ("SELECT 1 FROM VALUES ('a') AS t(a) WHERE lance_match(a, 'a')", "here Spark would have to"),
        ("SELECT 1 FROM {} WHERE lance_match(note)", "lance_match: a column and words are needed"),
        ("SELECT 1 FROM {} WHERE lance_match(note, other)", "argument 2 is to be the words, as a constant text"),
        ("SELECT 1 FROM {} WHERE lance_match(note, 5)", "argument 2 is to be the words"),
        (
            "SELECT 1 FROM {} WHERE lance_match('note', 'owl')",
            "is a constant, and a column is needed",
        ),
        (
            "SELECT 1 FROM {} WHERE lance_match(note, 'owl', 'fuzzy=1')",
            "no option 'fuzzy'; there are operator",
        ),
        ("SELECT 1 FROM {} WHERE lance_match(note, 'owl', 'operator=XOR')", "the option operator .* cannot be 'XOR'"),
        ("SELECT 1 FROM {} WHERE lance_match(note, 'owl', 'fuzziness=x')", "the option fuzziness .* cannot be 'x'"),
        ("SELECT 1 FROM {} WHERE lance_match_phrase(note, 'owl', 1.5)", "argument 3 is to be the slop"),
        ("SELECT 1 FROM {} WHERE lance_match_phrase(note)", "lance_match_phrase: a column and a phrase are needed"),
        ("SELECT 1 FROM {} WHERE lance_multi_match('owl')", "lance_multi_match: words and columns are needed"),
        ("SELECT 1 FROM {} WHERE lance_multi_match()", "lance_multi_match: words and columns are needed"),
        (
            "SELECT 1 FROM {} WHERE lance_multi_match('owl', 'boost=2', note, other)",
            "no option 'boost', only op",
        ),
    ],
)
def test_what_is_refused(planner: SparkSession, path: str, query: str, message: str) -> None:
    lance_format.write_dataset({"id": [1], "note": ["an owl"], "other": ["an emu"]}, path)
    with pytest.raises(PySparkException, match=f"(?s){message}"):
        planner.sql(query.format(f"lance.`{path}`")).collect()


def test_forms(path: str) -> None:
    dataset = lance_format.dataset(_write(path))
    form = ["AND", ["MATCH", "match", {"terms": "nothing"}, ["place", "a.b"]], ["NOT", ["IS_NULL", ["COLUMN", "id"]]]]
    found = with_rows(form, lambda: dataset)
    assert found[2] == form[2]
    text = ["IN", ["COLUMN", "note"], "string", ["MATCH", "phrase"]]
    assert with_rows(["OR", text, ["LITERAL", "string", "MATCH"]], lambda: dataset)[1] == text
    assert found[1][:3] == ["SET", ["COLUMN", "_rowaddr"], "bigint"]
    with pytest.raises(InvalidInputError, match="slop is -1"):
        with_rows(["MATCH", "phrase", {"terms": "owl", "slop": -1}, ["note"]], lambda: dataset)
