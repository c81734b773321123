"""A disk that fails at one call, at every call of every change: nothing is lost, nothing is left over, nothing hidden.

`test_kills` has writers that die instead.
"""

import contextlib
import datetime
import errno
import itertools
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_format
from lance_format import CommitStateUnknownError, LanceDataset, LanceError, LanceOperation, VersionNotFoundError
from lance_format.object_store import local, local_files
from lance_format.table.changes.write.plan import plan_write
from lance_format.table.versions import commit
from tests.table.builders import rows
from tests.table.faults import WRITING, FaultyDisk
from tests.table.leftovers import leftovers

pytestmark = pytest.mark.system


def merge(path: str) -> None:
    data = pa.table({"a": [1, 1000], "s": ["merged", "inserted"]})
    lance_format.dataset(path).merge_insert("a").when_matched_update_all().when_not_matched_insert_all().execute(data)


def move_tag(path: str) -> None:
    lance_format.dataset(path).tags.update("t", 1)


def detach(path: str) -> None:
    fragments = lance_format.dataset(path, 1).get_fragments()[:1]
    operation = LanceOperation.Delete([], [fragments[0].fragment_id], "true")
    LanceDataset.commit(path, operation, read_version=1, detached=True)


def race(path: str) -> None:
    """Delete rows of a fragment with concurrent deletions, so that both are united."""
    stale = lance_format.dataset(path)
    plan = stale.plan_delete("a = 23")
    lance_format.dataset(path).delete("a = 22")
    plan.commit(stale, [task.execute(stale) for task in plan.tasks])


CHANGES: dict[str, Callable[[str], object]] = {
    "append": lambda path: lance_format.write_dataset(rows(30, 55), path, mode="append", max_rows_per_file=10),
    "overwrite": lambda path: lance_format.write_dataset({"z": [1, 2]}, path, mode="overwrite"),
    "new column": lambda path: lance_format.write_dataset({"a": [9], "n": [1]}, path, mode="append", merge_schema=True),
    "delete": lambda path: lance_format.dataset(path).delete("a % 3 = 0"),
    "racing delete": race,
    "update": lambda path: lance_format.dataset(path).update({"s": "'new'"}, "a % 4 = 0"),
    "merge_insert": merge,
    "add_columns": lambda path: lance_format.dataset(path).add_columns({"c": "a + 1"}),
    "alter_columns": lambda path: lance_format.dataset(path).alter_columns({"path": "a", "data_type": pa.int32()}),
    "drop_columns": lambda path: lance_format.dataset(path).drop_columns(["s"]),
    "compact_files": lambda path: lance_format.dataset(path).optimize.compact_files(),
    "index": lambda path: lance_format.dataset(path).create_scalar_index("a", "ZONEMAP"),
    "config": lambda path: lance_format.dataset(path).update_config({"k": "v"}),
    "restore": lambda path: lance_format.dataset(path, 1).restore(),
    "detached": detach,
    "tag": lambda path: lance_format.dataset(path).tags.create("u", 2),
    "moved tag": move_tag,
    "branch": lambda path: lance_format.dataset(path).create_branch("c/d"),
    "branch deletion": lambda path: lance_format.dataset(path).branches.delete("b"),
    "cleanup": lambda path: lance_format.dataset(path).cleanup_old_versions(
        datetime.timedelta(0), error_if_tagged_old_versions=False
    ),
}
DAILY = {"append", "delete", "racing delete", "compact_files", "branch", "branch deletion"}
FAULTS: dict[str, dict[str, Any]] = {
    "broken": {"code": errno.EIO},
    "broken late": {"code": errno.EIO, "is_late": True, "kinds": WRITING},
    "full": {"code": errno.ENOSPC, "keeps_failing": True, "kinds": WRITING},
}
RESUMED = {"branch deletion", "cleanup"}
"""Changes that remove files; interrupted ones leave the rest, and continue when they are run again."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A table with a branch, which names its place: `renew` makes it what it was."""
    path = tmp_path / "t"
    lance_format.write_dataset(rows(0, 30), path, max_rows_per_file=10)
    table = lance_format.dataset(path)
    table.delete("a % 10 = 5")
    table.tags.create("t", 2)
    table.create_branch("b").delete("a = 1")
    shutil.copytree(path, tmp_path / "copy")
    return path


def renew(path: Path) -> None:
    shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(path.parent / "copy", path)


def state(path: Path) -> dict[str, Any]:
    """Describe what users see of a table and its branches."""
    table = lance_format.dataset(path)
    found = {
        "versions": [ref["version"] for ref in table.version_refs()],
        "rows": table.to_table().to_pylist(),
        "schema": table.schema,
        "config": table.config(),
        "indices": [index["name"] for index in table.list_indices()],
        "fragments": len(table.get_fragments()),
        "tags": {name: tag["version"] for name, tag in table.tags.list().items()},
        "detached": len(list((path / "_versions").glob("d*.manifest"))),
    }
    for name in table.branches.list():
        found[f"branch {name}"] = table.checkout_version((name, None)).to_table().to_pylist()
    return found


def cases() -> list[Any]:
    return [
        pytest.param(change, fault, marks=[] if change in DAILY else [pytest.mark.nightly])
        for change in CHANGES
        for fault in FAULTS
    ]


@pytest.mark.parametrize(("change", "fault"), cases())
def test_a_failed_change_leaves_nothing(path: Path, change: str, fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    old = state(path)
    CHANGES[change](str(path))
    new = state(path)
    kept = leftovers(path)
    assert kept == set() or change in RESUMED
    for number in itertools.count():
        renew(path)
        disk = FaultyDisk(**{**FAULTS[fault], "first": number})
        error = None
        with monkeypatch.context() as patched:
            for module in (local, local_files):
                patched.setattr(module, "os", disk)
            try:
                CHANGES[change](str(path))
            except LanceError as raised:
                error = raised
        if error is None and disk.num_calls <= number:
            break
        where = f"call {number}: {error!r}"
        found = state(path)
        if error is None:
            assert found == new, where
        elif change == "racing delete":
            assert {row["a"] for row in old["rows"]} - {row["a"] for row in found["rows"]} <= {22, 23}, where
        elif not isinstance(error, CommitStateUnknownError):
            assert found == old or change in RESUMED, where
        if not isinstance(error, CommitStateUnknownError) and change not in RESUMED:
            assert leftovers(path) == set() or (error is None and disk.refused == {"unlink"}), where
        if fault == "full" and error is not None:
            assert "No space left" in str(error), where
        if change in RESUMED:
            if error is not None:
                with contextlib.suppress(VersionNotFoundError):  # The branch is gone.
                    CHANGES[change](str(path))
            assert state(path) == new, where
            if change == "cleanup":  # What versions named that are gone already may belong to a write in progress.
                lance_format.dataset(path).cleanup_old_versions(datetime.timedelta(0), delete_unverified=True)
            assert leftovers(path) <= kept, where
    assert number >= 5 or change in RESUMED


@pytest.mark.parametrize("change", CHANGES)
def test_an_interrupt_right_after_a_commit_loses_nothing(
    path: Path, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    CHANGES[change](str(path))
    new = state(path)
    renew(path)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, contextlib.suppress(KeyboardInterrupt):
        patched.setattr(commit, "clean_up_if_due", interrupt)
        CHANGES[change](str(path))
    if change != "racing delete":  # The first of the two deletes was interrupted.
        assert state(path) == new
    assert leftovers(path) == set()
    lance_format.dataset(path).validate()


@pytest.mark.parametrize("fault", FAULTS)
def test_a_failed_creation_leaves_no_directory(tmp_path: Path, fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in itertools.count():
        path = tmp_path / str(number) / "t"
        disk = FaultyDisk(**{**FAULTS[fault], "first": number})
        error = None
        with monkeypatch.context() as patched:
            for module in (local, local_files):
                patched.setattr(module, "os", disk)
            try:
                lance_format.write_dataset(rows(0, 5), path)
            except LanceError as raised:
                error = raised
        if error is None:
            assert lance_format.dataset(path).to_table() == rows(0, 5)
            if disk.num_calls <= number:
                break
        elif not isinstance(error, CommitStateUnknownError):
            assert not path.parent.exists(), f"call {number}: {error!r}"
            assert fault != "full" or "No space left" in str(error)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_failed_drop_can_be_run_again(path: Path, fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in itertools.count():
        renew(path)
        disk = FaultyDisk(**{**FAULTS[fault], "first": number})
        error = None
        with monkeypatch.context() as patched:
            for module in (local, local_files):
                patched.setattr(module, "os", disk)
            try:
                LanceDataset.drop(path)
            except LanceError as raised:
                error = raised
        if error is not None:
            LanceDataset.drop(path)
        assert not path.exists(), (number, error, sorted(path.rglob("*")))
        if disk.num_calls <= number:
            break


def test_what_a_conflict_ends_leaves_nothing(tmp_path: Path) -> None:
    """The conflict is found even if the versions that show it are gone."""
    path = tmp_path / "t"
    lance_format.write_dataset(rows(0, 5), path)
    write = plan_write(str(path), rows(0, 0).schema, mode="append")
    fragments = write.write_fragments(rows(5, 6).to_batches())
    for _ in range(3):
        lance_format.write_dataset(rows(5, 6), path, mode="append")
    lance_format.dataset(path).cleanup_old_versions(datetime.timedelta(0))
    before = leftovers(path)
    assert len(before) == 1
    with pytest.raises(LanceError):
        write.commit(fragments)
    assert write.abort(fragments)
    assert leftovers(path) == set()
