"""Expressions that are no predicates select no rows, and above all not all rows."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lance_format
from lance_format import Compaction, InvalidInputError, LanceDataset, ScannerBuilder

ROWS = pa.table({"id": range(6), "name": list("abcdef")})
NO_PREDICATES = ["", "  \n", 5, 0, 1.5, True, False, b"id = 1", [], ["id = 1"], {}, {"id": 1}, object(), pc.field]
NEEDED: dict[str, Callable[[LanceDataset, Any], object]] = {
    "delete": lambda table, given: table.delete(given),
    "a fragment's delete": lambda table, given: table.get_fragments()[0].delete(given),
}
OPTIONAL: dict[str, Callable[[LanceDataset, Any], object]] = {
    "update": lambda table, given: table.update({"name": "'x'"}, where=given),
    "a merge's condition": lambda table, given: table.merge_insert("id").when_matched_update_all(given),
    "a merge's others": lambda table, given: table.merge_insert("id").when_not_matched_by_source_delete(given),
    "scanner": lambda table, given: table.scanner(filter=given),
    "to_table": lambda table, given: table.to_table(filter=given),
    "to_batches": lambda table, given: list(table.to_batches(filter=given)),
    "count_rows": lambda table, given: table.count_rows(given),
    "sorted": lambda table, given: table.to_table(filter=given, order_by=["id"]),
    "a fragment's scanner": lambda table, given: table.get_fragments()[0].scanner(filter=given),
    "a fragment's count_rows": lambda table, given: table.get_fragments()[0].count_rows(given),
    "a builder's filter": lambda table, given: ScannerBuilder(table).filter(given).to_scanner(),
    "default options": lambda table, given: lance_format.dataset(
        table.uri, default_scan_options={"filter": given}
    ).to_table(),
}


@pytest.fixture
def table(tmp_path: Path) -> LanceDataset:
    return lance_format.write_dataset(ROWS, tmp_path, max_rows_per_file=3)


@pytest.mark.slow
@pytest.mark.parametrize("given", NO_PREDICATES, ids=lambda given: repr(given).split(" at ")[0])
@pytest.mark.parametrize("name", [*NEEDED, *OPTIONAL])
def test_what_is_no_predicate_is_refused(table: LanceDataset, name: str, given: object) -> None:
    with pytest.raises(InvalidInputError):
        (NEEDED | OPTIONAL)[name](table, given)
    assert lance_format.dataset(table.uri).to_table() == ROWS
    assert lance_format.dataset(table.uri).version == 1


@pytest.mark.parametrize("name", NEEDED)
def test_a_missing_predicate_deletes_nothing(table: LanceDataset, name: str) -> None:
    with pytest.raises(InvalidInputError, match="predicate is None"):
        NEEDED[name](table, None)
    assert lance_format.dataset(table.uri).to_table() == ROWS


@pytest.mark.parametrize("name", OPTIONAL)
def test_a_missing_filter_is_none(table: LanceDataset, name: str) -> None:
    OPTIONAL[name](table, None)


@pytest.mark.parametrize("text", ["'yes'", "1", "id", "id + 1", "NULL + 1"])
@pytest.mark.parametrize("name", ["delete", "a fragment's delete", "update", "to_table", "count_rows"])
def test_values_are_no_predicates(table: LanceDataset, name: str, text: str) -> None:
    with pytest.raises(InvalidInputError, match="not a boolean"):
        (NEEDED | OPTIONAL)[name](table, text)
    assert lance_format.dataset(table.uri).to_table() == ROWS


def test_constants_and_null_are_predicates(table: LanceDataset) -> None:
    for nothing in ("false", "NULL = 1", pc.scalar(False), "id = NULL"):
        assert table.delete(nothing) == {"num_deleted_rows": 0}
        assert table.count_rows(nothing) == 0
    assert table.count_rows(pc.scalar(True)) == table.count_rows("true") == 6
    assert table.delete("true") == {"num_deleted_rows": 6}


def test_a_blank_name_of_a_column_is_no_predicate(tmp_path: Path) -> None:
    data = pa.table({"": [True, False], " ": [True, False]})
    table = lance_format.write_dataset(data, tmp_path, allow_unportable_names=True)
    for blank in ("", " "):
        with pytest.raises(InvalidInputError):
            table.delete(blank)
    assert table.count_rows("` `") == 1
    assert table.count_rows() == 2


def test_truncating_needs_none(table: LanceDataset) -> None:
    table.truncate_table()
    assert table.count_rows() == 0
    assert table.schema == ROWS.schema


def test_compactions_take_no_predicate(table: LanceDataset) -> None:
    with pytest.raises(InvalidInputError, match="'where'"):
        table.optimize.compact_files(where="id = 1")
    with pytest.raises(InvalidInputError, match="'where'"):
        Compaction.plan(table, {"where": None})
