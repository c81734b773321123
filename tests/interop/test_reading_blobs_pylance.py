"""Blobs that are read whole or in parts: by ours and by pylance, which find the same."""

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lance_format
from lance_format import InvalidInputError

SIZES = [5, None, 0, 300_000, 17, 70_000]
VALUES = [None if size is None else bytes(n % 251 for n in range(size)) for size in SIZES]


@pytest.fixture(params=["places", "stable ids", "in the column"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Rows in three fragments; some are deleted."""
    numbers = pa.array(range(len(VALUES)))
    if request.param == "in the column":
        field = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
        data = pa.table([numbers, pa.array(VALUES, pa.large_binary())], pa.schema([pa.field("a", pa.int64()), field]))
        options: dict[str, Any] = {"data_storage_version": "2.1"}
    else:
        schema = pa.schema([pa.field("a", pa.int64()), lance.blob_field("b")])
        data = pa.table([numbers, lance.blob_array(VALUES)], schema)
        options = {"data_storage_version": "2.2", "enable_stable_row_ids": request.param == "stable ids"}
    lance.write_dataset(data, tmp_path / "t", max_rows_per_file=4, **options)
    lance.write_dataset(data, tmp_path / "t", mode="append")
    lance.dataset(tmp_path / "t").delete("a = 4")
    return tmp_path / "t"


@pytest.mark.parametrize("selector", ["ids", "addresses", "indices"])
def test_whole_blobs(path: Path, selector: str) -> None:
    ours, theirs = lance_format.dataset(path), lance.dataset(path)
    column = {"ids": "_rowid", "addresses": "_rowaddr"}.get(selector)
    known = range(theirs.count_rows()) if column is None else theirs.to_table(columns=[column])[column].to_pylist()
    rows = [known[place] for place in (9, 0, 2, 4, 0, 1, 7, 3)]
    expected = theirs.read_blobs("b", **{selector: rows}, preserve_order=True)
    assert ours.read_blobs("b", **{selector: rows}) == expected
    assert ours.read_blobs("b", **{selector: pa.array(rows, pa.uint64())}, io_buffer_size=7) == expected
    assert ours.read_blobs("b", **{selector: []}) == []
    ranges = [(rows[1], 1, 3), (rows[5], 5, 0), (rows[2], 0, 0), (rows[7], 200_000, 100_000), (rows[1], 0, 2)]
    parts = theirs.read_blob_ranges("b", ranges, selector=selector)
    assert ours.read_blob_ranges("b", ranges, selector=selector) == parts
    assert [part for _, _, part in parts] == [VALUES[0][1:4], None, b"", VALUES[3][200_000:], VALUES[0][:2]]  # type: ignore[index]
    assert ours.read_blob_ranges("b", [], selector=selector) == []


def test_what_cannot_be_read(path: Path) -> None:
    table, reference = lance_format.dataset(path), lance.dataset(path)
    attempts: dict[str, tuple[str, Any]] = {
        "exactly one": ("read_blobs", {"ids": [0], "indices": [0]}),
        "no column of blobs": ("read_blobs", {"blob_column": "a", "indices": [0]}),
        "there is no row 99|row 99 ": ("read_blobs", {"ids": [99]}),
        "row 99": ("read_blob_ranges", {"requests": [(99, 0, 1)], "selector": "indices"}),
        "within a blob of 5 bytes": ("read_blob_ranges", {"requests": [(0, 1, 5)], "selector": "indices"}),
        "no blob can have": ("read_blob_ranges", {"requests": [(0, 2**64 - 1, 2)], "selector": "indices"}),
        "selector": ("read_blob_ranges", {"requests": [(0, 1, 1)], "selector": "places"}),
    }
    for message, (method, arguments) in attempts.items():
        with pytest.raises(InvalidInputError, match=message):
            getattr(table, method)(**{"blob_column": "b", **arguments})
        with pytest.raises(ValueError):
            getattr(reference, method)(**{"blob_column": "b", **arguments})
