"""Scans that are said step by step."""

import inspect
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance.dataset import ColumnOrdering
from lance.dataset import ScannerBuilder as ReferenceBuilder

import lance_format
from lance_format import InvalidInputError, LanceDataset, NotSupportedError
from lance_format.table.dataset.scanner_builder import ScannerBuilder


@pytest.fixture
def table(tmp_path: Path) -> LanceDataset:
    data = pa.table({"a": range(25), "s": [f"row {number % 7}" for number in range(25)]})
    lance_format.write_dataset(data, tmp_path, max_rows_per_file=8).delete("a = 3")
    return lance_format.dataset(tmp_path, default_scan_options={"with_row_address": True})


SCANS: list[dict[str, Any]] = [
    {},
    {"columns": ["s"], "filter": "a % 3 = 1", "limit": 4, "offset": 1},
    {"columns": {"b": "a + 1"}, "with_row_id": True, "with_row_address": True},
    {"columns": [], "with_row_id": True, "include_deleted_rows": True},
    {"order_by": [ColumnOrdering("a", ascending=False)], "limit": 5},
    {"batch_size": 5, "strict_batch_size": True, "batch_readahead": 3, "scan_in_order": True, "use_stats": False},
    {"filter": "a > 4", "late_materialization": True, "use_scalar_index": False, "io_buffer_size": 1000},
]


@pytest.mark.parametrize("scan", SCANS, ids=str)
def test_steps_are_arguments(table: LanceDataset, scan: dict[str, Any]) -> None:
    steps = [ScannerBuilder(table), ReferenceBuilder(lance.dataset(table.uri))]
    for builder in steps:
        for name, value in scan.items():
            assert getattr(builder, name)(value) is builder
    ours, theirs = (builder.to_scanner() for builder in steps)
    assert ours.to_table().to_pydict() == theirs.to_table().to_pydict()
    assert ScannerBuilder(table).apply_defaults(scan).to_scanner().to_table() == ours.to_table()
    assert table.scanner(**{"with_row_address": False, **scan}).to_table() == ours.to_table()


def test_fragments(table: LanceDataset) -> None:
    fragments = table.get_fragments()[1:]
    assert ScannerBuilder(table).with_fragments(fragments).to_scanner().count_rows() == 17
    assert ScannerBuilder(table).with_fragments(fragments).with_fragments(None).to_scanner().count_rows() == 24
    with pytest.raises(InvalidInputError, match="LanceFragment"):
        ScannerBuilder(table).with_fragments([1])  # type: ignore[list-item]


@pytest.mark.parametrize("name", ["minhash_search", "_set", "to_scanner", "apply_defaults", "what"])
def test_options_that_are_none(table: LanceDataset, name: str) -> None:
    with pytest.raises(InvalidInputError, match="has no option"):
        ScannerBuilder(table).apply_defaults({name: 1})


def test_names_are_those_of_pylance() -> None:
    searches = {
        "full_text_search",
        "minhash_search",
        "row_addr_prefilter",
        "with_index_segments",
        "substrait_aggregate",
    }
    theirs = {name for name, _ in inspect.getmembers(ReferenceBuilder, inspect.isfunction) if name[0] != "_"}
    ours = {name for name, _ in inspect.getmembers(ScannerBuilder, inspect.isfunction) if name[0] != "_"}
    assert theirs - ours <= searches
    assert ours <= theirs


def test_nonsense_is_refused_in_the_end(table: LanceDataset) -> None:
    with pytest.raises(InvalidInputError, match="Limit"):
        ScannerBuilder(table).limit(-1).to_scanner()
    with pytest.raises(NotSupportedError, match="order_by"):
        ScannerBuilder(table).with_row_id().include_deleted_rows(True).order_by(["a"]).to_scanner()
