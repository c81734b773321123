"""Listings that show the latest versions late: errors may result, but nothing is lost or doubled."""

from __future__ import annotations

import contextlib
import dataclasses
from pathlib import Path

import pytest

import lance_format
from lance_format import CommitError, DatasetNotFoundError
from lance_format.object_store.local import LocalStore
from lance_format.object_store.store import FirstNames
from lance_format.table.dataset.dataset import LanceDataset
from lance_format.table.versions.history import load_latest


class LaggingStore(LocalStore):
    """Local files; each listing of versions lacks the latest ones, for some listings after they were made."""

    def __init__(self, lag: int) -> None:
        self._lag = lag
        self._seen: dict[str, int] = {}

    def list_names(self, prefix: str) -> list[str]:
        found = []
        for name in super().list_names(prefix):
            if name.endswith(".manifest"):
                self._seen[name] = self._seen.get(name, -1) + 1
                if self._seen[name] < self._lag:
                    continue
            found.append(name)
        return found

    def list_first(self, prefix: str) -> FirstNames:
        return FirstNames(self.list_names(prefix), True)


@pytest.mark.parametrize("lag", range(6))
def test_what_is_acknowledged_is_there_once(tmp_path: Path, lag: int) -> None:
    path = tmp_path / "t"
    table = lance_format.write_dataset({"a": range(100)}, path)
    store = LaggingStore(lag)
    directory = dataclasses.replace(table._table.directory, store=store)
    for _ in range(lag + 1):  # The first version has been there for long.
        store.list_names(directory.versions)
    deleted, unknown = set(), set()
    for number in range(8):
        lagging = LanceDataset(table.uri, dataclasses.replace(table._table, directory=directory))
        unknown.add(number)
        with contextlib.suppress(CommitError):
            lagging.delete(f"a = {number}")
            deleted.add(number)
            unknown.remove(number)
    left = lance_format.dataset(path).to_table()["a"].to_pylist()
    assert len(left) == len(set(left))
    assert deleted.isdisjoint(left)
    assert set(range(100)) - set(left) <= deleted | unknown
    assert deleted or lag > 2
    lance_format.dataset(path).validate()


def test_a_table_that_appears_late_is_told(tmp_path: Path) -> None:
    table = lance_format.write_dataset({"a": range(3)}, tmp_path / "t")
    lagging = dataclasses.replace(table._table.directory, store=LaggingStore(9))
    with pytest.raises(DatasetNotFoundError, match=r"there is one now; try again$"):
        load_latest(lagging)
    LanceDataset.drop(tmp_path / "t")
    (tmp_path / "t" / "_versions").mkdir(parents=True)
    (tmp_path / "t" / "_versions" / "left").touch()
    with pytest.raises(DatasetNotFoundError, match="check the path, or write one first"):
        load_latest(lagging)
