"""Fragments rewritten with their rows in another order."""

from __future__ import annotations

import pickle
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_format
from lance_format import InvalidInputError, LanceDataset, RetryableCommitConflictError, RowDeltaChanges, RowRewrite
from tests.table.leftovers import leftovers


@pytest.fixture(params=[False, True], ids=["addresses", "stable row ids"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> LanceDataset:
    """Return a table of four fragments, of which two have deleted rows, and one an updated row."""
    rows = pa.table({"id": range(400), "name": [f"bird {number * 7 % 400}" for number in range(400)]})
    path = tmp_path / "table.lance"
    lance_format.write_dataset(rows, path, max_rows_per_file=100, enable_stable_row_ids=request.param)
    table = lance_format.dataset(path)
    table.delete("id IN (5, 250)")
    table.update({"name": "'emu'"}, "id = 7")
    return table


def write(table: LanceDataset, plan: RowRewrite, number: int, rows: pa.Table) -> RowDeltaChanges:
    with plan.open_writer(table, number) as writer:
        for batch in rows.to_batches(max_chunksize=50):
            writer.write(batch["_rowaddr"].to_numpy(), batch.select(["id", "name"]))
        return pickle.loads(pickle.dumps(writer.finish()))


def read(table: LanceDataset, *columns: str) -> pa.Table:
    return table.to_table(columns=["id", "name", "_rowaddr", *columns])


def sorted_rows(table: LanceDataset, plan: RowRewrite) -> pa.Table:
    ids = {fragment.id for fragment in plan.fragments}
    rows = read(table).sort_by([("name", "descending"), ("id", "ascending")])
    return rows.filter(pa.array([address >> 32 in ids for address in rows["_rowaddr"].to_pylist()]))


def test_rows_are_in_the_order_of_the_writers(table: LanceDataset) -> None:
    lineage = ["_row_created_at_version", "_row_last_updated_at_version"] if table.has_stable_row_ids else []
    names = [*(["_rowid"] if lineage else []), *lineage]
    before = read(table, *names)
    plan = table.optimize.plan_row_rewrite()
    rows = sorted_rows(table, plan)
    results = [write(table, plan, 1, rows.slice(200)), write(table, plan, 0, rows.slice(0, 200))]
    done = plan.commit(table, results)
    assert (done.fragments_removed, done.fragments_added) == (5, 2)
    assert table.to_table() == rows.select(["id", "name"])
    after = read(table, *names)
    assert after.drop_columns(["_rowaddr"]).sort_by("id") == before.drop_columns(["_rowaddr"]).sort_by("id")
    reference = lance.dataset(table.uri)
    reference.validate()
    assert reference.to_table() == table.to_table()
    if names:
        assert reference.to_table(columns=["id", *names]).sort_by("id") == after.select(["id", *names]).sort_by("id")
    assert leftovers(Path(table.uri)) == set()
    version = table.version
    assert plan.commit(table, results) == done
    assert table.latest_version == version
    assert plan.find_outcome(lance_format.dataset(table.uri)) == done


def test_columns_without_values_stay_unwritten(tmp_path: Path) -> None:
    """Format 2.0 cannot hold null structs, as a column of structs that was added has."""
    table = lance_format.write_dataset({"id": range(9)}, tmp_path, data_storage_version="2.0", max_rows_per_file=5)
    table.add_columns(pa.schema([("pair", pa.struct([("one", pa.int64())])), ("text", pa.string())]))
    plan, held = table.optimize.plan_row_rewrite(), table.get_fragments()[0].metadata.field_ids
    rows = table.to_table(columns=["id", "pair", "text", "_rowaddr"]).sort_by([("id", "descending")])
    with plan.open_writer(table, 0) as writer:
        for batch in rows.to_batches():
            writer.write(batch["_rowaddr"].to_numpy(), batch.select(["text", "pair", "id"]))
        plan.commit(table, [writer.finish()])
    assert table.to_table() == rows.select(["id", "pair", "text"])
    assert lance.dataset(table.uri).to_table() == table.to_table()
    (fragment,) = table.get_fragments()
    assert fragment.metadata.field_ids == held


def test_some_fragments(table: LanceDataset) -> None:
    table.create_scalar_index("id", "ZONEMAP")
    plan = table.optimize.plan_row_rewrite([3, 1])
    plan.commit(table, [write(table, plan, 0, sorted_rows(table, plan))])
    found = lance.dataset(table.uri)
    found.validate()
    assert [fragment.count_rows() for fragment in table.get_fragments()] == [98, 99, 1, 200]
    (index,) = table.list_indices()
    assert index["fragment_ids"] == {0, 2, 4}
    for number in (7, 150, 399):
        assert table.count_rows(f"id = {number}") == found.count_rows(f"id = {number}") == 1


def test_each_row_is_written_once(table: LanceDataset) -> None:
    plan = table.optimize.plan_row_rewrite()
    rows = sorted_rows(table, plan)
    version = table.version
    with pytest.raises(InvalidInputError, match="is changed twice"):
        write(table, plan, 0, pa.concat_tables([rows, rows.slice(0, 1)]))
    with pytest.raises(InvalidInputError, match=r"rows, and .* were written; nothing was changed"):
        plan.commit(table, [write(table, plan, 0, rows.slice(1))])
    with pytest.raises(InvalidInputError, match="were written"):
        plan.commit(table, [write(table, plan, 0, rows), write(table, plan, 1, rows.slice(0, 1))])
    with pytest.raises(InvalidInputError, match="one result of each task"):
        plan.commit(table, [write(table, plan, 1, rows)])
    few = table.optimize.plan_row_rewrite([1])
    with pytest.raises(InvalidInputError, match="some of other fragments"):
        few.commit(table, [write(table, few, 0, rows)])
    deleted = pa.table({"id": [5], "name": [""], "_rowaddr": pa.array([5], pa.uint64())})
    with pytest.raises(InvalidInputError, match=r"row 5 of .* is deleted already"):
        write(table, plan, 0, deleted)
    with pytest.raises(InvalidInputError, match="2 addresses of 1 rows"):
        plan.open_writer(table, 0).write(
            np.zeros(2, np.uint64), rows.select(["id", "name"]).to_batches()[0].slice(0, 1)
        )
    with pytest.raises(InvalidInputError, match="has no fragment 77"):
        table.optimize.plan_row_rewrite([77])
    plan.abort(table)
    assert table.latest_version == version
    assert leftovers(Path(table.uri)) == set()


def test_a_concurrent_delete_collides(table: LanceDataset) -> None:
    plan = table.optimize.plan_row_rewrite()
    result = write(table, plan, 0, sorted_rows(table, plan))
    lance_format.dataset(table.uri).delete("id = 70")
    with pytest.raises(RetryableCommitConflictError):
        plan.commit(table, [result])
    assert leftovers(Path(table.uri)) == set()
    assert lance_format.dataset(table.uri).count_rows() == 397


def test_nothing_to_rewrite(tmp_path: Path) -> None:
    table = lance_format.write_dataset(pa.table({"id": pa.array([], pa.int64())}), tmp_path / "empty.lance")
    plan = table.optimize.plan_row_rewrite()
    assert plan.commit(table, []).fragments_removed == 0
    assert table.latest_version == 1
