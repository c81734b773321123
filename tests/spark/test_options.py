"""Names, values and ranges of options."""

import datetime
from pathlib import Path

import pytest

from connector.options.column_options import ColumnOption
from connector.options.options import LanceOptions
from connector.types.row_columns import ROW_FIELDS
from lance_format import InvalidInputError, LanceError
from lance_format.table.fragments.row_columns import ROW_COLUMNS


def parse(**options: str) -> LanceOptions:
    return LanceOptions.parse({"path": "/t", **options})


def test_a_path_is_enough() -> None:
    assert parse() == LanceOptions("/t")


def test_all_options_in_any_case() -> None:
    options = {
        "PATH": "/t",
        "Version": "7",
        "Branch": "work",
        "columns": "a, b",
        "metadata_columns": "_rowid, _fragid",
        "BATCH_SIZE": " 100 ",
        "file_format_version": "2.1",
        "max_row_per_file": "1000",
        "max_bytes_per_file": "9223372036854775807",
        "enable_stable_row_ids": "False",
        "MERGESchema": " true ",
    }
    assert LanceOptions.parse(options) == LanceOptions(
        "/t",
        version=7,
        branch="work",
        columns=("a", "b"),
        metadata_columns=("_rowid", "_fragid"),
        batch_size=100,
        file_format_version="2.1",
        max_row_per_file=1000,
        max_bytes_per_file=2**63 - 1,
        enable_stable_row_ids=False,
        merge_schema=True,
    )


@pytest.mark.parametrize("uri", ["memory://t", "MEMORY:///t"])
def test_the_memory_of_one_process_is_no_place_for_a_table(uri: str) -> None:
    with pytest.raises(InvalidInputError, match="in the memory of one process"):
        LanceOptions.parse({"path": uri})


@pytest.mark.parametrize(
    ("one", "other"), [("version", "timestamp"), ("tag", "version"), ("tag", "branch"), ("tag", "timestamp")]
)
def test_a_version_is_named_once(one: str, other: str) -> None:
    with pytest.raises(InvalidInputError, match=f"options '{one}' and '{other}' contradict each other"):
        parse(**{one: "1", other: "1"})


NOON = datetime.datetime(2026, 1, 31, 12, tzinfo=datetime.UTC)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2026-01-31 13:00:00 Europe/Berlin", NOON),
        ("2026-01-31 13:00:00+01:00", NOON),
        ("2026-01-31 07:00:00.5 -0500", NOON + datetime.timedelta(milliseconds=500)),
        ("2026-01-31T12:00:00Z", NOON),
        ("2026-01-31 12:00 UTC", NOON),
        (" 2026-01-31 12:00:00 Z ", NOON),
        ("2026-01-31 UTC", NOON - datetime.timedelta(hours=12)),
        ("1769860800000001", NOON + datetime.timedelta(microseconds=1)),
    ],
)
def test_timestamps(value: str, expected: datetime.datetime) -> None:
    assert parse(timestamp=value).timestamp == expected


@pytest.mark.parametrize(
    "value", ["", "noon", "2026-02-30 UTC", "2026-01-31 12:00:00 Mars/North", "9" * 19, "-1", "1.5"]
)
def test_timestamps_are_checked(value: str) -> None:
    with pytest.raises(InvalidInputError, match="option 'timestamp' must be a timestamp with a time zone"):
        parse(timestamp=value)


@pytest.mark.parametrize("value", ["2026-01-31", "2026-01-31 12:00:00"])
def test_timestamps_need_a_time_zone(value: str) -> None:
    with pytest.raises(InvalidInputError, match="option 'timestamp' has no time zone"):
        parse(timestamp=value)


@pytest.mark.parametrize("name", ["enable_stable_row_ids", "mergeSchema"])
def test_flags_are_checked(name: str) -> None:
    with pytest.raises(InvalidInputError, match=f"option '{name}' must be one of true, false, not 'yes'"):
        parse(**{name: "yes"})


def test_metadata_columns_are_checked() -> None:
    with pytest.raises(InvalidInputError, match="names 'id'; the metadata columns are _rowid, _rowaddr, _fragid"):
        parse(metadata_columns="_rowid, id")


def test_metadata_columns_are_those_of_the_library() -> None:
    assert set(ROW_FIELDS) == set(ROW_COLUMNS)


def test_options_of_columns() -> None:
    options = {
        "Vec.arrow.fixed-size-list.size": " 8 ",
        "a.b.lance.compression": "zstd",
        "a.b.lance.compression-level": "3",
        "c.lance.structural-encoding": "fullzip",
        "c.lance.rle-threshold": "0.5",
        "c.lance.bss": "on",
        "c.lance.minichunk-size": "1024",
        "c.lance.dict-values-compression": "lz4",
    }
    assert parse(**options).column_options == (
        ColumnOption("vec", "arrow.fixed-size-list.size", "8"),
        ColumnOption("a.b", "lance.compression", "zstd"),
        ColumnOption("a.b", "lance.compression-level", "3"),
        ColumnOption("c", "lance.structural-encoding", "fullzip"),
        ColumnOption("c", "lance.rle-threshold", "0.5"),
        ColumnOption("c", "lance.bss", "on"),
        ColumnOption("c", "lance.minichunk-size", "1024"),
        ColumnOption("c", "lance.dict-values-compression", "lz4"),
    )


@pytest.mark.parametrize("value", ["0", "-1", "x", "", "1.5", "2147483648"])
def test_sizes_of_vectors_are_checked(value: str) -> None:
    with pytest.raises(InvalidInputError, match=r"option 'v\.arrow\.fixed-size-list\.size'"):
        parse(**{"v.arrow.fixed-size-list.size": value})


def test_structural_encodings_are_checked() -> None:
    with pytest.raises(InvalidInputError, match="one of miniblock, fullzip, not 'sparse'"):
        parse(**{"v.lance.structural-encoding": "sparse"})


def test_columns_whose_names_hold_commas_are_a_json_list() -> None:
    assert parse(columns='["a, b", "c"]').columns == ("a, b", "c")


@pytest.mark.parametrize("value", ["0", "-1", "x", "", "1.5", "1e3", "\u0661", "1_000", "0x10", "9" * 30])
@pytest.mark.parametrize("name", ["version", "batch_size", "max_row_per_file", "max_bytes_per_file"])
def test_numbers_are_checked(name: str, value: str) -> None:
    with pytest.raises(InvalidInputError, match=f"option '{name}' must be a whole number from 1 to"):
        parse(**{name: value})


@pytest.mark.parametrize("value", ["", " ", "a,,b", ",", "[]", "[1]", "[", "a, ", '[""]', "[" * 100_000])
def test_columns_are_checked(value: str) -> None:
    with pytest.raises(InvalidInputError, match="option 'columns'"):
        parse(columns=value)


def test_a_column_is_named_once() -> None:
    with pytest.raises(InvalidInputError, match="names 'a' more than once"):
        parse(columns="a,b,a")


@pytest.mark.parametrize("options", [{}, {"path": ""}, {"path": "  "}])
def test_a_path_is_needed(options: dict[str, str]) -> None:
    with pytest.raises(LanceError, match="path"):
        LanceOptions.parse(options)


def test_a_path_keeps_its_spaces_and_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for given, path in {
        "/a/ b ": "/a/ b ",
        "/ ": "/ ",
        " b": f"{tmp_path}/ b",
        "b:c": f"{tmp_path}/b:c",
        "~/b": "~/b",
        "./~/b": f"{tmp_path}/~/b",
        "~b": f"{tmp_path}/~b",
        "file:/a%20": "file:/a%20",
        "s3://b/a ": "s3://b/a ",
    }.items():
        assert LanceOptions.parse({"path": given}).path == path


def test_several_paths_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="one path is expected"):
        LanceOptions.parse({"paths": '["/a", "/b"]'})


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("max_rows_per_file", "did you mean 'max_row_per_file'"),
        ("versoin", "did you mean 'version'"),
        ("batchSize", "did you mean 'batch_size'"),
        ("v.lance.compresion", "did you mean 'v.lance.compression'"),
        ("v.arrow.fixed_size_list.size", "did you mean 'v.arrow.fixed-size-list.size'"),
        (".lance.compression", "the options are"),
        ("lance.bss", r"<column>\.lance\.bss"),
        ("mergeshema", "did you mean 'mergeSchema'"),
        ("header", "the options are path, version"),
    ],
)
def test_unknown_names_are_refused(name: str, hint: str) -> None:
    with pytest.raises(InvalidInputError, match=hint):
        parse(**{name: "1"})


def test_names_of_spark_are_skipped() -> None:
    assert parse(__partition_columns="[]") == LanceOptions("/t")
