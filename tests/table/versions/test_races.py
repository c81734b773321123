"""Writers that race, as real processes. LANCE_RACE_COUNT sets how much each does in the nightly runs."""

import datetime
import itertools
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lance_format
from tests.processes import at_once
from tests.table.leftovers import leftovers
from tests.table.versions import cleanup_worker, history_worker
from tests.table.versions.history_worker import examine, versions
from tests.table.versions.merge_worker import FIRST_FOUND, KEYS, work_on
from tests.table.versions.race_worker import acknowledged, appends, changes, create, deletes

pytestmark = pytest.mark.system

MERGES = 6
OURS, PYLANCE = "lance_format", "lance"
OURS_AND_PYLANCE = [OURS, PYLANCE, PYLANCE, OURS]
NIGHTLY_COUNT = int(os.environ.get("LANCE_RACE_COUNT", "100"))


def nightly(*arguments: Any) -> Any:
    return pytest.param(*arguments, marks=pytest.mark.nightly)


def race(work: Callable[..., Any], libraries: list[str], path: str, count: int) -> list[Any]:
    """Let workers do their work at the same time, and return what they return."""
    return at_once(*(partial(work, library, path, number, count) for number, library in enumerate(libraries)))


def check(path: str) -> pa.Table:
    """Check that both readers see one valid table without gaps in its history, and return its rows."""
    ours, reference = lance_format.dataset(path), lance.dataset(path)
    reference.validate()
    table = ours.to_table()
    assert table == reference.to_table()
    assert [entry["version"] for entry in ours.versions()] == list(range(1, ours.version + 1))
    return table


@pytest.mark.parametrize(
    ("libraries", "count"),
    [
        ([OURS] * 4, 10),
        (OURS_AND_PYLANCE * 2, 10),
        nightly(OURS_AND_PYLANCE * 2, 25),
        nightly([OURS] * 8, 25),
        nightly([OURS] * 16, 12),
        nightly(OURS_AND_PYLANCE * 2, NIGHTLY_COUNT),
    ],
    ids=lambda value: str(len(value)) if isinstance(value, list) else str(value),
)
def test_every_append_lands_once(tmp_path: Path, libraries: list[str], count: int) -> None:
    path = str(tmp_path / "t")
    lance_format.write_dataset(pa.table({"a": [-1]}), path)
    race(appends, libraries, path, count)
    expected = [-1] + [1000 * number + row for number in range(len(libraries)) for row in range(count)]
    assert sorted(check(path)["a"].to_pylist()) == sorted(expected)
    table = lance_format.dataset(path)
    assert table.version == 1 + len(libraries) * count
    ids = [fragment.fragment_id for fragment in table.get_fragments()]
    assert ids == list(range(len(ids)))


@pytest.mark.parametrize("count", [20, nightly(NIGHTLY_COUNT)])
def test_what_was_acknowledged_is_there_whatever_is_cleaned_up(tmp_path: Path, count: int) -> None:
    """After every commit all other versions go, among them those that other writers are just about to follow."""
    path = tmp_path / "t"
    config = {"lance.auto_cleanup.interval": "1", "lance.auto_cleanup.retain_versions": "1"}
    lance_format.write_dataset(pa.table({"a": [-1]}), path).update_config(config)
    results = race(acknowledged, [OURS] * 4, str(path), count)
    added, unknown = (list(itertools.chain(*rows)) for rows in zip(*results, strict=True))
    table = lance_format.dataset(path)
    rows = table.to_table()["a"].to_pylist()
    added += [row for row in unknown if row in rows]
    assert sorted(rows) == [-1, *sorted(added)]
    assert table.version == 2 + len(added)
    if not unknown:
        assert leftovers(path) == set()
    lance.dataset(path).validate()


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable ids"])
@pytest.mark.parametrize("count", [10, nightly(NIGHTLY_COUNT)])
def test_everybody_finds_the_rows_as_it_left_them(tmp_path: Path, count: int, stable: bool) -> None:
    """Deletes, updates, appends, compactions and new columns of both libraries, each worker changing its own rows."""
    path = str(tmp_path / "t")
    numbers = range(len(OURS_AND_PYLANCE))
    columns = {
        "owner": [worker for worker in numbers for _ in range(20)],
        "a": [1000 * worker + row for worker in numbers for row in range(20)],
        "n": [0] * 20 * len(numbers),
    }
    lance_format.write_dataset(pa.table(columns), path, max_rows_per_file=30, enable_stable_row_ids=stable)
    made = [row for owned in race(changes, OURS_AND_PYLANCE, path, count) for row in owned]
    table = check(path)
    assert sorted(zip(table["a"].to_pylist(), table["n"].to_pylist(), strict=True)) == sorted(made)
    if stable:
        row_ids = lance_format.dataset(path).to_table(["_rowid"])["_rowid"].to_pylist()
        assert len(set(row_ids)) == len(made)


@pytest.mark.parametrize("count", [12, nightly(NIGHTLY_COUNT * 2)])
def test_deletions_in_one_fragment_are_united(tmp_path: Path, count: int) -> None:
    path = str(tmp_path / "t")
    lance_format.write_dataset(pa.table({"a": range(1000 * count)}), path)
    left = [row for rows in race(deletes, [OURS, PYLANCE, OURS], path, count) for row in rows]
    assert check(path)["a"].to_pylist() == sorted(left)
    assert len(lance_format.dataset(path).get_fragments()) == 1


def test_of_several_creations_one_wins(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    results = at_once(*(partial(create, path, number) for number in range(4)))
    assert sorted(results) == [False, False, False, True]
    assert lance_format.dataset(path).to_table()["a"].to_pylist() == [results.index(True)]
    assert len(list(Path(path, "data").iterdir())) == len(list(Path(path, "_transactions").iterdir())) == 1


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable ids"])
def test_no_merge_is_lost_and_no_key_inserted_twice(tmp_path: Path, stable: bool) -> None:
    path = str(tmp_path / "t")
    schema = pa.schema([(name, pa.int64()) for name in "kabcd"])
    start = pa.table({"k": range(5), "d": [0] * 5} | {name: pa.nulls(5, pa.int64()) for name in "abc"})
    lance_format.write_dataset(start.select(schema.names), path, enable_stable_row_ids=stable)
    works = ["a", "b", "c", "append", "delete", "update"]
    at_once(*(partial(work_on, work, path, MERGES) for work in works))

    table = lance_format.dataset(path)
    assert table.version == 1 + (len(works) + 3) * MERGES
    merged = table.to_table(filter=f"k < {KEYS}").sort_by("k")
    assert merged["k"].to_pylist() == list(range(KEYS))
    for name in "abc":
        assert merged[name].to_pylist() == [MERGES - 1] * KEYS
    assert merged["d"].to_pylist() == [MERGES] * 5 + [None] * (KEYS - 5)
    found = table.to_table(filter=f"k between {FIRST_FOUND} and 999")["k"].to_pylist()
    assert sorted(found) == list(range(FIRST_FOUND, FIRST_FOUND + MERGES))
    if stable:
        ids = table.to_table(columns=["k", "_rowid", "_row_created_at_version"], filter="k < 5").sort_by("k")
        assert ids["_rowid"].to_pylist() == list(range(5))
        assert ids["_row_created_at_version"].to_pylist() == [1] * 5
    reference = lance.dataset(path)
    reference.validate()
    assert reference.to_table() == table.to_table()


def test_cleanup_takes_nothing_that_is_needed(tmp_path: Path) -> None:
    """Writers, readers, tags and branches while old versions are removed all the time."""
    path = str(tmp_path / "t")
    lance_format.write_dataset({"a": [0]}, path)
    roles = ["write", "write", "read", "tag", "branch", "clean"]
    done = at_once(*(partial(cleanup_worker.play, role, path, 10**6 * n, 3.0) for n, role in enumerate(roles, 1)))
    assert all(done), dict(zip(roles, done, strict=True))
    table = lance_format.dataset(path)
    for version in table.version_refs():
        table.checkout_version(version["version"]).to_table()
    values = table.to_table()["a"].to_pylist()
    assert len(values) == len(set(values)) > 1
    lance.dataset(path).validate()
    table.cleanup_old_versions(datetime.timedelta(0), delete_unverified=True)
    table.checkout_latest()
    needed = {file.relative_path for fragment in table.get_fragments() for file in fragment.data_files()}
    assert {f"data/{file.name}" for file in Path(path, "data").iterdir()} == needed


@pytest.mark.parametrize("count", [60, nightly(200)])
def test_every_read_is_of_one_version(tmp_path: Path, count: int) -> None:
    """Readers of both libraries see a version of the writer, or that one was removed, and nothing else."""
    path = str(tmp_path / "t")
    lance_format.write_dataset({"a": range(100), "n": [0] * 100}, path, max_rows_per_file=30)
    roles = [("read", OURS), ("read", PYLANCE)] * 2 + [("clean", OURS), ("clean", PYLANCE), ("write", "both")]
    results = at_once(*(partial(history_worker.play, *role, path, count) for role in roles))
    *readers, removed_by_us, removed_by_pylance, made = results
    for reader in readers:
        assert reader["seen"]
        assert [found for found in reader["seen"] if made[found[0]] != found[1]] == []
    assert removed_by_us + removed_by_pylance > count // 2
    for version in versions(path):
        lance.dataset(path, version).validate()
        assert examine(lance_format.dataset(path, version)) == made[version]
