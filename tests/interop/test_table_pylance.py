"""One table, two libraries: pylance opens ours, we open pylance's, and each writes on top of the other."""

import datetime
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lance_format
from lance_format import CommitConflictError, NotSupportedError, RetryableCommitConflictError
from tests.table.builders import rows

# Keeps pylance to the encodings that are read so far.
PLAIN = {"lance-encoding:compression": "none", "lance-encoding:dict-divisor": "1000000000"}


def plain(table: pa.Table) -> pa.Table:
    return table.cast(pa.schema([field.with_metadata(PLAIN) for field in table.schema]))


def data(start: int, stop: int) -> pa.Table:
    return plain(rows(start, stop))


def assert_same(path: Path) -> lance_format.LanceDataset:
    """Check that both libraries see the same table, and return it."""
    reference, ours = lance.dataset(str(path)), lance_format.dataset(path)
    reference.validate()
    assert ours.to_table() == reference.to_table()
    assert ours.schema == reference.schema
    assert ours.schema.metadata == reference.schema.metadata
    assert ours.count_rows() == reference.count_rows()
    for mine, theirs in zip(ours.versions(), reference.versions(), strict=True):
        # pylance's timestamps go through a float, which rounds to the next microsecond.
        assert abs(mine.pop("timestamp") - theirs.pop("timestamp")) <= datetime.timedelta(microseconds=1)
        assert mine == theirs
    assert (ours.version, ours.latest_version) == (reference.version, reference.latest_version)
    assert ours.data_storage_version == reference.data_storage_version
    summaries = [
        [
            (f.fragment_id, f.count_rows(), f.physical_rows, f.num_deletions, len(f.data_files()))
            for f in table.get_fragments()
        ]
        for table in (ours, reference)
    ]
    assert summaries[0] == summaries[1]
    return ours


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_pylance_opens_ours(tmp_path: Path, version: str) -> None:
    schema = data(0, 0).schema.with_metadata({"owner": "us"})
    lance_format.write_dataset(data(0, 100).cast(schema), tmp_path, max_rows_per_file=30, data_storage_version=version)
    lance_format.write_dataset(data(100, 120), tmp_path, mode="append")
    assert_same(tmp_path)
    lance_format.write_dataset({"z": [1]}, tmp_path, mode="overwrite")
    ours = assert_same(tmp_path)
    assert ours.get_fragments()[0].fragment_id == 5
    for number in (1, 2):
        assert lance.dataset(str(tmp_path), version=number).to_table() == ours.checkout_version(number).to_table()


def test_both_append_in_turn(tmp_path: Path) -> None:
    lance_format.write_dataset(data(0, 10), tmp_path)
    for turn in range(1, 7):
        library: Any = lance if turn % 2 else lance_format
        library.write_dataset(data(10 * turn, 10 * turn + 10), str(tmp_path), mode="append")
        assert assert_same(tmp_path).to_table() == data(0, 10 * turn + 10)


def test_an_empty_table(tmp_path: Path) -> None:
    lance_format.write_dataset(data(0, 0), tmp_path / "ours")
    lance.write_dataset(data(0, 0), str(tmp_path / "theirs"))
    for path in (tmp_path / "ours", tmp_path / "theirs"):
        assert_same(path)
        lance.write_dataset(data(0, 5), str(path), mode="append")
        lance_format.write_dataset(data(5, 6), path, mode="append")
        assert_same(path)


def test_old_manifest_names_are_kept(tmp_path: Path) -> None:
    lance.write_dataset(data(0, 10), str(tmp_path), enable_v2_manifest_paths=False)
    lance_format.write_dataset(data(10, 20), tmp_path, mode="append")
    lance.write_dataset(data(20, 30), str(tmp_path), mode="append")
    lance_format.write_dataset(data(5, 6), tmp_path, mode="overwrite")
    names = sorted(path.name for path in (tmp_path / "_versions").glob("*.manifest"))
    assert names == ["1.manifest", "2.manifest", "3.manifest", "4.manifest"]
    assert_same(tmp_path)


@pytest.mark.parametrize("num_rows", [100, 60_000], ids=["arrow", "bitmap"])
def test_deleted_rows_are_left_out(tmp_path: Path, num_rows: int) -> None:
    reference = lance.write_dataset(data(0, num_rows), str(tmp_path), max_rows_per_file=num_rows // 2)
    reference.delete("a % 3 = 0")
    reference.delete("a < 10")
    suffixes = {path.suffix for path in (tmp_path / "_deletions").iterdir()}
    assert suffixes == {".arrow"} if num_rows == 100 else ".bin" in suffixes
    lance_format.write_dataset(data(num_rows, num_rows + 4), tmp_path, mode="append")
    ours = assert_same(tmp_path)
    expected = [a for a in range(10, num_rows) if a % 3] + list(range(num_rows, num_rows + 4))
    assert ours.to_table(["a"], batch_size=17)["a"].to_pylist() == expected
    assert ours.to_table(["a"], offset=20, limit=33)["a"].to_pylist() == expected[20:53]
    assert ours.to_table([]).num_rows == len(expected)
    places = [len(expected) - 1, 0, 30, 31, 5, 30]
    assert ours.take(places, columns=["a"])["a"].to_pylist() == [expected[place] for place in places]
    second = ours.get_fragments()[1]
    assert (
        second.take([1, 0])["a"].to_pylist()
        == lance.dataset(str(tmp_path)).get_fragments()[1].take([0, 1])["a"].to_pylist()[::-1]
    )
    reference = lance.dataset(str(tmp_path))
    reference.delete("true")
    assert assert_same(tmp_path).to_table().num_rows == 0


def test_columns_that_came_and_went(tmp_path: Path) -> None:
    lance.write_dataset(data(0, 50), str(tmp_path), max_rows_per_file=20)
    reference = lance.dataset(str(tmp_path))
    reference.add_columns(lambda batch: pa.record_batch({"b": batch["a"]}), read_columns=["a"])
    assert len(lance_format.dataset(tmp_path).get_fragments()[0].data_files()) == 2
    lance_format.write_dataset(plain(pa.table({"b": [1], "a": [50]})), tmp_path, mode="append")
    ours = assert_same(tmp_path)
    assert ours.to_table(["b", "s"], batch_size=7).column_names == ["b", "s"]
    assert ours.take([50, 3]).to_pydict() == {"a": [50, 3], "s": [None, "row 3"], "b": [1, 3]}
    reference = lance.dataset(str(tmp_path))
    reference.drop_columns(["s"])
    assert_same(tmp_path)
    lance_format.write_dataset(plain(pa.table({"a": [51]})), tmp_path, mode="append")
    assert_same(tmp_path)
    lance.dataset(str(tmp_path)).alter_columns({"path": "b", "name": "c"})
    assert assert_same(tmp_path).schema.names == ["a", "c"]


def test_a_column_added_without_values_is_null(tmp_path: Path) -> None:
    lance.write_dataset(data(0, 5), str(tmp_path)).add_columns(pa.field("n", pa.int32()))
    assert assert_same(tmp_path).to_table(["n"])["n"].null_count == 5


def test_files_of_two_versions(tmp_path: Path) -> None:
    lance_format.write_dataset(data(0, 5), tmp_path, data_storage_version="2.1")
    lance_format.write_dataset(data(5, 7), tmp_path, mode="append", data_storage_version="2.2")
    assert_same(tmp_path)
    lance.write_dataset(data(7, 9), str(tmp_path), mode="append", data_storage_version="2.2")
    assert_same(tmp_path)


def test_configuration_and_metadata_survive(tmp_path: Path) -> None:
    lance.write_dataset(data(0, 5), str(tmp_path)).update_config({"lance.auto_cleanup.interval": "0", "mine": "1"})
    lance_format.write_dataset(data(5, 6), tmp_path, mode="append")
    lance_format.write_dataset(data(5, 6), tmp_path, mode="overwrite")
    assert lance.dataset(str(tmp_path)).config() == {"lance.auto_cleanup.interval": "0", "mine": "1"}
    assert_same(tmp_path)


def test_indices_survive_an_append(tmp_path: Path) -> None:
    reference = lance.write_dataset(data(0, 500), str(tmp_path))
    reference.create_scalar_index("a", "BTREE")
    lance_format.write_dataset(data(500, 600), tmp_path, mode="append")
    reference = lance.dataset(str(tmp_path))
    assert [index.name for index in reference.describe_indices()] == ["a_idx"]
    assert reference.to_table(filter="a = 7 or a = 550")["a"].to_pylist() == [7, 550]
    assert_same(tmp_path)
    lance_format.write_dataset(data(0, 10), tmp_path, mode="overwrite")
    assert lance.dataset(str(tmp_path)).describe_indices() == []


def test_a_stale_append_meets_pylance_commits(tmp_path: Path) -> None:
    lance.write_dataset(data(0, 5), str(tmp_path))
    planned = [lance_format.plan_write(str(tmp_path), data(0, 0).schema, mode="append") for _ in range(3)]
    fragments = [one.write_fragments(data(5, 8).to_batches()) for one in planned]
    reference = lance.dataset(str(tmp_path))
    reference.delete("a = 1")
    reference.update({"s": "'x'"}, where="a = 2")
    reference.update_config({"k": "v"})
    reference.create_scalar_index("a", "BTREE")
    reference.optimize.compact_files()
    assert planned[0].commit(fragments[0]) == lance.dataset(str(tmp_path)).version
    assert sorted(assert_same(tmp_path).to_table()["a"].to_pylist()) == [0, 2, 3, 4, 5, 6, 7]
    lance.dataset(str(tmp_path), version=1).restore()
    for one, written in zip(planned[1:], fragments[1:], strict=True):
        with pytest.raises(CommitConflictError, match="restore"):
            one.commit(written)
        assert len(one.abort(written)) == 1
    assert_same(tmp_path)


def _drop(table: lance.LanceDataset) -> None:
    table.drop_columns(["s"])


def _rename(table: lance.LanceDataset) -> None:
    table.alter_columns({"path": "a", "name": "z"})


def _add(table: lance.LanceDataset) -> None:
    table.add_columns(pa.field("n", pa.int32()))


def _cast(table: lance.LanceDataset) -> None:
    table.alter_columns({"path": "a", "data_type": pa.int32()})


def _require(table: lance.LanceDataset) -> None:
    table.alter_columns({"path": "a", "nullable": False})


@pytest.mark.parametrize(
    ("change", "follows"), [(_drop, True), (_rename, True), (_add, True), (_cast, False), (_require, False)]
)
def test_a_stale_append_meets_a_change_of_schema(
    tmp_path: Path, change: Callable[[lance.LanceDataset], None], follows: bool
) -> None:
    lance.write_dataset(data(0, 5), str(tmp_path))
    planned = lance_format.plan_write(str(tmp_path), data(0, 0).schema, mode="append")
    fragments = planned.write_fragments(data(5, 8).to_batches())
    change(lance.dataset(str(tmp_path)))
    if follows:
        assert planned.commit(fragments) == 3
        first = assert_same(tmp_path).to_table().column(0)
        assert first.to_pylist() == list(range(8))
        return
    with pytest.raises(RetryableCommitConflictError, match=r"version 2.*run it again"):
        planned.commit(fragments)
    assert len(planned.abort(fragments)) == 1


def test_a_stale_append_does_not_fill_a_new_column_with_values_of_a_dropped_one(tmp_path: Path) -> None:
    lance.write_dataset(data(0, 5).select(["a"]), str(tmp_path))
    reference = lance.dataset(str(tmp_path))
    reference.add_columns({"s": "cast(a as string)"})
    planned = lance_format.plan_write(str(tmp_path), data(0, 0).schema, mode="append")
    fragments = planned.write_fragments(data(5, 8).to_batches())
    reference.drop_columns(["s"])
    reference.add_columns(pa.field("t", pa.string()))
    assert reference.lance_schema.fields()[1].id() == 1, "pylance gives the new column the id of the dropped one"
    with pytest.raises(RetryableCommitConflictError, match="dropped since"):
        planned.commit(fragments)
    assert assert_same(tmp_path).count_rows() == 5


def test_a_stale_pylance_append_meets_ours(tmp_path: Path) -> None:
    lance_format.write_dataset(data(0, 5), tmp_path)
    stale = lance.dataset(str(tmp_path))
    lance_format.write_dataset(data(5, 6), tmp_path, mode="append")
    lance_format.write_dataset(data(6, 7), tmp_path, mode="append")
    stale.insert(data(7, 8))
    assert assert_same(tmp_path).to_table() == data(0, 8)


LINEAGE = ["a", "_rowid", "_row_created_at_version", "_row_last_updated_at_version"]


def test_stable_row_ids(tmp_path: Path) -> None:
    """Both libraries append to a table of either, and rows get the ids and versions that pylance gives them."""
    tables = [tmp_path / "ours", tmp_path / "theirs"]
    lance_format.write_dataset(data(0, 10), tables[0], max_rows_per_file=4, enable_stable_row_ids=True)
    lance.write_dataset(data(0, 10), str(tables[1]), max_rows_per_file=4, enable_stable_row_ids=True)
    for path in tables:
        lance.dataset(str(path)).delete("a = 3")
        lance_format.write_dataset(data(10, 13), path, mode="append")
        lance.write_dataset(data(13, 15), str(path), mode="append")
        lance_format.write_dataset(data(15, 16), path, mode="append")
        assert_same(path)
        found = lance.dataset(str(path)).to_table(columns=LINEAGE).to_pydict()
        assert found["_rowid"] == found["a"] == [n for n in range(16) if n != 3]
        versions = [1] * 9 + [3] * 3 + [4] * 2 + [5]
        assert found["_row_created_at_version"] == found["_row_last_updated_at_version"] == versions
        lance_format.write_dataset(data(0, 2), path, mode="overwrite")
        assert lance.dataset(str(path)).to_table(columns=LINEAGE).to_pydict()["_rowid"] == [16, 17]
    lance_format.write_dataset(data(0, 1), tmp_path / "plain")
    with pytest.raises(NotSupportedError, match="stable row ids"):
        lance_format.write_dataset(data(0, 1), tmp_path / "plain", mode="overwrite", enable_stable_row_ids=True)


def test_appends_that_pylance_refuses_or_takes(tmp_path: Path) -> None:
    """The same data, appended by both to the same table: both take it, to the same effect, or both refuse."""
    strict = pa.schema([pa.field("a", pa.int64(), nullable=False), pa.field("s", pa.string())])
    cases = [
        pa.table({"s": ["x"], "a": [1]}),
        pa.table({"a": [1]}),
        pa.table({"s": ["x"]}),
        pa.table({"a": [1], "s": ["x"], "z": [1]}),
        pa.table({"a": pa.array([1], pa.int32()), "s": ["x"]}),
        pa.table({"a": [1], "s": pa.array(["x"], pa.large_string())}),
        pa.table({"a": [1], "s": pa.array(["x"], pa.string_view())}),
        pa.table({"a": pa.array([None], pa.int64()), "s": ["x"]}),
        pa.table({"a": [1], "s": ["x"]}, metadata={"k": "v"}),
        pa.table({"a": pa.array([], pa.int64())}),
    ]
    for number, case in enumerate(cases):
        results = []
        for library, name in ((lance, "lance"), (lance_format, "lance_format")):
            path = tmp_path / f"{number}{name}"
            lance.write_dataset(rows(0, 2).cast(strict), str(path))
            try:
                library.write_dataset(case, str(path), mode="append")  # type: ignore[attr-defined]
                results.append(assert_same(path).to_table())
            except (OSError, ValueError):
                results.append(None)
        assert results[0] == results[1], case.schema


def test_plain_data_without_hints_is_read_where_its_encodings_are_known(tmp_path: Path) -> None:
    table = pa.table({"a": [3, 1, 2], "s": ["x", None, "z"]})
    lance.write_dataset(table, str(tmp_path))
    assert assert_same(tmp_path).to_table() == table


def test_slices_with_items_of_type_null_are_cast(tmp_path: Path) -> None:
    lists = pa.array([[None], None, [None, None]] * 2, pa.list_(pa.null()))
    views = pa.array(["a", "b", None] * 2, pa.string_view())
    structs = pa.StructArray.from_arrays([lists, views], ["x", "y"])
    table = pa.table({"a": structs, "b": lists, "c": pa.array(range(6), pa.int32())}).slice(2, 3)
    wanted = pa.schema([table.schema.field("a"), table.schema.field("b"), pa.field("c", pa.int64())])
    for number, data in enumerate((table, table.to_batches()[0], iter(table.to_batches()))):
        lance_format.write_dataset(data, str(tmp_path / str(number)), schema=wanted)
        assert assert_same(tmp_path / str(number)).to_table().to_pylist() == table.to_pylist()
