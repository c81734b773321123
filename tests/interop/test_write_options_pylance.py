"""Options of a write, as in pylance: forms of data, notes about a version, settings of a new table."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.dataset
import pytest

import lance_format
from lance_format import InvalidInputError, NotSupportedError, SchemaMismatchError
from tests.interop.test_table_pylance import assert_same

TABLE = pa.table({"a": [1, 2, 3], "b": ["x", None, "z"]})


class OnlyAStream:
    """An object that is just a stream of Arrow."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        return TABLE.__arrow_c_stream__(requested_schema)


class LikePolars(OnlyAStream):
    def to_arrow(self) -> pa.Table:
        return TABLE

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        raise AssertionError("its strings would be views")


FORMS: dict[str, Callable[[], Any]] = {
    "table": lambda: TABLE,
    "reader": TABLE.to_reader,
    "arrow dataset": lambda: pa.dataset.dataset(TABLE),
    "arrow scanner": lambda: pa.dataset.dataset(TABLE).scanner(),
    "stream": OnlyAStream,
    "polars": LikePolars,
    "dict": TABLE.to_pydict,
    "rows": TABLE.to_pylist,
}


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_data(tmp_path: Path, form: str) -> None:
    lance_format.write_dataset(FORMS[form](), tmp_path)
    assert assert_same(tmp_path).to_table() == TABLE


def test_tables_and_scanners_of_both_libraries(tmp_path: Path) -> None:
    ours = lance_format.write_dataset(TABLE, tmp_path / "ours")
    reference = lance.write_dataset(TABLE, tmp_path / "theirs")
    lance_format.write_dataset(reference, ours, mode="append")
    lance_format.write_dataset(reference.scanner(filter="a > 1"), ours, mode="append")
    lance_format.write_dataset(ours.scanner(filter="a = 1"), tmp_path / "ours", mode="append")
    assert assert_same(tmp_path / "ours").to_table()["a"].to_pylist() == [1, 2, 3, 1, 2, 3, 2, 3, 1]


def test_batches_are_cast_to_the_schema(tmp_path: Path) -> None:
    def batches(*values: int) -> Iterator[pa.RecordBatch]:
        yield from pa.table({"a": pa.array(values, pa.int64())}).to_batches()

    schema = pa.schema([("a", pa.int32())])
    for library, name in ((lance_format, "ours"), (lance, "theirs")):
        library.write_dataset(batches(1, 2), tmp_path / name, schema=schema)
        assert library.dataset(tmp_path / name).schema == schema
        with pytest.raises((SchemaMismatchError, OSError), match="2147483648 not in range"):
            library.write_dataset(batches(2**31), tmp_path / name, schema=schema, mode="append")
    assert assert_same(tmp_path / "ours").to_table()["a"].to_pylist() == [1, 2]
    with pytest.raises(SchemaMismatchError, match="cannot be cast"):
        lance_format.write_dataset(TABLE, tmp_path / "other", schema=schema)


NOTES: list[dict[str, Any]] = [
    {},
    {"commit_message": "the first"},
    {"transaction_properties": {"who": "ü", "__lance_commit_message": "lost"}, "commit_message": "kept"},
    {"transaction_properties": {"who": ""}},
]


@pytest.mark.parametrize("notes", NOTES)
@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_notes_about_a_version(tmp_path: Path, mode: str, notes: dict[str, Any]) -> None:
    found = []
    for library, name in ((lance_format, "ours"), (lance, "theirs")):
        for _ in range(2):
            library.write_dataset(TABLE, tmp_path / name, mode=mode, **notes)
        table = lance.dataset(tmp_path / name)
        found.append([table.read_transaction(version).transaction_properties for version in (1, 2)])
    assert found[0] == found[1]


@pytest.mark.parametrize("options", [{"interval": 3}, {"interval": 2, "older_than_seconds": 90}])
def test_automatic_cleanup_of_a_new_table(tmp_path: Path, options: dict[str, int]) -> None:
    """pylance keeps to what we set, and a table that is there keeps its own."""
    for mode in ("create", "append", "overwrite"):
        for library, name in ((lance_format, "ours"), (lance, "theirs")):
            library.write_dataset(TABLE, tmp_path / name, mode=mode, auto_cleanup_options=options)
            options = {"interval": 7} if mode != "create" else options
    ours, theirs = (lance_format.dataset(tmp_path / name).config() for name in ("ours", "theirs"))
    assert ours == lance.dataset(tmp_path / "ours").config()
    assert ours["lance.auto_cleanup.interval"] == theirs["lance.auto_cleanup.interval"] != "7"
    assert ours.get("lance.auto_cleanup.older_than", "90s") == "90s"


def test_a_new_table_cleans_up_by_itself(tmp_path: Path) -> None:
    lance_format.write_dataset(
        TABLE, tmp_path, auto_cleanup_options={"interval": 2, "retain_versions": 1, "older_than_seconds": 0}
    )
    for library in (lance_format, lance, lance_format, lance):
        library.write_dataset(TABLE, tmp_path, mode="append")
    assert [entry["version"] for entry in assert_same(tmp_path).versions()] == [3, 4, 5]


def test_automatic_cleanup_leaves_what_that_of_pylance_does(tmp_path: Path) -> None:
    left = []
    for library in (lance_format, lance):
        path = tmp_path / library.__name__
        table = library.write_dataset(TABLE, path)
        table.optimize.enable_auto_cleanup({"interval": 2, "older_than_seconds": 0})
        found = []
        for _ in range(4):
            library.write_dataset(TABLE, path, mode="append")
            found.append([entry["version"] for entry in library.dataset(path).versions()])
        table = library.dataset(path)
        table.optimize.disable_auto_cleanup()
        for _ in range(3):
            table.delete("false")
        left.append([*found, len(table.versions()), table.config()])
    assert left[0] == left[1]


def test_options_that_only_pylance_heeds(tmp_path: Path) -> None:
    tuning = {"max_rows_per_group": 2, "max_page_bytes": 100, "enable_v2_manifest_paths": True, "progress": None}
    lance_format.write_dataset(TABLE, tmp_path, **tuning)
    lance_format.dataset(tmp_path).insert(TABLE, max_rows_per_group=2)
    assert assert_same(tmp_path).count_rows() == 6


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"max_row_per_file": 2}, InvalidInputError, "no argument 'max_row_per_file'"),
        ({"enable_v2_manifest_paths": False}, NotSupportedError, "early releases"),
        ({"target_bases": ["x"]}, NotSupportedError, "below its directory"),
        ({"commit_message": 7}, InvalidInputError, "text is needed"),
        ({"transaction_properties": {"a": None}}, InvalidInputError, "a mapping of text to text is needed"),
        ({"auto_cleanup_options": {"older_than_seconds": 3}}, InvalidInputError, "needs an interval"),
        ({"auto_cleanup_options": {"interval": 0}}, InvalidInputError, "interval of auto_cleanup_options is 0"),
        ({"auto_cleanup_options": {"interval": 1, "x": 1}}, InvalidInputError, "has 'x'"),
    ],
)
def test_options_that_make_no_sense(tmp_path: Path, options: dict[str, Any], error: type, match: str) -> None:
    with pytest.raises(error, match=match):
        lance_format.write_dataset(TABLE, tmp_path / "t", **options)
    assert not (tmp_path / "t").exists()
