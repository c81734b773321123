"""Columns of strings whose pages have dictionaries are read as such by filters, and their rows are those of strings."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import lance_format
from lance_format.expressions import KEY_TYPE
from lance_format.table.dataset.dataset import LanceDataset
from lance_format.table.fragments import dictionary_columns
from lance_format.table.scan import scanned_fragment

_ROWS = 20_000


def _rows(seed: int) -> pa.Table:
    random = np.random.default_rng(seed)
    few = pa.array([None, "", "north", "south", "a rather long name of a place"])
    many = pa.array([f"place {number:06d}" for number in range(1000)])
    numbers = random.integers(0, 1000, _ROWS)
    return pa.table(
        {
            "id": np.arange(_ROWS) + seed * _ROWS,
            "few": few.take(pa.array(random.integers(0, 5, _ROWS))),
            "sorted": many.take(pa.array(np.sort(numbers))),
            "large": few.cast(pa.large_string()).take(pa.array(random.integers(1, 5, _ROWS))),
            "bytes": few.cast(pa.binary()).take(pa.array(random.integers(0, 5, _ROWS))),
            "same": pa.array(["same"] * _ROWS),
            "various": pa.array([f"{number * 7919}" for number in random.permutation(_ROWS)]),
            "given": few.take(pa.array(random.integers(0, 5, _ROWS))).dictionary_encode(),
        }
    )


@pytest.fixture(scope="module", params=["2.0", "2.1", "2.2"])
def table(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> LanceDataset:
    """Fragments with deleted rows, with a column in a file of its own, and one whose strings are all different."""
    path = tmp_path_factory.mktemp("dictionaries") / "t"
    version = request.param
    dataset = lance_format.write_dataset(_rows(0), path, max_rows_per_file=12_000, data_storage_version=version)
    dataset.delete("id % 7 = 3")
    dataset.add_columns({"added": "concat(few, '!')"})
    other = _rows(1).set_column(1, "few", pa.array([f"{number}" for number in range(_ROWS)]))
    dataset.insert(other.append_column("added", pa.nulls(_ROWS, pa.string())))
    return dataset


@pytest.fixture(autouse=True)
def _few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scanned_fragment, "_LEAST_KEYS", 1)


FILTERS = [
    "few = 'north'",
    "few <> 'north'",
    "few IS NULL",
    "few > 'n' AND id < 15000",
    "few LIKE '%long%' OR large = 'south'",
    "few = 'nowhere'",
    "added = 'north!'",
    "sorted BETWEEN 'place 000100' AND 'place 000120'",
    "sorted = few OR few = large",
    "bytes = X'6E6F727468'",
    "same = 'same' AND few = 'south'",
    "various LIKE '%77%' AND few <> ''",
    "given = 'south' AND few = 'north'",
    "upper(few) = 'NORTH' AND length(sorted) = 12",
    "few IS NOT NULL",
    "CASE WHEN few = 'north' THEN id ELSE 0 END > 100",
]


@pytest.mark.parametrize("predicate", FILTERS)
def test_filtered_rows_are_those_of_strings(
    table: LanceDataset, predicate: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    scans = [
        {"columns": None},
        {"columns": ["id"]},
        {"columns": ["few", "sorted", "added"]},
        {"columns": {"name": "upper(few)", "id": "id"}},
        {"columns": ["few"], "limit": 100, "offset": 50},
        {"columns": ["large", "bytes"], "batch_size": 500},
    ]
    found = [table.to_table(filter=predicate, **scan) for scan in scans]
    count = table.count_rows(predicate)
    monkeypatch.setattr(dictionary_columns, "_TYPES", ())
    dictionary_columns._candidates.cache_clear()
    try:
        wanted = [table.to_table(filter=predicate, **scan) for scan in scans]
        assert count == table.count_rows(predicate) == wanted[0].num_rows
    finally:
        dictionary_columns._candidates.cache_clear()
    for one, other in zip(found, wanted, strict=True):
        one.validate(full=True)
        assert one.schema == other.schema
        assert one.equals(other)


def test_batches_have_dictionaries_where_they_are_asked_for(table: LanceDataset) -> None:
    columns = ["few", "sorted", "large", "same", "various", "given"]
    for predicate in (None, "id >= 0", "few <> 'north' AND id % 2 = 0"):
        scanner = table.scanner(columns, predicate)
        kept = [batch for task in scanner.plan_tasks() for batch in scanner.read_task_as_stored(task)]
        found = pa.concat_tables([pa.Table.from_batches([batch]).cast(scanner.projected_schema) for batch in kept])
        assert found.equals(scanner.to_table().cast(scanner.projected_schema))
        if predicate is None and table.data_storage_version != "2.0":
            types = [batch.schema for batch in kept]
            assert types[0].field("few").type == pa.dictionary(KEY_TYPE, pa.string())
            assert types[-1].field("few").type == pa.string()  # All of its strings are different.
            assert types[0].field("large").type == pa.dictionary(KEY_TYPE, pa.large_string())
            assert {schema.field("various").type for schema in types} == {pa.string()}


def test_pages_of_too_many_items_are_strings(tmp_path: Path) -> None:
    """Keys of 16 bits number 32,767 items, of a page and of the pages of a batch."""
    random = np.random.default_rng(3)
    texts = pa.array([f"{number:05d}" * 10 for number in range(40_000)])
    for size in (30_000, 40_000):
        numbers = random.integers(0, size, 300_000) // 2 + np.repeat([0, size // 2], 150_000)
        table = pa.table({"text": texts.take(pa.array(numbers))})
        stored = lance_format.write_dataset(table, tmp_path / f"{size}")
        wanted = table.filter(pa.compute.field("text") > texts[size - 100].as_py())
        assert stored.to_table(filter=f"text > '{texts[size - 100].as_py()}'").equals(wanted)
        kept = pa.concat_tables(
            [
                pa.table({"text": batch.column("text").cast(pa.string())})
                for task in stored.scanner().plan_tasks()
                for batch in stored.scanner().read_task_as_stored(task)
            ]
        )
        assert kept.equals(table)


def test_batches_of_long_strings_are_bounded(tmp_path: Path) -> None:
    """Keys of a few bytes stand for strings of many, which batches have in the end."""
    texts = pa.array([f"{number}" * 12_000 for number in range(10, 40)])
    rows = pa.table({"text": texts.take(pa.array(np.arange(60_000) % 30)), "number": np.arange(60_000)})
    stored = lance_format.write_dataset(rows, tmp_path / "t")
    for columns in (["number"], ["text", "number"]):
        count = 0
        scanner = stored.scanner(columns, "text <> '7' AND text < concat(CAST(number AS string), 'x') || text")
        for batch in scanner.to_batches():
            count += batch.num_rows
            assert batch.nbytes < 160 << 20
        assert count > 10_000
