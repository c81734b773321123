"""A planned write, whose steps run on different machines."""

import os
import pickle
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lance_format
from lance_format import (
    CommitConflictError,
    CommitError,
    CommitStateUnknownError,
    DatasetExistsError,
    FragmentMetadata,
    InvalidInputError,
    LanceError,
    SchemaMismatchError,
    StorageError,
    TableWrite,
)
from tests.table.builders import SCHEMA, column, data_files, open_store, rows
from tests.table.faults import FaultyStore
from tests.table.leftovers import leftovers


def plan(path: Path, mode: str = "append", **options: int) -> TableWrite:
    return lance_format.plan_write(str(path), SCHEMA, mode=mode, **options)


def write(planned: TableWrite, start: int, stop: int) -> list[FragmentMetadata]:
    """Write as another process would."""
    task = pickle.loads(pickle.dumps(planned))
    found = task.write_fragments(rows(start, stop).to_batches(max_chunksize=30))
    return [FragmentMetadata.from_json(fragment.to_json()) for fragment in found]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    lance_format.write_dataset(rows(0, 10), tmp_path / "t")
    return tmp_path / "t"


class TestFragments:
    def test_planning_writes_nothing(self, tmp_path: Path) -> None:
        planned = plan(tmp_path / "new")
        assert list(tmp_path.iterdir()) == []
        assert planned.read_version == 0
        assert "storage_options" not in repr(planned)
        assert pickle.loads(pickle.dumps(planned)) == planned

    def test_a_relative_path_means_the_same_elsewhere(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(path.parent)
        planned = lance_format.plan_write("t", SCHEMA, mode="append")
        table = lance_format.dataset("t")
        monkeypatch.chdir("/")
        assert planned.commit(write(planned, 10, 12)) == 2
        assert pickle.loads(pickle.dumps(table)).to_table() == rows(0, 10)

    def test_files_have_at_most_the_rows_allowed(self, path: Path) -> None:
        fragments = write(plan(path, max_rows_per_file=25), 0, 110)
        assert [fragment.physical_rows for fragment in fragments] == [25, 25, 25, 25, 10]

    def test_files_are_compressed_as_the_write_asks(self, path: Path) -> None:
        data = pa.record_batch({"a": range(20_000), "s": [f"{row:08}" for row in range(20_000)]}, schema=SCHEMA)
        sizes = []
        for options in ({}, {"encoding": {"compression": "none"}}, {"column_encoding": {"s": {"compression": "none"}}}):
            planned = lance_format.plan_write(str(path), SCHEMA, mode="append", **options)
            (fragment,) = pickle.loads(pickle.dumps(planned)).write_fragments([data])
            sizes.append(fragment.files[0].file_size_bytes)
        assert sizes[0] < sizes[2] < sizes[1]
        assert sizes[1] > 20_000 * (8 + 8)
        table = pa.table(data.columns, SCHEMA)
        written = lance_format.write_dataset(table, path, mode="overwrite", encoding={"compression": "zstd"})
        assert written.to_table() == table

    def test_options_are_checked_when_a_write_is_planned(self, path: Path) -> None:
        with pytest.raises(InvalidInputError, match="there is no encoding option 'level'"):
            lance_format.plan_write(str(path), SCHEMA, mode="append", encoding={"level": 3})

    def test_files_have_about_the_bytes_allowed(self, path: Path) -> None:
        data = pa.record_batch({"a": range(200_000), "s": ["x" * 12] * 200_000}, schema=SCHEMA)
        planned = plan(path, max_bytes_per_file=1_000_000)
        fragments = planned.write_fragments([data])
        assert len(fragments) > 3
        assert sum(fragment.physical_rows for fragment in fragments) == 200_000
        assert all((path / fragment.files[0].relative_path).stat().st_size < 1_300_000 for fragment in fragments)

    def test_files_do_not_become_tiny(self, path: Path) -> None:
        data = pa.record_batch({"a": range(2000), "s": [f"{row:0100}" for row in range(2000)]}, schema=SCHEMA)
        fragments = plan(path, max_bytes_per_file=1).write_fragments([data])
        assert 3 <= len(fragments) <= 5
        assert sum(fragment.physical_rows for fragment in fragments) == 2000

    def test_no_rows_no_fragments(self, path: Path) -> None:
        before = data_files(path)
        assert plan(path).write_fragments(rows(0, 0).to_batches()) == []
        assert plan(path).write_fragments([]) == []
        assert data_files(path) == before

    @pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit])
    def test_any_exception_deletes_what_was_written(self, path: Path, error: type[BaseException]) -> None:
        def batches() -> Iterator[pa.RecordBatch]:
            yield from rows(0, 100).to_batches()
            raise error

        before = data_files(path)
        with pytest.raises(error):
            plan(path, max_rows_per_file=30).write_fragments(batches())
        assert data_files(path) == before

    def test_batches_are_held_against_the_plan(self, path: Path) -> None:
        before = data_files(path)
        for wrong in ({"a": [1]}, {"a": [1], "s": ["x"], "z": [1]}, {"a": ["x"], "s": ["x"]}):
            with pytest.raises(SchemaMismatchError):
                plan(path).write_fragments(pa.table(wrong).to_batches())
        assert data_files(path) == before


class TestCommit:
    def test_all_fragments_become_visible_at_once(self, path: Path) -> None:
        planned = plan(path)
        fragments = write(planned, 10, 20) + write(planned, 20, 30)
        assert column(path) == list(range(10))
        assert planned.commit(fragments) == 2
        assert column(path) == list(range(30))

    def test_again_and_again(self, path: Path) -> None:
        planned = plan(path)
        fragments = write(planned, 10, 20)
        copies = [pickle.loads(pickle.dumps(planned)) for _ in range(3)]
        assert [copy.commit(fragments) for copy in copies] == [2, 2, 2]
        lance_format.write_dataset(rows(20, 30), path, mode="append")
        assert planned.commit(fragments) == 2
        assert column(path) == list(range(30))

    def test_an_append_follows_another(self, path: Path) -> None:
        one, two = plan(path), plan(path)
        assert two.commit(write(two, 20, 30)) == 2
        assert one.commit(write(one, 10, 20)) == 3
        assert column(path) == list(range(30))

    def test_an_append_does_not_follow_an_overwrite(self, path: Path) -> None:
        planned = plan(path)
        fragments = write(planned, 10, 20)
        lance_format.write_dataset(rows(5, 6), path, mode="overwrite")
        with pytest.raises(CommitConflictError):
            planned.commit(fragments)
        assert len(planned.abort(fragments)) == 1
        assert column(path) == [5]

    def test_an_overwrite_drops_what_came_meanwhile(self, path: Path) -> None:
        planned = plan(path, "overwrite")
        fragments = write(planned, 50, 60)
        lance_format.write_dataset(rows(10, 20), path, mode="append")
        assert planned.commit(fragments) == 3
        assert column(path) == list(range(50, 60))

    def test_an_overwrite_keeps_the_ids_of_fields(self, tmp_path: Path) -> None:
        def ids() -> dict[str, int]:
            fields = lance_format.dataset(tmp_path / "t").lance_schema.fields()
            below = [(f"{field.name()}.{child.name()}", child.id()) for field in fields for child in field.children()]
            return dict([(field.name(), field.id()) for field in fields] + below)

        point = pa.array([{"x": 1, "y": 2}])
        first = pa.table({"a": [1], "b": [2], "p": point, "c": ["x"]})
        lance_format.write_dataset(first, tmp_path / "t").drop_columns(["b"])
        assert ids() == {"a": 0, "p": 2, "p.x": 3, "p.y": 4, "c": 5}
        second = pa.table(
            {"c": [1], "p": point.cast(pa.struct({"y": pa.int64(), "z": pa.int64()})), "a": [1], "b": [1]}
        )
        lance_format.write_dataset(second, tmp_path / "t", mode="overwrite")
        assert ids() == {"c": 6, "p": 2, "p.y": 4, "p.z": 7, "a": 0, "b": 8}
        for library in (lance_format, lance):
            found = library.dataset(str(tmp_path / "t"))
            found.validate()
            assert found.to_table() == second
        lance.write_dataset(second, tmp_path / "t", mode="append")
        assert lance_format.dataset(tmp_path / "t").to_table() == pa.concat_tables([second, second])

    def test_two_creations(self, tmp_path: Path) -> None:
        one, two = (plan(tmp_path / "t", "create") for _ in range(2))
        written = [write(one, 0, 1), write(two, 1, 2)]
        assert one.commit(written[0]) == 1
        with pytest.raises(DatasetExistsError, match="concurrently"):
            two.commit(written[1])
        assert two.abort(written[1]) != []
        assert column(tmp_path / "t") == [0]

    def test_files_are_looked_at(self, path: Path) -> None:
        planned = plan(path)
        (missing,), (short,), (whole,) = (write(planned, 0, 5) for _ in range(3))
        (path / missing.files[0].relative_path).unlink()
        os.truncate(path / short.files[0].relative_path, 50)
        for fragments, message in (([whole, missing], "missing"), ([whole, short], "50 bytes instead of")):
            with pytest.raises(CommitError, match=message):
                planned.commit(fragments)
        with pytest.raises(InvalidInputError, match="twice"):
            planned.commit([whole, whole])
        narrower = lance_format.plan_write(str(path), pa.schema([("a", pa.int64())]), mode="overwrite")
        with pytest.raises(InvalidInputError, match="other columns"):
            narrower.commit([whole])
        assert lance_format.dataset(path).version == 1

    def test_fragments_of_another_write_are_refused(self, path: Path) -> None:
        """They would be in the table twice once the write that made them is committed as well."""
        planned, other = plan(path), plan(path)
        own, foreign = write(planned, 10, 12), write(other, 12, 14)
        version = lance_format.dataset(path).version
        with pytest.raises(InvalidInputError, match=f"of another write, not of this one, {planned.uuid}"):
            planned.commit([*own, *foreign])
        assert lance_format.dataset(path).version == version
        assert planned.commit(own) == version + 1
        assert other.commit(foreign) == version + 2

    def test_nothing_can_be_committed(self, path: Path) -> None:
        assert plan(path).commit([]) == 2
        assert column(path) == list(range(10))
        assert plan(path, "overwrite").commit([]) == 3
        assert column(path) == []


class TestAbort:
    def test_the_files_of_dead_writers_go_and_others_stay(self, path: Path) -> None:
        planned, other = plan(path), plan(path)
        known, lost, kept = write(planned, 0, 1), write(planned, 1, 2), write(other, 2, 3)
        half = path / "data" / f".tmp_{Path(lost[0].files[0].path).name}_0123"
        half.write_bytes(b"half a file")
        files = [f"{path}/{fragments[0].files[0].relative_path}" for fragments in (known, lost)]
        assert sorted(planned.abort(known)) == sorted([*files, str(half)])
        assert other.commit(kept) == 2

    def test_after_a_commit_nothing_goes(self, path: Path) -> None:
        planned = plan(path)
        fragments = write(planned, 10, 20)
        planned.commit(fragments)
        lance_format.write_dataset(rows(20, 21), path, mode="append")
        assert planned.abort(fragments) == []
        assert column(path) == list(range(21))

    @pytest.mark.parametrize("is_created_again", [False, True])
    def test_no_file_stays_where_the_table_was_dropped(self, path: Path, is_created_again: bool) -> None:
        lance_format.write_dataset(rows(10, 20), path, mode="append")
        planned = plan(path)
        shutil.rmtree(path)
        if is_created_again:
            lance_format.write_dataset(rows(0, 3), path)
        fragments = write(planned, 10, 20)
        with pytest.raises(LanceError):
            planned.commit(fragments)
        assert len(planned.abort(fragments)) == 1
        assert len(list(path.glob("data/*"))) == is_created_again
        assert not is_created_again or column(path) == [0, 1, 2]

    def test_when_the_versions_cannot_be_read_nothing_goes(self, path: Path) -> None:
        planned = plan(path)
        fragments = write(planned, 10, 20)
        planned.commit(fragments)
        (path / "_versions/18446744073709551613.manifest").write_bytes(b"broken")
        assert planned.abort(fragments) == []
        assert (path / fragments[0].files[0].relative_path).exists()

    def test_a_commit_that_lands_and_then_fails_keeps_its_rows(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The abort follows any error of the commit, with all fragments, as in Spark."""
        planned = plan(path)
        fragments = write(planned, 10, 20)
        store, root = open_store(path)
        landed: list[str] = []

        def fail(_number: int, when: str, name: str, target: str) -> None:
            if (name, when) == ("put_if_absent", "after"):
                landed.append(target)
                raise StorageError("the reply is lost")
            if name == "read" and target in landed:
                raise StorageError("the storage is gone")

        with monkeypatch.context() as patched:
            patched.setattr(
                "lance_format.table.format.table_directory.resolve", lambda *_: (FaultyStore(store, fail), root)
            )
            with pytest.raises(CommitStateUnknownError):
                planned.commit(fragments)
            assert planned.abort(fragments) == []
        assert planned.abort(fragments) == []
        assert column(path) == list(range(20))
        assert planned.commit(fragments) == 2

    def test_a_new_table_leaves_no_directories(self, tmp_path: Path) -> None:
        planned = plan(tmp_path / "deep" / "t", "create")
        fragments = write(planned, 0, 10)
        assert len(planned.abort(fragments)) == 1
        assert list(tmp_path.iterdir()) == []

    def test_aborting_never_raises(self, path: Path) -> None:
        planned = plan(path)
        fragments = write(planned, 0, 10)
        for file in sorted(path.rglob("*"), reverse=True):
            file.rmdir() if file.is_dir() else file.unlink()
        try:
            planned.abort(fragments)
        except LanceError:
            pytest.fail("an abort follows a failure and must not hide it")
        assert list(path.rglob("*")) == []


@pytest.mark.parametrize(("entry", "what"), [({b"\xff": "v"}, "key"), ({"k": b"\xff"}, r"value b'\\xff' of the key")])
def test_metadata_that_is_no_text_is_refused(tmp_path: Path, entry: dict[str | bytes, str | bytes], what: str) -> None:
    # The reference would read other keys and other values.
    for schema in (pa.schema({"a": pa.int64()}, entry), pa.schema([pa.field("a", pa.int64(), metadata=entry)])):
        with pytest.raises(InvalidInputError, match=f"the {what} b'.*', which is no UTF-8"):
            lance_format.write_dataset([], tmp_path, schema)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("library", "num_versions"), [(lance, 1), (lance_format, 1), (lance_format, 3)])
def test_a_table_that_was_made_again_is_another(tmp_path: Path, library: Any, num_versions: int) -> None:
    path = tmp_path / "table"
    lance_format.write_dataset(rows(0, 5), str(path))
    planned = plan(path)
    shutil.rmtree(path)
    for number in range(num_versions):
        library.write_dataset(rows(number, number + 1), str(path), mode="append" if number else "create")
    fragments = write(planned, 5, 9)
    with pytest.raises(CommitConflictError, match="it was dropped and created again"):
        planned.commit(fragments)
    planned.abort(fragments)
    assert lance_format.dataset(str(path)).count_rows() == num_versions
    assert not leftovers(path)
