"""Planned reads are those that a scan does."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest

import lance_format
from lance_format import LanceDataset

_ROWS = 40_000


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> LanceDataset:
    path = tmp_path_factory.mktemp("reads") / "t"
    for begin in range(0, 3 * _ROWS, _ROWS):
        ids = range(begin, begin + _ROWS)
        rows = pa.table(
            {"id": ids, "scattered": [number * 7919 % _ROWS for number in ids], "text": [str(n) * 3 for n in ids]}
        )
        lance_format.write_dataset(rows, path, mode="append" if begin else "create")
    return lance_format.dataset(path)


@pytest.mark.parametrize(
    ("predicate", "fragments", "zones"),
    [
        ("id = 50000", 1, 1),
        ("id BETWEEN 30000 AND 50000", 2, 4),
        ("id < 0", 0, 0),
        ("scattered = 7", 3, 15),
        ("length(text) > 100", 3, 15),
        ("id > 5 OR scattered = 7", 3, 15),
    ],
)
def test_zones_and_rows_are_those_that_the_scan_reads(
    dataset: LanceDataset, predicate: str, fragments: int, zones: int
) -> None:
    scanner = dataset.scanner(filter=predicate)
    reads = scanner.plan_reads()
    assert (len(reads.fragments), reads.fragments_read) == (3, fragments)
    assert reads.total("zones_read") == zones
    scanner.to_table()
    assert scanner.metrics is not None
    assert reads.total("rows_read") >= scanner.metrics.rows_scanned
    assert fragments == scanner.metrics.fragments_scanned
    assert reads.total("pages_read") <= reads.total("pages")
    assert {fragment.skipped_by for fragment in reads.fragments} <= {"", "statistics"}
    assert reads.columns_without_statistics == ()


def test_bytes_are_those_of_the_pages(dataset: LanceDataset) -> None:
    sizes = [field.bytes_on_disk for field in dataset.stats.data_stats().fields]
    everything = dataset.scanner(filter="scattered >= 0").plan_reads()
    assert everything.total("bytes_read") == everything.total("size_bytes") == sum(sizes)
    assert everything.total("filter_bytes_read") == sizes[1]
    assert dataset.scanner(columns=["id"], filter="scattered >= 0").plan_reads().total("bytes_read") == sum(sizes[:2])
    plain = dataset.scanner(columns=["id"]).plan_reads()
    assert (plain.total("rows_read"), plain.total("bytes_read"), plain.filter_columns) == (3 * _ROWS, sizes[0], ())


def test_rows_by_their_number_and_indices_skip_fragments(tmp_path: Path, dataset: LanceDataset) -> None:
    reads = dataset.scanner(filter="_rowaddr = 5").plan_reads()
    assert [fragment.skipped_by for fragment in reads.fragments] == ["", "row numbers", "row numbers"]
    assert reads.total("rows_read") == 1
    copy = dataset.deep_clone(tmp_path / "copy", dataset.version)
    copy.create_scalar_index("id", "ZONEMAP")
    reads = copy.scanner(filter="id = 50000").plan_reads()
    assert [fragment.skipped_by for fragment in reads.fragments] == ["index", "", "index"]
    assert (reads.indices, reads.total("rows_read")) == (1, 8192)
    assert reads.fragments[0].pages is None


def test_small_fragments_have_no_zones_although_their_files_have_statistics(tmp_path: Path) -> None:
    wide = pa.array([[float(row)] * 8 for row in range(16_000)], pa.list_(pa.float32(), 8))
    rows = pa.table({"id": range(16_000), "vector": wide})
    dataset = lance_format.write_dataset(rows, tmp_path / "t", max_rows_per_file=8_000)
    reads = dataset.scanner(filter="id < 10").plan_reads()
    assert [(fragment.zones, fragment.rows_read) for fragment in reads.fragments] == [(None, 8_000)] * 2
    assert reads.columns_without_statistics == ()


def test_columns_without_statistics_are_named(tmp_path: Path) -> None:
    lance.write_dataset(pa.table({"id": range(_ROWS)}), str(tmp_path / "t"))
    reads = lance_format.dataset(tmp_path / "t").scanner(filter="id = 5").plan_reads()
    assert reads.columns_without_statistics == ("id",)
    assert (reads.total("rows_read"), reads.total("zones")) == (_ROWS, 0)
