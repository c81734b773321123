"""Counts of rows, fragments and bytes: ours are those of pylance."""

from pathlib import Path
from typing import Any

import lance
import pytest

import lance_format
from tests.interop.test_scans_pylance import people


@pytest.mark.parametrize("library", [lance, lance_format])
def test_both_count_the_same(tmp_path: Path, library: Any) -> None:
    table = library.write_dataset(people(5000), tmp_path, max_rows_per_file=2000)
    table.add_columns({"twice": "id * 2"})
    table.delete("id % 7 = 0")
    table.drop_columns(["name"])
    ours, theirs = (opened.dataset(tmp_path).stats for opened in (lance_format, lance))
    assert ours.dataset_stats() == theirs.dataset_stats()
    assert ours.dataset_stats(max_rows_per_group=1500) == theirs.dataset_stats(max_rows_per_group=1500)
    found = [(field.id, field.bytes_on_disk) for field in ours.data_stats().fields]
    assert found == [(field.id, field.bytes_on_disk) for field in theirs.data_stats().fields]
    assert max(size for _, size in found) > 1000
