"""Batches of applications are committed once: the marker survives other writers, and goes with the rows."""

import dataclasses
import datetime
from functools import partial
from pathlib import Path

import lance
import pyarrow as pa
import pytest

import lance_format
from lance_format import BatchMarker, CommitConflictError, InvalidInputError, TableWrite, last_batches
from lance_format.table.transaction.batch_marker import MARKER_PREFIX, RETENTION_KEY
from tests.processes import context, run
from tests.table.builders import SCHEMA, rows
from tests.table.versions.kill_worker import die_everywhere


def config(path: Path) -> dict[str, str]:
    try:
        return lance_format.dataset(path).config()
    except lance_format.DatasetNotFoundError:
        return {}


def plan(path: Path, batch: int, mode: str = "append", application: str = "q") -> tuple[TableWrite, BatchMarker]:
    marker = BatchMarker.plan(config(path), application, batch)
    return lance_format.plan_write(str(path), SCHEMA, mode=mode), marker


def land(path: Path, batch: int, table: pa.Table, mode: str = "append", application: str = "q") -> bool:
    """Commit a batch unless the table has it, as a writer that may be run again does."""
    write, marker = plan(path, batch, mode, application)
    if marker.is_committed:
        return False
    write.commit(write.write_fragments(table.to_batches()), marker)
    return True


def numbers(path: Path) -> list[int]:
    ours, reference = lance_format.dataset(path).to_table(), lance.dataset(path).to_table()
    assert ours == reference
    found: list[int] = ours["a"].to_pylist()
    return found


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "table"


def test_a_batch_is_committed_once(path: Path) -> None:
    assert land(path, 0, rows(0, 3))
    assert not land(path, 0, rows(0, 3))
    assert not land(path, 0, rows(50, 60))  # Other rows under the number of a batch that the table has.
    assert land(path, 1, rows(3, 4))
    assert land(path, 7, rows(4, 5))
    assert not land(path, 6, rows(6, 7))
    assert numbers(path) == [0, 1, 2, 3, 4]
    assert last_batches(config(path)) == {"q": 7}
    assert lance.dataset(path).config()[MARKER_PREFIX + "q"].split()[0] == "7"
    properties = lance.dataset(path).read_transaction(3).transaction_properties
    assert (properties["lance.txn.app_id"], properties["lance.txn.version"]) == ("q", "7")
    assert properties["lance.txn.previous"] == "1"


def test_applications_do_not_share_numbers(path: Path) -> None:
    assert land(path, 5, rows(0, 1), application="one")
    assert land(path, 2, rows(1, 2), application="two")
    assert last_batches(config(path)) == {"one": 5, "two": 2}


def test_an_overwrite_keeps_the_markers(path: Path) -> None:
    land(path, 0, rows(0, 3))
    assert land(path, 3, rows(10, 11), mode="overwrite", application="other")
    lance.write_dataset(rows(20, 21), path, mode="overwrite")
    assert not land(path, 0, rows(0, 3))
    assert not land(path, 3, rows(0, 3), mode="overwrite", application="other")
    assert numbers(path) == [20]


def test_other_writers_keep_the_markers(path: Path) -> None:
    """Whatever pylance commits after a batch, the latest version says that the table has it."""
    for number in range(4):
        land(path, number, rows(number * 3, number * 3 + 3))
    reference = lance.dataset(path)
    reference.insert(rows(100, 103))
    reference.delete("a = 101")
    reference.update({"s": "'changed'"}, where="a = 102")
    reference.merge_insert("a").when_matched_update_all().when_not_matched_insert_all().execute(rows(102, 105))
    reference.add_columns({"b": "a + 1"})
    reference.drop_columns(["b"])
    reference.update_config({"own": "entry"})
    reference.create_scalar_index("a", "ZONEMAP")
    reference.optimize.compact_files()
    reference.cleanup_old_versions(older_than=datetime.timedelta(0))
    lance_format.dataset(path).cleanup_old_versions(older_than=datetime.timedelta(0))
    assert len(lance_format.dataset(path).versions()) == 1
    assert not land(path, 3, rows(9, 12))
    assert land(path, 4, rows(12, 13))


def test_a_restore_takes_back_the_marker_with_the_rows(path: Path) -> None:
    for library in (lance_format, lance):
        land(path, 0, rows(0, 3), application=library.__name__)
        version = lance_format.dataset(path).version
        before = numbers(path)
        land(path, 1, rows(3, 6), application=library.__name__)
        library.dataset(path, version=version).restore()
        assert numbers(path) == before
        assert last_batches(config(path))[library.__name__] == 0
        assert land(path, 1, rows(3, 6), application=library.__name__)
        assert numbers(path) == [*before, 3, 4, 5]


def test_the_second_of_two_writers_of_one_batch_fails(path: Path) -> None:
    land(path, 0, rows(0, 1))
    write, marker = plan(path, 1)
    fragments = write.write_fragments(rows(1, 2).to_batches())
    lance.dataset(path).insert(rows(100, 101))
    assert land(path, 1, rows(1, 2))
    lance.dataset(path).insert(rows(101, 102))
    with pytest.raises(
        CommitConflictError, match="another writer committed batch 1 of 'q' while this one wrote batch 1"
    ):
        write.commit(fragments, marker)
    write.abort(fragments)
    assert numbers(path) == [0, 100, 1, 101]
    assert len(list((path / "data").iterdir())) == 4


def test_a_writer_that_was_held_up_cannot_add_an_old_batch(path: Path) -> None:
    land(path, 0, rows(0, 1))
    write, marker = plan(path, 1, "overwrite")
    fragments = write.write_fragments(rows(50, 60).to_batches())
    for number in (1, 2, 3):
        land(path, number, rows(number, number + 1))
    with pytest.raises(CommitConflictError, match="batch 3 of 'q'"):
        write.commit(fragments, marker)
    assert numbers(path) == [0, 1, 2, 3]


def test_a_commit_whose_reply_was_lost_is_its_own(path: Path) -> None:
    """Committing the same files again is no second writer of the batch."""
    land(path, 0, rows(0, 1))
    write, marker = plan(path, 1)
    fragments = write.write_fragments(rows(1, 2).to_batches())
    version = write.commit(fragments, marker)
    lance.dataset(path).insert(rows(2, 3))
    assert write.commit(fragments, marker) == version
    assert numbers(path) == [0, 1, 2]


def test_row_deltas_have_markers(path: Path) -> None:
    land(path, 0, rows(0, 3))
    table = lance_format.dataset(path)
    marker = BatchMarker.plan(table.config(), "q", 1)
    for lands in (True, False):
        delta = dataclasses.replace(table.plan_row_delta(), notes=marker.properties)
        with delta.open_writer(table, 0) as writer:
            writer.insert(rows(9, 10).to_batches()[0])
            changes = writer.finish()
        if lands:
            delta.commit(lance_format.dataset(path), [changes])
        else:
            with pytest.raises(CommitConflictError, match="another writer committed batch 1"):
                delta.commit(lance_format.dataset(path), [changes])
    assert numbers(path) == [0, 1, 2, 9]
    assert len(list((path / "data").iterdir())) == 2


def test_entries_of_applications_that_send_no_more_are_removed(path: Path) -> None:
    def old(days: int) -> str:
        time = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=days)
        return f"4 {time.isoformat()}"

    land(path, 0, rows(0, 1))
    ages = {"dead": old(91), "alive": old(89), "timeless": "3"}
    lance.dataset(path).update_config({MARKER_PREFIX + name: entry for name, entry in ages.items()})
    land(path, 1, rows(1, 2))
    assert last_batches(config(path)) == {"q": 1, "alive": 4, "timeless": 3}
    table = lance_format.dataset(path)
    table.update_config({RETENTION_KEY: "2days"})
    land(path, 2, rows(2, 3))
    assert last_batches(config(path)) == {"q": 2, "timeless": 3}
    table = lance_format.dataset(path)
    table.update_config({RETENTION_KEY: "never", MARKER_PREFIX + "dead": old(4000)})
    land(path, 3, rows(3, 4))
    assert last_batches(config(path)) == {"q": 3, "timeless": 3, "dead": 4}
    lance_format.dataset(path).delete_config_keys([MARKER_PREFIX + "dead"])
    assert last_batches(config(path)) == {"q": 3, "timeless": 3}


def test_malformed_markers_are_refused(path: Path) -> None:
    land(path, 0, rows(0, 1))
    with pytest.raises(InvalidInputError, match="1 to 512 characters"):
        BatchMarker("", 1)
    with pytest.raises(InvalidInputError, match="number of a batch is -1"):
        BatchMarker("q", -1)
    lance.dataset(path).update_config({MARKER_PREFIX + "q": "many"})
    with pytest.raises(InvalidInputError, match=r"'lance\.txn\.q' of the table's configuration is 'many'"):
        plan(path, 1)
    write = lance_format.plan_write(str(path), SCHEMA, mode="append", transaction_properties={"lance.txn.app_id": "q"})
    with pytest.raises(InvalidInputError, match="do not mark a batch"):
        write.commit(write.write_fragments(rows(1, 2).to_batches()))


def test_a_branch_has_markers_of_its_own(path: Path) -> None:
    land(path, 0, rows(0, 1))
    lance_format.dataset(path).create_branch("b")
    branch = path / "tree" / "b"
    assert not land(branch, 0, rows(0, 1))
    assert land(branch, 1, rows(1, 2))
    assert land(path, 1, rows(2, 3))
    assert [lance_format.dataset(place).to_table()["a"].to_pylist() for place in (path, branch)] == [[0, 2], [0, 1]]


@pytest.mark.slow
def test_a_killed_writer_that_is_run_again_adds_its_batch_once(tmp_path: Path) -> None:
    """At each system call of the write and of the commit."""
    base = tmp_path / "base"
    land(base, 0, rows(0, 3))
    num_copies = run(partial(die_everywhere, "batch", str(base), str(tmp_path)))
    landed = []
    for number in range(num_copies):
        path = tmp_path / str(number)
        if number % 2:
            lance.dataset(path).insert(rows(200, 201))
        landed.append(not land(path, 1, rows(100, 101)))
        assert sorted(numbers(path)) == [0, 1, 2, 100, *([200] if number % 2 else [])]
    assert landed == sorted(landed)
    assert landed[0] is False
    assert landed[-1] is True


def _send(path: Path, start: int) -> None:
    for batch in range(start, start + 10):
        try:
            land(path, batch, rows(batch * 10, batch * 10 + 2))
        except CommitConflictError:
            continue


def test_racing_writers_of_one_application_add_each_batch_at_most_once(path: Path) -> None:
    land(path, 0, rows(0, 1))
    writers = [context.Process(target=_send, args=(path, 1)) for _ in range(3)]
    writers.append(context.Process(target=_insert, args=(path,)))
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(120)
        assert writer.exitcode == 0
    found = [number for number in numbers(path) if number < 1000]
    assert len(found) == len(set(found))
    assert {100, 101} <= set(found)


def _insert(path: Path) -> None:
    for number in range(10):
        lance.dataset(path).insert(rows(1000 + number, 1001 + number))
