"""Row deltas with columns that the table lacks: one version adds the columns and changes the rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_format
from lance_format import LanceDataset, NotSupportedError, RetryableCommitConflictError, SchemaMismatchError
from tests.table.leftovers import leftovers

NEW = pa.schema([("name", pa.string()), pa.field("s", pa.struct([("b", pa.string())]))])


@pytest.fixture(params=[False, True], ids=["addresses", "stable ids"])
def dataset(request: pytest.FixtureRequest, tmp_path: Path) -> LanceDataset:
    """Return a table of six rows in three fragments, whose last one has an index."""
    data = pa.table({"id": range(6), "s": [{"a": number} for number in range(6)]})
    made = lance_format.write_dataset(data, tmp_path / "t", max_rows_per_file=2, enable_stable_row_ids=request.param)
    made.create_scalar_index("id", "ZONEMAP")
    return made


def rows(view: LanceDataset, ids: list[int], **values: Any) -> pa.RecordBatch:
    given = {
        "id": ids,
        "s": [{"a": number, "b": f"b{number}"} for number in ids],
        "name": [f"n{number}" for number in ids],
    }
    return pa.RecordBatch.from_pydict({**given, **values}, schema=view.read_schema("all_binary"))


def change(dataset: LanceDataset) -> tuple[Any, list[Any]]:
    """Replace row 1, delete the rows of fragment 1, and insert row 9."""
    view = dataset.with_new_columns(NEW)
    delta = dataset.plan_row_delta(["s", "name"], new_columns=NEW)
    with delta.open_writer(dataset, 0) as writer:
        writer.update(np.array([1], np.uint64), rows(view, [1]))
        writer.delete(np.array([1 << 32, (1 << 32) + 1], np.uint64))
        writer.insert(rows(view, [9]))
        return delta, [writer.finish()]


EXPECTED = {
    0: (None, None),
    1: ("b1", "n1"),
    4: (None, None),
    5: (None, None),
    9: ("b9", "n9"),
}


def content(dataset: Any) -> dict[int, tuple[str | None, str | None]]:
    return {row["id"]: (row["s"]["b"], row["name"]) for row in dataset.to_table().to_pylist()}


def test_view_has_null_columns_and_changes_nothing(dataset: LanceDataset) -> None:
    view = dataset.with_new_columns(NEW)
    assert view.schema.names == ["id", "s", "name"]
    assert content(view) == dict.fromkeys(range(6), (None, None))
    assert view.to_table(filter="name IS NULL AND s.b IS NULL AND id > 3")["id"].to_pylist() == [4, 5]
    assert dataset.schema.names == ["id", "s"]
    assert lance_format.dataset(dataset.uri).version == dataset.version
    assert view.with_new_columns(NEW).schema == view.schema


def test_one_version_adds_columns_and_changes_rows(dataset: LanceDataset) -> None:
    before = dataset.version
    ids = dict(
        zip(*(dataset.scanner(["id", "_rowid"]).to_table()[name].to_pylist() for name in ("id", "_rowid")), strict=True)
    )
    delta, results = change(dataset)
    counts = delta.commit(dataset, results)
    assert (counts.num_inserted_rows, counts.num_updated_rows, counts.num_deleted_rows) == (1, 1, 2)
    assert dataset.version == before + 1
    theirs = lance.dataset(dataset.uri)
    theirs.validate()
    lance_format.dataset(dataset.uri).validate()
    assert content(theirs) == content(dataset) == EXPECTED
    assert theirs.to_table() == dataset.to_table()
    assert [fragment.fragment_id for fragment in theirs.get_fragments()] == [0, 2, 3, 4]
    assert content(lance.dataset(dataset.uri, version=before + 1).checkout_version(before + 1)) == EXPECTED
    if dataset.has_stable_row_ids:
        table = dataset.scanner(["id", "_rowid", "_row_created_at_version"]).to_table().to_pylist()
        assert {row["id"]: row["_rowid"] for row in table if row["id"] < 9} == {
            key: ids[key] for key in EXPECTED if key < 9
        }
        assert {row["id"]: row["_row_created_at_version"] for row in table}[1] == 1
    assert theirs.to_table(filter="id = 5")["id"].to_pylist() == [5]
    assert delta.find(dataset) == counts
    assert delta.commit(dataset, results) == counts  # it is recognised
    assert dataset.version == before + 1
    assert not leftovers(Path(dataset.uri))
    theirs.merge_insert("id").when_matched_update_all().execute(theirs.to_table())


def test_concurrent_writers(dataset: LanceDataset) -> None:
    delta, results = change(dataset)
    other = lance_format.dataset(dataset.uri)
    other.delete("id = 4")
    lance_format.write_dataset(pa.table({"id": [7], "s": [{"a": 7}]}), dataset.uri, mode="append")
    delta.commit(dataset, results)
    wanted = {**EXPECTED, 7: (None, None)}
    del wanted[4]
    assert content(lance.dataset(dataset.uri)) == wanted
    lance.dataset(dataset.uri).validate()


def test_another_writer_adds_the_same_columns(dataset: LanceDataset) -> None:
    delta, results = change(dataset)
    lance_format.dataset(dataset.uri).add_columns(NEW)
    with pytest.raises(RetryableCommitConflictError):
        delta.commit(dataset, results)
    assert content(lance.dataset(dataset.uri)) == dict.fromkeys(range(6), (None, None))
    delta, results = change(lance_format.dataset(dataset.uri))
    delta.commit(dataset, results)
    assert content(lance.dataset(dataset.uri)) == EXPECTED


@pytest.mark.parametrize("deleted", [[], [2], [0, 1]], ids=["nothing", "a row", "a fragment"])
def test_columns_come_without_written_rows(dataset: LanceDataset, deleted: list[int]) -> None:
    before = dataset.version
    delta = dataset.plan_row_delta(new_columns=NEW)
    with delta.open_writer(dataset, 0) as writer:
        writer.delete(np.array([(row // 2 << 32) + row % 2 for row in deleted], np.uint64))
        results = [writer.finish()]
    assert delta.commit(dataset, results) == delta.commit(dataset, results)
    assert dataset.version == before + 1
    reference = lance.dataset(dataset.uri)
    reference.validate()
    assert content(reference) == {row: (None, None) for row in range(6) if row not in deleted}
    assert content(lance_format.dataset(dataset.uri)) == content(reference)


def test_a_delta_without_rows_and_new_columns_makes_no_version(dataset: LanceDataset) -> None:
    before = dataset.version
    delta = dataset.plan_row_delta(new_columns=dataset.schema)
    with delta.open_writer(dataset, 0) as writer:
        delta.commit(dataset, [writer.finish()])
    assert lance_format.dataset(dataset.uri).version == before


def test_columns_that_the_table_cannot_have(dataset: LanceDataset) -> None:
    with pytest.raises(SchemaMismatchError, match="differs from column 'id' only in case"):
        dataset.with_new_columns(pa.schema([("ID", pa.int64())]))
    with pytest.raises(SchemaMismatchError, match="cannot be null"):
        dataset.plan_row_delta(new_columns=pa.schema([pa.field("n", pa.int64(), nullable=False)]))


@pytest.mark.parametrize("version", ["2.0", "2.1"])
@pytest.mark.parametrize("column", ["m", "s"])
def test_columns_that_files_of_the_table_cannot_hold(tmp_path: Path, version: str, column: str) -> None:
    """No row could be written with them."""
    table = pa.table({"s": [{"a": 1}]})
    dataset = lance_format.write_dataset(table, tmp_path / "t", data_storage_version=version)
    kind = pa.map_(pa.string(), pa.int32())
    new = pa.schema([(column, kind if column == "m" else pa.struct([("m", kind)]))])
    for change in (dataset.add_columns, lambda columns: dataset.plan_row_delta(new_columns=columns)):
        with pytest.raises(NotSupportedError, match=f"is in a map, which file format {version} cannot hold"):
            change(new)
    assert lance_format.dataset(dataset.uri).version == 1
