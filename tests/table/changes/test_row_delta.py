"""Row deltas: rows that are named by their addresses, in any number of tasks."""

from __future__ import annotations

import dataclasses
import datetime
import os
import pickle
import random
import shutil
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_format
from lance_format import (
    CommitConflictError,
    InvalidInputError,
    LanceDataset,
    LanceOperation,
    RetryableCommitConflictError,
    RowDelta,
    RowDeltaChanges,
    StorageError,
    VersionNotFoundError,
)
from lance_format.table.changes.rows.row_delta_writer import RowDeltaWriter
from tests.table.leftovers import leftovers

ROWS = 60
LINEAGE = ["_rowid", "_row_created_at_version"]


@pytest.fixture(params=[False, True], ids=["", "stable row ids"])
def dataset(request: pytest.FixtureRequest, tmp_path: Path) -> LanceDataset:
    """Return a table of three fragments with deleted rows."""
    data = pa.table({"id": pa.array(range(ROWS), pa.int64()), "text": [f"row {n}" for n in range(ROWS)]})
    made = lance_format.write_dataset(
        data, str(tmp_path / "table"), max_rows_per_file=20, enable_stable_row_ids=request.param
    )
    made.delete("id IN (3, 25, 26, 59)")
    return made


def read(dataset: LanceDataset, *columns: str) -> dict[int, tuple[Any, ...]]:
    """Return other columns by `id`."""
    table = dataset.scanner(["id", *columns]).to_table()
    rows = list(zip(*(table[name].to_pylist() for name in table.column_names), strict=True))
    assert len({row[0] for row in rows}) == len(rows)
    return {row[0]: row[1:] for row in rows}


def addresses(dataset: LanceDataset, ids: list[int]) -> np.ndarray[Any, np.dtype[np.uint64]]:
    known = read(dataset, "_rowaddr")
    return np.array([known[number][0] for number in ids], np.uint64)


def left_over(dataset: LanceDataset) -> set[str]:
    return leftovers(Path(dataset.uri))


def rows(ids: list[int], text: str) -> pa.RecordBatch:
    return pa.record_batch({"id": pa.array(ids, pa.int64()), "text": [f"{text} {number}" for number in ids]})


def changes(delta: RowDelta, dataset: LanceDataset, number: int, **ids: list[int]) -> RowDeltaChanges:
    writer = delta.open_writer(dataset, number)
    writer.delete(addresses(dataset, ids.get("deleted", [])))
    for some in (ids.get("inserted", []), ids.get("more", [])):
        writer.insert(rows(some, "new"))
    updated = ids.get("updated", [])
    for some in (updated[::2], updated[1::2]):  # in several batches, which alternate with inserts in the files' order
        writer.update(addresses(dataset, some), rows(some, "changed"))
    return RowDeltaChanges.from_bytes(pickle.loads(pickle.dumps(writer.finish().to_bytes())))


def test_tasks_delete_replace_and_insert(dataset: LanceDataset) -> None:
    before = read(dataset, "text", *LINEAGE)
    ids = sorted(before)
    random.Random(5).shuffle(ids)
    delta: RowDelta = pickle.loads(pickle.dumps(dataset.plan_row_delta(["text"])))
    results = [
        changes(delta, dataset, 1, updated=ids[:15], inserted=[100, 101]),
        changes(delta, dataset, 0, deleted=ids[15:20], updated=ids[20:30], inserted=[102], more=[103]),
    ]
    done = delta.commit(dataset, results)
    assert dict(done) == {"num_inserted_rows": 4, "num_updated_rows": 25, "num_deleted_rows": 5}
    dataset.validate()
    after = read(dataset, "text", *LINEAGE)
    replaced = {*ids[:15], *ids[20:30]}
    kept = {number: row for number, row in before.items() if number not in ids[15:20]}
    assert {number: row[0] for number, row in after.items()} == {
        **{number: f"changed {number}" if number in replaced else row[0] for number, row in kept.items()},
        **{number: f"new {number}" for number in (100, 101, 102, 103)},
    }
    if dataset.has_stable_row_ids:
        assert {number: after[number][1:] for number in kept} == {number: row[1:] for number, row in kept.items()}
        assert {after[number][2] for number in (100, 101, 102, 103)} == {dataset.version}
    theirs = lance.dataset(dataset.uri)
    theirs.validate()
    assert theirs.to_table().sort_by("id") == dataset.to_table().sort_by("id")
    operation = dataset.read_transaction(dataset.version).operation
    assert operation.fields_rewritten == {1}


def test_results_of_another_delta_are_refused(dataset: LanceDataset) -> None:
    delta, other = dataset.plan_row_delta(["text"]), dataset.plan_row_delta(["text"])
    ids = sorted(read(dataset))
    own, foreign = changes(delta, dataset, 0, updated=ids[:2]), changes(other, dataset, 1, updated=ids[2:3])
    version = dataset.version
    with pytest.raises(InvalidInputError, match=f"of the plan {other.uuid}, not of this one"):
        delta.commit(dataset, [own, foreign])
    assert dataset.latest_version == version
    other.abort(dataset, [foreign])
    delta.commit(dataset, [own])
    assert left_over(dataset) == set()
    dataset.validate()


def test_any_process_finds_what_another_one_committed(dataset: LanceDataset) -> None:
    delta = dataset.plan_row_delta(uuid="0123-chosen")
    assert delta.uuid == "0123-chosen"
    other = lance_format.dataset(dataset.uri)
    assert delta.find(other) is None
    delta.commit(dataset, [changes(delta, dataset, 0, updated=[1, 2], deleted=[4], inserted=[70])])
    lance_format.dataset(dataset.uri).delete("id = 50")
    found = delta.find(other)
    assert dict(found or {}) == {"num_inserted_rows": 1, "num_updated_rows": 2, "num_deleted_rows": 1}
    assert other.version == dataset.version
    theirs = lance.dataset(dataset.uri).read_transaction(dataset.version)
    assert theirs.transaction_properties == {name: str(count) for name, count in dict(found or {}).items()}


def test_a_version_that_was_cleaned_up_tells_no_counts(dataset: LanceDataset) -> None:
    delta = dataset.plan_row_delta()
    delta.commit(dataset, [changes(delta, dataset, 0, deleted=[4])])
    first = lance_format.dataset(dataset.uri, delta.read_version)
    latest = lance_format.dataset(dataset.uri)
    latest.delete("id = 50")
    latest.cleanup_old_versions(versions=[dataset.version], older_than=datetime.timedelta(0))
    with pytest.raises(VersionNotFoundError, match=r"the rows of .* were changed"):
        delta.find(first)


def test_a_second_commit_changes_nothing(dataset: LanceDataset) -> None:
    delta = dataset.plan_row_delta()
    results = [changes(delta, dataset, 0, updated=[1, 2], deleted=[4])]
    delta.commit(dataset, results)
    version = dataset.version
    again = lance_format.dataset(dataset.uri, version - 1)
    assert delta.commit(again, results).num_updated_rows == 2
    assert again.version == lance_format.dataset(dataset.uri).version == version
    delta.abort(again, results)
    assert not left_over(dataset)
    assert len(read(lance_format.dataset(dataset.uri))) == ROWS - 5


def test_nothing_to_change_makes_no_version(dataset: LanceDataset) -> None:
    delta, version = dataset.plan_row_delta(), dataset.version
    assert delta.commit(dataset, [changes(delta, dataset, number) for number in (0, 1)]).num_updated_rows == 0
    assert delta.commit(dataset, []).num_deleted_rows == 0
    assert lance_format.dataset(dataset.uri).version == version


def test_deletes_alone_are_a_delete(dataset: LanceDataset) -> None:
    delta = dataset.plan_row_delta(description="by name")
    whole = [number for number in range(20) if number != 3]
    delta.commit(dataset, [changes(delta, dataset, 0, deleted=[*whole, 40])])
    assert sorted(read(dataset)) == [n for n in range(20, ROWS) if n not in (25, 26, 40, 59)]
    assert isinstance(dataset.read_transaction(dataset.version).operation, LanceOperation.Delete)
    lance.dataset(dataset.uri).validate()


def test_a_conflict_names_the_row_and_leaves_no_file(dataset: LanceDataset) -> None:
    delta = dataset.plan_row_delta()
    results = [changes(delta, dataset, 0, updated=[1, 30], inserted=[100])]
    other = lance_format.dataset(dataset.uri)
    other.delete("id = 30")
    row = r"another writer deleted or replaced row 10 of fragment 1"
    with pytest.raises(
        RetryableCommitConflictError, match=rf"{row} of .* in version 3 \(delete\), as this update, planned"
    ):
        delta.commit(dataset, results)
    assert not left_over(other)
    assert read(lance_format.dataset(dataset.uri)) == read(other)


def test_other_rows_and_appends_do_not_conflict(dataset: LanceDataset) -> None:
    delta = dataset.plan_row_delta()
    results = [changes(delta, dataset, 0, updated=[1, 30], deleted=[31])]
    other = lance_format.dataset(dataset.uri)
    other.delete("id IN (2, 32)")
    other.insert(pa.Table.from_batches([rows([200], "new")]))
    delta.commit(dataset, results)
    found = read(dataset, "text")
    assert sorted(found) == sorted({*range(ROWS), 200} - {2, 3, 25, 26, 31, 32, 59})
    assert found[1] == ("changed 1",)
    dataset.validate()


def test_abort_leaves_no_file(dataset: LanceDataset) -> None:
    delta = dataset.plan_row_delta()
    finished = changes(delta, dataset, 0, updated=[1, 30], inserted=[7])
    lost = delta.open_writer(dataset, 1)
    lost.insert(rows([8], "new"))
    lost.finish()
    assert left_over(dataset)
    delta.abort(dataset, [finished])
    assert not left_over(dataset)


def test_an_error_in_a_task_leaves_no_file(dataset: LanceDataset) -> None:
    def fail() -> None:
        with dataset.plan_row_delta().open_writer(dataset, 0) as writer:
            writer.insert(rows([8], "new"))
            writer.update(addresses(dataset, [1]), rows([1], "changed"))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert not left_over(dataset)


@pytest.mark.parametrize(
    ("address", "message"),
    [
        (3, "row 3 of fragment 0 of .* is deleted already"),
        (20, "there is no row 20 in fragment 0"),
        (9 << 32, "has no fragment 9"),
        (1, "changed twice"),
    ],
)
def test_what_is_no_row_is_refused(dataset: LanceDataset, address: int, message: str) -> None:
    with dataset.plan_row_delta().open_writer(dataset, 0) as writer:
        writer.delete(np.array([1], np.uint64))
        with pytest.raises(InvalidInputError, match=message):
            writer.update(np.array([address], np.uint64), rows([1], "changed"))


def test_a_row_may_be_deleted_again_if_the_delta_says_so(dataset: LanceDataset) -> None:
    delta = dataclasses.replace(dataset.plan_row_delta(), deletes_again=True)
    results = [
        changes(delta, dataset, 0, deleted=[1, 2, 1], updated=[4]),
        changes(delta, dataset, 1, deleted=[2, 5], inserted=[100]),
    ]
    rows = dataset.count_rows()
    assert dict(delta.commit(dataset, results)) == {
        "num_inserted_rows": 1,
        "num_updated_rows": 1,
        "num_deleted_rows": 3,
    }
    assert dataset.count_rows() == rows - 2
    dataset.validate()
    lance.dataset(dataset.uri).validate()


def test_a_row_that_two_tasks_change_is_refused(dataset: LanceDataset) -> None:
    delta = dataset.plan_row_delta()
    results = [changes(delta, dataset, 0, updated=[1]), changes(delta, dataset, 1, deleted=[1])]
    with pytest.raises(InvalidInputError, match="1 row was changed by several tasks"):
        delta.commit(dataset, results)
    with pytest.raises(InvalidInputError, match="one result of each task from 0 to 1"):
        delta.commit(dataset, [results[0], results[0]])
    with pytest.raises(InvalidInputError, match="2 rows to update"):
        delta.open_writer(dataset, 2).update(np.zeros(1, np.uint64), rows([1, 2], "changed"))


@pytest.mark.parametrize("data", [b"", b"short", bytes(16) + b"\xff\xff"])
def test_malformed_results_are_refused(data: bytes) -> None:
    with pytest.raises(InvalidInputError, match="no result of a row delta"):
        RowDeltaChanges.from_bytes(data)


def test_unknown_columns_are_refused(dataset: LanceDataset) -> None:
    with pytest.raises(InvalidInputError, match="no column 'txt'"):
        dataset.plan_row_delta(["txt"])


@pytest.mark.parametrize("collision", ["replaced", "deleted", "inserted", "appended", "compacted"])
def test_upserts_that_others_have_overtaken_are_written_again(dataset: LanceDataset, collision: str) -> None:
    delta = dataclasses.replace(dataset.plan_row_delta(["text"]), key=("id",), notes={"note": "kept"})
    results = []
    for number, some in enumerate(([1, 2, 30, 200], [3, 40, 201])):
        with delta.open_writer(dataset, number) as writer:
            writer.upsert(rows(some, "mine"), ["id"])
            results.append(RowDeltaChanges.from_bytes(writer.finish().to_bytes()))
    other = lance_format.dataset(dataset.uri)
    if collision == "replaced":
        other.update({"text": "'theirs'"}, where="id IN (2, 50)")
    elif collision == "deleted":
        other.delete("id IN (2, 50)")
    elif collision == "inserted":
        other.merge_insert("id").when_not_matched_insert_all().execute(rows([201, 202], "theirs"))
    elif collision == "appended":
        other.insert(rows([201, 202], "theirs"))
    else:
        other.optimize.compact_files(target_rows_per_fragment=1000)
    expected = {**read(other, "text"), **{number: (f"mine {number}",) for number in (1, 2, 3, 30, 40, 200, 201)}}
    ids = read(other, "_rowid")
    done = delta.commit_upserts(dataset, results)
    assert read(dataset, "text") == expected
    assert done.num_updated_rows + done.num_inserted_rows == 7
    assert dataset.version == other.version + 1
    assert dataset.read_transaction(dataset.version).transaction_properties["note"] == "kept"
    if dataset.has_stable_row_ids:
        kept = read(dataset, "_rowid")
        assert all(kept[number] == ids[number] for number in ids)
    assert not left_over(dataset)
    reference = lance.dataset(dataset.uri)
    reference.validate()
    assert sorted(reference.to_table()["id"].to_pylist()) == sorted(expected)


def test_upserts_that_others_keep_overtaking_fail_and_leave_nothing(
    dataset: LanceDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    delta = dataclasses.replace(dataset.plan_row_delta(["text"]), key=("id",))
    with delta.open_writer(dataset, 0) as writer:
        writer.upsert(rows([1, 200], "mine"), ["id"])
        result = writer.finish()
    other, finish = lance_format.dataset(dataset.uri), RowDeltaWriter.finish
    other.update({"text": "'theirs'"}, where="id = 1")

    def overtake(self: RowDeltaWriter) -> RowDeltaChanges:
        done = finish(self)
        other.update({"text": "concat(text, '!')"}, where="id = 1")
        return done

    monkeypatch.setattr(RowDeltaWriter, "finish", overtake)
    with pytest.raises(RetryableCommitConflictError):
        delta.commit_upserts(dataset, [result], max_attempts=3)
    assert read(lance_format.dataset(dataset.uri), "text")[1] == ("theirs!!",)
    assert not left_over(dataset)
    with pytest.raises(InvalidInputError, match="without a key"):
        dataset.plan_row_delta().commit_upserts(dataset, [])


def test_a_table_that_was_made_again_is_another(dataset: LanceDataset) -> None:
    delta, stable = dataset.plan_row_delta(), dataset.has_stable_row_ids
    result = changes(delta, dataset, 0, deleted=[1], inserted=[200])
    shutil.rmtree(dataset.uri)
    again = lance_format.write_dataset(rows([1, 2], "other"), dataset.uri, enable_stable_row_ids=stable)
    again.delete("id = 2")
    with pytest.raises(CommitConflictError, match="it was dropped and created again"):
        delta.commit(lance_format.dataset(dataset.uri), [result])
    assert list(read(lance_format.dataset(dataset.uri))) == [1]


def test_a_directory_without_rights_is_told_before_rows_are_sought(
    dataset: LanceDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: str, mode: int) -> bool:
        return path != str(dataset.uri) or not mode & os.W_OK

    monkeypatch.setattr(os, "access", refuse)
    with pytest.raises(StorageError, match=r"cannot write in .*: Permission denied; grant this user access"):
        dataset.plan_row_delta(["text"])
