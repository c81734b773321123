"""Filtered scans return the passing rows of an unfiltered one, and read less."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lance_format
from lance_format.table.dataset.dataset import LanceDataset
from lance_format.table.scan import pace
from tests.table.counting import counted

_ROWS = 3000
_RNG = np.random.default_rng(5)


def _rows(num_rows: int) -> pa.Table:
    numbers = _RNG.integers(0, 1000, num_rows)
    return pa.table(
        {
            "key": numbers,
            "cluster": np.sort(_RNG.integers(0, 1000, num_rows)),
            "text": [None if number % 13 == 0 else f"text {number * 7919}" for number in numbers],
            "pair": [{"a": int(n), "b": f"b{n}", "c": {"d": n / 4}} if n % 7 else None for n in numbers],
            "items": pa.array([[f"x{n}"] * (n % 4) if n % 5 else None for n in numbers.tolist()]),
            "few": pa.array([f"item {n % 7}" for n in numbers]).dictionary_encode(),
            "large": [f"{number}" * 100 for number in numbers],
            "vector": pa.FixedSizeListArray.from_arrays(pa.array(_RNG.random(num_rows * 16, np.float32)), 16),
        }
    )


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> LanceDataset:
    """Fragments of different sizes, tiny ones too, with deleted rows, and columns in files of their own or in none."""
    path = tmp_path_factory.mktemp("late") / "t"
    dataset = lance_format.write_dataset(_rows(_ROWS), path, max_rows_per_file=1250)
    dataset = lance_format.write_dataset(_rows(200), path, mode="append", max_rows_per_file=7)
    dataset.add_columns({"double": "key * 2"})
    dataset.delete("key % 10 = 3")
    dataset.insert(_rows(50))
    dataset.add_columns(pa.schema([pa.field("later", pa.int32()), pa.field("more", pa.list_(pa.int64()))]))
    dataset.insert(_rows(700).append_column("later", pa.array(range(700), pa.int32())))
    more = _rows(60).append_column("later", pa.array(range(60), pa.int32()))
    return lance_format.write_dataset(more, path, mode="append", max_rows_per_file=3)


@pytest.fixture(autouse=True)
def _small_groups(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setattr(pace, "_FIRST_GROUP_ROWS", 256)
        patch.setattr(pace, "_FIRST_LIMITED_GROUP_ROWS", 64)
        patch.setattr(pace, "_MAX_GROUP_ROWS", 2048)
        yield


_COLUMNS = [
    ["text"],
    ["pair"],
    ["pair.a"],
    ["pair.c.d", "large"],
    ["items", "_rowid", "few"],
    ["vector", "key"],
    ["double", "later"],
    ["more", "cluster"],
    ["_rowaddr", "_rowoffset", "_fragid"],
    ["pair.b", "_rowoffset"],
    [],
    None,
]
_FILTERS = {
    "key = 500": lambda row: row["key"] == 500,
    "key < 100": lambda row: row["key"] < 100,
    "key >= 0": lambda _: True,
    "key < 0": lambda _: False,
    "key < 700": lambda row: row["key"] < 700,
    "cluster BETWEEN 300 AND 320": lambda row: 300 <= row["cluster"] <= 320,
    "text IS NULL": lambda row: row["text"] is None,
    "pair.a < 300": lambda row: row["pair"] is not None and row["pair"]["a"] < 300,
    "pair.c.d < 20 OR pair IS NULL": lambda row: row["pair"] is None or row["pair"]["c"]["d"] < 20,
    "later < 10": lambda row: row["later"] is not None and row["later"] < 10,
    "later IS NULL AND double > 900": lambda row: (
        row["later"] is None and row["double"] is not None and row["double"] > 900
    ),
    "_rowoffset < 3000 AND key > 900": lambda row: row["_rowoffset"] < 3000 and row["key"] > 900,
    "text LIKE '%7%' AND key = 500": lambda row: row["key"] == 500 and "7" in (row["text"] or ""),
    "pair.a < 900 AND cluster < 100 AND text IS NOT NULL AND cluster > 3": lambda row: (
        row["pair"] is not None and row["pair"]["a"] < 900 and 3 < row["cluster"] < 100 and row["text"] is not None
    ),
    "(later = 5 OR double < 60) AND text <> '' AND _rowoffset > 100": lambda row: (
        (row["later"] == 5 or (row["double"] is not None and row["double"] < 60))
        and row["text"] is not None
        and row["_rowoffset"] > 100
    ),
    "_fragid = 1": lambda row: row["_fragid"] == 1,
}


class _Passing:
    """The rows that pass each filter, computed in Python."""

    def __init__(self, table: LanceDataset) -> None:
        names = ["key", "cluster", "text", "pair", "later", "double", "_rowoffset", "_fragid"]
        rows = table.to_table(names).to_pylist()
        self.rows = {
            text: [row for row, values in enumerate(rows) if holds(values)] for text, holds in _FILTERS.items()
        }


@pytest.fixture(scope="module")
def passing(table: LanceDataset) -> _Passing:
    return _Passing(table)


@pytest.mark.slow
@settings(max_examples=60)
@given(
    columns=st.sampled_from(_COLUMNS),
    predicate=st.sampled_from(list(_FILTERS)),
    limit=st.sampled_from([None, 0, 1, 100, 3000]),
    offset=st.sampled_from([None, 0, 7, 1000]),
    batch_size=st.sampled_from([None, 1, 100, 3000]),
    sparse_share=st.sampled_from([pace._SPARSE_SHARE, 0.2, 1]),
)
def test_filtered_scans(
    table: LanceDataset,
    passing: _Passing,
    columns: list[str] | None,
    predicate: str,
    limit: int | None,
    offset: int | None,
    batch_size: int | None,
    sparse_share: float,
) -> None:
    first = offset or 0
    wanted = passing.rows[predicate][first : None if limit is None else first + limit]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pace, "_SPARSE_SHARE", sparse_share)
        batches = list(table.to_batches(columns, filter=predicate, limit=limit, offset=offset, batch_size=batch_size))
    assert all(0 < batch.num_rows <= (batch_size or 8192) for batch in batches)
    whole = table.to_table(columns)
    assert sum(batch.num_rows for batch in batches) == len(wanted)
    if columns != []:
        found = pa.Table.from_batches(batches, whole.schema)
        assert found.to_pylist() == whole.take(pa.array(wanted, pa.int64())).to_pylist()
    if limit is None and not offset:
        assert table.count_rows(predicate) == len(wanted)


def test_other_columns_are_read_for_the_rows_that_pass_only(table: LanceDataset, tmp_path: Path) -> None:
    dataset, store = counted(table.uri)
    dataset.count_rows("key < 0")
    counting = store.drain()
    dataset, store = counted(table.uri)
    assert not dataset.to_table(["vector", "large", "text"], filter="key < 0").num_rows
    assert store.drain() == counting
    lance_format.write_dataset(_rows(16_000).select(["key", "vector", "large"]), tmp_path / "t", max_rows_per_file=8000)
    dataset, store = counted(tmp_path / "t")
    dataset.to_table(["vector", "large"])
    whole = store.drain()
    assert dataset.to_table(["vector", "large"], filter="key % 1000 = 50").num_rows
    assert store.drain() < whole / 2  # Small files are read whole.


def test_texts_of_the_filter_are_read_for_rows_that_pass_its_numbers(tmp_path: Path) -> None:
    rows = pa.table({"a": _RNG.permutation(50_000), "text": [f"{number:050}" for number in range(50_000)]})
    lance_format.write_dataset(rows, tmp_path / "t")
    dataset, store = counted(tmp_path / "t")
    dataset.count_rows("a < 20")
    numbers = store.drain()
    dataset.count_rows("text LIKE '%7%'")
    texts = store.drain()
    expected = [number for number in rows["a"].to_pylist() if number < 20]
    assert dataset.to_table(["a"], filter="text LIKE '%0%' AND a < 20")["a"].to_pylist() == expected
    assert store.drain() < numbers + texts / 2


def test_term_that_fails_is_tested_for_all_rows(tmp_path: Path) -> None:
    """Whether a query fails does not depend on the rows that pass the other terms."""
    rows = pa.table({"a": _RNG.permutation(5000), "text": ["7"] * 4999 + ["seven"]})
    dataset = lance_format.write_dataset(rows, tmp_path / "t")
    with pytest.raises(lance_format.InvalidInputError, match="has no value for some row"):
        dataset.to_table(filter="a < 0 AND cast(text as int) = 7")


def test_a_limit_stops_early(tmp_path: Path) -> None:
    rows = pa.table({"a": _RNG.integers(0, 2**60, 500_000), "b": _RNG.integers(0, 2**60, 500_000)})
    lance_format.write_dataset(rows, tmp_path / "t", max_rows_per_file=250_000)
    dataset, store = counted(tmp_path / "t")
    assert dataset.to_table(filter="a >= 0", limit=10).equals(rows.slice(0, 10))
    assert store.drain() < 300_000
    assert dataset.to_table(limit=10).equals(rows.slice(0, 10))
    assert store.drain() < 50_000


def test_dictionaries_that_no_array_can_hold_together(tmp_path: Path) -> None:
    """Pages have dictionaries of their own, whose items the keys could not number together."""
    pieces = [
        pa.DictionaryArray.from_arrays(
            pa.array(np.arange(2000) % 100, pa.int8()), pa.array([f"{part} {item}" for item in range(100)])
        )
        for part in range(4)
    ]
    for part, piece in enumerate(pieces):
        batch = pa.table({"key": np.full(2000, part), "d": piece, "e": piece})
        lance_format.write_dataset(batch, tmp_path / "t", mode="append" if part else "create")
    dataset = lance_format.dataset(tmp_path / "t")
    dataset.optimize.compact_files()
    for predicate in ("key >= 0", "d IS NOT NULL", "d = '2 5'"):
        found = dataset.to_table(["d", "e"], filter=predicate, batch_size=1_000_000)
        texts = [text for piece in pieces for text in piece.to_pylist()]
        assert found["e"].to_pylist() == found["d"].to_pylist()
        assert found["e"].to_pylist() == [text for text in texts if predicate != "d = '2 5'" or text == "2 5"]


def test_dictionaries_of_small_fragments_that_no_array_can_hold_together(tmp_path: Path) -> None:
    for part in range(4):
        items = pa.array([f"{part} {item}" for item in range(100)])
        rows = pa.table({"d": pa.DictionaryArray.from_arrays(pa.array(range(100), pa.int8()), items)})
        lance_format.write_dataset(rows, tmp_path / "t", mode="append" if part else "create")
    dataset = lance_format.dataset(tmp_path / "t")
    assert dataset.to_table(filter="d = '2 5'").to_pylist() == [{"d": "2 5"}]
    assert dataset.count_rows("d IS NOT NULL") == 400


def test_a_filter_over_small_fragments_reads_what_a_limit_needs(tmp_path: Path) -> None:
    rows = pa.table({"a": range(300), "b": [f"row {row}" for row in range(300)]})
    lance_format.write_dataset(rows, tmp_path / "t", max_rows_per_file=1)
    dataset = lance_format.dataset(tmp_path / "t")
    found = []
    assert dataset.scanner(filter="a >= 0", limit=1, scan_stats_callback=found.append).to_table().num_rows == 1
    assert dataset.scanner(filter="a < 200", scan_stats_callback=found.append).to_table() == rows.slice(0, 200)
    assert [(metrics.files_opened, metrics.rows_scanned, metrics.fragments_scanned) for metrics in found] == [
        (1, 1, 1),
        (300, 300, 300),
    ]


def test_a_filter_by_a_field_that_no_file_has_keeps_the_others(tmp_path: Path) -> None:
    path, rows = str(tmp_path / "t.lance"), [{"a": 1}, None, {"a": None}]
    lance_format.write_dataset(pa.table({"r": pa.array(rows, pa.struct([("a", pa.int32())]))}), path)
    dataset = lance_format.dataset(path)
    dataset.add_columns(pa.schema([pa.field("r", pa.struct([("c", pa.int64())]))]))
    read = lance_format.dataset(path).to_table(columns=["r.a", "r.c"], filter="r.c IS NULL")
    assert read.column("r.a").to_pylist() == [1, None, None]
