"""Scans and deletions: what pylance answers, over tables of either library, is what we answer."""

import shutil
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lance_format
from lance_format import InvalidInputError, NotSupportedError, RetryableCommitConflictError
from lance_format.object_store import resolve
from lance_format.proto import table_pb2
from lance_format.table.changes.rows.delete import plan_delete
from lance_format.table.format.table_directory import TableDirectory
from lance_format.table.versions.history import load_history
from lance_format.table.versions.planned_change import run_change
from lance_format.table.versions.table_version import TableVersion
from tests.interop.test_table_pylance import assert_same
from tests.table.builders import changed_manifest


def delete_rows(table: TableVersion, predicate: str) -> tuple[TableVersion, int]:
    """Delete rows, planned on a version that need not be the latest."""
    made, result = run_change(table, plan_delete(table, predicate))
    return made, result.num_deleted_rows


def people(num_rows: int) -> pa.Table:
    names = [None if n % 7 == 0 else f"name {n % 13}" for n in range(num_rows)]
    home = [{"city": f"city {n % 5}", "floor": n} if n % 3 else None for n in range(num_rows)]
    return pa.table({"id": range(num_rows), "name": names, "home": home, "x": np.arange(num_rows) / 4})


@pytest.fixture(params=[False, True], ids=["addresses", "stable ids"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A table of pylance with several fragments, some rows of them deleted."""
    table = lance.write_dataset(
        people(100), str(tmp_path / "t"), max_rows_per_file=30, enable_stable_row_ids=request.param
    )
    table.delete("id % 10 = 3")
    table.insert(people(20))
    return tmp_path / "t"


SCANS: list[dict[str, Any]] = [
    {},
    {"columns": ["name", "id"]},
    {"columns": ["home.city", "id", "_rowid"]},
    {"columns": {"twice": "id * 2", "city": "home.city"}},
    {"columns": ["_rowaddr", "_rowoffset", "_row_created_at_version", "_row_last_updated_at_version"]},
    {"with_row_id": True, "with_row_address": True},
    {"columns": ["_rowaddr", "_rowid", "id"], "with_row_id": True},
    {"columns": ["_rowid", "id", "_rowaddr", "name"], "with_row_id": True, "with_row_address": True},
    {"columns": [], "with_row_id": True},
    {"columns": [], "filter": "id > 50"},
    {"columns": ["x"], "filter": "name IS NULL AND home.floor < 60"},
    {"filter": "id < 0"},
    {"filter": pc.field("name") == "name 4"},
    {"columns": ["id"], "filter": "_rowid in (1, 5, 64, 70)"},
    {"columns": ["id"], "filter": "id % 2 = 0", "limit": 7, "offset": 20},
    {"columns": ["id"], "limit": 40, "offset": 25},
    {"columns": ["id"], "limit": 0},
    {"columns": ["id"], "offset": 1000},
    {"columns": ["id"], "filter": "id > 5", "offset": 1000},
    {"columns": ["id", "_rowoffset"], "filter": "id > 95"},
]


def test_places_of_the_rows_of_one_fragment(path: Path) -> None:
    ours, reference = lance_format.dataset(path).get_fragments(), lance.dataset(str(path)).get_fragments()
    columns = ["_rowoffset", "id", "_rowid"]
    assert len(ours) == 5
    for mine, theirs in zip(ours, reference, strict=True):
        assert mine.to_table(columns) == theirs.to_table(columns=columns)
        assert mine.to_table(columns, limit=3, offset=5) == theirs.to_table(columns=columns, limit=3, offset=5)


@pytest.mark.slow
@pytest.mark.parametrize("scan", SCANS, ids=str)
def test_scans(path: Path, scan: dict[str, Any]) -> None:
    reference = lance.dataset(str(path)).to_table(**scan)
    ours = lance_format.dataset(path).to_table(**scan)
    assert ours.schema == reference.schema
    assert ours.num_rows == reference.num_rows
    assert ours == reference
    batches = list(lance_format.dataset(path).to_batches(batch_size=7, **scan))
    assert sum(batch.num_rows for batch in batches) == reference.num_rows
    assert all(0 < batch.num_rows <= 7 for batch in batches)


def test_arguments_of_pylance_are_known(path: Path) -> None:
    table = lance_format.dataset(path)
    assert table.to_table(scan_in_order=True, batch_readahead=3, nearest=None) == table.to_table()
    with pytest.raises(InvalidInputError, match="no argument 'colums'"):
        table.to_table(colums=["id"])
    with pytest.raises(NotSupportedError, match="all parts of an index are used"):
        table.to_table(index_segments=["x"])


@pytest.mark.parametrize("predicate", ["id > 50", "name is null", "home.city = 'city 2'", "x > 3.5", None])
def test_counts(path: Path, predicate: str | None) -> None:
    ours, reference = lance_format.dataset(path), lance.dataset(str(path))
    assert ours.count_rows(predicate) == reference.count_rows(predicate)
    counts = [fragment.count_rows(predicate) for fragment in ours.get_fragments()]
    assert counts == [fragment.count_rows(predicate) for fragment in reference.get_fragments()]


def test_takes(path: Path) -> None:
    ours, reference = lance_format.dataset(path), lance.dataset(str(path))
    places = [100, 0, 3, 40, 3, 99]
    assert ours.take(places) == reference.take(places)
    assert ours.take(places, ["_rowid", "id"]) == reference.take(places, ["_rowid", "id"])
    assert ours.take(places, {"y": "id + 1"}) == reference.take(places, {"y": "id + 1"})
    ids = reference.to_table(columns=["_rowid"])["_rowid"]
    wanted = ids.take(pa.array(places))
    assert ours.take_rows(wanted.to_numpy(), ["id"]) == reference.take(places, ["id"])
    gone = 3
    assert gone not in ids.to_pylist()
    assert ours.take_rows([gone, 2**63, ids[5].as_py()], ["id"]) == reference.take([5], ["id"])
    assert ours.take_rows([]).num_rows == 0


@pytest.mark.parametrize(
    "scan",
    [
        {"columns": ["nope"]},
        {"columns": ["home.nope"]},
        {"columns": ["id + 1"]},
        {"columns": ["id", "id"]},
        {"columns": "id"},
        {"columns": {"y": "nope + 1"}},
        {"filter": "nope = 1"},
        {"filter": "id + 1"},
        {"filter": "id >"},
        {"limit": -1},
        {"batch_size": 0},
    ],
    ids=str,
)
def test_nonsense_is_refused(path: Path, scan: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        lance_format.dataset(path).to_table(**scan)


@pytest.mark.parametrize("predicate", ["id = 5", "id > 25 and id < 95", "id >= 0", "false", "name is null", "x > 10"])
def test_deletes(path: Path, predicate: str) -> None:
    table = lance_format.dataset(path)
    before, version = table.count_rows(), table.version
    expected = table.count_rows(predicate)
    assert table.delete(predicate) == {"num_deleted_rows": expected}
    assert (table.version, table.count_rows()) == (version + 1, before - expected)
    assert_same(path)
    reference = lance.dataset(str(path))
    reference.delete("id % 4 = 0")
    reference.insert(people(3))
    assert_same(path)


def test_many_deletions_are_a_bitmap(tmp_path: Path) -> None:
    lance_format.write_dataset(people(40_000), tmp_path, max_rows_per_file=30_000)
    table = lance_format.dataset(tmp_path)
    for predicate in ("id % 3 = 0", "id % 3 = 1", "id > 29000"):
        table.delete(predicate)
        assert_same(tmp_path)
    kinds = [path.suffix for path in (tmp_path / "_deletions").iterdir()]
    assert set(kinds) == {".arrow", ".bin"} or set(kinds) == {".bin"}


def test_deletions_of_other_rows_of_a_fragment_are_united(path: Path) -> None:
    """Ours, planned before others landed, of both libraries, in the same fragments."""
    stale = lance_format.dataset(path)._table
    lance.dataset(str(path)).delete("id % 10 = 4")
    lance_format.dataset(path).delete("id = 61")
    made, num_rows = delete_rows(stale, "id % 10 = 5 or id = 0")
    assert num_rows == 14
    assert made.manifest.version == stale.manifest.version + 3
    assert_same(path)
    left = lance_format.dataset(path).to_table(["id"])["id"].to_pylist()
    assert not [n for n in left if n % 10 in (4, 5) or n in (0, 61)]
    reference = lance.dataset(str(path), version=stale.manifest.version)
    reference.delete("id % 10 = 6")  # pylance rebases on what we united.
    assert_same(path)


def test_deletions_of_the_same_row_are_planned_again(path: Path) -> None:
    stale = lance_format.dataset(path)
    lance.dataset(str(path)).delete("id = 15")
    files = sorted((path / "_deletions").iterdir())
    with pytest.raises(RetryableCommitConflictError, match=r"row .* of fragment"):
        delete_rows(stale._table, "id = 15 or id = 16")
    assert sorted((path / "_deletions").iterdir()) == files
    assert stale.delete("id = 15 or id = 16") == {"num_deleted_rows": 2}
    assert_same(path)


def test_a_fragment_that_two_deletions_empty_goes(path: Path) -> None:
    stale = lance_format.dataset(path)._table
    lance.dataset(str(path)).delete("id < 15")
    delete_rows(stale, "id >= 15 and id < 30")
    assert 0 not in [fragment.fragment_id for fragment in assert_same(path).get_fragments()]


def test_restore(path: Path) -> None:
    table = lance_format.dataset(path)
    before = table.to_table()
    version = table.version
    table.delete("true")
    lance_format.write_dataset(people(5), path, mode="append")
    old = lance_format.dataset(path, version)
    old.restore()
    assert old.version == version + 3
    assert assert_same(path).to_table() == before
    lance_format.write_dataset(people(5), path, mode="append")
    assert_same(path)


LINEAGE = ["id", "name", "x", "_rowid", "_row_created_at_version", "_row_last_updated_at_version"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("updates", "where"),
    [
        ({"name": "'new'"}, "id % 3 = 0"),
        ({"name": "upper(name)", "x": "id * 2"}, "id > 20 and id < 70"),
        ({"id": "id + 1000"}, None),
        ({"x": "null"}, "name is null"),
        ({"name": "'never'"}, "false"),
        ({"name": "'a fragment'"}, "id >= 30 and id < 60"),
    ],
)
def test_updates(path: Path, tmp_path: Path, updates: dict[str, str], where: str | None) -> None:
    """Ours does to one copy of a table what pylance's does to another."""
    shutil.copytree(path, tmp_path / "copy")
    reference = lance.dataset(str(tmp_path / "copy"))
    assert lance_format.dataset(path).update(updates, where) == reference.update(updates, where)
    assert_same(path)
    ours = lance.dataset(str(path))
    assert ours.version == reference.version
    lineage = LINEAGE if ours.has_stable_row_ids else LINEAGE[:3]
    order = [("id", "ascending"), ("name", "ascending")]
    assert ours.to_table(columns=lineage).sort_by(order) == reference.to_table(columns=lineage).sort_by(order)
    reference = lance.dataset(str(path))
    reference.update({"name": "'twice'"}, "id % 5 = 0")
    lance_format.dataset(path).update({"name": "'thrice'"}, "id % 7 = 0")
    assert_same(path)
    if ours.has_stable_row_ids:
        assert lance_format.dataset(path).to_table(lineage) == lance.dataset(str(path)).to_table(columns=lineage)


@pytest.mark.parametrize(
    ("updates", "where"),
    [
        ({}, None),
        ({"nope": "1"}, None),
        ({"nam": "1"}, None),
        ({"id": "'text'"}, None),
        ({"id": "nope"}, None),
        ({"id": "id / 0"}, None),
        ({"home.city": "'x'"}, None),
        ({"id": 5}, None),
        ({"id": "1"}, "id"),
    ],
)
def test_updates_that_make_no_sense(path: Path, updates: dict[str, Any], where: str | None) -> None:
    before = sorted(path.rglob("*"))
    with pytest.raises(InvalidInputError):
        lance_format.dataset(path).update(updates, where)
    assert sorted(path.rglob("*")) == before


def forget_counts(path: Path) -> None:
    """Make the latest manifest one of an early release, which did not count."""
    store, root = resolve(str(path))
    history = load_history(TableDirectory(store, root))
    place = Path(history.manifest_path(history.latest))

    def change(message: table_pb2.Manifest) -> None:
        for fragment in message.fragments:
            fragment.physical_rows = 0
            if fragment.HasField("deletion_file"):
                fragment.deletion_file.num_deleted_rows = 0
            for file in fragment.files:
                file.file_size_bytes = 0

    place.write_bytes(changed_manifest(place.read_bytes(), change))


@pytest.mark.parametrize("planned_before", [False, True])
def test_tables_that_do_not_count(path: Path, planned_before: bool) -> None:
    expected = lance_format.dataset(path).to_table()
    forget_counts(path)
    table = lance_format.dataset(path)
    assert table.to_table() == expected
    assert table.count_rows() == expected.num_rows
    stale = table._table
    if planned_before:
        lance_format.dataset(path).delete("id = 17")
        forget_counts(path)
    delete_rows(stale, "id = 5 or id = 61")
    for change in (
        lambda table: table.delete("id = 17"),
        lambda table: table.update({"name": "'x'"}, "id % 9 = 0"),
        lambda table: table.add_columns({"y": "id"}),
        lambda table: table.optimize.compact_files(materialize_deletions_threshold=0.0),
    ):
        forget_counts(path)
        change(lance_format.dataset(path))
        left = lance_format.dataset(path).to_table(["id"])["id"].to_pylist()
        assert not {5, 17, 61} & set(left)
        assert len(left) == expected.num_rows - sum(n in (5, 17, 61) for n in expected["id"].to_pylist())
    assert_same(path)


@pytest.mark.parametrize("stable", [False, True])
def test_remainders_of_unsigned_numbers(tmp_path: Path, stable: bool) -> None:
    """With signed ones they are decimals, as row ids are where samples are taken by them."""
    numbers = pa.array([0, 1, 7, 2**63, 2**64 - 1, None], pa.uint64())
    table = pa.table({"number": range(6), "u": numbers})
    lance.write_dataset(table, str(tmp_path), max_rows_per_file=4, enable_stable_row_ids=stable)
    for condition in (
        "_rowid % 2 = 1",
        "_rowaddr % 3 = 0",
        "u % 2 = 1",
        "u % -10 > 4",
        "(u % 4) + 1 = 4",
        "u % 7 IN (1, 0)",
    ):
        found = lance_format.dataset(tmp_path).to_table(filter=condition)
        assert found.equals(lance.dataset(str(tmp_path)).to_table(filter=condition)), condition
        assert found.num_rows > 0
    with pytest.raises(InvalidInputError, match="/ of uint64 and int64 is not supported; cast them"):
        lance_format.dataset(tmp_path).to_table(filter="u / 2 = 1")
