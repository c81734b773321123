"""The commit loop, on a real store that fails where it is told to."""

import json
import os
import uuid
from pathlib import Path

import lance
import lance.fragment
import pytest

import lance_format
from lance_format import (
    CommitConflictError,
    CommitStateUnknownError,
    DatasetNotFoundError,
    NotSupportedError,
    RetryableCommitConflictError,
    StorageError,
)
from lance_format.object_store import ObjectExistsError
from lance_format.proto import table_pb2
from lance_format.table.format.manifest_file import serialize_manifest
from lance_format.table.format.table_directory import TableDirectory
from lance_format.table.transaction.operations import Append
from lance_format.table.transaction.transaction import Transaction
from lance_format.table.versions.commit import RetryPolicy, commit
from lance_format.table.versions.history import load_history
from tests.table.builders import append, creation, data_files, open_directory, open_store, rows, some_fragment
from tests.table.faults import Crash, FaultyStore, crash_at, error_at

NO_WAIT = RetryPolicy(max_attempts=20, max_seconds=5)
NUM_CALLS_OF_A_COMMIT = 9


def created(path: Path, num_fragments: int = 1) -> None:
    commit(open_directory(path), creation(*(some_fragment() for _ in range(num_fragments))))


def fragment_ids(path: Path) -> list[int]:
    history = load_history(open_directory(path))
    return [fragment.id for fragment in history.load(history.latest).fragments] if history.names else []


def test_a_fresh_table_has_what_pylance_writes(tmp_path: Path) -> None:
    created(tmp_path)
    names = data_files(tmp_path)
    assert [name for name in names if not name.startswith("0-")] == [
        "18446744073709551614.manifest",
        "latest_version_hint.json",
    ]
    assert json.loads((tmp_path / "_versions/latest_version_hint.json").read_text()) == {"version": 1}
    history = load_history(open_directory(tmp_path))
    manifest = history.load(1)
    on_disk = (tmp_path / "_transactions" / manifest.transaction_file).read_bytes()
    assert on_disk == manifest.inline_transaction


def test_what_is_synced_to_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows and the manifest, each with its directory; readers do without a transaction that a manifest holds."""
    lance_format.write_dataset(rows(0, 10), tmp_path)
    synced: list[str] = []
    sync = os.fsync

    def record(descriptor: int) -> None:
        synced.append(Path(f"/proc/self/fd/{descriptor}").readlink().relative_to(tmp_path).parts[0])
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", record)
    lance_format.write_dataset(rows(10, 20), tmp_path, mode="append")
    assert synced == ["data", "data", "_versions", "_versions"]
    monkeypatch.undo()
    for left in (tmp_path / "_transactions").iterdir():
        left.write_bytes(b"")  # A possible result of a crash of the machine.
    planned_before = lance_format.dataset(tmp_path, 1)._table
    fragments = planned_before.write_fragments(
        rows(20, 30).to_batches(), planned_before.manifest.schema, uuid=str(uuid.uuid4())
    )
    planned_before.commit(Append(tuple(fragments)))
    others = lance.fragment.write_fragments(rows(30, 40), tmp_path)
    lance.LanceDataset.commit(tmp_path, lance.LanceOperation.Append(others), read_version=1)
    assert lance_format.dataset(tmp_path).to_table().equals(rows(0, 40))


def test_appends_planned_on_one_version_follow_one_another(tmp_path: Path) -> None:
    created(tmp_path)
    directory = open_directory(tmp_path)
    planned = [append(1, some_fragment()) for _ in range(3)]
    assert [commit(directory, transaction).version for transaction in planned] == [2, 3, 4]
    assert fragment_ids(tmp_path) == [0, 1, 2, 3]


def test_committing_again_changes_nothing(tmp_path: Path) -> None:
    created(tmp_path)
    directory = open_directory(tmp_path)
    transaction = append(1, some_fragment())
    assert commit(directory, transaction).version == 2
    commit(directory, append(2, some_fragment()))
    before = data_files(tmp_path)
    assert commit(directory, transaction).version == 2
    assert data_files(tmp_path) == before


def test_one_uuid_serves_one_commit(tmp_path: Path) -> None:
    created(tmp_path)
    directory = open_directory(tmp_path)
    transaction = append(1, some_fragment())
    commit(directory, transaction)
    before = data_files(tmp_path)
    with pytest.raises(CommitConflictError, match="other content"):
        commit(directory, Transaction(1, Append((some_fragment(),)), transaction.uuid))
    assert data_files(tmp_path) == before


def test_conflicts_leave_nothing(tmp_path: Path) -> None:
    created(tmp_path)
    directory = open_directory(tmp_path)
    commit(directory, Transaction(1, creation(some_fragment()).operation))
    before = data_files(tmp_path)
    with pytest.raises(CommitConflictError, match="overwrite") as caught:
        commit(directory, append(1, some_fragment()))
    assert not isinstance(caught.value, RetryableCommitConflictError)
    with pytest.raises(RetryableCommitConflictError):
        commit(directory, creation(some_fragment()))
    assert data_files(tmp_path) == before


def test_a_version_that_does_not_say_what_it_changed_is_a_conflict(tmp_path: Path) -> None:
    created(tmp_path)
    store, root = open_store(tmp_path)
    commit(open_directory(root), append(1, some_fragment()))
    history = load_history(open_directory(root))
    manifest = history.load(2)
    message = table_pb2.Manifest.FromString(manifest.message.SerializeToString())
    message.ClearField("transaction_section")
    message.ClearField("transaction_section_deprecated")
    message.transaction_file = ""
    bare = type(manifest)(
        **{name: getattr(manifest, name) for name in manifest.__slots__}
        | {"message": message, "inline_transaction": None}
    )
    store.put(history.manifest_path(2), serialize_manifest(bare))
    with pytest.raises(CommitConflictError, match=r"version 2 .* does not say"):
        commit(open_directory(root), append(1, some_fragment()))
    assert commit(open_directory(root), append(2, some_fragment())).version == 3


def test_a_table_that_went_back_is_a_conflict(tmp_path: Path) -> None:
    created(tmp_path)
    with pytest.raises(CommitConflictError, match="deleted or replaced"):
        commit(open_directory(tmp_path), append(7, some_fragment()))
    with pytest.raises(DatasetNotFoundError):
        commit(open_directory(tmp_path / "other"), Transaction(0, Append((some_fragment(),))))


def test_a_store_without_conditional_writes_is_refused(tmp_path: Path) -> None:
    store, root = open_store(tmp_path)

    class Weak(FaultyStore):
        atomic_put_if_absent = False

    with pytest.raises(NotSupportedError):
        commit(TableDirectory(Weak(store, lambda *_: None), root), creation(some_fragment()))


@pytest.mark.parametrize("fresh", [True, False])
@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("number", range(NUM_CALLS_OF_A_COMMIT))
class TestEveryCall:
    def plan(self, path: Path, fresh: bool) -> tuple[Transaction, list[int], list[int]]:
        if fresh:
            return creation(some_fragment()), [], [0]
        created(path)
        return append(1, some_fragment()), [0], [0, 1]

    def test_a_crash_leaves_the_old_or_the_new_version(
        self, tmp_path: Path, number: int, moment: str, fresh: bool
    ) -> None:
        transaction, old, new = self.plan(tmp_path, fresh)
        store, root = open_store(tmp_path)
        faulty = FaultyStore(store, crash_at(number, moment))
        try:
            commit(TableDirectory(faulty, root), transaction, NO_WAIT)
            assert faulty.calls <= number
        except Crash:
            assert fragment_ids(tmp_path) in (old, new)
        # The same transaction, by the process that is started again, then another one.
        assert (
            commit(open_directory(root), transaction).fragments
            == load_history(open_directory(root)).load(1 if fresh else 2).fragments
        )
        assert fragment_ids(tmp_path) == new
        commit(open_directory(root), append(1 if fresh else 2, some_fragment()))
        assert fragment_ids(tmp_path) == [*new, len(new)]

    @pytest.mark.parametrize("error", [StorageError, ObjectExistsError])
    def test_an_error_is_survived_or_told(
        self, tmp_path: Path, number: int, moment: str, fresh: bool, error: type[StorageError]
    ) -> None:
        transaction, old, new = self.plan(tmp_path, fresh)
        store, root = open_store(tmp_path)
        try:
            commit(TableDirectory(FaultyStore(store, error_at(number, moment, error)), root), transaction, NO_WAIT)
            assert fragment_ids(tmp_path) == new
        except CommitStateUnknownError:
            assert fragment_ids(tmp_path) in (old, new)
        except StorageError:
            assert fragment_ids(tmp_path) == old
        assert commit(open_directory(root), transaction).version == (1 if fresh else 2)
        assert fragment_ids(tmp_path) == new


def test_the_calls_are_all_covered(tmp_path: Path) -> None:
    created(tmp_path)
    store, root = open_store(tmp_path)
    faulty = FaultyStore(store, lambda *_: None)
    commit(TableDirectory(faulty, root), append(1, some_fragment()))
    assert faulty.calls <= NUM_CALLS_OF_A_COMMIT


@pytest.mark.parametrize("error", [StorageError, ObjectExistsError])
def test_a_lost_reply_is_recognised(tmp_path: Path, error: type[StorageError]) -> None:
    """The manifest lands, the storage reports an error or, having retried by itself, that it exists already."""
    created(tmp_path)
    store, root = open_store(tmp_path)

    def fail(_number: int, when: str, name: str, path: str) -> None:
        if (name, when) == ("put_if_absent", "after"):
            raise error("lost")

    faulty = FaultyStore(store, fail)
    assert commit(TableDirectory(faulty, root), append(1, some_fragment())).version == 2
    assert fragment_ids(tmp_path) == [0, 1]


def test_when_the_reply_is_lost_and_reading_fails_nothing_is_deleted(tmp_path: Path) -> None:
    created(tmp_path)
    store, root = open_store(tmp_path)
    landed = []

    def fail(_number: int, when: str, name: str, path: str) -> None:
        if (name, when) == ("put_if_absent", "after"):
            landed.append(path)
            raise StorageError(f"cannot create {path}: no answer ({'tried again, ' * 40})")
        if name == "read" and path in landed:
            raise StorageError(f"cannot read {path}: no answer ({'tried again, ' * 40})")

    before = data_files(tmp_path)
    transaction = append(1, some_fragment())
    with pytest.raises(CommitStateUnknownError, match=r"^the commit may have landed: .*\(no answer \(tried") as caught:
        commit(TableDirectory(FaultyStore(store, fail), root), transaction, NO_WAIT)
    assert len(str(caught.value)) < 400 + len(root)
    assert set(before) < set(data_files(tmp_path))
    assert transaction.file_name in data_files(tmp_path)


def test_a_storage_that_keeps_refusing_is_told_soon(tmp_path: Path) -> None:
    created(tmp_path)
    store, root = open_store(tmp_path)

    def fail(_number: int, when: str, name: str, path: str) -> None:
        if (name, when) == ("put_if_absent", "before"):
            raise StorageError("no space")

    before = data_files(tmp_path)
    with pytest.raises(StorageError, match="no space"):
        commit(TableDirectory(FaultyStore(store, fail), root), append(1, some_fragment()), NO_WAIT)
    assert data_files(tmp_path) == before


def test_a_writer_that_always_comes_second_gives_up_with_advice(tmp_path: Path) -> None:
    created(tmp_path)
    store, root = open_store(tmp_path)

    def overtake(_number: int, when: str, name: str, path: str) -> None:
        if (name, when) == ("put_if_absent", "before"):
            commit(TableDirectory(store, root), append(load_history(open_directory(root)).latest, some_fragment()))

    with pytest.raises(RetryableCommitConflictError, match="4 times in a row"):
        commit(TableDirectory(FaultyStore(store, overtake), root), append(1, some_fragment()), RetryPolicy(4, 60.0))
    assert fragment_ids(tmp_path) == [0, 1, 2, 3, 4]


def test_a_broken_hint_is_harmless(tmp_path: Path) -> None:
    created(tmp_path)
    store, root = open_store(tmp_path)
    for content in (b"", b"garbage", b'{"version":99}'):
        store.put(f"{root}/_versions/latest_version_hint.json", content)
        latest = load_history(open_directory(root)).latest
        assert lance.dataset(root).version == latest  # So that it need not be synced.
        assert commit(open_directory(root), append(latest, some_fragment())).version == latest + 1


def test_the_hint_never_goes_down(tmp_path: Path) -> None:
    created(tmp_path)
    directory = open_directory(tmp_path)
    hint = tmp_path / "_versions/latest_version_hint.json"
    hint.write_text('{"version":7}')
    commit(directory, append(1, some_fragment()))
    assert json.loads(hint.read_text()) == {"version": 7}
    for senseless in ("[]", '{"version":"9"}', "{", "9" * 5000, "[" * 100_000):
        hint.write_text(senseless)
        latest = load_history(directory).latest
        commit(directory, append(latest, some_fragment()))
        assert json.loads(hint.read_text()) == {"version": latest + 1}
