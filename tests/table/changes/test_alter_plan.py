"""Changes of columns as plans: tasks cast the values of some fragments, anywhere, and one commit makes the version."""

from __future__ import annotations

import pickle
import time
from pathlib import Path

import lance
import pyarrow as pa
import pytest

import lance_format
from lance_format import InvalidInputError, LanceDataset, LanceOperation, SchemaMismatchError
from tests.table.leftovers import leftovers


@pytest.fixture
def table(tmp_path: Path) -> LanceDataset:
    structs = pa.array([{"x": number, "y": "text"} if number % 3 else None for number in range(40)])
    data = pa.table({"id": pa.array(range(40), pa.int32()), "s": structs, "t": [str(number) for number in range(40)]})
    return lance_format.write_dataset(data, str(tmp_path / "t"), max_rows_per_file=10)


def test_tasks_cast_fragments(table: LanceDataset) -> None:
    before = table.to_table()
    plan = table.plan_alter_columns(
        {"path": "id", "data_type": pa.int64(), "name": "number"},
        {"path": "s.x", "data_type": pa.string()},
        split_size_bytes=1,
    )
    assert len(plan.tasks) == 4
    tasks = [pickle.loads(pickle.dumps(task)) for task in plan.tasks]
    plan.commit(table, [pickle.loads(pickle.dumps(task.execute(table))) for task in reversed(tasks)])
    assert table.version == 2
    assert isinstance(table.read_transaction(2).operation, LanceOperation.Merge)
    assert table.to_table()["number"].to_pylist() == before["id"].to_pylist()
    wanted = [None if row is None else {"x": str(row["x"]), "y": "text"} for row in before["s"].to_pylist()]
    assert table.to_table()["s"].to_pylist() == wanted
    assert lance.dataset(table.uri).to_table().equals(table.to_table())
    lance.dataset(table.uri).validate()


def test_a_change_of_the_schema_alone_has_no_tasks(table: LanceDataset) -> None:
    plan = table.plan_alter_columns({"path": "t", "name": "text", "nullable": False})
    assert plan.tasks == ()
    plan.commit(table, [])
    assert isinstance(table.read_transaction(2).operation, LanceOperation.Project)
    assert table.schema.field("text").nullable is False


def test_metadata_changes_in_the_version_of_the_type(table: LanceDataset) -> None:
    table.alter_columns({"path": "t", "metadata": {"kind": "number", "unit": "m"}})
    assert table.schema.field("t").metadata == {b"kind": b"number", b"unit": b"m"}
    table.alter_columns({"path": "t", "data_type": pa.int64(), "metadata": {"kind": None, "unit": "km", "none": None}})
    assert table.version == 3
    assert table.schema.field("t").metadata == {b"unit": b"km"}
    theirs = lance.dataset(table.uri)
    theirs.validate()
    assert theirs.schema == table.schema
    for entries in ({"a": 1}, {1: "a"}, ["a"]):
        with pytest.raises(InvalidInputError, match="metadata maps text to text"):
            table.alter_columns({"path": "t", "metadata": entries})


def test_a_value_that_does_not_fit_leaves_no_file(table: LanceDataset) -> None:
    table.insert(pa.table({"id": pa.array([40], pa.int32()), "t": ["many"]}))
    plan = table.plan_alter_columns({"path": "t", "data_type": pa.int64()}, split_size_bytes=1)
    made = plan.tasks[0].execute(table)
    with pytest.raises(SchemaMismatchError, match="column 't' cannot be made int64"):
        plan.tasks[-1].execute(table)
    plan.abort(table, [made])
    assert not leftovers(Path(table.uri))
    with pytest.raises(SchemaMismatchError, match="column 't' cannot be made int64"):
        table.alter_columns({"path": "t", "data_type": pa.int64()})
    assert not leftovers(Path(table.uri))
    assert table.version == 2


@pytest.mark.slow
def test_changes_of_many_columns_take_time_for_each(tmp_path: Path) -> None:
    """They looked at all columns of the table for each one of a change, which took minutes for thousands."""
    names = [f"c{number}" for number in range(2000)]
    table = lance_format.write_dataset(pa.table({name: pa.array([1, 2], pa.int32()) for name in names}), tmp_path)
    start = time.process_time()
    table.alter_columns(*({"path": name, "name": f"x{name}"} for name in names))
    assert time.process_time() - start < 5
    start = time.process_time()
    table.update({f"x{name}": "xc0 + 1" for name in names[1000:]}, "xc1 = 1")
    assert time.process_time() - start < 9
    assert table.to_table(["xc999", "xc1000"]).to_pylist() == [{"xc999": 2, "xc1000": 2}, {"xc999": 1, "xc1000": 2}]
