"""Primary keys of concurrent merges: the keys that one inserts are known to the others, those of the reference too."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_format
from lance_format import LanceDataset, RetryableCommitConflictError
from lance_format.proto import table_pb2
from tests.table.leftovers import leftovers

KEY = "lance-schema:unenforced-primary-key"


def key(name: str, arrow_type: pa.DataType, position: int | None = None) -> pa.Field:
    place = {} if position is None else {f"{KEY}:position": str(position)}
    return pa.field(name, arrow_type, nullable=False, metadata={KEY: "true", **place})


def inserted_keys(path: str) -> Any:
    """Return the filter of the transaction that was planned last."""
    file = max(Path(path, "_transactions").iterdir(), key=lambda file: int(file.name.split("-")[0]))
    return table_pb2.Transaction.FromString(file.read_bytes()).update.inserted_rows


def column(arrow_type: pa.DataType, numbers: list[int]) -> pa.Array:
    texts = pa.array([f"number {number}" * (number % 7) for number in numbers])
    is_text = pa.types.is_string(arrow_type) or pa.types.is_binary(arrow_type)
    return (texts if is_text else pa.array(numbers)).cast(arrow_type)


@pytest.mark.parametrize(
    "key_type", [pa.int64(), pa.int32(), pa.uint64(), pa.uint32(), pa.string(), pa.binary()], ids=str
)
def test_the_filter_is_that_of_the_reference(tmp_path: Path, key_type: pa.DataType) -> None:
    schema = pa.schema([key("k", key_type), pa.field("v", pa.int64())])
    first = pa.table([column(key_type, [1, 2]), [0, 0]], schema=schema)
    numbers = [2, 3, 4, 5, 6, 76_543]
    more = pa.table([column(key_type, numbers), numbers], schema=schema)
    filters = []
    for module in (lance, lance_format):
        path = str(tmp_path / module.__name__)
        lance.write_dataset(first, path)
        dataset = module.dataset(path)  # type: ignore[attr-defined]
        dataset.merge_insert("k").when_matched_update_all().when_not_matched_insert_all().execute(more)
        filters.append(inserted_keys(path))
    assert filters[0] == filters[1]
    assert len(filters[0].bloom.bitmap) == 32_768


def test_a_key_of_several_columns(tmp_path: Path) -> None:
    schema = pa.schema([key("a", pa.string(), 2), pa.field("v", pa.int64()), key("b", pa.int64(), 1)])
    first = pa.table([["x"], [0], [1]], schema=schema)
    more = pa.table([["x", "y"], [1, 2], [1, 1]], schema=schema)
    filters = []
    for module in (lance, lance_format):
        path = str(tmp_path / module.__name__)
        lance.write_dataset(first, path)
        module.dataset(path).merge_insert(["b", "a"]).when_not_matched_insert_all().execute(more)  # type: ignore[attr-defined]
        filters.append(inserted_keys(path))
    assert list(filters[1].field_ids) == [2, 0]
    assert filters[0].bloom.bitmap == filters[1].bloom.bitmap


def test_other_columns_and_types_leave_no_filter(tmp_path: Path) -> None:
    schema = pa.schema([key("k", pa.date32()), pa.field("v", pa.int64())])
    path = str(tmp_path / "t")
    day = datetime.date(2026, 1, 1)
    dataset = lance_format.write_dataset(pa.table([[day], [0]], schema=schema), path)
    rows = pa.table([[day + datetime.timedelta(1)], [5]], schema=schema)
    for on in ("v", "k"):
        dataset.merge_insert(on).when_not_matched_insert_all().execute(rows)
        assert not inserted_keys(path).ByteSize()


@pytest.fixture
def table(tmp_path: Path) -> LanceDataset:
    schema = pa.schema([key("k", pa.int64()), pa.field("v", pa.string())])
    return lance_format.write_dataset(pa.table([[1, 2], ["a", "b"]], schema=schema), str(tmp_path / "t"))


def rows(table: LanceDataset, number: int, text: str) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"k": [number], "v": [text]}, schema=table.schema)


def content(path: str) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for row in lance.dataset(path).to_table().to_pylist():
        found.setdefault(row["k"], []).append(row["v"])
    return found


@pytest.mark.parametrize("module", [lance, lance_format], ids=["pylance", "lance_format"])
def test_the_second_merge_sees_the_first(table: LanceDataset, module: Any) -> None:
    stale = module.dataset(table.uri)
    table.merge_insert("k").when_not_matched_insert_all().execute(pa.Table.from_batches([rows(table, 7, "ours")]))
    data = pa.Table.from_batches([rows(table, 7, "theirs")])
    stale.merge_insert("k").when_matched_update_all().when_not_matched_insert_all().execute(data)
    assert content(table.uri) == {1: ["a"], 2: ["b"], 7: ["theirs"]}


@pytest.mark.parametrize("how", ["pylance merges", "merge", "append", "delta"])
def test_a_delta_does_not_insert_a_key_that_is_there_by_now(table: LanceDataset, how: str) -> None:
    stale = lance_format.dataset(table.uri)
    delta = stale.plan_row_delta()
    with delta.open_writer(stale, 0) as writer:
        writer.update(np.array([0], np.uint64), rows(table, 1, "changed"))
        writer.insert(rows(table, 7, "ours"))
        result = writer.finish()
    data = pa.Table.from_batches([rows(table, 7, "theirs")])
    if how == "pylance merges":
        lance.dataset(table.uri).merge_insert("k").when_not_matched_insert_all().execute(data)
    elif how == "merge":
        table.merge_insert("k").when_not_matched_insert_all().execute(data)
    elif how == "append":
        table.insert(data)
    else:
        other = table.plan_row_delta()
        with other.open_writer(table, 0) as second:
            second.insert(data.to_batches()[0])
            other.commit(table, [second.finish()])
    with pytest.raises(RetryableCommitConflictError, match=r"a row with k = 7 to .* which this change inserts too"):
        delta.commit(stale, [result])
    assert content(table.uri) == {1: ["a"], 2: ["b"], 7: ["theirs"]}
    assert not leftovers(Path(table.uri))


def test_a_delta_inserts_other_keys(table: LanceDataset) -> None:
    stale = lance_format.dataset(table.uri)
    delta = stale.plan_row_delta()
    with delta.open_writer(stale, 0) as writer:
        writer.update(np.array([0], np.uint64), rows(table, 1, "changed"))
        writer.insert(rows(table, 7, "ours"))
        finished = writer.finish()
    result = type(finished).from_bytes(finished.to_bytes())
    table.insert(pa.Table.from_batches([rows(table, 8, "theirs")]))
    table.update({"v": "upper(v)"}, where="k = 2")
    delta.commit(stale, [result])
    assert content(table.uri) == {1: ["changed"], 2: ["B"], 7: ["ours"], 8: ["theirs"]}
    latest = lance_format.dataset(table.uri)
    assert latest.read_transaction(latest.version).operation.inserted_keys.field_ids == (0,)
    before = (
        lance.dataset(table.uri, version=1).merge_insert("k").when_matched_update_all().when_not_matched_insert_all()
    )
    before.execute(pa.Table.from_batches([rows(table, 7, "pylance")]))
    assert content(table.uri)[7] == ["pylance"]


def test_rows_that_are_replaced_by_a_condition_may_have_any_key(table: LanceDataset) -> None:
    stale = lance_format.dataset(table.uri)
    table.insert(pa.Table.from_batches([rows(table, 7, "theirs")]))
    write = lance_format.plan_write(table.uri, table.schema, mode="append")
    stale.replace_where("k = 1", write.write_fragments([rows(table, 7, "ours")]), uuid=write.uuid)
    assert content(table.uri) == {2: ["b"], 7: ["theirs", "ours"]}
