"""Metrics of scans, which agree with the storage's counts, and their text."""

from __future__ import annotations

import logging
from pathlib import Path

import lance
import pyarrow as pa
import pytest

import lance_format
from lance_format import ScanMetrics
from tests.table.counting import counted


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("metrics") / "t"
    rows = pa.table({"id": range(40_000), "text": [f"text {row * 7919}" for row in range(40_000)]})
    lance_format.write_dataset(rows, path, max_rows_per_file=10_000)
    return path


@pytest.mark.parametrize(
    ("options", "fragments", "rows", "returned"),
    [
        ({}, 4, 40_000, 40_000),
        ({"filter": "id < 10"}, 1, 8192, 10),
        ({"filter": "id % 40000 < 10"}, 4, 40_000, 10),
        ({"filter": "_fragid = 2 AND id % 2 = 0"}, 1, 10_000, 5000),
        ({"filter": "_rowid IN (3, 5)"}, 1, 2, 2),
        ({"filter": "_rowid < 0"}, 0, 0, 0),
        ({"limit": 15_000, "offset": 11_000}, 2, 15_000, 15_000),
        ({"filter": "id >= 0", "limit": 5}, 1, 5, 5),
        ({"filter": "id * 2 >= 0", "limit": 5}, 1, 8192, 5),
        ({"columns": [], "filter": "id = 35000"}, 1, 8192, 1),
    ],
    ids=str,
)
def test_metrics(path: Path, options: dict[str, object], fragments: int, rows: int, returned: int) -> None:
    dataset, store = counted(path)
    told: list[ScanMetrics] = []
    scanner = dataset.scanner(**options, scan_stats_callback=told.append)
    assert scanner.metrics is None
    assert scanner.to_table().num_rows == returned
    (metrics,) = told
    assert metrics == scanner.metrics
    assert (metrics.fragments, metrics.fragments_scanned) == (4, fragments)
    assert (metrics.rows, metrics.rows_scanned, metrics.rows_returned) == (40_000, rows, returned)
    assert metrics.fragments_skipped == 4 - fragments
    assert metrics.files_opened == len(store.opened)
    assert metrics.iops == metrics.requests == len(store.requests)
    assert metrics.bytes_read == store.drain()


def test_a_task_has_metrics_of_its_own(path: Path) -> None:
    scanner = lance_format.dataset(path).scanner(["text"])
    tasks = scanner.plan_tasks(60_000)
    assert len(tasks) > 1
    total = 0
    for task in tasks:
        total += sum(batch.num_rows for batch in scanner.read_task(task))
        assert scanner.metrics is not None
        assert scanner.metrics.rows == sum(stop - start for _, start, stop in task.ranges)
        assert scanner.metrics.rows_skipped == 0
    assert total == 40_000


def test_a_scan_that_is_given_up_tells_what_it_did(path: Path) -> None:
    scanner = lance_format.dataset(path).scanner()
    batches = scanner.to_batches()
    next(batches)
    batches.close()
    assert scanner.metrics is not None
    assert scanner.metrics.fragments_scanned == 1


def test_names_are_those_of_pylance(path: Path) -> None:
    theirs: list[object] = []
    lance.dataset(str(path)).scanner(filter="id < 10", scan_stats_callback=theirs.append).to_table()
    ours: list[ScanMetrics] = []
    lance_format.dataset(path).scanner(filter="id < 10", scan_stats_callback=ours.append).to_table()
    for name in ("iops", "requests", "bytes_read", "indices_loaded", "parts_loaded", "index_comparisons"):
        assert isinstance(getattr(ours[0], name), type(getattr(theirs[0], name)))
    assert ours[0].all_counts["fragments_scanned"] == 1
    assert {"fragments_scanned", "rows_scanned"} <= set(theirs[0].all_counts) & set(ours[0].all_counts)
    assert set(ours[0].all_times) == {"elapsed"}


def test_a_callback_that_fails_is_logged(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def fail(_: ScanMetrics) -> None:
        raise ValueError("no")

    assert lance_format.dataset(path).scanner(limit=3, scan_stats_callback=fail).to_table().num_rows == 3
    assert "the callback for the statistics of a scan" in caplog.text


def test_a_line_in_the_log(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "lance_format.scan"):
        lance_format.dataset(path).count_rows("id < 10")
    (record,) = caplog.records
    assert record.name == "lance_format.scan"
    assert "fragments=1 of 4, rows=8192 of 40000 (skipped 31808), returned=10" in record.getMessage()


def test_plans_as_text(path: Path) -> None:
    dataset = lance_format.dataset(path)
    scanner = dataset.scanner(["text"], "id < 10 AND _fragid = 0", limit=5, offset=2)
    assert scanner.explain_plan().splitlines() == [
        f"LanceScan: {dataset.uri}, version 1",
        "  columns: text",
        "  filter: (id < 10) AND (_fragid = 0)",
        "  read for the filter: id, _fragid",
        "  read for the rows that pass: text",
        "  limit: 5",
        "  offset: 2",
    ]
    assert "  fragments: 1 of 4\n  rows: 10000" in scanner.explain_plan(verbose=True)
    assert "    text: string" in scanner.explain_plan(verbose=True)
    assert "fragments=1 of 4, rows=8192 of 40000 (skipped 31808), returned=5" in scanner.analyze_plan()
    assert "filter" not in dataset.scanner(["id"]).explain_plan()
