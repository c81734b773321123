"""Operations of both libraries on one table, in any order, against a model of it: a list of rows.

Every operation is a rule; to add one, add a method like the others: do it by `self.open(library)`, change `self.table`,
which is the branch in use, accordingly, and call `self.landed()`. The nightly size is set by LANCE_MACHINE_EXAMPLES and
LANCE_MACHINE_STEPS.
"""

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import lance
import lance.indices
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
from tests.interop.table_model import (
    CASTS,
    CHANGES,
    FIRST_COLUMNS,
    MERGES,
    PREDICATES,
    Branch,
    Predicate,
    Row,
    value_of,
)

pytestmark = pytest.mark.system

LIBRARIES: dict[str, Any] = {"ours": lance_format, "pylance": lance}
LINEAGE = ["_rowid", "_row_created_at_version", "_row_last_updated_at_version"]
MAX_BRANCHES = 3

some_library = st.sampled_from(sorted(LIBRARIES))
some_predicate = st.sampled_from(PREDICATES)


class TableMachine(RuleBasedStateMachine):
    """One table, its model, and what both readers have to see."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = tempfile.mkdtemp()
        self.root = str(Path(self.directory) / "t")
        self.table = Branch(self.root)
        self.branches = {"main": self.table}
        self.starts: dict[str, tuple[str, int]] = {}
        self.tags: dict[str, tuple[str, int]] = {}
        self.next_k = 0
        self.num_names = 0

    def teardown(self) -> None:
        shutil.rmtree(self.directory)

    def open(self, library: str, version: int | None = None) -> Any:
        return LIBRARIES[library].dataset(self.table.path, version)

    def new_name(self, start: str) -> str:
        self.num_names += 1
        return f"{start}{self.num_names}"

    def new_rows(self, count: int) -> list[Row]:
        keys = range(self.next_k, self.next_k + count)
        self.next_k += count
        return [{name: k if name == "k" else value_of(kind, k) for name, kind in self.columns.items()} for k in keys]

    @property
    def columns(self) -> dict[str, pa.DataType]:
        return self.table.columns

    def indexed(self) -> set[str]:
        return {name for index in self.open("pylance").describe_indices() for name in index.field_names}

    def landed(self) -> None:
        """Record the version that an operation made."""
        self.table.landed(self.open("ours").version)

    @initialize(library=some_library, stable=st.booleans(), count=st.sampled_from([1, 20, 100]))
    def create(self, library: str, stable: bool, count: int) -> None:
        self.stable = stable
        self.table.rows = self.new_rows(count)
        table = self.table.arrow(self.table.rows)
        LIBRARIES[library].write_dataset(table, self.root, max_rows_per_file=30, enable_stable_row_ids=stable)
        self.landed()

    @rule(library=some_library, count=st.sampled_from([1, 7, 70]), data=st.data())
    def append(self, library: str, count: int, data: st.DataObject) -> None:
        """Append rows, which may lack a column."""
        lacking = data.draw(st.sampled_from([None, None, *sorted(self.columns.keys() - {"k"})]))
        added = [row | ({} if lacking is None else {lacking: None}) for row in self.new_rows(count)]
        table = self.table.arrow(added, self.columns.keys() - {lacking})
        LIBRARIES[library].write_dataset(table, self.table.path, mode="append", max_rows_per_file=40)
        self.table.rows += added
        self.landed()

    @rule(library=some_library, count=st.sampled_from([1, 50]), same=st.booleans())
    def overwrite(self, library: str, count: int, same: bool) -> None:
        if not same:
            self.table.columns = dict(FIRST_COLUMNS)
        self.table.rows = self.new_rows(count)
        table = self.table.arrow(self.table.rows)
        LIBRARIES[library].write_dataset(table, self.table.path, mode="overwrite", max_rows_per_file=30)
        self.table.lineage = {}
        self.landed()

    @rule(library=some_library, predicate=some_predicate)
    def delete(self, library: str, predicate: Predicate) -> None:
        if predicate.column not in self.columns:
            return
        gone = self.table.matching(predicate)
        found = self.open(library).delete(predicate.sql)
        assert found["num_deleted_rows"] == len(gone)
        self.table.remove(row["k"] for row in gone)
        self.landed()

    @rule(library=some_library, predicate=some_predicate, data=st.data())
    def update(self, library: str, predicate: Predicate, data: st.DataObject) -> None:
        changeable = sorted(name for name, kind in self.columns.items() if kind in CHANGES and name != "k")
        if predicate.column not in self.columns or not changeable:
            return
        column = data.draw(st.sampled_from(changeable))
        sql, compute = data.draw(st.sampled_from(CHANGES[self.columns[column]]))
        changed = self.table.matching(predicate)
        found = self.open(library).update({column: sql}, predicate.sql)
        assert found["num_rows_updated"] == len(changed)
        for row in changed:
            row[column] = compute(row)
        self.landed()

    @rule(
        library=some_library,
        clauses=st.sampled_from(sorted(MERGES)),
        matched=some_predicate,
        count=st.sampled_from([0, 1, 20]),
        others=some_predicate,
        whole=st.booleans(),
        data=st.data(),
    )
    def merge_insert(
        self,
        library: str,
        clauses: str,
        matched: Predicate,
        count: int,
        others: Predicate,
        whole: bool,
        data: st.DataObject,
    ) -> None:
        """Merge some rows that are there, with other values, and some that are not, of all columns or some."""
        if not {matched.column, others.column} <= self.columns.keys():
            return
        given = set(self.columns) if whole else {"k", data.draw(st.sampled_from(sorted(self.columns)))}
        keys = [row["k"] for row in self.table.matching(matched)][:50]
        source = [row | {"k": k} for k, row in zip(keys, self.new_rows(len(keys)), strict=True)] + self.new_rows(count)
        data.draw(st.randoms(use_true_random=False)).shuffle(source)
        source = [{name: row[name] for name in row if name in given} for row in source]
        merge = MERGES[clauses].build(self.open(library).merge_insert("k"), others)
        found = merge.execute(self.table.arrow(source, given))
        expected = self.table.merge(source, MERGES[clauses], others)
        assert {name: found[name] for name in expected} == expected
        self.landed()

    @rule(library=some_library, kind=st.sampled_from([*CHANGES]), as_nulls=st.booleans())
    def add_column(self, library: str, kind: pa.DataType, as_nulls: bool) -> None:
        name = self.new_name("c")
        values: list[Any] = [None] * len(self.table.rows)
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
            values = [compute(row) for row in self.table.rows]
        for row, value in zip(self.table.rows, values, strict=True):
            row[name] = value
        self.columns[name] = kind
        self.landed()

    @rule(library=some_library, predicate=some_predicate)
    def add_column_by_key(self, library: str, predicate: Predicate) -> None:
        if predicate.column not in self.columns or not self.table.matching(predicate):
            return  # pylance refuses to merge nothing.
        name = self.new_name("c")
        values = {row["k"]: row["k"] * 5 for row in self.table.matching(predicate)}
        keys = pa.array(values.keys(), pa.int64())
        self.open(library).merge(pa.table({"key": keys, name: pa.array(values.values(), pa.int64())}), "k", "key")
        for row in self.table.rows:
            row[name] = values.get(row["k"])
        self.columns[name] = pa.int64()
        self.landed()

    @precondition(lambda self: len(self.columns) > 2)
    @rule(library=some_library, data=st.data())
    def drop_column(self, library: str, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.columns.keys() - {"k"})))
        self.open(library).drop_columns([name])
        del self.columns[name]
        for row in self.table.rows:
            del row[name]
        self.landed()

    @precondition(lambda self: self.columns.keys() - FIRST_COLUMNS.keys())
    @rule(library=some_library, data=st.data())
    def rename_column(self, library: str, data: st.DataObject) -> None:
        old = data.draw(st.sampled_from(sorted(self.columns.keys() - FIRST_COLUMNS.keys())))
        new = self.new_name("c")
        self.open(library).alter_columns({"path": old, "name": new})
        self.table.columns = {new if name == old else name: kind for name, kind in self.columns.items()}
        self.table.rows = [
            {new if name == old else name: value for name, value in row.items()} for row in self.table.rows
        ]
        self.landed()

    @rule(library=some_library, data=st.data())
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

    @rule(library=some_library, size=st.sampled_from([20, 60, 1000]), materialize=st.booleans())
    def compact(self, library: str, size: int, materialize: bool) -> None:
        self.open(library).optimize.compact_files(target_rows_per_fragment=size, materialize_deletions=materialize)
        self.landed()

    @rule(library=some_library, data=st.data())
    def restore(self, library: str, data: st.DataObject) -> None:
        version = data.draw(st.sampled_from(sorted(self.table.versions)))
        self.open(library, version).restore()
        self.table.recall(version)
        self.landed()

    @rule(data=st.data())
    def check_out(self, data: st.DataObject) -> None:
        self.compare(self.table, data.draw(st.sampled_from(sorted(self.table.versions))))

    @rule(library=some_library, count=st.sampled_from([1, 3]), unverified=st.booleans())
    def clean_up(self, library: str, count: int, unverified: bool) -> None:
        """Remove all versions except some, tagged ones, and starts of branches.

        Of the latter, pylance removes those of which the branch has no file.
        """
        tagged, started = (
            {version for name, version in references.values() if name == self.table.name}
            for references in (self.tags, self.starts)
        )
        old = [version for version in sorted(self.table.versions)[:-count] if version not in tagged]
        stats = self.open(library).cleanup_old_versions(
            retain_versions=count, delete_unverified=unverified, error_if_tagged_old_versions=False
        )
        left = {found["version"] for found in self.open(library).versions()} if library == "pylance" else started
        gone = [version for version in old if version not in started & left]
        assert stats.old_versions == len(gone)
        for version in gone:
            del self.table.versions[version]
        for branch in self.branches.values():
            for version in branch.versions:
                self.compare(branch, version)

    @rule(library=some_library, name=st.sampled_from(["here", "there"]), data=st.data())
    def tag(self, library: str, name: str, data: st.DataObject) -> None:
        reference = self.table.name, data.draw(st.sampled_from(sorted(self.table.versions)))
        tags = LIBRARIES[library].dataset(self.root).tags
        (tags.update if name in self.tags else tags.create)(name, reference)
        self.tags[name] = reference

    @precondition(lambda self: self.tags)
    @rule(library=some_library, data=st.data())
    def untag(self, library: str, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.tags)))
        LIBRARIES[library].dataset(self.root).tags.delete(name)
        del self.tags[name]

    @precondition(lambda self: len(self.branches) < MAX_BRANCHES)
    @rule(library=some_library, data=st.data())
    def create_branch(self, library: str, data: st.DataObject) -> None:
        name, version = self.new_name("b"), data.draw(st.sampled_from(sorted(self.table.versions)))
        LIBRARIES[library].dataset(self.root).create_branch(name, (self.table.name, version))
        self.branches[name] = self.table.start(str(Path(self.root) / "tree" / name), name, version)
        self.starts[name] = self.table.name, version
        self.table = self.branches[name]

    @precondition(lambda self: len(self.branches) > 1)
    @rule(data=st.data())
    def use_branch(self, data: st.DataObject) -> None:
        self.table = self.branches[data.draw(st.sampled_from(sorted(self.branches)))]

    @rule(library=some_library, data=st.data())
    def delete_branch(self, library: str, data: st.DataObject) -> None:
        named = {name for name, _ in (*self.tags.values(), *self.starts.values())}
        free = sorted(self.branches.keys() - named - {"main"})
        if not free:
            return
        name = data.draw(st.sampled_from(free))
        LIBRARIES[library].dataset(self.root).branches.delete(name)
        del self.branches[name], self.starts[name]
        self.table = self.branches.get(self.table.name, self.branches["main"])

    @rule(kind=st.sampled_from(["BTREE", "BITMAP"]), data=st.data())
    def create_index(self, kind: str, data: st.DataObject) -> None:
        column = data.draw(st.sampled_from(sorted(self.columns.keys() & {"k", "v", "s"})))
        self.open("pylance").create_scalar_index(column, kind)
        self.landed()

    @rule(library=some_library, rows_per_zone=st.sampled_from([1, 8, 8192]), data=st.data())
    def create_zone_map(self, library: str, rows_per_zone: int, data: st.DataObject) -> None:
        column = data.draw(st.sampled_from(sorted(self.columns.keys() & {"k", "v", "s"})))
        config = lance.indices.IndexConfig("ZONEMAP", {"rows_per_zone": rows_per_zone, "use_seeds": rows_per_zone > 1})
        self.open(library).create_scalar_index(column, config)
        self.landed()

    @rule(library=some_library, num_to_merge=st.sampled_from([None, 0, 2]))
    def optimize_indices(self, library: str, num_to_merge: int | None) -> None:
        self.open(library).optimize.optimize_indices(num_indices_to_merge=num_to_merge)
        self.landed()

    @rule(predicate=some_predicate)
    def query(self, predicate: Predicate) -> None:
        """Filter by both, by pylance with its indices."""
        if predicate.column not in self.columns:
            return
        expected = sorted(row["k"] for row in self.table.matching(predicate))
        for library in LIBRARIES:
            found = self.open(library).to_table(columns=["k"], filter=predicate.sql)["k"].to_pylist()
            assert sorted(found) == expected, (library, predicate.sql)

    @precondition(lambda self: self.table.rows)
    @rule(data=st.data())
    def take(self, data: st.DataObject) -> None:
        """Read single rows by their place and by their id, where ids are stable also by those of rows that are gone."""
        ours, reference = self.open("ours"), self.open("pylance")
        found = ours.to_table(["k", "_rowid"])
        places = data.draw(st.lists(st.integers(0, len(found) - 1), min_size=1, max_size=20))
        by_key = {row["k"]: row for row in self.table.rows}
        expected = [by_key[found["k"][place].as_py()] for place in places]
        assert ours.take(places).to_pylist() == reference.take(places).to_pylist() == expected
        ids = [found["_rowid"][place].as_py() for place in places]
        if self.stable:
            earlier = [row_id for lineage in self.table.lineages.values() for row_id, _, _ in lineage.values()]
            gone = sorted(set(earlier) - set(found["_rowid"].to_pylist()))
            ids += gone[:3]
        assert ours.take_rows(ids).to_pylist() == reference._take_rows(ids).to_pylist() == expected

    @invariant()
    def both_see_the_model(self) -> None:
        if not self.table.version:
            return
        ours, reference = self.open("ours"), self.open("pylance")
        reference.validate()
        ours.validate()
        assert ours.version == reference.version == self.table.version
        assert [entry["version"] for entry in ours.versions()] == sorted(self.table.versions)
        self.compare(self.table, self.table.version)
        self.compare_lineage(ours, reference)
        self.compare_names()

    def compare(self, branch: Branch, version: int) -> None:
        ours, reference = (library.dataset(branch.path, version) for library in (lance_format, lance))
        rows, columns = branch.versions[version]
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
            if k in self.table.lineage:
                assert (row_id, created_at) == self.table.lineage[k][:2], k
        self.table.lineage = now
        self.table.lineages[self.table.version] = now

    def compare_names(self) -> None:
        """Compare the tags, and the branches."""
        ours, reference = (LIBRARIES[library].dataset(self.root) for library in ("ours", "pylance"))
        assert ours.tags.list() == reference.tags.list()
        assert {name: (tag["branch"] or "main", tag["version"]) for name, tag in ours.tags.list().items()} == self.tags
        for name, (branch, version) in self.tags.items():
            expected = sorted(row["k"] for row in self.branches[branch].versions[version][0])
            for table in (ours, reference):
                assert sorted(table.checkout_version(name).to_table(["k"])["k"].to_pylist()) == expected
        assert ours.branches.list() == reference.branches.list()
        assert {
            name: (made["parent_branch"] or "main", made["parent_version"])
            for name, made in ours.branches.list().items()
        } == self.starts


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
    run(30, 16, derandomize=True)


@pytest.mark.nightly
def test_operations_in_any_order_for_long() -> None:
    size = [
        int(os.environ.get(f"LANCE_MACHINE_{name}", default)) for name, default in (("EXAMPLES", 500), ("STEPS", 30))
    ]
    run(*size, derandomize=False)
