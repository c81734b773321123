"""Filters that name rows by ids, addresses, offsets or fragments: they return the rows of a scan, and read little."""

from __future__ import annotations

from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lance_format
from lance_format.table.dataset.dataset import LanceDataset
from tests.table.counting import counted

_RNG = np.random.default_rng(2)
_ADDRESSES = [0, 5, 99, 100, 2**32, 2**32 + 7, 3 * 2**32 + 1, 5 * 2**32 + 3, 2**64 - 1]


@pytest.fixture(scope="module", params=[False, True], ids=["addresses", "stable ids"])
def table(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> LanceDataset:
    """Six fragments, some rows deleted and some moved."""
    path = tmp_path_factory.mktemp("lookup") / "t"
    rows = pa.table({"id": range(500), "text": [f"text {row}" for row in range(500)]})
    dataset = lance_format.write_dataset(rows, path, max_rows_per_file=100, enable_stable_row_ids=request.param)
    dataset.delete("id % 9 = 4")
    dataset.update({"text": "'changed'"}, where="id % 50 = 20")
    dataset.delete("id >= 200 AND id < 300")
    return dataset


_NUMBERS = st.one_of(st.sampled_from(_ADDRESSES), st.integers(0, 600), st.integers(-2, 2**64))
_COLUMNS = st.sampled_from(["_rowid", "_rowaddr", "_rowoffset", "_fragid"])


@st.composite
def _terms(draw: st.DrawFn) -> str:
    name = draw(_COLUMNS)
    number = draw(st.integers(0, 7)) if name == "_fragid" else draw(_NUMBERS)
    operator = draw(st.sampled_from(["=", "IN", "NOT IN", "<", "<=", ">", ">=", "!=", "IS"]))
    if operator == "IS":
        return f"{name} IS NOT NULL"
    if operator.endswith("IN"):
        return f"{name} {operator} ({', '.join(map(str, draw(st.lists(_NUMBERS, min_size=1, max_size=5))))})"
    return f"{name} {operator} {number}"


@pytest.mark.slow
@settings(max_examples=50)
@given(terms=st.lists(st.one_of(_terms(), st.sampled_from(["id < 60", "text = 'changed'"])), min_size=1, max_size=3))
def test_any_terms(table: LanceDataset, terms: list[str]) -> None:
    """OR with a term that never holds is the same filter, and selects no rows beforehand."""
    columns = ["id", "text", "_rowid", "_rowaddr", "_rowoffset", "_fragid"]
    predicate = " AND ".join(terms)
    found = table.to_table(columns, filter=predicate)
    assert found.equals(table.to_table(columns, filter=f"({predicate}) OR length(text) < 0"))
    assert table.count_rows(predicate) == found.num_rows
    scanner = table.scanner(columns, predicate)
    batches = [batch for task in scanner.plan_tasks(1000, min_tasks=3) for batch in scanner.read_task(task)]
    assert pa.Table.from_batches(batches, scanner.projected_schema).equals(found)


def test_rows_of_a_deleted_fragment_and_of_none(table: LanceDataset) -> None:
    ids = table.to_table(["_rowid"])["_rowid"].to_pylist()
    assert table.to_table(["_rowid"], filter=f"_rowid IN ({', '.join(map(str, ids))})")["_rowid"].to_pylist() == ids
    assert table.count_rows("_rowid = 250") == 0
    assert table.count_rows("_rowid < 0") == 0
    assert table.scanner(filter="_rowaddr = 12345678901234").plan_tasks() == []


def test_only_fragments_that_are_named_are_opened(table: LanceDataset) -> None:
    dataset, store = counted(table.uri)
    for predicate in ("_fragid = 1", "_rowaddr = 4294967297", "_rowoffset BETWEEN 90 AND 95"):
        assert dataset.to_table(["text"], filter=predicate).num_rows
        assert len([path for path in store.opened if path.endswith(".lance")]) == 1
        store.drain()
    tasks = dataset.scanner(["text"], "_rowoffset IN (1, 2, 3)").plan_tasks()
    assert [(start, stop) for task in tasks for _, start, stop in task.ranges] == [(1, 4)]


def test_a_lookup_reads_a_few_chunks(tmp_path: Path) -> None:
    num_rows = 300_000
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(_RNG.random(num_rows * 8, np.float32)), 8)
    rows = pa.table(
        {
            "id": _RNG.integers(0, 2**60, num_rows),
            "text": [f"text {row * 7919}" for row in range(num_rows)],
            "vector": vectors,
        }
    )
    lance_format.write_dataset(rows, tmp_path / "t")
    for predicate in ("_rowid = 234567", "_rowaddr IN (234567)", "_rowoffset = 234567 AND id >= 0"):
        dataset, store = counted(tmp_path / "t")
        assert dataset.to_table(filter=predicate).equals(rows.slice(234_567, 1))
        assert store.drain() < 64 * 1024


def test_taken_rows_have_their_offset_in_the_table(table: LanceDataset) -> None:
    """However they are found, and whatever was deleted before them."""
    columns = ["id", "_rowoffset"]
    known = table.scanner(columns, with_row_id=True, with_row_address=True).to_table()
    wanted = [5, 300, 130, 350, 5]
    expected = known.take(wanted)
    taken = {
        "offsets": table.take(wanted, columns),
        "ids": table.take_rows(expected["_rowid"].to_pylist(), columns),
        "addresses": table.take_addresses(expected["_rowaddr"].to_pylist(), columns),
        "of pylance": lance.dataset(table.uri).take(wanted, columns),
    }
    for how, found in taken.items():
        assert found.to_pydict() == expected.select(columns).to_pydict(), how
    fragment = table.get_fragments()[3]
    rows = fragment.take([0, 3, 20], columns)
    begin = [address >> 32 for address in known["_rowaddr"].to_pylist()].index(fragment.fragment_id)
    assert rows.equals(known.select(columns).take([begin, begin + 3, begin + 20]))
