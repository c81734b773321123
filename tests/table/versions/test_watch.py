"""The latest version, looked up by asking for the next one, and by listing from time to time."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path

import lance
import pyarrow as pa
import pytest

import lance_format
from lance_format.object_store.local import LocalStore
from lance_format.object_store.store import FirstNames
from lance_format.table.versions.watch import VersionWatch


class CountingStore(LocalStore):
    """Local files that count listings."""

    num_listings = 0

    def list_first(self, prefix: str) -> FirstNames:
        self.num_listings += 1
        return super().list_first(prefix)


class Clock:
    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


class Watched:
    """A table that is watched: with names of one scheme, by a clock that the test moves."""

    def __init__(self, path: Path, *, is_v2: bool = True) -> None:
        self.path, self.is_v2 = path, is_v2
        self.create(1)
        directory = lance_format.dataset(path)._table.directory
        self.store, self.clock = CountingStore(), Clock()
        self.watch = VersionWatch(dataclasses.replace(directory, store=self.store), self.clock)

    def create(self, num_versions: int) -> None:
        lance.write_dataset(pa.table({"a": [1]}), self.path, enable_v2_manifest_paths=self.is_v2)
        self.append(num_versions - 1)

    def append(self, num_versions: int) -> None:
        for _ in range(num_versions):
            lance.write_dataset(pa.table({"a": [1]}), self.path, mode="append")


@pytest.fixture(params=[True, False], ids=["V2", "V1"])
def watched(request: pytest.FixtureRequest, tmp_path: Path) -> Watched:
    return Watched(tmp_path / "t", is_v2=request.param)


def test_the_next_version_is_found_at_once_and_without_listings_before(watched: Watched) -> None:
    watch, store = watched.watch, watched.store
    assert watch.latest == watch.look_up() == watch.look_up() == 1
    assert store.num_listings == 1
    evidence = watch.evidence
    watched.append(3)
    assert watch.look_up() == watch.look_up() == 4
    assert store.num_listings == 2
    assert watch.evidence != evidence


def test_versions_behind_one_that_is_gone_are_found_by_a_listing(watched: Watched) -> None:
    """The known version stays because of a tag."""
    watched.append(2)
    assert watched.watch.look_up() == 3
    table = lance_format.dataset(watched.path)
    table.tags.create("kept", 3)
    watched.append(4)
    lance_format.dataset(watched.path).cleanup_old_versions(retain_versions=1, error_if_tagged_old_versions=False)
    assert {found["version"] for found in table.versions()} == {3, 7}
    assert watched.watch.look_up() == 3
    watched.clock.seconds = 10
    assert watched.watch.look_up() == 7


def test_another_table_at_the_path_changes_the_evidence(watched: Watched) -> None:
    watched.append(2)
    assert watched.watch.look_up() == 3
    evidence = watched.watch.evidence
    shutil.rmtree(watched.path)
    watched.create(3)
    watched.clock.seconds = 10
    assert watched.watch.look_up() == 3
    assert watched.watch.evidence != evidence


def test_a_table_that_is_not_there_has_no_version(watched: Watched) -> None:
    assert watched.watch.evidence is None
    shutil.rmtree(watched.path)
    assert watched.watch.look_up() == 0
    watched.create(2)
    assert watched.watch.look_up() == 2
