"""Writers that are held up right before they create a manifest, or right after, while others go on and clean up."""

import datetime
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lance_format
from lance_format import CommitStateUnknownError, LanceDataset, RetryableCommitConflictError, StorageError
from lance_format.object_store.local import LocalStore
from lance_format.table.changes.write.plan import plan_write
from lance_format.table.format.lineage import identify, is_ancestor, recall
from lance_format.table.format.table_directory import TableDirectory
from lance_format.table.transaction.operations import Append
from lance_format.table.transaction.transaction import Transaction
from lance_format.table.versions.commit import commit
from lance_format.table.versions.history import load_history
from tests.table.builders import append, column, creation, open_directory, open_store, rows, some_fragment
from tests.table.leftovers import leftovers

REPOSITORY = Path(__file__).parents[3]
AT_ONCE = datetime.timedelta(0)
NUM_ROWS = 30


def merge(path: str) -> None:
    data = pa.table({"a": [1, 1000], "s": ["merged", "inserted"]})
    lance_format.dataset(path).merge_insert("a").when_matched_update_all().when_not_matched_insert_all().execute(data)


def clean(path: Path, library: Any = lance_format) -> None:
    library.dataset(path).cleanup_old_versions(AT_ONCE, retain_versions=1, error_if_tagged_old_versions=False)


def append_row(library: Any, path: str) -> None:
    library.write_dataset(rows(2000, 2001), path, mode="append")


CHANGES: dict[str, Callable[[str], object]] = {
    "append": lambda path: lance_format.write_dataset(rows(1000, 1001), path, mode="append"),
    "overwrite": lambda path: lance_format.write_dataset(rows(1000, 1001), path, mode="overwrite"),
    "delete": lambda path: lance_format.dataset(path).delete("a % 3 = 0"),
    "delete of fragments": lambda path: lance_format.dataset(path).delete("a < 10"),
    "update": lambda path: lance_format.dataset(path).update({"s": "'new'"}, "a % 4 = 0"),
    "merge_insert": merge,
    "add_columns": lambda path: lance_format.dataset(path).add_columns({"c": "a + 1"}),
    "null columns": lambda path: lance_format.dataset(path).add_columns(pa.schema([("c", pa.int64())])),
    "drop_columns": lambda path: lance_format.dataset(path).drop_columns(["s"]),
    "compact_files": lambda path: lance_format.dataset(path).optimize.compact_files(),
    "restore": lambda path: lance_format.dataset(path, 1).restore(),
    "config": lambda path: lance_format.dataset(path).update_config({"k": "v"}),
    "index": lambda path: lance_format.dataset(path).create_scalar_index("a", "ZONEMAP"),
}
EFFECTS: dict[str, Callable[[LanceDataset], bool]] = {
    "append": lambda table: table.count_rows("a = 1000") == 1,
    "overwrite": lambda table: table.to_table()["a"].to_pylist()[0] == 1000,
    "delete": lambda table: table.count_rows("a % 3 = 0 and a < 100") == 0,
    "delete of fragments": lambda table: table.count_rows("a < 10") == 0,
    "update": lambda table: table.count_rows("s = 'new' and a < 100") == 8,
    "merge_insert": lambda table: table.count_rows("s in ('merged', 'inserted')") == 2,
    "add_columns": lambda table: "c" in table.schema.names,
    "null columns": lambda table: "c" in table.schema.names,
    "drop_columns": lambda table: "s" not in table.schema.names,
    "compact_files": lambda table: len(table.get_fragments()) < 3,
    "restore": lambda table: table.count_rows("a = 2000") == 0,
    "config": lambda table: table.config().get("k") == "v",
    "index": lambda table: len(table.list_indices()) == 1,
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "t"
    lance_format.write_dataset(rows(0, NUM_ROWS), path, max_rows_per_file=10).tags.create("first")
    return path


class Held:
    """Lets others act when a manifest is to be created for the first time, before or after that is done."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, moment: str, act: Callable[[], object]) -> None:
        self._put, self._moment, self._act, self.version = LocalStore.put_if_absent, moment, act, 0
        held = self

        def put_if_absent(store: LocalStore, path: str, data: bytes) -> None:
            held.put(store, path, data)

        monkeypatch.setattr(LocalStore, "put_if_absent", put_if_absent)

    def put(self, store: LocalStore, path: str, data: bytes) -> None:
        if self.version or not path.endswith(".manifest"):
            self._put(store, path, data)
            return
        self.version = 2**64 - 1 - int(Path(path).stem)
        if self._moment == "after":
            self._put(store, path, data)
        self._act()
        if self._moment == "before":
            self._put(store, path, data)


def versions(path: Path) -> list[int]:
    return [ref["version"] for ref in lance_format.dataset(path).version_refs()]


def check(path: Path) -> LanceDataset:
    """Check that every version can be read, and that both libraries agree on the latest."""
    for version in versions(path):
        lance_format.dataset(path, version).to_table()
    table = lance_format.dataset(path)
    reference = lance.dataset(path)
    reference.validate()
    assert reference.version == table.version
    assert reference.to_table() == table.to_table()
    return table


@pytest.mark.slow
@pytest.mark.parametrize("cleaner", ["ours", "pylance"])
@pytest.mark.parametrize("kind", CHANGES)
def test_a_write_that_comes_too_late_is_not_lost(
    path: Path, kind: str, cleaner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def go_on() -> None:
        append_row(lance_format, str(path))
        append_row(lance_format, str(path))
        clean(path, lance_format if cleaner == "ours" else lance)
        assert versions(path) == [1, 3]

    held = Held(monkeypatch, "before", go_on)
    landed = True
    try:
        CHANGES[kind](str(path))
    except RetryableCommitConflictError:
        landed = False
    assert held.version == 2
    assert versions(path) == ([1, 3, 4] if landed else [1, 3])
    table = check(path)
    assert EFFECTS[kind](table) or not landed
    assert leftovers(path) == set()
    if not landed:
        assert column(path) == [*range(NUM_ROWS), 2000, 2000]
        CHANGES[kind](str(path))
        assert EFFECTS[kind](check(path))


@pytest.mark.slow
@pytest.mark.parametrize("follower", ["ours", "pylance"])
@pytest.mark.parametrize("cleaned", [False, True], ids=["all there", "cleaned"])
@pytest.mark.parametrize("kind", CHANGES)
def test_a_write_that_others_follow_at_once_stays(
    path: Path, kind: str, cleaned: bool, follower: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A landed change is neither repeated nor removed, for any writer of the next version."""
    library: Any = lance_format if follower == "ours" else lance

    def go_on() -> None:
        library.dataset(path).update_config({"other": "1"})
        if cleaned:
            lance_format.dataset(path).update_config({"other": "2"})
            clean(path)

    Held(monkeypatch, "after", go_on)
    try:
        CHANGES[kind](str(path))
        assert EFFECTS[kind](check(path))
    except CommitStateUnknownError:  # Its versions are gone, and the next one, of pylance, remembered nothing.
        assert (cleaned, follower) == (True, "pylance")
        assert EFFECTS[kind](check(path))
    assert versions(path) == ([1, 4] if cleaned else [1, 2, 3])
    assert leftovers(path) == set()


def test_what_cannot_be_told_is_said_and_nothing_deleted(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pylance, whose versions do not remember others, made all later ones, of which the next is gone."""

    def go_on() -> None:
        append_row(lance, str(path))
        append_row(lance, str(path))
        clean(path, lance)

    Held(monkeypatch, "before", go_on)
    with pytest.raises(CommitStateUnknownError, match="cannot be told"):
        lance_format.write_dataset(rows(1000, 1001), path, mode="append")
    assert versions(path) == [1, 2, 3]
    check(path)
    assert leftovers(path) == set()
    clean(path)
    assert versions(path) == [1, 3]
    assert leftovers(path) == set()


def test_a_process_that_is_stopped_loses_nothing(path: Path) -> None:
    script = (
        "import os, signal, sys, lance_format\n"
        "link = os.link\n"
        "def held(source, target, **options):\n"
        "    os.link = link\n"
        "    os.kill(os.getpid(), signal.SIGSTOP)\n"
        "    link(source, target, **options)\n"
        "os.link = held\n"
        "lance_format.dataset(sys.argv[1]).update_config({'k': 'v'})\n"
    )
    writer = subprocess.Popen([sys.executable, "-c", script, str(path)], cwd=REPOSITORY)
    _, status = os.waitpid(writer.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status)
    for _ in range(3):
        append_row(lance_format, str(path))
    clean(path)
    writer.send_signal(signal.SIGCONT)
    assert writer.wait(timeout=600) == 0
    assert versions(path) == [1, 4, 5]
    assert check(path).config() == {"k": "v"}


def test_the_first_version_may_come_too_late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t"

    def go_on() -> None:
        for _ in range(3):
            append_row(lance_format, str(path))
        clean(path)

    Held(monkeypatch, "before", go_on)
    with pytest.raises(lance_format.DatasetExistsError):
        lance_format.write_dataset(rows(0, 5), path)
    assert versions(path) == [3]
    assert column(path) == [2000] * 3
    assert leftovers(path) == set()


def test_a_table_that_is_dropped_meanwhile_does_not_come_back(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Held(monkeypatch, "before", lambda: LanceDataset.drop(path))
    with pytest.raises(lance_format.CommitConflictError, match="deleted or replaced"):
        lance_format.dataset(path).update_config({"k": "v"})
    assert not [file for file in path.rglob("*") if file.is_file()]


@pytest.mark.parametrize("name", [lambda table: table.tags.create("x", 2), lambda table: table.create_branch("b", 2)])
def test_what_has_got_a_name_is_not_taken_back(
    path: Path, name: Callable[[LanceDataset], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Someone saw the stray among the versions, and named it."""

    def go_on() -> None:
        append_row(lance_format, str(path))
        append_row(lance_format, str(path))
        clean(path)

    delete = LocalStore.delete_exact

    def delete_exact(store: LocalStore, path: str, data: bytes) -> bool:
        name(lance_format.dataset(path.rpartition("/_versions")[0]))
        return delete(store, path, data)

    Held(monkeypatch, "before", go_on)
    monkeypatch.setattr(LocalStore, "delete_exact", delete_exact)
    with pytest.raises(CommitStateUnknownError, match="has got a tag or a branch"):
        lance_format.write_dataset(rows(1000, 1001), path, mode="append")
    assert versions(path) == [1, 2, 3]
    check(path)
    assert leftovers(path) == set()


class TestAgain:
    """Transactions that are committed again after their writer died."""

    def stray(self, path: Path) -> Transaction:
        """Leave what a writer leaves that dies after it created a stray."""
        lance_format.write_dataset(rows(0, 3), path)
        planned = plan_write(str(path), rows(0, 0).schema, mode="append")
        transaction = planned.transaction(planned.write_fragments(rows(1000, 1001).to_batches()))
        store, root = open_store(path)
        commit(TableDirectory(store, root), transaction)
        manifest = path / f"_versions/{2**64 - 1 - 2}.manifest"
        content = manifest.read_bytes()
        manifest.unlink()
        for _ in range(3):
            append_row(lance_format, str(path))
        clean(path)
        manifest.write_bytes(content)
        assert versions(path) == [2, 4]
        return transaction

    def test_a_stray_is_not_taken_for_the_commit(self, tmp_path: Path) -> None:
        transaction = self.stray(tmp_path)
        with pytest.raises(RetryableCommitConflictError):
            commit(open_directory(tmp_path), transaction)
        assert versions(tmp_path) == [4]

    def test_a_stray_is_found_by_who_wants_its_files(self, tmp_path: Path) -> None:
        transaction = self.stray(tmp_path)
        history = load_history(open_directory(tmp_path))
        assert history.find_transaction(transaction.uuid, 1) is None
        found = history.find_transaction(transaction.uuid, 1, strays=True)
        assert found is not None
        assert found.version == 2

    def test_nobody_relies_on_a_stray(self, tmp_path: Path) -> None:
        """An append may follow the append that it is, but not what its place was taken from."""
        self.stray(tmp_path)
        with pytest.raises(RetryableCommitConflictError, match=r"a cleanup removed version 2 of .* while this append"):
            commit(open_directory(tmp_path), append(1, some_fragment()))

    def test_a_cleanup_removes_it(self, tmp_path: Path) -> None:
        self.stray(tmp_path)
        clean(tmp_path)
        assert versions(tmp_path) == [4]
        assert leftovers(tmp_path) == set()

    def test_a_commit_is_recognised_after_a_cleanup(self, path: Path) -> None:
        store, root = open_store(path)
        transaction = Transaction(1, Append(()))
        assert commit(TableDirectory(store, root), transaction).version == 2
        append_row(lance_format, str(path))
        append_row(lance_format, str(path))
        clean(path)
        assert commit(TableDirectory(store, root), transaction).version == 4
        found = load_history(TableDirectory(store, root)).find_transaction(transaction.uuid, 1)
        assert found is not None
        assert found.version == 4
        assert versions(path) == [1, 4]

    def test_what_follows_pylance_is_recognised(self, path: Path) -> None:
        store, root = open_store(path)
        transaction = Transaction(1, Append(()))
        assert commit(TableDirectory(store, root), transaction).version == 2
        append_row(lance, str(path))
        append_row(lance, str(path))
        assert commit(TableDirectory(store, root), transaction).version == 2


def test_versions_remember_their_ancestors(tmp_path: Path) -> None:
    store, root = open_store(tmp_path)
    commit(TableDirectory(store, root), creation(some_fragment()))
    transactions = [append(version, some_fragment()) for version in range(1, 140)]
    for transaction in transactions:
        commit(TableDirectory(store, root), transaction)
    latest = load_history(TableDirectory(store, root)).load(140)
    assert len(latest.ancestors) == 128 * 8
    for version in range(12, 140):
        assert recall(latest, version) == identify(transactions[version - 2].uuid)
        assert is_ancestor(latest, version, transactions[version - 2].uuid)
        assert is_ancestor(latest, version, transactions[0].uuid) is False
    for unknown in (11, 140, 141):
        assert is_ancestor(latest, unknown, transactions[5].uuid) is None


def test_an_error_of_the_proof_is_survived(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once it may be the network; if listings keep failing, the outcome is unknown."""
    failures = iter([1, 1])
    listed = LocalStore.list_names
    created = path / f"_versions/{2**64 - 3}.manifest"

    def list_names(store: LocalStore, prefix: str) -> list[str]:
        if created.exists() and prefix.endswith("_versions") and next(failures, None):
            raise StorageError("out of order")
        return listed(store, prefix)

    monkeypatch.setattr(LocalStore, "list_names", list_names)
    lance_format.write_dataset(rows(50, 51), path, mode="append")
    created = path / f"_versions/{2**64 - 4}.manifest"
    failures = iter([1] * 3)
    with pytest.raises(CommitStateUnknownError, match=r"version 3 of .* was created, but .* \(out of order\)$"):
        lance_format.write_dataset(rows(60, 61), path, mode="append")
    assert column(path) == [*range(NUM_ROWS), 50, 60]
    assert leftovers(path) == set()


def test_the_trace_of_a_version_names_those_before_it(tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    first = lance_format.write_dataset(rows(0, 3), path).trace()
    second = lance_format.write_dataset(rows(3, 5), path, mode="append").trace()
    assert len(first) == 8
    assert second[8:] == first != second[:8]
    append_row(lance, path)  # pylance leaves the memory out.
    third = lance_format.dataset(path).trace()
    assert len(third) == 8
    assert third not in second
