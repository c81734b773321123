"""Operations of both libraries on one table, in any order, against a model of it: a list of rows.

Every operation is a rule; to add one, add a method like the others: do it by `self.open(library)`, change `self.rows`
and `self.columns` accordingly, and call `self.landed()`. The nightly size is set by LANCE_MACHINE_EXAMPLES and
LANCE_MACHINE_STEPS.
"""

import copy
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import lance_format

Row = dict[str, Any]
LIBRARIES: dict[str, Any] = {"ours": lance_format, "pylance": lance}
LINEAGE = ["_rowid", "_row_created_at_version", "_row_last_updated_at_version"]
POINT = pa.struct([pa.field("x", pa.int64()), pa.field("name", pa.string())])
FIRST_COLUMNS = {"k": pa.int64(), "v": pa.int32(), "s": pa.string(), "p": POINT}


@dataclass(frozen=True)
class Predicate:
    """A condition in SQL and in Python."""

    sql: str
    column: str
    holds: Callable[[Any], bool]


PREDICATES = [
    Predicate("k % 3 = 1", "k", lambda k: k % 3 == 1),
    Predicate("k % 7 = 0", "k", lambda k: k % 7 == 0),
    Predicate("k < 25", "k", lambda k: k < 25),
    Predicate("k >= 30 and k < 60", "k", lambda k: 30 <= k < 60),
    Predicate("k = 12", "k", lambda k: k == 12),
    Predicate("k in (3, 14, 15, 92, 65)", "k", lambda k: k in (3, 14, 15, 92, 65)),
    Predicate("v is null", "v", lambda v: v is None),
    Predicate("v > 40", "v", lambda v: v is not None and v > 40),
    Predicate("v = 6", "v", lambda v: v == 6),
    Predicate("s = 's2'", "s", lambda s: s == "s2"),
    Predicate("s is not null and s >= 's3'", "s", lambda s: s is not None and s >= "s3"),
    Predicate("p.x < 30", "p", lambda p: p is not None and p["x"] < 30),
    Predicate("true", "k", lambda _: True),
    Predicate("false", "k", lambda _: False),
]

# The new value of a column, in SQL and in Python, by the column's type.
CHANGES: dict[pa.DataType, list[tuple[str, Callable[[Row], Any]]]] = {
    pa.int32(): [("5", lambda _: 5), ("null", lambda _: None), ("k + 1", lambda row: row["k"] + 1)],
    pa.int64(): [("6", lambda _: 6), ("null", lambda _: None), ("k * 2", lambda row: row["k"] * 2)],
    pa.float64(): [("0.5", lambda _: 0.5), ("cast(k as double)", lambda row: float(row["k"]))],
    pa.string(): [("'new'", lambda _: "new"), ("null", lambda _: None)],
}
CASTS = {pa.int32(): pa.int64(), pa.int64(): pa.int32()}


def value_of(kind: pa.DataType, k: int) -> Any:
    """Return what a new row has in a column."""
    if pa.types.is_struct(kind):
        return None if k % 11 == 5 else {"x": k, "name": None if k % 4 == 0 else f"p{k % 5}"}
    if kind == pa.string():
        return None if k % 6 == 2 else f"s{k % 5}"
    if kind == pa.float64():
        return k / 4
    return None if k % 5 == 3 else k % 50


class TableMachine(RuleBasedStateMachine):
    """One table, its model, and what both readers have to see."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = tempfile.mkdtemp()
        self.path = str(Path(self.directory) / "t")
        self.columns: dict[str, pa.DataType] = dict(FIRST_COLUMNS)
        self.rows: list[Row] = []
        self.next_k = 0
        self.num_columns = 0
        self.version = 0
        self.versions: dict[int, tuple[list[Row], dict[str, pa.DataType]]] = {}
        self.lineage: dict[int, tuple[int, int, int]] = {}
        self.lineages: dict[int, dict[int, tuple[int, int, int]]] = {}

    def teardown(self) -> None:
        shutil.rmtree(self.directory)

    def open(self, library: str, version: int | None = None) -> Any:
        return LIBRARIES[library].dataset(self.path, version)

    def new_rows(self, count: int) -> list[Row]:
        keys = range(self.next_k, self.next_k + count)
        self.next_k += count
        return [
            {"k": k} | {name: value_of(kind, k) for name, kind in self.columns.items() if name != "k"} for k in keys
        ]

    def arrow(self, rows: list[Row]) -> pa.Table:
        return pa.Table.from_pylist(rows, schema=pa.schema(list(self.columns.items())))

    def matching(self, predicate: Predicate) -> list[Row]:
        return [row for row in self.rows if predicate.holds(row[predicate.column])]

    def indexed(self) -> set[str]:
        return {name for index in self.open("pylance").describe_indices() for name in index.field_names}

    def landed(self) -> None:
        """Remember what the version is that an operation made."""
        self.version = self.open("ours").version
        self.versions[self.version] = copy.deepcopy((self.rows, self.columns))

    @initialize(library=st.sampled_from(sorted(LIBRARIES)), stable=st.booleans(), count=st.sampled_from([1, 20, 100]))
    def create(self, library: str, stable: bool, count: int) -> None:
        self.stable = stable
        self.rows = self.new_rows(count)
        table = self.arrow(self.rows)
        LIBRARIES[library].write_dataset(table, self.path, max_rows_per_file=30, enable_stable_row_ids=stable)
        self.landed()

    @rule(library=st.sampled_from(sorted(LIBRARIES)), count=st.sampled_from([1, 7, 70]))
    def append(self, library: str, count: int) -> None:
        added = self.new_rows(count)
        LIBRARIES[library].write_dataset(self.arrow(added), self.path, mode="append", max_rows_per_file=40)
        self.rows += added
        self.landed()

    @rule(library=st.sampled_from(sorted(LIBRARIES)), count=st.sampled_from([1, 50]), same=st.booleans())
    def overwrite(self, library: str, count: int, same: bool) -> None:
        if not same:
            self.columns = dict(FIRST_COLUMNS)
        self.rows = self.new_rows(count)
        LIBRARIES[library].write_dataset(self.arrow(self.rows), self.path, mode="overwrite", max_rows_per_file=30)
        self.lineage = {}
        self.landed()

    @rule(library=st.sampled_from(sorted(LIBRARIES)), predicate=st.sampled_from(PREDICATES))
    def delete(self, library: str, predicate: Predicate) -> None:
        if predicate.column not in self.columns:
            return
        gone = self.matching(predicate)
        found = self.open(library).delete(predicate.sql)
        assert found["num_deleted_rows"] == len(gone)
        keys = {row["k"] for row in gone}
        self.rows = [row for row in self.rows if row["k"] not in keys]
        self.landed()

    @rule(library=st.sampled_from(sorted(LIBRARIES)), predicate=st.sampled_from(PREDICATES), data=st.data())
    def update(self, library: str, predicate: Predicate, data: st.DataObject) -> None:
        changeable = sorted(name for name, kind in self.columns.items() if kind in CHANGES and name != "k")
        if predicate.column not in self.columns or not changeable:
            return
        column = data.draw(st.sampled_from(changeable))
        sql, compute = data.draw(st.sampled_from(CHANGES[self.columns[column]]))
        changed = self.matching(predicate)
        found = self.open(library).update({column: sql}, predicate.sql)
        assert found["num_rows_updated"] == len(changed)
        for row in changed:
            row[column] = compute(row)
        self.landed()

    @rule(library=st.sampled_from(sorted(LIBRARIES)), kind=st.sampled_from([*CHANGES]), as_nulls=st.booleans())
    def add_column(self, library: str, kind: pa.DataType, as_nulls: bool) -> None:
        self.num_columns += 1
        name = f"c{self.num_columns}"
        values: list[Any] = [None] * len(self.rows)
        if as_nulls:
            self.open(library).add_columns(pa.field(name, kind))
        else:
            sql, compute = {
                pa.int32(): ("cast(k as int)", lambda row: row["k"]),
                pa.int64(): ("k * 3", lambda row: row["k"] * 3),
                pa.float64(): ("cast(k as double)", lambda row: float(row["k"])),
                pa.string(): ("cast(k as string)", lambda row: str(row["k"])),
            }[kind]
            self.open(library).add_columns({name: sql})
            values = [compute(row) for row in self.rows]
        for row, value in zip(self.rows, values, strict=True):
            row[name] = value
        self.columns[name] = kind
        self.landed()

    @precondition(lambda self: len(self.columns) > 2)
    @rule(library=st.sampled_from(sorted(LIBRARIES)), data=st.data())
    def drop_column(self, library: str, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.columns.keys() - {"k"})))
        self.open(library).drop_columns([name])
        del self.columns[name]
        for row in self.rows:
            del row[name]
        self.landed()

    @precondition(lambda self: self.columns.keys() - FIRST_COLUMNS.keys())
    @rule(library=st.sampled_from(sorted(LIBRARIES)), data=st.data())
    def rename_column(self, library: str, data: st.DataObject) -> None:
        old = data.draw(st.sampled_from(sorted(self.columns.keys() - FIRST_COLUMNS.keys())))
        self.num_columns += 1
        new = f"c{self.num_columns}"
        self.open(library).alter_columns({"path": old, "name": new})
        self.columns = {new if name == old else name: kind for name, kind in self.columns.items()}
        self.rows = [{new if name == old else name: value for name, value in row.items()} for row in self.rows]
        self.landed()

    @rule(library=st.sampled_from(sorted(LIBRARIES)), data=st.data())
    def cast_column(self, library: str, data: st.DataObject) -> None:
        fixed = {"k", *self.indexed()}
        castable = sorted(name for name, kind in self.columns.items() if kind in CASTS and name not in fixed)
        if not castable:
            return
        name = data.draw(st.sampled_from(castable))
        kind = CASTS[self.columns[name]]
        self.open(library).alter_columns({"path": name, "data_type": kind})
        self.columns[name] = kind
        self.landed()

    @rule(library=st.sampled_from(sorted(LIBRARIES)), size=st.sampled_from([20, 60, 1000]))
    def compact(self, library: str, size: int) -> None:
        self.open(library).optimize.compact_files(target_rows_per_fragment=size)
        self.landed()

    @rule(library=st.sampled_from(sorted(LIBRARIES)), data=st.data())
    def restore(self, library: str, data: st.DataObject) -> None:
        version = data.draw(st.sampled_from(sorted(self.versions)))
        self.open(library, version).restore()
        self.rows, self.columns = copy.deepcopy(self.versions[version])
        self.lineage = self.lineages.get(version, {})
        self.landed()

    @rule(data=st.data())
    def check_out(self, data: st.DataObject) -> None:
        version = data.draw(st.sampled_from(sorted(self.versions)))
        self.compare(version, *self.versions[version])

    @rule(kind=st.sampled_from(["BTREE", "ZONEMAP", "BITMAP"]), data=st.data())
    def create_index(self, kind: str, data: st.DataObject) -> None:
        column = data.draw(st.sampled_from(sorted(self.columns.keys() & {"k", "v", "s"})))
        self.open("pylance").create_scalar_index(column, kind)
        self.landed()

    @rule()
    def optimize_indices(self) -> None:
        self.open("pylance").optimize.optimize_indices()
        self.landed()

    @rule(predicate=st.sampled_from(PREDICATES))
    def query(self, predicate: Predicate) -> None:
        """Filter by both, by pylance with its indices."""
        if predicate.column not in self.columns:
            return
        expected = sorted(row["k"] for row in self.matching(predicate))
        for library in LIBRARIES:
            found = self.open(library).to_table(columns=["k"], filter=predicate.sql)["k"].to_pylist()
            assert sorted(found) == expected, (library, predicate.sql)

    @invariant()
    def both_see_the_model(self) -> None:
        if not self.version:
            return
        ours, reference = self.open("ours"), self.open("pylance")
        reference.validate()
        assert ours.version == reference.version == self.version
        assert [entry["version"] for entry in ours.versions()] == list(range(1, self.version + 1))
        self.compare(self.version, self.rows, self.columns)
        self.compare_lineage(ours, reference)

    def compare(self, version: int, rows: list[Row], columns: dict[str, pa.DataType]) -> None:
        ours, reference = self.open("ours", version), self.open("pylance", version)
        table = reference.to_table()
        assert ours.to_table() == table
        assert {field.name: field.type for field in table.schema} == columns
        assert table.schema.names == list(columns)
        assert table.sort_by("k").to_pylist() == sorted(rows, key=lambda row: row["k"])

    def compare_lineage(self, ours: Any, reference: Any) -> None:
        if not self.stable:
            assert ours.to_table(["k", "_rowid"]) == reference.to_table(columns=["k", "_rowid"])
            return
        found = ours.to_table(["k", *LINEAGE])
        assert found == reference.to_table(columns=["k", *LINEAGE])
        now = {row.pop("k"): tuple(row.values()) for row in found.to_pylist()}
        assert len({row_id for row_id, _, _ in now.values()}) == len(now)
        for k, (row_id, created_at, _) in now.items():
            if k in self.lineage:
                assert (row_id, created_at) == self.lineage[k][:2], k
        self.lineage = now
        self.lineages[self.version] = now


def run(examples: int, steps: int, *, derandomize: bool) -> None:
    run_state_machine_as_test(
        TableMachine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            derandomize=derandomize,
            deadline=None,
            database=None,
            report_multiple_bugs=False,
            phases=[Phase.generate, *([] if derandomize else [Phase.shrink])],
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_operations_in_any_order() -> None:
    run(12, 12, derandomize=True)


@pytest.mark.nightly
def test_operations_in_any_order_for_long() -> None:
    size = [
        int(os.environ.get(f"LANCE_MACHINE_{name}", default)) for name, default in (("EXAMPLES", 500), ("STEPS", 30))
    ]
    run(*size, derandomize=False)
