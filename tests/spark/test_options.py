"""Names, values and ranges of options."""

import pytest

from connector.column_options import ColumnOption
from connector.options import LanceOptions
from lance_format import InvalidInputError, LanceError


def parse(**options: str) -> LanceOptions:
    return LanceOptions.parse({"path": "/t", **options})


def test_a_path_is_enough() -> None:
    assert parse() == LanceOptions("/t")


def test_all_options_in_any_case() -> None:
    options = {
        "PATH": "/t",
        "Version": "7",
        "columns": "a, b",
        "BATCH_SIZE": " 100 ",
        "file_format_version": "2.1",
        "max_row_per_file": "1000",
        "max_bytes_per_file": "9223372036854775807",
    }
    assert LanceOptions.parse(options) == LanceOptions("/t", 7, ("a", "b"), 100, "2.1", 1000, 2**63 - 1)


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
    with pytest.raises(InvalidInputError, match=f"option '{name}' has to be a whole number from 1 to"):
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
        ("header", "the options are path, version"),
    ],
)
def test_unknown_names_are_refused(name: str, hint: str) -> None:
    with pytest.raises(InvalidInputError, match=hint):
        parse(**{name: "1"})


def test_names_of_spark_are_skipped() -> None:
    assert parse(__partition_columns="[]") == LanceOptions("/t")
