"""Sizes of blobs without reading them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import lance_format
from lance_format import InvalidInputError
from tests.blobs import payloads, table


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_sizes_of_rows_in_any_order(version: str, tmp_path: Path) -> None:
    path, given = tmp_path / "t.lance", payloads(10)
    lance_format.write_dataset(table(given), path, data_storage_version=version, max_rows_per_file=3)
    dataset = lance_format.dataset(path)
    rows = dataset.to_table(columns=["_rowaddr", *dataset.schema.names], blob_handling="all_binary")
    order = np.random.default_rng(0).integers(0, rows.num_rows, 2 * rows.num_rows)
    wanted = [len(given[row] or b"") for row in order]
    addresses = rows["_rowaddr"].to_numpy()[order]
    names = dataset.schema.names
    assert dataset.payload_sizes(addresses, names).tolist() == wanted
    assert dataset.payload_sizes(addresses, []).tolist() == [0] * len(order)
    assert dataset.payload_sizes([], names).tolist() == []


def test_sizes_of_several_columns(tmp_path: Path) -> None:
    blobs = lance_format.blob_array([b"1", b"22" * 50_000, None])
    field = lance_format.blob_field("a")
    columns = pa.Table.from_arrays(
        [blobs, blobs, pa.array([1, 2, 3])], schema=pa.schema([field, field.with_name("b"), ("n", pa.int64())])
    )
    lance_format.write_dataset(columns, tmp_path / "t.lance", data_storage_version="2.2")
    dataset = lance_format.dataset(tmp_path / "t.lance")
    assert dataset.payload_sizes([0, 1, 2], ["a", "n", "b"]).tolist() == [2, 200_000, 0]
    assert dataset.payload_sizes([2, 1], ["n"]).tolist() == [0, 0]


def test_what_is_not_there(tmp_path: Path) -> None:
    lance_format.write_dataset(table(payloads(10)), tmp_path / "t.lance")
    dataset = lance_format.dataset(tmp_path / "t.lance")
    with pytest.raises(InvalidInputError, match="1 of 2 rows do not exist"):
        dataset.payload_sizes([0, 1 << 40], dataset.schema.names)
    with pytest.raises(InvalidInputError, match="nothing"):
        dataset.payload_sizes([0], ["nothing"])
