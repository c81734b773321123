"""Searches of tables without indices."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lance_format
from lance_format import InvalidInputError, NotSupportedError
from lance_format.query import (
    BooleanQuery,
    BoostQuery,
    FullTextOperator,
    MatchQuery,
    MultiMatchQuery,
    Occur,
    PhraseQuery,
)

TEXTS = ["an owl at night", "two owl owl", None, "an emu", ""]


def table_of(texts: list[str | None]) -> lance_format.LanceDataset:
    return lance_format.write_dataset(
        {"id": range(len(texts)), "note": texts}, "memory://notes", mode="overwrite", max_rows_per_file=2
    )


def ids(table: lance_format.LanceDataset, query: Any, **options: Any) -> list[int]:
    found: list[int] = table.to_table(columns=["id"], full_text_query=query, **options)["id"].to_pylist()
    return found


def test_rows_come_by_descending_score() -> None:
    table = table_of(TEXTS)
    asked = {"query": "owl", "columns": ["note"]}
    assert ids(table, asked) == [1, 0]
    assert ids(table, asked, limit=1) == [1]
    assert ids(table, asked, offset=1) == [0]
    assert ids(table, asked, filter="id = 0") == [0]
    assert ids(table, asked, filter="id = 0", limit=1) == []
    assert ids(table, asked, filter="id = 0", limit=1, prefilter=True) == [0]
    assert ids(table, asked, fast_search=True) == []
    assert table.scanner(full_text_query=asked).count_rows() == 2
    assert table.to_table(full_text_query=asked).column_names == ["id", "note", "_score"]
    assert table.to_table(["note"], full_text_query=asked, disable_scoring_autoprojection=True).column_names == ["note"]


def test_scores_can_be_computed_with() -> None:
    asked = {"query": "owl", "columns": ["note"]}
    found = table_of(TEXTS).to_table({"twice": "_score * 2"}, filter="_score > 0", full_text_query=asked)
    assert found["twice"].to_pylist() == pytest.approx([2 * score for score in found["_score"].to_pylist()])


@given(st.lists(st.lists(st.sampled_from(["owl", "emu", "ox"]), max_size=6), min_size=1, max_size=8))
def test_scores_are_those_of_bm25(notes: list[list[str]]) -> None:
    table = table_of([" ".join(words) for words in notes])
    documents = [words for words in notes if words]
    mean = sum(map(len, documents)) / max(len(documents), 1)
    expected = {}
    for number, words in enumerate(notes):
        score = 0.0
        for token in ("owl", "ox"):
            containing = sum(token in document for document in documents)
            count = Counter(words)[token]
            if count:
                weight = math.log((len(documents) - containing + 0.5) / (containing + 0.5) + 1)
                score += weight * 2.2 * count / (count + 1.2 * (0.25 + 0.75 * len(words) / mean))
        if score:
            expected[number] = score
    found = table.to_table(["id"], full_text_query={"query": "owl ox", "columns": ["note"]})
    assert dict(zip(found["id"].to_pylist(), found["_score"].to_pylist(), strict=True)) == pytest.approx(
        expected, rel=1e-5
    )


def test_queries_are_combined() -> None:
    table = table_of(["owl emu", "owl", "emu", "ox owl emu"])
    owl, emu, ox = (MatchQuery(word, "note") for word in ("owl", "emu", "ox"))
    assert sorted(ids(table, owl & emu)) == [0, 3]
    assert sorted(ids(table, owl | ox)) == [0, 1, 3]
    assert sorted(ids(table, BooleanQuery([(Occur.MUST, owl), (Occur.MUST_NOT, ox)]))) == [0, 1]
    assert ids(table, BooleanQuery([(Occur.MUST, owl), (Occur.SHOULD, ox)]))[0] == 3
    assert ids(table, BoostQuery(owl, emu))[0] == 1
    assert sorted(ids(table, MatchQuery("ox owl", "note", operator=FullTextOperator.AND))) == [3]
    assert sorted(ids(table, MultiMatchQuery("ox owl", ["note"]))) == [0, 1, 3]
    assert sorted(ids(table, PhraseQuery("owl emu", "note"))) == [0, 3]
    assert sorted(ids(table, PhraseQuery("ox emu", "note", slop=1))) == [3]


def test_deleted_rows_are_not_found() -> None:
    table = table_of(["owl", "owl", "owl"])
    table.delete("id = 1")
    assert ids(table, MatchQuery("owl", "note")) == [0, 2]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("owl", "no column has an INVERTED index"),
        ({"query": "owl", "columns": ["nope"]}, "no column 'nope'"),
        ({"query": "owl", "columns": ["id"]}, "text and lists of text"),
        ({"query": "owl", "columns": "note"}, "a list of names"),
        ({"columns": ["note"]}, "are needed"),
        (5, "is needed"),
    ],
)
def test_wrong_queries_are_refused(query: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        table_of(TEXTS).to_table(full_text_query=query)


def test_wrong_options_are_refused() -> None:
    table, query = table_of(TEXTS), MatchQuery("owl", "note")
    with pytest.raises(NotSupportedError, match="deleted rows are not searched"):
        table.scanner(full_text_query=query, include_deleted_rows=True)
    with pytest.raises(NotSupportedError, match="scores depend on all rows"):
        table.get_fragments()[0].scanner(full_text_query=query)


def test_one_task_searches_all_rows() -> None:
    scanner = table_of(TEXTS).scanner(full_text_query=MatchQuery("owl", "note"))
    (task,) = scanner.plan_tasks(split_size_bytes=1)
    assert pa.Table.from_batches(scanner.read_task(task)) == scanner.to_table()
    assert scanner.count_rows() == scanner.to_table().num_rows


def test_rows_found_are_sorted_and_limited() -> None:
    table, query = table_of(TEXTS), MatchQuery("owl", "note")
    found = table.to_table(["id"], full_text_query=query)
    expected = sorted(found["id"].to_pylist(), reverse=True)
    order = [lance_format.ColumnOrdering("id", ascending=False)]
    assert table.to_table(["id"], full_text_query=query, order_by=order)["id"].to_pylist() == expected


def test_columns_without_words_are_read(tmp_path: Path) -> None:
    table = lance_format.write_dataset({"note": [None, "", "owl"]}, str(tmp_path / "t"))
    assert table.to_table(full_text_query=MatchQuery("owl", "note"), with_row_id=True)["_rowid"].to_pylist() == [2]


@pytest.mark.parametrize("name", ["a.b", "a`b", "`a`", "a.`b", ".a", "..", "[0]", "a b"])
def test_columns_of_any_name_are_indexed_and_searched(tmp_path: Path, name: str) -> None:
    texts = pa.array(TEXTS)
    vectors = pa.array([[1.0, 2.0]] * len(TEXTS), pa.list_(pa.float32(), 2))
    rows = pa.table({name: texts, "s": pa.StructArray.from_arrays([texts, vectors], [name, f"{name}v"])})
    table = lance_format.write_dataset(rows, tmp_path / "t.lance", allow_unportable_names=True)
    quoted = "`" + name.replace("`", "``") + "`"
    for number, path in enumerate((quoted, f"s.{quoted}")):
        table.create_scalar_index(path, "INVERTED", name=f"words {number}")
        table.create_scalar_index(path, "NGRAM", name=f"parts {number}")
        assert table.count_rows(f"contains({path}, 'owl')") == 2
        assert table.to_table(full_text_query={"query": "owl", "columns": [path]}).num_rows == 2
    path = "s.`" + name.replace("`", "``") + "v`"
    table.create_index(path, "IVF_FLAT")
    assert table.to_table(nearest={"column": path, "q": [1, 2]}).num_rows == len(TEXTS)
    assert table.to_table(full_text_query="owl").num_rows == 2


def test_texts_inside_of_lists_are_refused() -> None:
    rows = pa.table({"notes": pa.array([[{"text": "owl"}]])})
    table = lance_format.write_dataset(rows, "memory://listed", mode="overwrite")
    with pytest.raises(InvalidInputError, match=r"'notes\.item\.text' is inside of lists"):
        table.to_table(full_text_query={"query": "owl", "columns": ["notes.item.text"]})
