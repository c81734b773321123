"""Text queries return the rows and the scores that pylance returns."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import lance.query
import pyarrow as pa
import pytest

import lance_format
import lance_format.query
from lance_format import CorruptFileError, DatasetNotFoundError, InvalidInputError, NotSupportedError
from lance_format.texts.stop_words import KNOWN, stop_words_of

WORDS = [
    "owl",
    "owls",
    "emu",
    "the",
    "running",
    "runner",
    "über",
    "Straße",
    "ΣΑΣ",
    "naïve",
    "x1",
    "wren",
    "Wrens",
    "ox",
]
"""Some have one stem, some are stop words, and some have accents."""
COMMON = 0.7
SEEDS = [*range(4), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(4, 10))]
"""Of the histories of tables."""

Query = Callable[[Any], Any]
"""A function that makes a query of the module of either library."""


def text(rng: random.Random, longest: int = 12) -> str | None:
    if rng.random() < 0.1:
        return rng.choice([None, "", " ", "the"])
    words = [
        rng.choice(WORDS) if rng.random() < COMMON else f"w{rng.randrange(40)}"
        for _ in range(rng.randrange(1, longest))
    ]
    return "".join(word + rng.choice([" ", ", ", "-", "  "]) for word in words)


def random_query(rng: random.Random, columns: list[str], depth: int = 2, *, phrases: bool = True) -> Query:
    column, words = rng.choice(columns), text(rng, 4) or "owl"
    kind = rng.choice(["match", "and", "fuzzy", "phrase", "multi", "boolean", "boost"] if depth else ["match", "and"])
    if kind == "phrase" and phrases:
        slop = rng.randrange(3)
        if slop:  # pylance misses some rows with three words and more.
            words = " ".join(rng.choices(["owl", "emu", "wren", "x1"], k=2))
        return lambda m: m.PhraseQuery(words, column, slop=slop)
    if kind == "fuzzy":
        limits = {"fuzziness": rng.choice([1, 2, None]), "prefix_length": rng.randrange(2)}
        return lambda m: m.MatchQuery(words, column, **limits)
    if kind == "multi":
        boosts = [rng.choice([1.0, 2.5]) for _ in columns]
        return lambda m: m.MultiMatchQuery(words, columns, boosts=boosts)
    if kind == "boost":
        first, second = (random_query(rng, columns, depth - 1, phrases=phrases) for _ in range(2))
        return lambda m: m.BoostQuery(first(m), second(m), negative_boost=0.25)
    if kind == "boolean":
        kinds = ["MUST", *(rng.choice(["MUST", "SHOULD", "MUST_NOT"]) for _ in range(2))]
        if rng.random() < 0.5:
            kinds[0] = "SHOULD"
        parts = [(name, random_query(rng, columns, depth - 1, phrases=phrases)) for name in kinds]
        return lambda m: m.BooleanQuery([(m.Occur[name], part(m)) for name, part in parts])
    boost = rng.choice([1.0, 3.0])
    operator = "AND" if kind == "and" else "OR"
    return lambda m: m.MatchQuery(words, column, boost=boost, operator=m.FullTextOperator[operator])


def rows_of(table: pa.Table) -> list[tuple[float, int]]:
    return sorted(zip(table["_score"].to_pylist(), table["id"].to_pylist(), strict=True), reverse=True)


def assert_same(theirs: lance.LanceDataset, query: Query | str, **options: Any) -> None:
    ours = lance_format.dataset(theirs.uri)
    made = [query, query] if isinstance(query, str) else [query(lance.query), query(lance_format.query)]
    expected = theirs.to_table(columns=["id", "_score"], full_text_query=made[0], **options)
    found = ours.to_table(columns=["id", "_score"], full_text_query=made[1], **options)
    assert found.schema == expected.schema
    scores = found["_score"].to_pylist()
    assert scores == sorted(scores, reverse=True)
    left, right = rows_of(found), rows_of(expected)
    if "limit" in options:  # Which of several equal rows are returned is open.
        last = right[-1][0] if right else 0
        left, right = ([row for row in rows if not math.isclose(row[0], last, rel_tol=1e-5)] for rows in (left, right))
        assert found.num_rows == expected.num_rows
    left, right = (sorted(rows, key=lambda row: row[1]) for rows in (left, right))
    assert [row for _, row in left] == [row for _, row in right], made[1]
    assert [score for score, _ in left] == pytest.approx([score for score, _ in right], rel=2e-6, abs=1e-6), made[1]


def assert_head(theirs: lance.LanceDataset, query: Query, most: int, **options: Any) -> None:
    """A limited search returns the first rows of a search without a limit, and their scores."""
    ours, made = lance_format.dataset(theirs.uri), query(lance_format.query)
    whole = ours.to_table(["id", "_score"], full_text_query=made, **options)
    for _ in range(2):  # The second one has what the first one caches.
        found = ours.to_table(["id", "_score"], full_text_query=made, limit=most, **options)
        assert found.equals(whole.slice(0, most)), made


def append(theirs: lance.LanceDataset, rng: random.Random, first: int, count: int) -> lance.LanceDataset:
    return lance.write_dataset(rows(rng, first, count), theirs.uri, mode="append")


def rows(rng: random.Random, first: int, count: int) -> pa.Table:
    texts = [[text(rng) for _ in range(count)] for _ in range(2)]
    return pa.table({"id": range(first, first + count), "a": texts[0], "b": pa.array(texts[1], pa.large_string())})


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_tables_of_a_random_history_are_searched_alike(tmp_path: Path, seed: int, stable: bool) -> None:
    rng = random.Random(seed)
    theirs = lance.write_dataset(
        rows(rng, 0, 400), str(tmp_path / "t"), max_rows_per_file=150, enable_stable_row_ids=stable
    )
    theirs.create_scalar_index("a", "INVERTED", with_position=True)
    theirs.create_scalar_index("b", "INVERTED", stem=bool(seed % 2), remove_stop_words=False, with_position=True)
    steps: list[Callable[[], Any]] = [
        lambda: theirs.delete(f"id % 7 = {rng.randrange(7)}"),
        lambda: theirs.optimize.optimize_indices(num_indices_to_merge=rng.choice([0, 1])),
        lambda: theirs.optimize.compact_files(target_rows_per_fragment=300),
        lambda: append(theirs, rng, theirs.count_rows() + 1000, 60),
        lambda: theirs.update({"a": f"'owl w{rng.randrange(40)} updated'"}, where="id % 11 = 3"),
        lambda: theirs.create_scalar_index("a", "INVERTED", with_position=True),
    ]
    for step in [None, *(rng.choice(steps) for _ in range(5))]:
        if step is not None:
            step()
        theirs = lance.dataset(theirs.uri)
        assert lance_format.dataset(theirs.uri).verify().problems == ()
        for _ in range(4):
            query = random_query(rng, ["a", "b"])
            assert_same(theirs, query)
            assert_same(theirs, query, fast_search=True)
            assert_same(theirs, query, limit=rng.randrange(1, 20))
            assert_head(theirs, query, rng.randrange(30))
            assert_head(theirs, query, rng.randrange(1, 9), filter=f"id % 3 = {rng.randrange(3)}", prefilter=True)
            assert_same(theirs, query, filter=f"id % 3 = {rng.randrange(3)}", prefilter=bool(rng.randrange(2)))


@pytest.mark.parametrize(
    "rules",
    [
        {"base_tokenizer": "whitespace"},
        {"base_tokenizer": "raw", "stem": False},
        {"base_tokenizer": "ngram"},
        {"base_tokenizer": "ngram", "min_ngram_length": 2, "max_ngram_length": 4, "prefix_only": True},
        {"lower_case": False, "ascii_folding": False},
        {"max_token_length": 4},
        {"custom_stop_words": ["owl", "über"]},
        {"language": "German", "remove_stop_words": False},
        {"format_version": 1},
        {"language": "French"},
    ],
)
def test_rules_of_tokens_are_those_of_the_index(tmp_path: Path, rules: dict[str, Any]) -> None:
    rng = random.Random(5)
    theirs = lance.write_dataset(rows(rng, 0, 300), str(tmp_path / "t"))
    theirs.create_scalar_index("a", "INVERTED", **rules)
    append(theirs, rng, 300, 50)
    theirs = lance.dataset(theirs.uri)
    for _ in range(40):
        assert_same(theirs, random_query(rng, ["a"], phrases=False))


@pytest.mark.parametrize("version", [1, 2])
def test_long_lists_of_documents_and_positions_are_read(tmp_path: Path, version: int) -> None:
    rng = random.Random(8)
    texts = [" ".join(rng.choice(["owl", "emu", f"w{rng.randrange(9)}"]) for _ in range(30)) for _ in range(3000)]
    texts[5] = "owl " * 300 + "w3 owl emu"
    theirs = lance.write_dataset(pa.table({"id": range(3000), "a": texts}), str(tmp_path / "t"))
    theirs.create_scalar_index("a", "INVERTED", with_position=True, format_version=version)
    for words in ("owl", "emu w3", "w1 w2 w3 w4", "owl owl emu"):
        assert_same(theirs, words)
        assert_same(theirs, lambda m, words=words: m.PhraseQuery(words, "a"))
    for slop in range(3):
        assert_same(theirs, lambda m, slop=slop: m.PhraseQuery("w3 owl", "a", slop=slop))


def test_lists_of_texts_are_searched(tmp_path: Path) -> None:
    rng = random.Random(3)
    lists = [None if rng.random() < 0.1 else [text(rng, 4) for _ in range(rng.randrange(4))] for _ in range(300)]
    table = pa.table({"id": range(300), "a": pa.array(lists, pa.list_(pa.string()))})
    theirs = lance.write_dataset(table.slice(0, 200), str(tmp_path / "t"))
    theirs.create_scalar_index("a", "INVERTED", with_position=True)
    theirs = lance.write_dataset(table.slice(200), theirs.uri, mode="append")
    for _ in range(40):
        assert_same(theirs, random_query(rng, ["a"]))


def test_columns_without_an_index_are_searched(tmp_path: Path) -> None:
    rng = random.Random(4)
    theirs = lance.write_dataset(rows(rng, 0, 300), str(tmp_path / "t"))
    for _ in range(40):
        assert_same(theirs, random_query(rng, ["a", "b"]))


def test_rows_that_compaction_has_moved_are_found(tmp_path: Path) -> None:
    theirs = lance.write_dataset(rows(random.Random(1), 0, 200), str(tmp_path / "t"), max_rows_per_file=40)
    theirs.create_scalar_index("a", "INVERTED")
    theirs.delete("id % 5 = 2")
    theirs.optimize.compact_files(defer_index_remap=True)
    expected = theirs.to_table(columns=["id", "_score"], full_text_query="owl wren")["id"].to_pylist()
    found = lance_format.dataset(theirs.uri).to_table(["id"], full_text_query="owl wren")["id"].to_pylist()
    assert sorted(found) == sorted(expected)


def test_updated_rows_with_stable_ids_are_found_by_their_texts(tmp_path: Path) -> None:
    table = pa.table({"id": range(4), "a": ["owl", "emu", "owl emu", "wren"]})
    theirs = lance.write_dataset(table, str(tmp_path / "t"), enable_stable_row_ids=True)
    theirs.create_scalar_index("a", "INVERTED")
    theirs.update({"a": "'ibis'"}, where="id = 0")
    for _ in range(2):
        ours = lance_format.dataset(theirs.uri)
        for word, expected in (("owl", [2]), ("ibis", [0]), ("emu", [1, 2])):
            found = ours.to_table(["id"], full_text_query=word, with_row_id=True)
            assert sorted(found["id"].to_pylist()) == expected
            assert sorted(found["_rowid"].to_pylist()) == expected
        theirs.optimize.optimize_indices()


def test_row_columns_are_returned(tmp_path: Path) -> None:
    theirs = lance.write_dataset(rows(random.Random(1), 0, 90), str(tmp_path / "t"), max_rows_per_file=40)
    theirs.create_scalar_index("a", "INVERTED")
    theirs.delete("id = 3")
    columns = ["id", "_rowid", "_rowaddr", "_rowoffset", "_score"]
    found = lance_format.dataset(theirs.uri).to_table(columns, full_text_query="owl", limit=20)
    assert found["_rowoffset"].to_pylist() == [number - (number > 3) for number in found["id"].to_pylist()]
    assert found["_rowid"] == found["_rowaddr"]


def test_indices_without_rows_are_searched(tmp_path: Path) -> None:
    theirs = lance.write_dataset(rows(random.Random(1), 0, 50), str(tmp_path / "t"))
    theirs.create_scalar_index("a", "INVERTED", train=False, with_position=True)
    for query in ("owl wren", '"owl emu"'):
        assert_same(theirs, query)
    theirs.delete("true")
    assert lance_format.dataset(theirs.uri).to_table(full_text_query="owl").num_rows == 0


@pytest.mark.parametrize("language", KNOWN)
def test_stop_words_are_those_of_pylance(tmp_path: Path, language: str) -> None:
    """A row of a word that is left out is not found, and one of another is."""
    stop_words = sorted(stop_words_of(language))
    theirs = lance.write_dataset({"id": range(len(stop_words)), "a": stop_words}, str(tmp_path / "t"))
    theirs.create_scalar_index("a", "INVERTED", base_tokenizer="raw", language=language, stem=False)
    (stats,) = theirs.stats.index_stats("a_idx")["indices"]
    assert stats["num_tokens"] == 0


@pytest.mark.parametrize("version", [1, 2])
def test_damaged_files_end_in_errors_of_the_library(tmp_path: Path, version: int) -> None:
    rng = random.Random(6)
    theirs = lance.write_dataset(rows(rng, 0, 200), str(tmp_path / "t"))
    theirs.create_scalar_index("a", "INVERTED", with_position=True, format_version=version)
    (directory,) = (tmp_path / "t" / "_indices").iterdir()
    query = lance_format.query.PhraseQuery("owl emu", "a")
    messages: list[str] = []
    for file in sorted(directory.iterdir()):
        whole = file.read_bytes()
        for _ in range(60):
            damaged = bytearray(whole)
            for _ in range(rng.choice([1, 4])):
                damaged[rng.randrange(len(whole))] = rng.randrange(256)
            file.write_bytes(bytes(damaged[: rng.choice([len(whole), rng.randrange(len(whole))])]))
            for asked in ("owl wren w3", query):
                try:
                    lance_format.dataset(theirs.uri).to_table(full_text_query=asked)
                except (CorruptFileError, NotSupportedError) as error:
                    messages.append(str(error))
        file.unlink()
        with pytest.raises(DatasetNotFoundError, match="a_idx"):
            lance_format.dataset(theirs.uri).to_table(full_text_query=query)
        file.write_bytes(whole)
    assert len(messages) > 100
    assert [message for message in messages if directory.name not in message] == []


def test_other_forms_of_indices_are_refused_by_name(tmp_path: Path) -> None:
    theirs = lance.write_dataset(rows(random.Random(0), 0, 20), str(tmp_path / "t"))
    for options, reason in [
        ({"base_tokenizer": "icu"}, "icu"),
        ({"block_size": 256}, "version 3"),
        ({"language": "Greek"}, "stop words of Greek"),
    ]:
        theirs.create_scalar_index("a", "INVERTED", **options)
        with pytest.raises(NotSupportedError, match=reason):
            lance_format.dataset(theirs.uri).to_table(full_text_query="owl")
    theirs.create_scalar_index("a", "INVERTED", with_position=False)
    with pytest.raises(InvalidInputError, match="with_position"):
        lance_format.dataset(theirs.uri).to_table(full_text_query='"owl emu"')
