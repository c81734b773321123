"""Rows of tiny fragments, whose files are read as a whole, are those that are found one by one."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lance_format
from lance_format.table.fragments import joined_take, small_fragments
from tests.arrays import same_values


def _rows(num_rows: int, seed: int) -> pa.Table:
    numbers = np.random.default_rng(seed).integers(0, 1000, num_rows)
    pair = pa.struct({"a": pa.int64(), "b": pa.string()})
    return pa.table(
        {
            "number": numbers,
            "text": pa.array([None if n % 5 == 0 else f"the text {n}" for n in numbers.tolist()], pa.string()),
            "list": pa.array([[n] * (n % 3) if n % 7 else None for n in numbers.tolist()], pa.list_(pa.int64())),
            "pair": pa.array([{"a": n, "b": f"{n}"} if n % 4 else None for n in numbers.tolist()], pair),
            "few": pa.array([f"k{n % 3}" for n in numbers.tolist()]).dictionary_encode(),
            "flag": numbers % 2 == 0,
        }
    )


def _table(path: Path, sizes: list[int], deleted: int) -> lance_format.LanceDataset:
    dataset = lance_format.write_dataset(_rows(sizes[0], 0), path)
    for seed, size in enumerate(sizes[1:], 1):
        dataset.insert(_rows(size, seed))
        if seed == len(sizes) // 2:
            dataset.add_columns({"double": "number * 2"})
            dataset.add_columns(pa.schema([pa.field("none", pa.int32())]))
    if deleted:
        dataset.delete(f"number % {deleted} = 1")
    return dataset


@settings(max_examples=25)
@given(
    sizes=st.lists(st.integers(1, 60), min_size=2, max_size=12),
    deleted=st.sampled_from([0, 2, 9]),
    places=st.lists(st.integers(0, 10**6), min_size=1, max_size=50),
)
def test_takes(tmp_path_factory: pytest.TempPathFactory, sizes: list[int], deleted: int, places: list[int]) -> None:
    dataset = _table(tmp_path_factory.mktemp("tiny") / "t", sizes, deleted)
    if not dataset.count_rows():
        return
    rows = [place % dataset.count_rows() for place in places]
    columns = dataset.schema.names
    found = dataset.take(rows, columns)
    assert same_values(found, dataset.to_table(columns).take(rows))
    predicate = "number % 3 = 0"
    filtered = dataset.to_table(columns, filter=predicate)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(small_fragments, "_TINY_PAGE_BYTES", 0)
        dataset = lance_format.dataset(dataset.uri)
        assert same_values(dataset.take(rows, columns), found)
        assert same_values(dataset.to_table(columns, filter=predicate), filtered)


def test_the_way_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = Mock(wraps=joined_take.take_joined)
    monkeypatch.setattr(joined_take, "take_joined", counted)
    dataset = _table(tmp_path / "t", [20] * 6, 0)
    dataset.take([3, 50, 100])
    assert not counted.called
    monkeypatch.setattr(small_fragments, "_MOST_TINY_BYTES", 0)
    dataset.take([3, 50, 100])
    assert counted.called


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    dataset = _table(tmp_path / "t", [20] * 4, 0)
    path = tmp_path / "t" / "data" / dataset.get_fragments()[1].metadata.files[0].path
    damaged = bytearray(path.read_bytes())
    damaged[:100] = bytes(100)
    path.write_bytes(damaged)
    with pytest.raises(lance_format.ChecksumError, match=path.name):
        lance_format.dataset(dataset.uri).take([3, 25, 50])
