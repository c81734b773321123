"""Searches of vectors and texts together."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_format
from lance_format import InvalidInputError, NotSupportedError
from lance_format.query import MatchQuery

WORDS = ["owl", "emu", "wren", "night"]


def make(path: Path, count: int = 60, *, indexed: bool = True) -> lance_format.LanceDataset:
    rng = random.Random(count)
    notes = [" ".join(rng.choices(WORDS, k=rng.randrange(5))) for _ in range(count)]
    vectors = [[rng.random() for _ in range(4)] for _ in range(count)]
    rows = pa.table({"id": range(count), "note": notes, "v": pa.array(vectors, pa.list_(pa.float32(), 4))})
    table = lance_format.write_dataset(rows, path, max_rows_per_file=25)
    if indexed:
        table.create_scalar_index("note", "INVERTED")
        table.create_index("v", "IVF_FLAT", num_partitions=2)
    table.delete("id % 7 = 3")
    return table


NEAREST = {"column": "v", "q": [0.5, 0.5, 0.5, 0.5], "k": 8}
QUERY = MatchQuery("owl wren", "note")


def expected(table: lance_format.LanceDataset, rrf_k: int = 60, **options: Any) -> dict[int, float]:
    near = table.to_table(["id"], nearest=NEAREST, **options)["id"].to_pylist()
    text = table.to_table(["id"], full_text_query=QUERY, limit=NEAREST["k"], **options)["id"].to_pylist()
    scores: dict[int, float] = {}
    for found in (near, text):
        for rank, number in enumerate(found, 1):
            scores[number] = scores.get(number, 0) + 1 / (rrf_k + rank)
    return scores


@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize("options", [{}, {"filter": "id < 30", "prefilter": True}, {"rrf_k": 0}], ids=str)
def test_rows_of_both_searches_are_returned(tmp_path: Path, indexed: bool, options: dict[str, Any]) -> None:
    table = make(tmp_path, indexed=indexed)
    found = table.to_table(["id"], nearest=NEAREST, full_text_query=QUERY, **options)
    assert found.column_names == ["id", "_relevance_score"]
    scores = dict(zip(found["id"].to_pylist(), found["_relevance_score"].to_pylist(), strict=True))
    assert scores == pytest.approx(expected(table, **options))
    assert list(scores.values()) == sorted(scores.values(), reverse=True)


def test_the_result_is_limited_filtered_and_sorted(tmp_path: Path) -> None:
    table = make(tmp_path)
    both: dict[str, Any] = {"nearest": NEAREST, "full_text_query": QUERY}
    ids = table.to_table(["id"], **both)["id"].to_pylist()
    assert table.to_table(["id"], limit=3, offset=1, **both)["id"].to_pylist() == ids[1:4]
    assert table.to_table(["id"], filter="id < 30", **both)["id"].to_pylist() == [x for x in ids if x < 30]
    assert table.to_table(["id"], order_by=["id"], **both)["id"].to_pylist() == sorted(ids)
    assert table.scanner(**both).count_rows() == len(ids)
    assert table.to_table(["id"], disable_scoring_autoprojection=True, **both).column_names == ["id"]
    scanner = table.scanner(["id"], **both)
    (task,) = scanner.plan_tasks(1)
    assert pa.Table.from_batches(scanner.read_task(task)) == scanner.to_table()
    plan = scanner.explain_plan()
    assert "rrf_k 60" in plan
    assert "LanceNearest: 8 rows by v" in plan
    assert "text search: MatchQuery('owl wren', 'note')" in plan


def test_tables_without_rows(tmp_path: Path) -> None:
    table = make(tmp_path)
    table.delete("true")
    assert table.to_table(nearest=NEAREST, full_text_query=QUERY).num_rows == 0


def test_wrong_options_are_refused(tmp_path: Path) -> None:
    table = make(tmp_path, indexed=False)
    for rrf_k in (-1, True, 1.5, 10**400):
        with pytest.raises(InvalidInputError, match="rrf_k"):
            table.scanner(nearest=NEAREST, full_text_query=QUERY, rrf_k=rrf_k)
    several = {**NEAREST, "q": [[0.5] * 4] * 2}
    with pytest.raises(InvalidInputError, match="one vector"):
        table.scanner(nearest=several, full_text_query=QUERY)
    with pytest.raises(NotSupportedError, match="fragments"):
        table.scanner(nearest=NEAREST, full_text_query=QUERY, fragments=table.get_fragments()[:1])
    with pytest.raises(NotSupportedError, match="cannot be planned"):
        table.scanner(nearest=NEAREST, full_text_query=QUERY).plan_reads()
