"""INVERTED indices made here: pylance finds the same rows by them, and they have the bytes of those that it makes."""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import lance.file
import numpy as np
import pyarrow as pa
import pytest

import lance_format
from lance_format import IndexConfig, InvalidInputError, NotSupportedError
from lance_format.table.indices.texts import text_kind
from lance_format.texts.dictionary import TokenDictionary
from tests.interop.test_text_search_pylance import SEEDS, append, assert_same, random_query, rows, text

_SCORE = struct.Struct("<f")


def _read(path: Path, name: str) -> pa.Table:
    (file,) = path.glob(f"_indices/*/{name}")
    return lance.file.LanceFileReader(str(file)).read_all().to_table()


def _posting_lists(path: Path) -> dict[str, dict[str, Any]]:
    """Return the columns of each token, and the scores of its blocks."""
    dictionary = TokenDictionary(_read(path, "part_0_tokens.lance")["_token_fst_bytes"][0].as_py(), "tokens")
    lists = _read(path, "part_0_invert.lance").to_pylist()
    found = {}
    for token in dictionary.similar("", 99, ""):
        row = lists[dictionary.find(token) or 0]
        row["scores"] = [_SCORE.unpack(block[:4])[0] for block in row["_posting"]]
        row["_posting"] = [block[4:] for block in row["_posting"]]
        found[token] = row
    return found


def _texts(rng: random.Random, count: int) -> list[str | None]:
    common = rng.choice([0.2, 0.9])
    words = [
        *(f"w{number}" for number in range(rng.choice([3, 500]))),
        "the",
        "Straße",
        "日本",
        "a-b",
        "x" * 39,
        "y" * 40,
    ]
    found: list[str | None] = []
    for _ in range(count):
        size = rng.choice([0, 1, 3, 9, 200]) if rng.random() < 0.9 else rng.randrange(2000)
        made = ["owl" if rng.random() < common else rng.choice(words) for _ in range(size)]
        found.append(None if rng.random() < 0.1 else " ".join(made))
    return found


@pytest.mark.parametrize(
    "rules",
    [
        {},
        {"with_position": True},
        {"base_tokenizer": "whitespace", "lower_case": False, "stem": False, "with_position": True},
        {"base_tokenizer": "raw", "max_token_length": None},
        {"base_tokenizer": "ngram", "with_position": True},
        {"base_tokenizer": "ngram", "min_ngram_length": 1, "max_ngram_length": 2, "prefix_only": True, "stem": True},
        {"custom_stop_words": ["owl", "w1"], "language": "German"},
        {"max_token_length": 4, "ascii_folding": False, "remove_stop_words": False},
    ],
)
@pytest.mark.parametrize("is_list", [False, True])
def test_files_are_those_of_pylance(tmp_path: Path, rules: dict[str, Any], is_list: bool) -> None:
    rng = random.Random(str(rules))
    texts: list[Any] = _texts(rng, 9000 if rules == {"with_position": True} else 600)
    value_type: pa.DataType = pa.string()
    if is_list:
        texts = [None if rng.random() < 0.1 else texts[at : at + rng.randrange(3)] for at in range(0, len(texts), 3)]
        value_type = pa.list_(pa.string())
    table = pa.table({"t": pa.array(texts, value_type)})
    paths = tmp_path / "theirs", tmp_path / "ours"
    theirs, _ = (lance.write_dataset(table, str(path)) for path in paths)
    theirs.create_scalar_index("t", "INVERTED", num_workers=1, **rules)
    ours = lance_format.dataset(paths[1])
    ours.create_scalar_index("t", IndexConfig("INVERTED", rules))
    assert _read(paths[0], "part_0_docs.lance").equals(_read(paths[1], "part_0_docs.lance"))
    left, right = map(_posting_lists, paths)
    assert left.keys() == right.keys()
    for token, row in left.items():
        for name in ("scores", "_max_score"):
            assert right[token].pop(name) == pytest.approx(row.pop(name), rel=1e-6)
        assert right[token] == row, token
    schemas = [_read(path, "part_0_invert.lance").schema for path in paths]
    assert schemas[0].equals(schemas[1])
    found = [lance_format.dataset(path).list_indices()[0] for path in paths]
    assert found[0]["type"] == found[1]["type"] == "Inverted"
    details = [
        lance_format.dataset(path)._table.manifest.indices[0].message.index_details.SerializeToString()
        for path in paths
    ]
    assert details[0] == details[1]


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_tables_of_a_random_history_are_searched_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, stable: bool
) -> None:
    rng = random.Random(seed)
    if seed % 2:
        monkeypatch.setattr(text_kind, "_MOST_OCCURRENCES", 200)
        monkeypatch.setattr(text_kind, "_BYTES_AT_ONCE", 3000)
    path = str(tmp_path / "t")
    theirs = lance.write_dataset(rows(rng, 0, 400), path, max_rows_per_file=150, enable_stable_row_ids=stable)
    rules = [
        {"with_position": True},
        {"stem": bool(seed % 2), "remove_stop_words": False, "with_position": True},
    ]
    made = [rng.random() < 0.7, True]
    for column, own, chosen in zip("ab", made, rules, strict=True):
        if own:
            lance_format.dataset(path).create_scalar_index(column, IndexConfig("FTS", chosen))
        else:
            lance.dataset(path).create_scalar_index(column, "INVERTED", **chosen)

    def ours() -> lance_format.LanceDataset:
        return lance_format.dataset(path)

    steps: list[Callable[[], Any]] = [
        lambda: theirs.delete(f"id % 7 = {rng.randrange(7)}"),
        lambda: ours().delete(f"id % 13 = {rng.randrange(13)}"),
        # pylance returns rows twice that an update has moved into the fragments of a new part.
        lambda: stable or theirs.optimize.optimize_indices(num_indices_to_merge=rng.choice([0, 1])),
        lambda: ours().optimize.optimize_indices(
            num_indices_to_merge=rng.choice([None, 0, 1]), retrain=rng.random() < 0.2
        ),
        lambda: theirs.optimize.compact_files(target_rows_per_fragment=300),
        lambda: ours().optimize.compact_files(target_rows_per_fragment=300),
        lambda: append(theirs, rng, theirs.count_rows() + 1000, 60),
        lambda: ours().update({"a": f"'owl w{rng.randrange(40)} updated'"}, where="id % 11 = 3"),
        lambda: theirs.update({"b": f"'emu w{rng.randrange(40)} updated'"}, where="id % 11 = 3"),
    ]
    for step in [None, *(rng.choice(steps) for _ in range(6))]:
        if step is not None:
            step()
        theirs = lance.dataset(path)
        assert ours().verify().problems == ()
        for _ in range(4):
            query = random_query(rng, ["a", "b"])
            assert_same(theirs, query)
            assert_same(theirs, query, fast_search=True)
            if not stable:  # pylance counts rows that have moved among those of the limit, and leaves them out.
                assert_same(theirs, query, limit=rng.randrange(1, 20))
            assert_same(theirs, query, filter=f"id % 3 = {rng.randrange(3)}", prefilter=bool(rng.randrange(2)))


def test_parts_are_kept_and_merged(tmp_path: Path) -> None:
    rng, path = random.Random(1), str(tmp_path / "t")
    lance_format.write_dataset(rows(rng, 0, 200), path, max_rows_per_file=50)
    table = lance_format.dataset(path)
    table.create_scalar_index("a", "INVERTED")
    for first in (200, 300):
        lance_format.write_dataset(rows(rng, first, 50), path, mode="append")
        table.checkout_latest()
        table.optimize.optimize_indices(num_indices_to_merge=0)
    assert len(table.list_indices()) == 3
    assert_same(lance.dataset(path), "owl wren", fast_search=True)
    table.optimize.optimize_indices(num_indices_to_merge=3)
    (index,) = table.list_indices()
    assert index["fragment_ids"] == set(range(6))
    assert_same(lance.dataset(path), "owl wren", fast_search=True)
    table.create_scalar_index("a", "INVERTED", train=False)
    (index,) = table.list_indices()
    assert index["fragment_ids"] == set()
    assert_same(lance.dataset(path), "owl wren")


def test_the_rules_of_an_index_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "t"
    lance.write_dataset(rows(random.Random(1), 0, 50), str(path))
    rules = {"base_tokenizer": "whitespace", "lower_case": False, "language": "french", "stem": False}
    lance_format.dataset(path).create_scalar_index("a", IndexConfig("INVERTED", rules))
    for damage in (False, True):
        if damage:
            for file in path.glob("_indices/*/metadata.lance"):
                file.write_bytes(b"nothing")
        lance_format.write_dataset(rows(random.Random(2), 50, 50), path, mode="append")
        table = lance_format.dataset(path)
        table.optimize.optimize_indices(retrain=damage)
        for index in table._table.manifest.indices:
            details = text_kind._told_rules(index)
            assert (details.base_tokenizer, details.lower_case, details.language) == ("whitespace", False, "French")
    assert_same(lance.dataset(str(path)), "owl Wrens")


def test_long_posting_lists_end_early_in_pylance(tmp_path: Path) -> None:
    """Searches with a limit skip blocks by their impacts and scores."""
    rng, path = random.Random(4), str(tmp_path / "t")
    texts = [
        " ".join(rng.choices(["owl", "emu", f"w{rng.randrange(30)}"], k=rng.randrange(1, 40))) for _ in range(40_000)
    ]
    lance.write_dataset(pa.table({"id": range(len(texts)), "a": texts}), path)
    lance_format.dataset(path).create_scalar_index("a", IndexConfig("INVERTED", {"with_position": True}))
    theirs = lance.dataset(path)
    for words in ("owl", "emu w3", "w1 w2 owl", '"owl emu w5"'):
        found = theirs.to_table(columns=["id", "_score"], full_text_query=words, limit=10)
        expected = theirs.to_table(columns=["id", "_score"], full_text_query=words)
        best = sorted(expected["_score"].to_pylist(), reverse=True)[:10]
        assert all(map(math.isclose, found["_score"].to_pylist(), best))
        assert_same(theirs, words, limit=10)


@pytest.mark.parametrize(
    ("rules", "error", "message"),
    [
        ({"stemm": True}, InvalidInputError, "parameter 'stemm' of INVERTED indices is unknown"),
        ({"stem": "yes"}, InvalidInputError, "stem is 'yes'; True or False is needed"),
        ({"max_token_length": -1}, InvalidInputError, "max_token_length is -1"),
        ({"max_token_length": True}, InvalidInputError, "max_token_length is True"),
        ({"language": "Klingon"}, InvalidInputError, "language is 'Klingon'; one of Arabic"),
        ({"base_tokenizer": 3}, InvalidInputError, "base_tokenizer is 3; one of simple"),
        ({"base_tokenizer": np.array(["raw", "ngram"])}, InvalidInputError, "base_tokenizer is array"),
        ({"base_tokenizer": "icu"}, NotSupportedError, "icu"),
        ({"custom_stop_words": "owl"}, InvalidInputError, "custom_stop_words is 'owl'; a list of words"),
        ({"custom_stop_words": [1]}, InvalidInputError, "custom_stop_words"),
        ({"min_ngram_length": 4}, InvalidInputError, "min_ngram_length is 4; a number of characters from 1"),
        ({"min_ngram_length": 0}, InvalidInputError, "min_ngram_length is 0"),
        ({"block_size": 256}, NotSupportedError, "block_size 256"),
        ({"block_size": np.array([128, 256])}, NotSupportedError, "block_size array"),
        ({"language": "Greek"}, NotSupportedError, "stop words of Greek"),
    ],
)
def test_impossible_rules_are_refused(rules: dict[str, Any], error: type[Exception], message: str) -> None:
    table = lance_format.write_dataset({"a": [text(random.Random(1))]}, "memory://notes", mode="overwrite")
    with pytest.raises(error, match=message):
        table.create_scalar_index("a", IndexConfig("INVERTED", rules))


def test_columns_without_texts_are_refused() -> None:
    table = lance_format.write_dataset({"a": [1], "b": [b"x"]}, "memory://notes", mode="overwrite")
    for column in ("a", "b"):
        with pytest.raises(NotSupportedError, match="they are of strings and lists of strings"):
            table.create_scalar_index(column, "INVERTED")


def test_dictionaries_have_the_bytes_of_pylance(tmp_path: Path) -> None:
    """Tokens whose order of first occurrence is their rank have equal numbers in both."""
    tokens = sorted({f"w{number * 7919 % 5003:x}" for number in range(800)})
    paths = tmp_path / "theirs", tmp_path / "ours"
    theirs, _ = (lance.write_dataset(pa.table({"t": tokens}), str(path)) for path in paths)
    theirs.create_scalar_index("t", "INVERTED", stem=False, remove_stop_words=False, num_workers=1)
    lance_format.dataset(paths[1]).create_scalar_index("t", "INVERTED", stem=False, remove_stop_words=False)
    left, right = (_read(path, "part_0_tokens.lance") for path in paths)
    assert left.equals(right)
