"""Every ordered pair of operations on one table: the first is planned, the second lands, then the first is committed.

Pylance commits the same transaction on a copy of the table: the outcome, success or error, must agree. If both land,
the table must be that of one operation after the other.
"""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lance
import lance.file
import pyarrow as pa
import pytest
from lance.fragment import DataFile

import lance_format
from lance_format import CommitConflictError, RetryableCommitConflictError
from lance_format.table.maintenance.compaction import commit_rewrites, plan_compaction
from lance_format.table.maintenance.compaction_options import CompactionOptions
from lance_format.table.transaction.operations import ReserveFragments
from lance_format.table.transaction.transaction import Transaction, parse_transaction
from lance_format.table.versions.commit import commit
from tests.table.builders import open_directory

BASE = 3
ROWS = [{"a": a, "s": f"s{a % 3}"} for a in range(30)]
NEW_ROW = {"a": [1000], "s": ["new"], "b": [7]}


def make_base(path: Path, *, stable: bool) -> None:
    """Write fragments 0 to 2 of ten rows, with column b in a separate file, and fragment 3 of three rows."""
    table = lance.write_dataset(pa.Table.from_pylist(ROWS), path, max_rows_per_file=10, enable_stable_row_ids=stable)
    table.add_columns({"b": "a * 2"})
    table.insert(pa.table({"a": [100, 101, 102], "s": ["x"] * 3, "b": [1, 2, 3]}))
    assert table.version == BASE


def rewrite(path: Path, first: int) -> None:
    """Compact two neighbouring fragments, by ours: pylance's reserves ids by a commit of its own before."""
    table = lance_format.dataset(path)._table
    plan = plan_compaction(table, CompactionOptions(target_rows_per_fragment=13))
    tasks = [task for task in plan.tasks if task.fragments[0].id == first]
    assert len(tasks) == 1
    commit_rewrites(table, [task.run(table) for task in tasks])


def replace_data(path: Path, fragment_id: int) -> None:
    table = lance.dataset(path)
    replaced = next(file for file in table.get_fragment(fragment_id).data_files() if file.fields == [2])
    name = f"replacement-{fragment_id}.lance"
    with lance.file.LanceFileWriter(str(path / "data" / name), pa.schema([("b", pa.int64())])) as writer:
        writer.write_batch(pa.table({"b": [-1] * 10}))
    size = (path / "data" / name).stat().st_size
    file = DataFile(name, [2], [0], replaced.file_major_version, replaced.file_minor_version, size)
    group = lance.LanceOperation.DataReplacementGroup(fragment_id, file)
    operation = lance.LanceOperation.DataReplacement([group])
    lance.LanceDataset.commit(path, operation, read_version=table.version)


def reserve(path: Path) -> None:
    lance_format.dataset(path)._table.commit(ReserveFragments(3))


OPERATIONS: dict[str, Callable[[Path], Any]] = {
    "append": lambda path: lance.write_dataset(pa.table(NEW_ROW), path, mode="append"),
    "delete": lambda path: lance.dataset(path).delete("a = 1"),
    "update": lambda path: lance.dataset(path).update({"s": "'updated'"}, "a = 2"),
    "overwrite": lambda path: lance.write_dataset(pa.table(NEW_ROW), path, mode="overwrite"),
    "rewrite": lambda path: rewrite(path, 0),
    "merge": lambda path: lance.dataset(path).add_columns({"c": "a + 1"}),
    "project": lambda path: lance.dataset(path).drop_columns(["s"]),
    "create_index": lambda path: lance.dataset(path).create_scalar_index("a", "BTREE"),
    "restore": lambda path: lance.dataset(path, 1).restore(),
    "update_config": lambda path: lance.dataset(path).update_config({"key": "value"}),
    "data_replacement": lambda path: replace_data(path, 0),
    "reserve_fragments": reserve,
    # The same rows, and other fragments.
    "delete 2": lambda path: lance.dataset(path).delete("a = 2"),
    "delete far": lambda path: lance.dataset(path).delete("a = 21"),
    "delete all": lambda path: lance.dataset(path).delete("a < 10"),
    "update 1": lambda path: lance.dataset(path).update({"s": "'other'"}, "a = 1"),
    "update far": lambda path: lance.dataset(path).update({"s": "'far'"}, "a = 22"),
    "update all": lambda path: lance.dataset(path).update({"s": "'all'"}, "a < 10"),
    "rewrite far": lambda path: rewrite(path, 2),
    "replacement far": lambda path: replace_data(path, 2),
    "create_index s": lambda path: lance.dataset(path).create_scalar_index("s", "BITMAP"),
    "update_config 2": lambda path: lance.dataset(path).update_config({"other": "value"}),
}


# Operations that leave the rows as they are.
KEEPING = ("rewrite", "create_index", "update_config", "reserve_fragments")

# Operations that cannot be planned after a column is dropped, but land if they were before.
NAMING_S = ("append", "update")

# Rows: what is committed, planned before. Columns: what landed meanwhile, the same operations. y: lands, r: has to be
# planned again, n: cannot follow; m: ours unites the deletions of different rows in a fragment, while pylance asks for
# another plan, since a transaction does not tell it the rows. pylance cannot commit reservations alone: that row is
# what the commit protocol says.
VERDICTS = """
append            y y y n y y y y n y y y y y y y y y y y y y
delete            y r m n r r y y n y r y m y r r y r y y y y
update            y m r n r r y y n y r y r y r m y r y y y y
overwrite         y y y r y y y y y y y y y y y y y y y y y y
rewrite           y r r n r r y r n y r y r y r r y r y y r y
merge             r r r n r r n y n y r y r r r r r r r r y y
project           y y y n y r r y n y y y y y y y y y y y y y
create_index      y y y n r y y r n y y y y y y y y y r y y y
restore           y y y y y y y y y y y y y y y y y y y y y y
update_config     y y y y y y y y y n y y y y y y y y y y y y
data_replacement  y y r n r r y y n y r y y y n r y n y y y y
reserve_fragments y y y n y y y y n y y y y y y y y y y y y y
delete 2          y m r n r r y y n y r y r y r m y r y y y y
delete far        y y y n y r y y n y y y y r y y m y r r y y
delete all        y r r n r r y y n y r y r y r r y r y y y y
update 1          y r m n r r y y n y r y m y r r y r y y y y
update far        y y y n y r y y n y y y y m y y r y r r y y
update all        y r r n r r y y n y r y r y r r y r y y y y
rewrite far       y y y n y r y r n y y y y r y y r y r r r y
replacement far   y y y n y r y y n y y y y y y y r y r r y y
create_index s    y y y n r y y y n y y y y y y y y y r y r y
update_config 2   y y y y y y y y y y y y y y y y y y y y y n
"""


@dataclass(frozen=True)
class Planned:
    """A transaction on the base, and the files that it needs."""

    files: dict[str, bytes]
    serialized: bytes
    reference: Any

    @property
    def transaction(self) -> Transaction:
        return parse_transaction(self.serialized)

    def stage(self, path: Path) -> None:
        for name, content in self.files.items():
            target = path / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)


@dataclass(frozen=True)
class Plans:
    """Every operation as planned on the base, and the tables on which other plans of it landed."""

    directory: Path
    planned: dict[str, Planned]

    def landed(self, name: str) -> Path:
        return self.directory / f"landed {name}"


def files_of(path: Path) -> set[Path]:
    return {file.relative_to(path) for file in path.rglob("*") if file.is_file()}


def plan(base: Path, scratch: Path, name: str) -> Planned:
    shutil.copytree(base, scratch)
    OPERATIONS[name](scratch)
    added = sorted(files_of(scratch) - files_of(base))
    assert sum(file.suffix == ".manifest" for file in added) == 1
    (transaction,) = [file for file in added if file.suffix == ".txn"]
    files = {str(f): (scratch / f).read_bytes() for f in added if f.parts[0] not in ("_versions", "_transactions")}
    reference = None if name == "reserve_fragments" else lance.dataset(scratch).read_transaction(BASE + 1)
    return Planned(files, (scratch / transaction).read_bytes(), reference)


@pytest.fixture(
    scope="module", params=[False, pytest.param(True, marks=pytest.mark.nightly)], ids=["addresses", "stable ids"]
)
def plans(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Plans:
    directory = tmp_path_factory.mktemp("plans")
    make_base(directory / "base", stable=request.param)
    for name in OPERATIONS:
        plan(directory / "base", directory / f"landed {name}", name)
    planned = {name: plan(directory / "base", directory / f"planned {name}", name) for name in OPERATIONS}
    return Plans(directory, planned)


def staged(plans: Plans, path: Path, own: str, other: str) -> Path:
    """Make a table on which one operation has landed, with the files of another."""
    shutil.copytree(plans.landed(other), path)
    plans.planned[own].stage(path)
    return path


def commit_ours(path: Path, planned: Planned) -> str:
    try:
        assert commit(open_directory(path), planned.transaction).version == BASE + 2
    except RetryableCommitConflictError:
        return "r"
    except CommitConflictError:
        return "n"
    return "y"


def commit_pylance(path: Path, planned: Planned) -> str:
    try:
        assert lance.LanceDataset.commit(path, planned.reference).version == BASE + 2
    except OSError as error:
        return "r" if "Retryable commit conflict" in str(error) else "n" if "ncompatible" in str(error) else str(error)
    return "y"


def rows_of(path: Path) -> list[dict[str, Any]]:
    """Return the rows as both libraries see them."""
    reference = lance.dataset(path)
    reference.validate()
    table = reference.to_table()
    assert lance_format.dataset(path).to_table() == table
    return sorted(table.to_pylist(), key=lambda row: row["a"])


def expected_verdicts() -> dict[tuple[str, str], str]:
    lines = VERDICTS.split("\n")[1:-1]
    return {
        (own, other): verdict
        for own, line in zip(OPERATIONS, lines, strict=True)
        for other, verdict in zip(OPERATIONS, line[len(own) :].split(), strict=True)
    }


@pytest.mark.slow
@pytest.mark.parametrize("own", OPERATIONS)
def test_pairs(plans: Plans, tmp_path: Path, own: str) -> None:
    expected = expected_verdicts()
    for number, other in enumerate(OPERATIONS):
        verdict = expected[own, other]
        ours = staged(plans, tmp_path / f"{number} ours", own, other)
        assert commit_ours(ours, plans.planned[own]) == ("y" if verdict == "m" else verdict), other
        theirs = None
        if plans.planned[own].reference is not None:
            theirs = staged(plans, tmp_path / f"{number} theirs", own, other)
            assert commit_pylance(theirs, plans.planned[own]) == ("r" if verdict == "m" else verdict), other
        if verdict not in "ym":
            assert lance_format.dataset(ours).version == BASE + 1
            continue
        rows = rows_of(ours)
        if verdict == "y" and theirs is not None:
            assert rows == rows_of(theirs), other
        if other != "project" or not own.startswith(NAMING_S):
            serial = plans.landed(other)
            if not own.startswith(KEEPING):
                serial = staged(plans, tmp_path / f"{number} serial", own, other)
                OPERATIONS[own](serial)
            assert rows == rows_of(serial), other


@pytest.mark.slow
@pytest.mark.parametrize("own", OPERATIONS)
def test_a_transaction_lands_once(plans: Plans, tmp_path: Path, own: str) -> None:
    """Committed again by the same writer, by ours after pylance, and after others have landed on top."""
    planned = plans.planned[own]
    ours, landed = tmp_path / "ours", plans.directory / f"planned {own}"
    shutil.copytree(plans.directory / "base", ours)
    planned.stage(ours)
    assert commit(open_directory(ours), planned.transaction).version == BASE + 1
    lance.dataset(ours).update_config({"later": "yes"})
    for path, version in ((ours, BASE + 2), (landed, BASE + 1)):
        before, rows = files_of(path), rows_of(path)
        for _ in range(3):
            assert commit(open_directory(path), planned.transaction).version == BASE + 1
        assert files_of(path) == before
        assert (lance.dataset(path).version, rows_of(path)) == (version, rows)
