"""What a search has read of the files of an index is kept for the next ones."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_format
from lance_format import LanceDataset
from lance_format.table.indices import index_file


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files of indices that are opened."""
    names: list[str] = []
    real = index_file.opening

    def opening(table: Any, index: Any, name: str) -> Any:
        names.append(name)
        return real(table, index, name)

    monkeypatch.setattr(index_file, "opening", opening)
    return names


@pytest.fixture
def path(tmp_path: Path) -> Path:
    numbers = np.random.default_rng(0).permutation(20_000)
    tags = pa.array([[f"t{number % 40}", f"u{number % 7}"] for number in numbers])
    rows = pa.table({"n": numbers, "few": numbers % 50, "tags": tags})
    table = lance_format.write_dataset(rows, tmp_path / "t.lance", max_rows_per_file=3000)
    table.create_scalar_index("n", "BTREE", zone_size=500)
    table.create_scalar_index("few", "BITMAP")
    table.create_scalar_index("tags", "LABEL_LIST")
    return tmp_path / "t.lance"


FILTERS = [
    "n = 77",
    "n IN (1, 2, 700, 4000, 4001, 15999)",
    "n BETWEEN 480 AND 1010",
    "n = -1",
    "few = 3 AND n < 300",
    "few IN (3, 9, 11)",
    "array_has(tags, 't3') AND n < 2000",
]


def _found(table: LanceDataset, condition: str, **options: Any) -> list[int]:
    return sorted(table.to_table(["n"], filter=condition, **options)["n"].to_pylist())


@pytest.mark.parametrize("condition", FILTERS)
def test_a_search_is_repeated_without_opening_a_file(path: Path, opened: list[str], condition: str) -> None:
    table = lance_format.dataset(path)
    expected = _found(table, condition, use_scalar_index=False)
    assert _found(table, condition) == expected
    assert opened
    opened.clear()
    assert _found(table, condition) == expected
    assert not opened


def test_searches_share_what_they_have_read(path: Path) -> None:
    table = lance_format.dataset(path)
    for condition in [*_random_conditions(), *_random_conditions()]:
        assert _found(table, condition) == _found(table, condition, use_scalar_index=False)


def _random_conditions() -> Iterator[str]:
    random = np.random.default_rng(1)
    for count in (1, 2, 5, 40):
        for _ in range(5):
            numbers = random.integers(-100, 21_000, count)
            yield f"n IN ({', '.join(map(str, numbers))})"
            first = int(random.integers(0, 19_000))
            yield f"n BETWEEN {first} AND {first + int(random.integers(0, 1000))}"


def test_a_cache_without_space_keeps_nothing(path: Path, opened: list[str]) -> None:
    table = lance_format.dataset(path, metadata_cache_size_bytes=0)
    for _ in range(2):
        opened.clear()
        assert _found(table, "n IN (5, 9000, 19999)") == [5, 9000, 19_999]
        assert opened
