"""Indices that answer with a superset of the rows, of both libraries: filters find the same rows by them as without."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_format
from lance_format import CorruptFileError, DatasetNotFoundError
from tests.table.counting import counted

COLUMNS = {
    **dict.fromkeys(("i", "f", "s", "u", "t", "bin", "g.y"), "BLOOMFILTER"),
    **dict.fromkeys(("l", "li", "lf", "ll", "g.l"), "LABEL_LIST"),
    **dict.fromkeys(("text", "large", "g.x"), "NGRAM"),
}
WORDS = [
    "Owl",
    "owl",
    "OWLS",
    "ÀÉ straße",
    "",
    "a-b",
    "K2 \u212a2x",
    "日本語 text",
    "\u017fet SET",
    "e\u0301te",
    "x_1%y",
]
TESTS = ("contains", "starts_with", "ends_with")
LABELS = ["a", "b", "é", "", None]
FLOATS = [0.0, -0.0, np.nan, -np.nan, np.inf, 2.25, None]


def _rows(rng: np.random.Generator, count: int) -> pa.Table:
    def mask() -> np.ndarray[Any, np.dtype[np.bool_]]:
        return rng.random(count) < rng.choice([0, 0.05, 0.9])

    def some(values: list[Any], length: int) -> list[Any]:
        return [values[number] for number in rng.integers(0, len(values), length)]

    def lists(values: list[Any], item_type: pa.DataType) -> pa.Array:
        sizes = rng.choice([0, 1, 2, 5], count).tolist()
        nulls = mask().tolist()
        made = [None if null else some(values, size) for size, null in zip(sizes, nulls, strict=True)]
        return pa.array(made, pa.list_(item_type))

    numbers = int(rng.choice([30, 10**6]))
    texts = pa.array(
        [" ".join(some(WORDS, size)) for size in rng.integers(0, 4, count).tolist()], pa.string(), mask=mask()
    )
    labels = [*LABELS, *(f"label {number}" for number in range(int(rng.choice([2, 200]))))]
    inner = [pa.array(rng.integers(0, numbers, count)), texts.take(pa.array(rng.permutation(count)))]
    columns = {
        "i": pa.array(rng.integers(0, numbers, count), pa.int64(), mask=mask()),
        "f": pa.array(some(FLOATS, count)),
        "s": pa.array([f"key {number}" for number in rng.integers(0, numbers, count)], pa.string(), mask=mask()),
        "u": pa.array(rng.integers(0, 5, count).astype(np.uint8), mask=mask()),
        "t": pa.array(rng.integers(0, numbers, count) * 10**6, pa.timestamp("us"), mask=mask()),
        "bin": pa.array([bytes([number % 7, 0]) for number in range(count)], pa.large_binary(), mask=mask()),
        "g": pa.StructArray.from_arrays([*inner, lists(labels, pa.string())], ["y", "x", "l"], mask=pa.array(mask())),
        "l": lists(labels, pa.string()),
        "li": lists([1, 2, 3, 77, None], pa.int32()),
        "lf": lists(FLOATS, pa.float64()),
        "ll": lists(["p", "q", None], pa.string()).cast(pa.large_list(pa.string())),
        "text": texts,
        "large": texts.take(pa.array(rng.permutation(count))).cast(pa.large_string()),
        "id": np.arange(count),
    }
    return pa.table(columns)


def _filters(rng: np.random.Generator) -> list[str]:
    number, label = int(rng.integers(0, 40)), str(rng.choice([*(f"label {k}" for k in range(5)), "a", "é", "", "none"]))
    asked = [
        f"i = {number}",
        f"i IN ({number}, 3, NULL)",
        f"i = {number} OR i IS NULL",
        f"i > 5 AND i = {number}",
        f"i <=> {number} AND id % 2 = 0",
        f"NOT (i = {number})",
        "i = 2.0",
        "f = 0.0",
        "f = -0.0 AND id > 3",
        "f = CAST('NaN' AS DOUBLE)",
        "f IN (2.25, 7.5)",
        "f IS NULL",
        f"s = 'key {number}'",
        f"s IN ('key {number}', 'other')",
        "u = 9",
        "u = 3 OR u = 300",
        "t = timestamp '1970-01-01 00:00:07'",
        "bin = X'0300'",
        "bin = X'09'",
        f"g.y = {number}",
        "g.y IS NULL",
        f"array_has(l, '{label}')",
        f"array_contains(l, '{label}') AND NOT array_has(l, 'b')",
        f"array_has_any(l, ['{label}', 'b'])",
        f"array_has_any(l, ['{label}', NULL])",
        f"array_has_all(l, ['{label}', 'a'])",
        "array_has_all(l, ['a', NULL])",
        "array_has_all(l, [])",
        "array_has(l, NULL)",
        f"NOT array_has(l, '{label}')",
        f"array_has(l, '{label}') OR l IS NULL",
        "array_has(li, 77)",
        "array_has_any(li, [1, 500])",
        "array_has(li, 2.5)",
        "array_has(lf, 0.0)",
        "array_has(lf, -0.0) AND array_has(lf, 2.25)",
        "array_has(lf, CAST('NaN' AS DOUBLE))",
        "array_has(ll, 'p') AND array_has(ll, 'q')",
        f"array_has(g.l, '{label}')",
        *(f"{test}(text, '{text}')" for test in TESTS for text in rng.choice([*WORDS, "owl", "wl o", "k2x", "123"], 2)),
        *(f"{test}({column}, 'Owl')" for test in TESTS for column in ("g.x", "large")),
        f"text LIKE '%{rng.choice(['Owl', 'stra', 'set', 'O_l', 'owls%Owl'])}%'",
        "text LIKE 'owl%' OR text LIKE '%text'",
        "text ILIKE '%k2%' AND text ILIKE '%SET%'",
        "text = 'Owl OWLS'",
        "text IN ('Owl', 'owl owl')",
        "NOT contains(text, 'owl')",
        "large LIKE '%x_1%'",
        "contains(text, '---')",
    ]
    return [str(given) for given in rng.choice(asked, 16, replace=False)]


def _change(rng: np.random.Generator, path: str, count: int) -> None:
    """Change the table, by either library."""
    theirs, ours = lance.dataset(path), lance_format.dataset(path)
    some = f"id % {rng.integers(3, 30)} = 2"
    match rng.integers(0, 9):
        case 0:
            theirs.delete(some)
        case 1:
            theirs.insert(_rows(rng, count // 4 + 1))
        case 2:
            theirs.update({"i": "i + 1", "s": "'key 7'", "text": "'owl set'"}, where=some)
        case 3:
            theirs.optimize.optimize_indices(index_names=[f"{name}_idx" for name in COLUMNS if "." not in name])
        case 4:
            theirs.optimize.compact_files(target_rows_per_fragment=2 * count)
        case 5:
            ours.delete(some)
        case 6:
            ours.update({"i": "i - 2", "text": "'Owl x_1%y'"}, where=some)
        case 7:
            merged = rng.choice([None, 0, 1, 2])
            ours.optimize.optimize_indices(num_indices_to_merge=merged, retrain=bool(rng.random() < 0.2))
        case _:
            ours.optimize.compact_files(target_rows_per_fragment=2 * count)


@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(4, 10))])
def test_filters_find_the_same_rows(tmp_path: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    path, count = str(tmp_path / "t"), int(rng.choice([50, 1000, 9000]))
    size = max(count // int(rng.integers(1, 6)), 1)
    table = lance.write_dataset(_rows(rng, count), path, max_rows_per_file=size, enable_stable_row_ids=bool(seed % 2))
    if seed % 3 == 0:
        table.delete("id % 7 = 1")
    for column, kind in COLUMNS.items():
        maker = lance_format.dataset(path) if rng.random() < 0.6 else table
        maker.create_scalar_index(column, kind)
        table.checkout_latest()
    num_used = 0
    for step in range(5):
        if step:
            _change(rng, path, count)
        _check_pylance(path, _filters(rng))
        dataset = lance_format.dataset(path)
        assert dataset.verify().problems == ()
        for given in _filters(rng):
            scanner = dataset.scanner(["id"], given)
            found = scanner.to_table()
            num_used += 0 if scanner.metrics is None else scanner.metrics.indices_loaded
            assert found.equals(dataset.scanner(["id"], given, use_scalar_index=False).to_table()), given
            tasks = scanner.plan_tasks(200_000, min_tasks=2)
            batches = [batch for task in tasks for batch in scanner.read_task(task)]
            assert pa.Table.from_batches(batches, scanner.projected_schema).equals(found), given
    assert num_used > 5


def _check_pylance(path: str, filters: list[str]) -> None:
    theirs = lance.dataset(path)
    for given in filters:
        if "<=>" in given or given in ("i = 2.0", "u = 3 OR u = 300"):
            continue  # pylance refuses these
        found = theirs.scanner(["id"], filter=given, with_row_id=True).to_table()
        expected = theirs.scanner(["id"], filter=given, with_row_id=True, use_scalar_index=False).to_table()
        assert found.sort_by("_rowid").equals(expected.sort_by("_rowid")), given


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("indexed") / "t"
    rng = np.random.default_rng(0)
    rows = {
        "key": rng.permutation(200_000),
        "tags": pa.array([[f"tag {number % 5000}", "all"] for number in range(200_000)]),
        "text": pa.array([f"sentence {number} end" for number in range(200_000)]),
        "x": rng.random(200_000),
    }
    table = lance.write_dataset(pa.table(rows), str(path), max_rows_per_file=20_000)
    table.create_scalar_index("key", "BLOOMFILTER")
    table.create_scalar_index("tags", "LABEL_LIST")
    table.create_scalar_index("text", "NGRAM")
    return path


@pytest.mark.parametrize(
    ("given", "matching", "most_read"),
    [
        ("key = 77", 1, 3 * 8192),
        ("key IN (5, 199999) AND x >= 0", 2, 5 * 8192),
        ("array_has(tags, 'tag 77')", 40, 40),
        ("array_has_all(tags, ['tag 77', 'all'])", 40, 40),
        ("contains(text, '4321 end')", 20, 2000),
        ("text LIKE '%sentence 4321 end%'", 1, 2000),
    ],
)
def test_few_rows_are_planned(indexed: Path, given: str, matching: int, most_read: int) -> None:
    dataset, store = counted(indexed)
    scanner = dataset.scanner(["x"], given)
    assert matching <= sum(task.num_rows for task in scanner.plan_tasks()) <= most_read
    assert "indices: " in scanner.explain_plan()
    store.drain()
    assert scanner.to_table().num_rows == matching
    assert dataset.scanner(["x"], given, use_scalar_index=False).to_table().num_rows == matching


def test_many_rows_are_scanned(indexed: Path) -> None:
    for given in ("array_has(tags, 'all')", "contains(text, 'sentence')", "key > 5"):
        scanner = lance_format.dataset(indexed).scanner(["x"], given)
        assert sum(task.num_rows for task in scanner.plan_tasks()) == 200_000


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("bloomfilter.lance", "key = 77"),
        ("bitmap_page_lookup.lance", "array_has(tags, 'tag 77')"),
        ("ngram_postings.lance", "contains(text, '4321 end')"),
    ],
)
def test_damaged_and_missing_files_are_named(indexed: Path, tmp_path: Path, name: str, given: str) -> None:
    path = shutil.copytree(indexed, tmp_path / "t")
    (file,) = path.glob(f"_indices/*/{name}")
    content = file.read_bytes()
    rng = np.random.default_rng(1)
    errors = []
    for _ in range(40):
        damaged = bytearray(content)
        place = int(rng.integers(0, len(damaged))) if rng.random() < 0.5 else -int(rng.integers(1, 3000))
        damaged[place] ^= 1 << int(rng.integers(0, 8))
        file.write_bytes(damaged)
        try:
            lance_format.dataset(path).to_table(filter=given)
        except CorruptFileError as error:
            errors.append(str(error))
    assert all("index" in error for error in errors)
    file.write_bytes(content[:-7])
    with pytest.raises(CorruptFileError, match=f"{name}: index"):
        lance_format.dataset(path).to_table(filter=given)
    file.unlink()
    with pytest.raises(DatasetNotFoundError, match="missing; if a cleanup"):
        lance_format.dataset(path).to_table(filter=given)
    assert lance_format.dataset(path).scanner(filter=given, use_scalar_index=False).to_table().num_rows > 0
