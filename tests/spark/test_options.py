"""Names, values and ranges of options."""

import pytest

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
        ("header", "the options are path, version"),
    ],
)
def test_unknown_names_are_refused(name: str, hint: str) -> None:
    with pytest.raises(InvalidInputError, match=hint):
        parse(**{name: "1"})


def test_names_of_spark_are_skipped() -> None:
    assert parse(__partition_columns="[]") == LanceOptions("/t")
