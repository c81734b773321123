"""The writer object, called as Spark calls it: pickled copies, lost answers, repeated and missing messages."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import types as t
from pyspark.sql.datasource import WriterCommitMessage

import lance_format
from connector.dml.delta_form import DELETED, NEW, REPLACED, DeltaForm
from connector.dml.delta_writer import DeltaWriter
from connector.options.options import LanceOptions
from connector.protocol import SPECULATION
from connector.source.data_source import LanceDataSource
from connector.write.commit_message import LanceCommitMessage
from connector.write.replaced_rows import ReplacedRows
from connector.write.writer import LanceWriter
from lance_format import CommitError, InvalidInputError, LanceDataset
from tests.spark.conftest import data_files, files
from tests.table.leftovers import leftovers

SCHEMA = t.StructType([t.StructField("id", t.LongType())])


def make_writer(path: str, overwrite: bool = False, **options: str) -> LanceWriter:
    writer = LanceDataSource(options={"path": path, **options}).writer(SCHEMA, overwrite)
    assert isinstance(writer, LanceWriter)
    return writer


def run_task(writer: LanceWriter, partition_id: int, monkeypatch: pytest.MonkeyPatch, attempt: int = 0) -> Any:
    """Write ten rows as the task of a partition, and return its message as the driver gets it."""
    context = SimpleNamespace(partitionId=lambda: partition_id, attemptNumber=lambda: attempt)
    monkeypatch.setattr("connector.write.writer.TaskContext", SimpleNamespace(get=lambda: context))
    batch = pa.record_batch({"id": range(partition_id * 10, partition_id * 10 + 10)})
    return pickle.loads(pickle.dumps(copy(writer).write(iter([batch]))))


def copy(writer: LanceWriter) -> LanceWriter:
    """Return the writer as another process gets it."""
    return pickle.loads(pickle.dumps(writer))  # type: ignore[no-any-return]


@pytest.fixture
def writer(path: str) -> LanceWriter:
    return make_writer(path)


@pytest.fixture
def messages(writer: LanceWriter, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    return [run_task(writer, partition_id, monkeypatch) for partition_id in range(3)]


def ids(path: str) -> list[int]:
    return lance_format.dataset(path).to_table()["id"].to_pylist()  # type: ignore[no-any-return]


def test_rows_are_committed_in_the_order_of_partitions(writer: LanceWriter, messages: list[Any], path: str) -> None:
    copy(writer).commit(messages)
    assert ids(path) == list(range(30))


def test_a_second_commit_changes_nothing(writer: LanceWriter, messages: list[Any], path: str) -> None:
    copy(writer).commit(messages)
    copy(writer).commit(messages)
    assert ids(path) == list(range(30))
    assert lance_format.dataset(path).version == 1


@pytest.mark.parametrize("overwrite", [False, True])
def test_an_abort_after_a_commit_that_landed_deletes_nothing(
    path: str, overwrite: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    lance_format.write_dataset(pa.table({"id": pa.array([-1], pa.int64())}), path)
    writer = make_writer(path, overwrite)
    messages = [run_task(writer, partition_id, monkeypatch) for partition_id in range(2)]
    copy(writer).commit(messages)
    before = files(path)
    copy(writer).abort(messages)
    assert files(path) == before
    assert ids(path) == [*([] if overwrite else [-1]), *range(20)]


@pytest.mark.parametrize("other", [False, True], ids=["alone", "another writer adds the column too"])
@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable ids"])
def test_new_columns_are_committed_once_and_never_aborted(
    path: str, stable: bool, other: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    lance_format.write_dataset(pa.table({"x": [True]}), path, enable_stable_row_ids=stable)
    writer = make_writer(path, mergeSchema="true")
    messages = [run_task(writer, partition_id, monkeypatch) for partition_id in range(2)]
    if other:
        late = make_writer(path, mergeSchema="true")
        late.commit([run_task(late, 0, monkeypatch)])
    version = lance_format.dataset(path).version + 1
    copy(writer).commit(messages)
    before = files(path)
    copy(writer).commit(messages)
    copy(writer).abort(messages)
    assert files(path) == before
    table = lance_format.dataset(path)
    assert (table.version, table.schema.names) == (version, ["x", "id"])
    assert ids(path) == [None, *(range(10) if other else []), *range(20)]


def test_an_abort_takes_new_columns_away_with_their_rows(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lance_format.write_dataset(pa.table({"x": [True]}), path)
    before = files(path)
    writer = make_writer(path, mergeSchema="true")
    messages = [run_task(writer, partition_id, monkeypatch) for partition_id in range(2)]
    copy(writer).abort(messages)
    assert files(path) == before
    assert lance_format.dataset(path).schema.names == ["x"]


def test_an_abort_deletes_the_files_of_all_tasks_even_of_those_whose_message_is_lost(
    writer: LanceWriter, messages: list[Any], path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("connector.write.writer._KILL_SECONDS", 0)
    assert len(data_files(path)) == 3
    copy(writer).abort([messages[0], None, messages[2]])
    assert data_files(path) == set()
    copy(writer).abort([messages[0], None, messages[2]])


def test_an_abort_deletes_what_tasks_write_until_they_are_killed(
    writer: LanceWriter, messages: list[Any], path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = []
    monkeypatch.setattr("time.sleep", lambda _: late.append(run_task(writer, 3, monkeypatch)))
    writer.abort([*messages, None])
    assert len(late) == 1
    assert data_files(path) == set()


@pytest.mark.parametrize("wrong", ["missing", "none", "twice", "swapped", "foreign"])
def test_messages_have_to_be_one_a_partition(writer: LanceWriter, messages: list[Any], path: str, wrong: str) -> None:
    first, second, third = messages
    given = {
        "missing": [first, third],
        "none": [first, None, third],
        "twice": [first, second, second],
        "swapped": [second, first, third],
        "foreign": [first, second, WriterCommitMessage()],
    }[wrong]
    with pytest.raises(CommitError):
        copy(writer).commit(given)
    assert not Path(path, "_versions").exists()


@pytest.mark.parametrize("kind", ["append", "overwrite", "replace"])
def test_files_of_attempts_that_died_are_deleted_after_the_commit(
    path: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lance_format.write_dataset({"id": [-1, -2]}, path)
    writer = make_writer(path, overwrite=kind == "overwrite")
    if kind == "replace":
        options = LanceOptions.parse({"path": path})
        predicate = json.dumps(["IS_NULL", ["COLUMN", "id"]])
        writer = LanceWriter(options, SCHEMA, "append", replaced=ReplacedRows(options, path, 1, predicate))
    run_task(writer, 0, monkeypatch)  # Its worker was killed before the message arrived.
    messages = [run_task(writer, 0, monkeypatch, attempt=1), run_task(writer, 1, monkeypatch)]
    copy(writer).commit(messages)
    assert sorted(ids(path)) == [*([] if kind == "overwrite" else [-2, -1]), *range(20)]
    assert not leftovers(Path(path))


def test_files_of_copies_of_slow_tasks_are_deleted_after_the_commit(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = make_writer(path, **{SPECULATION: "true"})
    run_task(writer, 0, monkeypatch, attempt=1)
    copy(writer).commit([run_task(writer, 0, monkeypatch)])
    assert ids(path) == list(range(10))
    assert not leftovers(Path(path))


def test_two_attempts_of_one_task_of_a_delta(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark runs copies of slow tasks on other hosts only. It takes the message of one, and both have written files."""
    lance_format.write_dataset({"id": range(40)}, path, max_rows_per_file=20, enable_stable_row_ids=True)
    before = files(path)
    form = DeltaForm("MERGE", row=(1,), address=2, names=("id",), changed=("id",))
    writer = DeltaWriter(LanceOptions.parse({"path": path}), form, (path, 1))

    def attempt(task: int, number: int) -> Any:
        context = SimpleNamespace(partitionId=lambda: task, attemptNumber=lambda: number)
        monkeypatch.setattr("connector.write.writer.TaskContext", SimpleNamespace(get=lambda: context))
        operations, ids, offsets = [DELETED, REPLACED, NEW[0]], [0, 100 + task, 200 + task], [0, 1, None]
        addresses = [None if offset is None else (task << 32) + offset for offset in offsets]
        batch = pa.record_batch({"operation": pa.array(operations, pa.int32()), "id": ids, "address": addresses})
        return pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(writer)).write(iter([batch]))))

    first, again, other = attempt(0, 0), attempt(0, 1), attempt(1, 0)
    with pytest.raises(InvalidInputError, match="one result of each task"):
        pickle.loads(pickle.dumps(writer)).commit([first, again, other])
    assert lance_format.dataset(path).version == 1
    pickle.loads(pickle.dumps(writer)).commit([again, other])
    left = [number for number in range(40) if number % 20 > 1]
    assert sorted(ids(path)) == [*left, 100, 101, 200, 201]
    assert not leftovers(Path(path))
    made = files(path)
    pickle.loads(pickle.dumps(writer)).commit([first, other])  # Spark may commit again after a lost reply.
    assert sorted(ids(path)) == [*left, 100, 101, 200, 201]
    assert (files(path), lance_format.dataset(path).version) == (made, 2)
    assert before < made
    lance.dataset(path).validate()


def test_rows_of_a_delta_that_keep_columns(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replaced rows keep them, whatever the delta has there, also if few rows are read at a time; new rows do not."""
    table = pa.table({"id": range(40), "name": [f"bird {number}" for number in range(40)], "n": [0] * 40})
    lance_format.write_dataset(table, path, max_rows_per_file=20, enable_stable_row_ids=True)
    form = DeltaForm("MERGE", row=(1, 2, 3), address=4, names=("id", "name", "n"), changed=("n",), kept=("id", "name"))
    monkeypatch.setattr("connector.dml.delta_writer._KEPT_BYTES", 100)
    writer = DeltaWriter(LanceOptions.parse({"path": path}), DeltaForm.parse(form.to_json()), (path, 1))
    context = SimpleNamespace(partitionId=lambda: 0, attemptNumber=lambda: 0)
    monkeypatch.setattr("connector.write.writer.TaskContext", SimpleNamespace(get=lambda: context))

    def batches() -> Iterator[pa.RecordBatch]:
        for start in range(0, 40, 8):
            rows = np.arange(start, start + 8)[::-1]
            operations = [DELETED, NEW[0], *[REPLACED] * 6]
            addresses = [
                None if o in NEW else int(r // 20 << 32 | r % 20) for o, r in zip(operations, rows, strict=True)
            ]
            columns = [operations, [1000 + r for r in rows], ["new"] * 8, rows, addresses]
            types = [pa.int32(), pa.int64(), pa.string(), pa.int64(), pa.int64()]
            arrays = [pa.array(column, kind) for column, kind in zip(columns, types, strict=True)]
            yield pa.record_batch(arrays, names=["operation", "id", "name", "n", "address"])

    writer.commit([pickle.loads(pickle.dumps(writer)).write(batches())])
    found = {row["id"]: (row["name"], row["n"]) for row in lance_format.dataset(path).to_table().to_pylist()}
    wanted = {number: (f"bird {number}", number) for number in range(40) if number % 8 < 6}
    wanted |= {number: (f"bird {number}", 0) for number in range(40) if number % 8 == 6}
    assert found == wanted | {1000 + number: ("new", number) for number in range(6, 40, 8)}
    lance.dataset(path).validate()


def _sizes_of_what_is_kept(path: str, monkeypatch: pytest.MonkeyPatch, form: DeltaForm, addresses: range) -> list[int]:
    """Number the rows at some addresses in column `n`; return the bytes that were read of them at a time."""
    sizes: list[int] = []
    take = LanceDataset.take_addresses

    def taking(*arguments: Any, **options: Any) -> pa.Table:
        taken = take(*arguments, **options)
        sizes.append(taken.nbytes)
        return taken

    monkeypatch.setattr(LanceDataset, "take_addresses", taking)
    writer = DeltaWriter(LanceOptions.parse({"path": path}), DeltaForm.parse(form.to_json()), (path, 1))
    context = SimpleNamespace(partitionId=lambda: 0, attemptNumber=lambda: 0)
    monkeypatch.setattr("connector.write.writer.TaskContext", SimpleNamespace(get=lambda: context))
    values = [pa.array([REPLACED] * len(addresses), pa.int32()), pa.array(range(len(addresses))), pa.array(addresses)]
    writer.commit([writer.write(iter([pa.record_batch(values, names=["operation", "n", "address"])]))])
    return sizes


def test_rows_of_a_delta_that_keep_blobs(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blobs that fit into memory are read at a time, however many rows there are."""
    values = [bytes([number]) * 50_000 for number in range(30)]
    schema = pa.schema([("n", pa.int64()), lance_format.blob_field("b")])
    blobs = lance_format.blob_array(values)
    table = pa.Table.from_arrays([pa.array([0] * 30), blobs], schema=schema)
    lance_format.write_dataset(table, path, data_storage_version="2.2")
    form = DeltaForm("UPDATE", row=(1,), address=2, names=("n",), changed=("n",), kept=("b",))
    monkeypatch.setattr("connector.dml.delta_writer._KEPT_BYTES", 180_000)
    sizes = _sizes_of_what_is_kept(path, monkeypatch, form, range(30))
    assert len(sizes) == 10
    assert max(sizes) < 200_000
    found = lance_format.dataset(path).to_table(blob_handling="all_binary").sort_by("n").to_pylist()
    assert found == [{"n": number, "b": value} for number, value in enumerate(values)]


def test_rows_of_a_delta_that_keep_values_larger_than_their_files_say(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files are compressed, and those of other fragments smaller: a task reads few rows before it knows."""
    table = pa.table({"n": range(2000), "text": ["x" * 50_000 * (number > 999) for number in range(2000)]})
    lance_format.write_dataset(table, path, max_rows_per_file=1000)
    form = DeltaForm("UPDATE", row=(1,), address=2, names=("n",), changed=("n",), kept=("text",))
    monkeypatch.setattr("connector.dml.delta_writer._KEPT_BYTES", 1_000_000)
    monkeypatch.setattr("connector.dml.delta_writer._FIRST_ROWS", 20)
    sizes = _sizes_of_what_is_kept(path, monkeypatch, form, range(1 << 32, (1 << 32) + 500))
    assert max(sizes) < 1_100_000
    found = lance_format.dataset(path).to_table(filter="n < 500 AND text <> ''")
    assert sorted(found["n"].to_pylist()) == list(range(500))
    assert set(found["text"].to_pylist()) == {"x" * 50_000}


def test_a_commit_lists_no_files_unless_a_task_was_repeated(
    writer: LanceWriter, messages: list[Any], path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = run_task(writer, 0, monkeypatch).parse().fragments[0].files[0].path
    copy(writer).commit(messages)
    assert leftovers(Path(path)) == {f"data/{lost}"}


@pytest.mark.parametrize(
    "payload",
    [
        "",
        "[",
        "null",
        "[]",
        "{}",
        '{"partition": 0, "attempt": 0}',
        '{"partition": 0, "fragments": []}',
        '{"partition": "0", "attempt": 0, "fragments": []}',
        '{"partition": true, "attempt": 0, "fragments": []}',
        '{"partition": -1, "attempt": 0, "fragments": []}',
        '{"partition": 0, "attempt": -1, "fragments": []}',
        '{"partition": 0, "attempt": 0, "fragments": {}}',
        '{"partition": 0, "attempt": 0, "fragments": [1]}',
        '{"partition": 0, "attempt": 0, "fragments": ["{}"]}',
        "[" * 100_000,
    ],
)
def test_malformed_messages_are_refused(payload: str) -> None:
    with pytest.raises(CommitError, match="malformed commit message"):
        LanceCommitMessage(payload).parse()


def test_messages_carry_text_only(messages: list[Any]) -> None:
    assert isinstance(messages[0].payload, str)
    assert [message.parse().partition_id for message in messages] == [0, 1, 2]


def test_a_task_that_fails_deletes_its_files(writer: LanceWriter, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def batches():  # type: ignore[no-untyped-def]
        yield pa.record_batch({"id": range(10)})
        raise RuntimeError("broken")

    context = SimpleNamespace(partitionId=lambda: 0, attemptNumber=lambda: 0)
    monkeypatch.setattr("connector.write.writer.TaskContext", SimpleNamespace(get=lambda: context))
    with pytest.raises(RuntimeError, match="broken"):
        copy(writer).write(batches())
    assert not Path(path).exists()
