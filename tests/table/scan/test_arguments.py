import pickle
from pathlib import Path

import pyarrow as pa
import pytest

import lance_format
from lance_format import InvalidInputError, LanceDataset, NotSupportedError

TABLE = pa.table({"a": range(25), "s": [f"row {number}" for number in range(25)]})


@pytest.fixture
def table(tmp_path: Path) -> LanceDataset:
    return lance_format.write_dataset(TABLE, tmp_path, max_rows_per_file=8)


def sizes(table: LanceDataset, **options: object) -> list[int]:
    batches = list(table.to_batches(**options))
    assert pa.Table.from_batches(batches)["a"].to_pylist() == table.to_table(**options)["a"].to_pylist()
    return [batch.num_rows for batch in batches]


def test_batches_of_equal_size(table: LanceDataset) -> None:
    assert sizes(table, batch_size=5) == [5, 3, 5, 3, 5, 3, 1]
    assert sizes(table, batch_size=5, strict_batch_size=True) == [5] * 5
    assert sizes(table, batch_size=10, strict_batch_size=True) == [10, 10, 5]
    assert sizes(table, batch_size=10, strict_batch_size=True, filter="a != 3", limit=12) == [10, 2]
    assert [batch.num_rows for batch in table.to_batches([], batch_size=20, strict_batch_size=True)] == [20, 5]
    assert list(table.to_batches(filter="a < 0", strict_batch_size=True)) == []


def test_the_environment_sets_the_batch_size(table: LanceDataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANCE_DEFAULT_BATCH_SIZE", "6")
    assert sizes(table) == [6, 2, 6, 2, 6, 2, 1]
    assert sizes(table, batch_size=8) == [8, 8, 8, 1]
    monkeypatch.setenv("LANCE_DEFAULT_BATCH_SIZE", "few")
    with pytest.raises(InvalidInputError, match="LANCE_DEFAULT_BATCH_SIZE is 'few'"):
        table.to_table()


@pytest.mark.usefixtures("table")
class TestDefaults:
    def test_scans_of_the_table_have_them(self, tmp_path: Path) -> None:
        opened = lance_format.dataset(tmp_path, default_scan_options={"with_row_id": True, "columns": ["a"]})
        for same in (opened, pickle.loads(pickle.dumps(opened)), opened.checkout_version(1)):
            assert same.schema.names == same.to_table().column_names == ["a", "_rowid"]
        assert opened.to_table(columns=["s"], with_row_id=False).column_names == ["s"]

    def test_nothing_else_has_them(self, tmp_path: Path) -> None:
        opened = lance_format.dataset(tmp_path, default_scan_options={"filter": "a > 20", "limit": 1})
        assert opened.to_table()["a"].to_pylist() == [21]
        assert len(opened) == opened.count_rows() == 25
        fragment = opened.get_fragments()[0]
        assert fragment.count_rows() == fragment.to_table().num_rows == 8
        deleted = fragment.delete("a < 5")
        assert deleted is not None
        assert deleted.num_deletions == 5
        opened.delete("a < 5")
        assert lance_format.dataset(tmp_path).count_rows() == 20

    def test_they_are_checked_as_arguments_are(self, tmp_path: Path) -> None:
        with pytest.raises(InvalidInputError, match="'sise'"):
            lance_format.dataset(tmp_path, default_scan_options={"sise": 1}).to_table()


def test_arguments_of_opening_that_have_no_effect(table: LanceDataset, tmp_path: Path) -> None:
    options = {"block_size": 4096, "read_params": {"cache_repetition_index": True}, "index_cache_size_bytes": None}
    assert lance_format.dataset(tmp_path, metadata_cache_size_bytes=None, **options).to_table() == TABLE
    with pytest.raises(InvalidInputError, match="'blok_size'"):
        lance_format.dataset(tmp_path, blok_size=1)
    with pytest.raises(NotSupportedError, match="commit_lock"):
        lance_format.dataset(tmp_path, commit_lock=print)


def test_an_empty_table_is_a_table(tmp_path: Path) -> None:
    table = lance_format.write_dataset(TABLE.slice(0, 0), tmp_path)
    assert len(table) == 0
    assert table


@pytest.mark.parametrize("name", ["limit", "offset"])
def test_a_window_is_not_negative(table: LanceDataset, name: str) -> None:
    with pytest.raises(InvalidInputError, match=f"{name.capitalize()} must be non-negative.* -1"):
        table.to_table(**{name: -1})
