"""Killed writers: the table has its state before or after, and the next writer of either library succeeds."""

import contextlib
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import lance
import pytest

import lance_format
from lance_format import DatasetNotFoundError, VersionNotFoundError
from tests.processes import run
from tests.table.builders import rows
from tests.table.versions.kill_worker import OPERATIONS, die_everywhere

pytestmark = pytest.mark.system

FEWEST_CALLS = 12  # A transaction file, a manifest and a hint: at least four calls each.


def state(path: Path) -> tuple[int, list[dict[str, Any]]]:
    ours, reference = lance_format.dataset(path), lance.dataset(path)
    reference.validate()
    assert ours.version == reference.version
    table = ours.to_table()
    assert table == reference.to_table()
    return ours.version, table.to_pylist()


def cases() -> list[Any]:
    """Every operation, with row ids of either kind; some of them are enough for every day."""
    daily = (("append", True), ("update", False), ("compact_files", True))
    return [
        pytest.param(name, stable, marks=[] if (name, stable) in daily else [pytest.mark.nightly])
        for name in OPERATIONS
        for stable in (False, True)
    ]


@pytest.mark.parametrize(("name", "stable"), cases())
def test_a_killed_writer_leaves_the_old_or_the_new_version(tmp_path: Path, name: str, stable: bool) -> None:
    base = tmp_path / "base"
    lance_format.write_dataset(rows(0, 30), base, max_rows_per_file=10, enable_stable_row_ids=stable)
    lance_format.dataset(base).delete("a % 10 = 5")
    old = state(base)
    num_copies = run(partial(die_everywhere, name, str(base), str(tmp_path)))
    new = state(tmp_path / str(num_copies - 1))
    assert new[0] == old[0] + 1
    assert num_copies > FEWEST_CALLS
    found = []
    for number in range(num_copies):
        path = tmp_path / str(number)
        found.append(state(path))
        first, second = (lance_format, lance) if number % 2 else (lance, lance_format)
        first.dataset(path).delete("true")
        second.dataset(path).update_config({"next": "landed"})
        assert state(path) == (found[-1][0] + 2, [])
    landed = found.index(new)
    assert found == [old] * landed + [new] * (num_copies - landed)


def killed(base: Path, tmp_path: Path, name: str) -> Iterator[None]:
    """Put a table repeatedly into the state that a killed process left."""
    table = lance_format.write_dataset(rows(0, 30), base, max_rows_per_file=10)
    table.create_branch("b").delete("a = 1")
    lance_format.write_dataset(rows(30, 31), f"{base}/tree/b", mode="append")
    num_copies = run(partial(die_everywhere, name, str(base), str(tmp_path)))
    assert num_copies > FEWEST_CALLS
    for number in range(num_copies):
        shutil.rmtree(base, ignore_errors=True)
        if (tmp_path / str(number)).exists():  # Else it was dropped.
            shutil.move(tmp_path / str(number), base)
        yield


def check_branches(base: Path) -> list[str]:
    """Check that all branches that are listed can be read, and return their names."""
    table = lance_format.dataset(base)
    assert table.to_table() == rows(0, 30)
    assert lance.dataset(base).to_table() == rows(0, 30)
    for name in table.branches.list():
        found = table.checkout_version((name, None)).to_table()["a"].to_pylist()
        assert found == {"b": [0, *range(2, 31)], "c/d": list(range(30))}[name]
        assert lance.dataset(base).checkout_version((name, None)).to_table()["a"].to_pylist() == found
    return list(table.branches.list())


def test_a_killed_creation_of_a_branch_leaves_none_or_all_of_it(tmp_path: Path) -> None:
    base = tmp_path / "base"
    found = []
    for _ in killed(base, tmp_path, "create_branch"):
        found.append(check_branches(base))
        table = lance_format.dataset(base)
        if "c/d" not in found[-1]:
            with pytest.raises(VersionNotFoundError, match="has no branch 'c/d'; it has b"):
                table.checkout_version(("c/d", None))
            table.create_branch("c/d")
            assert check_branches(base) == ["b", "c/d"]
        table.branches.delete("c/d")
        assert check_branches(base) == ["b"]
        assert [path.name for path in (base / "tree").iterdir()] == ["b"]
    assert found[0] == ["b"]
    assert found[-1] == ["b", "c/d"]


def test_a_killed_deletion_of_a_branch_is_completed(tmp_path: Path) -> None:
    base = tmp_path / "base"
    found = []
    for turn in enumerate(killed(base, tmp_path, "delete_branch")):
        found.append(check_branches(base))
        table = lance_format.dataset(base)
        if turn[0] % 2 and not found[-1]:
            table.create_branch("b")  # The name is free.
        with contextlib.suppress(VersionNotFoundError):
            table.branches.delete("b")
        assert check_branches(base) == []
        assert not (base / "tree").exists()
    assert found[0] == ["b"]
    assert found[-1] == []


def test_a_killed_drop_is_completed(tmp_path: Path) -> None:
    base = tmp_path / "base"
    for _ in killed(base, tmp_path, "drop"):
        if base.exists() and list(base.iterdir()):
            lance_format.LanceDataset.drop(base)
        assert not base.exists() or not list(base.iterdir())


def test_a_killed_clone_is_no_table_or_all_of_it(tmp_path: Path) -> None:
    base = tmp_path / "base"
    found = []
    for _ in killed(base, tmp_path, "deep_clone"):
        try:
            clone = lance_format.dataset(base / "clone")
        except DatasetNotFoundError:
            lance_format.dataset(base).deep_clone(base / "clone", 1)
            clone = lance_format.dataset(base / "clone")
            found.append(False)
        else:
            found.append(True)
        assert clone.to_table() == rows(0, 30)
        lance.dataset(base / "clone").validate()
    assert found == sorted(found)
    assert {False, True} == set(found)
