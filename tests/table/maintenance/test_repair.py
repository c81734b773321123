"""Repairs of damaged tables: nothing readable is lost, what is lost is listed, and pylance reads the result."""

from __future__ import annotations

import contextlib
import dataclasses
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lance_format
from lance_format import ChecksumError, LanceDataset, LanceError, StorageError, VerificationReport
from lance_format.byte_io import ByteRange
from lance_format.file import FileReader
from lance_format.object_store import LocalStore
from lance_format.table.maintenance.lost_rows import _failing, _places
from tests.table.faults import FaultyStore

VERSIONS = ("2.0", "2.1", "2.2")
ROWS = 40_000
BLOCK = 4096


def make_rows(num_rows: int = ROWS) -> pa.Table:
    numbers = np.random.default_rng(0).integers(0, 2**62, num_rows)
    names = [f"bird number {row * 7919 % 1000003}" for row in range(num_rows)]
    return pa.table({"id": range(num_rows), "number": numbers, "name": names})


def write(path: Path, version: str = "2.2", *, stable: bool = False, num_rows: int = ROWS) -> LanceDataset:
    lance_format.write_dataset(
        make_rows(num_rows),
        path,
        data_storage_version=version,
        max_rows_per_file=num_rows // 2,
        enable_stable_row_ids=stable,
    )
    return lance_format.dataset(path)


def data_file(dataset: LanceDataset, fragment: int) -> Path:
    return Path(dataset.uri) / "data" / dataset.get_fragments()[fragment].data_files()[0].path


def damage(file: Path, position: int, size: int = 1) -> None:
    content = bytearray(file.read_bytes())
    for place in range(position, position + size):
        content[place] ^= 0xFF
    file.write_bytes(content)


def page_of(file: Path, column: int) -> ByteRange:
    """Return where the largest buffer of the first page of a column lies."""
    with contextlib.closing(LocalStore().open_reader(str(file))) as source:
        return max(FileReader(source).pages(column)[0].buffers, key=lambda buffer: buffer.size)


def check(dataset: LanceDataset, rows: pa.Table) -> None:
    """Check that the table is whole, and that pylance reads the same rows."""
    ours = lance_format.dataset(dataset.uri)
    assert not ours.verify().problems
    ours.validate()
    assert ours.to_table().sort_by("id") == rows
    theirs = lance.dataset(dataset.uri)
    theirs.validate()
    assert theirs.to_table().sort_by("id") == rows


@pytest.mark.parametrize("version", VERSIONS)
def test_only_rows_of_the_damaged_block_are_lost(tmp_path: Path, version: str) -> None:
    dataset = write(tmp_path, version)
    file = data_file(dataset, 1)
    page = page_of(file, 1)
    damage(file, page.offset + page.size // 2)
    (lost,) = (report := lance_format.dataset(tmp_path).verify()).lost
    assert (lost.type, lost.fragment_id, lost.columns) == ("values", 1, ("number",))
    assert 0 < lost.start < lost.stop < ROWS // 2
    assert lost.num_rows == lost.stop - lost.start <= 2048
    assert [finding.repair for finding in report.problems] == [""]
    damaged = lance_format.dataset(tmp_path)
    with pytest.raises(ChecksumError):
        damaged.to_table()
    assert damaged.to_table(columns=["id", "name"]) == make_rows().select(["id", "name"])
    for rows in (range(lost.start), range(lost.stop, ROWS // 2)):  # Not a row more is lost.
        taken = damaged.get_fragment(1).take(list(rows), columns=["number"])
        assert taken["number"] == make_rows()["number"].slice(ROWS // 2 + rows.start, len(rows))
    for row in (lost.start, lost.stop - 1):
        with pytest.raises(ChecksumError):
            damaged.get_fragment(1).take([row], columns=["number"])
    assert pickle.loads(pickle.dumps(report)) == report
    before = damaged.version
    assert damaged.verify(repair=True).rewritten_fragments == ()
    assert damaged.latest_version == before


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("version", VERSIONS)
def test_lost_rows_are_deleted_on_purpose(tmp_path: Path, version: str, stable: bool) -> None:
    """The fragment of the remaining rows is rewritten without reading what cannot be read."""
    dataset = write(tmp_path, version, stable=stable)
    file = data_file(dataset, 0)
    page = page_of(file, 1)
    damage(file, page.offset + page.size // 2)
    damage(file, page.offset + page.size // 4, 3 * BLOCK)
    dataset = lance_format.dataset(tmp_path)
    ids = {row["id"]: row["_rowid"] for row in dataset.to_table(columns=["id"], with_row_id=True).to_pylist()}
    lost = dataset.verify().lost
    assert len(lost) == 2
    gone = np.zeros(ROWS, np.bool_)
    for rows in lost:
        gone[rows.start : rows.stop] = True
        assert dataset.delete(rows.condition)["num_deleted_rows"] == rows.num_rows
    report = dataset.verify(repair=True)
    assert report.rewritten_fragments == (0,)
    assert [finding.repair for finding in report.problems] == ["rewrite the fragment"] * len(report.problems)
    assert not report.lost
    assert not report.irreparable
    kept = make_rows().filter(pa.array(~gone))
    check_latest(dataset, kept)
    if stable:
        found = dataset.to_table(columns=["id"], with_row_id=True).to_pylist()
        assert all(ids[row["id"]] == row["_rowid"] for row in found)


def check_latest(dataset: LanceDataset, rows: pa.Table) -> None:
    """Check a table whose older versions still have the damaged file."""
    dataset.cleanup_old_versions(retain_versions=1)
    check(dataset, rows)


def statistics_of(file: Path) -> ByteRange:
    """Return where the statistics of a data file lie."""
    with contextlib.closing(LocalStore().open_reader(str(file))) as source:
        buffers = FileReader(source).metadata.global_buffers
    return max(buffers[1:-1], key=lambda buffer: buffer.size)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_fragment_with_damaged_statistics_is_rewritten(tmp_path: Path, version: str) -> None:
    dataset = write(tmp_path, version, stable=True)
    dataset.delete("id % 3 = 1")
    before = dataset.to_table(with_row_id=True, columns=["id", "_row_created_at_version"])
    file = data_file(dataset, 1)
    statistics = statistics_of(file)
    damage(file, statistics.end - 1)
    dataset = lance_format.dataset(tmp_path)
    report = dataset.verify(repair=True)
    assert not report.lost
    assert report.rewritten_fragments == (1,)
    assert [fragment.fragment_id for fragment in dataset.get_fragments()] == [0, 2]
    assert dataset.to_table(with_row_id=True, columns=["id", "_row_created_at_version"]) == before
    check_latest(dataset, make_rows().filter(pa.array(np.arange(ROWS) % 3 != 1)))


@pytest.mark.parametrize("num_rows", [4000, 700_000])
@pytest.mark.parametrize("version", VERSIONS)
def test_damaged_checksums_are_computed_again(tmp_path: Path, version: str, num_rows: int) -> None:
    """They share a block with metadata in small files, and have several blocks in large ones."""
    rows = pa.table({"id": np.random.default_rng(0).random(num_rows)})
    lance_format.write_dataset(rows, tmp_path, data_storage_version=version, max_rows_per_file=num_rows)
    dataset = lance_format.dataset(tmp_path)
    file = data_file(dataset, 0)
    with contextlib.closing(LocalStore().open_reader(str(file))) as source:
        seal = FileReader(source).seal
    assert seal is not None
    damage(file, seal.tail_start + 2, 4 * seal.num_data_blocks - 2)
    with pytest.raises(ChecksumError):
        lance_format.dataset(tmp_path).to_table()
    whole = file.read_bytes()
    damage(file, 1000)
    (lost,) = lance_format.dataset(tmp_path).verify().lost
    assert (lost.start, lost.stop) == (0, num_rows), "the data is not proved right"
    file.write_bytes(whole)
    dataset = lance_format.dataset(tmp_path)
    report = dataset.verify(repair=True)
    assert (report.lost, report.rewritten_fragments) == ((), (0,))
    check_latest(dataset, rows.sort_by("id"))


@pytest.mark.parametrize("version", VERSIONS)
def test_columns_in_other_files_remain(tmp_path: Path, version: str) -> None:
    """A missing file of one column loses that column; once it is dropped, nothing is lost."""
    dataset = write(tmp_path, version)
    dataset.add_columns({"twice": "id * 2"})
    file = tmp_path / "data" / dataset.get_fragments()[1].data_files()[1].path
    file.unlink()
    dataset = lance_format.dataset(tmp_path)
    (lost,) = dataset.verify(repair=True).lost
    half = ROWS // 2
    assert (lost.columns, lost.start, lost.stop) == (("twice",), 0, half)
    dataset.drop_columns(["twice"])
    check_latest(dataset, make_rows())


@pytest.mark.parametrize("version", VERSIONS)
def test_damage_to_a_dropped_column_loses_nothing(tmp_path: Path, version: str) -> None:
    dataset = write(tmp_path, version)
    file = data_file(dataset, 0)
    page = page_of(file, 1)
    damage(file, page.offset + page.size // 2)
    dataset.drop_columns(["number"])
    report = lance_format.dataset(tmp_path).verify(repair=True)
    assert (report.lost, report.rewritten_fragments) == ((), (0,))
    check_latest(lance_format.dataset(tmp_path), make_rows().drop_columns(["number"]))


NESTED = {
    "list": [[row, None] if row % 3 else [] for row in range(6000)],
    "struct": [{"x": row, "names": [f"{row}"] * (row % 4)} for row in range(6000)],
    "text": [f"the text of row {row}" * 9 if row % 5 else None for row in range(6000)],
}


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_what_is_not_lost_can_be_read(tmp_path: Path, version: str) -> None:
    """Of columns of every layout the rows that are not listed can be read, and the first and last listed cannot."""
    rows = pa.table({"id": range(6000), **NESTED})
    lance_format.write_dataset(rows, tmp_path, data_storage_version=version)
    file = data_file(lance_format.dataset(tmp_path), 0)
    whole = file.read_bytes()
    for position in range(BLOCK // 2, len(whole) - 3 * BLOCK, max(BLOCK, len(whole) // 12)):
        damage(file, position, 1 if position % 2 else 2 * BLOCK)
        dataset = lance_format.dataset(tmp_path)
        lost: dict[str, list[tuple[int, int]]] = {name: [] for name in rows.column_names}
        for found in dataset.verify().lost:
            for name in found.columns:
                lost[name].append((found.start, found.stop))
        assert any(lost.values())
        for name, ranges in lost.items():
            start = 0
            for stop, following in [*ranges, (6000, 6000)]:
                read = dataset.to_table(columns=[name], offset=start, limit=stop - start)
                assert read[name] == rows[name].slice(start, stop - start)
                start = following
            for start, stop in ranges:
                for row in {start, stop - 1}:
                    with pytest.raises(LanceError):
                        dataset.take([row], columns=[name])
        file.write_bytes(whole)


@given(st.integers(1, 7), st.sets(st.integers(0, 30)), st.integers(1, 200))
def test_the_search_finds_exactly_the_rows_of_damaged_blocks(block_rows: int, damaged: set[int], num_rows: int) -> None:
    places = _places(sorted(number * BLOCK for number in damaged), BLOCK)

    def failure(start: int, stop: int) -> int | None:
        """Fail at the first damaged block that holds one of the rows."""
        found = [
            number for number in sorted(damaged) if number * block_rows < stop and start < (number + 1) * block_rows
        ]
        return places[found[0] * BLOCK] if found else None

    found = {row for start, stop in _failing(failure, 0, num_rows) for row in range(start, stop)}
    assert found == {row for row in range(num_rows) if row // block_rows in damaged}


def test_damaged_metadata_loses_the_file(tmp_path: Path) -> None:
    dataset = write(tmp_path)
    file = data_file(dataset, 0)
    damage(file, file.stat().st_size - 20)
    (lost,) = lance_format.dataset(tmp_path).verify(repair=True).lost
    assert (lost.columns, lost.start, lost.stop) == (("id", "number", "name"), 0, ROWS // 2)


def test_the_version_before_a_compaction_holds_the_rows(tmp_path: Path) -> None:
    dataset = write(tmp_path)
    dataset.delete("id < 10")
    dataset.optimize.compact_files(target_rows_per_fragment=ROWS)
    dataset.update_config({"a": "b"})
    file = data_file(dataset, 0)
    page = page_of(file, 1)
    damage(file, page.offset + page.size // 2)
    (lost,) = lance_format.dataset(tmp_path).verify().lost
    assert lost.version == 2
    found = dataset.checkout_version(2).to_table(columns=["number"])["number"]
    assert found.slice(lost.start, lost.num_rows) == make_rows()["number"].slice(10 + lost.start, lost.num_rows)
    dataset.add_columns({"twice": "id * 2"})
    (tmp_path / "data" / dataset.get_fragments()[0].data_files()[1].path).unlink()
    assert {rows.version for rows in lance_format.dataset(tmp_path).verify().lost} == {None}, "not with that column"


@pytest.mark.parametrize(("unreachable", "number"), [("_indices", 2), ("/data/", 1)])
def test_a_failure_of_the_storage_is_no_damage(tmp_path: Path, unreachable: str, number: int) -> None:
    """A repair would drop an index that cannot be read right now."""
    dataset = write(tmp_path)
    dataset.create_scalar_index("number", "ZONEMAP")
    task = dataset.plan_verification().tasks[number]

    def fail(_number: int, when: str, _method: str, path: str) -> None:
        if when == "before" and unreachable in path:
            raise StorageError(f"{path} cannot be read right now")

    directory = dataset._table.directory
    store: Any = FaultyStore(directory.store, fail)
    table = dataclasses.replace(dataset._table, directory=dataclasses.replace(directory, store=store))
    with pytest.raises(StorageError, match="right now"):
        task.run(table)
    assert not any(finding.is_problem for finding in task.run(dataset._table).findings)


def test_a_damaged_deletion_file_is_listed(tmp_path: Path) -> None:
    dataset = write(tmp_path)
    dataset.delete(f"id % 10 = 3 AND id < {ROWS // 2}")
    (file,) = (tmp_path / "_deletions").iterdir()
    damage(file, 100)
    report = lance_format.dataset(tmp_path).verify(repair=True)
    (lost,) = report.lost
    assert (lost.type, lost.fragment_id) == ("deletions", 0)
    assert (lost.start, lost.stop, lost.num_rows) == (0, ROWS // 2, ROWS // 20)
    assert report.irreparable == report.problems


def damage_index(dataset: LanceDataset) -> None:
    (index,) = (path for path in (Path(dataset.uri) / "_indices").rglob("*") if path.is_file())
    damage(index, index.stat().st_size // 2)


def test_a_damaged_index_is_rebuilt(tmp_path: Path) -> None:
    dataset = write(tmp_path)
    dataset.create_scalar_index("number", lance_format.IndexConfig("ZONEMAP", {"rows_per_zone": 500}), name="by number")
    described = dataset.list_indices()
    damage_index(dataset)
    dataset = lance_format.dataset(tmp_path)
    report = dataset.verify(repair=True)
    assert [finding.repair for finding in report.problems] == ["rebuild the index"]
    assert (report.rebuilt_indices, report.dropped_indices, dataset.version) == (("by number",), (), 3)
    different = {"uuid", "version"}
    (before,), (after,) = (
        [{key: value for key, value in index.items() if key not in different} for index in found]
        for found in (described, dataset.list_indices())
    )
    assert before == after
    assert [index.name for index in lance.dataset(dataset.uri).describe_indices()] == ["by number"]
    wanted = make_rows()["number"][77].as_py()
    assert lance.dataset(dataset.uri).to_table(filter=f"number = {wanted}") == make_rows().slice(77, 1)
    assert dataset.to_table(filter=f"number = {wanted}") == make_rows().slice(77, 1)
    check_latest(dataset, make_rows())


def test_a_rebuilt_index_does_not_cover_damaged_fragments(tmp_path: Path) -> None:
    """One fragment has lost rows, another one is rewritten first."""
    dataset = write(tmp_path)
    lance_format.write_dataset(make_rows(100), tmp_path, mode="append")
    dataset = lance_format.dataset(tmp_path)
    dataset.create_scalar_index("number", "ZONEMAP")
    damage_index(dataset)
    page = page_of(data_file(dataset, 0), 1)
    damage(data_file(dataset, 0), page.offset + page.size // 2)
    damage(data_file(dataset, 1), statistics_of(data_file(dataset, 1)).end - 1)
    report = dataset.verify(repair=True)
    assert (report.rewritten_fragments, report.rebuilt_indices) == ((1,), ("number_idx",))
    assert [fragment.fragment_id for fragment in dataset.get_fragments()] == [0, 2, 3]
    (index,) = dataset.list_indices()
    assert index["fragment_ids"] == {2, 3}


def test_an_index_of_another_kind_is_dropped(tmp_path: Path) -> None:
    dataset = write(tmp_path)
    lance.dataset(str(tmp_path)).create_scalar_index("name", "INVERTED", base_tokenizer="icu")
    for file in (tmp_path / "_indices").rglob("*.*"):
        file.unlink()
    report = lance_format.dataset(tmp_path).verify(repair=True)
    assert {finding.repair for finding in report.problems} == {"drop the index"}
    assert (report.rebuilt_indices, report.dropped_indices) == ((), ("name_idx",))
    check_latest(dataset, make_rows())


@pytest.mark.parametrize("kind", ["BTREE", "BITMAP", "BLOOMFILTER"])
def test_an_index_of_pylance_that_names_rows_is_rebuilt(tmp_path: Path, kind: str) -> None:
    write(tmp_path)
    lance.dataset(str(tmp_path)).create_scalar_index("number", kind)
    for file in (tmp_path / "_indices").rglob("*.*"):
        file.unlink()
    dataset = lance_format.dataset(tmp_path)
    report = dataset.verify(repair=True)
    assert {finding.repair for finding in report.problems} == {"rebuild the index"}
    assert (report.rebuilt_indices, report.dropped_indices) == (("number_idx",), ())
    (index,) = dataset.list_indices()
    assert index["type"].upper() == kind
    number = dataset.take([7])["number"][0].as_py()
    assert dataset.to_table(filter=f"number = {number}")["id"].to_pylist() == [7]


def test_a_damaged_transaction_file_is_written_again(tmp_path: Path) -> None:
    dataset = write(tmp_path)
    dataset.delete("id < 5")
    files = {file: file.read_bytes() for file in (tmp_path / "_transactions").iterdir()}
    for file in files:
        damage(file, 20)
    report = dataset.verify(repair=True)
    assert sorted(report.restored_files) == sorted(f"_transactions/{file.name}" for file in files)
    assert {file: file.read_bytes() for file in files} == files
    assert dataset.latest_version == 2
    check(dataset, make_rows().slice(5))


def test_rows_are_not_rewritten_without_their_checksums(tmp_path: Path) -> None:
    """Otherwise damaged values would get valid checksums in a table that does not compare them."""
    dataset = write(tmp_path)
    dataset.update_config({"lance.verify_checksums": "false"})
    file = data_file(dataset, 0)
    damage(file, statistics_of(file).end - 1)
    dataset = lance_format.dataset(tmp_path)
    report = dataset.verify()
    page = page_of(file, 1)
    damage(file, page.offset + page.size // 2)
    plan = dataset.plan_fragment_repairs(report)
    with pytest.raises(ChecksumError):
        plan.tasks[0].execute(dataset)
    plan.abort(dataset)
    assert dataset.verify(repair=True).rewritten_fragments == ()
    assert len(list((tmp_path / "data").iterdir())) == 2


def _delete(dataset: LanceDataset) -> None:
    dataset.delete("id < 10")


def _compact(dataset: LanceDataset) -> None:
    dataset.optimize.compact_files(target_rows_per_fragment=ROWS)


@pytest.mark.parametrize(("change", "expected"), [(_delete, (0,)), (_compact, ())])
def test_concurrent_changes_are_kept(
    tmp_path: Path, change: Callable[[LanceDataset], None], expected: tuple[int, ...]
) -> None:
    """The tasks of a plan may run anywhere; a later version decides what is still to be repaired."""
    dataset = write(tmp_path)
    file = data_file(dataset, 0)
    damage(file, statistics_of(file).end - 1)
    report: VerificationReport = pickle.loads(pickle.dumps(dataset.verify()))
    plan = dataset.plan_fragment_repairs(report)
    results = [pickle.loads(pickle.dumps(task)).execute(dataset) for task in plan.tasks]
    change(lance_format.dataset(tmp_path))
    with pytest.raises(lance_format.RetryableCommitConflictError):
        plan.commit(dataset, results)
    dataset = lance_format.dataset(tmp_path)
    again = dataset.plan_fragment_repairs(report)
    assert again.commit(dataset, [task.execute(dataset) for task in again.tasks]) == expected
    check_latest(dataset, make_rows().slice(10 if change is _delete else 0))


def test_restored_rows_are_not_given_up(tmp_path: Path) -> None:
    """Lost rows were deleted, so that their fragment could be rewritten, and have come back since."""
    dataset = write(tmp_path)
    page = page_of(data_file(dataset, 0), 1)
    damage(data_file(dataset, 0), page.offset + page.size // 2)
    (lost,) = dataset.verify().lost
    dataset.delete(lost.condition)
    report = dataset.verify()
    assert [found.fragment.id for found in report.recoverable] == [0]
    lance_format.dataset(tmp_path, version=1).restore()
    dataset = lance_format.dataset(tmp_path)
    assert dataset.plan_fragment_repairs(report).tasks == ()
    dataset.delete(lost.condition.replace(f"{lost.start}", f"{lost.start + 1}"))
    assert dataset.plan_fragment_repairs(report).tasks == ()
    dataset.delete(lost.condition)
    assert len(dataset.plan_fragment_repairs(report).tasks) == 1


def test_blobs_that_are_not_damaged_remain(tmp_path: Path) -> None:
    payloads = [bytes([row % 251]) * 9000 for row in range(200)]
    schema = pa.schema(
        [pa.field("id", pa.int64()), pa.field("blob", pa.large_binary(), metadata={"lance-encoding:blob": "true"})]
    )
    lance_format.write_dataset(
        pa.table([pa.array(range(200)), pa.array(payloads, pa.large_binary())], schema=schema), tmp_path
    )
    dataset = lance_format.dataset(tmp_path)
    file = data_file(dataset, 0)
    damage(file, file.stat().st_size // 2)
    (lost,) = dataset.verify().lost
    assert (lost.columns, lost.num_rows <= 2) == (("blob",), True)
    dataset.delete(lost.condition)
    assert dataset.verify(repair=True).rewritten_fragments == (0,)
    dataset.cleanup_old_versions(retain_versions=1)
    assert not lance_format.dataset(tmp_path).verify().problems
    kept = [row for row in range(200) if not lost.start <= row < lost.stop]
    for found in (lance_format.dataset(tmp_path), lance.dataset(str(tmp_path))):
        blobs = found.take_blobs("blob", indices=list(range(len(kept))))
        assert [blob.readall() for blob in blobs] == [payloads[row] for row in kept]


def test_other_versions_are_repaired_on_the_latest(tmp_path: Path) -> None:
    dataset = write(tmp_path)
    file = data_file(dataset, 0)
    dataset.delete("id < 5")
    damage(file, statistics_of(file).end - 1)
    old = dataset.checkout_version(1)
    assert old.verify(repair=True).rewritten_fragments == (0,)
    assert old.version == 3
    check_latest(old, make_rows().slice(5))


def _manifest(path: Path, version: int) -> Path:
    return path / "_versions" / f"{2**64 - 1 - version:020}.manifest"


def test_a_version_with_a_damaged_manifest_is_given_up(tmp_path: Path) -> None:
    """As `docs/integrity.md` says: deleting the manifest is what a cleanup of the version does."""
    dataset = write(tmp_path)
    dataset.delete("id < 5")
    dataset.delete("id < 9")
    damage(_manifest(tmp_path, 2), 300)
    with pytest.raises(ChecksumError, match=_manifest(tmp_path, 2).name):
        dataset.cleanup_old_versions(retain_versions=1)
    (problem,) = dataset.verify(repair=True).problems
    assert (problem.path, problem.repair) == (f"_versions/{_manifest(tmp_path, 2).name}", "")
    _manifest(tmp_path, 2).unlink()
    check_latest(dataset, make_rows().slice(9))


def test_the_version_before_a_damaged_latest_one_can_be_the_latest(tmp_path: Path) -> None:
    dataset = write(tmp_path)
    dataset.delete("id < 5")
    damage(_manifest(tmp_path, 2), 300)
    with pytest.raises(ChecksumError, match=_manifest(tmp_path, 2).name):
        lance_format.dataset(tmp_path)
    _manifest(tmp_path, 2).unlink()
    dataset = lance_format.dataset(tmp_path)
    assert dataset.version == 1
    dataset.delete("id < 3")
    check_latest(dataset, make_rows().slice(3))


def test_the_manifest_of_another_table_is_found(tmp_path: Path) -> None:
    for place in ("a", "b"):
        dataset = write(tmp_path / place)
        dataset.delete("id < 5")
        dataset.delete("id < 9")
    for version, named in ((2, 3), (3, 2)):
        content = _manifest(tmp_path / "a", version).read_bytes()
        _manifest(tmp_path / "a", version).write_bytes(_manifest(tmp_path / "b", version).read_bytes())
        problems = lance_format.dataset(tmp_path / "a").verify().problems
        found = {x.path: x.detail for x in problems if x.type == "manifest"}
        assert f"_versions/{_manifest(tmp_path, 2).name}" in found
        assert any(_manifest(tmp_path, named).name in f"{path} {detail}" for path, detail in found.items())
        _manifest(tmp_path / "a", version).write_bytes(content)
    for place in ("a", "b"):
        assert not lance_format.dataset(tmp_path / place).verify().problems


@pytest.mark.parametrize("version", VERSIONS)
def test_a_table_goes_on_without_lost_values(tmp_path: Path, version: str) -> None:
    """The recipe of `docs/integrity.md`: lost values become null, and all others remain."""
    dataset = write(tmp_path, version)
    for fragment, column in ((0, 1), (1, 1), (1, 2)):
        page = page_of(data_file(dataset, fragment), column)
        damage(data_file(dataset, fragment), page.offset + page.size // 2)
    table = lance_format.dataset(tmp_path)
    report = table.verify(repair=True)
    page = Path(__file__).parents[3] / "docs" / "integrity.md"
    (recipe,) = (part for part in page.read_text().split("```") if "rows.condition" in part)
    exec(recipe.removeprefix("python"), {"report": report, "table": table, "lance_format": lance_format})
    dataset = lance_format.dataset(tmp_path)
    dataset.cleanup_old_versions(retain_versions=1)
    assert not lance_format.dataset(tmp_path).verify().problems
    expected = make_rows().to_pylist()
    assert ("number", "name") in {rows.columns for rows in report.lost}
    for rows in report.lost:
        for offset in range(rows.start, rows.stop):
            expected[rows.fragment_id * ROWS // 2 + offset].update(dict.fromkeys(rows.columns))
    for found in (lance_format.dataset(tmp_path), lance.dataset(str(tmp_path))):
        assert found.to_table().sort_by("id").to_pylist() == expected
