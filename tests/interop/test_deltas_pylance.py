"""Changes between versions: both libraries return the same."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest

import lance_format
from lance_format import InvalidInputError, LanceDataset, LanceOperation, NotSupportedError, VersionNotFoundError

IDS = "_rowid"


@pytest.fixture
def table(tmp_path: Path) -> LanceDataset:
    """A table of seven versions: rows come, change, go and are moved."""
    data = pa.table({"id": range(12), "v": ["old"] * 12, "s": [{"x": n} for n in range(12)]})
    table = lance_format.write_dataset(data, tmp_path / "t", max_rows_per_file=5, enable_stable_row_ids=True)
    table.insert(data.slice(0, 3))
    table.update({"v": "'new'"}, "id in (1, 7)")
    table.delete("id = 2")
    upsert = table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    upsert.execute({"id": [5, 40], "v": ["merged", "inserted"], "s": [None, {"x": 40}]})
    table.optimize.compact_files()
    table.delete("id = 40")
    return table


def rows(reader: pa.RecordBatchReader) -> pa.Table:
    return reader.read_all().sort_by(IDS)


@pytest.mark.parametrize("begin", range(7))
def test_changes_since_a_version(table: LanceDataset, begin: int) -> None:
    assert table.version == 7
    ours, theirs = table.delta(begin), lance.dataset(table.uri).delta(begin)
    assert rows(ours.get_inserted_rows()) == rows(theirs.get_inserted_rows())
    assert rows(ours.get_updated_rows()) == rows(theirs.get_updated_rows())
    if begin:
        assert rows(ours.get_deleted_row_ids()) == rows(theirs.get_deleted_row_ids())
    else:
        assert ours.get_deleted_row_ids().read_all().num_rows == 0
    found = [[(x.uuid, x.read_version) for x in delta.list_transactions()] for delta in (ours, theirs)]
    assert found[0] == found[1]


@pytest.mark.parametrize(("begin", "end"), [(0, 3), (1, 4), (2, 5), (3, 3), (5, 6)])
def test_rows_are_those_of_the_later_version(table: LanceDataset, begin: int, end: int) -> None:
    delta = table.delta(begin_version=begin, end_version=end)
    before = {} if not begin else contents(table.checkout_version(begin))
    after = contents(table.checkout_version(end))
    assert by_id(delta.get_inserted_rows()) == {key: row for key, row in after.items() if key not in before}
    assert by_id(delta.get_updated_rows()) == {
        key: row for key, row in after.items() if key in before and row != before[key]
    }
    assert delta.get_deleted_row_ids().read_all()[IDS].to_pylist() == sorted(before.keys() - after.keys())


def contents(table: LanceDataset) -> dict[int, object]:
    return by_id(table.scanner(with_row_id=True).to_reader())


def by_id(reader: pa.RecordBatchReader) -> dict[int, object]:
    found = reader.read_all().select(["id", "v", "s", IDS]).to_pylist()
    return {row.pop(IDS): row for row in found}


def test_only_what_is_needed_of_the_earlier_version_has_to_be_there(table: LanceDataset) -> None:
    table.cleanup_old_versions(retain_versions=1)
    delta = table.delta(2)
    assert delta.get_updated_rows().read_all().num_rows == 4
    with pytest.raises(VersionNotFoundError):
        delta.get_deleted_row_ids()
    with pytest.raises(VersionNotFoundError):
        delta.list_transactions()


def test_rows_without_stable_ids_are_not_guessed_at(tmp_path: Path) -> None:
    table = lance_format.write_dataset({"a": [1]}, tmp_path / "t")
    table.insert({"a": [2]})
    delta = table.delta(compared_against=1)
    for read in (delta.get_inserted_rows, delta.get_updated_rows, delta.get_deleted_row_ids):
        with pytest.raises(NotSupportedError, match="no stable row ids"):
            read()
    [transaction] = delta.list_transactions()
    assert isinstance(transaction.operation, LanceOperation.Append)
    assert not isinstance(transaction.operation, (LanceOperation.Delete, LanceOperation.Update))


@pytest.mark.parametrize(
    "versions",
    [
        {},
        {"begin_version": 1},
        {"end_version": 2},
        {"compared_against": 1, "begin_version": 1, "end_version": 2},
        {"begin_version": 3, "end_version": 2},
        {"compared_against": 9},
    ],
)
def test_versions_that_make_no_sense(table: LanceDataset, versions: dict[str, int]) -> None:
    with pytest.raises(InvalidInputError):
        table.delta(**versions)
    with pytest.raises(VersionNotFoundError):
        table.delta(begin_version=1, end_version=20)
