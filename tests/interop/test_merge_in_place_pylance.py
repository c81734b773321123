"""Merges that write columns where they are, and files of another version: ours and pylance's do the same."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyroaring
import pytest

import lance_format
from lance_format import InvalidInputError, LanceOperation, NotSupportedError
from tests.interop.test_merge_insert_pylance import TARGET, merge_both, source, write

Merge = Callable[[Any], Any]


def in_place(merge: Any) -> Any:
    return merge.when_matched_update_all().write_mode("rewrite_columns")


@pytest.mark.slow
@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable ids"])
@pytest.mark.parametrize("columns", [["k", "v"], ["x", "k"], ["w", "x", "k"]], ids=str)
@pytest.mark.parametrize("keys", [(9, 7, 3, None, 1), (1, 2, 3, 5, 6, 7), (11,)], ids=str)
def test_columns_are_written_in_place(tmp_path: Path, keys: Any, columns: list[str], stable: bool) -> None:
    write(tmp_path / "t", TARGET, stable=stable)
    merge_both(tmp_path / "t", source(*keys).select(columns), "k", in_place)
    merge_both(tmp_path / "t", source(7, 1).select(["v", "k"]), "k", in_place)
    assert not lance_format.dataset(tmp_path / "t").count_rows("_rowid is null")


def test_a_condition_decides_row_by_row(tmp_path: Path) -> None:
    write(tmp_path / "t", TARGET)
    data = source(1, 2, 3, 5, 6, 7).select(["k", "w"])
    merge_both(tmp_path / "t", data, "k", lambda m: in_place(m).when_matched_update_all("source.w > target.w"))


def test_a_key_of_several_columns(tmp_path: Path) -> None:
    write(tmp_path / "t", TARGET)
    merge_both(
        tmp_path / "t", pa.table({"k": [7, 7, 1], "v": ["h", "x", "a"], "w": [0.0, 1.0, 2.0]}), ["v", "k"], in_place
    )


def test_fields_that_a_struct_lacks_stay(tmp_path: Path) -> None:
    write(tmp_path / "t", TARGET)
    table = lance_format.dataset(tmp_path / "t")
    data = pa.table({"k": [7, 2], "x": [{"y": -1}, None]})
    table.merge_insert("k").when_matched_update_all().execute(data)
    expected = sorted(map(str, table.to_table().to_pylist()))
    write(tmp_path / "t", TARGET)
    table = lance_format.dataset(tmp_path / "t")
    in_place(table.merge_insert("k")).execute(data)
    assert sorted(map(str, table.to_table().to_pylist())) == expected
    assert str(lance.dataset(tmp_path / "t").to_table().to_pylist()) == str(table.to_table().to_pylist())


def test_the_other_columns_and_fragments_are_left_alone(tmp_path: Path) -> None:
    write(tmp_path / "t", TARGET, stable=False)
    table = lance_format.dataset(tmp_path / "t")
    num_files = len(list((tmp_path / "t" / "data").iterdir()))
    before = {fragment.fragment_id: fragment.data_files() for fragment in table.get_fragments()}
    plan = in_place(table.merge_insert("k")).explain_plan(pa.schema({"k": pa.int64(), "w": pa.float64()}))
    assert "read of the fragments that have such rows: w" in plan
    analysed = in_place(table.merge_insert("k")).analyze_plan(pa.table({"k": [1], "w": [0.5]}))
    assert "num_files_written=1" in analysed
    assert "num_updated_rows=1" in analysed
    in_place(table.merge_insert("k")).execute_batches(pa.table({"k": [1], "w": [0.5]}))
    for fragment in table.get_fragments():
        files = fragment.data_files()
        if fragment.fragment_id:
            assert files == before[fragment.fragment_id]
        else:
            assert [file.path for file in files[:-1]] == [file.path for file in before[0]]
    assert len(list((tmp_path / "t" / "data").iterdir())) == num_files + 1


def test_a_stale_merge_in_place_lands_beside_appends(tmp_path: Path) -> None:
    """The rows that it changed belong to the version that it becomes, not to the one that it was planned for."""
    for library, path in ((lance, tmp_path / "theirs"), (lance_format, tmp_path / "ours")):
        write(path, TARGET)
        stale = library.dataset(path)
        transaction, stats = in_place(stale.merge_insert("k")).execute_uncommitted_batches(
            pa.table({"k": [1, 6], "v": ["first", "sixth"]}).to_reader()
        )
        assert stats["num_updated_rows"] == 2
        library.dataset(path).insert(TARGET.slice(0, 2))
        library.LanceDataset.commit(path, transaction)
    rows = [
        lance.dataset(path).to_table(columns=["k", "v", "_rowid", "_row_last_updated_at_version"]).to_pylist()
        for path in (tmp_path / "ours", tmp_path / "theirs")
    ]
    assert rows[0] == rows[1]
    assert lance_format.dataset(tmp_path / "ours").count_rows("v in ('first', 'sixth')") >= 2


def test_who_changed_the_same_fragment_first_makes_it_start_again(tmp_path: Path) -> None:
    write(tmp_path / "t", TARGET)
    stale = lance_format.dataset(tmp_path / "t")
    lance.dataset(tmp_path / "t").delete("k = 2")
    in_place(stale.merge_insert("k")).execute(pa.table({"k": [1, 2], "v": ["one", "two"]}))
    rows = lance.dataset(tmp_path / "t").to_table(columns=["k", "v"]).to_pylist()
    assert {"k": 1, "v": "one"} in rows
    assert not any(row["k"] == 2 for row in rows)


REFUSED: dict[str, tuple[Merge, pa.Table, str]] = {
    "inserts": (lambda m: m.when_not_matched_insert_all(), source(1).select(["k", "v"]), "not inserted"),
    "deletes others": (lambda m: m.when_not_matched_by_source_delete(), source(1).select(["k", "v"]), "not deleted"),
    "deletes": (lambda m: m.when_matched_delete(), source(1).select(["k", "v"]), "are updated"),
    "all columns": (lambda m: m, source(1), "lacks a column"),
    "key alone": (lambda m: m, source(1).select(["k"]), "beside its key"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_done_in_place(tmp_path: Path, name: str) -> None:
    write(tmp_path / "t", TARGET)
    clauses, data, reason = REFUSED[name]
    with pytest.raises(OSError, match="cannot express"):
        clauses(in_place(lance.dataset(tmp_path / "t").merge_insert("k"))).execute(data)
    table = lance_format.dataset(tmp_path / "t")
    with pytest.raises(InvalidInputError, match=reason):
        clauses(in_place(table.merge_insert("k"))).execute(data)
    with pytest.raises(InvalidInputError, match="write_mode"):
        table.merge_insert("k").write_mode("columns")
    assert table.version == lance.dataset(tmp_path / "t").version


def test_blobs_are_not_written_in_place(tmp_path: Path) -> None:
    data = pa.table({"k": [1, 2], "b": [b"x", b"y"], "w": [1, 2]})
    schema = pa.schema([pa.field("k", pa.int64()), lance_format.blob_field("b"), pa.field("w", pa.int64())])
    table = lance_format.write_dataset(data, tmp_path / "t", schema=schema)
    with pytest.raises(InvalidInputError, match="column of blobs"):
        in_place(table.merge_insert("k")).execute(data.select(["k", "b"]))
    in_place(table.merge_insert("k")).execute(data.select(["k"]).append_column("w", pa.array([3, 4])))
    assert table.to_table(blob_handling="all_binary").to_pydict() == {"k": [1, 2], "b": [b"x", b"y"], "w": [3, 4]}


@pytest.mark.parametrize("offsets", [b"", b"no bitmap", pyroaring.BitMap([99]).serialize()])
def test_rows_that_are_none_are_refused(tmp_path: Path, offsets: bytes) -> None:
    write(tmp_path / "t", TARGET)
    table = lance_format.dataset(tmp_path / "t")
    made, fields = table.get_fragment(0).update_columns(pa.table({"k": [1], "v": ["x"]}), "k")
    operation = LanceOperation.Update(
        updated_fragments=[made],
        fields_modified=fields,
        update_mode="rewrite_columns",
        updated_fragment_offsets={0: offsets},
    )
    with pytest.raises(InvalidInputError, match=r"bitmap|no row 99"):
        lance_format.LanceDataset.commit(tmp_path / "t", operation, read_version=table.version)


def test_files_of_another_version(tmp_path: Path) -> None:
    write(tmp_path / "t", TARGET)
    table = lance_format.dataset(tmp_path / "t")
    assert table.data_storage_version == "2.2"
    merge_both(tmp_path / "t", source(1, 20), "k", lambda m: m.when_matched_update_all().data_storage_version("2.1"))
    merge_both(tmp_path / "t", source(2).select(["k", "v"]), "k", lambda m: in_place(m).data_storage_version("2.1"))
    table.checkout_latest()
    assert table.update({"v": "'new'"}, "k = 3", data_storage_version="2.1")["num_rows_updated"] == 1
    versions = [file.file_minor_version for fragment in table.get_fragments() for file in fragment.data_files()]
    assert sorted(versions) == [1, 1, 1, 2, 2, 2]
    assert table.data_storage_version == lance.dataset(tmp_path / "t").data_storage_version == "2.2"
    lance.dataset(tmp_path / "t").validate()
    with pytest.raises(InvalidInputError, match="unknown file format version"):
        table.merge_insert("k").data_storage_version("9")
    with pytest.raises(NotSupportedError, match=r"version 0\.1"):
        table.update({"v": "'x'"}, data_storage_version="legacy")
