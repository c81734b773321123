"""Counts of rows, fragments and bytes: ours are those of pylance."""

from pathlib import Path
from typing import Any

import lance
import pytest

import lance_format
from lance_format import IndexNotFoundError
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


@pytest.mark.parametrize("library", [lance, lance_format])
def test_both_count_what_indices_cover(tmp_path: Path, library: Any) -> None:
    table = library.write_dataset(people(5000), tmp_path, max_rows_per_file=2000)
    table.create_scalar_index("id", "ZONEMAP")
    reference = lance.dataset(tmp_path)
    reference.create_scalar_index("name", "BTREE")
    reference.insert(people(100))
    reference.delete("id % 7 = 0")
    for parts in (1, 2):
        ours, theirs = (opened.dataset(tmp_path).stats for opened in (lance_format, lance))
        expected = theirs.index_stats("id_idx")
        assert ours.index_stats("id_idx") == expected
        assert (expected["num_segments"], expected["num_indexed_rows_per_delta"][0]) == (parts, 4285)
        without = {"indices", "segments"}  # The content of a B-tree is unknown here.
        found, expected = (
            {name: count for name, count in stats.index_stats("name_idx").items() if name not in without}
            for stats in (ours, theirs)
        )
        assert found == expected
        table = library.dataset(tmp_path)
        table.optimize.optimize_indices(index_names=["id_idx"], num_indices_to_merge=0)


def test_an_index_that_is_not_there(tmp_path: Path) -> None:
    table = lance_format.write_dataset(people(5), tmp_path / "t")
    with pytest.raises(KeyError, match='Index "nope" not found'):
        table.stats.index_stats("nope")
    with pytest.raises(IndexNotFoundError, match="there is no index 'nope'"):
        table.drop_index("nope")
