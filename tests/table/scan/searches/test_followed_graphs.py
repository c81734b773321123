"""Searches by the graphs of an index: when they are followed, and what they return."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_format
from lance_format import LanceDataset
from lance_format.vectors.graphs import StoredGraph

_DIMENSION = 8
_QUERY = np.zeros(_DIMENSION, np.float32)


@pytest.fixture(params=["IVF_HNSW_SQ", "IVF_HNSW_PQ"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> LanceDataset:
    numbers = np.random.default_rng(2).normal(size=3000 * _DIMENSION).astype(np.float32)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(numbers), _DIMENSION)
    rows = pa.table({"id": pa.array(range(3000)), "v": vectors})
    made = lance_format.write_dataset(rows, tmp_path / "t.lance", max_rows_per_file=1000)
    parameters = {"num_sub_vectors": 4} if request.param == "IVF_HNSW_PQ" else {}
    made.create_index("v", request.param, num_partitions=2, **parameters)
    return made


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the breadths of the searches of graphs, which are added as they happen."""
    seen: list[int] = []
    nearest = StoredGraph.nearest

    def watched(self: StoredGraph, table: Any, breadth: int) -> Any:
        seen.append(breadth)
        return nearest(self, table, breadth)

    monkeypatch.setattr(StoredGraph, "nearest", watched)
    return seen


def _ids(table: LanceDataset, filter: str | None = None, **search: Any) -> list[int]:
    nearest = {"column": "v", "q": _QUERY, "k": 10, "nprobes": 2, **search}
    found: list[int] = table.to_table(["id"], filter=filter, prefilter=True, nearest=nearest)["id"].to_pylist()
    return found


def test_small_partitions_are_read_as_a_whole(table: LanceDataset, searches: list[int]) -> None:
    whole = _ids(table)
    assert searches == []
    assert _ids(table, ef=3000) == whole
    assert searches == [3000, 3000]
    assert len(set(_ids(table, ef=20)) & set(whole)) >= 5
    assert searches[2:] == [20, 20]


def test_graphs_of_large_partitions_are_followed(
    table: LanceDataset, searches: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = _ids(table)
    monkeypatch.setattr("lance_format.table.indices.vectors.measuring._FEW_BYTES", 1000)
    assert len(set(_ids(table)) & set(whole)) >= 8
    assert searches == [64, 64]
    assert len(_ids(table, k=50, refine_factor=2)) == 50
    assert searches[2:] == [200, 200]
    assert _ids(lance_format.dataset(table.uri, index_cache_size_bytes=100_000)) == whole
    assert len(searches) == 4


def test_filters_measure_all_rows(table: LanceDataset, searches: list[int]) -> None:
    found = _ids(table, filter="id % 2 = 0", ef=500)
    assert len(found) == 10
    assert all(number % 2 == 0 for number in found)
    assert _ids(table, ef=500, distance_range=(1.0, 2.0)) == _ids(table, distance_range=(1.0, 2.0))
    assert searches == []


def test_deleted_rows_lead_to_others(table: LanceDataset, searches: list[int]) -> None:
    """A search of a graph that leads to deleted rows only is followed by one of all rows."""
    near = _ids(table, k=200)
    table.delete(f"id IN ({', '.join(map(str, near))})")
    assert _ids(table, ef=10) == _ids(table)
    assert searches == [10, 10]
    assert not set(_ids(table, ef=10)) & set(near)
