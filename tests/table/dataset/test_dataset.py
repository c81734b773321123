"""Tables written and read through the public API."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lance_format
from lance_format import (
    CorruptFileError,
    DatasetExistsError,
    DatasetNotFoundError,
    InvalidInputError,
    LanceDataset,
    LanceError,
    NotSupportedError,
    SchemaMismatchError,
    StorageError,
    VersionNotFoundError,
)
from tests.table.builders import SCHEMA, column, data_files, rows


@pytest.fixture
def table(tmp_path: Path) -> LanceDataset:
    """Three fragments of 40, 40 and 20 rows, as version 1."""
    return lance_format.write_dataset(rows(0, 100), tmp_path / "t", max_rows_per_file=40)


class TestReading:
    def test_everything(self, table: LanceDataset) -> None:
        assert table.to_table() == rows(0, 100)
        assert table.count_rows() == 100
        assert table.schema == SCHEMA
        assert (table.version, table.latest_version, table.data_storage_version) == (1, 1, "2.2")
        assert [fragment.count_rows() for fragment in table.get_fragments()] == [40, 40, 20]

    @pytest.mark.parametrize("batch_size", [1, 7, 40, 1000])
    def test_batches_are_no_larger_than_asked(self, table: LanceDataset, batch_size: int) -> None:
        batches = list(table.to_batches(batch_size=batch_size))
        assert max(batch.num_rows for batch in batches) <= batch_size
        assert pa.Table.from_batches(batches) == rows(0, 100)

    def test_anyone_who_takes_streams_of_arrow_can_read(self, table: LanceDataset) -> None:
        whole = table.to_table()
        for source in (table, table.scanner(), table.scanner(order_by=["a"])):
            assert pa.table(source) == pa.RecordBatchReader.from_stream(source).read_all() == whole
        assert pa.table(table.get_fragments()[1])["a"].to_pylist() == list(range(40, 80))
        assert pa.table(table.scanner(columns={"b": "a * 2"}, filter="a = 3")).to_pydict() == {"b": [6]}

    def test_scanners_read_into_other_forms(self, table: LanceDataset) -> None:
        scanner = table.scanner(columns=["a"], filter="a % 2 = 0", batch_size=8)
        assert scanner.to_pandas()["a"].tolist() == list(range(0, 100, 2))
        for num_rows in (0, 5, 8, 9, 200):
            assert scanner.head(num_rows)["a"].to_pylist() == list(range(0, 100, 2))[:num_rows]
        scanner.head(3)
        assert scanner.metrics is not None
        assert scanner.metrics.rows_returned < 50
        with pytest.raises(InvalidInputError, match="num_rows is -1"):
            scanner.head(-1)

    def test_columns_come_in_the_order_asked_for(self, table: LanceDataset) -> None:
        assert table.to_table(["s", "a"]).column_names == ["s", "a"]
        assert table.to_table(["s"], limit=1).to_pydict() == {"s": ["row 0"]}
        assert table.to_table([]).num_rows == 100
        assert table.to_table([], offset=30, limit=20).num_rows == 20
        assert table.take([3, 3], columns=[]).num_rows == 2

    @given(st.none() | st.integers(0, 120), st.none() | st.integers(0, 120), st.integers(1, 50))
    @settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    def test_limit_and_offset(
        self, table: LanceDataset, limit: int | None, offset: int | None, batch_size: int
    ) -> None:
        found = table.to_table(["a"], limit=limit, offset=offset, batch_size=batch_size)["a"].to_pylist()
        start = offset or 0
        assert found == list(range(100))[start : None if limit is None else start + limit]

    @given(st.lists(st.integers(0, 99), max_size=30))
    @settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    def test_take_gives_the_rows_in_the_order_asked_for(self, table: LanceDataset, indices: list[int]) -> None:
        assert table.take(indices)["a"].to_pylist() == indices
        assert table.take(np.array(indices, dtype=np.uint16), columns=["s"]).column_names == ["s"]

    def test_head_and_fragments(self, table: LanceDataset) -> None:
        assert table.head(3)["a"].to_pylist() == [0, 1, 2]
        fragment = table.get_fragment(1)
        assert fragment is not None
        assert table.get_fragment(7) is None
        assert fragment.fragment_id == fragment.metadata.id == 1
        assert (fragment.physical_rows, fragment.num_deletions) == (40, 0)
        assert fragment.schema == SCHEMA
        assert len(fragment.data_files()) == 1
        assert fragment.to_table(["a"], offset=2, limit=2)["a"].to_pylist() == [42, 43]
        assert fragment.take([5, 0, 5], columns=["a"])["a"].to_pylist() == [45, 40, 45]
        assert sum(batch.num_rows for batch in fragment.to_batches(batch_size=7)) == 40

    @pytest.mark.parametrize(
        "arguments",
        [
            {"columns": ["nope"]},
            {"columns": "a"},
            {"columns": ["a", "a"]},
            {"columns": [1]},
            {"limit": -1},
            {"offset": -1},
            {"offset": "1"},
            {"batch_size": 0},
            {"limit": 1.5},
        ],
    )
    def test_arguments_that_make_no_sense(self, table: LanceDataset, arguments: dict[str, Any]) -> None:
        with pytest.raises(InvalidInputError):
            table.to_table(**arguments)
        fragment = table.get_fragments()[0]
        with pytest.raises(InvalidInputError):
            fragment.to_table(**arguments)

    def test_an_unknown_column_is_answered_with_those_there_are(self, table: LanceDataset) -> None:
        with pytest.raises(InvalidInputError, match=r"'nope'.*a, s"):
            table.to_batches(["nope"])

    @pytest.mark.parametrize("indices", [[-1], [100], [0, 2**63], [1.5], [[1]], [None], [True], ["x"]])
    def test_rows_that_are_not_there(self, table: LanceDataset, indices: list[Any]) -> None:
        with pytest.raises(InvalidInputError):
            table.take(indices)

    def test_a_dataset_can_be_pickled(self, table: LanceDataset) -> None:
        copy = pickle.loads(pickle.dumps(table))
        lance_format.write_dataset(rows(100, 101), table.uri, mode="append")
        assert copy.version == 1
        assert copy.to_table() == rows(0, 100)

    def test_an_older_version_stays_as_it_was(self, table: LanceDataset) -> None:
        lance_format.write_dataset(rows(100, 105), table.uri, mode="append")
        lance_format.write_dataset({"b": [1]}, table.uri, mode="overwrite")
        assert table.latest_version == 3
        assert [entry["version"] for entry in table.versions()] == [1, 2, 3]
        assert [entry["metadata"]["total_rows"] for entry in table.versions()] == ["100", "105", "1"]
        assert lance_format.dataset(table.uri, 1).count_rows() == 100
        assert table.checkout_version(2).count_rows() == 105
        assert table.checkout_version(3).schema.names == ["b"]
        for version in (0, 4, -1, 2**70):
            with pytest.raises(VersionNotFoundError, match="versions 1 to 3"):
                table.checkout_version(version)
        with pytest.raises(VersionNotFoundError, match="no tag '1'"):
            lance_format.dataset(table.uri, "1")


class TestWriting:
    @pytest.mark.parametrize("mode", ["create", "append", "overwrite"])
    def test_every_mode_makes_a_table_where_there_is_none(self, tmp_path: Path, mode: str) -> None:
        table = lance_format.write_dataset(rows(0, 3), tmp_path / "deep" / "t", mode=mode)
        assert (table.version, table.count_rows()) == (1, 3)

    @pytest.mark.parametrize(
        "data",
        [
            rows(0, 5),
            rows(0, 5).to_batches()[0],
            pa.RecordBatchReader.from_batches(SCHEMA, rows(0, 5).to_batches(max_chunksize=2)),
            iter(rows(0, 5).to_batches(max_chunksize=2)),
            [rows(0, 2), rows(2, 5)],
            rows(0, 5).to_pydict(),
            rows(0, 5).to_pylist(),
            rows(0, 5).to_pandas(),
        ],
        ids=["table", "batch", "reader", "iterator", "tables", "dict", "list of dicts", "pandas"],
    )
    def test_data_comes_in_many_forms(self, tmp_path: Path, data: Any) -> None:
        assert lance_format.write_dataset(data, tmp_path, schema=SCHEMA).to_table() == rows(0, 5)

    def test_a_pandas_index_is_not_stored(self, tmp_path: Path) -> None:
        frame = pd.DataFrame({"a": [1, 2]}, index=["x", "y"])
        assert lance_format.write_dataset(frame, tmp_path).schema == pa.schema([("a", pa.int64())])

    @pytest.mark.parametrize("data", [3, "text", None, [1, 2], iter([3])])
    def test_what_is_no_data_is_refused(self, tmp_path: Path, data: Any) -> None:
        with pytest.raises(InvalidInputError):
            lance_format.write_dataset(data, tmp_path / "t", schema=SCHEMA)
        assert list(tmp_path.iterdir()) == []
        with pytest.raises(InvalidInputError, match="schema="):
            lance_format.write_dataset(iter(()), tmp_path / "t")

    def test_data_is_consumed_as_a_stream(self, tmp_path: Path) -> None:
        written: list[int] = []

        def batches() -> Any:
            for start in range(0, 50, 10):
                written.append(len(data_files(tmp_path)))
                yield from rows(start, start + 10).to_batches()

        lance_format.write_dataset(batches(), tmp_path, schema=SCHEMA, max_rows_per_file=10)
        assert written == [0, 1, 2, 3, 4]

    def test_empty_data(self, tmp_path: Path) -> None:
        table = lance_format.write_dataset(rows(0, 0), tmp_path)
        assert (table.count_rows(), table.get_fragments(), table.to_table()) == (0, [], rows(0, 0))
        assert table.take([]).num_rows == 0
        assert lance_format.write_dataset(rows(0, 0), tmp_path, mode="append").version == 2
        assert lance_format.write_dataset(rows(0, 1), tmp_path, mode="append").count_rows() == 1

    def test_creating_twice_is_refused(self, table: LanceDataset) -> None:
        before = data_files(table.uri)
        with pytest.raises(DatasetExistsError, match=r"append.*overwrite"):
            lance_format.write_dataset(rows(0, 1), table.uri)
        assert data_files(table.uri) == before

    def test_columns_match_by_name_and_missing_ones_are_null(self, table: LanceDataset) -> None:
        lance_format.write_dataset(pa.table({"s": ["x"], "a": [1]}), table.uri, mode="append")
        appended = lance_format.write_dataset({"a": [2]}, table.uri, mode="append")
        assert appended.to_table(offset=100).to_pydict() == {"a": [1, 2], "s": ["x", None]}
        assert appended.take([101, 0], columns=["s"]).to_pydict() == {"s": [None, "row 0"]}
        assert appended.to_table(["s"], offset=101).to_pydict() == {"s": [None]}

    @pytest.mark.parametrize(
        ("schema", "message"),
        [
            (pa.schema([("a", pa.int32()), ("s", pa.string())]), "'a' is int32, the table's is int64"),
            (pa.schema([("a", pa.int64()), ("z", pa.string())]), "no column 'z'"),
            (pa.schema([("a", pa.int64()), ("s", pa.large_string())]), "'s' is large_string"),
            (pa.schema([]), "no column"),
        ],
    )
    def test_an_append_that_does_not_fit_says_how(self, table: LanceDataset, schema: pa.Schema, message: str) -> None:
        before = data_files(table.uri)
        with pytest.raises(SchemaMismatchError, match=message):
            lance_format.write_dataset(schema.empty_table(), table.uri, mode="append")
        assert data_files(table.uri) == before

    def test_what_cannot_be_null(self, tmp_path: Path) -> None:
        strict = pa.schema([pa.field("a", pa.int64(), nullable=False), pa.field("s", pa.string())])
        lance_format.write_dataset(rows(0, 3).cast(strict), tmp_path)
        assert lance_format.write_dataset(rows(3, 5), tmp_path, mode="append").schema == strict
        before = data_files(tmp_path)
        with pytest.raises(SchemaMismatchError, match="'a' is missing"):
            lance_format.write_dataset({"s": ["x"]}, tmp_path, mode="append")
        with pytest.raises(SchemaMismatchError, match="'a' has 1 nulls"):
            lance_format.write_dataset(pa.table({"a": [1, None], "s": ["x", "y"]}), tmp_path, mode="append")
        assert data_files(tmp_path) == before

    def test_the_version_of_data_files(self, tmp_path: Path) -> None:
        assert (
            lance_format.write_dataset(rows(0, 1), tmp_path, data_storage_version="2.1").data_storage_version == "2.1"
        )
        # As pylance does: files of another version may join, those of an unstated version are of the table's.
        table = lance_format.write_dataset(rows(1, 2), tmp_path, mode="append", data_storage_version="2.2")
        table = lance_format.write_dataset(rows(2, 3), tmp_path, mode="append")
        assert table.data_storage_version == "2.1"
        assert [file.file_minor_version for f in table.get_fragments() for file in f.data_files()] == [1, 2, 1]
        assert table.to_table() == rows(0, 3)
        assert lance_format.write_dataset(rows(0, 1), tmp_path, mode="overwrite").data_storage_version == "2.1"
        table = lance_format.write_dataset(rows(0, 1), tmp_path, mode="overwrite", data_storage_version="stable")
        assert table.data_storage_version == "2.2"

    @pytest.mark.parametrize(
        ("arguments", "error"),
        [
            ({"mode": "upsert"}, InvalidInputError),
            ({"max_rows_per_file": 0}, InvalidInputError),
            ({"max_rows_per_file": True}, InvalidInputError),
            ({"max_bytes_per_file": -1}, InvalidInputError),
            ({"max_bytes_per_file": "1g"}, InvalidInputError),
            ({"data_storage_version": "9"}, InvalidInputError),
            ({"data_storage_version": "next"}, NotSupportedError),
            ({"data_storage_version": "legacy"}, NotSupportedError),
        ],
    )
    def test_options_are_checked_first(
        self, tmp_path: Path, arguments: dict[str, Any], error: type[LanceError]
    ) -> None:
        with pytest.raises(error):
            lance_format.write_dataset(rows(0, 1), tmp_path / "t", **arguments)
        assert list(tmp_path.iterdir()) == []

    def test_a_table_needs_a_column(self, tmp_path: Path) -> None:
        with pytest.raises(InvalidInputError, match="no column"):
            lance_format.write_dataset({}, tmp_path / "t")
        with pytest.raises(InvalidInputError, match="two columns named 'a'"):
            lance_format.write_dataset(pa.table([[1], [2]], names=["a", "a"]), tmp_path / "t")
        assert list(tmp_path.iterdir()) == []

    def test_types_that_cannot_be_stored_are_refused_first(self, tmp_path: Path) -> None:
        data = pa.table({"a": [1], "i": pa.array([(1, 2, 3)], pa.month_day_nano_interval())})
        with pytest.raises(NotSupportedError, match="'i'"):
            lance_format.write_dataset(data, tmp_path / "t")
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("place", ["file/t", "file/a/b"])
    def test_a_place_that_cannot_be_written(self, tmp_path: Path, place: str) -> None:
        (tmp_path / "file").write_bytes(b"")
        with pytest.raises(StorageError, match="choose another path"):
            lance_format.write_dataset(rows(0, 1), tmp_path / place)
        assert [path.name for path in tmp_path.iterdir()] == ["file"]

    def test_a_failure_of_the_data_leaves_nothing(self, tmp_path: Path) -> None:
        def batches() -> Any:
            yield from rows(0, 50).to_batches()
            raise RuntimeError("the source broke")

        with pytest.raises(RuntimeError, match="the source broke"):
            lance_format.write_dataset(batches(), tmp_path / "a" / "t", schema=SCHEMA, max_rows_per_file=20)
        assert list(tmp_path.iterdir()) == []
        (tmp_path / "mine").mkdir()
        with pytest.raises(RuntimeError, match="the source broke"):
            lance_format.write_dataset(batches(), tmp_path / "mine", schema=SCHEMA)
        assert [path.name for path in tmp_path.iterdir()] == ["mine"]
        assert list((tmp_path / "mine").iterdir()) == []


class TestBrokenTables:
    def test_no_table(self, tmp_path: Path) -> None:
        for path in (tmp_path, tmp_path / "none"):
            with pytest.raises(DatasetNotFoundError, match=str(path)):
                lance_format.dataset(path)

    def test_a_file_that_is_gone(self, table: LanceDataset) -> None:
        path = table.get_fragments()[1].data_files()[0].relative_path
        Path(table.uri, path).unlink()
        with pytest.raises(DatasetNotFoundError, match=f"{path}.*fragment 1"):
            table.to_table()
        assert table.to_table(limit=40) == rows(0, 40)

    def test_a_file_that_was_cut(self, table: LanceDataset) -> None:
        path = Path(table.uri, table.get_fragments()[0].data_files()[0].relative_path)
        path.write_bytes(path.read_bytes()[:-1])
        with pytest.raises(CorruptFileError, match=path.name):
            table.to_table()

    def test_a_file_of_another_fragment(self, table: LanceDataset) -> None:
        first, _, last = (Path(table.uri, f.data_files()[0].relative_path) for f in table.get_fragments())
        content = last.read_bytes()
        first.write_bytes(content)
        with pytest.raises(CorruptFileError):
            table.to_table()

    def test_manifests_of_both_naming_schemes(self, table: LanceDataset) -> None:
        versions = Path(table.uri, "_versions")
        (versions / "1.manifest").write_bytes((versions / "18446744073709551614.manifest").read_bytes())
        with pytest.raises(CorruptFileError, match="both"):
            lance_format.dataset(table.uri)

    def test_files_that_are_no_versions_are_ignored(self, table: LanceDataset) -> None:
        versions = Path(table.uri, "_versions")
        for name in ("d9223372036854775809.manifest", "_latest.manifest", ".tmp_x", "notes.txt"):
            (versions / name).write_bytes(b"x")
        (versions / "17.manifest").mkdir()
        assert lance_format.dataset(table.uri).version == 1
        assert column(table.uri) == list(range(100))
