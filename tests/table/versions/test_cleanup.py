"""Cleanup: files that are or may be needed are kept, under any concurrent change."""

import datetime
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import lance_format
from lance_format import (
    CorruptFileError,
    DatasetNotFoundError,
    InvalidInputError,
    LanceDataset,
    StorageError,
    VersionNotFoundError,
)
from lance_format.object_store.local import LocalStore
from lance_format.table.changes.rows.delete import plan_delete
from lance_format.table.changes.write.plan import plan_write
from lance_format.table.format.duration import parse_duration
from lance_format.table.format.table_directory import TableDirectory
from lance_format.table.versions.cleanup.cleanup import clean_up
from lance_format.table.versions.cleanup.cleanup_policy import CleanupPolicy
from lance_format.table.versions.planned_change import run_change
from lance_format.table.versions.table_version import TableVersion, change
from tests.table.builders import column, rows

AT_ONCE = datetime.timedelta(0)
ALL = CleanupPolicy(error_if_tagged_old_versions=False)


@pytest.fixture
def table(tmp_path: Path) -> LanceDataset:
    """Versions 1 to 4; the last has nothing of the others."""
    for start in range(3):
        lance_format.write_dataset(rows(start, start + 1), tmp_path, mode="append")
    return lance_format.write_dataset(rows(100, 102), tmp_path, mode="overwrite")


class HookedStore(LocalStore):
    """Does something before and after the first deletion of a manifest, and fails after some deletions."""

    def __init__(
        self,
        before: Callable[[], object] = lambda: None,
        after: Callable[[], object] = lambda: None,
        max_deletions: int = 1000,
    ) -> None:
        self.before, self.after, self.left = before, after, max_deletions
        self.deleted: list[str] = []

    def delete(self, path: str) -> None:
        first = not self.deleted
        if first:
            self.before()
        if not self.left:
            raise StorageError(f"cannot delete {path}")
        self.left -= 1
        self.deleted.append(path)
        super().delete(path)
        if first:
            self.after()


def names(path: Path) -> set[str]:
    return {str(file.relative_to(path)) for file in path.rglob("*") if file.is_file()}


def check_versions(path: Path) -> list[int]:
    """Read every version there is, and return their numbers."""
    table = lance_format.dataset(path)
    for version in table.version_refs():
        table.checkout_version(version["version"]).to_table()
    return [version["version"] for version in table.version_refs()]


def test_old_versions_go_with_their_files(table: LanceDataset, tmp_path: Path) -> None:
    before = sum(file.stat().st_size for file in tmp_path.rglob("*") if file.is_file())
    stats = table.cleanup_old_versions(AT_ONCE)
    after = sum(file.stat().st_size for file in tmp_path.rglob("*") if file.is_file())
    assert (stats.old_versions, stats.data_files_removed, stats.transaction_files_removed) == (3, 3, 3)
    assert stats.bytes_removed == before - after
    assert check_versions(tmp_path) == [4]
    assert column(tmp_path) == [100, 101]
    with pytest.raises(VersionNotFoundError, match="it has 4"):
        table.checkout_version(1)
    assert table.cleanup_old_versions(AT_ONCE) == type(stats)()


def test_empty_directories_of_killed_writers_go(table: LanceDataset, tmp_path: Path) -> None:
    """One was killed before the first file of an index, a cleanup after the last file beside a data file."""
    table.create_scalar_index("a", "BTREE")
    kept = names(tmp_path / "_indices")
    for name in ("_indices/0b5c9a3e-9f0a-4c57-9d5c-2f6b1f1f9c11", "data/0101-5f0c"):
        (tmp_path / name).mkdir()
    table.cleanup_old_versions()
    assert {path.name for path in (tmp_path / "_indices").iterdir()} == {Path(name).parts[0] for name in kept}
    assert all(path.is_file() for path in (tmp_path / "data").iterdir())
    table.validate()


def test_which_versions_go(table: LanceDataset, tmp_path: Path) -> None:
    assert table.cleanup_old_versions().old_versions == 0
    assert table.cleanup_old_versions(datetime.timedelta(hours=1), 1).old_versions == 0
    assert table.checkout_version(2).cleanup_old_versions(AT_ONCE).old_versions == 1
    assert table.cleanup_old_versions(versions=[1, 3, 4, 9]).old_versions == 1
    assert check_versions(tmp_path) == [2, 4]
    assert table.cleanup_old_versions(retain_versions=1, delete_rate_limit=1000).old_versions == 1


@pytest.mark.parametrize(
    "options",
    [
        {"retain_versions": 0},
        {"retain_versions": True},
        {"older_than": 7},
        {"delete_rate_limit": 0},
        {"older_than": AT_ONCE, "retain_versions": "1"},
    ],
)
def test_options_that_make_no_sense(table: LanceDataset, options: dict[str, object]) -> None:
    with pytest.raises(InvalidInputError):
        table.cleanup_old_versions(**options)  # type: ignore[arg-type]


def test_a_write_in_progress_keeps_its_files(table: LanceDataset, tmp_path: Path) -> None:
    write = plan_write(str(tmp_path), rows(0, 0).schema, mode="append")
    fragments = write.write_fragments(rows(7, 8).to_batches())
    table.cleanup_old_versions(AT_ONCE)
    write.commit(fragments)
    assert column(tmp_path) == [7, 100, 101]


def test_what_dead_writers_left_goes_when_it_is_old_or_by_request(table: LanceDataset, tmp_path: Path) -> None:
    left = [
        tmp_path / name
        for name in (
            "data/1.lance",
            "data/1/2.blob",
            "data/.tmp_3",
            "_deletions/4.bin",
            "_indices/5/6",
            "_versions/.tmp_7",
        )
    ]
    for file in left:
        file.parent.mkdir(exist_ok=True, parents=True)
        file.write_bytes(b"")
    table.cleanup_old_versions(AT_ONCE)
    assert all(file.exists() for file in left)
    week_ago = time.time() - 7 * 24 * 3600
    for file in left[:3]:
        os.utime(file, (week_ago - 1, week_ago - 1))
    os.utime(left[3], (week_ago + 3600, week_ago + 3600))
    table.cleanup_old_versions(AT_ONCE)
    assert [file.exists() for file in left] == [False, False, False, True, True, True]
    table.cleanup_old_versions(AT_ONCE, delete_unverified=True)
    assert not any(file.exists() for file in left)
    assert sorted(x.name for x in tmp_path.iterdir()) == [
        "_deletions",
        "_indices",
        "_transactions",
        "_versions",
        "data",
    ]
    assert list((tmp_path / "_indices").iterdir()) == []
    assert column(tmp_path) == [100, 101]


def test_blobs_stay_with_their_data_file(table: LanceDataset, tmp_path: Path) -> None:
    for file in list((tmp_path / "data").iterdir()):
        file.with_suffix("").mkdir()
        (file.with_suffix("") / "1.blob").write_bytes(b"x")
    table.cleanup_old_versions(AT_ONCE)
    (file,) = (tmp_path / "data").glob("*.lance")
    assert {str(x.relative_to(tmp_path / "data")) for x in (tmp_path / "data").rglob("*")} == {
        file.name,
        file.stem,
        f"{file.stem}/1.blob",
    }


def test_tags_keep_versions(table: LanceDataset, tmp_path: Path) -> None:
    table.tags.create("two", 2)
    before = names(tmp_path)
    with pytest.raises(InvalidInputError, match=r"'two' \(2\)"):
        table.cleanup_old_versions(AT_ONCE)
    assert names(tmp_path) == before
    assert table.cleanup_old_versions(AT_ONCE, error_if_tagged_old_versions=False).old_versions == 2
    assert check_versions(tmp_path) == [2, 4]
    table.tags.delete("two")
    assert table.cleanup_old_versions(AT_ONCE).old_versions == 1


def test_branches_keep_what_they_grew_from(table: LanceDataset, tmp_path: Path) -> None:
    branch = table.create_branch("a", 2)
    lance_format.write_dataset(rows(50, 51), branch.uri, mode="append")
    inner = branch.create_branch("a/b", ("a", 3))
    assert table.cleanup_old_versions(AT_ONCE).old_versions == 2
    branch.checkout_latest()
    branch.delete("a = 50")
    assert branch.cleanup_old_versions(AT_ONCE).old_versions == 1
    assert check_versions(tmp_path) == [2, 4]
    assert column(branch.uri) == [0, 1]
    assert column(inner.uri) == [0, 1, 50]
    table.branches.delete("a/b")
    branch.cleanup_old_versions(AT_ONCE, delete_unverified=True)
    table.branches.delete("a")
    table.cleanup_old_versions(AT_ONCE)
    assert check_versions(tmp_path) == [4]
    assert len(list((tmp_path / "data").iterdir())) == 1


def test_a_version_that_cannot_be_read_stops_it(table: LanceDataset, tmp_path: Path) -> None:
    (tmp_path / "_versions" / f"{2**64 - 3}.manifest").write_bytes(b"garbage")
    before = names(tmp_path)
    with pytest.raises(CorruptFileError):
        table.cleanup_old_versions(AT_ONCE)
    assert names(tmp_path) == before


def test_every_version_that_is_seen_is_whole(table: LanceDataset, tmp_path: Path) -> None:
    """Wherever a cleanup is cut off."""
    for number in range(50):
        store = HookedStore(max_deletions=number % 4)
        try:
            clean_up(TableDirectory(store, str(tmp_path)), None, table.version, ALL)
        except StorageError:
            assert len(store.deleted) == number % 4
        assert 4 in check_versions(tmp_path)
        assert column(tmp_path) == [100, 101]
    assert check_versions(tmp_path) == [4]


def test_manifests_go_first_and_the_oldest_first(table: LanceDataset, tmp_path: Path) -> None:
    store = HookedStore()
    clean_up(TableDirectory(store, str(tmp_path)), None, table.version, ALL)
    assert [Path(path).name for path in store.deleted[:3]] == [f"{2**64 - 1 - v}.manifest" for v in (1, 2, 3)]
    assert not any(path.endswith(".manifest") for path in store.deleted[3:])


def test_files_that_cannot_be_deleted_are_counted(table: LanceDataset, tmp_path: Path) -> None:
    stats = clean_up(TableDirectory(HookedStore(max_deletions=3), str(tmp_path)), None, table.version, ALL)
    assert (stats.old_versions, stats.failed_deletes) == (3, 6)


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_tag_made_meanwhile_keeps_its_version(table: LanceDataset, tmp_path: Path, moment: str) -> None:
    path = tmp_path / "_refs/tags/t.json"
    table.tags.create("t", 1)
    content = path.read_bytes()
    path.unlink()
    store = HookedStore(**{moment: lambda: path.write_bytes(content)})  # type: ignore[arg-type]
    stats = clean_up(TableDirectory(store, str(tmp_path)), None, table.version, ALL)
    assert stats.old_versions == 2
    assert check_versions(tmp_path) == [1, 4]
    assert table.checkout_version("t").to_table()["a"].to_pylist() == [0]


def test_a_branch_made_meanwhile_keeps_its_files(table: LanceDataset, tmp_path: Path) -> None:
    store = HookedStore(before=lambda: table.create_branch("b", 3))
    clean_up(TableDirectory(store, str(tmp_path)), None, table.version, ALL)
    assert check_versions(tmp_path) == [3, 4]
    assert table.checkout_version(("b", None)).to_table()["a"].to_pylist() == [0, 1, 2]


def test_who_tags_a_version_that_goes_is_told(
    table: LanceDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = LocalStore.put_if_absent

    def clean_up_first(store: LocalStore, path: str, data: bytes) -> None:
        if "_refs" in path:
            monkeypatch.undo()
            clean_up(TableDirectory(LocalStore(), str(tmp_path)), None, table.version, ALL)
        put(store, path, data)

    for make in (lambda: table.tags.create("t", 2), lambda: table.create_branch("b", 2)):
        lance_format.write_dataset(rows(0, 1), tmp_path, mode="append")
        monkeypatch.setattr(LocalStore, "put_if_absent", clean_up_first)
        with pytest.raises(VersionNotFoundError):
            make()
    assert (table.tags.list(), table.branches.list()) == ({}, {})


def test_a_version_committed_meanwhile_keeps_its_files(table: LanceDataset, tmp_path: Path) -> None:
    restored = table.checkout_version(3)
    store = HookedStore(before=restored.restore)
    clean_up(TableDirectory(store, str(tmp_path)), None, table.version, ALL)
    assert check_versions(tmp_path) == [4, 5]
    assert column(tmp_path) == [0, 1, 2]


class TestAutomaticCleanup:
    def test_it_comes_with_every_so_many_versions(self, table: LanceDataset, tmp_path: Path) -> None:
        table.update_config({"lance.auto_cleanup.interval": "4", "lance.auto_cleanup.retain_versions": "2"})
        found = []
        for start in range(4):
            lance_format.write_dataset(rows(start, start + 1), tmp_path, mode="append")
            found.append(check_versions(tmp_path))
        assert found == [[1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 6, 7], [7, 8], [7, 8, 9]]
        table.checkout_latest()
        table.update_config({"lance.auto_cleanup.interval": "1", "lance.auto_cleanup.older_than": "0s"})
        table.delete("a = 0")
        table.update_config({"lance.auto_cleanup.retain_versions": None})
        assert check_versions(tmp_path) == [table.version - 1, table.version]

    @pytest.mark.parametrize(
        "config",
        [
            {"interval": "0", "retain_versions": "1"},
            {"interval": "soon", "retain_versions": "1"},
            {"interval": "1", "retain_versions": "-1"},
            {"interval": "1", "older_than": "a while"},
            {"interval": "1", "older_than": "999999999999999999years"},
            {"interval": "1", "older_than": "1h"},
            {"interval": "1"},
            {"retain_versions": "1"},
        ],
    )
    def test_what_it_cannot_do_harms_no_commit(
        self, table: LanceDataset, tmp_path: Path, config: dict[str, str]
    ) -> None:
        table.update_config({f"lance.auto_cleanup.{key}": value for key, value in config.items()})
        lance_format.write_dataset(rows(7, 8), tmp_path, mode="append")
        assert check_versions(tmp_path) == [1, 2, 3, 4, 5, 6]

    def test_tags_stay(self, table: LanceDataset, tmp_path: Path) -> None:
        table.tags.create("t", 2)
        table.update_config({"lance.auto_cleanup.interval": "1", "lance.auto_cleanup.retain_versions": "1"})
        assert check_versions(tmp_path) == [2, 4, 5]


def test_a_tagged_version_is_restored_though_later_ones_are_gone(table: LanceDataset, tmp_path: Path) -> None:
    table.tags.create("good", 2)
    table.cleanup_old_versions(AT_ONCE, error_if_tagged_old_versions=False)
    assert check_versions(tmp_path) == [2, 4]
    restored = table.checkout_version("good")
    restored.restore()
    assert restored.version == 5
    assert column(tmp_path) == [0, 1]
    assert restored.read_transaction(5).read_version == 4


def test_a_version_that_is_gone_is_not_restored(table: LanceDataset, tmp_path: Path) -> None:
    old = table.checkout_version(2)
    table.cleanup_old_versions(AT_ONCE)
    with pytest.raises(VersionNotFoundError, match="no version 2; it has 4"):
        old.restore()
    assert check_versions(tmp_path) == [4]


def test_a_change_starts_again_if_a_file_of_its_basis_goes(tmp_path: Path) -> None:
    """Though the version is still listed: cleanups of pylance remove manifests after the files that they name."""
    planned = lance_format.write_dataset(rows(0, 3), tmp_path)._table
    (removed,) = (tmp_path / "data").iterdir()
    attempts = []

    def attempt(version: TableVersion) -> TableVersion:
        attempts.append(version.manifest.version)
        if len(attempts) == 1:
            lance_format.write_dataset(rows(1, 4), tmp_path, mode="overwrite")
            removed.unlink()
        return run_change(version, plan_delete(version, "a = 1"))[0]

    change(planned, attempt)
    assert attempts == [1, 2]
    assert column(tmp_path) == [2, 3]
    next(iter((tmp_path / "data").iterdir())).unlink()
    with pytest.raises(DatasetNotFoundError):
        lance_format.dataset(tmp_path).delete("a = 2")


def at_next_read_of_a_manifest(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Do something after the versions have been listed, and before one of them is read."""
    read = LocalStore.read

    def act_first(store: LocalStore, path: str, max_bytes: int, tag: str | None = None) -> bytes:
        if path.endswith(".manifest"):
            monkeypatch.undo()
            act()
        return read(store, path, max_bytes, tag)

    monkeypatch.setattr(LocalStore, "read", act_first)


def test_versions_that_go_while_they_are_listed(
    table: LanceDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_next_read_of_a_manifest(monkeypatch, lambda: table.cleanup_old_versions(versions=[1, 3]))
    assert [version["version"] for version in table.versions()] == [2, 4]


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_a_write_begins_though_what_was_the_latest_version_is_gone(
    table: LanceDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    def go_on() -> None:
        other = lance_format.write_dataset(rows(200, 201), tmp_path, mode="append")
        other.cleanup_old_versions(AT_ONCE)

    at_next_read_of_a_manifest(monkeypatch, go_on)
    lance_format.write_dataset(rows(7, 8), tmp_path, mode=mode)
    assert column(tmp_path) == ([7, 100, 101, 200] if mode == "append" else [7])


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("14days", 14 * 86400),
        ("2h 30m", 9000),
        ("90s", 90),
        ("1w2d", 9 * 86400),
        ("5min", 300),
        ("1M", 2630016),
        (" 0s ", 0),
    ],
)
def test_durations(text: str, seconds: int) -> None:
    assert parse_duration(text) == datetime.timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", " ", "5", "h", "5 fortnights", "5h x", "-5h", "1.5h", "9" * 18 + "y"])
def test_text_that_is_no_duration(text: str) -> None:
    with pytest.raises(InvalidInputError, match="duration"):
        parse_duration(text)


def test_a_change_starts_again_if_its_basis_goes(table: LanceDataset, tmp_path: Path) -> None:
    """Whether the version that was planned on goes, or one of those that came since."""
    for removed in ([5], [6]):
        base = lance_format.write_dataset(rows(0, 3), tmp_path, mode="overwrite").version
        planned = lance_format.dataset(tmp_path)._table
        attempts = []

        def attempt(
            version: TableVersion, base: int = base, removed: list[int] = removed, attempts: list[int] = attempts
        ) -> TableVersion:
            attempts.append(version.manifest.version)
            if len(attempts) == 1:
                for start in (3, 4):
                    lance_format.write_dataset(rows(start, start + 1), tmp_path, mode="append")
                gone = [version + base - 5 for version in removed]
                lance_format.dataset(tmp_path).cleanup_old_versions(versions=gone)
            return run_change(version, plan_delete(version, "a = 1"))[0]

        change(planned, attempt)
        assert attempts == [base, base + 2]
        assert column(tmp_path) == [0, 2, 3, 4]
